"""Divides an error into five causes that add up to it, for a dot product in rational numbers or a matrix product in binary64.

With A' the sums of the words of A and B' those of B, and the pairs of words (i, j) that a method keeps,

    computed - A B  =  (A' - A) B' + A (B' - B)  -  (products of words that are left out)  +  (rest)

The first two terms come from the split of the operands, the third is the *dropped term*, and the rest is the rounding of sums
(*accumulation*). The contributions of some elements to the first three terms count as other causes:

* *overflow*: the element is beyond the range of the words;
* *range*: the element is so small that its words keep fewer bits than they can hold. Its low word is then no longer small, nor
  is the product that is left out.

What remains of the first two terms is the *split*: words hold a limited number of bits of any number.

Arrays hold float64, or :class:`fractions.Fraction`, for which the parts are exact. In float64 a part has a relative error of
2^-53.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tensorcore_models.formats import Format
from tensorcore_models.formats.exact_rounding import NEAREST

CAUSES = ("overflow", "range", "split", "dropped term", "accumulation")


def full_bits(fmt: Format, words: int, rounding: str) -> int:
    """Return the fraction bits (:func:`tensorcore_models.bits_kept`) that words keep of a number if all words are normal.

    >>> from tensorcore_models import get_format
    >>> full_bits(get_format("fp16"), 2, "rne"), full_bits(get_format("fp16"), 2, "rz"), full_bits(get_format("bf16"), 1, "rne")
    (22, 20, 7)
    """
    nearest = rounding in NEAREST
    return words * fmt.precision - 2 + (words if nearest else 0)


def overflow_threshold(fmt: Format) -> float:
    """Return the magnitude from which rounding to nearest exceeds the largest number of a format.

    >>> from tensorcore_models import get_format
    >>> overflow_threshold(get_format("fp16"))
    65520.0
    """
    return fmt.max_finite + 2.0 ** (fmt.emax - fmt.precision)


@dataclass(frozen=True)
class SplitOperand:
    """`SplitOperand` holds an operand and its words."""

    value: np.ndarray  #: The operand, finite.
    #: Words of the operand in its own units, highest word first; the method uses only their sum.
    words: Sequence[np.ndarray]
    overflow: np.ndarray  #: Mask of the elements beyond the range of the words.
    #: Fraction bits that the words hold of any element in range (:func:`full_bits`); None where elements have no range of
    #: their own, because the words of a row share an exponent.
    bits: int | None

    @property
    def joined(self) -> np.ndarray:
        """Return the sum of the words."""
        return sum(self.words[1:], start=self.words[0])

    @property
    def small(self) -> np.ndarray:
        """Return the mask of elements in range of which the words keep fewer than `bits` bits."""
        if self.bits is None:
            return np.zeros(self.value.shape, bool)
        exponents = np.frexp(self.value.astype(np.float64))[1] - 1
        kept = np.abs(self.joined - self.value) <= np.ldexp(1.0, exponents - self.bits - 1)
        return ~kept.astype(bool) & ~self.overflow & (self.value != 0).astype(bool)

    def only(self, cause: str, values: np.ndarray) -> np.ndarray:
        """Return `values` where the element belongs to the cause, 0 elsewhere."""
        here = {"overflow": self.overflow, "range": self.small, "split": ~(self.overflow | self.small)}[cause]
        zero: Any = Fraction(0) if values.dtype == object else 0.0
        return np.where(here, values, zero)

    def change(self, cause: str) -> np.ndarray:
        """Return the change by the split, words - value, in the elements of one cause."""
        return self.only(cause, self.joined - self.value)


def _times(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x y, without multiplying if a factor is all zeros, which most causes are."""
    if x.any() and y.any():
        return x @ y
    return np.zeros((x.shape[0], y.shape[1]), x.dtype)


def error_parts(
    x: SplitOperand, y: SplitOperand, products: Collection[tuple[int, int]], error: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the parts of computed - exact: one matrix for each of :data:`CAUSES`; they add up to `error`."""
    joined = y.joined
    parts = {
        cause: _times(x.change(cause), joined) + _times(x.value, y.change(cause))
        for cause in ("overflow", "range", "split")
    }
    parts["dropped term"] = error - error  # zeros of the error's type
    pairs = [(i, j) for i in range(len(x.words)) for j in range(len(y.words)) if (i, j) not in products]
    for i, j in pairs:  # an overflow in either operand decides first, then a small element in either operand
        high, low = x.words[i], y.words[j]
        x_in, y_in = x.only("overflow", high), y.only("overflow", low)
        normal = _times(x.only("split", high), y.only("split", low))
        parts["overflow"] = parts["overflow"] - (_times(x_in, low) + _times(high - x_in, y_in))
        parts["range"] = parts["range"] - (_times(high - x_in, low - y_in) - normal)
        parts["dropped term"] = parts["dropped term"] - normal
    parts["accumulation"] = error - sum(parts.values())
    return parts
