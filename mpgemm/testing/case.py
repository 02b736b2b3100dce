"""This module defines one call of a kernel (operands, scales, order of k, epilogue, output format) and its allowed results."""

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
from mpgemm.bounds.populations import part_of
from mpgemm.exact.blocks import ExactBlocks, sums_are_exact
from mpgemm.exact.product import ExactResult
from mpgemm.frameworks.multiplier import Multiplier
from mpgemm.inputs.sizes import check_shapes
from mpgemm.recovery.methods import RecoveryMethod, list_methods
from mpgemm.testing.call import KernelEnds, check_tf32, ends_of, integer_weights, kernel_engine, sampled_rows
from mpgemm.testing.epilogues import KernelEpilogue, broadcast, epilogue_of
from mpgemm.testing.sampled import KernelStatistics, powerless, right_kernel, statistics_of
from mpgemm.testing.tolerance_result import Vacuity, check_tolerance
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import Scaling, read_scales
from tensorcore_models.formats import Format, IntegerFormat, get_format
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.orders.order import KOrder

#: Rows and columns on which the loss of a single product is tried.
TRIED = 64


@dataclass(frozen=True)
class KernelCase:
    """`KernelCase` is one call of a kernel in a test, with the results that the test allows.

    Properties that are costly are computed when they are first read.

    Attributes
    ----------
    engine : Engine
        Modelled unit.
    operands : (ndarray, ndarray)
        Values of A and B as the engine gets them.
    given : (ndarray, ndarray)
        Operands with their original types, before `input_rounding` and without scales.
    scaling : Scaling or None
        Scales of the operands, with the rule by which they apply.
    c : ndarray of float64, shape (m, n), or None
        Addend.
    out_format : str
        Format of the kernel's result.
    order : KernelOrder
        Allowed orders of k.
    epilogue : KernelEpilogue or None
        Function that is applied to the sums before they are rounded.
    lines : ndarray of int
        Indices of the rows that are checked, in the matrices of the test; None if all are checked.
    ends : KernelEnds or None
        The factors alpha and beta, which are already included in `scaling` and `c`.
    dequantised : Format or None
        Format to which the kernel may round scaled integer weights before it multiplies; None without integer weights.
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

    @property
    def label(self) -> str:
        """Return the label of the engine that computes the sums."""
        return self.engine.label

    @property
    def order_in_words(self) -> str:
        """Return the allowed orders of additions in words."""
        return self.order.in_words()

    @property
    def attributed(self) -> tuple[RecoveryMethod | str, Engine] | None:
        """Return the method and engine with which :func:`mpgemm.attribute` divides an element's error; None if it cannot."""
        name = self.engine.formats[0].name
        same = name == self.engine.formats[1].name and name in {m.name for m in list_methods()}
        return None if self.scaling is not None or not same or name.startswith("e") else (name, self.engine)

    # -- the exact result --------------------------------------------------------------------------------------------------
    @cached_property
    def used(self) -> Used:
        """Return the operands as the engine multiplies them."""
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
        """Return A and B in float64 as the kernel's memory holds them, without scales."""
        return self.used.stored

    @cached_property
    def exact(self) -> ExactResult:
        """Return the exact product of the engine's operands, with scales and C, before an epilogue."""
        factors, block = self._factors_of_exact_blocks(), None if self.scaling is None else self.scaling.block
        if factors is not None and block is not None:
            return ExactBlocks(self.used.x, self.used.y, factors, block, self.c)
        return ExactResult(self.a, self.b, self.c, shared=True)

    def _factors_of_exact_blocks(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the factors (m, blocks) and (blocks, n) of blocks whose sums FP64 holds exactly, or None."""
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
        """Return the exact sums, rounded to float64."""
        return np.asarray(self.exact.rounded("fp64"))

    @cached_property
    def result(self) -> np.ndarray:
        """Return the exact result in float64: the sums, or the epilogue of the sums."""
        return self.values if self.epilogue is None else self.epilogue.apply(self.values)

    def error_of(self, out: np.ndarray) -> np.ndarray:
        """Return the error of every element, out - exact."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.epilogue is None:
                return self.exact.error_of(out)
            return out.astype(np.float64) - self.result

    # -- the allowed errors ------------------------------------------------------------------------------------------------
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
            self.engine, self.used, self.c, self.scaling, self.order, out, self.values,
            c_roundings=roundings, dequantised=self.dequantised,
        )  # fmt: skip

    def _behind(self, bound: np.ndarray, finite: bool) -> np.ndarray:
        """Return the bound of the results, from that of the sums, after the epilogue and the output's rounding."""
        assert self.epilogue is not None
        known = np.isfinite(bound)
        with np.errstate(over="ignore", invalid="ignore"):
            total = self.epilogue.bound(self.values, np.where(known, bound, 0.0)) * bounds.MARGIN
            total = total + 2.0**-50 * np.abs(self.result)  # the epilogue's functions, in FP64
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
        """Return the largest error of the epilogue itself; 0 without one."""
        return 0.0 if self.epilogue is None else self.epilogue.bound(self.values, np.zeros(self.values.shape))

    @property
    def _sums_format(self) -> Format | IntegerFormat:
        """Return the format of the sums before an epilogue."""
        return get_format("fp32") if self.scaling is not None and self.scaling.roundings else self.engine.formats[3]

    @property
    def bound(self) -> np.ndarray:
        """Return the certified bound of |out - exact| (:func:`gemm_tolerance`); it is infinite if a sum may overflow."""
        return self._bounds[0]

    @property
    def finite_bound(self) -> np.ndarray:
        """Return the bound for results that are known to be finite, so that no sum overflowed."""
        return self._bounds[1]

    @property
    def overflow_from(self) -> float:
        """Return the magnitude from which a sum may overflow to infinity."""
        return bounds.overflow_from(self.engine)

    @cached_property
    def vacuity(self) -> Vacuity:
        """Return the faults that the bound lets pass: zeros everywhere, products lost in the first rows and columns."""
        values, bound = np.abs(self.result), self.finite_bound
        shown = (slice(TRIED), slice(TRIED))
        c = None if self.c is None else self.c[shown]
        limit = bound if self.epilogue is None else self._sum_bound
        rows, columns = (np.arange(min(size, TRIED)) for size in self.values.shape)
        part = self.part(rows, columns)
        used = used_operands(self.engine, part.a, part.b, part.scaling)
        found = check_tolerance(used.a, used.b, c, bound=limit[shown])
        share = found.lost_product_passes / found.elements if found.elements else 0.0
        # if the exact result is infinite or NaN, zeros are of another kind
        passes = int(np.count_nonzero(np.isfinite(values) & (values <= bound)))
        return replace(found, elements=values.size, zero_passes=passes, lost_product_passes=round(share * values.size))

    @cached_property
    def _sum_bound(self) -> np.ndarray:
        """Return an estimate of the sums' bound before the epilogue: the bound over the epilogue's slope, at most 1."""
        return self._bound_of(get_format(self.out_format)).bound(True)

    @property
    def derivation(self) -> str:
        """Return a sentence on the derivation of the bound."""
        return "\n".join(_derivation(self))

    @cached_property
    def statistics(self) -> KernelStatistics | None:
        """Return the statistical bound of right kernels; None if the certified bound detects enough dropped blocks of k."""
        floating = isinstance(get_format(self.engine.d_format), Format)
        known = floating and self.bound.size and self.epilogue is None
        return statistics_of(self) if known and powerless(self.vacuity) else None

    @property
    def splits(self) -> int:
        """Return the largest number of chains into which a kernel may divide k at unknown places.

        The number is 1 if the order of k is known.
        """
        return self.order.splits if self.order.k_order != ANY else self.order.additions + 1

    @property
    def promote_every(self) -> int | None:
        """Return the number of products after which a chain is added to an FP32 sum outside the unit.

        If several numbers are allowed, the largest is returned; None if nothing is added outside.
        """
        return None if self.order.promote_every is None else self.order.promote_every[1]

    @property
    def atol(self) -> float:
        """Return the largest of the elements' bounds, for tests with one absolute tolerance."""
        return float(self.bound.max(initial=0.0))

    @cached_property
    def bound_of_every_order(self) -> np.ndarray:
        """Return the certified bound of the sums for every order of the chains' steps; infinite if the sum is not finite."""
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

    # -- results of right kernels ------------------------------------------------------------------------------------------
    def part(self, rows: np.ndarray, columns: np.ndarray) -> Data:
        """Return the operands of these rows and columns: A and B as the engine gets them, without scales, C, and the scales."""
        return part_of(Data(*self.operands, self.c, self.scaling), rows, columns)

    def model(self, rows: np.ndarray, columns: np.ndarray, **more: Any) -> list[np.ndarray]:
        """Return the model's sums in float64, with c, before an epilogue and the rounding to the output's format.

        If the order of k is unknown, the unit's own order is taken. If several intervals of promotion are allowed, the largest
        is taken. `more` holds options of :func:`mpgemm.bounds.kernel_model.model_results`.
        """
        options: dict[str, Any] = {"promote_every": self.promote_every, **more}
        if self.order.k_order != ANY:
            options["k_order"] = self.order.k_order
        return model_results(self.engine, *self.part(rows, columns), options)

    def right_kernel(self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the sums of a right kernel of a random order on some rows and columns."""
        return right_kernel(self, rows, columns, rng)

    def sums_columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns of the sums from which the epilogue computes the given columns of the result.

        An epilogue such as swiglu combines two columns of sums into each column of the result.
        """
        pairs = self.epilogue is not None and self.epilogue.pairs
        return np.concatenate([columns, columns + self.operands[1].shape[1] // 2]) if pairs else columns

    def finished(self, sums: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the epilogue's values for some rows and columns of the result, before they are rounded to the output's format.

        `sums` holds these rows, and the columns that :meth:`sums_columns` returns.
        """
        return sums if self.epilogue is None else self.epilogue.part(rows, columns).apply(sums)

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Return values rounded to the output's format."""
        fmt = get_format(self.out_format)
        return round_to(values.astype(np.float64), fmt, saturate=False) if isinstance(fmt, Format) else values

    def __str__(self) -> str:
        return f"{self.derivation}\nlargest bound {self.atol:.4g}\n{self.vacuity}"


class KernelOptions(TypedDict, total=False):
    """`KernelOptions` holds a test's statements on a kernel beside its operands, the parameters of :func:`gemm_tolerance`."""

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

    The tolerance holds for kernels that compute as follows. They chain the engine's steps over k in order, in at most `splits`
    chains. They add the results of the chains in any order, in the engine's result format. They add c anywhere, and round once
    to the output's format. Scales that the unit does not apply itself are applied in FP32, in any order, at the place that
    :func:`tensorcore_models.read_scales` states for them; then c is added after them.

    Parameters
    ----------
    engine : Engine or str
        Modelled unit: an engine, "arch:name", or a device such as "h100", which stands for its instruction for the operands'
        types and scales.
    a, b : array_like, shapes (m, k) and (k, n)
        Operands of the test: arrays of numpy or ml_dtypes types, or torch tensors on the CPU.
    c : array_like, shape (m, n), (n,), (1, n), (m, 1) or (), optional
        Addend before the epilogue: a matrix, or a bias that numpy broadcasts to it.
    out_format : str, optional
        Format of the kernel's result; by default the engine's result format, or FP32 with scales that are applied outside the
        unit.
    splits : int
        Largest number of chains into which the kernel divides k. With `promote_every` or block scales, largest number of
        parts of k, each with its own FP32 sum outside the unit; these sums are added in FP32.
    k_order : str, Order or sequence
        Order of k if it is known, as for :meth:`tensorcore_models.Engine.gemm`. "sequential" states that the kernel runs
        exactly one chain; "any" allows the unit's steps in any order. By default the tolerance is that of `splits` chains,
        and errors that are smaller than those of such chains pass, too.
    promote_every : int or (least, most), optional
        Number of products, a multiple of the engine's k, after which the kernel adds its chain to an FP32 sum outside the
        unit and starts a new chain. (least, most) allows any number from least to most. With ``k_order="any"`` a chain may
        consist of any products.
    scale_a, scale_b : array_like, optional
        Scales of the operands, recognised by shape and type (:func:`tensorcore_models.read_scales`). If B holds integer
        weights (int4 or int8, zero points already subtracted) and A has 16 bits, B has a scale for each column, or for
        groups along k: (k / 64, n) or (k / 128, n). A kernel may multiply these scales into the weights and round to A's
        type, or apply them to sums.
    input_rounding : str, optional
        Rounding by which the kernel converts operands to the engine's format; the exact product is then that of the
        rounded operands.
    epilogue : str, (callable, float) or callable with `interval`, optional
        Function that the kernel applies to the sums in FP32 before the output's rounding: "relu", "silu",
        "gelu_tanh", "gelu_erf", "leaky_relu:SLOPE", "softcap:C", "swiglu" (silu of the first half of the columns,
        times the second half), or "residual" (adds `residual`). Several names are joined by "+", with "residual" last. A
        function of your own is given with its Lipschitz constant, or as an object that can be called and whose
        ``interval(low, high)`` gives bounds of its values.
    residual : array_like, shapes as of c, optional
        Matrix that is added after the epilogue.
    rows : int, optional
        Check only this many rows, evenly spread, including the first and the last; all by default.
    alpha, beta : float
        Factors of alpha A B + beta C in FP32, whose terms are rounded separately or in one multiply-add. With beta = 0, C is
        not read. alpha cannot be combined with scales.

    Raises
    ------
    ValueError
        If the engine cannot represent a value and `input_rounding` is None, shapes do not fit, scales fit no rule, no bound
        is known for the engine, or `splits`, `k_order` and `promote_every` contradict each other or the engine's steps.
    TypeError
        If `splits` or `promote_every` is not an integer, or an option is unknown.
    """
    check_options(options)
    case = kernel_case(engine, a, b, c, out_format=out_format, **options)
    _ = case.bound  # refuses an engine without a bound
    return case


def check_options(options: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raise TypeError, with the known options, for an option that neither :class:`KernelOptions` nor `others` has."""
    known = [*KernelOptions.__annotations__, *others]
    if unknown := sorted(set(options) - set(known)):
        raise TypeError(f"unknown option {', '.join(unknown)}: use one of {', '.join(known)}")


def kernel_case(
    engine: Engine | str, a, b, c=None, *, out_format=None, splits=1, k_order=None, promote_every=None, scale_a=None,
    scale_b=None, input_rounding=None, epilogue=None, residual=None, rows=None, alpha=1.0, beta=1.0,
) -> KernelCase:  # fmt: skip
    """Return the kernel's call that a test describes, also for units without a bound.

    Parameters and errors are those of :func:`gemm_tolerance`.
    """
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
            raise ValueError("C holds values that FP32 cannot represent, but beta C is formed in FP32: round C first")
        # The product is exact in 48 bits; with beta = 0 C is not read, even if it is NaN.
        added = ends.beta * added if ends.beta else None
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


def _derivation(case: KernelCase) -> list[str]:
    """Return the derivation of the bound, in lines."""
    step = bounds.step_error(case.engine, case.used.facts)
    lines = [f"{case.engine.label}: {case.order.in_words()}, steps of {step.terms} products"]
    lines += [f"each step: {text}" for text in step.derivation]
    if case.order.known and case.order.block is None:
        lines.append(
            "in this order the error of each step follows from the sums of these operands, at most from their sizes"
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
