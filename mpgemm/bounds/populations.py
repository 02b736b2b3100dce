"""Right products that a test may meet: fresh pairs of a distribution, or one pair with its k in any order.

A population gives its whole product, and blocks of others: some rows of A and columns of B with all of k. The elements of a
block are those of a whole product of the shape asked about, so that what is learnt of them holds for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpgemm.bounds.bounded_product import Data
from mpgemm.inputs.matrices import generate, get_distribution

#: Rows and columns at most of a block that is drawn.
SIDE = 64
#: Drawn pairs have seeds from here on, beyond those that tests have.
FRESH = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Population(ABC):
    """Products of one shape."""

    fresh: ClassVar[bool]  #: Whether other operands are drawn each time.
    shape: tuple[int, int, int]  #: (m, k, n) of the whole products.
    side: int = SIDE  #: Rows and columns at most of a block.

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        return min(self.shape[0], self.side), min(self.shape[2], self.side)

    @abstractmethod
    def whole(self) -> Data:
        """Return the whole product: that of the first seed, or the given one."""

    def corner(self) -> Data:
        """Return rows and columns of it, evenly spread."""
        return corner(self.whole(), self.side)

    @abstractmethod
    def blocks(self, count: int) -> Iterator[Data]:
        """Blocks, each of another product."""


def corner(data: Data, side: int = SIDE) -> Data:
    """At most `side` rows of A and columns of B, evenly spread; the rest of the product is left out."""
    return part_of(data, *evenly_spread(data, side))


def evenly(size: int, most: int) -> np.ndarray:
    """At most so many of the numbers below `size`, evenly spread, the first and the last among them."""
    return np.linspace(0, size - 1, min(size, most)).astype(int)


def evenly_spread(data: Data, side: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `side` rows of A and columns of B."""
    return evenly(data.a.shape[0], side), evenly(data.b.shape[1], side)


def part_of(data: Data, rows: np.ndarray, columns: np.ndarray) -> Data:
    """Return some rows of A and columns of B."""
    c = None if data.c is None else data.c[np.ix_(rows, columns)]
    scaling = None if data.scaling is None else data.scaling.part(rows, columns)
    return Data(data.a[rows], data.b[:, columns], c, scaling)


def random_part(data: Data, block: tuple[int, int], rng: np.random.Generator) -> Data:
    """Return random rows of A and columns of B."""
    sizes = zip((data.a.shape[0], data.b.shape[1]), block, strict=True)
    return part_of(data, *(np.sort(rng.choice(n, size, replace=False)) for n, size in sizes))


def in_random_order(data: Data, together: int, rng: np.random.Generator) -> Data:
    """Return the data with k in a random order, so many products together: a multiple of those that share a block scale."""
    k = data.a.shape[1]
    whole = k // together
    places = rng.permutation(whole)[:, None]
    order = np.append((places * together + np.arange(together)).ravel(), np.arange(whole * together, k))
    data = data._replace(a=data.a[:, order], b=data.b[order])
    if data.scaling is None or data.scaling.block is None:
        return data
    everything = np.arange(data.a.shape[0]), np.arange(data.b.shape[1])
    each = together // data.scaling.block
    rest = np.arange(whole * each, -(-k // data.scaling.block))
    blocks = np.append((places * each + np.arange(each)).ravel(), rest)
    return data._replace(scaling=data.scaling.part(*everything, blocks))


@dataclass(frozen=True, kw_only=True)
class Drawn(Population):
    """Pairs of a distribution."""

    distribution: str
    seed: int
    parameters: dict

    fresh = True

    def _pair(self, index: int, m: int, n: int) -> Data:
        return Data(*generate(self.distribution, m, self.shape[1], n, index, **self.parameters))

    def whole(self) -> Data:
        return self._pair(self.seed, self.shape[0], self.shape[2])

    def corner(self) -> Data:
        if get_distribution(self.distribution).independent:
            return self._pair(self.seed, *self.block)
        return super().corner()

    def blocks(self, count: int) -> Iterator[Data]:
        """Blocks, each of a fresh pair of its own: the first rows and columns, or, where rows depend on how many there are,
        random ones of the whole pair. Several blocks of one pair would count as draws and be none."""
        first = self.seed + FRESH
        if get_distribution(self.distribution).independent:
            yield from (self._pair(first + i, *self.block) for i in range(count))
            return
        rng = np.random.default_rng(first)
        for pair in range(first, first + count):
            yield random_part(self._pair(pair, self.shape[0], self.shape[2]), self.block, rng)

    def __str__(self) -> str:
        return f"fresh pairs of {self.distribution}"


@dataclass(frozen=True, kw_only=True)
class Orders(Population):
    """Given operands, their k in any order: on one pair a kernel always makes the same errors; only its order is not known."""

    data: Data
    together: int = 1  #: Products that keep together, since they share a block scale.

    fresh = False

    def whole(self) -> Data:
        return self.data

    def blocks(self, count: int) -> Iterator[Data]:
        """Yield random rows and columns, k in a random order."""
        rng = np.random.default_rng(0)
        for _ in range(count):
            yield in_random_order(random_part(self.data, self.block, rng), self.together, rng)

    def __str__(self) -> str:
        return "random orders of k on these data"
