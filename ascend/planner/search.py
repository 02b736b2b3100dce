"""This module ranks the joint space of blocks, grids, orders, residency and split-k by closed forms.

Blocks that cut C into the same tiles as a smaller block are left out, so that a size of 1 has one block height and not
eleven.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ascend.blocking import Blocking, feasible_sizes, fractals
from ascend.dialects import ANY, DIALECTS
from ascend.grid import Grid, Swizzle
from ascend.kernels.base import Kernel
from ascend.kernels.vector import VECTOR_OPERANDS
from ascend.memory import ND_LINE
from ascend.operand_formats import ALIGNMENT, FORMATS
from ascend.planner.estimate import Candidates, Estimate, estimate, up
from ascend.request import Request
from ascend.schedule import build_schedule
from ascend.tile_schedule import LARGEST_SIZE
from ascend.tiling.fields import is_said_by

#: Numbers of slices of k that are tried.
SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
#: Widths of a swizzle's bands that are tried besides the width for which the cores' tiles form a square.
BAND_WIDTHS = (1, 3, 6)
#: Tiles for each core from which on k is not split.
ENOUGH_TILES = 5
#: Of the kept schedules, at least one in so many is of each kind: A kept, B kept, rectangles, tiles dealt one by one.
SHARE_OF_A_KIND = 3
#: Number of sorted candidates of a kind for each kept one, because some are equivalent and some overflow a buffer.
SORTED = 64
#: Relative difference below which times count as equal.
SAME_TIME = 0.005
#: Relative difference below which the times of the busiest core leave it the same slack, if memory decides.
SAME_SLACK = 0.02
#: Vector lines in UB that are tried (lanes along the streamed side, or rows of a streamed A), with depths.
VECTOR_TILES = ((256, 16), (512, 16), (1024, 16), (2048, 16), (512, 32))
#: Rows of the kept operand from which on the vector kernel, which spends an instruction on each, cannot win.
MOST_VECTOR_ROWS = 64
#: Function that says whether a schedule's sums are accurate enough.
Accepts = Callable[[Kernel], bool]


def tiling_blocks(r: Request) -> tuple[np.ndarray, np.ndarray]:
    """Return feasible (bm, bk, bn) rows, int64, shape (blocks, 3), and a mask of those that cut tiles of bn columns.

    The other blocks cut nearly equal tiles. If B lies in ND rows, blocks of whole lines may be better than equal tiles,
    which begin within lines.
    """
    sizes = feasible_sizes(r.chip, r.buffering, r.words, r.operand, whole_in_ub=False)
    bm, bk, bn = sizes.T

    def is_tile(block: np.ndarray, length: int) -> np.ndarray:
        return up(up(length, up(length, block)), ALIGNMENT) * ALIGNMENT == block

    whole = FORMATS[r.operand].whole_k
    accumulators = 4 * r.accumulators * bm * bn <= r.chip.l0c_bytes
    fitting = is_tile(bm, r.m) & (bk <= fractals(r.k, whole) * whole) & accumulators
    equal, cut = fitting & is_tile(bn, r.n), fitting & r.reads_rows_of_b & (bn * r.format.bits // 8 % ND_LINE == 0)
    cut &= (bn <= fractals(r.n) * ALIGNMENT) & (r.n % bn != 0)
    if r.target:
        found = equal | cut
        return sizes[found], np.ones(np.count_nonzero(found), bool)
    return np.concatenate([sizes[equal], sizes[cut]]), np.repeat([False, True], [equal.sum(), cut.sum()])


def grid_candidates(r: Request, split: int | None = None) -> Iterator[Candidates]:
    """Yield all candidates in groups of one kind and direction; `split` restricts them to this number of slices."""
    said = DIALECTS.get(r.target, ANY)
    blocks_said, cut = tiling_blocks(r)
    if said.powers_of_two:
        kept = (blocks_said & (blocks_said - 1) == 0).all(axis=1)
        blocks_said, cut = blocks_said[kept], cut[kept]
    if not len(blocks_said):
        return
    sizes = blocks_said.astype(float)
    bm, bk, bn = sizes.T
    cores = r.chip.cores
    if r.merge == "atomic" and not r.adds_slices_in_memory:
        r.check_merge(split or 1)
        split = 1
    rows, columns, blocks = up(r.m, bm), up(r.n, bn), up(r.k, bk)
    splits = [s for s in (SPLITS if split is None else (split,)) if s <= cores and (s == 1 or said.slices)]
    for slices in splits:
        may = blocks >= slices
        if split is None and slices > 1:
            few = np.minimum(rows, columns) * slices <= cores  # panels that stay in L1 with either operand streamed
            may &= (rows * columns * slices <= ENOUGH_TILES * cores) | few
        if not may.any():
            continue
        m_, k_, n_, r_, c_, w_ = bm[may], bk[may], bn[may], rows[may], columns[may], cut[may]
        ones = np.ones_like(m_)
        for direction in said.directions:
            square = np.round(np.sqrt(cores / slices * (n_ / m_ if direction == 0 else m_ / n_)))
            for width in (square, *(BAND_WIDTHS if slices == 1 else ())):
                most = r_ if direction == 0 else c_
                yield Candidates(m_, k_, n_, np.clip(width, 1, most), slices * ones, ones, w_, "none", direction)
        if not said.rectangles:
            continue
        left = cores // slices
        for across in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32):
            if across > left:
                break
            along = float(left // across)
            if r.target:
                # Fields count upwards, so cores beyond the number of whole shares have no work in them.
                at_m, at_n = up(r_, up(r_, along)), up(c_, up(c_, across))
                for direction in (0, 1):
                    yield Candidates(m_, k_, n_, at_m, slices * ones, at_n, w_, "none", direction, True)
                continue
            for direction in (0, 1) if left > 1 else ():
                shape = ones * along, slices * ones, ones * float(across)
                yield Candidates(m_, k_, n_, *shape, w_, "none", direction, True)
            yield Candidates(m_, k_, n_, np.minimum(along, r_), slices * ones, np.minimum(float(across), c_), w_, "a")
            yield Candidates(m_, k_, n_, np.minimum(float(across), r_), slices * ones, np.minimum(along, c_), w_, "b")


class _Group(NamedTuple):
    """`_Group` holds candidates of one kind and direction, their places among all, their closed forms, and their sums."""

    c: Candidates
    place: np.ndarray
    found: Estimate
    sums: np.ndarray  # a number for each (bk, N_fused, slices of k), which determine the sums of a request's schedule

    @classmethod
    def of(cls, r: Request, c: Candidates, place: np.ndarray) -> "_Group":
        """Return the group with its closed forms."""
        found = estimate(r, c)
        return cls(c, place, found, (c.bk * LARGEST_SIZE + found.n_fused) * 64 + c.slices)


class _Ranking:
    """`_Ranking` holds the candidates of a request, and the sums that were accepted and refused."""

    def __init__(self, r: Request, groups: Sequence[_Group], by_traffic: bool, accepts: Accepts | None):
        self.r, self.groups, self.by_traffic, self.accepts = r, groups, by_traffic, accepts
        self.built: dict[tuple[int, int], Kernel | None] = {}
        self.accepted: set[float] = set()
        self.refused: set[float] = set()

    def first(self, count: int) -> tuple[list[tuple[Kernel, float]], bool]:
        """Return the first `count` accepted schedules, and whether some later ones may be missing.

        The search takes the first candidates whose sums are not refused yet.
        """
        before = len(self.refused)
        ranked = [self._first(group, SORTED * count) for group in self.groups]
        owner = np.repeat(np.arange(len(ranked)), [len(inside) for inside, _, _ in ranked])
        inside, seconds = (np.concatenate([each[column] for each in ranked]) for column in (0, 1))
        order = np.lexsort(np.concatenate([keys for _, _, keys in ranked], axis=1))
        found: dict[tuple, tuple[Kernel, float]] = {}
        # The closed forms leave out other transients for each kind, so some of each kind are simulated.
        wanted = dict.fromkeys({group.c.kind for group in self.groups}, max(count // SHARE_OF_A_KIND, 1))
        for index in order.tolist():
            number, at = int(owner[index]), int(inside[index])
            c = self.groups[number].c
            if not np.isfinite(seconds[index]) or (len(found) >= count and not any(wanted.values())):
                return list(found.values()), False
            if (len(found) >= count and not wanted[c.kind]) or self.groups[number].sums[at] in self.refused:
                continue
            # Grids and bands that deal the same tiles in the same way take equally long, so one of them is enough.
            key = (c.bm[at], c.bk[at], c.bn[at], c.whole[at], c.kind, c.slices[at], f"{seconds[index]:.9e}")
            schedule = None if key in found else self._schedule(number, at)
            if schedule is not None:
                found[key] = (schedule, float(seconds[index]))
                wanted[c.kind] = max(wanted[c.kind] - 1, 0)
        return list(found.values()), len(self.refused) > before

    def _first(self, group: _Group, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the result of :func:`_first` with infinite times for refused sums."""
        found = group.found
        if self.refused:
            found = found._replace(seconds=np.where(np.isin(group.sums, [*self.refused]), np.inf, found.seconds))
        return _first(found, group.c, group.place, count, self.by_traffic)

    def _schedule(self, number: int, at: int) -> Kernel | None:
        """Return a candidate's schedule, if it can be built and its sums are accepted."""
        c, sums = self.groups[number].c, float(self.groups[number].sums[at])
        if (number, at) not in self.built:
            self.built[number, at] = _schedule(self.r, c, at)
        schedule = self.built[number, at]
        if self.accepts and schedule is not None and sums not in self.accepted:
            (self.accepted if self.accepts(schedule) else self.refused).add(sums)
        return None if sums in self.refused else schedule


def best_schedules(
    r: Request, count: int, split: int | None = None, by_traffic: bool = False, accepts: Accepts | None = None
) -> list[tuple[Kernel, float]]:
    """Return the first `count` schedules by closed-form time (or traffic), some of each kind, with their seconds.

    `accepts` leaves out schedules by their sums. It is called once for each block size along k, number of k blocks in a
    group and number of slices; if it refuses one, no other schedule with these sums is built.
    """
    groups = _groups(r, split)
    if not groups:
        return []
    ranking = _Ranking(r, groups, by_traffic, accepts)
    more = True
    while more:
        found, more = ranking.first(count)
    return found


@lru_cache(maxsize=2)  # for the two modes of one way, whose plans in shorter chains have the same candidates
def _groups(r: Request, split: int | None) -> list[_Group]:
    """Return the candidates of each kind and direction with their closed forms."""
    parts: dict[tuple, list[tuple[Candidates, np.ndarray]]] = {}
    before = 0
    for part in grid_candidates(r, split):
        count = len(part.bm)
        parts.setdefault((part.kind, part.direction), []).append((part, before + np.arange(count)))
        before += count
    return [
        _Group.of(r, Candidates.joined([part for part, _ in each]), np.concatenate([place for _, place in each]))
        for each in parts.values()
    ]


def _first(
    found: Estimate, c: Candidates, place: np.ndarray, count: int, by_traffic: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the indices of the first `count` and of those as good as the last, their seconds, and sort keys (least first).

    Equal times are ranked by more cores, more slack, blocks in multiples of 64 and 32, less traffic, and the smaller
    block. Thousands of candidates end with the same memory traffic; loads and cube overlap better if the cores wait
    more.
    """
    finite = np.isfinite(found.seconds)
    step = np.floor(np.log(np.where(finite, found.seconds, 1e9)) / np.log1p(SAME_TIME))
    moved = found.memory_bytes
    if by_traffic:
        step, moved = np.where(finite, moved, np.inf), step
    kept = np.flatnonzero(step <= (np.partition(step, count)[count] if len(step) > count else np.inf))
    slack = np.floor(np.log(found.core_seconds[kept]) / np.log1p(SAME_SLACK))
    sizes = np.stack([c.bm, c.bk, c.bn])[:, kept]
    uneven = (sizes % 64 > 0).sum(axis=0) + (sizes % 32 > 0).sum(axis=0)
    keys = (place[kept], *sizes[::-1], moved[kept], uneven, slack, -found.active[kept], step[kept])
    return kept, found.seconds[kept], np.stack(keys)


def _schedule(r: Request, c: Candidates, index: int) -> Kernel | None:
    """Return a candidate as a schedule, or None if another buffer overflows or a target cannot express it."""
    block = Blocking(int(c.bm[index]), int(c.bk[index]), int(c.bn[index]))
    at_m, slices, at_n = int(c.at_m[index]), int(c.slices[index]), int(c.at_n[index])
    grid = Grid(k=slices) if c.deals_one_by_one else Grid(at_m, slices, at_n)
    turns = c.deals_one_by_one and DIALECTS.get(r.target, ANY).turns
    swizzle = None if c.direction is None else Swizzle(at_m if c.deals_one_by_one else 1, c.direction, turns)
    try:
        schedule = build_schedule(
            r.m, r.k, r.n, r.chip, block, kernel="grid", grid=grid, resident=c.resident, swizzle=swizzle,
            balanced=False if c.whole[index] else r.balanced, **r.shared_options(),
        )  # fmt: skip
    except ValueError:
        return None
    return schedule if not r.target or is_said_by(schedule, r.target) else None


def vector_schedules(r: Request) -> list[Kernel]:
    """Return vector kernels for a product with few rows or columns that needs FP32 accuracy or has FP16 operands."""
    if r.target or min(r.m, r.n) > MOST_VECTOR_ROWS or (r.terms == 1 and r.operand not in VECTOR_OPERANDS):
        return []
    operand = r.operand if r.terms == 1 else "fp32"
    side = max(r.m, r.n)
    kept = fractals(min(r.m, r.n)) * ALIGNMENT
    found = {}
    for width, depth in VECTOR_TILES:
        width = min(width, fractals(side) * ALIGNMENT)
        # Lanes run along n if B is streamed, along k if A is.
        streams_b = r.n >= r.m
        of_k = width if streams_b else min(width, fractals(r.k) * ALIGNMENT)
        block = Blocking(kept, depth, width) if streams_b else Blocking(depth, of_k, kept)
        lines = block.bn if streams_b else block.bm
        for split in SPLITS:
            along = max(min(r.chip.cores // split, -(-side // lines)), 1) if split <= r.chip.cores else 0
            if not along or split > -(-r.k // block.bk):
                continue
            grid = Grid(1, split, along) if r.n >= r.m else Grid(along, split, 1)
            try:
                schedule = build_schedule(
                    r.m, r.k, r.n, r.chip, block, terms=1, kernel="vector", grid=grid, operand=operand, merge=r.merge
                )
            except ValueError:
                continue
            found[schedule.blocking, schedule.grid] = schedule
    # The grid with the most cores is fastest; fewer slices need less merging.
    return sorted(found.values(), key=lambda s: (-s.used_cores, s.grid.k, -s.blocking.bn))[:6]
