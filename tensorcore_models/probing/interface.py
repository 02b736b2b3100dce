"""Defines the shape and formats of a unit, known before any probe, and dot products for it, single and in batches."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engines.instruction import Instruction
from ..formats import IntegerFormat, get_format


@dataclass(frozen=True)
class Interface:
    """`Interface` holds the shape and formats of a black box: formats of a, b, c and d; k products, m rows and n columns of one
    call.

    `block_size` products share a block scale of `scale_format`. `key` is the key of the unit's stochastic roundings, for which
    a dot product is the only element of its matrix.
    """

    formats: tuple[Any, ...]
    k: int
    scale_format: Any = None
    block_size: int | None = None
    m: int = 1
    n: int = 1
    key: int | None = None

    @classmethod
    def of(cls, unit: Any, m: int = 1, n: int = 1) -> "Interface":
        """Return the interface of an engine."""
        scale = None if unit.scale_format is None else get_format(unit.scale_format)
        return cls(tuple(unit.formats), unit.k, scale, unit.block_size, m, n, key_of(unit))

    @property
    def scale_blocks(self) -> int:
        """Return the number of block scales of one row of A, or column of B; 0 without block scales."""
        return 0 if self.block_size is None else -(-self.k // self.block_size)

    @property
    def integer(self) -> bool:
        """Return whether the unit multiplies integers."""
        return isinstance(self.formats[0], IntegerFormat)

    def tile(self, m: int, n: int) -> "Interface":
        """Return the interface with other numbers of rows and columns."""
        return dataclasses.replace(self, m=m, n=n)

    def __str__(self) -> str:
        a, b, c, d = (f.name for f in self.formats)
        scales = (
            "" if self.scale_format is None else f", {self.scale_format.name} scales for {self.block_size} products"
        )
        return f"{a} x {b} + {c} -> {d}, {self.k} products{scales}"


def key_of(unit: Any) -> int | None:
    """Return the key of a model's stochastic roundings; None for a unit without such roundings, or that is no model."""
    accumulator = getattr(unit, "accumulator", None)
    return None if accumulator is None else accumulator.key


#: Types that have the shape and the formats of a unit.
Shaped = Instruction | Interface


@dataclass
class Dot:
    """`Dot` holds the encodings of one dot product: a (k), b (k), c (scalar), scales along k or None."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None
    scale_b: np.ndarray | None

    def copy(self) -> "Dot":
        """Return a copy whose arrays are its own."""
        scales = (None if x is None else x.copy() for x in (self.scale_a, self.scale_b))
        return Dot(self.a.copy(), self.b.copy(), self.c.copy(), *scales)

    @property
    def live(self) -> np.ndarray:
        """Return the positions at which an operand is not +0."""
        return np.flatnonzero(self.a | self.b)


@dataclass(frozen=True, eq=False)
class DotBatch:
    """`DotBatch` holds the encodings of many dot products: a and b (size, k), c (size), scales (size, blocks) or None."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Return the number of dot products."""
        return len(self.c)

    @property
    def scales(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the block scales, None if there are none."""
        return None if self.scale_a is None or self.scale_b is None else (self.scale_a, self.scale_b)

    @property
    def products(self) -> np.ndarray:
        """Return the number of products other than +0 times +0, for each dot product (size): fewer are easier to read."""
        return np.count_nonzero((self.a != 0) | (self.b != 0), axis=1)

    @property
    def addends(self) -> np.ndarray:
        """Return the number of products of two operands other than +0, plus one if c is not +0, for each dot product (size)."""
        return np.count_nonzero((self.a != 0) & (self.b != 0), axis=1) + (self.c != 0)

    def rows(self, part) -> "DotBatch":
        """Return some dot products of the batch."""
        scales = () if self.scales is None else (self.scales[0][part], self.scales[1][part])
        return DotBatch(self.a[part], self.b[part], self.c[part], *scales)

    def dot(self, index: int) -> Dot:
        """Return one dot product of the batch."""
        scales = (None, None) if self.scales is None else (self.scales[0][index], self.scales[1][index])
        return Dot(self.a[index], self.b[index], np.array(self.c[index]), *scales).copy()

    @classmethod
    def of(cls, dots: Sequence[Dot]) -> "DotBatch":
        """Return a batch of single dot products."""
        return cls._combined(np.stack, dots)

    @classmethod
    def joined(cls, batches: Iterable["DotBatch"]) -> "DotBatch":
        """Return batches joined into one, in order."""
        return cls._combined(np.concatenate, list(batches))

    @classmethod
    def _combined(cls, combine: Callable, parts: Sequence[Any]) -> "DotBatch":
        names = ("a", "b", "c") if parts[0].scale_a is None else ("a", "b", "c", "scale_a", "scale_b")
        return cls(*(combine([getattr(part, name) for part in parts]) for name in names))


def is_nan(bits: np.ndarray, fmt: Any) -> np.ndarray:
    """Return a mask of the encodings that are NaN; none in formats without infinities."""
    if not fmt.has_inf:
        return np.zeros(np.shape(bits), bool)
    return (bits & fmt.container.type(fmt.magnitude_mask)) > fmt.container.type(fmt.inf_bits)


def along_diagonals(unit: Shaped, batch: DotBatch) -> tuple[Any, ...]:
    """Return a (count, m, k), b (count, k, n), c (count, m, n) and scales or None, with a batch's dot products on their
    diagonals."""
    width = min(unit.m, unit.n)
    count = -(-batch.size // width)
    tile, place = np.divmod(np.arange(batch.size), width)

    def spread(values: np.ndarray | None, rows: int, columns: bool) -> np.ndarray | None:
        if values is None:
            return None
        full = np.zeros((count, rows, values.shape[1]), values.dtype)
        full[tile, place] = values
        return np.ascontiguousarray(full.swapaxes(1, 2)) if columns else full

    c = np.zeros((count, unit.m, unit.n), batch.c.dtype)
    c[tile, place, place] = batch.c
    return (
        spread(batch.a, unit.m, False), spread(batch.b, unit.n, True), c,
        spread(batch.scale_a, unit.m, False), spread(batch.scale_b, unit.n, True),
    )  # fmt: skip
