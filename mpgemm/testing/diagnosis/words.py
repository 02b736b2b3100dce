"""This module predicts results of recovery methods with faults in their words: lost products, wrong scales, wrong splits.

Predictions are sums of products of words in FP64, because the order in which the kernel adds them is not known.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mpgemm.recovery.method import RecoveryMethod
from mpgemm.testing.diagnosis.along_k import lost_of
from mpgemm.testing.diagnosis.failure import Failure, Finding
from mpgemm.testing.recovered_case import RecoveredCase

#: Names of the words if an operand has two.
NAMES = ("high", "low")
#: Roundings of the split that kernels have by mistake.
ROUNDINGS = ("rne", "rz", "rna")
#: Size of a product of other words, relative to the right one, from which on it differs from a product that is left out.
TOLD = 2.0**-4
#: Wrong exponents of the power of two by which a level is added, less the right one.
OFF = (-2, -1, 1, 2)


@dataclass(frozen=True)
class _Split:
    """`_Split` holds the words of a failure's elements."""

    f: Failure
    case: RecoveredCase

    def words_of(self, method: RecoveryMethod) -> list[list[np.ndarray]]:
        """Return the words of the elements' rows of A and columns of B, (elements, k) each, if a method splits them."""
        (rows, of_row), (columns, of_column) = (
            np.unique(x, return_inverse=True) for x in (self.f.rows, self.f.columns)
        )
        a, b = self.case.words(rows, columns, method)
        return [[x[of_row] for x in a], [x.T[of_column] for x in b]]

    @cached_property
    def words(self) -> list[list[np.ndarray]]:
        """Return the right words."""
        return self.words_of(self.case.method)

    @cached_property
    def sums(self) -> dict[tuple[int, int], np.ndarray]:
        """Return the sum over k of every product of words, also of those that the method leaves out."""
        every = itertools.product(range(self.case.method.words), repeat=2)
        return {(i, j): np.einsum("ek,ek->e", self.words[0][i], self.words[1][j]) for i, j in every}

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        """Return the products that the method computes."""
        return self.case.method.products

    @cached_property
    def kept(self) -> np.ndarray:
        """Return the sum over k of the products that the method computes."""
        return np.sum([self.sums[pair] for pair in self.products], 0)

    @property
    def true(self) -> np.ndarray:
        """Return the results of a right kernel: the exact ones less the products that the method leaves out."""
        return self.f.true + self.kept - self.f.products.sum(1)

    @property
    def scale(self) -> int:
        """Return s: word j stands for 2^(-j s) times the number that the unit multiplies."""
        return self.case.method.word_scale(self.case.core.formats[0])

    def name(self, i: int, j: int) -> str:
        """Return the name of a product of words."""
        if self.case.method.words == len(NAMES):
            return f"the {NAMES[i]} word of A times the {NAMES[j]} word of B"
        return f"word {i} of A times word {j} of B"


def _split(f: Failure) -> _Split | None:
    """Return the words of a failure; None if its kernel does not split operands into words."""
    case = f.case
    if not isinstance(case, RecoveredCase) or case.method.kind != "words" or case.method.words < 2:
        return None
    return _Split(f, case)


def products(f: Failure) -> Iterator[Finding]:
    """Yield results with a product of words left out, added twice, subtracted, or computed from other words."""
    if (split := _split(f)) is None:
        return
    sums, tried = split.sums, math.log(len(split.products) * (len(split.sums) + 3))
    for i, j in split.products:
        name = split.name(i, j)
        for times, text in ((-1, "is left out"), (1, "is added twice"), (-2, "is subtracted")):
            yield f.finding(split.true + times * sums[i, j], f"a product of words: {name} {text}", 2.0)
        for x, y in sums:
            read = np.ldexp(sums[x, y], (x + y - i - j) * split.scale)  # the kernel keeps the weight of (i, j)
            if (x, y) != (i, j) and np.linalg.norm(read) > TOLD * np.linalg.norm(sums[i, j]):
                text = f"a product of words: in place of {name}, it is {split.name(x, y)}"
                yield f.finding(split.true - sums[i, j] + read, text, 2.0, tried)
    low = [sums[pair] for pair in split.products if pair != (0, 0)]
    if len(low) > 1:
        text = "products of words: all but that of the first words are left out (a plain product)"
        yield f.finding(split.true - np.sum(low, 0), text, 2.0)


def scales(f: Failure) -> Iterator[Finding]:
    """Yield results in which the products of a level are added with a wrong power of two."""
    if (split := _split(f)) is None:
        return
    levels = sorted({i + j for i, j in split.products} - {0})
    tried = math.log(max(len(levels), 1) * (len(OFF) + 2))
    for level in levels:
        pairs = [pair for pair in split.products if sum(pair) == level]
        which, right = " and ".join(split.name(*pair) for pair in pairs), split.scale * level
        whole = np.sum([split.sums[pair] for pair in pairs], 0)
        for off in dict.fromkeys((*OFF, right, -right)):
            if off:
                text = f"a scale of words: {which} are added with the factor 2^{off - right}, not 2^{-right}"
                yield f.finding(split.true + (2.0**off - 1) * whole, text, 2.0, tried)


def splits(f: Failure) -> Iterator[Finding]:
    """Yield results of words that are split without a scale, or with another rounding."""
    if (split := _split(f)) is None:
        return
    method = split.case.method
    others = [
        (replace(method, rounding=mode, last_rounding=""), f"words are rounded by {mode}, not {method.rounding}")
        for mode in ROUNDINGS
        if mode != method.rounding
    ]
    if split.scale:
        text = f"words are not scaled by 2^{split.scale} before they are rounded to {split.case.core.formats[0].name}"
        others.append((replace(method, scale_exponent=0), text))
    for other, text in others:
        a, b = split.words_of(other)
        wrong = np.sum([np.einsum("ek,ek->e", a[i], b[j]) for i, j in split.products], 0)
        yield f.finding(split.true - split.kept + wrong, f"the split: {text}", 1.0, math.log(len(others)))


def lost_along_k(f: Failure) -> Iterator[Finding]:
    """Yield results in which one product of words lacks a part of k, or has it twice."""
    if (split := _split(f)) is None or f.k < 2:
        return
    tried = math.log(len(split.products))
    for i, j in split.products:
        for found in lost_of(f, split.words[0][i] * split.words[1][j]):
            text = f"{found.text}, in {split.name(i, j)}"
            yield found._replace(text=text, tried=found.tried + tried, chance=found.chance + tried)
