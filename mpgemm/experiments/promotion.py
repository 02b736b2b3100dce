"""Measures error, certified bound and cost of promotion, which adds a chain to an FP32 sum outside of the core at intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.bounded_product import Data, EngineProduct, Measured
from mpgemm.bounds.kernel_order import check_sums_outside
from mpgemm.bounds.populations import corner
from mpgemm.bounds.watching import JudgedProduct, hold
from mpgemm.recovery.engines import ieee_engine, plain_engine
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format
from tensorcore_models.formats.rounding import source_array
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

INTERVALS = tuple(2**e for e in range(4, 13))
#: Largest number of rows of A and columns of B that are computed.
SIDE = 64
#: Promotion matters if the whole error without additions outside is more than this factor above the smallest whole error.
MATTERS = 1.1


#: Value of `wanted_by` for an error that the caller gives.
WANTED = "the error wanted"


@dataclass(frozen=True)
class Interval:
    """`Interval` holds the error, bound and cost of one interval of promotion."""

    every: int | None  #: Number of products between two additions outside; None for no additions outside.
    additions: float  #: Extra FP32 additions for each product.
    #: error, bound: relative Frobenius error against the exact product of the rounded operands, and its certified bound.
    error: float
    bound: float
    #: Relative Frobenius error against the exact product of the given operands, from their rounding and the sums together.
    whole: float

    @property
    def bits(self) -> float:
        """Return the accuracy in bits, -log2 of the error."""
        return math.inf if self.error == 0 else -math.log2(self.error)


@dataclass(frozen=True, repr=False)
class PromotionAdvice(Result):
    """`PromotionAdvice` holds the error, bound and cost of a product with each interval of promotion, and the best interval.

    Promotion adds the unit's partial sum to an FP32 sum outside the unit; the interval is the number of products between two
    such additions. Errors are relative, in the Frobenius norm.

    Attributes
    ----------
    engine : str
        Label of the engine.
    shape : (m, k, n)
        Shape of the product that was computed.
    intervals : tuple of Interval
        Results for each interval, the shortest first; the last is the result without promotion.
    wanted : float
        Largest accepted error of the sums, against the exact product of the rounded operands.
    wanted_by : str
        Source of the limit `wanted`.
    measured : Interval or None
        The longest interval whose measured error is at most `wanted`; None if there is none.
    certain : Interval or None
        The longest interval whose certified bound is at most `wanted`; None if there is none.
    fp32 : float
        Error of a chain of FP32 fused multiply-adds on the same rounded operands.
    operands : float
        Error from rounding the operands to the engine's format, which no interval reduces.
    scaled : (int, int)
        Exponents of the powers of two by which A and B were multiplied first, to fill the range of a narrow format.
    """

    engine: str
    shape: tuple[int, int, int]
    intervals: tuple[Interval, ...]
    wanted: float
    wanted_by: str
    measured: Interval | None
    certain: Interval | None
    fp32: float
    operands: float
    scaled: tuple[int, int]

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {**asdict(self), "intervals": self.to_rows()}

    def to_rows(self) -> list[dict]:
        """Return one row for each interval."""
        return [{**asdict(interval), "bits": interval.bits} for interval in self.intervals]

    def sentences(self) -> list[str]:
        """Return sentences on the product, the recommendation, and the errors that promotion does not affect."""
        return [f"{self.engine}, {' x '.join(map(str, self.shape))}", self.verdict, self.beside]

    @property
    def verdict(self) -> str:
        """Return the recommendation in a sentence."""
        best = min(self.intervals, key=lambda i: i.error)
        if not self.matters:
            least = min(interval.whole for interval in self.intervals)
            return (
                "Promotion does not matter here: the whole error, rounding the operands to the engine's format included, is "
                f"{self.intervals[-1].whole:.3g} without additions outside, and at best {least:.3g} with them."
            )
        if self.measured is None:
            return (
                f"No interval reaches {self.wanted:.3g} ({self.wanted_by}): the smallest error is {best.error:.3g}, "
                f"{spelled(best.every)}."
            )
        text = f"Add up outside {spelled(self.measured.every)}: {self.measured.error:.3g} on these data, "
        text += f"within {self.wanted:.3g} ({self.wanted_by}), for {self.measured.additions:.2%} extra additions."
        if self.measured.every is None:
            text = f"Nothing needs to be added up outside: the error {self.measured.error:.3g} is within {self.wanted:.3g} "
            text += f"({self.wanted_by})."
        if self.certain is None:
            return f"{text} No interval is certified to reach it."
        return f"{text} Certified to reach it: {spelled(self.certain.every)}."

    @property
    def matters(self) -> bool:
        """Return whether promotion is worth considering; always True if the caller gave `wanted`.

        It is if the error of the product without promotion, with the rounding of the operands, is more than 1.1 times the
        smallest such error of an interval.
        """
        least = min(interval.whole for interval in self.intervals)
        return self.wanted_by == WANTED or math.isinf(least) or self.intervals[-1].whole > MATTERS * least

    @property
    def beside(self) -> str:
        """Return a sentence on the errors of an FP32 chain and of rounding the operands, for comparison."""
        text = f"Beside it, on the same operands: FP32 chain {self.fp32:.3g}; rounding the operands to the engine's format "
        text += f"alone {self.operands:.3g}, which no interval cures."
        never = self.intervals[-1].error
        if 0 < 3 * never < self.operands:
            text += f" That is {self.operands / never:.3g} times the error of the sums without any additions outside."
        return text

    def __str__(self) -> str:
        lines = [f"{self.engine}, {' x '.join(map(str, self.shape))}"]
        lines += [
            f"  {spelled(i.every):20}  {i.additions:8.3%} additions  error {i.error:.3e}  bound {i.bound:.3e}  "
            f"whole {i.whole:.3e}"
            for i in self.intervals
        ]
        return "\n".join([*lines, self.verdict, self.beside])


def spelled(every: int | None) -> str:
    """Return an interval in words."""
    return "never" if every is None else f"every {every} products"


@default_fp_state
def advise_promotion(
    a,
    b,
    engine: Engine | str = "h100",
    *,
    fmt: str | None = None,
    wanted: float | None = None,
    intervals: Sequence[int] = INTERVALS,
    scale: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> PromotionAdvice:
    """Return the error, bound and cost of promotion at several intervals, and the longest interval that suffices.

    Promotion adds the unit's partial sum to an FP32 sum outside the unit, after every `interval` products.

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
        The operands; values that the engine's formats cannot represent are rounded to nearest. Of large products, at most
        64 rows and columns are computed.
    engine : Engine or str
        Engine with FP32 results: a device, "arch:name", or an engine object. A device without `fmt` stands for its fp8 unit
        if it has one.
    fmt : str, optional
        Operand format, if `engine` is a device.
    wanted : float, optional
        Largest accepted relative Frobenius error of the sums. By default twice the smallest error that an interval reaches,
        or a quarter of the error from rounding the operands, whichever is larger.
    intervals : sequence of int
        Intervals to try. Intervals that are not multiples of the engine's k step, or not below k, are left out.
    scale : bool
        Whether to multiply A and B by powers of two first, so that they fill the range of operand formats of at most 8 bits.
    progress : callable, optional
        Function called as ``progress(done, total, label)``.

    Raises
    ------
    ValueError
        If shapes do not fit, operands are beyond the range of the engine's format, the engine does not give FP32 sums or has
        block scales or integer operands, or `wanted` is not positive.

    Examples
    --------
    >>> from mpgemm.inputs import generate
    >>> advice = advise_promotion(*generate("uniform_nonnegative", 8, 1024, 8), "h100")
    >>> advice.intervals[0].every, advice.intervals[-1].error > 10 * advice.intervals[0].error
    (32, True)
    """
    if wanted is not None and not wanted > 0:
        raise ValueError(f"wanted is {wanted}, expected a positive relative error")
    engine = _engine(engine, fmt)
    data = corner(_checked(a, b), SIDE)
    data, exponents = _filled(data, engine) if scale else (data, (0, 0))
    product = EngineProduct(engine, None, "rounded")
    rounded = Data(*product.rounded(data))
    _check_held(data, rounded, engine)
    m, k, n = data.a.shape[0], data.a.shape[1], data.b.shape[1]
    chosen: list[int | None] = [q for q in sorted(set(intervals)) if q % engine.k == 0 and q < k]
    exact = EngineProduct(ieee_engine("fp64"), None, "given").measure(data).exact
    found = []
    for done, every in enumerate([*chosen, None]):
        if progress is not None:
            progress(done, len(chosen) + 2, "intervals")
        measured = EngineProduct(engine, every, "rounded").measure(data)
        watched = JudgedProduct(engine.label, {"engine": engine.label, "promote_every": every}, data.a, data.b)
        hold(watched, measured.computed, measured.error, measured.bound)
        found.append(
            Interval(
                every, 0.0 if every is None else 1 / every, _relative(measured), _ratio(measured.bound, measured.exact),
                _whole(measured, exact),
            )
        )  # fmt: skip
    fp32 = EngineProduct(ieee_engine("fp32"), None, "given").measure(rounded)
    operands = _ratio(fp32.exact - exact, exact)
    best = min(i.error for i in found)
    target, by = _default_target(best, operands) if wanted is None else (wanted, WANTED)
    enough = [i for i in found if i.error <= target]
    certain = [i for i in found if i.bound <= target]
    return PromotionAdvice(
        engine.label, (m, k, n), tuple(found), target, by, enough[-1] if enough else None, certain[-1] if certain else None,
        _relative(fp32), operands, exponents,
    )  # fmt: skip


def _default_target(best: float, operands: float) -> tuple[float, str]:
    """Return the accepted error of the sums and its source; a smaller error would not show beside the operands' rounding."""
    if operands / 4 > 2 * best:
        return operands / 4, "a quarter of the error of rounding the operands"
    return 2 * best, "twice the smallest error reached"


def _engine(engine: Engine | str, fmt: str | None) -> Engine:
    if isinstance(engine, str):
        engine = _device_engine(engine, fmt)
    check_sums_outside(engine)
    if engine.scale_format is not None:
        raise ValueError(
            f"{engine.label} takes block scales, which promotion does not support; take a unit without block scales"
        )
    return engine


def _device_engine(name: str, fmt: str | None) -> Engine:
    if fmt is not None or ":" in name or name == "ieee":
        return plain_engine(name, fmt)
    try:
        return plain_engine(name, "fp8")
    except ValueError:
        return plain_engine(name)


def _checked(a, b) -> Data:
    a, b = (tcm.as_array(x, name) for x, name in ((a, "a"), (b, "b")))
    for x, name in ((a, "a"), (b, "b")):
        source_array(x, name)  # refuses values that float64 cannot hold
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in (*a.shape, *b.shape):
        raise ValueError(
            f"a is {a.shape} and b is {b.shape}, expected two matrices that are not empty, with as many columns of "
            f"a as rows of b"
        )
    if not (np.isfinite(a.astype(np.float64)).all() and np.isfinite(b.astype(np.float64)).all()):
        raise ValueError("a or b holds infinities or NaN, expected finite values; give finite matrices")
    return Data(a, b)


def _check_held(data: Data, rounded: Data, engine: Engine) -> None:
    """Raise ValueError if operands become infinite in the engine's formats."""
    a_format, b_format = engine.formats[:2]
    for name, x, held, fmt in (("A", data.a, rounded.a, a_format), ("B", data.b, rounded.b, b_format)):
        lost = np.argwhere(~np.isfinite(held.astype(np.float64)))
        if len(lost):
            i, j = lost[0]
            many = f"{len(lost)} elements of {name} are" if len(lost) > 1 else f"1 element of {name} is"
            raise ValueError(
                f"{many} beyond {fmt.max_finite:g}, the largest number of {fmt.name}; the first is {name}[{i}, {j}] = "
                f"{float(x[i, j]):g}. No interval prevents overflow, so scale {name}"
            )


def _filled(data: Data, engine: Engine) -> tuple[Data, tuple[int, int]]:
    """Return operands of narrow formats, scaled by powers of two so that they fill the range, and the exponents."""
    scaled, exponents = [], []
    for x, fmt in zip(data[:2], engine.formats[:2], strict=True):
        largest = float(np.max(np.abs(x.astype(np.float64))))
        narrow = isinstance(fmt, Format) and fmt.bits <= 8 and largest > 0
        exponent = math.floor(math.log2(fmt.max_finite / largest)) if narrow else 0
        scaled.append(np.ldexp(x.astype(np.float64), exponent) if exponent else x)
        exponents.append(exponent)
    return Data(scaled[0], scaled[1]), (exponents[0], exponents[1])


def _whole(measured: Measured, exact: np.ndarray) -> float:
    """Return the relative error against the exact product of the given operands."""
    return _ratio(np.where(np.isfinite(measured.computed), measured.computed - exact, np.inf), exact)


def _relative(measured: Measured) -> float:
    return _ratio(measured.error, measured.exact)


def _ratio(error: np.ndarray, exact: np.ndarray) -> float:
    """Return the Frobenius norm of an error over that of the exact values, without intermediate overflow; 0/0 is 0."""
    if not np.isfinite(error).all():
        return math.inf
    (above, up), (below, down) = (_norm(x) for x in (error, exact))
    if not above:
        return 0.0
    return math.ldexp(above / below, up - down) if below else math.inf


def _norm(x: np.ndarray) -> tuple[float, int]:
    """Return (f, e) with the norm f 2^e and f near 1."""
    exponent = int(np.frexp(np.max(np.abs(x), initial=0.0))[1])
    return float(np.linalg.norm(np.ldexp(x, -exponent))), exponent
