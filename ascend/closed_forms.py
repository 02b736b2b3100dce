"""This module estimates times by closed forms over arrays of blocks: forms that all kernels share, and the paper's kernel.

The forms follow the simulator without its transients. With double buffers a k block takes the longest of cube, loads,
moves and the round trip through its buffers, with single buffers their sum (the paper's T_comp, T_mem, section 5.1.2).
:mod:`ascend.planner.estimate` adds the terms of grids of cores, :func:`paper_seconds` those of SGEMM-cube's kernel.
"""

from functools import cached_property

import numpy as np

from ascend.blocking import ACCUMULATOR_BYTES, panel_capacity, slots
from ascend.memory import passes_bytes
from ascend.request import Request
from ascend.tile_schedule import TileSchedule


def up(x: np.ndarray | float, y: np.ndarray | float) -> np.ndarray:
    """Return x / y rounded up."""
    return np.ceil(x / y)


class BlockForms:
    """`BlockForms` holds the closed forms of a request's k blocks; each is a column with one number for each candidate."""

    tm: np.ndarray  #: Rows of a tile.
    tn: np.ndarray  #: Columns of a tile.
    deep: np.ndarray  #: Cube steps along a k block, on average.
    depth: np.ndarray | int  #: L1 buffers of a streamed operand.
    groups: np.ndarray  #: Number of k groups.
    latency: float  #: Cycles until the first byte of a load arrives.
    filled: np.ndarray | float = 1.0  #: Filled share of a k block, on average.

    def __init__(self, r: Request | TileSchedule, bm: np.ndarray, bk: np.ndarray, bn: np.ndarray):
        self.r, self.chip, self.bm, self.bn = r, r.placed_on, bm, bn
        self.size, self.count, self.walks = r.operand_bytes, slots(r.buffering), len(r.passes)
        self.each = r.words * self.size * bk
        self.in_l1 = r.words * r.format.stored(bk)  # bytes of one row or column of a k block, with its block scales

    @property
    def loads(self) -> np.ndarray:
        """Return the cycles to load one k block of the streamed operands, on average."""
        raise NotImplementedError

    @cached_property
    def cube(self) -> np.ndarray:
        """Return the cube's cycles for one k block of a tile, on average."""
        r, chip = self.r, self.chip
        steps = up(self.tm, chip.cube_m) * self.deep * up(self.tn, chip.cube_n)
        cycles = r.terms // self.walks * (r.mmad_head + steps) + chip.sync_cycles_per_block
        if self.count == 1:
            return cycles
        return cycles + chip.non_overlapped_fraction * (self.loads / r.words + self.latency)

    @cached_property
    def moves(self) -> np.ndarray:
        """Return the cycles to bring one k block of both operands from L1 to L0, on average."""
        chip, size = self.chip, self.filled * self.each
        latency = self.r.words * (chip.l1_to_l0a_latency + chip.l1_to_l0b_latency)
        scales = self.r.scale_bytes * (self.tm + self.tn) / chip.l1_to_l0_scale_rate
        return latency + size * (self.tm / chip.l1_to_l0a_rate + self.tn / chip.l1_to_l0b_rate + scales)

    @cached_property
    def way(self) -> np.ndarray:
        """Return the cycles of all stages of a k block, one after the other."""
        return self.cube + self.loads + self.latency + self.moves

    @property
    def round_trip(self) -> np.ndarray:
        """Return the cycles from a streamed block's load until its buffer in L1 is free."""
        return self.way - self.cube

    @cached_property
    def block(self) -> np.ndarray:
        """Return the cycles of one k block of a tile, on average."""
        if self.count == 1:
            return self.way
        scalar = self.r.scalar_cycles + np.zeros_like(self.tm)
        return np.maximum.reduce([self.cube, self.loads, self.moves, self.round_trip / self.depth, scalar])

    @cached_property
    def vector_copies(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the FP32 copies of C that the vector unit reads and writes over all passes and k groups."""
        accumulators, walked = self.r.accumulators, self.walks * self.groups
        if accumulators == 1:
            return walked - 1, walked
        return accumulators * (self.groups - 1), accumulators * (self.groups - 1) + 1

    @property
    def two_tiles(self) -> np.ndarray:
        """Return whether two tiles of C fit L0C."""
        return np.floor(self.chip.l0c_bytes / (self.r.accumulators * ACCUMULATOR_BYTES * self.bm * self.bn)) >= 2


class _PaperForms(BlockForms):
    """`_PaperForms` holds the forms of the paper's kernel: row blocks of whole tiles on all cores, A panel in L1, B from L2."""

    def __init__(self, r: Request | TileSchedule, bm: np.ndarray, bk: np.ndarray, bn: np.ndarray):
        super().__init__(r, bm, bk, bn)
        self.tm, self.tn, self.deep = bm, bn, bk / self.chip.cube_step_k(r.operand)
        self.depth, self.latency = self.count, self.chip.gm_to_l1_latency
        self.fused = bk * panel_capacity(self.chip.l1_bytes, self.in_l1, bm, self.count * bn)
        self.groups, self.blocks = up(r.k, self.fused), up(r.k, bk)

    @cached_property
    def loads(self) -> np.ndarray:
        """Return the cycles to load one k block of B."""
        return self.each * self.tn / self.chip.l2_read_rate

    @property
    def round_trip(self) -> np.ndarray:
        """Return the cycles from the load of a B block until its buffer in L1 is free; moves of A take no part."""
        chip = self.chip
        return (
            self.loads
            + self.latency
            + self.r.words * chip.l1_to_l0b_latency
            + self.each * self.tn / chip.l1_to_l0b_rate
        )

    @cached_property
    def cycles(self) -> np.ndarray:
        """Return the cycles of all passes; loads of A panels and the split pass are exposed.

        The write of a tile is hidden behind the next tile's work only if two tiles fit L0C.
        """
        r, chip, passes = self.r, self.chip, self.walks * self.groups
        waves = up(up(r.m, self.bm), chip.cores)
        share = chip.hbm_bytes_per_cycle / np.minimum(up(r.m, self.bm), chip.cores)
        c_bytes = ACCUMULATOR_BYTES * np.minimum(self.bm, r.m) * np.minimum(self.bn, r.n)
        read, write = (c_bytes * copies / passes / share for copies in self.vector_copies)
        vector = c_bytes * r.accumulators / chip.l0c_to_ub_rate + (read > 0) * c_bytes / chip.vector_rate
        if chip.fixpipe:
            read, vector = np.zeros_like(read), np.zeros_like(read)
        in_group = self.blocks / self.groups
        tile, memory = in_group * self.block, in_group * self.loads + read + (write if self.count == 1 else 0)
        tile = np.where(
            self.two_tiles, np.maximum.reduce([tile, memory, read + write]), tile + vector + np.maximum(read, write)
        )
        panel = np.minimum(self.fused, r.k) * np.minimum(self.bm, r.m) * self.size * r.words
        panel = panel / np.minimum(share, chip.l2_read_rate)
        multiplied = waves * passes * (up(r.n, self.bn) * tile + panel + self.latency) + vector + write
        return multiplied + (passes_bytes(r, 1) / chip.hbm_bytes_per_cycle if r.terms > 1 else 0)


def paper_seconds(sizes: np.ndarray, r: Request | TileSchedule) -> np.ndarray:
    """Return the time of the paper's kernel for each (bm, bk, bn) row, without the launch."""
    forms = _PaperForms(r, *(column.astype(float) for column in sizes.T))
    return forms.cycles / forms.chip.cycles_per_second
