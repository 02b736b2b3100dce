"""This module estimates the time of grid kernels by closed forms over arrays, to rank candidates before simulating the best.

:mod:`ascend.closed_forms` gives the time of a k block. Panels, launches and the passes over whole matrices are exposed.
The write of a tile hides behind the next tile if two tiles fit L0C. Misses of L2 are counted by the formulas of
:mod:`ascend.memory`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ascend.blocking import ACCUMULATOR_BYTES, ALIGNMENT, panel_capacity
from ascend.closed_forms import BlockForms, up
from ascend.kernels.options import stream_depth
from ascend.memory import (
    Misses,
    RowCosts,
    concurrent_tiles,
    nd_costs,
    passes_bytes,
    passes_latency,
    slices_at_once,
    walk_misses,
)
from ascend.request import Request
from ascend.schedule_options import DEEPEST_STREAM, Resident
from ascend.tile_schedule import STRIP_BYTES


@dataclass(frozen=True)
class Candidates:
    """`Candidates` holds schedules as columns of equal length; a field that is no array holds for all candidates."""

    #: bm, bk, bn: sizes of the blocks.
    bm: np.ndarray
    bk: np.ndarray
    bn: np.ndarray
    #: at_m, slices, at_n: the grid of cores; if tiles are dealt one by one, `at_m` is the width of
    #: the swizzle's bands.
    at_m: np.ndarray
    slices: np.ndarray
    at_n: np.ndarray
    whole: np.ndarray  #: Whether all tiles but the last ones have bn columns; otherwise they are nearly equal.
    resident: Resident  #: {"a", "b", "none"}: the operand whose panel stays in L1.
    direction: int | None = None  #: {0, 1} if nothing is resident: of the swizzle, or of the walk in a rectangle
    rectangles: bool = False  #: Whether each core owns a rectangle of tiles.

    @classmethod
    def joined(cls, parts: "Sequence[Candidates]") -> "Candidates":
        """Return the candidates of several parts of one kind and direction."""
        names = ("bm", "bk", "bn", "at_m", "slices", "at_n", "whole")
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        first = parts[0]
        return cls(**columns, resident=first.resident, direction=first.direction, rectangles=first.rectangles)

    @property
    def kind(self) -> str:
        """Return the residency, or the way in which tiles are dealt if nothing is resident."""
        if self.resident != "none":
            return self.resident
        return "one by one" if self.deals_one_by_one else "rectangles"

    @property
    def deals_one_by_one(self) -> bool:
        """Return whether tiles go to the cores one by one in the order of the swizzle."""
        return self.resident == "none" and not self.rectangles


class Estimate(NamedTuple):
    """`Estimate` holds one number for each candidate."""

    seconds: np.ndarray  # infinite for candidates that do not fit L1
    memory_bytes: np.ndarray  # bytes from and to memory
    active: np.ndarray  # cores with work in the first wave
    n_fused: np.ndarray  # blocks of k in a group
    core_seconds: np.ndarray  # seconds of the busiest core without waits for memory, which `seconds` includes


def estimate(r: Request, c: Candidates) -> Estimate:
    """Return the time, traffic and active cores of each candidate."""
    forms = _Forms(r, c)
    multiplied, whole = forms.memory_bytes, passes_bytes(r, c.slices)
    bandwidth = r.chip.hbm_bytes_per_cycle
    cycles = np.maximum(forms.multiplication, forms.carried_bytes / bandwidth)
    cycles = cycles + whole / bandwidth + passes_latency(r, c.slices)
    if r.dequantize == "vector":
        cycles = cycles + forms.dequantized
    seconds = cycles / r.chip.cycles_per_second + r.chip.launch_seconds(forms.active, r.warm)
    if r.widens:
        seconds = seconds + 1e-6 * r.chip.vector_launch_us
    core = forms.multiplication / r.chip.cycles_per_second
    return Estimate(np.where(forms.fits, seconds, np.inf), multiplied + whole, forms.active, forms.n_fused, core)


class _Forms(BlockForms):
    """`_Forms` holds the closed forms of one request's candidates, each a column."""

    def __init__(self, r: Request, c: Candidates):
        super().__init__(r, c.bm, c.bk, c.bn)
        self.c, self.latency = c, self.chip.memory_read_latency
        self.rows, self.columns = up(r.m, c.bm), up(r.n, c.bn)
        self.tm = up(up(r.m, self.rows), ALIGNMENT) * ALIGNMENT
        widest, equal = up(up(r.n, self.columns), ALIGNMENT), up(r.n, ALIGNMENT) % self.columns == 0
        self.tn = np.where(c.whole, np.minimum(c.bn, up(r.n, ALIGNMENT) * ALIGNMENT), widest * ALIGNMENT)
        #: Number of columns of which all tiles begin at multiples.
        self.step = np.where(c.whole | equal, self.tn, ALIGNMENT)
        self.blocks = up(up(r.k, c.bk), c.slices)  # products of the longest slice
        self.length = np.minimum(self.blocks * c.bk, r.k)
        self.deep = up(self.length, self.chip.cube_step_k(r.operand)) / self.blocks
        self.filled = self.length / (self.blocks * c.bk)  # filled share of the k blocks, the last of which is shorter
        self._deal()
        self._place()

    def _deal(self) -> None:
        """Set the busiest core's stays, the tiles in each, the cores at work, and the tiles of one step."""
        c, cores, tiles = self.c, self.chip.cores, self.rows * self.columns
        if c.deals_one_by_one:
            self.visits, self.stream = up(tiles * c.slices, cores), np.ones_like(self.rows)
            self.active = np.minimum(tiles * c.slices, cores)
            self._last_stays(self.visits, tiles * c.slices // self.active, tiles * c.slices)
            self.together = slices_at_once(tiles, c.slices, cores)
            self.at_m, self.at_n = concurrent_tiles(
                self.rows, self.columns, cores / self.together, c.at_m, c.direction or 0
            )
            return
        along, across = (self.columns, self.rows) if c.resident == "b" else (self.rows, self.columns)
        by, over = (c.at_n, c.at_m) if c.resident == "b" else (c.at_m, c.at_n)
        by_panels, by_stream = np.minimum(along, by), np.minimum(across, over)
        self.visits, self.stream = up(along, by), up(across, over)
        self.active = by_panels * by_stream * c.slices
        if c.resident == "none":
            self._last_stays(self.visits * self.stream, (along // by_panels) * (across // by_stream), tiles * c.slices)
        else:
            self._last_stays(self.visits, along // by_panels, along * by_stream * c.slices)
        self.at_m, self.at_n, self.together = c.at_m, c.at_n, c.slices

    def _last_stays(self, stays: np.ndarray, full: np.ndarray, work: np.ndarray) -> None:
        """Set the share of the busiest core's stays with fewer cores at work, and the number of cores in them.

        All cores are at work in `full` of `stays` stays; `work` is the sum of the cores over all stays.
        """
        rest = stays - full
        self.last_share = rest / stays
        self.last_active = (work - full * self.active) / np.maximum(rest, 1)

    def _place(self) -> None:
        """Set the k groups, the panel's bytes, the depth of the streams, and whether all buffers fit L1."""
        c, chip = self.c, self.chip
        if c.resident == "none":
            self.groups, panel_width, streamed = np.ones_like(self.rows), 0 * self.rows, c.bm + c.bn
        else:
            panel_width, streamed = (c.bm, c.bn) if c.resident == "a" else (c.bn, c.bm)
            most = panel_capacity(chip.l1_bytes, self.in_l1, panel_width, self.count * streamed)
            self.groups = up(self.blocks, np.maximum(most, 1))
        self.n_fused = up(self.blocks, self.groups)
        self.panel = self.each * panel_width * self.n_fused
        left = chip.l1_bytes - self.in_l1 * panel_width * self.n_fused
        stream = self.in_l1 * streamed
        self.fits = left >= self.count * stream
        self.depth = stream_depth(left, stream, self.r.words, self.count)

    @cached_property
    def misses(self) -> Misses:
        """Return the share of the loads that memory serves."""
        c = self.c
        return walk_misses(
            self.r, "columns" if c.direction == 1 else c.resident, c.bm, c.bn, self.length,
            rows=self.rows, columns=self.columns, slices=c.slices, together=self.together, at_m=self.at_m, at_n=self.at_n,
            turns=c.deals_one_by_one,
        )  # fmt: skip

    def memory_cycles(self, rate: float) -> np.ndarray:
        """Return the cycles of memory for a byte of one core over a path of rate `rate`, averaged over its stays."""
        bandwidth = self.chip.hbm_bytes_per_cycle
        all_at_work, last = (np.maximum(active / bandwidth, 1 / rate) for active in (self.active, self.last_active))
        return all_at_work + self.last_share * (last - all_at_work)

    @cached_property
    def read_cycles(self) -> np.ndarray:
        """Return the cycles to read a byte from memory."""
        return self.memory_cycles(min(self.chip.l2_read_rate, self.chip.memory_read_rate))

    @cached_property
    def costs(self) -> RowCosts:
        """Return the bytes charged for each byte of A and of B."""
        return nd_costs(self.r, self.c.bk * np.maximum(self.depth // self.count, 1), self.c.bn, self.step)

    def load(self, size: np.ndarray, operand: int) -> np.ndarray:
        """Return the cycles to load bytes of A (0) or B (1), `size` in L1."""
        return self.widened(size) if operand and self.r.widens else self.read(size, operand)

    def read(self, size: np.ndarray, operand: int) -> np.ndarray:
        """Return the cycles to read bytes of A (0) or B (1)."""
        hit = self.costs[operand] * (1 - self.misses[operand]) / self.chip.l2_read_rate
        return size * hit + self.load_missed(size, operand)

    def load_missed(self, size: np.ndarray, operand: int) -> np.ndarray:
        """Return the cycles of the loads in which memory is read."""
        extra = (self.costs[operand + 2] - 1) / min(self.chip.l2_read_rate, self.chip.memory_read_rate)
        return size * self.misses[operand] * (self.read_cycles + extra)

    def widened(self, size: np.ndarray) -> np.ndarray:
        """Return the cycles of vector units to read weights and write `size` bytes of widened weights on the way to L1."""
        read, write = self.read(size * self.r.weight_bytes / self.size, 1), size / self.chip.widened_rate
        if not self.chip.widened_to_l1:
            return read + write
        slots = np.clip(self.chip.ub_bytes // (self.c.bk * self.c.bn * self.r.weight_bytes), 1, DEEPEST_STREAM)
        return np.maximum.reduce([read, write, (read + self.latency + write) / slots])

    def _streamed(self, load: Callable[[np.ndarray, int], np.ndarray]) -> np.ndarray:
        """Return the cycles to load one k block of the streamed operands, on average."""
        widths = {"a": self.tm, "b": self.tn}
        streamed = [
            load(self.filled * self.each * width, number)
            for number, (name, width) in enumerate(widths.items())
            if name != self.c.resident
        ]
        return np.add.reduce(streamed)

    @cached_property
    def loads(self) -> np.ndarray:
        """Return the cycles to load one k block of the streamed operands, on average."""
        if not self.r.widens or self.c.resident == "b":
            return self._streamed(self.load)
        of_a, of_b = (self.filled * self.each * width for width in (self.tm, self.tn))
        by_mte2 = self.read(of_a, 0) * (self.c.resident != "a")
        if not self.chip.widened_to_l1:
            by_mte2 = by_mte2 + of_b / self.chip.l2_read_rate
        return np.maximum(by_mte2, self.widened(of_b))

    @cached_property
    def missed(self) -> np.ndarray:
        """Return the cycles of the loads in which memory is read."""
        return self._streamed(self.load_missed)

    @cached_property
    def c_copies(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the FP32 copies of C that are read and written over all passes and k groups."""
        r, accumulators = self.r, self.r.accumulators
        # copies added in memory
        added = (r.merge == "atomic") * (self.c.slices > 1) * (self.walks if r.combination.in_place else 1)
        if self.chip.fixpipe:
            return np.zeros_like(self.groups), self.walks * self.groups * accumulators + added
        reads, writes = self.vector_copies
        return reads, writes + added

    @cached_property
    def outputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a tile's cycles: C read, C written, vector unit, L0C held after the last product, end of the last tile."""
        r, chip, walked = self.r, self.chip, self.walks * self.groups
        if chip.fixpipe:
            row = (
                np.maximum(chip.fixpipe_row_cycles, ACCUMULATOR_BYTES * self.tn / chip.fixpipe_rate)
                + r.fixpipe_row_extra
            )
            write = r.accumulators * (chip.fixpipe_head + self.tm * row)
            return 0 * write, write, 0 * write, write, write
        reads, writes = self.c_copies
        c_bytes = ACCUMULATOR_BYTES * np.minimum(self.tm, r.m) * np.minimum(self.tn, r.n)
        read = c_bytes * reads / walked * self.read_cycles
        write = c_bytes * writes / walked * self.memory_cycles(chip.ub_to_ddr_rate)
        # L0C is free when the last strip has left it, while two strips are still on their way to memory.
        strips = np.maximum(c_bytes * r.accumulators / STRIP_BYTES, 1)
        additions = reads / walked + r.accumulators - 1
        vector = c_bytes * (r.accumulators / chip.l0c_to_ub_rate + additions / chip.vector_rate)
        vector = vector + (r.accumulators + additions) * chip.vector_head * up(c_bytes / STRIP_BYTES, 1)
        held = np.maximum(vector, np.maximum(read, write) * np.maximum(1 - 2 / strips, 0))
        return read, write, vector, held, write + vector / strips

    @cached_property
    def multiplication(self) -> np.ndarray:
        """Return the cycles of the busiest core."""
        walked, (read, write, vector, held, end) = self.walks * self.groups, self.outputs
        tiles, in_group = self.visits * walked * self.stream, self.blocks / self.groups
        multiplied, loads = in_group * self.block, in_group * self.loads + read
        both = write
        if not self.chip.fixpipe:  # writes take bandwidth from simultaneous reads
            missed = in_group * self.missed + read
            shared = np.minimum(
                write * self.memory_cycles(np.inf) / self.memory_cycles(self.chip.ub_to_ddr_rate), write
            )
            both = missed + shared
            loads = loads + shared * ((1 - 1 / tiles) * missed / loads if self.count == 2 else 1)
        # With one place in L0C the stream continues for its depth while the cube waits,
        # and the cube catches up if loads are slower.
        slack = in_group * (self.block - np.maximum(self.cube, self.moves))
        waits = np.maximum(held - np.minimum(slack, self.depth * self.loads), 0)
        tile = np.maximum(np.where(self.two_tiles, multiplied, multiplied + waits), loads)
        # The last tile's end follows all tiles; if writes are slower than tiles, the writes follow the first tile.
        streamed = np.maximum.reduce([tiles * tile + end, tiles * np.maximum(write, vector) + tile, tiles * both])
        filling = self.way - self.block
        if (
            self.c.resident == "none"
        ):  # the stream continues from tile to tile, so the cube waits for its first block only
            return streamed + filling
        return streamed + self.visits * walked * (
            filling + self.load(self.filled * self.panel, 0 if self.c.resident == "a" else 1)
        )

    @cached_property
    def dequantized(self) -> np.ndarray:
        """Return the cycles to start the vector cores and to scale the last tile: read, and written in half as many bytes."""
        c_bytes = ACCUMULATOR_BYTES * np.minimum(self.tm, self.r.m) * np.minimum(self.tn, self.r.n)
        read, written = self.memory_cycles(self.chip.memory_read_rate), self.memory_cycles(self.chip.ub_to_ddr_rate)
        return self.chip.vector_launch_us * self.chip.frequency_mhz + c_bytes * np.maximum(read, written / 2)

    @cached_property
    def operand_bytes(self) -> np.ndarray:
        """Return the bytes of A and of B from memory, shape (2, candidates)."""
        r, c = self.r, self.c
        a_loads = np.minimum(self.at_n, self.columns) if c.resident == "a" else self.columns
        b_loads = np.minimum(self.at_m, self.rows) if c.resident == "b" else self.rows
        a, b = self.size * r.m * r.k * a_loads * self.misses.a, r.weight_bytes * r.k * r.n * b_loads * self.misses.b
        return self.walks * r.words * np.stack([a + 0 * b, b + 0 * a])

    @cached_property
    def written(self) -> np.ndarray:
        """Return the bytes of C that the multiplication moves."""
        return ACCUMULATOR_BYTES * float(self.r.m) * self.r.n * self.c.slices * sum(self.c_copies)

    @cached_property
    def memory_bytes(self) -> np.ndarray:
        """Return the bytes that the multiplication moves."""
        return self.operand_bytes.sum(axis=0) + self.written

    @cached_property
    def carried_bytes(self) -> np.ndarray:
        """Return the bytes that memory must carry during the multiplication: with FIXPIPE, L2 keeps the part of C that fits."""
        if not self.chip.fixpipe:
            return self.memory_bytes
        return self.operand_bytes.sum(axis=0) + np.maximum(self.written - self.chip.l2_usable_bytes, 0)
