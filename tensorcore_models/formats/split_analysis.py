"""This module analyses the bits that a two-word float16 split keeps (Xue et al., SGEMM-cube, sections 4.1 and 4.2).

E is the exponent of the float32 number (``2**E <= |V| < 2**(E+1)``) and s_b the scaling exponent. The residual is
``(V - V_high) * 2**s_b`` before it is rounded. The paper's events (eqs. 4 and 5) are "the exponent of the residual is below
-14" (underflow or gradual underflow) and "the exponent of the residual is below -24" (underflow); both include a zero residual.

These events overstate the loss of a split that rounds to nearest, because a residual in (2^-25, 2^-24) becomes 2^-24, not 0.
This module therefore also counts *flushed* residuals, which are not zero but become a zero word. With rounding to nearest
their count is half that of the underflow event; with rounding toward zero it is the same as that of the event.

The formulas are those of the paper. The counts of this module cover all 2^23 fractions of an exponent, with the rounding of the
kernels.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..integers import integer_arguments
from ..machine.fp_state import default_fp_state
from .rounding import decode, encode, source_array
from .rows import FORMATS
from .words import bits_kept, split_fp16

_FP32, _FP16 = FORMATS["fp32"], FORMATS["fp16"]
#: Smallest |x| that overflows fp16 when rounded to nearest.
FP16_OVERFLOW = 65520.0
FRACTIONS = 1 << _FP32.fraction_bits

#: Fraction bits that the two words keep if neither word under- or overflows (section 3.3).
FULL_BITS = 22
#: The paper's choice when the range of the input is unknown (section 4.2).
DEFAULT_SCALE_EXPONENT = 12


def residual_probability(leading_zeros: int, mode: str) -> float:
    """Return the probability of eq. 3 that the residual has `leading_zeros` (n) and the high word was truncated or rounded up.

    `mode` is "truncated" (T) or "rounded" (R). n = -1 is a residual of exactly half a unit of the high word. Raises ValueError
    for another mode.
    """
    if mode not in ("truncated", "rounded"):
        raise ValueError(f"unknown mode {mode!r}, expected truncated or rounded")
    dropped = _FP32.fraction_bits - _FP16.fraction_bits  # l_M - l_Mhigh = 13
    if leading_zeros == -1:
        return 0.5 ** (dropped + 1)
    if 0 <= leading_zeros < dropped - 1:
        return 0.5 ** (leading_zeros + 2)
    if leading_zeros == dropped - 1 and mode == "truncated":
        return 0.5**dropped
    return 0.0


def underflow_probability(exponent: int, scale_exponent: int = 0, gradual: bool = False) -> float:
    """Return P_u (eq. 4), or P_u+gu (eq. 5) with `gradual`, at exponent E with the low word scaled by 2**scale_exponent (s_b).

    The probability is over uniformly distributed fractions; `gradual` also counts subnormal low words, which are lost on
    hardware without subnormal numbers. Scaling shifts the curve: P(E) with s_b is P(E + s_b) without scaling.

    A residual of zero, one fraction in 2^13, is part of the sum up to E + s_b = -1 (9 with `gradual`); above, the formula gives
    0. The formula assumes that the high word is a normal number. Below E = -14 it is not, and :func:`count_residuals` gives
    other results.
    """
    first = exponent + scale_exponent + _FP16.bias - 2 - (_FP16.fraction_bits if gradual else 0)
    last = _FP32.fraction_bits - _FP16.fraction_bits - 1
    return sum(
        residual_probability(n, "truncated") + residual_probability(n, "rounded")
        for n in range(max(first, -1), last + 1)
    )


@dataclass(frozen=True)
class ResidualCount:
    """`ResidualCount` counts how many of the 2^23 positive float32 numbers of one exponent meet each event.

    The module's description defines the events. `underflow` and `underflow_or_gradual` count the paper's events P_u and P_u+gu.
    `flushed` counts residuals that are not zero but become a zero low word. `high_overflow` counts numbers whose high word is
    infinite, `low_overflow` numbers of which only the low word is infinite.
    """

    exponent: int
    scale_exponent: int
    rounding: str
    total: int
    underflow: int
    underflow_or_gradual: int
    flushed: int
    high_overflow: int
    low_overflow: int

    def probability(self, event: str) -> float:
        """Return the count named `event` over the total."""
        return getattr(self, event) / self.total


@dataclass(frozen=True)
class RetainedBits:
    """`RetainedBits` holds the fraction bits that the two words keep of the float32 numbers of one exponent (fig. 2(b)).

    `worst` and `mean` (:func:`tensorcore_models.formats.words.bits_kept`) are over the fractions without an overflowing word,
    and 0 if every fraction has one. `overflowed` is the share of fractions with an overflowing word, which keep no bits when
    overflow gives infinity.
    """

    exponent: int
    scale_exponent: int
    rounding: str
    worst: float
    mean: float
    overflowed: float


def _representatives(exponent: int) -> np.ndarray:
    """Return float32 numbers of one exponent that stand for all 2^23 numbers, each for equally many.

    The residual of a number depends on the fraction bits that the high word drops and on the last bit that it keeps (ties to
    even), so one period of these bits is enough, unless the high word may overflow.
    """
    dropped = _FP32.fraction_bits - _FP16.fraction_bits + max(0, _FP16.emin - exponent)
    period = FRACTIONS if exponent == _FP16.emax else min(FRACTIONS, 1 << (dropped + 1))
    return (np.arange(period, dtype=np.uint32) | np.uint32((exponent + 127) << 23)).view(np.float32)


def _split_positive(x: np.ndarray, scale: int, rounding: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return high words, residuals and low words of finite x > 0, and the overflowing word (0 none, 1 low, 2 high)."""
    high = encode(x, _FP16, rounding)
    # rz gives the largest finite number beyond the range, which counts as an overflow here
    high_overflow = (high == _FP16.inf_bits) | (x >= 2.0 ** (_FP16.emax + 1))
    finite = np.where(high_overflow, np.uint16(0), high)
    residual = np.where(high_overflow, np.float32(0), x - decode(finite, _FP16, np.float32)).astype(np.float32)
    low = encode(residual, _FP16, rounding, scale_exponent=scale)
    scaled = np.abs(residual.astype(np.float64)) * 2.0**scale
    low_overflow = ((low & 0x7FFF) == _FP16.inf_bits) | (scaled >= 2.0 ** (_FP16.emax + 1))
    return high, residual, low, np.where(high_overflow, 2, low_overflow.astype(int))


@lru_cache(maxsize=1024)
def _measure(exponent: int, scale: int, rounding: str) -> tuple[ResidualCount, RetainedBits]:
    x = _representatives(exponent)
    weight = FRACTIONS // x.size
    high, residual, low, overflow = _split_positive(x, scale, rounding)
    size = np.abs(residual.astype(np.float64)) * 2.0**scale
    zero = (low & 0x7FFF) == 0
    counts = ResidualCount(
        exponent,
        scale,
        rounding,
        FRACTIONS,
        underflow=weight * int(((overflow < 2) & (size < 2.0**-24)).sum()),
        underflow_or_gradual=weight * int(((overflow < 2) & (size < 2.0**-14)).sum()),
        flushed=weight * int(((residual != 0) & zero).sum()),
        high_overflow=weight * int((overflow == 2).sum()),
        low_overflow=weight * int((overflow == 1).sum()),
    )
    kept = overflow == 0
    share = float((~kept).mean())
    if not kept.any():
        return counts, RetainedBits(exponent, scale, rounding, 0.0, 0.0, share)
    bits = bits_kept(x[kept], (high[kept], low[kept]), scale, _FP16)
    return counts, RetainedBits(exponent, scale, rounding, float(bits.min()), float(bits.mean()), share)


def _measured(exponent: int, scale_exponent: int, rounding: str) -> tuple[ResidualCount, RetainedBits]:
    if rounding not in ("rne", "rz"):
        raise ValueError(f"rounding is {rounding!r}, expected rne or rz")
    if not -126 <= exponent <= 127:
        raise ValueError(f"exponent is {exponent}, expected the exponent of a normal float32 number, -126 to 127")
    if not -500 <= scale_exponent <= 500:
        raise ValueError(f"scale_exponent is {scale_exponent}, expected -500 to 500")
    # If all high words are normal, or all are zero, the result depends only on exponent + scale.
    stand_in = exponent
    if _FP16.emin <= exponent < _FP16.emax:
        stand_in = 0
    elif exponent < _FP16.quantum_exponent - 2:
        stand_in = _FP16.quantum_exponent - 2
    counts, bits = _measure(stand_in, scale_exponent + exponent - stand_in, rounding)
    asked: dict[str, Any] = {"exponent": exponent, "scale_exponent": scale_exponent}
    return replace(counts, **asked), replace(bits, **asked)


def count_residuals(exponent: int, scale_exponent: int = 0, rounding: str = "rne") -> ResidualCount:
    """Split every float32 number of exponent E, -126 to 127, and count the events of its residual.

    Both words are rounded to nearest ("rne") as on Ascend, or toward zero ("rz"), with which the paper compares. Raises
    ValueError for another rounding or range.
    """
    return _measured(exponent, scale_exponent, rounding)[0]


def bits_retained(exponent: int, scale_exponent: int = 0, rounding: str = "rne") -> RetainedBits:
    """Return the bits kept over all 2^23 numbers of one exponent (fig. 2(b), counted); see :func:`count_residuals`."""
    return _measured(exponent, scale_exponent, rounding)[1]


def bits_retained_formula(exponent: int, scale_exponent: int = 0) -> int:
    """Return the bits of fig. 2(b) by eq. 6: one bit fewer for each exponent below the range where 22 bits are kept.

    The result is never below the bits of the high word. It counts bits whose weight is at least a float16 quantum (2^-24) in
    one of the words. From exponent 16 on it is 0 for every s_b, because the high word overflows (the paper's remark that
    exponents 15 to 27 are remapped into range holds for the low word only).
    """
    if exponent > _FP16.emax:
        return 0
    high = max(0, min(_FP16.fraction_bits + 1, exponent - _FP16.quantum_exponent))
    return max(high, min(FULL_BITS, exponent - _FP16.quantum_exponent + scale_exponent))


@integer_arguments("min_exponent", "max_exponent")
def allowed_scale_exponents(min_exponent: int, max_exponent: int) -> tuple[int, int]:
    """Return the range of s_b that keeps 22 bits of all numbers in a range of exponents.

    It follows from eq. 6 and Rules 1 and 2 of Xue et al. (arXiv:2507.23387v4).

    Parameters
    ----------
    min_exponent, max_exponent : int
        Range of the exponents of the high words (E' - 15 in the paper). A high word has the exponent of its number, or one more
        if rounding carries. For all normal float16 numbers the range is -14 to 15, which allows only s_b = 12.

    Returns
    -------
    lower, upper : int
        Bounds of s_b, ``-24 + 22 - min_exponent`` and ``15 + 12 - max_exponent``. No s_b exists if lower > upper.

    Raises
    ------
    ValueError
        If min_exponent is above max_exponent.
    """
    if min_exponent > max_exponent:
        raise ValueError(f"min_exponent {min_exponent} is above max_exponent {max_exponent}: exchange the two")
    return -24 + FULL_BITS - min_exponent, 15 + 12 - max_exponent


@dataclass(frozen=True)
class ScaleChoice:
    """`ScaleChoice` is a scaling exponent s_b for an array, with its effect on the nonzero finite elements.

    Attributes
    ----------
    scale_exponent : int
        The scaling exponent s_b.
    lower, upper : int or None
        Bounds of eq. 6 over the elements whose high word does not overflow; None if all overflow. For the upper bound, high
        words below 2^-14 count with exponent -14, because their unit, and so their residuals, get no smaller.
    min_exponent, max_exponent : int or None
        Smallest and largest exponent of the high words that do not overflow.
    elements : int
        Number of nonzero finite elements.
    overflowing : int
        Number of elements whose high word overflows, for every s_b; no bits of them are kept.
    vanishing : int
        Number of elements whose two words are zero.
    worst_bits, mean_bits : float or None
        Fraction bits kept of the elements that do not overflow (:func:`tensorcore_models.formats.words.bits_kept`).
    losing : int
        Number of elements without overflow that keep fewer than 22 bits.
    """

    scale_exponent: int
    lower: int | None
    upper: int | None
    min_exponent: int | None
    max_exponent: int | None
    elements: int
    overflowing: int
    vanishing: int
    worst_bits: float | None
    mean_bits: float | None
    losing: int

    @property
    def has_solution(self) -> bool:
        """Return whether eq. 6 has a solution for all elements, with normal high words as it assumes."""
        if self.lower is None or self.upper is None or self.min_exponent is None:
            return self.overflowing == 0
        return self.lower <= self.upper and self.min_exponent >= _FP16.emin and self.overflowing == 0

    @property
    def bits_lost(self) -> float:
        """Return how many of 22 bits the worst element loses whose high word does not overflow."""
        return 0.0 if self.worst_bits is None else max(0.0, FULL_BITS - self.worst_bits)

    def __str__(self) -> str:
        if self.elements == 0:
            return f"s_b = {self.scale_exponent}: the array has no nonzero finite element to choose it by"
        bounds = kept = ""
        if self.lower is not None:
            verdict = "allows" if self.has_solution else "has no solution:"
            bounds = f", eq. 6 {verdict} {self.lower} to {self.upper}"
        if self.worst_bits is not None:
            kept = f", the worst element keeps {self.worst_bits:.1f} bits"
        return (
            f"s_b = {self.scale_exponent}{bounds}{kept}; of {self.elements} nonzero finite elements "
            f"{self.losing} keep fewer than {FULL_BITS} bits, {self.vanishing} vanish, {self.overflowing} overflow"
        )


def scale_report(x: Any, scale_exponent: int) -> ScaleChoice:
    """Report the effect of s_b = `scale_exponent` on an array; errors are those of :func:`.words.split_fp16`."""
    values = source_array(x).reshape(-1)
    values = values[np.isfinite(values) & (values != 0)]
    high, low = split_fp16(values, scale_exponent, overflow="saturate")
    overflow = np.abs(values) >= FP16_OVERFLOW
    inside, high, low = values[~overflow], high[~overflow], low[~overflow]
    lower = upper = smallest = largest = worst = mean = None
    losing = vanishing = 0
    if inside.size:
        exponents = _high_exponents(inside, high)
        smallest, largest = int(exponents.min()), int(exponents.max())
        lower = allowed_scale_exponents(smallest, smallest)[0]
        upper = allowed_scale_exponents(_FP16.emin, max(largest, _FP16.emin))[1]
        bits = bits_kept(inside, (high, low), scale_exponent)
        worst, mean, losing = float(bits.min()), float(bits.mean()), int((bits < FULL_BITS).sum())
        vanishing = int(((high == 0) & (low == 0)).sum())
    return ScaleChoice(
        scale_exponent=scale_exponent,
        lower=lower,
        upper=upper,
        min_exponent=smallest,
        max_exponent=largest,
        elements=values.size,
        overflowing=int(overflow.sum()),
        vanishing=vanishing,
        worst_bits=worst,
        mean_bits=mean,
        losing=losing,
    )


def _high_exponents(values: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the exponents of the high words, or of the values where the high word is zero."""
    words = high.astype(np.float32)
    return np.frexp(np.where(words == 0, values, words))[1] - 1


@default_fp_state
def automatic_scale_exponent(x: Any) -> ScaleChoice:
    """Choose s_b for an array from its nonzero finite elements.

    s_b is 12, the choice of Xue et al. (arXiv:2507.23387v4), if their eq. 6 allows it, else the upper bound of eq. 6. It is one
    less than the bound if a scaled residual of this array would overflow: at the bound, a residual of half a unit in the last
    place of the high word becomes 2^16, which eq. 6 overlooks. Elements whose high word overflows are left out of the choice.

    Parameters
    ----------
    x : array_like
        Values of type float32 or narrower.

    Raises
    ------
    TypeError, ValueError
        See :func:`tensorcore_models.formats.words.split_fp16`.
    """
    return scale_report(x, chosen_scale_exponent(x))


@default_fp_state
def chosen_scale_exponent(x: Any) -> int:
    """Return the s_b of :func:`automatic_scale_exponent` without a report.

    Exponents of high words grow with their elements, so the smallest and the largest element give the bounds of eq. 6.
    """
    values = source_array(x)
    sizes = np.abs(values)
    inside = (sizes > 0) & (sizes < FP16_OVERFLOW)
    smallest = np.min(sizes, initial=np.inf, where=inside)
    if smallest == np.inf:
        return DEFAULT_SCALE_EXPONENT
    ends = np.array([smallest, np.max(sizes, initial=0.0, where=inside)], values.dtype)
    low, high = _high_exponents(ends, split_fp16(ends, 0, overflow="saturate")[0])
    lower = allowed_scale_exponents(low, low)[0]
    upper = allowed_scale_exponents(_FP16.emin, max(high, _FP16.emin))[1]
    if lower <= DEFAULT_SCALE_EXPONENT < upper:
        return DEFAULT_SCALE_EXPONENT
    residuals = split_fp16(values[inside], upper)[1]  # only at the upper bound can half a unit of a high word overflow
    return int(upper - np.isinf(residuals).any())
