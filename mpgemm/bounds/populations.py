"""Draws correct products that a test may meet: fresh pairs of a distribution, or one pair with its k in any order.

A population gives one whole product, and blocks of other products: some rows of A and columns of B with all of k. The elements
of a block are elements of a whole product of the stated shape, so statistics of blocks hold for whole products.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpgemm.bounds.bounded_product import Data
from mpgemm.inputs.matrices import generate, get_distribution

#: Largest number of rows and of columns of a drawn block.
SIDE = 64
#: First seed of drawn pairs, above the seeds that tests use.
FRESH = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Population(ABC):
    """`Population` is a set of products of one shape."""

    fresh: ClassVar[bool]  #: Whether every block has operands of its own.
    shape: tuple[int, int, int]  #: Shape (m, k, n) of the whole products.
    side: int = SIDE  #: Largest number of rows and of columns of a block.

    @property
    def block(self) -> tuple[int, int]:
        """Return the numbers of rows and columns of a block."""
        return min(self.shape[0], self.side), min(self.shape[2], self.side)

    @abstractmethod
    def whole(self) -> Data:
        """Return the operands of one whole product: the pair of the first seed, or the given pair."""

    def corner(self) -> Data:
        """Return evenly spread rows and columns of the whole product's operands."""
        return corner(self.whole(), self.side)

    @abstractmethod
    def blocks(self, count: int) -> Iterator[Data]:
        """Yield `count` blocks, each of another product."""


def corner(data: Data, side: int = SIDE) -> Data:
    """Return at most `side` evenly spread rows of A and columns of B."""
    return part_of(data, *evenly_spread(data, side))


def evenly(size: int, most: int) -> np.ndarray:
    """Return at most `most` evenly spread indices below `size`, including the first and the last."""
    return np.linspace(0, size - 1, min(size, most)).astype(int)


def evenly_spread(data: Data, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices of at most `side` evenly spread rows of A and columns of B."""
    return evenly(data.a.shape[0], side), evenly(data.b.shape[1], side)


def part_of(data: Data, rows: np.ndarray, columns: np.ndarray) -> Data:
    """Return the operands of these rows of A and columns of B."""
    c = None if data.c is None else data.c[np.ix_(rows, columns)]
    scaling = None if data.scaling is None else data.scaling.part(rows, columns)
    return Data(data.a[rows], data.b[:, columns], c, scaling)


def random_part(data: Data, block: tuple[int, int], rng: np.random.Generator) -> Data:
    """Return the operands of random rows of A and columns of B."""
    sizes = zip((data.a.shape[0], data.b.shape[1]), block, strict=True)
    return part_of(data, *(np.sort(rng.choice(n, size, replace=False)) for n, size in sizes))


def in_random_order(data: Data, together: int, rng: np.random.Generator) -> Data:
    """Return the data with k in a random order in which `together` neighbouring products stay together.

    `together` must be a multiple of the size of a block of scales.
    """
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
    """`Drawn` is the population of all pairs of a distribution."""

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
        """Yield blocks, each of a fresh pair, because several blocks of one pair would not be independent draws.

        A block has the first rows and columns, or, in distributions whose rows depend on their number, random ones.
        """
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
    """`Orders` is the population of given operands with their k in any order, because the kernel's order is not known."""

    data: Data
    together: int = 1  #: Number of products that stay together because they share a block scale.

    fresh = False

    def whole(self) -> Data:
        return self.data

    def blocks(self, count: int) -> Iterator[Data]:
        """Yield blocks of random rows and columns with k in a random order."""
        rng = np.random.default_rng(0)
        for _ in range(count):
            yield in_random_order(random_part(self.data, self.block, rng), self.together, rng)

    def __str__(self) -> str:
        return "random orders of k on these data"
