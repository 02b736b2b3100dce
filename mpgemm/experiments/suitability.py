"""Whether an input suits splitting into fp16 words: range, bits kept, and the s_b to use.

Definitions. The exponent of x is floor(log2 |x|). x *overflows* if |x| >= 65520, which rounds beyond the largest fp16
number; it is *lost* if |x| <= 2^-25, which rounds to 0 in fp16; its high word is *subnormal* in between up to 2^-14.
The *bits kept* of x by a split x ~ h + l/2^s_b are -log2(|x - h - l/2^s_b| / 2^e), e the exponent of x: the number of
significand bits after the leading one that survive; at most 24 (exact), at least 0.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from tensorcore_models.words import automatic_scale_exponent

import tensorcore_models as tcm

#: |x| from which rounding to nearest leaves the range of fp16.
FP16_OVERFLOW = 65520.0
#: |x| up to which rounding to nearest even gives 0 in fp16.
FP16_LOST = 2.0**-25
#: Bits that the split of a number well inside the range keeps (Xue et al., section 3.3).
FULL_BITS = 22


@dataclass(frozen=True)
class BitsKept:
    """How many bits of its elements a matrix keeps with one s_b; over the nonzero finite elements."""

    scale_exponent: int
    smallest: float
    mean: float
    full_share: float  # share of the elements that keep at least FULL_BITS


@dataclass(frozen=True)
class MatrixRange:
    """What matters about one operand. `histogram` maps exponents to numbers of elements."""

    name: str
    shape: tuple[int, int]
    zeros: int
    nonfinite: int
    overflow: int
    lost: int
    subnormal: int
    smallest_exponent: int | None
    largest_exponent: int | None
    histogram: dict[int, int]
    recommended: int
    bits_kept: tuple[BitsKept, ...]

    def kept_with(self, scale_exponent: int) -> BitsKept:
        """The bits kept with that s_b, which must have been asked for."""
        return next(kept for kept in self.bits_kept if kept.scale_exponent == scale_exponent)


@dataclass(frozen=True)
class Suitability:
    """Both operands of a product, and what follows."""

    a: MatrixRange
    b: MatrixRange
    suits: bool
    verdict: str

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return asdict(self)


def examine(a: np.ndarray, b: np.ndarray, scale_exponents: Sequence[int] = (0, 6, 12)) -> Suitability:
    """Look at the operands of a product.

    Parameters
    ----------
    a, b : numpy.ndarray
        float32 matrices.
    scale_exponents : sequence of int
        Values of s_b to report on; the recommended ones are added.

    Returns
    -------
    Suitability
    """
    first, second = _range_of("A", a, scale_exponents), _range_of("B", b, scale_exponents)
    complaints = [text for matrix in (first, second) for text in _complaints(matrix)]
    advice = f"s_b = {first.recommended} for A and {second.recommended} for B"
    if complaints:
        return Suitability(first, second, False, f"does not suit SGEMM-cube as it is: {'; '.join(complaints)}. "
                           f"Best without scaling rows and columns: {advice}.")
    return Suitability(first, second, True, f"suits SGEMM-cube: every element keeps {FULL_BITS} bits with {advice}.")


def _complaints(matrix: MatrixRange) -> list[str]:
    found = []
    if matrix.nonfinite:
        found.append(f"{matrix.nonfinite} elements of {matrix.name} are infinite or NaN")
    if matrix.overflow:
        found.append(
            f"{matrix.overflow} elements of {matrix.name} exceed fp16's largest number 65504 and are lost whatever "
            "s_b is"
        )
    kept = matrix.kept_with(matrix.recommended)
    if kept.full_share < 1.0:
        found.append(f"{1 - kept.full_share:.1%} of the nonzero elements of {matrix.name} keep fewer than {FULL_BITS} "
                     f"bits (the worst {kept.smallest:.1f}) even with s_b = {matrix.recommended}")
    return found


def _range_of(name: str, x: np.ndarray, scale_exponents: Sequence[int]) -> MatrixRange:
    magnitudes = np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64)
    exponents = np.frexp(magnitudes)[1] - 1
    values, counts = np.unique(exponents, return_counts=True)
    recommended = automatic_scale_exponent(x)
    asked = sorted({*scale_exponents, recommended})
    return MatrixRange(
        name=name,
        shape=(int(x.shape[0]), int(x.shape[1])),
        zeros=int(np.count_nonzero(x == 0)),
        nonfinite=int(np.count_nonzero(~np.isfinite(x))),
        overflow=int(np.count_nonzero(magnitudes >= FP16_OVERFLOW)),
        lost=int(np.count_nonzero(magnitudes <= FP16_LOST)),
        subnormal=int(np.count_nonzero((magnitudes > FP16_LOST) & (magnitudes < 2.0**-14))),
        smallest_exponent=int(values[0]) if values.size else None,
        largest_exponent=int(values[-1]) if values.size else None,
        histogram={int(value): int(count) for value, count in zip(values, counts, strict=True)},
        recommended=recommended,
        bits_kept=tuple(_bits_kept(magnitudes, exponents, s) for s in asked),
    )


def _bits_kept(magnitudes: np.ndarray, exponents: np.ndarray, scale_exponent: int) -> BitsKept:
    """See the top of the module; exact, since every difference here is exact in float64."""
    if not magnitudes.size:
        return BitsKept(scale_exponent, 24.0, 24.0, 1.0)
    high = tcm.round_to(magnitudes, "fp16", saturate=True).astype(np.float64)
    low = tcm.round_to(np.ldexp(magnitudes - high, scale_exponent), "fp16", saturate=True).astype(np.float64)
    rest = np.abs(magnitudes - high - np.ldexp(low, -scale_exponent))
    with np.errstate(divide="ignore"):
        bits = np.clip(-np.log2(np.ldexp(rest, -exponents)), 0.0, 24.0)
    return BitsKept(scale_exponent, float(bits.min()), float(bits.mean()), float(np.mean(bits >= FULL_BITS)))
