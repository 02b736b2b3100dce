"""This module predicts results of recovery methods with faults in their words: lost products, wrong factors, wrong splits.

Predictions are sums of products of words in FP64, because the order in which the kernel adds them is not known.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mpgemm.recovery.method import RecoveryMethod
from mpgemm.testing.diagnosis.along_k import lost_of, stale_blocks
from mpgemm.testing.diagnosis.altered import halves, magnitudes
from mpgemm.testing.diagnosis.displaced import operand_transposed, permuted, rearranged
from mpgemm.testing.diagnosis.failure import Failure, Finding
from mpgemm.testing.recovered_case import RecoveredCase

#: Names of the words if an operand has two.
NAMES = ("high", "low")
#: Roundings of the split that kernels have by mistake.
ROUNDINGS = ("rne", "rz", "rna")
#: Size of a product of other words, relative to the right one, from which on it differs from a lost product. Chosen.
TOLD = 2.0**-4
#: Distance of a factor's exponent from a whole number up to which the factor is a power of two. Chosen.
NEAR = 0.02
#: Faults of operands that can concern one product of words.
OF_OPERANDS = (stale_blocks, permuted, rearranged, operand_transposed, magnitudes, halves)
#: Largest number of elements of A and B whose words are formed for these faults: 2^24 take 0.5 GB in two words of FP64.
MOST_WORDS = 1 << 24


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

    @property
    def sets(self) -> list[list[tuple[int, int]]]:
        """Return the products with a low word one by one, and those of each level together."""
        low = [[pair] for pair in self.products if pair != (0, 0)]
        levels = [
            [pair for pair in self.products if sum(pair) == level] for level in range(1, 2 * self.case.method.words)
        ]
        return [*low, *(pairs for pairs in levels if len(pairs) > 1)]

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

    def names(self, pairs: Sequence[tuple[int, int]]) -> str:
        """Return the names of several products of words."""
        return " and ".join(self.name(*pair) for pair in pairs)


def _split(f: Failure, least: int = 2) -> _Split | None:
    """Return the words of a failure; None if its kernel does not split operands into at least so many words."""
    case = f.case
    if not isinstance(case, RecoveredCase) or case.method.kind != "words" or case.method.words < least:
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


def factors(f: Failure) -> Iterator[Finding]:
    """Yield results in which products of words are added with a wrong factor, which is fitted."""
    if (split := _split(f)) is None:
        return
    rest = f.got - split.true
    for pairs in split.sets:
        whole, right = np.sum([split.sums[pair] for pair in pairs], 0), -split.scale * sum(pairs[0])
        with np.errstate(all="ignore"):
            factor = 1 + float(np.sum(rest * whole / f.units**2) / np.sum((whole / f.units) ** 2))
        if not math.isfinite(factor) or abs(factor) < TOLD:
            continue  # the product is left out
        off = math.log2(abs(factor))
        how = f"with {factor:.4g} times the right factor"
        if abs(off - round(off)) < NEAR:
            factor = math.copysign(2.0 ** round(off), factor)
            how = f"with the factor {'-' if factor < 0 else ''}2^{right + round(off)}, not 2^{right}"
        text = f"a factor of words: {split.names(pairs)} {'is' if len(pairs) == 1 else 'are'} added {how}"
        yield f.finding(split.true + (factor - 1) * whole, text, 2.0, math.log(len(split.sets)), 1)


def splits(f: Failure) -> Iterator[Finding]:
    """Yield results of words that are split without a scale, or with another rounding."""
    if (split := _split(f, 1)) is None:
        return
    method, fmt = split.case.method, split.case.core.formats[0].name
    others = []
    for mode in (mode for mode in ROUNDINGS if mode != method.rounding):
        text = f"the split: words are rounded to {fmt} by {mode}, not {method.rounding}"
        if method.words == 1:
            text = f"operands are rounded to {fmt} by {mode}: give the method {method.name}:rounding={mode}"
        others.append((replace(method, rounding=mode, last_rounding=""), text))
    if split.scale and method.words > 1:
        text = f"the split: words are not scaled by 2^{split.scale} before they are rounded to {fmt}"
        others.append((replace(method, scale_exponent=0), text))
    for other, text in others:
        a, b = split.words_of(other)
        wrong = np.sum([np.einsum("ek,ek->e", a[i], b[j]) for i, j in split.products], 0)
        yield f.finding(split.true - split.kept + wrong, text, 1.0)


def lost_along_k(f: Failure) -> Iterator[Finding]:
    """Yield results in which one product of words, or all of a level, lack a part of k or have it twice."""
    if (split := _split(f)) is None or f.k < 2:
        return
    tried = math.log(len(split.sets) + 1)
    for pairs in ([(0, 0)], *split.sets):
        lost = np.sum([split.words[0][i] * split.words[1][j] for i, j in pairs], 0)
        for found in lost_of(f, lost):
            text = f"{found.text}, in {split.names(pairs)}"
            yield found._replace(text=text, tried=found.tried + tried, chance=found.chance + tried)


def in_one_product(f: Failure) -> Iterator[Finding]:
    """Yield results in which one product reads its words wrongly: stale blocks, other rows, other places of k.

    The product that the kernel computed is its result less the other products.
    """
    (m, n), split = f.exact.shape, _split(f)
    if split is None or (m + n) * f.k > MOST_WORDS:
        return
    a, b = split.case.words(np.arange(m), np.arange(n))
    tried = math.log(len(split.products))
    left_out = f.exact - np.sum([a[i] @ b[j] for i, j in split.products], 0) if f.case.c is None else 0.0
    for i, j in split.products:
        term = a[i] @ b[j]
        case = replace(split.case, operands=(a[i], b[j]), given=(a[i], b[j]), c=None)
        part = replace(f, case=case, out=f.out - f.exact + term + left_out, exact=term, share=0.0, denied=None)
        for found in itertools.chain.from_iterable(predict(part) for predict in OF_OPERANDS):
            text = f"{found.text}, in {split.name(i, j)}"
            yield found._replace(text=text, tried=found.tried + tried, chance=found.chance + tried)
