"""The tolerance of one kernel's result: an engine's certified bound, the output's rounding, and whether it could fail."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.operand_facts import OperandFacts, apply_scales, facts_of, scaled_values
from mpgemm.bounds.tolerance_result import Tolerance
from mpgemm.bounds.tolerances import tolerance
from mpgemm.bounds.vacuity import Vacuity, check_tolerance
from mpgemm.exact.product import ExactResult, exact_gemm
from mpgemm.integrations.multiplier import Multiplier
from tensorcore_models.engines.engine import Engine
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
        The exact product of the operands as the engine takes them.
    a, b, c : ndarray of float64
        These operands, block scales multiplied in.
    operands : (ndarray, ndarray, ndarray or None, ndarray or None)
        What the engine is given: values of A and B, and block scales.
    given : (ndarray, ndarray)
        The operands before `input_rounding`, without block scales.
    out_format : str
        Of the kernel's result.
    splits : int
        Chains that are added up.
    promote_every : int or None
        Products after which a chain is added to an FP32 sum outside and starts anew.
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
    operands: tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]
    given: tuple[np.ndarray, np.ndarray]
    out_format: str
    splits: int
    promote_every: int | None
    overflow_from: float
    derivation: str
    vacuity: Vacuity

    @property
    def atol(self) -> float:
        """The largest bound: an absolute tolerance for checks that take one number."""
        return float(self.bound.max(initial=0.0))

    def __str__(self) -> str:
        return f"{self.derivation}\nlargest bound {self.atol:.4g}\n{self.vacuity}"


def kernel_engine(engine: Engine | str, a: np.ndarray, b: np.ndarray) -> Engine:
    """The engine meant by a name, for operands of these types.

    Parameters
    ----------
    engine : Engine or str
        As for :class:`mpgemm.integrations.multiplier.Multiplier`.
    a, b : ndarray

    Raises
    ------
    ValueError, TypeError
        If there is none.
    """
    target = Multiplier(engine)
    if target.engine is not None:
        return target.engine
    formats = [tcm.format_of_dtype(x.dtype) for x in (a, b)]
    if None in formats:
        raise TypeError(
            f"a is {a.dtype} and b is {b.dtype}: no formats of a matrix unit; convert them, or name an instruction 'arch:name'"
        )
    return target.engine_for(*(fmt.name for fmt in formats if fmt is not None))


def gemm_tolerance(
    engine: Engine | str,
    a,
    b,
    c=None,
    *,
    out_format: str | None = None,
    splits: int = 1,
    promote_every: int | None = None,
    scale_a=None,
    scale_b=None,
    input_rounding: str | None = None,
) -> KernelTolerance:
    """The tolerance that a test of a kernel on an engine may use for these operands.

    It holds for a kernel that chains the engine's steps over k in order, in at most `splits` chains whose results are added in
    any order in the format of the engine's results, adds c anywhere, and rounds once to the output's format.

    Parameters
    ----------
    engine : Engine or str
        The modelled unit: an engine, "arch:name", or a device ("h100": its instruction for the operands' types).
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        The operands of the test: numpy and ml_dtypes arrays, torch tensors on the CPU.
    out_format : str, optional
        Format of the kernel's result; the engine's by default.
    splits : int
        Chains: slices of k, or restarts.
    promote_every : int, optional
        Products after which the kernel adds its chain to a sum in FP32 outside and starts anew, instead of `splits`: a
        multiple of the engine's k, as for :meth:`tensorcore_models.Engine.gemm`.
    scale_a, scale_b : array_like, optional
        Block scales, for an engine with scales.
    input_rounding : str, optional
        How the kernel rounds operands that the engine lacks; the exact product is then that of the rounded operands.

    Returns
    -------
    KernelTolerance

    Raises
    ------
    ValueError
        If values are not representable and `input_rounding` is None, shapes do not fit, or no bound is known for the engine; if
        sums outside come with `splits`, are not of whole steps, or the engine does not give FP32.
    TypeError
        If `splits` or `promote_every` is not an integer.
    """
    arrays = [tcm.as_array(a, "a"), tcm.as_array(b, "b")]
    unit = kernel_engine(engine, *arrays)
    if isinstance(splits, bool) or not hasattr(splits, "__index__"):
        raise TypeError(f"splits is the number of chains, an integer, got {splits!r}")
    if splits < 1:
        raise ValueError(f"splits is {splits}, expected at least 1")
    _check_promotion(unit, splits, promote_every)
    x, y = (
        values_of_bits(operand_bits(x, fmt, input_rounding, name), fmt)
        for x, fmt, name in zip(arrays, unit.formats, "ab", strict=False)
    )
    x, y, scales_a, scales_b = scaled_values(unit, x, y, scale_a, scale_b)
    added = None if c is None else np.asarray(tcm.as_array(c, "c")).astype(np.float64)
    found: Tolerance = tolerance(unit, x.shape[1])
    facts = facts_of(unit, x, y, scales_a, scales_b)
    step = bounds.step_error(unit, facts)
    steps = bounds.steps_of(unit, x.shape[1], step.terms) + (splits - 1) * bounds.steps_of(unit, unit.k, step.terms)
    operands = x, y, scale_a, scale_b
    x, y = apply_scales(unit, x, y, scales_a, scales_b)
    exact, out = exact_gemm(x, y, added), get_format(out_format) if out_format is not None else unit.formats[3]
    additions = splits - 1 + (added is not None)
    chains = _Chains(unit, steps, additions, facts, out, x.shape[1], promote_every)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(x) @ np.abs(y) + (0.0 if added is None else np.abs(added))
        bound, finite_bound = (chains.bound(sizes, exact, finite) for finite in (False, True))
    if promote_every is not None:
        found_text = f"{unit.label}: chains of {promote_every} products, each added to a sum in FP32 outside\n"
        found_text += "\n".join(f"each step: {text}" for text in step.derivation)
    else:
        found_text = found.derivation
    lines = [found_text, *([f"{chains.additions} addition(s) outside"] if chains.additions else [])]
    if out != unit.formats[3]:
        lines.append(f"rounded once to {out.name}")
    given = (arrays[0].astype(np.float64), arrays[1].astype(np.float64)) if unit.scale_format is None else (x, y)
    return KernelTolerance(
        unit, bound, finite_bound, exact, x, y, added, operands, given, out.name, splits, promote_every,
        bounds.overflow_from(unit), "\n".join(lines), _vacuity(x, y, added, exact, finite_bound),
    )  # fmt: skip


def _check_promotion(unit: Engine, splits: int, every: int | None) -> None:
    if every is None:
        return
    if isinstance(every, bool) or not hasattr(every, "__index__"):
        raise TypeError(f"promote_every is a number of products, an integer, got {every!r}")
    if splits != 1:
        raise ValueError("promote_every has chains of its own: leave splits out")
    if every < 1 or every % unit.k:
        raise ValueError(f"promote_every is {every}, expected a multiple of the {unit.k} products of {unit.label}")
    if unit.formats[3] != get_format("fp32"):
        raise ValueError(f"{unit.label} gives {unit.formats[3].name}: sums outside are those of FP32 results")


class _Chains(NamedTuple):
    """How a kernel adds: steps of the engine in all, additions outside, one rounding to the output's format."""

    unit: Engine
    steps: int
    additions: int
    facts: OperandFacts | None
    out: Format | IntegerFormat
    k: int
    every: int | None

    def bound(self, sizes: np.ndarray, exact: ExactResult, finite: bool) -> np.ndarray:
        """Of each element; `finite` where nothing is known to have overflowed."""
        known, result = np.isfinite(sizes), self.unit.formats[3]
        bounded = np.where(known, sizes, 0.0)
        if self.every is None:
            bound = bounds.accumulation_bound(self.unit, bounded, self.steps, self.facts, finite=finite)
        else:
            bound = bounds.promoted_bound(self.unit, bounded, self.k, self.every, self.facts, finite=finite)
        if self.additions and isinstance(result, Format):
            bound = bound + bounds.growth(result.unit_roundoff, self.additions) * (sizes + bound) * bounds.MARGIN
        if self.out != result and isinstance(self.out, Format):
            reach = np.abs(exact.rounded("fp64")) + bound
            rounded = bound + self.out.unit_roundoff * reach * bounds.MARGIN + self.out.min_subnormal / 2
            fits = reach * (1 + self.out.unit_roundoff) < self.out.max_finite
            bound = np.where(fits | finite, rounded, np.inf)
        return np.where(known, bound, np.inf)


def _vacuity(a, b, c, exact: ExactResult, bound: np.ndarray) -> Vacuity:
    """Zeros on all elements; the loss of a product on the first rows and columns, as a share of all."""
    values = np.abs(exact.rounded("fp64"))
    part = check_tolerance(
        a[:TRIED], b[:, :TRIED], None if c is None else c[:TRIED, :TRIED], bound=bound[:TRIED, :TRIED]
    )
    share = part.lost_product_passes / part.elements if part.elements else 0.0
    passes = int(np.count_nonzero(~(values > bound)))
    return replace(part, elements=values.size, zero_passes=passes, lost_product_passes=round(share * values.size))
