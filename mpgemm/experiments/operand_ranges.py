"""How the elements of an operand lie in the range of fp16, and the bits that a split into two fp16 words keeps of them.

Definitions. The exponent of x is floor(log2 |x|). x *overflows* if |x| >= 65520, which rounds beyond the largest fp16
number: its first word is lost whatever s_b is, and it keeps 0 bits. It *vanishes in fp16* if |x| <= 2^-25, which rounds to 0;
its high word is *subnormal* in between up to 2^-14. Bits kept and "auto" are those of
:mod:`tensorcore_models.formats.split_analysis`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorcore_models.formats.split_analysis import ScaleChoice, automatic_scale_exponent, scale_report

#: |x| up to which rounding to nearest even gives 0 in fp16.
FP16_VANISHING = 2.0**-25
#: Smallest normal fp16 number.
FP16_NORMAL = 2.0**-14


@dataclass(frozen=True)
class BitsKept:
    """Fraction bits that two fp16 words keep of the nonzero finite elements; an element that overflows keeps 0."""

    scale_exponent: int  #: s_b.
    #: fewest_bits, mean_bits: None where there are no elements.
    fewest_bits: float | None
    mean_bits: float | None
    below_22_bits: int  #: Elements that keep fewer.

    @classmethod
    def of(cls, choice: ScaleChoice) -> "BitsKept":
        """Return the bits that a choice keeps, with the elements that overflow."""
        if not choice.elements:
            return cls(choice.scale_exponent, None, None, 0)
        share = 1 - choice.overflowing / choice.elements
        fewest = 0.0 if choice.overflowing or choice.worst_bits is None else choice.worst_bits
        mean = share * (choice.mean_bits or 0.0)
        return cls(choice.scale_exponent, fewest, mean, choice.losing + choice.overflowing)


@dataclass(frozen=True)
class MatrixRange:
    """The size and range of one operand's elements."""

    name: str  #: "A" or "B".
    shape: tuple[int, int]  #: Rows and columns.
    #: zeros, nonfinite, overflow, vanishing, subnormal: Numbers of elements; the last three as the module defines them.
    zeros: int
    nonfinite: int
    overflow: int
    vanishing: int
    subnormal: int
    #: smallest_exponent, largest_exponent: Of the nonzero finite elements; None if all are zero or not finite.
    smallest_exponent: int | None
    largest_exponent: int | None
    histogram: dict[int, int]  #: Exponent -> number of elements.
    choices: tuple[BitsKept, ...]  #: What each s_b that was asked for, and "auto", keeps.
    auto: int  #: What s_b = "auto" is for this operand.


def matrix_range(name: str, x: np.ndarray, scale_exponents: Sequence[int] = (0, 6, 12)) -> MatrixRange:
    """Look at one float32 operand, "A" or "B", and at what these s_b and "auto" keep of it."""
    magnitudes = np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64)
    values, counts = np.unique(np.frexp(magnitudes)[1] - 1, return_counts=True)
    best = automatic_scale_exponent(x)
    others = [scale_report(x, s) for s in sorted(set(scale_exponents) - {best.scale_exponent})]
    return MatrixRange(
        name=name,
        shape=(int(x.shape[0]), int(x.shape[1])),
        zeros=int(np.count_nonzero(x == 0)),
        nonfinite=int(np.count_nonzero(~np.isfinite(x))),
        overflow=best.overflowing,
        vanishing=int(np.count_nonzero(magnitudes <= FP16_VANISHING)),
        subnormal=int(np.count_nonzero((magnitudes > FP16_VANISHING) & (magnitudes < FP16_NORMAL))),
        smallest_exponent=int(values[0]) if values.size else None,
        largest_exponent=int(values[-1]) if values.size else None,
        histogram={int(value): int(count) for value, count in zip(values, counts, strict=True)},
        choices=tuple(BitsKept.of(c) for c in sorted([best, *others], key=lambda choice: choice.scale_exponent)),
        auto=best.scale_exponent,
    )
