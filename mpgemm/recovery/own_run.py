"""Runs methods whose split and join are a user's functions, so that any error-free transformation can be a row.

``split(x, axis)`` returns words, each with an exponent for each row (axis 1) or column (axis 0), such that x is about the sum
of word_i 2^exponent_i. The row's `products` name the pairs of words that are multiplied, each in one chain from zero through
the engine. ``join(terms)`` returns the result from (product, exponents) for each pair, in the row's order, with exponents of
shape (m, n). Without a join the terms are added in that order, in FP64 if the result is FP64 and in FP32 otherwise.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpgemm.recovery.arithmetic import EngineArithmetic, checked_addend
from mpgemm.recovery.counts import result_format
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.word_count import Count
from mpgemm.recovery.word_run import RangeCounts
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats.operands import operand_bits


@dataclass(eq=False)
class OwnRun:
    """`OwnRun` is a method of a user's functions, bound to an engine and operands."""

    row: RecoveryMethod
    engine: Engine
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    count: Count | None = None

    @property
    def word_format(self):
        """Return the engine's operand format."""
        return self.engine.formats[0]

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the result."""
        if self.row.target == "engine":
            return EngineArithmetic(self.engine, self.row.order, (0, 0)).dtype
        return np.dtype(np.float64 if result_format(self.row, self.a, self.b) == "fp64" else np.float32)

    @functools.cached_property
    def words(self) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[tuple[np.ndarray, np.ndarray]]]:
        """Return the words and exponents of A and of B from the split, after checking them."""
        return self._split(self.a, 1, "A"), self._split(self.b, 0, "B")

    def _split(self, x: np.ndarray, axis: int, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        if self.row.split is None:
            raise ValueError(f"method {self.row.name!r} has split None, expected a function; give split= to the method")
        found = list(self.row.split(x.copy(), axis))  # a function may write to what it is given
        if len(found) != self.row.words:
            raise ValueError(
                f"method {self.row.name!r}: split returned {len(found)} words of {name}, expected {self.row.words}, its "
                "field words"
            )
        checked = []
        for number, pair in enumerate(found):
            word, exponents = (np.asarray(part) for part in pair)
            if word.shape != x.shape or exponents.shape not in ((), (x.shape[1 - axis],)):
                raise ValueError(
                    f"method {self.row.name!r}: word {number} of {name} is {word.shape} with exponents {exponents.shape}, "
                    f"expected {x.shape} and ({x.shape[1 - axis]},)"
                )
            if not np.issubdtype(exponents.dtype, np.integer):
                raise TypeError(
                    f"method {self.row.name!r}: exponents of word {number} of {name} are {exponents.dtype}, "
                    f"expected integers"
                )
            checked.append((word, np.broadcast_to(exponents.astype(np.int64), x.shape[1 - axis])))
        return checked

    def counts(self) -> tuple[RangeCounts, RangeCounts]:
        """Return the numbers of elements with a word that is not finite, and of nonzero elements with only zero words."""
        found = []
        for x, words in zip((self.a, self.b), self.words, strict=True):
            values = [np.asarray(word, np.float64) for word, _ in words]
            lost = np.isfinite(x) & ~np.all([np.isfinite(v) for v in values], axis=0)
            gone = (x != 0) & np.all([v == 0 for v in values], axis=0)
            found.append(RangeCounts(int(lost.sum()), int(gone.sum())))
        return found[0], found[1]

    def exponents(self) -> list[np.ndarray]:
        """Return the exponents of each product, shape (m, n)."""
        words_a, words_b = self.words
        return [words_a[i][1][:, None] + words_b[j][1] for i, j in self.row.products]

    def product(self) -> np.ndarray:
        """Return the result of the method, shape (m, n)."""
        shape = (self.a.shape[0], self.b.shape[1])
        arithmetic = EngineArithmetic(self.engine, self.row.order, shape)
        words_a, words_b = self.words
        terms = []
        for (i, j), exponents in zip(self.row.products, self.exponents(), strict=True):
            left, right = words_a[i][0], words_b[j][0]
            pair = (
                operand_bits(left, self.engine.formats[0], None, f"word {i} of A"),
                operand_bits(right, self.engine.formats[1], None, f"word {j} of B"),
            )
            value = arithmetic.chain([pair], None) if self.a.shape[1] else arithmetic.nothing()
            terms.append((value, exponents))
        joined = np.asarray((self.row.join or self._added)(terms))
        if joined.shape != shape:
            raise ValueError(f"method {self.row.name!r}: join returned shape {joined.shape}, expected {shape}")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            joined = joined.astype(self.dtype, copy=False)
            return joined if self.c is None else joined + checked_addend(self.c, self.dtype)

    def _added(self, terms: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        total = np.zeros((self.a.shape[0], self.b.shape[1]), self.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for value, exponents in terms:
                total = total + np.ldexp(value.astype(self.dtype), exponents.astype(np.int32))
        return total
