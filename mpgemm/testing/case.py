"""One call of a kernel: operands, scales, order of k, epilogue and output format, with what it may return."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict, Unpack

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.bounded_product import Data, EngineProduct
from mpgemm.bounds.kernel_bound import KernelBound, Used, used_operands
from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.kernel_order import ANY, KernelOrder, kernel_order
from mpgemm.bounds.populations import evenly, part_of
from mpgemm.exact.blocks import ExactBlocks, sums_are_exact
from mpgemm.exact.product import ExactResult
from mpgemm.frameworks.multiplier import Multiplier
from mpgemm.inputs.sizes import check_shapes
from mpgemm.recovery.engines import scaled_engine
from mpgemm.testing.call import INTEGERS, KernelEnds, check_tf32, ends_of, integer_weights
from mpgemm.testing.epilogues import KernelEpilogue, broadcast, epilogue_of
from mpgemm.testing.sampled import KernelStatistics, powerless, statistics_of
from mpgemm.testing.tolerance_result import Vacuity, check_tolerance
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import Scaling, read_scales
from tensorcore_models.formats import Format, IntegerFormat, get_format
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.orders.order import KOrder

#: Rows and columns on which the loss of one product is tried out.
TRIED = 64


@dataclass(frozen=True)
class KernelCase:
    """`KernelCase` is one call of a kernel with its allowed results; costly properties are computed on first use.

    Attributes
    ----------
    engine : Engine
    operands : (ndarray, ndarray)
        Values of A and B as the engine gets them.
    given : (ndarray, ndarray)
        The operands before `input_rounding`, of their own types, without scales.
    scaling : Scaling or None
        Their scales as they were read.
    c : ndarray of float64, shape (m, n), or None
    out_format : str
        Of the kernel's result.
    order : KernelOrder
        The orders of k that are allowed.
    epilogue : KernelEpilogue or None
        Function that is applied to the sums before they are rounded.
    lines : ndarray of int
        Indices of these rows in the test's matrices, if only some are checked.
    ends : KernelEnds or None
        Factors of the product and of C; `scaling` and `c` have them.
    dequantised : Format or None
        For integer weights: the format to which the kernel may round them with their scales before it multiplies.
    """

    engine: Engine
    operands: tuple[np.ndarray, np.ndarray]
    given: tuple[np.ndarray, np.ndarray]
    scaling: Scaling | None
    c: np.ndarray | None
    out_format: str
    order: KernelOrder
    epilogue: KernelEpilogue | None = None
    lines: np.ndarray | None = None
    ends: KernelEnds | None = None
    dequantised: Format | None = None

    # -- what is meant ---------------------------------------------------------------------------------------------------
    @cached_property
    def used(self) -> Used:
        """The operands as the engine multiplies them."""
        return used_operands(self.engine, *self.operands, self.scaling)

    @property
    def a(self) -> np.ndarray:
        """Return A in float64, multiplied by all of its scales."""
        return self.used.a

    @property
    def b(self) -> np.ndarray:
        """Return B in float64, multiplied by all of its scales."""
        return self.used.b

    @cached_property
    def stored(self) -> tuple[np.ndarray, np.ndarray]:
        """A and B in float64 as the kernel's memory holds them, without scales."""
        return self.used.stored

    @cached_property
    def exact(self) -> ExactResult:
        """The exact product of the operands as the engine takes them, with their scales, and C; before an epilogue."""
        factors, block = self._factors_of_exact_blocks(), None if self.scaling is None else self.scaling.block
        if factors is not None and block is not None:
            return ExactBlocks(self.used.x, self.used.y, factors, block, self.c)
        return ExactResult(self.a, self.b, self.c, shared=True)

    def _factors_of_exact_blocks(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the factors of blocks whose sums FP64 holds exactly, (m, blocks) and (blocks, n); else None."""
        scaling, formats = self.scaling, self.engine.formats[:2]
        if scaling is None or scaling.applied != "block" or (scaling.whole_a, scaling.whole_b) != (1, 1):
            return None
        block, k = scaling.block or 1, scaling.sizes[1]
        if not all(isinstance(fmt, Format) for fmt in formats) or not sums_are_exact(formats, block):
            return None
        pairs = [scaling.at(start) for start in range(0, k, block)]
        if not pairs or not all(
            np.isfinite(x).all() for x in (self.used.x, self.used.y, *(f for pair in pairs for f in pair))
        ):
            return None
        return np.concatenate([a for a, _ in pairs], 1), np.concatenate([b for _, b in pairs])

    @cached_property
    def values(self) -> np.ndarray:
        """The exact sums, rounded to float64."""
        return np.asarray(self.exact.rounded("fp64"))

    @cached_property
    def result(self) -> np.ndarray:
        """The exact result: of the sums, or of the epilogue applied to them; float64."""
        return self.values if self.epilogue is None else self.epilogue.apply(self.values)

    def error_of(self, out: np.ndarray) -> np.ndarray:
        """Return out - exact."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.epilogue is None:
                return self.exact.error_of(out)
            return out.astype(np.float64) - self.result

    # -- what is allowed -------------------------------------------------------------------------------------------------
    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        bound = self._bound_of(get_format(self.out_format) if self.epilogue is None else self._sums_format)
        found = bound.bound(False), bound.bound(True)
        if self.epilogue is None:
            return found
        return tuple(self._behind(bound, finite) for bound, finite in zip(found, (False, True), strict=True))  # type: ignore[return-value]

    def _bound_of(self, out: Format | IntegerFormat) -> KernelBound:
        """Return the bound of sums that are rounded to a format."""
        roundings = int(self.ends is not None and self.ends.beta != 1)
        return KernelBound(
            self.engine,
            self.used,
            self.c,
            self.scaling,
            self.order,
            out,
            self.values,
            c_roundings=roundings,
            dequantised=self.dequantised,
        )

    def _behind(self, bound: np.ndarray, finite: bool) -> np.ndarray:
        """Return the bound of sums behind the epilogue and the output's rounding."""
        assert self.epilogue is not None
        known = np.isfinite(bound)
        with np.errstate(over="ignore", invalid="ignore"):
            total = self.epilogue.bound(self.values, np.where(known, bound, 0.0)) * bounds.MARGIN
            total = total + 2.0**-50 * np.abs(self.result)  # the functions themselves, in FP64
            if self.epilogue.pairs:
                known = np.logical_and(*np.split(known, 2, axis=-1))
            out = get_format(self.out_format)
            if not isinstance(out, Format):
                return np.where(known, total, np.inf)
            largest = np.abs(self.result) + total
            total = (total + out.unit_roundoff * largest + out.min_subnormal / 2) * bounds.MARGIN
            return np.where(known & (finite | (largest * bounds.MARGIN < out.max_finite)), total, np.inf)

    @cached_property
    def own_error(self) -> np.ndarray | float:
        """The most that the epilogue itself loses; 0 without."""
        return 0.0 if self.epilogue is None else self.epilogue.bound(self.values, np.zeros(self.values.shape))

    @property
    def _sums_format(self) -> Format | IntegerFormat:
        """Format of the sums before an epilogue."""
        return get_format("fp32") if self.scaling is not None and self.scaling.roundings else self.engine.formats[3]

    @property
    def bound(self) -> np.ndarray:
        """Return the certified bound of |out - exact| (:func:`gemm_tolerance`); infinite where a sum may overflow."""
        return self._bounds[0]

    @property
    def finite_bound(self) -> np.ndarray:
        """Return the bound for results that are known to be finite, so that nothing overflowed."""
        return self._bounds[1]

    @property
    def overflow_from(self) -> float:
        """Return the magnitude from which a sum may overflow to infinity."""
        return bounds.overflow_from(self.engine)

    @cached_property
    def vacuity(self) -> Vacuity:
        """The faults that the bound would let pass: zeros everywhere; products lost in the first rows and columns."""
        values, bound = np.abs(self.result), self.finite_bound
        shown = (slice(TRIED), slice(TRIED))
        c = None if self.c is None else self.c[shown]
        limit = bound if self.epilogue is None else self._sum_bound
        rows, columns = (np.arange(min(size, TRIED)) for size in self.values.shape)
        part = self.part(rows, columns)
        used = used_operands(self.engine, part.a, part.b, part.scaling)
        found = check_tolerance(used.a, used.b, c, bound=limit[shown])
        share = found.lost_product_passes / found.elements if found.elements else 0.0
        # where the exact result is infinite or NaN zeros are of another kind
        passes = int(np.count_nonzero(np.isfinite(values) & (values <= bound)))
        return replace(found, elements=values.size, zero_passes=passes, lost_product_passes=round(share * values.size))

    @cached_property
    def _sum_bound(self) -> np.ndarray:
        """The error that a sum may have before the epilogue, about: the bound over the epilogue's slope, at most 1."""
        return self._bound_of(get_format(self.out_format)).bound(True)

    @property
    def derivation(self) -> str:
        """Return a sentence on the derivation of the bound."""
        return "\n".join(_derivation(self))

    @cached_property
    def statistics(self) -> KernelStatistics | None:
        """The line of right kernels, where the certified bound sees too few dropped blocks of k; None where it sees them."""
        floating = isinstance(get_format(self.engine.d_format), Format)
        known = floating and self.bound.size and self.epilogue is None
        return statistics_of(self) if known and powerless(self.vacuity) else None

    @property
    def splits(self) -> int:
        """Return the largest number of chains whose division of k is not known; 1 if the order of k is known."""
        return self.order.splits if self.order.k_order != ANY else self.order.additions + 1

    @property
    def promote_every(self) -> int | None:
        """Return the number of products after which a chain is added outside; the largest if several are allowed."""
        return None if self.order.promote_every is None else self.order.promote_every[1]

    @property
    def atol(self) -> float:
        """Return the largest bound of an element: an absolute tolerance for checks that take one number."""
        return float(self.bound.max(initial=0.0))

    @cached_property
    def bound_of_every_order(self) -> np.ndarray:
        """Certified of sums, for every order of the chains' steps; infinite where the exact sum is not finite."""
        every = replace(self._bound_of(self._sums_format), exact=None, running=False)
        return np.where(np.isfinite(self.values), every.bound(False), np.inf)

    @property
    def data(self) -> Data:
        """Return the operands as the unit gets them, and C rounded to its format."""
        c_format = self.engine.formats[2]
        c = self.c
        if c is not None and isinstance(c_format, Format):
            c = round_to(c, c_format)
        return Data(*self.operands, c, self.scaling)

    @property
    def product(self) -> EngineProduct:
        """Return the description of the kernel without its operands and its epilogue."""
        order, out = self.order, get_format(self.out_format)
        narrow = out if isinstance(out, Format) and out != self._sums_format else None
        return EngineProduct(self.engine, order.promote_every, "rounded", narrow, order.k_order, order.splits)

    # -- what right kernels return ---------------------------------------------------------------------------------------
    def part(self, rows: np.ndarray, columns: np.ndarray) -> Data:
        """Return the given rows of A and columns of B as the unit gets them."""
        return part_of(Data(*self.operands, self.c, self.scaling), rows, columns)

    def model(self, rows: np.ndarray, columns: np.ndarray, **more: Any) -> list[np.ndarray]:
        """Return the model's sums in float64, with c, before an epilogue and the rounding to the output's format.

        Where the order is not known it is the unit's own over k, promoted at the largest interval. `more` is for
        :func:`tensorcore_models.engines.scaled.scaled_sums`.
        """
        options: dict[str, Any] = {"promote_every": self.promote_every, **more}
        if self.order.k_order != ANY:
            options["k_order"] = self.order.k_order
        return model_results(self.engine, *self.part(rows, columns), options)

    def sums_columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns of sums that belong to columns of the result: two for each if the epilogue takes pairs."""
        pairs = self.epilogue is not None and self.epilogue.pairs
        return np.concatenate([columns, columns + self.operands[1].shape[1] // 2]) if pairs else columns

    def finished(self, sums: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Apply the epilogue to the sums of some rows and of :meth:`sums_columns`; the output is not rounded."""
        return sums if self.epilogue is None else self.epilogue.part(rows, columns).apply(sums)

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Return values rounded to the output's format."""
        fmt = get_format(self.out_format)
        return round_to(values.astype(np.float64), fmt, saturate=False) if isinstance(fmt, Format) else values

    def __str__(self) -> str:
        return f"{self.derivation}\nlargest bound {self.atol:.4g}\n{self.vacuity}"


def kernel_engine(engine: Engine | str, a: np.ndarray, b: np.ndarray, scaling: Scaling | None = None) -> Engine:
    """Return the engine meant by a name, for operands of these types; with block scales where a unit multiplies them in."""
    target = Multiplier(engine)
    if target.engine is not None:
        return target.engine
    formats = [INTEGERS.get(x.dtype.name) or tcm.format_of_dtype(x.dtype) for x in (a, b)]
    if None in formats:
        raise TypeError(
            f"a is {a.dtype} and b is {b.dtype}: these are not formats of a matrix unit; convert them, or name an "
            f"instruction 'arch:name'"
        )
    names = [fmt.name for fmt in formats if fmt is not None]
    if scaling is not None and scaling.applied == "product":
        rule = scaling.rule_a
        return scaled_engine(target.device, names[0], names[1], rule.format, rule.along or 1, target.path)
    return target.engine_for(*names, *(["s32"] if isinstance(formats[0], IntegerFormat) else []))


def format_of_result(out: np.ndarray, others: str = "") -> Format:
    """Return the format of a kernel's result. Raises TypeError, naming `others` that fit, where its type is no floating-point
    one."""
    fmt = tcm.format_of_dtype(out.dtype)
    if fmt is None:
        raise TypeError(f"out has elements of type {out.dtype}, expected a floating-point format{others}")
    return fmt


class KernelOptions(TypedDict, total=False):
    """The statements of a test on a kernel beside its operands: parameters of :func:`gemm_tolerance`."""

    splits: int
    k_order: KOrder | None
    promote_every: int | tuple[int, int] | None
    scale_a: Any
    scale_b: Any
    input_rounding: str | None
    epilogue: Any
    residual: Any
    rows: int | None
    alpha: float
    beta: float


def gemm_tolerance(
    engine: Engine | str, a, b, c=None, *, out_format: str | None = None, **options: Unpack[KernelOptions]
) -> KernelCase:
    """Return the tolerance that a test of a kernel on an engine may use for these operands.

    It holds for a kernel that chains the engine's steps over k in order, in at most `splits` chains whose results are added in
    any order in the format of the engine's results, adds c anywhere, and rounds once to the output's format. Scales that
    are not the unit's own are applied in FP32 where their rule says, in any order, and c behind them.

    Parameters
    ----------
    engine : Engine or str
        The modelled unit: an engine, "arch:name", or a device ("h100": its instruction for the operands' types and scales).
    a, b : array_like, shapes (m, k) and (k, n)
        The operands of the test: numpy and ml_dtypes arrays, torch tensors on the CPU.
    c : array_like, shape (m, n), (n,), (1, n), (m, 1) or (), optional
        The addend before the epilogue: a matrix, or a bias that numpy broadcasts to it.
    out_format : str, optional
        Format of the kernel's result; the engine's by default, FP32 behind scales.
    splits : int
        Chains: slices of k, or restarts; with promote_every, or scales of blocks, parts of k with sums outside of their own,
        added in FP32.
    k_order : str, Order or sequence
        The order of k where it is known, as for :meth:`tensorcore_models.Engine.gemm`; "any": the unit's steps in any order. By
        default one chain over k, or `splits`, of kernels that may lose less than that: "sequential" says that it is one.
    promote_every : int or (least, most), optional
        Products after which the kernel adds its chain to a sum in FP32 outside and starts anew: multiples
        of the engine's k. With (least, most) any number between, with ``k_order="any"`` of any products.
    scale_a, scale_b : array_like, optional
        Scales of the operands, read by shape and type: :func:`tensorcore_models.read_scales`. Integer weights B (int4, int8,
        less their zero points) beside an A of 16 bits have scales in groups, (k / 64, n) or (k / 128, n), or for each column: a
        kernel may round the weights with them to A's type first, or apply them to sums.
    input_rounding : str, optional
        Rounding by which the kernel converts operands to the engine's format; the exact product is then that of the
        rounded operands.
    epilogue : str, (callable, float) or callable with `interval`, optional
        Function that the kernel applies to the sums in FP32 before the output's rounding: "relu", "silu",
        "gelu_tanh", "gelu_erf", "leaky_relu:SLOPE", "softcap:C", "swiglu" (silu of the first half of the columns,
        times the second), "residual" (adds `residual`), joined by "+" with residual last; a function of float64
        arrays with its Lipschitz constant; or an object that can be called and whose ``interval(low, high)`` gives
        bounds of its values.
    residual : array_like, shapes as of c, optional
        The matrix that is added after the epilogue.
    rows : int, optional
        Check only this many rows, evenly spread, including the first and the last; all by default.
    alpha, beta : float
        alpha A B + beta C is meant, the factors in FP32 and rounded separately or in one multiply-add; with beta = 0 C is not
        read. alpha goes without scales.

    Raises
    ------
    ValueError
        If values are not representable and `input_rounding` is None, shapes do not fit, scales fit no rule, or no bound is
        known for the engine; if parts of the order contradict each other or do not fit the engine's steps.
    TypeError
        If `splits` or `promote_every` is not an integer, or an option is unknown.
    """
    check_options(options)
    case = kernel_case(engine, a, b, c, out_format=out_format, **options)
    _ = case.bound  # refuses what has none
    return case


def check_options(options: Iterable[str], others: Iterable[str] = ()) -> None:
    """Refuse an option that none of :class:`KernelOptions` and `others` is. Raises TypeError that lists what is known."""
    known = [*KernelOptions.__annotations__, *others]
    if unknown := sorted(set(options) - set(known)):
        raise TypeError(f"unknown option {', '.join(unknown)}: known are {', '.join(known)}")


def kernel_case(
    engine: Engine | str, a, b, c=None, *, out_format=None, splits=1, k_order=None, promote_every=None, scale_a=None,
    scale_b=None, input_rounding=None, epilogue=None, residual=None, rows=None, alpha=1.0, beta=1.0,
) -> KernelCase:  # fmt: skip
    """Return a kernel's call as a test names it; parameters and errors of :func:`gemm_tolerance`, also for units without a
    bound."""
    arrays = [tcm.as_array(a, "a"), tcm.as_array(b, "b")]
    check_shapes(*arrays)
    m, k, n = arrays[0].shape[0], arrays[0].shape[1], arrays[1].shape[1]
    known = engine if isinstance(engine, Engine) else Multiplier(engine).engine
    dequantised = integer_weights(arrays, scale_b)
    if dequantised is not None and scale_a is None:
        scale_a = np.ones((m, len(np.atleast_1d(np.asarray(scale_b)))) if np.ndim(scale_b) == 2 else (1, 1), np.float32)
    ends = ends_of(alpha, beta, c, scale_a, scale_b)
    if ends is not None and scale_a is None:
        scale_a, scale_b = ends.alpha, 1.0
    scaling = read_scales(scale_a, scale_b, m, k, n, known)
    unit = kernel_engine(engine, arrays[0], arrays[1], scaling)
    order = kernel_order(unit, k, splits, k_order, promote_every, scaling)
    added = None if c is None else broadcast(tcm.as_array(c, "c"), m, n, "c")
    if ends is not None and ends.beta != 1 and added is not None:
        if not np.array_equal(added.astype(np.float32).astype(np.float64), added, equal_nan=True):
            raise ValueError(
                "C holds values that FP32 cannot represent, but beta C is formed in FP32; round them first"
            )
        added = ends.beta * added if ends.beta else None  # exact: 48 bits; with beta = 0 C is not read, be it NaN
    done = epilogue_of(epilogue, None if residual is None else tcm.as_array(residual, "residual"), m, n)
    if done is not None:
        done.columns(n)
    lines = sampled_rows(m, rows)
    if lines is not None:
        arrays[0] = arrays[0][lines]
        scaling = None if scaling is None else scaling.part(lines, np.arange(n))
        added = None if added is None else added[lines]
        done = None if done is None else done.part(lines, np.arange(n))
    if input_rounding is None and unit.formats[0].name == "tf32":
        check_tf32(arrays)
    x, y = (
        values_of_bits(operand_bits(x, fmt, input_rounding, name), fmt)
        for x, fmt, name in zip(arrays, unit.formats, "ab", strict=False)
    )
    result = get_format("fp32") if scaling is not None and scaling.roundings else unit.formats[3]
    out = result if out_format is None else get_format(out_format)
    given = arrays if unit.scale_format is None else [x, y]
    return KernelCase(
        unit, (x, y), (given[0], given[1]), scaling, added, out.name, order, done, lines, ends, dequantised
    )


def sampled_rows(m: int, rows: int | None) -> np.ndarray | None:
    """Return which rows are looked at, None for all: evenly spread. Raises ValueError, TypeError if `rows` is no number from
    1."""
    if rows is None:
        return None
    if isinstance(rows, bool) or not hasattr(rows, "__index__"):
        raise TypeError(f"rows is the number of rows to check, an integer, got {rows!r}")
    if rows < 1:
        raise ValueError(f"rows is {rows}, expected at least 1")
    return None if rows >= m else evenly(m, int(rows))


def _derivation(case: KernelCase) -> list[str]:
    """Return how the bound comes about."""
    step = bounds.step_error(case.engine, case.used.facts)
    lines = [f"{case.engine.label}: {case.order.in_words()}, steps of {step.terms} products"]
    lines += [f"each step: {text}" for text in step.derivation]
    if case.order.known and case.order.block is None:
        lines.append(
            "in this order each step adds what the sums of these operands allow, at most what their sizes allow"
        )
    if case.order.additions:
        lines.append(f"{case.order.additions} addition(s) outside")
    if case.scaling is not None:
        lines.append(f"scales: {case.scaling.in_words()}")
    if case.ends is not None:
        lines.append(f"alpha = {case.ends.alpha:g}, beta = {case.ends.beta:g}, in FP32")
    if case.epilogue is not None:
        lines.append(f"epilogue: {case.epilogue.name}, in FP32")
    if get_format(case.out_format) != case.engine.formats[3]:
        lines.append(f"rounded once to {case.out_format}")
    return lines
