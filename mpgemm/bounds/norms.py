"""Norms of rows and columns as parts of sizes: |X||Y| is at most the product of two of them (Cauchy and Schwarz).

They take one reading of an operand, and what words of floating-point formats leave of it follows from them: of x with words of
precision p, s bits from one to the next, the rest r_j before word j has |r_(j+1)| <= u |r_j| + eta 2^(-j s), where u = 2^-p and
eta is the smallest subnormal number (twice both for roundings that are not to nearest), unless a word overflows.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tensorcore_models.formats import Format

#: Elements whose squares neither overflow nor vanish beside the largest one.
_SAFE = (2.0**-400, 2.0**400)


def largest_of(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the largest magnitude of each row (axis 1) or column (axis 0), float64, that axis kept with length 1."""
    if not x.shape[axis]:
        return np.zeros(tuple(1 if i == axis else n for i, n in enumerate(x.shape)))
    high, low = x.max(axis=axis, keepdims=True), x.min(axis=axis, keepdims=True)
    return np.maximum(high, -low).astype(np.float64)


def norms(x: np.ndarray, axis: int) -> np.ndarray:
    """Return Euclidean norms of the rows (axis 1) or columns (axis 0), float64, that axis kept with length 1."""
    largest = largest_of(x, axis)
    top = float(largest.max(initial=0.0))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if x.dtype == np.float32 or _SAFE[0] < top < _SAFE[1]:
            squares = np.einsum("ij,ij->i" if axis else "ij,ij->j", x, x, dtype=np.float64)
            return np.sqrt(np.expand_dims(squares, axis))
        exponent = np.frexp(np.where(np.isfinite(largest), largest, 0.0))[1]
        squares = np.square(np.ldexp(x.astype(np.float64, copy=False), -exponent)).sum(axis=axis, keepdims=True)
        return np.ldexp(np.sqrt(squares), exponent)


class Lines:
    """The rows of A (axis 1) or the columns of B (axis 0): what bounds read off their elements is read once.

    given: What the elements were rounded from, if they were.
    """

    def __init__(self, values: np.ndarray, axis: int, given: "Lines | None" = None):
        self.values, self.axis, self._given = values, axis, given
        self._found: dict[Any, Any] = {}

    def of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(values, axis, *arguments)``."""
        key = function, *arguments
        if key not in self._found:
            self._found[key] = function(self.values, self.axis, *arguments)
        return self._found[key]

    @property
    def given(self) -> "Lines":
        """The lines from which these were rounded; themselves where nothing was."""
        return self._given or self

    @property
    def norms(self) -> np.ndarray:
        """:func:`norms`."""
        return self.of(norms)

    @property
    def largest(self) -> np.ndarray:
        """:func:`largest_of`."""
        return self.of(largest_of)

    @cached_property
    def lost(self) -> np.ndarray:
        """Norms of what rounding took from what was given."""
        return norms(np.asarray(self.given.values, np.float64) - self.values, self.axis)

    def rounded_to(self, dtype: Any) -> "Lines":
        """Return rounded to nearest to a type of numpy; itself where that is its own."""
        if self.values.dtype == dtype:
            return self
        if dtype not in self._found:
            with np.errstate(over="ignore", under="ignore"):
                self._found[dtype] = Lines(self.values.astype(dtype), self.axis, self)
        return self._found[dtype]

    @property
    def whole(self) -> "Lines":
        """All of the lines."""
        return self

    @cached_property
    def least(self) -> "Lines":
        """The least norm of all lines as the one line's: bounds that grow with norms are at least what they are of it."""
        return _LeastLine(self)


class _LeastLine(Lines):
    """Elements, and the largest one, are those of all lines."""

    def __init__(self, whole: Lines):
        self.values, self.axis, self._whole = whole.values, whole.axis, whole

    def of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._whole.of(function, *arguments)

    @cached_property
    def norms(self) -> np.ndarray:
        return _least(self._whole.norms)

    @cached_property
    def lost(self) -> np.ndarray:
        return _least(self._whole.lost)

    @property
    def given(self) -> Lines:
        return self._whole.given.least

    def rounded_to(self, dtype: Any) -> Lines:
        return self._whole.rounded_to(dtype).least

    @property
    def whole(self) -> Lines:
        return self._whole


def _least(x: np.ndarray) -> np.ndarray:
    """Of shape (1, 1); norms that are no numbers bound nothing."""
    return np.fmin.reduce(x, axis=None, initial=np.inf, keepdims=True)


def split_norms(
    size: np.ndarray, largest: np.ndarray, k: int, words: int, scale: int, fmt: Format, near: bool
) -> tuple[list[np.ndarray], np.ndarray, int] | None:
    """Return norms of the words of rows of k elements, of what they leave, in the operand's units, and an exponent above all
    words.

    size, largest: Norms of the rows, and their largest elements.
    near: Whether words are rounded to nearest.
    None where a word might overflow, or elements are not finite.
    """
    if not np.isfinite(largest).all():
        return None
    times = 1 if near else 2
    unit = times * fmt.unit_roundoff
    tiny = times * fmt.min_subnormal
    root, found, top = np.sqrt(k), [], 0.0
    rest, most = size, float(largest.max(initial=0.0))
    for j in range(words):
        step = np.ldexp(tiny, -j * scale)
        word = np.ldexp(most * (1 + unit) + step, j * scale)
        if word >= fmt.max_finite:
            return None
        top = max(top, float(word))
        found.append(rest * (1 + unit) + root * step)
        rest, most = unit * rest + root * step, unit * most + step
    return found, rest, int(np.frexp(top)[1])
