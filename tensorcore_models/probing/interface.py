"""Defines a unit's own statements before anybody probes it, shape and formats, and dot products for it, one or many."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engines.instruction import Instruction
from ..formats import IntegerFormat, get_format


@dataclass(frozen=True)
class Interface:
    """Shape and formats of a black box: formats of a, b, c and d, and k products, m rows and n columns of one call.

    `block_size` products share a block scale of `scale_format`. `key` is the key that the unit was given for stochastic
    roundings; a dot product is the one element of its matrix.
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
        """Block scales of one row of A, or column of B; 0 without."""
        return 0 if self.block_size is None else -(-self.k // self.block_size)

    @property
    def integer(self) -> bool:
        """Whether it multiplies integers."""
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
    """Return the key of a model's stochastic roundings; None of a unit without, or that is no model."""
    accumulator = getattr(unit, "accumulator", None)
    return None if accumulator is None else accumulator.key


#: What has the shape and the formats of a unit.
Shaped = Instruction | Interface


@dataclass
class Dot:
    """Encodings of one dot product: a (k), b (k), c (no axis), scales along k or None."""

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
        """Positions at which an operand is not +0."""
        return np.flatnonzero(self.a | self.b)


@dataclass(frozen=True, eq=False)
class DotBatch:
    """Encodings of many dot products: a and b (size, k), c (size), scales (size, blocks) or None."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None

    @property
    def size(self) -> int:
        """How many."""
        return len(self.c)

    @property
    def scales(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The block scales, None without."""
        return None if self.scale_a is None or self.scale_b is None else (self.scale_a, self.scale_b)

    @property
    def products(self) -> np.ndarray:
        """Products that are not +0 times +0, of each (size): the fewer, the easier it is to read."""
        return np.count_nonzero((self.a != 0) | (self.b != 0), axis=1)

    @property
    def addends(self) -> np.ndarray:
        """Products of two operands that are not +0, and c where it is not, of each (size)."""
        return np.count_nonzero((self.a != 0) & (self.b != 0), axis=1) + (self.c != 0)

    def rows(self, part) -> "DotBatch":
        """Return part of the batch."""
        scales = () if self.scales is None else (self.scales[0][part], self.scales[1][part])
        return DotBatch(self.a[part], self.b[part], self.c[part], *scales)

    def dot(self, index: int) -> Dot:
        """Return one of them."""
        scales = (None, None) if self.scales is None else (self.scales[0][index], self.scales[1][index])
        return Dot(self.a[index], self.b[index], np.array(self.c[index]), *scales).copy()

    @classmethod
    def of(cls, dots: Sequence[Dot]) -> "DotBatch":
        """Return a batch of single dot products."""
        return cls._combined(np.stack, dots)

    @classmethod
    def joined(cls, batches: Iterable["DotBatch"]) -> "DotBatch":
        """Return batches one after the other."""
        return cls._combined(np.concatenate, list(batches))

    @classmethod
    def _combined(cls, combine: Callable, parts: Sequence[Any]) -> "DotBatch":
        names = ("a", "b", "c") if parts[0].scale_a is None else ("a", "b", "c", "scale_a", "scale_b")
        return cls(*(combine([getattr(part, name) for part in parts]) for name in names))


def is_nan(bits: np.ndarray, fmt: Any) -> np.ndarray:
    """Return which encodings are NaN; none in formats without infinities."""
    if not fmt.has_inf:
        return np.zeros(np.shape(bits), bool)
    return (bits & fmt.container.type(fmt.magnitude_mask)) > fmt.container.type(fmt.inf_bits)


def along_diagonals(unit: Shaped, batch: DotBatch) -> tuple[Any, ...]:
    """Return a (count, m, k), b (count, k, n), c (count, m, n) and scales or None with the dots of a batch along their
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
