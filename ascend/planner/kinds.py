"""This module defines the two kinds of plans, grids of cores and the paper's kernel, each with its own choices."""

import math
from collections.abc import Iterator

import numpy as np

from ascend.blocking import Blocking, feasible_sizes
from ascend.closed_forms import paper_seconds
from ascend.kernels.base import Kernel
from ascend.planner.result import Plan
from ascend.planner.search import SAME_TIME, Accepts, best_schedules, vector_schedules
from ascend.request import Request
from ascend.roofline import traffic_of_sizes
from ascend.schedule import build_schedule
from ascend.term_modes import Mode

#: Factor by which a grid's closed forms can be too slow; a schedule beyond it cannot beat the fastest simulated one.
HOPELESS = 1.25
#: Modes with the bits of termwise order; the planner takes the faster one unless the caller names a mode.
TERMWISE_MODES: tuple[Mode, ...] = ("termwise", "fused")

#: Schedules with their time by closed forms, or None if there are no closed forms.
Found = Iterator[tuple[Kernel, float | None]]


class OnGrids:
    """`OnGrids` plans on grids of cores, or on the vector units if they are faster."""

    #: Schedules that are simulated in each mode when ranking by time.
    simulated = 12
    hopeless = HOPELESS
    refines = True

    @staticmethod
    def modes(r: Request, split: int | None) -> tuple[Mode, ...]:
        """Return the modes to try if the caller names none.

        Behind FIXPIPE, only one sum of all terms can be added slice by slice.
        """
        if r.terms == 1:
            return TERMWISE_MODES[:1]
        sliced = r.merge == "atomic" and not r.adds_slices_in_memory and (split or 1) > 1
        return ("elementwise",) if sliced else TERMWISE_MODES

    @staticmethod
    def schedules(r: Request, count: int, rank: str, split: int | None, accepts: Accepts | None) -> Found:
        """Yield the best schedules by closed forms, then vector kernels, which have no closed forms."""
        yield from best_schedules(r, count, split, rank == "traffic", accepts)
        if r.mode == TERMWISE_MODES[0] or r.terms == 1:
            for schedule in vector_schedules(r):
                if (split is None or len(schedule.k_slices) == split) and (accepts is None or accepts(schedule)):
                    yield schedule, None

    @staticmethod
    def ranked(plans: list[Plan], rank: str) -> list[Plan]:
        """Return the plans, best first; of equal times the one with more cores, then even blocks, then less traffic."""
        if rank == "traffic":
            return sorted(plans, key=lambda p: (p.schedule.memory_bytes(), p.seconds))
        best = min(p.seconds for p in plans)

        def key(p: Plan) -> tuple:
            b = p.blocking
            uneven = sum((size % 64 > 0) + (size % 32 > 0) for size in (b.bm, b.bk, b.bn))
            step = int(math.log(p.seconds / best) / math.log1p(SAME_TIME))
            return (step, -p.schedule.used_cores, uneven, p.schedule.memory_bytes(), p.seconds, b)

        return sorted(plans, key=key)


class OfThePaper:
    """`OfThePaper` plans the paper's kernel with every feasible block."""

    simulated = 200
    hopeless = math.inf
    refines = False

    @staticmethod
    def modes(r: Request, split: int | None) -> tuple[Mode, ...]:
        """Return termwise order, the paper's."""
        return ("termwise",)

    @staticmethod
    def schedules(r: Request, count: int, rank: str, split: int | None, accepts: Accepts | None) -> Found:
        """Yield the schedules in the order of the closed form or of the traffic."""
        if split not in (None, 1):
            raise ValueError(f"kernel='paper' does not split k, got split={split}: take kernel='grid'")
        sizes = feasible_sizes(r.chip, r.buffering, r.words, r.operand)
        if not len(sizes):
            return
        seconds = paper_seconds(sizes, r)
        moved = traffic_of_sizes(sizes, r.m, r.k, r.n, r.chip)
        keys = (moved, seconds) if rank == "traffic" else (seconds, moved)
        for index in np.lexsort((sizes[:, 2], sizes[:, 1], sizes[:, 0], keys[1], keys[0])).tolist():
            if not count:
                return
            try:
                schedule = build_schedule(r.m, r.k, r.n, r.chip, Blocking(*sizes[index].tolist()), **r.shared_options())
            except ValueError:
                # eq. 12 admits the block, but the accumulators of a fused kernel do not fit: see rejections()
                continue
            if accepts is None or accepts(schedule):
                count -= 1
                yield schedule, float(seconds[index])

    @staticmethod
    def ranked(plans: list[Plan], rank: str) -> list[Plan]:
        """Return the plans by simulated time; for other ranks they are in order already."""
        if rank == "time":
            return sorted(plans, key=lambda p: (p.seconds, p.traffic.elements if p.traffic else 0, p.blocking))
        return plans


Planner = type[OnGrids] | type[OfThePaper]
#: Kind of plan by the name of its kernel.
PLANNERS: dict[str, Planner] = {"grid": OnGrids, "paper": OfThePaper}
PLAN_KERNELS = tuple(PLANNERS)
SIMULATED = {name: planner.simulated for name, planner in PLANNERS.items()}
