"""How the tiles of C and the slices of k are dealt to cores: grids, swizzled orders, balanced ranges.

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
    """`Grid` is the number of cores along m, k and n.

    Parameters
    ----------
    m, k, n : int
        At least 1. `k` slices of the inner dimension are merged into one C.

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
                raise ValueError(f"a grid has at least 1 core along {name}, got {size!r}")

    @property
    def cores(self) -> int:
        """Return the number of cores of the whole grid."""
        return self.m * self.k * self.n

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}"


@dataclass(frozen=True)
class Swizzle:
    """`Swizzle` is the order in which tiles of C are assigned to cores: in bands of `offset` tile rows (direction 0)
    or tile columns (direction 1).

    Parameters
    ----------
    offset : int
        Width of a band, at least 1.
    direction : {0, 1}
        0 for bands of tile rows, 1 for bands of tile columns.
    turns : bool
        Whether every second band is walked back, as CATLASS does; else each begins at the same side.
    adaptive : bool
        As in CATLASS's ASWT: the last band also takes the rows or columns that do not fill a band, and if at most
        half of the cores have a tile in the last round, those tiles are cut into pieces for the others.

    Raises
    ------
    ValueError, TypeError
        If a number is not allowed.
    """

    offset: int = 1
    direction: int = 0
    turns: bool = True
    adaptive: bool = False

    def __post_init__(self):
        integer_fields(self, "offset", "direction")
        if self.offset < 1:
            raise ValueError(f"a swizzle's offset is an integer from 1, got {self.offset!r}")
        if self.direction not in (0, 1):
            raise ValueError(
                f"a swizzle's direction is 0 (bands of rows) or 1 (bands of columns), got {self.direction!r}"
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
            Tiles of C.
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
    """One stay of a core: it keeps `panel` of the resident operand in L1 and computes the tiles of `stream`.

    `panel` is a range of rows (A resident) or of columns (B resident), None where both operands are streamed; a tile is
    (rows, columns); `slice` is the number of the slice of k; `active` cores are at the same stay.
    """

    panel: Range | None
    tiles: tuple[tuple[Range, Range], ...]
    slice: int
    active: int


def split_range(start: int, stop: int, step: int) -> tuple[Range, ...]:
    """Return half-open ranges of `step` that cover [start, stop); the last may be shorter."""
    return tuple((first, min(first + step, stop)) for first in range(start, stop, step))


def balanced_ranges(length: int, most: int, unit: int) -> tuple[Range, ...]:
    """Return ranges that cover [0, length), as few as `most` (the longest, in whole units) allows, of nearly equal whole
    units."""
    return balanced_parts(length, -(-length // most), unit)


def balanced_parts(length: int, parts: int, unit: int) -> tuple[Range, ...]:
    """At most `parts` ranges of nearly equal whole units that cover [0, length); longer ones first: core 0 has most work."""
    units = -(-length // unit)
    parts = min(parts, units)
    if not parts:
        return ()
    short, longer = divmod(units, parts)
    edges = [unit * (part * short + min(part, longer)) for part in range(parts)] + [length]
    return tuple(zip(edges, edges[1:], strict=False))


def pieces(rows: int, columns: int, most: int) -> tuple[int, int]:
    """Return pieces along m and n, at most `most` together, in which CATLASS's ASWT cuts a tile of `rows` x `columns` elements.

    Nearly as many along m as along n; of two equal numbers that along m gives way first.
    """
    along_m, along_n = min(rows, most), min(columns, most)
    while along_m * along_n > most:
        if along_m >= along_n:
            along_m -= 1
        else:
            along_n -= 1
    height, width = -(-rows // along_m), -(-columns // along_n)
    return -(-rows // height), -(-columns // width)
