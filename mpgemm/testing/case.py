"""The tolerance of one kernel's result: a certified bound with scales and the output's rounding, and whether it could fail."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.bounded_product import Data
from mpgemm.bounds.kernel_bound import KernelBound, used_operands
from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.kernel_order import ANY, KernelOrder, kernel_order
from mpgemm.bounds.populations import part_of
from mpgemm.exact.product import ExactResult, exact_gemm
from mpgemm.frameworks.multiplier import Multiplier
from mpgemm.inputs.sizes import check_shapes
from mpgemm.recovery.engines import scaled_engine
from mpgemm.testing.kernel_line import KernelStatistics, powerless, statistics_of
from mpgemm.testing.vacuity import Vacuity, check_tolerance
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.order import KOrder
from tensorcore_models.engines.scaling import Scaling, read_scales
from tensorcore_models.formats import Format, IntegerFormat, get_format
from tensorcore_models.formats.operands import operand_bits, values_of_bits

#: Rows and columns on which the loss of one product is tried out.
TRIED = 64


@dataclass(frozen=True)
class KernelTolerance:
    """What a kernel may return for given operands.

    Attributes
    ----------
    engine : Engine
    bound : ndarray of float64, shape (m, n)
        Certified: |out - exact| of a kernel that does what :func:`gemm_tolerance` says; infinite where a sum or the rounding to
        the output's format may overflow.
    finite_bound : ndarray of float64, shape (m, n)
        The same where the result is known to be finite, so that nothing overflowed.
    exact : ExactResult
        The exact product of the operands as the engine takes them, with their scales.
    a, b, c : ndarray of float64
        These operands, all scales multiplied in.
    operands : (ndarray, ndarray)
        What the engine is given: values of A and B.
    scaling : Scaling or None
        Their scales as they were read.
    given : (ndarray, ndarray)
        The operands before `input_rounding`, without scales.
    out_format : str
        Of the kernel's result.
    order : KernelOrder
        The orders of k that are allowed.
    overflow_from : float
        The size of a sum from which it may be infinite.
    derivation : str
        How the bound comes about.
    vacuity : Vacuity
        What the bound would let pass.
    """

    engine: Engine
    bound: np.ndarray
    finite_bound: np.ndarray
    exact: ExactResult
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    operands: tuple[np.ndarray, np.ndarray]
    scaling: Scaling | None
    given: tuple[np.ndarray, np.ndarray]
    out_format: str
    order: KernelOrder
    overflow_from: float
    derivation: str
    vacuity: Vacuity

    @property
    def splits(self) -> int:
        """Chains at most that are added up and of which nothing else is known; 1 where all are."""
        return self.order.splits if self.order.k_order != ANY else self.order.additions + 1

    @property
    def promote_every(self) -> int | None:
        """Products after which a chain is added outside; the largest where several are allowed."""
        return None if self.order.promote_every is None else self.order.promote_every[1]

    @property
    def atol(self) -> float:
        """The largest bound: an absolute tolerance for checks that take one number."""
        return float(self.bound.max(initial=0.0))

    @cached_property
    def values(self) -> np.ndarray:
        """The exact result, rounded to float64."""
        return np.asarray(self.exact.rounded("fp64"))

    @cached_property
    def statistics(self) -> KernelStatistics | None:
        """The line of right kernels, where the certified bound sees too few dropped blocks of k; None where it sees them."""
        floating = isinstance(get_format(self.engine.d_format), Format)
        return statistics_of(self) if floating and self.bound.size and powerless(self.vacuity) else None

    def part(self, rows: np.ndarray, columns: np.ndarray) -> Data:
        """These rows and columns as the unit is given them."""
        return part_of(Data(*self.operands, self.c, self.scaling), rows, columns)

    def model(self, rows: np.ndarray, columns: np.ndarray) -> list[np.ndarray]:
        """The model's results before they are rounded to the output's format, c added before or behind; float64.

        Where the order is not known it is the unit's own over k, promoted at the largest interval.
        """
        options: dict[str, Any] = {"promote_every": self.promote_every}
        if self.order.k_order != ANY:
            options["k_order"] = self.order.k_order
        return model_results(self.engine, *self.part(rows, columns), options)

    def __str__(self) -> str:
        return f"{self.derivation}\nlargest bound {self.atol:.4g}\n{self.vacuity}"


def kernel_engine(engine: Engine | str, a: np.ndarray, b: np.ndarray, scaling: Scaling | None = None) -> Engine:
    """The engine meant by a name, for operands of these types; with block scales where a unit multiplies them in."""
    target = Multiplier(engine)
    if target.engine is not None:
        return target.engine
    formats = [INTEGERS.get(x.dtype.name) or tcm.format_of_dtype(x.dtype) for x in (a, b)]
    if None in formats:
        raise TypeError(
            f"a is {a.dtype} and b is {b.dtype}: no formats of a matrix unit; convert them, or name an instruction 'arch:name'"
        )
    names = [fmt.name for fmt in formats if fmt is not None]
    if scaling is not None and scaling.applied == "product":
        rule = scaling.rule_a
        return scaled_engine(target.device, names[0], names[1], rule.format, rule.along or 1, target.path)
    return target.engine_for(*names, *(["s32"] if isinstance(formats[0], IntegerFormat) else []))


#: Formats of integer operands by their types.
INTEGERS = {name: get_format(fmt) for name, fmt in {"int8": "s8", "uint8": "u8", "int4": "s4", "uint4": "u4"}.items()}


def gemm_tolerance(
    engine: Engine | str,
    a,
    b,
    c=None,
    *,
    out_format: str | None = None,
    splits: int = 1,
    k_order: KOrder | None = None,
    promote_every: int | tuple[int, int] | None = None,
    scale_a=None,
    scale_b=None,
    input_rounding: str | None = None,
) -> KernelTolerance:
    """The tolerance that a test of a kernel on an engine may use for these operands.

    It holds for a kernel that chains the engine's steps over k in order, in at most `splits` chains whose results are added in
    any order in the format of the engine's results, adds c anywhere, and rounds once to the output's format. Scales that
    are not the unit's own are applied in FP32 where their rule says, in any order, and c behind them.

    Parameters
    ----------
    engine : Engine or str
        The modelled unit: an engine, "arch:name", or a device ("h100": its instruction for the operands' types and scales).
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        The operands of the test: numpy and ml_dtypes arrays, torch tensors on the CPU.
    out_format : str, optional
        Format of the kernel's result; the engine's by default, FP32 behind scales.
    splits : int
        Chains: slices of k, or restarts.
    k_order : str, Order or sequence
        The order of k where it is known, as for :meth:`tensorcore_models.Engine.gemm`; "any": the unit's steps in any order. By
        default one chain over k, or `splits`, of kernels that may lose less than that: "sequential" says that it is one.
    promote_every : int or (least, most), optional
        Products after which the kernel adds its chain to a sum in FP32 outside and starts anew, instead of `splits`: multiples
        of the engine's k. With (least, most) any number between, with ``k_order="any"`` of any products.
    scale_a, scale_b : array_like, optional
        Scales of the operands, read by shape and type: :func:`tensorcore_models.read_scales`.
    input_rounding : str, optional
        How the kernel rounds operands that the engine lacks; the exact product is then that of the rounded operands.

    Raises
    ------
    ValueError
        If values are not representable and `input_rounding` is None, shapes do not fit, scales fit no rule, or no bound is
        known for the engine; if parts of the order contradict each other or do not fit the engine's steps.
    TypeError
        If `splits` or `promote_every` is not an integer.
    """
    arrays = [tcm.as_array(a, "a"), tcm.as_array(b, "b")]
    check_shapes(*arrays)
    sizes = arrays[0].shape[0], arrays[0].shape[1], arrays[1].shape[1]
    known = engine if isinstance(engine, Engine) else Multiplier(engine).engine
    scaling = read_scales(scale_a, scale_b, *sizes, known)
    unit = kernel_engine(engine, arrays[0], arrays[1], scaling)
    order = kernel_order(unit, sizes[1], splits, k_order, promote_every, scaling)
    x, y = (
        values_of_bits(operand_bits(x, fmt, input_rounding, name), fmt)
        for x, fmt, name in zip(arrays, unit.formats, "ab", strict=False)
    )
    added = None if c is None else np.asarray(tcm.as_array(c, "c")).astype(np.float64)
    used = used_operands(unit, x, y, scaling)
    exact = exact_gemm(used.a, used.b, added)
    result = get_format("fp32") if scaling is not None and scaling.roundings else unit.formats[3]
    out = result if out_format is None else get_format(out_format)
    case = KernelBound(unit, used, added, scaling, order, out, np.asarray(exact.rounded("fp64")))
    bound, finite_bound = case.bound(False), case.bound(True)
    given = (
        (arrays[0].astype(np.float64), arrays[1].astype(np.float64)) if unit.scale_format is None else (used.x, used.y)
    )
    return KernelTolerance(
        unit, bound, finite_bound, exact, used.a, used.b, added, (x, y), scaling, given, out.name, order,
        bounds.overflow_from(unit), "\n".join(_derivation(case)), _vacuity(used.a, used.b, added, exact, finite_bound),
    )  # fmt: skip


def _derivation(case: KernelBound) -> list[str]:
    """How the bound comes about."""
    step = bounds.step_error(case.unit, case.used.facts)
    lines = [f"{case.unit.label}: {case.order.in_words()}, steps of {step.terms} products"]
    lines += [f"each step: {text}" for text in step.derivation]
    if case.order.known and case.order.block is None:
        lines.append(
            "in this order each step adds what the sums of these operands allow, at most what their sizes allow"
        )
    if case.order.additions:
        lines.append(f"{case.order.additions} addition(s) outside")
    if case.scaling is not None:
        lines.append(f"scales: {case.scaling.in_words()}")
    if case.out != case.unit.formats[3]:
        lines.append(f"rounded once to {case.out.name}")
    return lines


def _vacuity(a, b, c, exact: ExactResult, bound: np.ndarray) -> Vacuity:
    """Zeros on all elements; the loss of a product on the first rows and columns, as a share of all."""
    values = np.abs(exact.rounded("fp64"))
    part = check_tolerance(
        a[:TRIED], b[:, :TRIED], None if c is None else c[:TRIED, :TRIED], bound=bound[:TRIED, :TRIED]
    )
    share = part.lost_product_passes / part.elements if part.elements else 0.0
    passes = int(np.count_nonzero(~(values > bound)))
    return replace(part, elements=values.size, zero_passes=passes, lost_product_passes=round(share * values.size))
