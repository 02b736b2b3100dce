"""Defines recovery methods as sums over an arithmetic, and the arithmetic of hardware.

:func:`combine` states how each accumulation sums the products of words; an :class:`Arithmetic` defines a sum inside the core
and a sum outside. :class:`EngineArithmetic` is that of the hardware; others compute in exact rational numbers
(:mod:`mpgemm.bounds.attribution`) or carry error bounds (:mod:`mpgemm.bounds.method_bounds`).
"""

import dataclasses
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from mpgemm.recovery.bands import Bands, band_steps, unscaled_words
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.parts import part_length
from mpgemm.recovery.sums import ChainSums, sums_of
from tensorcore_models import kernels
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.machine.workspace import Scratch

#: Bytes of operand copies that one call of the engine may take; longer k is divided into chained calls with the same bits.
CHAIN_BYTES = 1 << 26

Pair = tuple[Any, Any]


def checked_addend(given: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return C in the type in which it is added; raise ValueError if that type cannot hold one of its values."""
    c = given.astype(dtype)
    lost = (c != given) & ~np.isnan(given)
    if lost.any():
        raise ValueError(
            f"c: {int(lost.sum())} of {c.size} values are not representable in {np.dtype(dtype).name}, the format of the "
            "addition; round c first"
        )
    return c


def turn(order: str | int, engine: Engine) -> int | None:
    """Return the number of k after which the products of words in one chain take turns, None if each goes over all of k.

    order: "step", "term" or a number, as in :class:`mpgemm.RecoveryMethod`.
    engine: engine of the chain. Raises ValueError if the number is no multiple of its k step.
    """
    if order == "term":
        return None
    length = engine.k if isinstance(order, str) else order
    if length % engine.k:
        raise ValueError(
            f"order is {length} products of k, expected a multiple of {engine.k}, the k step of {engine.label}"
        )
    return length


class Arithmetic(Protocol):
    """`Arithmetic` defines the operations of a method: sums inside the core, and scaling and adding outside.

    Values may have any type.
    """

    engine: Engine

    def chain(self, pairs: Sequence[Pair], seed):
        """Return the sum of products of words in one chain through the core, from `seed` (None is zero)."""

    def promoted(self, pair: Pair, every: int | None):
        """Return the sum of one product of words; each k step (or each `every` products) starts at zero and is added
        outside."""
        return self.elementwise([(pair, 0)]) if every is None else self.blocks(every, [pair], None)

    def elementwise(self, weighted: Sequence[tuple[Pair, int]]):
        """Return the sum of products, each times 2^exponent; each k step of each product starts at zero, all are added
        outside."""

    def blocks(self, every: int, pairs: Sequence[Pair], c):
        """Return the sum of products in chains from zero over blocks of `every` k, which are added outside to c (None
        is zero)."""
        value = c
        for start in range(0, pairs[0][0].shape[1], every):
            ks = slice(start, start + every)
            part = self.chain([(a[:, ks], b[ks]) for a, b in pairs], None)
            value = part if value is None else self.add(value, part)
        return value

    def staged(self, every: int, pairs: Sequence[Pair]):
        """Return the sum, outside, of a chain over the first k step and of chains over blocks of `every` k."""
        first = slice(0, self.engine.k)
        value = self.chain([(a[:, first], b[first]) for a, b in pairs], None)
        if pairs[0][0].shape[1] > self.engine.k:
            value = self.blocks(every, [(a[:, self.engine.k :], b[self.engine.k :]) for a, b in pairs], value)
        return value

    def banded(self, words_a: Sequence, words_b: Sequence, bands: Bands, scale: int):
        """Return the sum, outside, of chains from zero over k steps; before each band but the first the unit scales its sum."""
        total = None
        for start in range(0, words_a[0].shape[1], self.engine.k):
            ks, part = slice(start, start + self.engine.k), None
            for band in bands:
                seed = None if part is None else self.scaled_input(part, scale)
                part = self.chain([(words_a[i][:, ks], words_b[j][ks]) for i, j in band], seed)
            total = part if total is None else self.add(total, part)
        return total

    def in_parts(self, parts: int, words_a: Sequence, words_b: Sequence, one: Callable[[Sequence, Sequence], Any]):
        """Return the sum, outside, of the results of `one` for the words of each part of k."""
        k, total = words_a[0].shape[1], None
        length = part_length(parts, k)
        for start in range(0, k, length):
            ks = slice(start, start + length)
            part = one([w[:, ks] for w in words_a], [w[ks] for w in words_b])
            total = part if total is None else self.add(total, part)
        return total

    def scaled_input(self, value, scale: int):
        """Return value 2^-scale, computed inside of the unit."""
        return self.scale(value, -scale)

    def scale(self, value, exponent: int):
        """Return value 2^exponent, computed outside."""

    def add(self, x, y):
        """Return x + y, computed outside."""


def combine(row: RecoveryMethod, scale: int, words_a: Sequence, words_b: Sequence, c, arithmetic: Arithmetic):
    """Return the products of words, whose scales differ by 2^`scale`, summed by the method's accumulation, plus c."""
    if row.parts != 1:
        one = dataclasses.replace(row, parts=1)
        total = arithmetic.in_parts(
            int(row.parts), words_a, words_b, lambda a, b: combine(one, scale, a, b, None, arithmetic)
        )
        return _plus(total, c, arithmetic)
    sums = sums_of(row)
    if sums is not None:
        return _chained(row, sums, scale, [(words_a[i], words_b[j]) for i, j in row.products], c, arithmetic)
    pairs = {(i, j): (words_a[i], words_b[j]) for i, j in row.products}
    if row.accumulation == "staged" and row.restart_every is not None:
        return _plus(arithmetic.staged(row.restart_every, [pairs[p] for p in row.products]), c, arithmetic)
    if row.accumulation == "elementwise":
        order = sorted(row.products, key=lambda p: (sum(p), -p[0]))
        return _plus(arithmetic.elementwise([(pairs[p], -sum(p) * scale) for p in order]), c, arithmetic)
    levels = [(level, list(members)) for level, members in groupby(row.products, key=sum)]
    if row.accumulation == "bands":
        return _plus(arithmetic.banded(words_a, words_b, [members for _, members in levels], scale), c, arithmetic)
    value, before = c, 0
    for level, members in levels:
        seed = None if value is None else arithmetic.scale(value, (level - before) * scale)
        value, before = arithmetic.chain([pairs[p] for p in members], seed), level
    return arithmetic.scale(value, -before * scale) if before else value


def _chained(row: RecoveryMethod, sums: ChainSums, scale: int, pairs: Sequence[Pair], c, arithmetic: Arithmetic):
    """Return the sum of whole chains that are joined outside."""
    seed = c if sums.seeds else None

    def total(chain: int):
        members = [pair for pair, number in zip(pairs, sums.chains, strict=True) if number == chain]
        if not sums.restarts[chain]:
            return arithmetic.chain(members, seed)
        if sums.seeds and row.restart_every is not None:
            return arithmetic.blocks(row.restart_every, members, seed)
        return arithmetic.promoted(members[0], row.restart_every)

    value = None
    for level, step in zip(sums.levels, sums.steps, strict=True):
        part = total(level[0])
        for chain in level[1:]:
            part = arithmetic.add(part, total(chain))
        value = part if value is None else arithmetic.add(value, part)
        value = arithmetic.scale(value, -step * scale) if step else value
    return value if sums.seeds else _plus(value, c, arithmetic)


def _plus(value, c, arithmetic: Arithmetic):
    return value if c is None else arithmetic.add(value, c)


class EngineArithmetic(Arithmetic):
    """`EngineArithmetic` sums as hardware does: chains on an engine, and FP32 (FP64) rounded to nearest outside.

    Words are encodings of the engine's operand format; values are float32 arrays, or float64 if the engine's results are FP64.

    order: order of several products in one chain: "step", "term" or a number of k.
    shape: shape (m, n) of the result.
    """

    def __init__(self, engine: Engine, order: str | int, shape: tuple[int, int]):
        self.engine = engine
        self.order = order
        self.turn = turn(order, engine)
        self.shape = shape
        self.dtype = np.dtype(np.float64 if engine.formats[3].name == "fp64" else np.float32)

    def operand(self, c: np.ndarray) -> np.ndarray:
        """Return c as a value; raise ValueError if the format of the sums cannot hold all elements of c."""
        with np.errstate(over="ignore"):
            value = c.astype(self.dtype)
        lost = (value != c) & ~np.isnan(c)
        if lost.any():
            raise ValueError(
                f"c: {int(lost.sum())} of {c.size} values are not representable in {self.dtype.name}, the format of "
                f"the addition; round c first"
            )
        return value

    def nothing(self) -> np.ndarray:
        """Return the sum of no products."""
        return np.zeros(self.shape, self.dtype)

    def chain(self, pairs, seed):
        c_format, d_format = self.engine.formats[2:]
        bits = None if seed is None else operand_bits(seed, c_format, "rne", "c")
        if c_format == d_format:
            for a, b in self._pieces(pairs):
                bits = self.engine.gemm_bits(a, b, bits)
        else:
            bits = self.engine.gemm_bits(*self._joined(pairs), bits)
        return self._values(bits)

    def promoted(self, pair, every):
        inside = every is None or every % self.engine.k == 0
        if not inside:
            return self.blocks(every, [pair], self.nothing())
        if self.engine.formats[3].name not in ("fp32", "fp64"):  # the engine would round the sum to its own format
            return super().promoted(pair, every)
        return self._values(self.engine.gemm_bits(*pair, promote_every=every or self.engine.k))

    def elementwise(self, weighted):
        total = self.nothing()
        for parts in zip(*(self._steps(pair) for pair, _ in weighted), strict=True):
            for part, (_, exponent) in zip(parts, weighted, strict=True):
                total = self.add(total, self.scale(part, exponent))
        return total

    def banded(self, words_a, words_b, bands, scale):
        engine, (m, n) = self.engine, self.shape
        bits = self._bands_in_lanes(words_a, words_b, bands, scale)
        if bits is not None:
            return self._values(bits)
        unscaled = unscaled_words(engine, words_a, words_b, bands, scale)
        if unscaled is not None:
            pairs = [(unscaled[0][i], unscaled[1][j]) for band in bands for i, j in band]
            for a, b in self._pieces(pairs):
                bits = engine.gemm_bits(a, b, bits, promote_every=engine.k * len(pairs))
            return self._values(bits)
        if not isinstance(engine, MatrixEngine):
            return self.add(self.nothing(), super().banded(words_a, words_b, bands, scale))
        total, steps = self.nothing(), max(1, CHAIN_BYTES // max(1, 12 * m * n))
        for bits in band_steps(engine, words_a, words_b, bands, scale, steps):
            total = self.add(total, self._values(bits))
        return total

    def _bands_in_lanes(self, words_a, words_b, bands, scale) -> np.ndarray | None:
        """Return the encodings of the sums from kernels that scale their sums between the bands, None if none apply."""
        engine = self.engine
        if not isinstance(engine, MatrixEngine) or getattr(engine, "rollup", None) is not None:
            return None
        pairs = [(words_a[i], words_b[j]) for band in bands for i, j in band]
        each = engine.k // engine.accumulator.terms_per_step
        firsts = [each * sum(map(len, bands[:number])) for number in range(1, len(bands))]
        bits: np.ndarray | None = np.zeros(self.shape, engine.formats[2].container)
        for a, b in self._pieces(pairs):
            bits = kernels.scaled_bits(engine, a, b, bits, engine.k * len(pairs), firsts, -scale)
            if bits is None:
                return None
        return bits

    def scaled_input(self, value, scale):
        fmt = self.engine.formats[2]
        return self._values_of(self.engine.scaled_input(operand_bits(value, fmt, "rne", "c"), scale), fmt)

    def _steps(self, pair):
        """Yield the result of every k step from zero, in order; many steps are one batch of the engine's kernel."""
        (a, b), step = pair, self.engine.k
        k = a.shape[1]
        if not isinstance(self.engine, MatrixEngine):
            for start in range(0, k, step):
                yield self._values(self.engine.gemm_bits(a[:, start : start + step], b[start : start + step]))
            return
        m, n = self.shape
        count = max(1, CHAIN_BYTES // max(1, 4 * m * n + step * (m * a.itemsize + n * b.itemsize)))
        c_format = self.engine.formats[2]
        for start in range(0, k, count * step):
            x, y = a[:, start : start + count * step], b[start : start + count * step]
            pad = -x.shape[1] % step
            x, y = np.pad(x, ((0, 0), (0, pad))), np.pad(y, ((0, pad), (0, 0)))
            steps = x.shape[1] // step
            x = np.ascontiguousarray(x.reshape(m, steps, step).transpose(1, 0, 2))
            bits = kernels.batch_bits(
                self.engine, x, y.reshape(steps, step, n), np.zeros((steps, m, n), c_format.container)
            )
            yield from self._values(bits)

    def scale(self, value, exponent):
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(value, exponent) if exponent else value

    def add(self, x, y):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return x + y

    def _values(self, bits: np.ndarray) -> np.ndarray:
        return self._values_of(bits, self.engine.formats[3])

    def _values_of(self, bits: np.ndarray, fmt) -> np.ndarray:
        return values_of_bits(bits, fmt).astype(self.dtype, copy=False)

    def _pieces(self, pairs):
        """Yield operand pairs whose chains, one after the other, are the chain of all `pairs`."""
        if len(pairs) == 1 or self.turn is None:
            yield from pairs
            return
        a, b = pairs[0]
        step = self.turn
        bytes_for_each_k = len(pairs) * (a.shape[0] * a.itemsize + b.shape[1] * b.itemsize)
        length = max(1, CHAIN_BYTES // max(1, bytes_for_each_k * step)) * step
        for start in range(0, a.shape[1], length):
            yield self._joined([(a[:, start : start + length], b[start : start + length]) for a, b in pairs])

    def _joined(self, pairs) -> Pair:
        """Return all products as one pair with a longer k, in the order of the chain, padded with zeros to whole turns."""
        if len(pairs) == 1:
            return pairs[0]
        step, terms = self.turn or self.engine.k, len(pairs)
        pad = -pairs[0][0].shape[1] % step
        if pad:
            pairs = [(np.pad(x, ((0, 0), (0, pad))), np.pad(y, ((0, pad), (0, 0)))) for x, y in pairs]
        a, b = [x for x, _ in pairs], [y for _, y in pairs]
        if self.turn is None:
            return np.concatenate(a, axis=1), np.concatenate(b, axis=0)
        (m, k), n = a[0].shape, b[0].shape[1]
        memory = Scratch(terms * m * k * a[0].itemsize, terms * k * n * b[0].itemsize)
        joined_a = memory.take((m, k // step, terms), f"V{step * a[0].itemsize}")  # copied a whole step at a time
        joined_b = memory.take((k // step, terms, step, n), b[0].dtype)
        for i, (x, y) in enumerate(pairs):
            joined_a[:, :, i] = np.ascontiguousarray(x).view(joined_a.dtype)
            joined_b[:, i] = y.reshape(k // step, step, n)
        whole = terms * k
        return joined_a.view(a[0].dtype).reshape(m, whole), joined_b.reshape(whole, n)
