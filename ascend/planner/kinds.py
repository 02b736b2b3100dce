"""Plans grids of cores, and the paper's kernel: each kind has its own choices."""

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

#: A grid's closed forms are at most that much too slow: beyond it nothing can beat the fastest that was simulated.
HOPELESS = 1.25
#: Modes with the bits of termwise order; the planner takes the faster one unless the caller names one.
TERMWISE_MODES: tuple[Mode, ...] = ("termwise", "fused")

#: Schedules with their time by closed forms, None where there are none.
Found = Iterator[tuple[Kernel, float | None]]


class OnGrids:
    """Plans on grids of cores, or on the vector units where they are faster."""

    #: Schedules that are simulated when ranking by time, for each mode.
    simulated = 12
    hopeless = HOPELESS
    refines = True

    @staticmethod
    def modes(r: Request, split: int | None) -> tuple[Mode, ...]:
        """Return modes that are tried where none is named; only one sum of all terms can be added slice by slice behind
        FIXPIPE."""
        if r.terms == 1:
            return TERMWISE_MODES[:1]
        sliced = r.merge == "atomic" and not r.adds_slices_in_memory and (split or 1) > 1
        return ("elementwise",) if sliced else TERMWISE_MODES

    @staticmethod
    def schedules(r: Request, count: int, rank: str, split: int | None, accepts: Accepts | None) -> Found:
        """Yield the first by closed forms, then vector kernels, which have none."""
        yield from best_schedules(r, count, split, rank == "traffic", accepts)
        if r.mode == TERMWISE_MODES[0] or r.terms == 1:
            for schedule in vector_schedules(r):
                if (split is None or len(schedule.k_slices) == split) and (accepts is None or accepts(schedule)):
                    yield schedule, None

    @staticmethod
    def ranked(plans: list[Plan], rank: str) -> list[Plan]:
        """Return best first; of equal times more cores, even blocks, less traffic."""
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
    """Plans of the paper's kernel: every feasible block."""

    simulated = 200
    hopeless = math.inf
    refines = False

    @staticmethod
    def modes(r: Request, split: int | None) -> tuple[Mode, ...]:
        """Termwise order, as the paper has it."""
        return ("termwise",)

    @staticmethod
    def schedules(r: Request, count: int, rank: str, split: int | None, accepts: Accepts | None) -> Found:
        """In the order of the closed form or the traffic."""
        if split not in (None, 1):
            raise ValueError("the paper's kernel does not split k: take kernel='grid'")
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
            except ValueError:  # eq. 12 admits it, the accumulators of a fused kernel do not fit: see rejections()
                continue
            if accepts is None or accepts(schedule):
                count -= 1
                yield schedule, float(seconds[index])

    @staticmethod
    def ranked(plans: list[Plan], rank: str) -> list[Plan]:
        """By simulated time; else they come in order."""
        if rank == "time":
            return sorted(plans, key=lambda p: (p.seconds, p.traffic.elements if p.traffic else 0, p.blocking))
        return plans


Planner = type[OnGrids] | type[OfThePaper]
#: The kind of kernel by its name.
PLANNERS: dict[str, Planner] = {"grid": OnGrids, "paper": OfThePaper}
PLAN_KERNELS = tuple(PLANNERS)
SIMULATED = {name: planner.simulated for name, planner in PLANNERS.items()}
