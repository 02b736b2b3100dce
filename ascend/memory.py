"""This module computes the loads that L2 serves from the reuse distances of the operands in a schedule's walk over C.

In the model the cores walk in step. If several cores load the same block at one step, memory serves the block once and
L2 serves the other loads. A block that is loaded again at a later step is still in L2 if the bytes that all cores
touched in between (the reuse distance) fit L2 with least-recently-used replacement; a walk that turns back (swizzle)
first meets the blocks that it touched last. Partial sums of C count as touched. Later passes find the words of earlier
passes if everything fits.

The formulas take numbers or arrays, so that the planner ranks thousands of candidates by the counts of the simulator.
Assumed: full associativity, no prefetching, no sharing with other kernels.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ascend.blocking import ACCUMULATOR_BYTES
from ascend.chips.chip import Chip
from ascend.schedule_options import WithOptions
from ascend.tile_schedule import SPLIT_IN_BYTES, SPLIT_OUT_BYTES, TileSchedule

#: Bytes of a line in which ND rows should lie (AscendC's performance advice), of a sector of a line, and of a fractal's row.
ND_LINE, ND_SECTOR, ND_UNIT = 512, 128, 32


class Misses(NamedTuple):
    """`Misses` holds the share of the loads of A's and of B's blocks that memory serves; the other loads are L2 hits."""

    a: Any
    b: Any


class Walk(NamedTuple):
    """`Walk` is a walk along n, in bands of `at_m` rows, over `rows` x `columns` tiles of C; fields are numbers or arrays.

    At one step the cores work on `together` slices and `at_m` x `at_n` tiles. `a_block` and `b_block` are the bytes of
    one tile row of A and one tile column of B over a slice's k in one pass, `c_tile` the bytes written for each tile.
    `turns` says whether the walk turns back after each band.
    """

    rows: Any
    columns: Any
    slices: Any
    together: Any
    at_m: Any
    at_n: Any
    turns: bool
    a_block: Any
    b_block: Any
    c_tile: Any

    def transposed(self) -> "Walk":
        """Return a walk along m, in bands of columns, as a walk along n with A and B exchanged."""
        _, _, slices, together, at_m, at_n, turns, a_block, b_block, c_tile = self
        return Walk(self.columns, self.rows, slices, together, at_n, at_m, turns, b_block, a_block, c_tile)


def l2_misses(walk: Walk, panels: bool, distinct: float, l2_bytes: int) -> Misses:
    """Return the misses from the counts of a walk that keeps panels of A in L1 (`panels`) or no operand.

    Each panel is loaded once for each stay by the cores of one row of the grid; `distinct` is the share of a pass's words that
    no earlier pass read.
    """
    rows, columns, slices, together, at_m, at_n, turns, a_block, b_block, c_tile = walk
    at_m, at_n = np.minimum(at_m, rows), np.minimum(at_n, columns)
    # bytes that the cores touch together in one step
    step = together * (at_m * a_block + at_n * b_block + at_m * at_n * c_tile)
    kept, written = together * at_m * a_block, together * columns * at_m * c_tile
    b_share = _again(1 / rows, 1 / at_m, together * columns * b_block, kept, written, l2_bytes, turns)
    lost = 0.0
    if not turns:
        # Random replacement also evicts some of the kept operand for the bytes that come from memory in one step.
        brought = together * (at_m * at_n * b_share * b_block + at_m * at_n * c_tile)
        lost = -np.expm1(-brought / max(l2_bytes, 1))
    a_share = np.where((step <= l2_bytes) & (not panels), 1 / columns + lost * (1 / at_n - 1 / columns), 1 / at_n)
    everything = slices * (rows * a_block + columns * b_block) + rows * columns * c_tile
    known = np.where(everything <= l2_bytes, distinct, 1.0)
    return Misses(a_share * known, b_share * known)


def _again(once: Any, each_band: Any, streamed: Any, kept: Any, written: Any, l2_bytes: int, turns: bool) -> Any:
    """Return the share of a streamed operand's loads that miss when it is read once for each band of the walk.

    A walk in one direction touches the whole band between two reads of a block: the streamed, the kept and the written bytes. A
    walk that turns round reads a block again after the turn. If the block lies a share x of a band before the turn, the walk
    touches in between the share x of the streamed bytes once, the share x of the written bytes twice, and the kept operand of
    both bands; so the blocks next to the turn hit.
    """
    if turns:
        left = np.clip((l2_bytes - 2 * kept) / (streamed + 2 * written), 0.0, 1.0)
    else:
        left = hits_of_a_loop((streamed + kept + written) / max(l2_bytes, 1))
    return left * once + (1 - left) * each_band


#: Hit rates h of a loop over x times the size of L2, with random replacement: h = exp(-(1 - h) x), so x = -ln(h) / (1 - h).
_HITS = np.geomspace(1e-14, 1 - 1e-9, 4000)
_LOOPS = np.log(_HITS) / (_HITS - 1)


def hits_of_a_loop(x: Any) -> Any:
    """Return the share of the loads that hit when a loop touches x times the size of L2; 1 for x up to 1.

    Replacement is random, because measured times rise gradually beyond L2 (pto-isa's 6144^3 and 7680^3) and not at once
    as with least-recently-used replacement. A block survives one miss with probability 1 - 1/blocks, so h = exp(-(1 -
    h) x).
    """
    return np.interp(x, _LOOPS[::-1], _HITS[::-1], left=1.0, right=0.0)


def schedule_misses(schedule: TileSchedule) -> Misses:
    """Return the misses of a schedule on its chip."""
    s, b = schedule, schedule.blocking
    longest = s.k_slices[0][1] - s.k_slices[0][0]
    rows, columns = len(s.row_blocks), len(s.column_blocks)
    if s.deals_one_by_one:
        together = slices_at_once(rows * columns, len(s.k_slices), s.cores)
        at_m, at_n = concurrent_tiles(rows, columns, s.cores / together, s.swizzle.offset, s.swizzle.direction)
    else:
        at_m, at_n, together = s.grid.m, s.grid.n, len(s.k_slices)
    return walk_misses(
        s, "columns" if s.resident == "none" and s.swizzle.direction == 1 else s.resident, b.bm, b.bn, longest,
        rows=rows, columns=columns, slices=len(s.k_slices), together=together, at_m=at_m, at_n=at_n,
        turns=s.deals_one_by_one and s.swizzle.turns,
    )  # fmt: skip


def walk_misses(s: WithOptions, walk: str, bm: Any, bn: Any, depth: Any, **counts: Any) -> Misses:
    """Return :func:`l2_misses` of blocks of bm x bn and slices of `depth` products; `counts` are the other fields of `Walk`.

    `walk` is "a" or "b" (the operand with resident panels), "none" (no resident operand, bands of rows, or rectangles
    row by row) or "columns".
    """
    a_each, b_each = (size * s.words * depth for size in (s.operand_bytes, s.weight_bytes))
    height, width = np.minimum(bm, s.m), np.minimum(bn, s.n)
    along_n = Walk(a_block=a_each * height, b_block=b_each * width, c_tile=4.0 * height * width, **counts)
    shared = distinct_words(s.terms, s.words, s.warm), s.placed_on.l2_usable_bytes
    if walk in ("a", "none"):
        return l2_misses(along_n, walk == "a", *shared)
    turned = l2_misses(along_n.transposed(), walk == "b", *shared)
    return Misses(turned.b, turned.a)


def slices_at_once(tiles: Any, slices: Any, cores: int) -> Any:
    """Return the number of slices of k at one step, if the tiles of a slice are dealt before those of the next one."""
    return np.clip(cores / tiles, 1, slices)


def concurrent_tiles(rows: Any, columns: Any, cores: Any, offset: Any, direction: int) -> tuple[Any, Any]:
    """Return the tile rows and tile columns that `cores` consecutive tiles of a swizzled order cover.

    With `direction` 0 the order has bands of rows.
    """
    across, along = (rows, columns) if direction == 0 else (columns, rows)
    width = np.minimum(np.minimum(offset, across), np.maximum(cores, 1))
    length = np.minimum(np.maximum(cores / width, 1), along)
    # The band is shorter than the number of cores, so they work on several bands at once.
    width = np.minimum(np.maximum(width, cores / along), across)
    return (width, length) if direction == 0 else (length, width)


def passes_bytes(s: WithOptions, slices: Any) -> Any:
    """Return the bytes of the passes that split, convert ND rows, clear C, and add terms and slices."""
    c_all, elements = ACCUMULATOR_BYTES * float(s.m) * s.n, s.m * s.k + s.k * s.n
    copies = s.copies_behind_fixpipe * (slices if s.merge == "reduce" else 1)
    added = (copies > 1) * (copies + 1) * c_all + (s.merge == "atomic") * (slices > 1) * c_all
    return added + (SPLIT_IN_BYTES + SPLIT_OUT_BYTES) * s.split_elements + s.converts * 2 * s.operand_bytes * elements


def passes_latency(s: WithOptions, slices: Any) -> Any:
    """Return the cycles in which those passes wait for their first bytes and for their last stores."""
    chip = s.placed_on
    copies = s.copies_behind_fixpipe * (slices if s.merge == "reduce" else 1)
    reading = (copies > 1) + (s.split_elements > 0) + s.converts
    there, back = chip.memory_read_latency, chip.memory_write_latency
    return reading * (there + back) + (s.merge == "atomic") * (slices > 1) * back


def write_factor(s: TileSchedule, walk: int, group: int) -> int:
    """Return 2 if a write adds in memory, which reads and writes there, else 1."""
    merges = s.merge == "atomic" and len(s.k_slices) > 1 and group == s.groups - 1
    return 2 if merges and (walk == len(s.passes) - 1 or s.combination.in_place) else 1


def operand_bytes_from_memory(s: TileSchedule) -> tuple[float, float]:
    """Return the bytes of A and B that the multiplication takes from memory.

    The paper's kernel reads A once in each pass and takes B from L2 after one miss for all cores of a wave.
    """
    rows, columns = len(s.row_blocks), len(s.column_blocks)
    misses = schedule_misses(s)
    a_loads = min(s.grid.n, columns) if s.resident == "a" else columns
    b_loads = min(s.grid.m, rows) if s.resident == "b" else rows
    a, b = s.operand_bytes * s.m * s.k * a_loads * misses.a, s.weight_bytes * s.k * s.n * b_loads * misses.b
    return float(len(s.passes) * s.words * a), float(len(s.passes) * s.words * b)


def c_bytes(s: TileSchedule) -> float:
    """Return the bytes of C that the multiplication reads and writes, in memory or in L2."""
    fixpipe = bool(s.placed_on.fixpipe)
    walked = [(walk, group) for walk in range(len(s.passes)) for group in range(s.groups)]
    reads = 0 if fixpipe else sum(s.c_reads(*at) for at in walked)
    writes = sum(write_factor(s, *at) * (s.accumulators if fixpipe else s.c_writes(at[1])) for at in walked)
    return 4.0 * s.m * s.n * len(s.k_slices) * (reads + writes)


def cube_memory_bytes(s: TileSchedule) -> float:
    """Return the bytes that a cube kernel moves from and to memory: operands that miss L2, C, and the passes."""
    return sum(operand_bytes_from_memory(s)) + c_bytes(s) + passes_bytes(s, len(s.k_slices))


class RowCosts(NamedTuple):
    """`RowCosts` holds the bytes charged for each byte of A and of B, from L2 and from memory."""

    a: Any
    b: Any
    a_memory: Any
    b_memory: Any


def nd_costs(s: WithOptions, load_k: Any, bn: Any, step: Any = None) -> RowCosts:
    """Return the cost of loads of A and B that MTE2 converts from ND rows; a load brings `load_k` products, `bn` columns of B.

    Columns of B begin at multiples of `step` (None: of `bn`).
    """
    if s.layout == "nz" or s.terms > 1 or not s.placed_on.nd_to_nz:
        return RowCosts(1.0, 1.0, 1.0, 1.0)
    chip = s.placed_on
    a, b = (_pieces(chip, size, load_k, s.k, along_k=True, step=load_k) for size in (s.operand_bytes, s.weight_bytes))
    if s.layout != "nt":
        b = _pieces(chip, s.weight_bytes, bn, s.n, along_k=False, step=bn if step is None else step)
    if s.widens and chip.widened_to_l1:  # rows are read as they are, and measurements show no extra cost
        b = (1.0, 1.0)
    return RowCosts(a[0], b[0], a[1], b[1])


def _pieces(chip: Chip, size: float, elements: Any, row: int, along_k: bool, step: Any) -> tuple[Any, Any]:
    """Return the bytes charged for each byte of a piece of an ND row, from L2 and from memory, which transfers whole lines.

    An element has `size` bytes.

    The next load of the same core takes the rest of the line of a piece along k, so that such a piece costs little more
    than its bytes, unless it begins within a line and goes on into the next one. The rest of the line of a piece along
    n belongs to another core. Each :data:`ND_UNIT` costs more if rows start within a :data:`ND_SECTOR`.
    """
    stride = math.ceil(row * size)
    piece = np.asarray(np.ceil(np.minimum(elements, row) * size), np.int64)
    between = np.asarray(np.ceil(np.minimum(step, row) * size), np.int64)
    starts = np.gcd(between, math.gcd(stride, ND_LINE))  # offset in lines of which all pieces begin at multiples
    in_lines = starts == np.minimum(piece, ND_LINE)
    cheap = in_lines & (along_k | (starts == ND_LINE))
    longer = piece + np.where((not along_k) & (piece < ND_LINE), chip.nd_part_bytes, chip.nd_row_bytes)
    from_l2 = np.where(cheap, np.maximum(piece, chip.nd_least_bytes), longer)
    of_piece = chip.nd_memory_row_bytes * np.where(cheap, np.minimum(piece / ND_LINE, 1.0), 1.0)
    from_memory = np.where(cheap, piece, np.where(in_lines, np.minimum(longer, ND_LINE), longer)) + of_piece
    if stride % ND_SECTOR:
        each = chip.nd_unaligned_bytes if stride % ND_UNIT else chip.nd_sector_bytes
        from_l2, from_memory = (x + -(-piece // ND_UNIT) * each for x in (from_l2, from_memory))
    return from_l2 / piece, from_memory / piece


def distinct_words(terms: int, words: int, warm: bool = False) -> float:
    """Return the share of the passes' word loads that come from memory for the first time.

    Three unfused terms load 4 words 6 times. The share is 0 if a timing loop leaves the operands of one term in L2;
    with several terms the split pass writes its words anew.
    """
    if warm and terms == 1:
        return 0.0
    loads = 2 * words if words > 1 else 2 * terms
    return (2 if terms == 1 else 4) / loads if words == 1 else 1.0
