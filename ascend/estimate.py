"""Time of grid kernels by closed forms over arrays: what the planner ranks before it simulates the best.

The forms follow the simulator without its transients: a k block takes the longest of cube, loads, moves and the round trip
through its buffers (their sum with single buffers, the paper's T_comp + T_mem); panels, launches and the passes over whole
matrices are exposed; a tile's way to memory hides behind the next tile where two fit L0C. Misses of L2 are counted as in
:mod:`ascend.memory`, from the same formulas.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from ascend.blocking import ACCUMULATOR_BYTES, ALIGNMENT, panel_capacity, slots
from ascend.kernels.options import stream_depth
from ascend.memory import concurrent_tiles, distinct_words, slices_at_once, walk_misses
from ascend.request import Request
from ascend.tile_schedule import SPLIT_IN_BYTES, SPLIT_OUT_BYTES, Resident


@dataclass(frozen=True)
class Candidates:
    """Schedules as columns of equal length, one for each; `resident` and `direction` are the same for all of them.

    Parameters
    ----------
    bm, bk, bn : ndarray of float
        Sizes of the blocks.
    at_m, slices, at_n : ndarray of float
        The grid of cores; where nothing is resident `at_m` is the width of the swizzle's bands.
    resident : {"a", "b", "none"}
        The operand whose panel stays in L1.
    direction : {0, 1}
        Of the swizzle.
    """

    bm: np.ndarray
    bk: np.ndarray
    bn: np.ndarray
    at_m: np.ndarray
    slices: np.ndarray
    at_n: np.ndarray
    resident: Resident
    direction: int = 0

    def chosen(self, keep: np.ndarray) -> "Candidates":
        """Those that `keep` (a mask or indices) selects."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Candidates(**{name: v[keep] if isinstance(v, np.ndarray) else v for name, v in values.items()})


def up(x: np.ndarray | float, y: np.ndarray | float) -> np.ndarray:
    """x / y rounded up."""
    return np.ceil(x / y)


class Estimate(NamedTuple):
    """One number for each candidate."""

    seconds: np.ndarray  # infinite for those that do not fit L1
    memory_bytes: np.ndarray  # from and to memory
    active: np.ndarray  # cores with work in the first wave


def estimate(r: Request, c: Candidates) -> Estimate:
    """Time, traffic and cores of each candidate.

    Parameters
    ----------
    r : Request
        What the caller asked for.
    c : Candidates
        The blockings to choose from.
    """
    chip, size = r.chip, r.operand_bytes
    rows, columns = up(r.m, c.bm), up(r.n, c.bn)
    tm, tn = up(up(r.m, rows), ALIGNMENT) * ALIGNMENT, up(up(r.n, columns), ALIGNMENT) * ALIGNMENT
    blocks = up(up(r.k, c.bk), c.slices)  # of the longest slice
    length = np.minimum(blocks * c.bk, r.k)
    each = r.words * size * c.bk
    count = slots(r.buffering)
    if c.resident == "none":
        visits, stream = up(rows * columns * c.slices, chip.cores), np.ones_like(rows)
        active = np.minimum(rows * columns * c.slices, chip.cores)
        together = slices_at_once(rows * columns, c.slices, chip.cores)
        at_m, at_n = concurrent_tiles(rows, columns, chip.cores / together, c.at_m, c.direction)
        groups, panel_width, streamed = np.ones_like(rows), 0 * rows, c.bm + c.bn
    else:
        along, across = (rows, columns) if c.resident == "a" else (columns, rows)
        by, over = (c.at_m, c.at_n) if c.resident == "a" else (c.at_n, c.at_m)
        visits, stream = up(along, by), up(across, over)
        active = np.minimum(along, by) * np.minimum(across, over) * c.slices
        at_m, at_n, together = c.at_m, c.at_n, c.slices
        panel_width, streamed = (c.bm, c.bn) if c.resident == "a" else (c.bn, c.bm)
        most = panel_capacity(chip.l1_bytes, each, panel_width, count * streamed)
        groups = up(blocks, np.maximum(most, 1))
    panel = each * panel_width * up(blocks, groups)
    fits = chip.l1_bytes - panel >= count * each * streamed
    depth = stream_depth(chip.l1_bytes - panel, each * streamed, r.words, count)
    walk = c.resident if c.resident != "none" or c.direction == 0 else "columns"
    misses = walk_misses(
        walk, rows=rows, columns=columns, slices=c.slices, together=together, at_m=at_m, at_n=at_n,
        a_block=size * r.words * length * np.minimum(c.bm, r.m), b_block=size * r.words * length * np.minimum(c.bn, r.n),
        c_tile=4.0 * np.minimum(c.bm, r.m) * np.minimum(c.bn, r.n), turns=c.resident == "none",
        distinct=distinct_words(r.terms, r.words), l2_bytes=chip.l2_bytes,
    )  # fmt: skip
    share = np.minimum(chip.hbm_bytes_per_cycle / active, min(chip.l2_read_rate, chip.memory_read_rate))

    def load(words: np.ndarray, miss: np.ndarray) -> np.ndarray:
        return words * ((1 - miss) / chip.l2_read_rate + miss / share)

    passes, accumulators = len(r.passes), r.accumulators
    cube = (r.terms // passes) * (
        chip.mmad_head + up(tm, chip.cube_m) * up(c.bk, chip.cube_step_k(r.operand)) * up(tn, chip.cube_n)
    )
    cube = cube + chip.sync_cycles_per_block
    a_bytes, b_bytes = each * tm, each * tn
    loads = (load(a_bytes, misses.a) if c.resident != "a" else 0) + (
        load(b_bytes, misses.b) if c.resident != "b" else 0
    )
    moves = r.words * (chip.l1_to_l0a_latency + chip.l1_to_l0b_latency) + a_bytes / chip.l1_to_l0a_rate
    moves = moves + b_bytes / chip.l1_to_l0b_rate
    latency = chip.memory_read_latency
    if count == 1:
        block = cube + loads + latency + moves
    else:
        cube = cube + chip.non_overlapped_fraction * (loads / r.words + latency)
        block = np.maximum.reduce([cube, loads, moves, (loads + latency + moves) / depth])

    reads = (passes * groups - 1) if accumulators == 1 else accumulators * (groups - 1)
    writes = passes * groups if accumulators == 1 else accumulators * (groups - 1) + 1
    if r.merge == "atomic":
        writes = writes + (c.slices > 1)
    if chip.fixpipe:
        reads, writes = np.zeros_like(groups), passes * groups * accumulators
    c_bytes = ACCUMULATOR_BYTES * np.minimum(tm, r.m) * np.minimum(tn, r.n)
    own = chip.fixpipe_rate if chip.fixpipe else chip.ub_to_ddr_rate
    out_share = np.minimum(chip.hbm_bytes_per_cycle / active, own)
    read, write = c_bytes * reads / (passes * groups) / share, c_bytes * writes / (passes * groups) / out_share
    vector = c_bytes * accumulators / chip.l0c_to_ub_rate + (reads > 0) * c_bytes / chip.vector_rate
    vector = np.zeros_like(vector) if chip.fixpipe else vector
    in_group = blocks / groups
    tile = in_group * block
    memory = in_group * loads + read + (write if count == 1 else 0)
    two = np.floor(chip.l0c_bytes / (accumulators * ACCUMULATOR_BYTES * c.bm * c.bn)) >= 2
    tile = np.where(two, np.maximum.reduce([tile, memory, read + write]), tile + vector + np.maximum(read, write))
    panel_time = load(panel, misses.a if c.resident == "a" else misses.b) + latency if c.resident != "none" else latency
    cycles = visits * passes * groups * (stream * tile + panel_time) + vector + write

    elements, c_all = r.m * r.k + r.k * r.n, float(r.m) * r.n
    a_loads = np.minimum(at_n, columns) if c.resident == "a" else columns
    b_loads = np.minimum(at_m, rows) if c.resident == "b" else rows
    moved = passes * r.words * size * (r.m * r.k * a_loads * misses.a + r.k * r.n * b_loads * misses.b)
    moved = moved + ACCUMULATOR_BYTES * c_all * c.slices * (reads + writes)
    last = np.where(c.slices > 1, c.slices, 1.0) if r.merge == "reduce" else np.ones_like(c.slices)
    copies = last * r.copies_behind_fixpipe
    whole = np.where(copies > 1, (copies + 1) * ACCUMULATOR_BYTES * c_all, 0.0)
    whole = whole + (r.merge == "atomic") * (c.slices > 1) * ACCUMULATOR_BYTES * c_all
    whole = whole + (r.terms > 1) * (SPLIT_IN_BYTES + SPLIT_OUT_BYTES) * elements
    if r.layout == "nd" and r.terms == 1 and not chip.nd_to_nz:
        whole = whole + 2 * size * elements
    cycles = np.maximum(cycles, moved / chip.hbm_bytes_per_cycle) + whole / chip.hbm_bytes_per_cycle
    seconds = cycles / chip.cycles_per_second + chip.launch_us * 1e-6
    return Estimate(np.where(fits, seconds, np.inf), moved + whole, active)
