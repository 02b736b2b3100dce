"""Runs recovery methods on integer words: slices, residues and quantised words; the rows of the methods have the formulas.

Every product is exact: k is divided so that no int32 sum can overflow and no sum of floating-point words is rounded
(:mod:`mpgemm.recovery.exact_sums`), and partial sums are added in int64 (or modulo p) outside. Rows of A and columns of B that
hold infinities or NaN give NaN results; these elements count as overflow.

:mod:`mpgemm.recovery.integer_words` makes words of operands, and :mod:`mpgemm.recovery.integer_joins` joins products to
results. `tests/support/integer_reference.py` is the reference for both in plain integers.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.recovery.arithmetic import checked_addend
from mpgemm.recovery.counts import result_format, scaled_words
from mpgemm.recovery.exact_sums import exact_bits, exact_products
from mpgemm.recovery.integer_joins import add_quantised, joined_slices, remainders
from mpgemm.recovery.integer_words import (
    Magnitudes,
    integers_below,
    magnitudes,
    quantise,
    residue_bits,
    residue_entries,
    residue_words,
    slice_operand,
    top_exponent,
)
from mpgemm.recovery.methods import RecoveryMethod
from mpgemm.recovery.split_residues import split_remainders, word_table
from mpgemm.recovery.word_count import Count
from mpgemm.recovery.word_run import RangeCounts
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.machine.workspace import Scratch


@dataclass(eq=False)
class IntegerRun:
    """`IntegerRun` is a method on integer or quantised words, bound to an engine and operands."""

    row: RecoveryMethod
    engine: Engine
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    count: Count | None = None

    @functools.cached_property
    def rows(self) -> Magnitudes:
        """Return the magnitudes of the rows of A."""
        return magnitudes(self.a, 1)

    @functools.cached_property
    def columns(self) -> Magnitudes:
        """Return the magnitudes of the columns of B."""
        return magnitudes(self.b, 0)

    @functools.cached_property
    def clean_a(self) -> np.ndarray:
        """Return A with 0 for elements that are not finite."""
        return self.a if self.rows.finite.all() else np.where(np.isfinite(self.a), self.a, 0)

    @functools.cached_property
    def clean_b(self) -> np.ndarray:
        """Return B with 0 for elements that are not finite."""
        return self.b if self.columns.finite.all() else np.where(np.isfinite(self.b), self.b, 0)

    @property
    def word_format(self):
        """Return the engine's operand format."""
        return self.engine.formats[0]

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the result."""
        return np.dtype(np.float64 if result_format(self.row, self.a, self.b) == "fp64" else np.float32)

    def counts(self) -> tuple[RangeCounts, RangeCounts]:
        """Return the numbers of elements of A and of B that are not finite (overflow) or have only zero words (underflow)."""
        return self._counts(self.a, 1), self._counts(self.b, 0)

    def _counts(self, x: np.ndarray, axis: int) -> RangeCounts:
        kept = np.zeros(x.shape, bool)
        for word in self._words(axis):
            kept |= word != 0
        return RangeCounts(int(np.count_nonzero(~np.isfinite(x))), int(np.count_nonzero((x != 0) & ~kept)))

    def _words(self, axis: int) -> list[np.ndarray]:
        """Return the words of A (axis 1) or B (axis 0); for residues, the integers from which they are computed."""
        x, facts = (self.a, self.rows) if axis == 1 else (self.b, self.columns)
        if self.row.modular:
            bits = residue_bits(self.row.moduli, self.a.shape[1])
            return [integers_below(x, axis, bits, facts.exponents)[0]]
        if self.row.kind == "quantised":
            return [word for word, _ in self._quantised_words(axis)]
        return slice_operand(x, axis, self.row, facts.exponents)[0]

    def word_values(self, axis: int) -> list[np.ndarray]:
        """Return the words of A (axis 1) or B (axis 0) in float64 in the operand's units, 0 for elements that are not
        finite."""
        return word_values_of(self.clean_a if axis == 1 else self.clean_b, axis, self.row, self.word_format)

    def product(self) -> np.ndarray:
        """Return the result of the method, shape (m, n); rows and columns with operands that are not finite are NaN."""
        run = {
            "integer_slices": self._slices,
            "residues": self._residues,
            "split_residues": self._split_residues,
            "quantised": self._quantised,
        }[self.row.kind]
        shape = (self.a.shape[0], self.b.shape[1])
        value = run() if self.a.shape[1] and 0 not in shape else np.zeros(shape, self.dtype)
        value = value.astype(self.dtype, copy=False)
        if not self.rows.finite.all():
            value[~self.rows.finite] = np.nan
        if not self.columns.finite.all():
            value[:, ~self.columns.finite] = np.nan
        if self.c is not None:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                value += checked_addend(self.c, self.dtype)
        return value

    def _encoded(
        self, words_a: list[np.ndarray], words_b: list[np.ndarray]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return words encoded in the engine's operand formats."""
        formats = self.engine.formats
        return [encoded(word, formats[0]) for word in words_a], [encoded(word, formats[1]) for word in words_b]

    # -- slices ----------------------------------------------------------------------------------------------------------
    def _slices(self) -> np.ndarray:
        row, bits, largest = self.row, self.row.slice_bits, self.row.largest_product
        chains = self._chains(largest)  # smallest first
        memory = Scratch(row.words * self.a.size, row.words * self.b.size)
        planes = [memory.take((row.words, *x.shape), np.int8) for x in (self.a, self.b)]
        words_a, rows = slice_operand(self.a, 1, row, self.rows.exponents, planes[0])
        words_b, columns = slice_operand(self.b, 0, row, self.columns.exponents, planes[1])
        products = self._products_of_slices(planes, (words_a, words_b), chains, largest)
        exponents = [-bits * sum(pairs[0]) for pairs in chains]
        last = exponents[-1]
        rows = rows - np.int32(2 * top_exponent(row) - last)
        return joined_slices(products, [e - last for e in exponents], rows, columns, self.dtype)

    @property
    def exact_levels(self) -> bool:
        """Return whether int32 holds the sum of the products of a level of slices, and FP64 that of all products, exactly."""
        return len(self._chains(self.row.largest_product)) < len(self.row.products)

    def _products_of_slices(self, planes, words, chains, largest: int) -> list[np.ndarray]:
        """Return the sum of the products of each chain; `words` are views of the `planes` of A and of B."""
        encodings, (m, k), n = self._encoded(*words), self.a.shape, self.b.shape[1]
        longest = max(map(len, chains)) * k * largest
        number = np.dtype(np.int32 if longest < 1 << 31 else np.int64)
        memory = Scratch(*(sum(w.nbytes for w in part) for part in encodings), len(chains) * m * n * number.itemsize)
        # With words of B in descending order, the products of a level are neighbours, and their sum is one product.
        across = np.concatenate(encodings[0], 1, memory.take((m, len(planes[0]) * k), encodings[0][0].dtype))
        down = np.concatenate(encodings[1][::-1], 0, memory.take((len(planes[1]) * k, n), encodings[1][0].dtype))
        products = memory.take((len(chains), m, n), number)
        for product, pairs in zip(products, chains, strict=True):
            (i, j), length = pairs[0], len(pairs) * k
            below = (len(planes[1]) - 1 - j) * k
            ks = slice(i * k, i * k + length), slice(below, below + length)
            product[:] = _summed(exact_parts(self.engine, across[:, ks[0]], down[ks[1]], largest))
        return list(products)

    def _chains(self, largest: int) -> list[list[tuple[int, int]]]:
        """Return the products in groups, those of a level together if that changes no bit of the result.

        No bit changes if int32 holds the sum of a level, and FP64 every sum of all products in units of the smallest level.
        """
        bits, most = self.row.slice_bits, self.a.shape[1] * largest
        levels = [list(pairs) for _, pairs in itertools.groupby(self.row.products, sum)]
        lowest = sum(levels[0][0])
        total = sum(most << (bits * (lowest - i - j)) for i, j in self.row.products)
        if total > 1 << 53 or most * max(map(len, levels)) >= 1 << exact_bits(self.engine):
            return [[pair] for pair in self.row.products]
        return levels

    # -- residues --------------------------------------------------------------------------------------------------------
    def _residues(self) -> np.ndarray:
        moduli, shape = self.row.moduli, (self.a.shape[0], self.b.shape[1])
        count, bits, found = len(moduli), residue_bits(moduli, self.a.shape[1]), remainders(moduli)
        memory = Scratch(*(count * size for size in (self.a.size, self.b.size, math.prod(shape))))
        planes = [memory.take((count, *s), np.int8) for s in (self.a.shape, self.b.shape, shape)]
        words_a, rows = residue_words(self.a, 1, bits, moduli, self.rows.exponents, planes[0], found.factors)
        words_b, columns = residue_words(self.b, 0, bits, moduli, self.columns.exponents, planes[1])
        for i, (a, b) in enumerate(zip(*self._encoded(words_a, words_b), strict=True)):
            for n, part in enumerate(exact_parts(self.engine, a, b, (moduli[i] // 2) ** 2)):
                found.reduce(i, part, planes[2][i], accumulate=n > 0)
        return found.joined(planes[2], rows, columns, self.dtype)

    def _split_residues(self) -> np.ndarray:
        moduli, k = self.row.moduli, self.a.shape[1]
        bits, found = residue_bits(moduli, k), split_remainders(moduli)
        shape, largest = (self.a.shape[0], self.b.shape[1]), self.row.largest_product
        planes = Scratch(2 * len(moduli) * math.prod(shape)).take((2 * len(moduli), *shape), np.int8)
        for i, p in enumerate(moduli):
            tables = [encoded(word_table(p), fmt) for fmt in self.engine.formats[:2]]
            words_a = residue_entries(self.a, 1, bits, p, tables[0], self.rows.exponents)
            words_b = residue_entries(self.b, 0, bits, p, tables[1], self.columns.exponents)
            sums = [_summed(exact_parts(self.engine, *pair, largest)) for pair in zip(words_a, words_b, strict=True)]
            found.store(i, sums, planes)
        rows, columns = (facts.exponents - np.int32(bits) for facts in (self.rows, self.columns))
        return found.joined(planes, rows, columns, self.dtype)

    # -- quantised words -------------------------------------------------------------------------------------------------
    def _quantised_words(self, axis: int, memory: Scratch | None = None) -> list[tuple[np.ndarray, float]]:
        x, facts = (self.a, self.rows) if axis == 1 else (self.b, self.columns)
        return quantise(x, self.row.words, self.word_format, float(facts.largest.max(initial=0.0)), memory)

    def _quantised(self) -> np.ndarray:
        pieces = [x.size * size for x in (self.a, self.b) for size in (x.itemsize, *(1,) * self.row.words)]
        total, finite = np.empty((self.a.shape[0], self.b.shape[1]), np.float32), True
        memory = Scratch(*pieces)
        words_a, scales_a = zip(*self._quantised_words(1, memory), strict=True)
        words_b, scales_b = zip(*self._quantised_words(0, memory), strict=True)
        multiply = self._multiplication(words_a, words_b)
        for n, (i, j) in enumerate(self.row.products):
            with np.errstate(over="ignore", under="ignore"):
                factor = np.float32(scales_a[i]) * np.float32(scales_b[j])
            finite &= bool(np.isfinite(factor))
            add_quantised(total, multiply(i, j), factor, accumulate=n > 0)
        if not finite:  # the sign of the NaN of 0 times infinity differs between CPUs
            total[np.isnan(total)] = np.nan
        return total

    def _multiplication(self, words_a, words_b) -> Callable[[int, int], np.ndarray]:
        """Return the function that computes the product of word i of A and word j of B."""
        if isinstance(self.word_format, Format):
            return lambda i, j: np.asarray(self.engine.gemm(words_a[i], words_b[j]), np.float32)
        largest = self.word_format.maximum**2
        codes_a, codes_b = self._encoded(words_a, words_b)
        return lambda i, j: _summed(exact_parts(self.engine, codes_a[i], codes_b[j], largest))


def word_values_of(x: np.ndarray, axis: int, row: RecoveryMethod, fmt: Format | IntegerFormat) -> list[np.ndarray]:
    """Return the words of finite rows (axis 1) or columns (axis 0) in float64 in their own units.

    fmt: format of quantised words.
    """
    if row.kind != "quantised":
        return scaled_words(row, x, axis)
    return [np.float64(s) * w.astype(np.float64) for w, s in quantise(x, row.words, fmt)]


@functools.lru_cache(maxsize=16)
def _codes(fmt: Format) -> np.ndarray:
    """Return the encodings of the integers -128 to 127, indexed by their byte; only integers in the format are looked up."""
    values = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float32)
    return tcm.encode(values, fmt)


def encoded(word: np.ndarray, fmt: Format | IntegerFormat) -> np.ndarray:
    """Return an int8 word encoded in an operand format that holds all of its integers."""
    if isinstance(fmt, IntegerFormat):
        return operand_bits(word, fmt, None, "a word")
    return _codes(fmt)[word.view(np.uint8)]


def exact_parts(engine: Engine, a: np.ndarray, b: np.ndarray, largest: int) -> Iterator[np.ndarray]:
    """Yield the products of parts of k that the engine sums exactly, int32 or float32, shape (m, n).

    Parameters
    ----------
    engine : Engine
        Engine with int32 or floating-point results.
    a, b : ndarray, shapes (m, k) and (k, n)
        Encodings of the operands.
    largest : int
        Largest magnitude of a product of two elements.
    """
    length = exact_products(engine, largest)
    if a.shape[1] > length and engine.formats[3].name == "fp32" and length % engine.k == 0:
        # parts are also added outside in FP32, where integers below 2^24 are exact
        outside = max(length, ((1 << 24) // largest) // length * length)
        for start in range(0, max(1, a.shape[1]), outside):
            ks = slice(start, start + outside)
            yield _integers(engine, engine.gemm_bits(a[:, ks], b[ks], promote_every=length))
        return
    for start in range(0, max(1, a.shape[1]), length):
        yield _integers(engine, engine.gemm_bits(a[:, start : start + length], b[start : start + length]))


def _integers(engine: Engine, bits: np.ndarray) -> np.ndarray:
    """Return exact results as numbers."""
    fmt = engine.formats[3]
    if isinstance(fmt, IntegerFormat):
        return bits.view(np.int32)
    values = values_of_bits(bits, fmt)
    return values if fmt.name == "fp32" else values.astype(np.int32)


def _summed(parts: Iterator[np.ndarray]) -> np.ndarray:
    """Return the sum of integer parts: the part itself if there is only one, otherwise int64."""
    total = next(parts)
    for part in parts:
        total = np.add(total, part, dtype=np.int64, casting="unsafe")
    return total
