"""Analyses the bits that a two-word float16 split keeps: Xue et al., SGEMM-cube, sections 4.1 and 4.2.

Terms. E is the exponent of the float32 number (``2**E <= |V| < 2**(E+1)``), s_b the scaling exponent; the residual is
``(V - V_high) * 2**s_b`` before its own rounding. The *paper's events* (eqs. 4 and 5) are "the exponent of the residual
is below -14" (underflow or gradual underflow) and "below -24" (underflow), a zero residual included. They overstate the
loss of a split by rounding to nearest, which takes a residual in (2^-25, 2^-24) to 2^-24, not to 0: so the count of
residuals that are *flushed* (they are not zero, their word is) is given beside the events. It is half as large, and as
large as for a split by rounding toward zero.

The formulas are the paper's; the counts here go over all 2^23 fractions of an exponent, with the rounding of
the kernels.
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
#: |x| from which rounding to nearest goes beyond fp16's largest number.
FP16_OVERFLOW = 65520.0
FRACTIONS = 1 << _FP32.fraction_bits

#: Fraction bits that the two words keep where neither under- nor overflows (section 3.3).
FULL_BITS = 22
#: The paper's choice when the range of the input is unknown (section 4.2).
DEFAULT_SCALE_EXPONENT = 12


def residual_probability(leading_zeros: int, mode: str) -> float:
    """Return eq. 3: probability that the residual has n `leading_zeros` and the high word was "truncated" (T) or "rounded" up
    (R).

    n = -1 is a residual of exactly half a unit of the high word.
    """
    if mode not in ("truncated", "rounded"):
        raise ValueError(f"unknown mode {mode!r}; known: truncated, rounded")
    dropped = _FP32.fraction_bits - _FP16.fraction_bits  # l_M - l_Mhigh = 13
    if leading_zeros == -1:
        return 0.5 ** (dropped + 1)
    if 0 <= leading_zeros < dropped - 1:
        return 0.5 ** (leading_zeros + 2)
    if leading_zeros == dropped - 1 and mode == "truncated":
        return 0.5**dropped
    return 0.0


def underflow_probability(exponent: int, scale_exponent: int = 0, gradual: bool = False) -> float:
    """Return eqs. 4 and 5: P_u, or P_u+gu with `gradual`, at exponent E with the low word scaled by 2**scale_exponent (s_b).

    It is a probability over uniformly distributed fractions; `gradual` counts subnormal low words too, which hardware without
    subnormals loses. Scaling shifts the curve: P(E) with s_b is P(E + s_b) without. A residual of zero, one fraction in 2^13,
    is part of the sum up to E + s_b = -1 (9 with `gradual`) and not above, where the formula gives 0. The formula takes the
    high word to be a normal number; below E = -14 it is not, and :func:`count_residuals` differs from it there.
    """
    first = exponent + scale_exponent + _FP16.bias - 2 - (_FP16.fraction_bits if gradual else 0)
    last = _FP32.fraction_bits - _FP16.fraction_bits - 1
    return sum(
        residual_probability(n, "truncated") + residual_probability(n, "rounded")
        for n in range(max(first, -1), last + 1)
    )


@dataclass(frozen=True)
class ResidualCount:
    """How many of the 2^23 float32 numbers of one exponent (sign aside) meet each event; see the module for the terms.

    `underflow` and `underflow_or_gradual` are the paper's events P_u and P_u+gu; `flushed`: the residual is not zero, the low
    word is; `high_overflow`: the high word is infinite; `low_overflow`: only the low word is.
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
    """Fraction bits that the two words keep of the float32 numbers of one exponent (fig. 2(b)).

    `worst` and `mean` (:func:`tensorcore_models.formats.words.bits_kept`) are over the fractions of which no word overflows, 0
    where every one does; `overflowed` is the share of the others, which keep nothing when overflow is infinite.
    """

    exponent: int
    scale_exponent: int
    rounding: str
    worst: float
    mean: float
    overflowed: float


def _representatives(exponent: int) -> np.ndarray:
    """Float32 numbers of one exponent that represent all 2^23 of them, each equally many.

    The residual of a number depends on the fraction bits that the high word drops and on the last one that it
    keeps (ties to even), so one period of those is enough, except where the high word may overflow.
    """
    dropped = _FP32.fraction_bits - _FP16.fraction_bits + max(0, _FP16.emin - exponent)
    period = FRACTIONS if exponent == _FP16.emax else min(FRACTIONS, 1 << (dropped + 1))
    return (np.arange(period, dtype=np.uint32) | np.uint32((exponent + 127) << 23)).view(np.float32)


def _split_positive(x: np.ndarray, scale: int, rounding: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return high words, residuals, low words of finite x > 0, and which word overflows (0 none, 1 low, 2 high)."""
    high = encode(x, _FP16, rounding)
    # rz stops at the largest finite number; what it cuts off there is an overflow all the same
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
        raise ValueError(f"the analysis knows the roundings rne and rz, got {rounding!r}")
    if not -126 <= exponent <= 127:
        raise ValueError(f"exponent {exponent} is not that of a normal float32, -126 to 127")
    if not -500 <= scale_exponent <= 500:
        raise ValueError(f"scale_exponent {scale_exponent} is beyond every float32: -500 to 500")
    # With a normal high word only exponent + scale matters, and likewise where every high word is zero.
    stand_in = exponent
    if _FP16.emin <= exponent < _FP16.emax:
        stand_in = 0
    elif exponent < _FP16.quantum_exponent - 2:
        stand_in = _FP16.quantum_exponent - 2
    counts, bits = _measure(stand_in, scale_exponent + exponent - stand_in, rounding)
    asked: dict[str, Any] = {"exponent": exponent, "scale_exponent": scale_exponent}
    return replace(counts, **asked), replace(bits, **asked)


def count_residuals(exponent: int, scale_exponent: int = 0, rounding: str = "rne") -> ResidualCount:
    """Split every float32 number of exponent E, -126 to 127, and count what happens to its residual.

    Both words are rounded to nearest ("rne") as on Ascend, or toward zero ("rz"), the paper's contrast.
    """
    return _measured(exponent, scale_exponent, rounding)[0]


def bits_retained(exponent: int, scale_exponent: int = 0, rounding: str = "rne") -> RetainedBits:
    """Return the bits kept over all 2^23 numbers of one exponent: fig. 2(b) measured; parameters as for
    :func:`count_residuals`."""
    return _measured(exponent, scale_exponent, rounding)[1]


def bits_retained_formula(exponent: int, scale_exponent: int = 0) -> int:
    """Fig. 2(b) by eq. 6: one bit less for each exponent below the range where 22 are kept, never less than
    the high word's.

    The number counts up to the last bit whose weight is a float16 quantum (2^-24) or more in one of the words. 0 from
    exponent 16 up, whatever s_b: the high word overflows there (the paper's remark that exponents 15 to 27 are remapped
    into range holds for the low word only).
    """
    if exponent > _FP16.emax:
        return 0
    high = max(0, min(_FP16.fraction_bits + 1, exponent - _FP16.quantum_exponent))
    return max(high, min(FULL_BITS, exponent - _FP16.quantum_exponent + scale_exponent))


@integer_arguments("min_exponent", "max_exponent")
def allowed_scale_exponents(min_exponent: int, max_exponent: int) -> tuple[int, int]:
    """Return the range of s_b that keeps 22 bits of every number with exponents in [min_exponent, max_exponent] (eq.
    6, Rules 1 and 2).

    Parameters
    ----------
    min_exponent, max_exponent : int
        Range of the high words' exponents: E' - 15 in the paper, E plus one where rounding carries. -14 and 15 for
        inputs that may be any normal float16, which leaves s_b = 12 alone.

    Returns
    -------
    lower, upper : int
        ``-24 + 22 - min_exponent`` and ``15 + 12 - max_exponent``. There is no such s_b when lower > upper.

    Raises
    ------
    ValueError
        If min_exponent is above max_exponent.
    """
    if min_exponent > max_exponent:
        raise ValueError(f"min_exponent {min_exponent} is above max_exponent {max_exponent}")
    return -24 + FULL_BITS - min_exponent, 15 + 12 - max_exponent


@dataclass(frozen=True)
class ScaleChoice:
    """A scaling exponent s_b for an array, and what it costs its nonzero finite elements.

    Attributes
    ----------
    lower, upper : int or None
        Bounds of eq. 6 over the elements whose high word does not overflow; None where there are none. For the upper bound
        high words below 2^-14 count as exponent -14: their unit, and so their residuals, get no smaller.
    min_exponent, max_exponent : int or None
        Exponents of those elements' high words.
    overflowing : int
        Elements whose high word overflows: nothing is kept of them (saturated or infinite), whatever s_b.
    vanishing : int
        Elements of which both words are zero.
    worst_bits, mean_bits : float or None
        Fraction bits kept of the elements that do not overflow (:func:`tensorcore_models.formats.words.bits_kept`).
    losing : int
        How many of these keep fewer than 22 bits.
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
        """Whether eq. 6 has a solution for all elements, their high words being normal as it presumes."""
        if self.lower is None or self.upper is None or self.min_exponent is None:
            return self.overflowing == 0
        return self.lower <= self.upper and self.min_exponent >= _FP16.emin and self.overflowing == 0

    @property
    def bits_lost(self) -> float:
        """Bits short of 22 in the worst element whose high word does not overflow."""
        return 0.0 if self.worst_bits is None else max(0.0, FULL_BITS - self.worst_bits)

    def __str__(self) -> str:
        if self.elements == 0:
            return f"s_b = {self.scale_exponent}: no nonzero finite element to choose by"
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
    """Report the effect of s_b = `scale_exponent` on an array; raises as :func:`tensorcore_models.formats.words.split_fp16`."""
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
    """Return exponents of the high words, of the value itself where the word is zero."""
    words = high.astype(np.float32)
    return np.frexp(np.where(words == 0, values, words))[1] - 1


@default_fp_state
def automatic_scale_exponent(x: Any) -> ScaleChoice:
    """Choose s_b for an array from its nonzero finite elements.

    12 (the paper's choice) where eq. 6 allows it, else the upper bound of eq. 6, with a report of the bits lost. One less
    if a scaled residual of this very array would overflow: a residual of half a unit of the high word scales to 2^16 at
    the upper bound, which eq. 6 overlooks. Elements whose high word overflows take no part in the choice.

    Parameters
    ----------
    x : array_like
        float32 values or narrower ones.

    Raises
    ------
    TypeError, ValueError
        See :func:`tensorcore_models.formats.words.split_fp16`.
    """
    return scale_report(x, chosen_scale_exponent(x))


@default_fp_state
def chosen_scale_exponent(x: Any) -> int:
    """Return the s_b of :func:`automatic_scale_exponent` alone. Exponents of high words grow with their elements, so the
    smallest and the largest element tell the bounds of eq. 6."""
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
    residuals = split_fp16(values[inside], upper)[1]  # which half a unit of a high word overflows only there
    return int(upper - np.isinf(residuals).any())
