"""Measures where the elements of an operand lie in the range of fp16, and how many bits a split into two fp16 words keeps.

Definitions. The exponent of x is floor(log2 |x|). x *overflows* if |x| >= 65520, which rounds beyond the largest fp16 number;
its first word is then lost for every s_b, and 0 bits are kept. x *vanishes in fp16* if |x| <= 2^-25, which rounds to 0. For
|x| between 2^-25 and 2^-14, the high word is *subnormal*. The bits kept, and "auto", are those of
:mod:`tensorcore_models.formats.split_analysis`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorcore_models.formats.split_analysis import ScaleChoice, automatic_scale_exponent, scale_report

#: Largest |x| that rounds to 0 in fp16 (to nearest, ties to even).
FP16_VANISHING = 2.0**-25
#: Smallest normal fp16 number.
FP16_NORMAL = 2.0**-14


@dataclass(frozen=True)
class BitsKept:
    """`BitsKept` counts the fraction bits that two fp16 words keep of nonzero finite elements, 0 for elements that overflow."""

    scale_exponent: int  #: The scale exponent s_b.
    #: fewest_bits, mean_bits: least and mean number of bits; None if there are no elements.
    fewest_bits: float | None
    mean_bits: float | None
    below_22_bits: int  #: Number of elements of which fewer than 22 bits are kept.

    @classmethod
    def of(cls, choice: ScaleChoice) -> "BitsKept":
        """Return the bits that a choice of s_b keeps; elements that overflow count with 0 bits."""
        if not choice.elements:
            return cls(choice.scale_exponent, None, None, 0)
        share = 1 - choice.overflowing / choice.elements
        fewest = 0.0 if choice.overflowing or choice.worst_bits is None else choice.worst_bits
        mean = share * (choice.mean_bits or 0.0)
        return cls(choice.scale_exponent, fewest, mean, choice.losing + choice.overflowing)


@dataclass(frozen=True)
class MatrixRange:
    """`MatrixRange` holds the shape of one operand and the range of its elements."""

    name: str  #: Name of the operand, "A" or "B".
    shape: tuple[int, int]  #: Numbers of rows and columns.
    #: zeros, nonfinite, overflow, vanishing, subnormal: numbers of such elements; the module defines the last three.
    zeros: int
    nonfinite: int
    overflow: int
    vanishing: int
    subnormal: int
    #: smallest_exponent, largest_exponent: exponents of the nonzero finite elements; None if there are none.
    smallest_exponent: int | None
    largest_exponent: int | None
    histogram: dict[int, int]  #: Number of elements by exponent.
    choices: tuple[BitsKept, ...]  #: Bits kept with each s_b that was asked for, and with "auto".
    auto: int  #: Value of s_b = "auto" for this operand.


def matrix_range(name: str, x: np.ndarray, scale_exponents: Sequence[int] = (0, 6, 12)) -> MatrixRange:
    """Return the range of one float32 operand, "A" or "B", and the bits that these s_b and "auto" keep of it."""
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
