"""This module defines the kernel for grids of cores, which deals tiles of C, and slices of k if tiles are few, to the cores.

A panel of A or of B stays in L1 (`resident` "a" or "b"; cores in a rectangle m x k x n), or both operands are streamed
and C stays in L0C over the whole slice ("none"). With "none", tiles are dealt one by one in a swizzled order, as in
CATLASS. With a grid along m or n each core owns one rectangle of neighbouring tiles and walks it row by row, as in
pto-isa, or column by column (AscendC's iterateOrder 0). Slices are merged by atomic additions in memory or by a pass
that adds them in order.
"""

from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from ascend.blocking import fractals
from ascend.grid import Grid, Range, Swizzle, Visit, balanced_parts, pieces, split_range
from ascend.kernels.base import CubeKernel
from ascend.kernels.options import BlockedProduct, blocks_in_group, stream_depth
from ascend.schedule_options import Resident, ScheduleOptions


class GridKernel(CubeKernel):
    """`GridKernel` deals tiles of C and slices of k to a grid of cores."""

    kernel: ClassVar[str] = "grid"

    @classmethod
    def placed(cls, place: BlockedProduct, options: ScheduleOptions) -> Self:
        """Return a schedule for the options.

        Raises ValueError for an impossible grid or merge, or a panel that overflows L1.
        """
        grid, resident = _grid(place, options)
        bare = cls(
            **place.of_schedule(), **options.shared_options(), n_fused=1, grid=grid, resident=resident,
            swizzle=_walk(place, options.swizzle, resident == "none" and grid.m * grid.n > 1),
            balanced=options.balanced is None or bool(options.balanced),
        )  # fmt: skip
        bare.check_merge(len(bare.k_slices))
        if bare.swizzle.adaptive and len(bare.k_slices) > 1:
            raise ValueError(
                f"got the tile order {bare.swizzle} with {len(bare.k_slices)} slices of k, but this order cuts tiles of C and "
                f"not k: leave out the split, or take the order {replace(bare.swizzle, adaptive=False)}"
            )
        start, stop = bare.k_slices[0]
        if resident == "none":
            grouped = replace(bare, n_fused=options.n_fused or fractals(stop - start, bare.blocking.bk))
        else:
            few = blocks_in_group(bare, options.n_fused, lambda blocks, most: -(-blocks // -(-blocks // most)))
            grouped = replace(bare, n_fused=few)
        return replace(grouped, depth=options.depth or (1 if options.template == "norm" else grouped.fitting_depth))

    @property
    def fitting_depth(self) -> int:
        """Return the number of L1 buffers of a streamed operand that fit beside the panel."""
        b, each = self.blocking, self.words * self.format.stored(self.blocking.bk)
        streamed = b.bm * (self.resident != "a") + b.bn * (self.resident != "b")
        left = self.placed_on.l1_bytes - each * self.panel_blocks * (b.bm if self.resident == "a" else b.bn)
        return int(stream_depth(left, each * streamed, self.words, self.stream_slots))

    def placement(self) -> str:
        """Return the order of the tiles, or the resident operand."""
        if self.resident != "none":
            return f"{self.resident.upper()} kept"
        if self.deals_one_by_one:
            return f"order {self.swizzle}"
        return "rectangles by columns" if self.swizzle.direction else "rectangles"

    def cores_text(self) -> str:
        """Return the grid; if tiles are dealt one by one, the number of cores with the slices of k."""
        if not self.deals_one_by_one:
            return str(self.grid)
        slices = len(self.k_slices)
        return f"{self.used_cores}" + (f" (k/{slices})" if slices > 1 else "")

    # -------------------------------------------------------- where nothing is resident

    @property
    def deals_one_by_one(self) -> bool:
        """Return whether tiles go to the cores one by one in the order of the swizzle."""
        return self.resident == "none" and self.grid.m * self.grid.n == 1

    @property
    def owns_rectangles(self) -> bool:
        """Return whether each core owns one rectangle of neighbouring tiles."""
        return self.resident == "none" and not self.deals_one_by_one

    @property
    def used_cores(self) -> int:
        """Return the number of cores that have work."""
        if self.owns_rectangles:
            return len(self._rectangles)
        if not self.deals_one_by_one:
            return super().used_cores
        return max(min(self.cores, self.tiles), len(self._last_round))

    def active_cores(self, wave: int) -> int:
        """Return the number of cores that have work in a wave."""
        return self._active[wave] if self.resident == "none" else super().active_cores(wave)

    @cached_property
    def _active(self) -> list[int]:
        """Return the number of cores at work in each wave, if no operand is resident."""
        if self.deals_one_by_one:
            full, rest = divmod(self.tiles, self.cores)
            return [self.cores] * full + [len(self._last_round) or rest] * (rest > 0)
        sizes = [len(rows) * len(columns) for rows, columns, _ in self._rectangles]
        return (len(sizes) - np.bincount(sizes).cumsum()[:-1]).tolist()

    def visits(self, core: int) -> tuple[Visit, ...]:
        """Return one core's visits in order; core 0 has the most work."""
        if self.resident != "none":
            return super().visits(core)
        if self.owns_rectangles:
            rectangles = self._rectangles
            if core >= len(rectangles):
                return ()
            own_rows, own_columns, k_slice = rectangles[core]
            tiles = [
                (own_rows[i], own_columns[j])
                for i, j in zip(*self.swizzle.order(len(own_rows), len(own_columns)), strict=True)
            ]
            return tuple(Visit(None, (tile,), k_slice, self._active[wave]) for wave, tile in enumerate(tiles))
        if core >= self.used_cores:
            return ()
        order, active, first = self._order, self._active, (core + self._busiest) % self.used_cores
        whole = self.tiles - (self.tiles % self.cores if self._last_round else 0)
        own = (each[first : whole : self.cores].tolist() for each in order)
        rows, columns = self.row_blocks, self.column_blocks
        visits = [
            Visit(None, ((rows[row], columns[column]),), k_slice, active[wave])
            for wave, (row, column, k_slice) in enumerate(zip(*own, strict=True))
        ]
        visits += [Visit(None, (piece,), 0, active[-1]) for piece in self._last_round[first : first + 1]]
        return tuple(visits)

    @cached_property
    def _last_round(self) -> tuple[tuple[Range, Range], ...]:
        """Return the parts into which an adaptive order cuts the last round's tiles, one for each core; () for none."""
        rest = self.tiles % self.cores
        if not (self.deals_one_by_one and self.swizzle.adaptive) or not 0 < rest <= self.cores // 2:
            return ()
        rows, columns = self.row_blocks, self.column_blocks
        (m0, m1), (n0, n1) = rows[-1], columns[-1]
        counts = pieces(m1 - m0, n1 - n0, self.cores // rest)
        found = []
        for row, column in zip(*(each[-rest:].tolist() for each in self._order[:2]), strict=True):
            along_m, along_n = (
                split_range(start, stop, -(-(stop - start) // count))
                for (start, stop), count in zip((rows[row], columns[column]), counts, strict=True)
            )
            found += [(part_m, part_n) for part_n in along_n for part_m in along_m]
        return tuple(found)

    @cached_property
    def _order(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the row, column and slice of k of each tile in the order in which they are dealt."""
        slices, rows, columns = len(self.k_slices), len(self.row_blocks), len(self.column_blocks)
        row, column = self.swizzle.order(rows, columns)
        return np.tile(row, slices), np.tile(column, slices), np.repeat(np.arange(slices), rows * columns)

    @property
    def first_tile(self) -> int:
        """Return the place of core 0's first tile in the order, if tiles are dealt one by one."""
        return self._busiest

    @property
    def rectangle_groups(self) -> tuple[int, int]:
        """Return the numbers of rectangles along m and along n."""
        return (
            len(self._dealt(len(self.row_blocks), self.grid.m)),
            len(self._dealt(len(self.column_blocks), self.grid.n)),
        )

    @cached_property
    def _busiest(self) -> int:
        """Return the place in the order of the busiest core's first tile."""
        sizes = [
            np.array([stop - start for start, stop in ranges])
            for ranges in (self.row_blocks, self.column_blocks, self.k_slices)
        ]
        work = np.prod([size[at] for size, at in zip(sizes, self._order, strict=True)], axis=0)
        last = len(self._last_round)
        if last:
            cut = [(m1 - m0) * (n1 - n0) * self.k for (m0, m1), (n0, n1) in self._last_round]
            work = np.concatenate([work[: self.tiles - self.tiles % self.cores], cut])
        of_core = np.bincount(np.arange(len(work)) % self.used_cores, work)
        return int(of_core[: last or self.tiles % self.used_cores or self.used_cores].argmax())

    @cached_property
    def _rectangles(self) -> list[tuple[tuple[Range, ...], tuple[Range, ...], int]]:
        """Return (rows, columns, slice of k) that each core owns, the largest first."""
        rows = [self.row_blocks[i:j] for i, j in self._dealt(len(self.row_blocks), self.grid.m)]
        columns = [self.column_blocks[i:j] for i, j in self._dealt(len(self.column_blocks), self.grid.n)]
        return [(r, c, k_slice) for k_slice in range(len(self.k_slices)) for r in rows for c in columns]

    def _dealt(self, blocks: int, cores: int) -> tuple[Range, ...]:
        """Return the blocks of each core along one side: nearly equal, or whole shares counted upwards as in a TCubeTiling."""
        return balanced_parts(blocks, cores, 1) if self.balanced else split_range(0, blocks, -(-blocks // cores))


def _walk(place: BlockedProduct, asked: Swizzle | None, rectangles: bool) -> Swizzle:
    """Return the order of the tiles; in a rectangle only the direction counts: rows (0) or columns (1) one after the other."""
    if not rectangles:
        return asked or Swizzle(3, 0 if place.m >= place.n else 1)
    if asked is not None and asked.adaptive:
        raise ValueError(
            f"got the tile order {asked} with a grid: a grid gives each core a fixed rectangle of tiles, but this order "
            f"assigns tiles one by one; leave out the grid or the order"
        )
    if asked is not None and asked.offset != 1:
        raise ValueError(
            f"got the tile order {asked} with a grid: a core walks its rectangle of tiles row by row (1,0) or column by column "
            f"(1,1), not in wider bands; take one of these orders, or leave out the grid"
        )
    return Swizzle(1, asked.direction if asked else 0, False)


def _grid(place: BlockedProduct, options: ScheduleOptions) -> tuple[Grid, Resident]:
    """Return the grid of cores and the resident operand."""
    chip, grid = place.chip, options.cores
    resident = options.resident or ("none" if grid is None or options.template == "norm" else "a")
    slices = grid.k if grid else options.split or 1
    place.check_slices(slices)
    if resident == "none" and (grid is None or grid.m * grid.n == 1):
        if slices > chip.cores:
            raise ValueError(
                f"got {slices} slices of k, more than the {chip.cores} cores of {chip.name}: take fewer slices"
            )
        return Grid(k=slices), resident
    if grid is None:
        sizes = ((place.m, place.blocking.bm), (place.n, place.blocking.bn))
        panels, streamed = (-(-size // step) for size, step in (sizes if resident == "a" else sizes[::-1]))
        along = max(min(chip.cores // slices, panels), 1)
        across = max(min(chip.cores // (slices * along), streamed), 1)
        grid = Grid(along, slices, across) if resident == "a" else Grid(across, slices, along)
    if grid.cores > chip.cores:
        raise ValueError(
            f"a grid of {grid} has {grid.cores} cores, but {chip.name} has {chip.cores}: take a smaller grid"
        )
    return grid, resident
