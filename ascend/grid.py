"""This module deals the tiles of C and the slices of k to cores: grids, swizzled orders, balanced ranges.

Source of the swizzled order: CATLASS, GemmIdentityBlockSwizzle (docs/en/2_Design/01_kernel_design/02_swizzle.md): bands
of `offset` tile rows (direction 0) or tile columns (direction 1) are walked back and forth; consecutive tiles go to
consecutive cores. Source of the adaptive one: CATLASS, BlockSchedulerAswt (2_Design/01_kernel_design/05_aswt.md and
include/catlass/gemm/block/block_scheduler_aswt.hpp).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tensorcore_models.integers import integer_fields

Range = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """`Grid` holds the numbers of cores among which m, k and n are divided.

    Parameters
    ----------
    m, k, n : int
        Numbers of cores, at least 1. If `k` is above 1, each core along k computes one slice of the sums, and the slices are
        merged into one C.

    Raises
    ------
    ValueError, TypeError
        If a number is not a positive integer.
    """

    m: int = 1
    k: int = 1
    n: int = 1

    def __post_init__(self):
        integer_fields(self, "m", "k", "n")
        for name in ("m", "k", "n"):
            size = getattr(self, name)
            if size < 1:
                raise ValueError(f"a grid must have at least 1 core along {name}, got {size!r}")

    @property
    def cores(self) -> int:
        """Return the number of cores of the whole grid."""
        return self.m * self.k * self.n

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}"


@dataclass(frozen=True)
class Swizzle:
    """`Swizzle` is the order in which tiles of C are assigned to cores.

    The order goes through C in bands. A band is a group of neighbouring tile rows (or of tile columns).

    Parameters
    ----------
    offset : int
        Number of tile rows (or tile columns) in a band, at least 1.
    direction : {0, 1}
        0 for bands of tile rows, 1 for bands of tile columns.
    turns : bool
        Whether every second band is walked in reverse, as in CATLASS; if not, each band begins at the same side.
    adaptive : bool
        Whether the order follows CATLASS's adaptive order (ASWT). If the last rows or columns do not fill a band, they then
        belong to the band before. If at most half of the cores have a tile in the last round, the tiles of this round are
        cut into parts, so that all cores have work.

    Raises
    ------
    ValueError, TypeError
        If `offset` is not a positive integer, or `direction` not 0 or 1.
    """

    offset: int = 1
    direction: int = 0
    turns: bool = True
    adaptive: bool = False

    def __post_init__(self):
        integer_fields(self, "offset", "direction")
        if self.offset < 1:
            raise ValueError(
                f"a swizzle's offset, the width of its bands in tiles, must be at least 1, got {self.offset!r}"
            )
        if self.direction not in (0, 1):
            raise ValueError(
                f"a swizzle's direction must be 0 (bands of rows) or 1 (bands of columns), got {self.direction!r}"
            )

    def __str__(self) -> str:
        return (
            f"<{self.offset}, {self.direction}>"
            + ("" if self.turns else " one way")
            + (" adaptive" if self.adaptive else "")
        )

    def order(self, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and columns of all tiles in the order in which they are assigned.

        Parameters
        ----------
        rows, columns : int
            Numbers of tile rows and tile columns of C.
        """
        across, along = (rows, columns) if self.direction == 0 else (columns, rows)
        offset, number = min(self.offset, across), np.arange(rows * columns)
        bands = across // offset if self.adaptive else -(-across // offset)
        band = np.minimum(number // (offset * along), bands - 1)
        step, inside = np.divmod(
            number - band * offset * along, np.where(band < bands - 1, offset, across - band * offset)
        )
        if self.turns:
            step = np.where(band % 2, along - 1 - step, step)
        place_across = band * offset + inside
        return (place_across, step) if self.direction == 0 else (step, place_across)


class Visit(NamedTuple):
    """`Visit` is a time that a core keeps `panel` of the resident operand in L1 and computes the tiles of `tiles`.

    `panel` is a range of rows (A resident) or of columns (B resident), or None if both operands are streamed. A tile is
    (rows, columns). `slice` is the number of the slice of k. `active` is the number of cores that work at the same
    time.
    """

    panel: Range | None
    tiles: tuple[tuple[Range, Range], ...]
    slice: int
    active: int


def split_range(start: int, stop: int, step: int) -> tuple[Range, ...]:
    """Return half-open ranges of length `step` that cover [start, stop); the last one may be shorter."""
    return tuple((first, min(first + step, stop)) for first in range(start, stop, step))


def balanced_ranges(length: int, most: int, unit: int) -> tuple[Range, ...]:
    """Return ranges of nearly equal whole units that cover [0, length): as few as `most`, the longest range, allows."""
    return balanced_parts(length, -(-length // most), unit)


def balanced_parts(length: int, parts: int, unit: int) -> tuple[Range, ...]:
    """Return at most `parts` ranges of nearly equal whole units that cover [0, length).

    Longer ranges come first, so that core 0 has the most work.
    """
    units = -(-length // unit)
    parts = min(parts, units)
    if not parts:
        return ()
    short, longer = divmod(units, parts)
    edges = [unit * (part * short + min(part, longer)) for part in range(parts)] + [length]
    return tuple(zip(edges, edges[1:], strict=False))


def pieces(rows: int, columns: int, most: int) -> tuple[int, int]:
    """Return the numbers of parts along m and n, at most `most` together, into which CATLASS's ASWT cuts a tile.

    The tile has `rows` x `columns` elements. The numbers along m and n are nearly equal; of two equal numbers the one
    along m is reduced first.
    """
    along_m, along_n = min(rows, most), min(columns, most)
    while along_m * along_n > most:
        if along_m >= along_n:
            along_m -= 1
        else:
            along_n -= 1
    height, width = -(-rows // along_m), -(-columns // along_n)
    return -(-rows // height), -(-columns // width)
