"""Computes norms of rows of A and columns of B; an element of |A||B| is at most a product of two norms (Cauchy and Schwarz).

Norms need one pass over an operand. They also bound the remainders that floating-point words do not hold: for words of
precision p whose scales differ by s bits, the remainder r_j before word j has |r_(j+1)| <= u |r_j| + eta 2^(-j s), unless a
word overflows. Here u = 2^-p and eta is the smallest subnormal number; both are twice that for roundings other than to
nearest.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tensorcore_models.formats import Format

#: Range of the largest element in which no square overflows, and squares that underflow are negligible.
_SAFE = (2.0**-400, 2.0**400)


def largest_of(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the largest magnitude of each row (axis 1) or column (axis 0) in float64; the axis is kept with length 1."""
    if not x.shape[axis]:
        return np.zeros(tuple(1 if i == axis else n for i, n in enumerate(x.shape)))
    high, low = x.max(axis=axis, keepdims=True), x.min(axis=axis, keepdims=True)
    return np.maximum(high, -low).astype(np.float64)


def norms(x: np.ndarray, axis: int) -> np.ndarray:
    """Return Euclidean norms of the rows (axis 1) or columns (axis 0) in float64; the axis is kept with length 1."""
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
    """`Lines` holds the rows of A (axis 1) or the columns of B (axis 0) and computes each of their norms only once.

    given: lines that were rounded to these, if any.
    """

    def __init__(self, values: np.ndarray, axis: int, given: "Lines | None" = None):
        self.values, self.axis, self._given = values, axis, given
        self._found: dict[Any, Any] = {}

    def of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(values, axis, *arguments)``, which is computed once."""
        key = function, *arguments
        if key not in self._found:
            self._found[key] = function(self.values, self.axis, *arguments)
        return self._found[key]

    @property
    def given(self) -> "Lines":
        """Return the lines that were rounded to these, or these lines if none were."""
        return self._given or self

    @property
    def norms(self) -> np.ndarray:
        """Return the :func:`norms` of the lines."""
        return self.of(norms)

    @property
    def largest(self) -> np.ndarray:
        """Return the largest magnitudes of the lines (:func:`largest_of`)."""
        return self.of(largest_of)

    @cached_property
    def lost(self) -> np.ndarray:
        """Return norms of the rounding errors, given - values."""
        return norms(np.asarray(self.given.values, np.float64) - self.values, self.axis)

    def rounded_to(self, dtype: Any) -> "Lines":
        """Return the lines rounded to nearest to a numpy dtype; the same object if they have that dtype."""
        if self.values.dtype == dtype:
            return self
        if dtype not in self._found:
            with np.errstate(over="ignore", under="ignore"):
                self._found[dtype] = Lines(self.values.astype(dtype), self.axis, self)
        return self._found[dtype]

    @property
    def whole(self) -> "Lines":
        """Return the lines themselves, or all lines of a :attr:`least` line."""
        return self

    @cached_property
    def least(self) -> "Lines":
        """Return one line with the least norm of all: a bound that grows with norms is, for any line, at least its bound."""
        return _LeastLine(self)


class _LeastLine(Lines):
    """`_LeastLine` has the least norm of all lines; its elements, and the largest of them, are those of all lines."""

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
    """Return the least norm, shape (1, 1), without NaN, for which no bound holds."""
    return np.fmin.reduce(x, axis=None, initial=np.inf, keepdims=True)


def split_norms(
    size: np.ndarray, largest: np.ndarray, k: int, words: int, scale: int, fmt: Format, near: bool
) -> tuple[list[np.ndarray], np.ndarray, int] | None:
    """Return bounds of the norms of words and of their remainder, and an exponent above all words, for rows of k elements.

    size, largest: norms of the rows, and their largest elements.
    near: whether words are rounded to nearest.
    The norms are in the operand's units. Returns None where a word might overflow, or elements are not finite.
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
