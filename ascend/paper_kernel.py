"""Time of the paper's kernel by closed forms over arrays of blocks, and the blocks that eq. 12 rejects.

The kernel of SGEMM-cube deals row blocks to all cores, keeps A in L1 and takes B from L2; :mod:`ascend.planner.estimate` does
the same for grids of cores.
"""

from typing import NamedTuple

import numpy as np

from ascend.blocking import (
    ACCUMULATOR_BYTES,
    ALIGNMENT,
    Buffering,
    Rejection,
    candidate_rejections,
    feasible_sizes,
    panel_capacity,
    slots,
)
from ascend.chips.chip import Chip
from ascend.request import Request
from ascend.tile_schedule import SPLIT_IN_BYTES, SPLIT_OUT_BYTES, TileSchedule


def analytic_seconds(sizes: np.ndarray, r: Request | TileSchedule) -> np.ndarray:
    """Time of each (bm, bk, bn) row by closed forms: what the simulator does, without its transients.

    A k block takes the longest of cube, memory path and the round trip through its buffers when double buffered, their
    sum when single (the paper's T_comp, T_mem, section 5.1.2); A panels and the split pass are exposed; a C block's way
    to memory is hidden behind the next block's work only where two C blocks fit L0C.
    """
    m, k, n, chip, terms = r.m, r.k, r.n, r.placed_on, r.terms
    bm, bk, bn = (column.astype(float) for column in sizes.T)
    size, count, words, accumulators = r.operand_bytes, slots(r.buffering), r.words, r.accumulators
    walks = len(r.passes)
    together = terms // walks
    n_fused = panel_capacity(chip.l1_bytes // size, words * bk, bm, count * bn)
    waves = np.ceil(np.ceil(m / bm) / chip.cores)
    columns = np.ceil(n / bn)
    groups = np.ceil(k / (bk * n_fused))
    blocks = np.ceil(k / bk)
    active = np.minimum(np.ceil(m / bm), chip.cores)
    share = chip.hbm_bytes_per_cycle / active

    step_k = chip.cube_step_k(r.operand)
    cube = together * (chip.mmad_head + bm / chip.cube_m * bk / step_k * bn / chip.cube_n) + chip.sync_cycles_per_block
    load = words * bk * bn * size / chip.l2_read_rate
    a_move = words * (chip.l1_to_l0a_latency + bm * bk * size / chip.l1_to_l0a_rate)
    b_move = words * (chip.l1_to_l0b_latency + bk * bn * size / chip.l1_to_l0b_rate)
    moves, latency = a_move + b_move, chip.gm_to_l1_latency
    if count == 1:
        block = cube + load + latency + moves
    else:
        cube = cube + chip.non_overlapped_fraction * (load / words + latency)
        block = np.maximum.reduce([cube, load, moves, (load + latency + b_move) / count])

    c_bytes = ACCUMULATOR_BYTES * np.minimum(bm, m) * np.minimum(bn, n)
    reads = (walks * groups - 1) * (1 if accumulators == 1 else 0) + accumulators * (groups - 1) * (accumulators > 1)
    writes = walks * groups if accumulators == 1 else accumulators * (groups - 1) + 1
    passes = walks * groups
    read, write = c_bytes * reads / passes / share, c_bytes * writes / passes / share
    vector = c_bytes * accumulators / chip.l0c_to_ub_rate + (reads > 0) * c_bytes / chip.vector_rate
    if chip.fixpipe:
        read, vector = np.zeros_like(read), np.zeros_like(read)
    tile = blocks / groups * block
    memory = blocks / groups * load + read + (write if count == 1 else 0)
    two_slots = np.minimum(2, chip.l0c_bytes // (accumulators * ACCUMULATOR_BYTES * bm * bn)) == 2
    tile = np.where(two_slots, np.maximum.reduce([tile, memory, read + write]), tile + vector + np.maximum(read, write))
    panel = np.minimum(bk * n_fused, k) * np.minimum(bm, m) * size * words / np.minimum(share, chip.l2_read_rate)
    tail = vector + write
    cycles = waves * passes * (columns * tile + panel + latency) + tail
    if terms > 1:
        split = (SPLIT_IN_BYTES + SPLIT_OUT_BYTES) * r.split_elements / chip.hbm_bytes_per_cycle
        copies = r.copies_behind_fixpipe
        combine = (copies + 1) * ACCUMULATOR_BYTES * m * n / chip.hbm_bytes_per_cycle
        cycles = cycles + split + (combine if copies > 1 else 0)
    return cycles / chip.cycles_per_second


class RejectedBlock(NamedTuple):
    """A block that does not fit, with the constraints that say so."""

    bm: int
    bk: int
    bn: int
    reasons: tuple[Rejection, ...]


def rejections(
    chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16"
) -> list[RejectedBlock]:
    """Every rejected block next to the feasible space: one that becomes feasible when one size shrinks by 16.

    All larger blocks are rejected for the same reasons, with larger byte counts.

    Parameters
    ----------
    chip, buffering, words, operand
        As for :meth:`ascend.Blocking.n_fused`.
    """
    feasible = feasible_sizes(chip, buffering, words, operand)
    known = set(map(tuple, feasible.tolist()))
    frontier = {
        neighbour
        for bm, bk, bn in known
        for neighbour in ((bm + ALIGNMENT, bk, bn), (bm, bk + ALIGNMENT, bn), (bm, bk, bn + ALIGNMENT))
        if neighbour not in known
    }
    return [
        RejectedBlock(*block, tuple(candidate_rejections(*block, chip, buffering, words, operand)))
        for block in sorted(frontier)
    ]
