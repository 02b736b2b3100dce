"""The causes of an error: five parts that add up to it, for one dot product in rational numbers or a whole product in binary64.

With A' the sums of the words of A and B' those of B, and the pairs of words (i, j) that a method keeps,

    computed - A B  =  (A' - A) B' + A (B' - B)  -  the products of words that are left out  +  the rest

The first two terms are the split's, the third is the *dropped term*, the rest is what sums round (*accumulation*). The first
three are taken apart by what happened to the elements: beyond the range of the words (*overflow*), or so small that they keep
fewer bits than the words have (*range*: the low word is then no longer small, and neither is the product that is left out).
What remains is the *split*: the bits that a method's words hold of any number.

Arrays are float64, or hold :class:`fractions.Fraction`; then the parts are exact. Of float64 the error is 2^-53 of a part.
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
    """Return the fraction bits, as :func:`tensorcore_models.bits_kept` counts, that words keep of a number if all of them are
    normal.

    >>> from tensorcore_models import get_format
    >>> full_bits(get_format("fp16"), 2, "rne"), full_bits(get_format("fp16"), 2, "rz"), full_bits(get_format("bf16"), 1, "rne")
    (22, 20, 7)
    """
    nearest = rounding in NEAREST
    return words * fmt.precision - 2 + (words if nearest else 0)


def overflow_threshold(fmt: Format) -> float:
    """Return the magnitude from which rounding to nearest goes beyond the largest number of a format.

    >>> from tensorcore_models import get_format
    >>> overflow_threshold(get_format("fp16"))
    65520.0
    """
    return fmt.max_finite + 2.0 ** (fmt.emax - fmt.precision)


@dataclass(frozen=True)
class SplitOperand:
    """An operand beside its words."""

    value: np.ndarray  #: The operand, finite.
    #: Its words, the highest first, in its own units: their sum is what the method knows of it.
    words: Sequence[np.ndarray]
    overflow: np.ndarray  #: Elements beyond the range of the words.
    #: Fraction bits that the words hold of any element in range (:func:`full_bits`); None: elements have no range of
    #: their own, as in words with one exponent for a row.
    bits: int | None

    @property
    def joined(self) -> np.ndarray:
        """The sums of the words."""
        return sum(self.words[1:], start=self.words[0])

    @property
    def small(self) -> np.ndarray:
        """Elements in range that keep fewer bits than the words hold."""
        if self.bits is None:
            return np.zeros(self.value.shape, bool)
        exponents = np.frexp(self.value.astype(np.float64))[1] - 1
        kept = np.abs(self.joined - self.value) <= np.ldexp(1.0, exponents - self.bits - 1)
        return ~kept.astype(bool) & ~self.overflow & (self.value != 0).astype(bool)

    def only(self, cause: str, values: np.ndarray) -> np.ndarray:
        """Return `values` where the element belongs to a cause, else 0."""
        here = {"overflow": self.overflow, "range": self.small, "split": ~(self.overflow | self.small)}[cause]
        zero: Any = Fraction(0) if values.dtype == object else 0.0
        return np.where(here, values, zero)

    def change(self, cause: str) -> np.ndarray:
        """Return the change that the split makes in the elements of one cause."""
        return self.only(cause, self.joined - self.value)


def _times(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x y, without work where a factor is zero, as most causes are."""
    if x.any() and y.any():
        return x @ y
    return np.zeros((x.shape[0], y.shape[1]), x.dtype)


def error_parts(
    x: SplitOperand, y: SplitOperand, products: Collection[tuple[int, int]], error: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the parts of computed - exact, element by element: a matrix for each of :data:`CAUSES`, which add up to the
    error."""
    joined = y.joined
    parts = {
        cause: _times(x.change(cause), joined) + _times(x.value, y.change(cause))
        for cause in ("overflow", "range", "split")
    }
    parts["dropped term"] = error - error  # zeros of its type
    pairs = [(i, j) for i in range(len(x.words)) for j in range(len(y.words)) if (i, j) not in products]
    for i, j in pairs:  # what overflowed comes first, then what is small, whichever operand it is in
        high, low = x.words[i], y.words[j]
        x_in, y_in = x.only("overflow", high), y.only("overflow", low)
        normal = _times(x.only("split", high), y.only("split", low))
        parts["overflow"] = parts["overflow"] - (_times(x_in, low) + _times(high - x_in, y_in))
        parts["range"] = parts["range"] - (_times(high - x_in, low - y_in) - normal)
        parts["dropped term"] = parts["dropped term"] - normal
    parts["accumulation"] = error - sum(parts.values())
    return parts
