"""Choosing a schedule: the joint space ranked by closed forms, the best simulated, each plan with its error.

A plan carries why it is where it is, the accuracy that its order of summation costs, what bounds its time, and what to type
into a kernel.
"""

import difflib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ascend.blocking import Blocking, Buffering, feasible_sizes
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.closed_forms import paper_seconds
from ascend.dialects import said_modes
from ascend.kernels.base import Kernel
from ascend.operands import cube_instruction, product_is_published
from ascend.pipes.simulate import Timeline, simulate
from ascend.planner.accuracy import Distribution, data_error, error_bound, sampled_error
from ascend.planner.refine import neighbours
from ascend.planner.search import SAME_TIME, best_schedules, vector_schedules
from ascend.request import Request
from ascend.roofline import RooflinePoint, Traffic, check_sizes, traffic_of_sizes
from ascend.schedule import build_schedule
from ascend.schedule_options import check_options
from ascend.terms import Mode
from ascend.tile_schedule import LARGEST_SIZE
from tensorcore_models.integers import integer_arguments
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result

Rank = Literal["time", "traffic", "analytic"]
RANKS = ("time", "traffic", "analytic")
#: Kernels that a plan may use (:data:`PLAN_KERNELS`).
PlanKernel = Literal["grid", "paper"]
#: A grid's closed forms are at most that much too slow: beyond it nothing can beat the fastest that was simulated.
HOPELESS = 1.25
#: Steps from the fastest schedule to a faster one next to it.
REFINEMENTS = 4
#: The order of tiles dealt one by one gains this much: such a schedule may overtake the fastest.
NEARLY = 1.03
#: Modes with the bits of termwise order; the planner takes the faster one unless the caller names one.
TERMWISE_MODES: tuple[Mode, ...] = ("termwise", "fused")
#: FP32 elements of A, B and C together: 64 GiB, the largest memory of a chip here (910B).
MOST_ELEMENTS = 2**34
#: Share of the memory bandwidth from which on busy loads wait for memory and not for L2.
MEMORY_BOUND = 0.7
#: A plan whose cores are idle for more than this share of their turns says so.
IDLE_SHARE = 0.1

#: Schedules with their time by closed forms, None where there are none.
Found = Iterator[tuple[Kernel, float | None]]


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class Plan(Result):
    """`Plan` is a schedule and what speaks for it.

    Attributes
    ----------
    schedule : Kernel
        As :func:`ascend.build_schedule` builds it.
    timeline : Timeline or None
        The simulation; None where ranking did not need it.
    analytic_seconds : float
        Time by the closed forms.
    roofline : RooflinePoint
        Of the traffic that the schedule causes; eq. 11 for the paper's kernel.
    error : float or None
        Relative Frobenius error (eq. 13); None where it was not asked for.
    error_source : str
        "data", "sample of normal elements", ...
    traffic : Traffic or None
        Elements between memory and L1 for one term (eq. 9), for the paper's kernel.
    """

    schedule: Kernel
    timeline: Timeline | None
    analytic_seconds: float
    roofline: RooflinePoint
    error: float | None = None
    error_source: str = ""
    traffic: Traffic | None = None

    @property
    def blocking(self) -> Blocking:
        """Return the block."""
        return self.schedule.blocking

    @property
    def n_fused(self) -> int:
        """Return blocks of bk in a k group."""
        return self.schedule.n_fused

    @property
    def fusion_efficiency(self) -> float:
        """f of eq. 8, for the words and buffers of this kernel."""
        s = self.schedule
        return s.blocking.fusion_efficiency(s.placed_on, s.buffering, s.words, s.operand)

    @property
    def seconds(self) -> float:
        """Return simulated time, or the analytic one where nothing was simulated."""
        return self.timeline.seconds if self.timeline else self.analytic_seconds

    @property
    def tflops(self) -> float:
        """Return FP32-equivalent TFLOP/s, simulated where that was done."""
        s = self.schedule
        return 2e-12 * s.m * s.n * s.k / self.seconds

    @property
    def error_bound(self) -> float | None:
        """Return bound on the error of each element over (|A| |B|), see :func:`ascend.planner.accuracy.error_bound`.

        None where nothing published says how the cube adds the operand's products.
        """
        return error_bound(self.schedule) if product_is_published(self.schedule.operand) else None

    @property
    def bits(self) -> float | None:
        """Return bits that agree with the exact product, -log2 of the error; None without one."""
        if self.error is None:
            return None
        return math.inf if self.error == 0 else -math.log2(self.error)

    @cached_property
    def bound(self) -> tuple[str, float]:
        """Return what the time is spent on most, and the share of the time that it is busy."""
        if self.timeline is None:
            return self.roofline.bound, math.nan
        s, chip = self.schedule, self.schedule.placed_on
        busy = self.timeline.utilization
        shares = {
            "cube": busy["CUBE"],
            "vector": busy["VECTOR"],
            "memory": float(s.memory_bytes()) / chip.hbm_bytes_per_second / self.seconds,
            "L1 to L0": busy["MTE1"],
            "launch": s.launch_seconds / self.seconds if s.launches else 0.0,
        }
        name = max(shares, key=lambda key: shares[key])
        if s.launches and busy["MTE2"] > shares[name] and shares["memory"] < MEMORY_BOUND:
            return "L2 loads", min(busy["MTE2"], 1.0)
        return name, min(shares[name], 1.0)

    @cached_property
    def warnings(self) -> list[str]:
        """Cores that are idle, and why."""
        return list(_warnings(self))

    def to_rows(self) -> list[dict]:
        """Return one record."""
        return [self.to_dict()]

    def sentences(self) -> list[str]:
        """Return the schedule with its speed and error, and the warnings."""
        s = self.schedule
        speed = f"{self.tflops:.4g} TFLOP/s {'simulated' if self.timeline else 'by the closed forms'}"
        bits = "" if self.bits is None else f", {self.bits:.1f} bits"
        how = f"{s.kernel} kernel, block {self.blocking}, {s.mode}, grid {s.grid}"
        return [f"{s.m} x {s.k} x {s.n} on {s.placed_on.name}: {speed}{bits}; {how}", *self.warnings]

    def to_dict(self) -> dict:
        """Return plain data for JSON and CSV."""
        b, s, (bound, busy) = self.blocking, self.schedule, self.bound
        return {
            "kernel": s.kernel, "bm": b.bm, "bk": b.bk, "bn": b.bn, "n_fused": self.n_fused, "mode": s.mode,
            "grid_m": s.grid.m, "grid_k": s.grid.k, "grid_n": s.grid.n, "resident": s.resident,
            "swizzle_offset": s.swizzle.offset, "swizzle_direction": s.swizzle.direction, "merge": s.merge,
            "depth": s.depth, "cores": s.used_cores,
            "fusion_efficiency": self.fusion_efficiency if self.traffic else None,
            "tflops": self.tflops, "seconds": self.seconds, "simulated": self.timeline is not None,
            "analytic_seconds": self.analytic_seconds,
            "cube_efficiency": self.timeline.cube_efficiency if self.timeline else None,
            "traffic_elements": self.traffic.elements if self.traffic else None,
            "memory_bytes": s.memory_bytes(), "operational_intensity": self.roofline.operational_intensity,
            "bound": bound, "busy": busy if busy == busy else None, "waves": s.waves, "k_groups": s.groups,
            "l0c_slots": s.l0c_slots, "chain": s.chain, "bits": self.bits, "error": self.error,
            "error_source": self.error_source, "error_bound": self.error_bound, "warnings": self.warnings,
        }  # fmt: skip


class _OnGrids:
    """Plans on grids of cores, or on the vector units where they are faster."""

    #: Schedules that are simulated when ranking by time, for each mode.
    simulated = 12
    hopeless = HOPELESS
    refines = True

    @staticmethod
    def modes(r: Request, split: int | None) -> tuple[Mode, ...]:
        """Modes that are tried where none is named; only one sum of all terms can be added slice by slice behind FIXPIPE."""
        if r.terms == 1:
            return TERMWISE_MODES[:1]
        sliced = r.merge == "atomic" and not r.adds_slices_in_memory and (split or 1) > 1
        return ("elementwise",) if sliced else TERMWISE_MODES

    @staticmethod
    def schedules(r: Request, count: int, rank: str, split: int | None) -> Found:
        """The first by closed forms, then vector kernels, which have none."""
        yield from best_schedules(r, count, split, by_traffic=rank == "traffic")
        if r.mode == TERMWISE_MODES[0] or r.terms == 1:
            for schedule in vector_schedules(r):
                if split is None or len(schedule.k_slices) == split:
                    yield schedule, None

    @staticmethod
    def ranked(plans: list[Plan], rank: str) -> list[Plan]:
        """Best first; of equal times more cores, even blocks, less traffic."""
        if rank == "traffic":
            return sorted(plans, key=lambda p: (p.schedule.memory_bytes(), p.seconds))
        best = min(p.seconds for p in plans)

        def key(p: Plan) -> tuple:
            b = p.blocking
            uneven = sum((size % 64 > 0) + (size % 32 > 0) for size in (b.bm, b.bk, b.bn))
            step = int(math.log(p.seconds / best) / math.log1p(SAME_TIME))
            return (step, -p.schedule.used_cores, uneven, p.schedule.memory_bytes(), p.seconds, b)

        return sorted(plans, key=key)


class _OfThePaper:
    """Plans of the paper's kernel: every feasible block."""

    simulated = 200
    hopeless = math.inf
    refines = False

    @staticmethod
    def modes(r: Request, split: int | None) -> tuple[Mode, ...]:
        """Termwise order, as the paper has it."""
        return ("termwise",)

    @staticmethod
    def schedules(r: Request, count: int, rank: str, split: int | None) -> Found:
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
                schedule = build_schedule(r.m, r.k, r.n, r.chip, Blocking(*sizes[index].tolist()), **r.options())
            except ValueError:  # eq. 12 admits it, the accumulators of a fused kernel do not fit: see rejections()
                continue
            count -= 1
            yield schedule, float(seconds[index])

    @staticmethod
    def ranked(plans: list[Plan], rank: str) -> list[Plan]:
        """By simulated time; else they come in order."""
        if rank == "time":
            return sorted(plans, key=lambda p: (p.seconds, p.traffic.elements if p.traffic else 0, p.blocking))
        return plans


#: What plans of each kind of kernel differ in.
_PLANNERS: dict[str, type[_OnGrids] | type[_OfThePaper]] = {"grid": _OnGrids, "paper": _OfThePaper}
PLAN_KERNELS = tuple(_PLANNERS)
SIMULATED = {name: planner.simulated for name, planner in _PLANNERS.items()}


#: Parameters of :func:`plan` by their names, and what it takes of a request's fields besides.
_NAMED_OPTIONS = (
    "terms", "buffering", "rank", "max_error", "data", "top", "kernel", "mode", "operand", "split", "simulated", "distribution",
    "error_of", "progress",
)  # fmt: skip
_OPTIONS = tuple(field.name for field in fields(Request) if field.name not in ("m", "k", "n", "chip", *_NAMED_OPTIONS))


@default_fp_state
@integer_arguments("m", "k", "n", "terms", "top", "split", "simulated")
def plan(
    m: int,
    k: int,
    n: int,
    chip: Chip | str,
    terms: int = 3,
    buffering: Buffering = "double",
    rank: Rank = "time",
    max_error: float | None = None,
    data: tuple | None = None,
    top: int = 10,
    *,
    kernel: PlanKernel = "grid",
    mode: Mode | None = None,
    operand: str = "fp16",
    split: int | None = None,
    simulated: int | None = None,
    distribution: Distribution = "normal",
    error_of: Callable[[Kernel], float] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> list[Plan]:
    """Return the best schedules for C = A B (A m x k, B k x n) on a chip.

    Parameters
    ----------
    m, k, n : int
        Sizes: A is m x k, B is k x n.
    chip : Chip
        The chip whose parameters are used.
    terms, buffering, operand
        The kernel, see :func:`ascend.schedule.build_schedule`.
    rank : {"time", "traffic", "analytic"}
        By simulated time (of the analytically best `simulated`), by the traffic (eq. 9 for the paper's kernel, bytes from
        and to memory for grids), or by the closed forms alone.
    max_error : float, optional
        Leave out schedules whose relative error (eq. 13) is larger.
    data : (a, b), optional
        FP32 arrays, m x k and k x n; the error of each arithmetic is then measured on this product against FP64, else on
        a sample of `distribution`.
    top : int
        Plans returned.
    kernel : {"grid", "paper"}
        Grids of cores, and the vector units for few rows or columns; or the paper's kernel.
    mode : Mode, optional
        How the terms are combined. Default: the faster of termwise and fused, which give the same bits (grids), or termwise
        (the paper's kernel); elementwise where a `split` is to be merged atomically behind FIXPIPE, which those cannot.
    split : int, optional
        Slices of k; searched if None.
    simulated : int, optional
        How many schedules are simulated for rank "time", for each mode.
    distribution : {"normal", "uniform", "positive"}
        Of the elements in the sampled error.
    error_of : callable, optional
        Gives the error of a schedule instead of `data` or a sample.
    progress : callable, optional
        Called with (done, total) simulations.
    **options
        merge, layout, warm, presplit, target: as in :class:`ascend.request.Request`.

    Returns
    -------
    list of Plan
        Best first. Times within half a percent are equal: then more cores, blocks in whole 64s and 32s, less traffic.

    Raises
    ------
    ValueError
        For impossible sizes or options, or when no schedule is left.
    """
    chip = get_chip(chip)
    _check_request(m, k, n, rank, max_error, data, top, simulated, kernel)
    check_options(terms, mode or "termwise", operand)
    chip.cube_step_k(operand)
    if not product_is_published(operand) and (max_error is not None or data is not None):
        cube_instruction(operand)  # says why there is no error
    source = "given" if error_of else "data" if data is not None else f"sample of {distribution} elements"
    if error_of is None:
        error_of = data_error(*data) if data is not None else sampled_error(distribution)
    planner = _PLANNERS[kernel]
    if unknown := sorted(options.keys() - _OPTIONS):
        near = difflib.get_close_matches(unknown[0], [*_OPTIONS, *_NAMED_OPTIONS], 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise TypeError(
            f"plan has no option {', '.join(unknown)}{hint}; it has {', '.join([*_NAMED_OPTIONS, *_OPTIONS])}"
        )
    asked = Request(m, k, n, chip, terms, buffering, mode or "termwise", operand, **options)
    modes = said_modes(asked.target, terms, (mode,) if mode else planner.modes(asked, split), split)
    requests = [replace(asked, mode=each) for each in modes]
    count = max(simulated or planner.simulated, top) if rank == "time" else top
    plans = _candidates(requests, planner, rank, split, count, top, max_error, error_of, progress)
    if rank == "time" and planner.refines:
        plans += _refined(plans, {request.mode: request for request in requests}, max_error, error_of)
    plans = _distinct(planner.ranked(plans, rank))[:top]
    if not product_is_published(operand):
        return [with_error(p, None, f"how the cube adds {operand} products is not published") for p in plans]
    return [with_error(p, error_of(p.schedule), source) for p in plans]


def _candidates(
    requests: list[Request], planner: type[_OnGrids] | type[_OfThePaper], rank: Rank, split: int | None, count: int, top: int,
    max_error: float | None, error_of: Callable[[Kernel], float], progress: Callable[[int, int], None] | None,
) -> list[Plan]:  # fmt: skip
    """The first schedules of each request, `count` or some more, simulated where times rank them."""
    tried = (8 * count, 64 * count, 512 * count) if max_error is not None else (count,)
    for looked_at in tried[:-1]:  # the fastest have long chains: where they lose too many bits, more are looked at
        try:
            return _first_of(requests, planner, rank, split, count, looked_at, top, max_error, error_of, progress)
        except ValueError:
            continue
    return _first_of(requests, planner, rank, split, count, tried[-1], top, max_error, error_of, progress)


def _first_of(
    requests: list[Request], planner: type[_OnGrids] | type[_OfThePaper], rank: Rank, split: int | None, count: int,
    looked_at: int, top: int, max_error: float | None, error_of: Callable[[Kernel], float],
    progress: Callable[[int, int], None] | None,
) -> list[Plan]:  # fmt: skip
    """As :func:`_candidates`, of so many schedules of each request. Raises ValueError if none of them will do."""
    plans: list[Plan] = []
    refused: list[float] = []
    fastest = math.inf
    for request in requests:
        taken = 0
        for schedule, seconds in planner.schedules(request, looked_at, rank, split):
            if max_error is not None and taken == count and schedule.on_cube:
                continue
            if rank == "time" and len(plans) >= top and (seconds or 0.0) > planner.hopeless * fastest:
                continue
            if max_error is not None:
                error = error_of(schedule)
                if not error <= max_error:
                    refused.append(error)
                    continue
            plans.append(_plan(schedule, simulate(schedule) if rank == "time" else None, seconds))
            fastest = min(fastest, plans[-1].seconds)
            taken += 1
            if progress:
                progress(len(plans), max(count * len(requests), len(plans)))
    if not plans:
        r = requests[0]
        raise ValueError(
            f"no block keeps the error below {max_error:g}: the best reaches {min(refused):.3g}" if refused
            else f"no block fits a {r.mode} kernel of {r.terms} terms of {r.operand} operands on {r.chip.name}"
        )  # fmt: skip
    return plans


def _refined(
    plans: list[Plan], requests: dict[Mode, Request], max_error: float | None, error_of: Callable[[Kernel], float]
) -> list[Plan]:
    """Faster schedules next to the fastest, and next to the fastest that deals tiles one by one if it is nearly as fast."""
    best = min(plans, key=lambda p: p.seconds)
    dealt = [p for p in plans if p.schedule.deals_one_by_one and p.seconds < NEARLY * best.seconds]
    starts = [best, *sorted(dealt, key=lambda p: p.seconds)[:1]]
    return [
        p for start in starts[: 1 + (starts[-1] is not best)] for p in _climbed(start, requests, max_error, error_of)
    ]


def _climbed(
    best: Plan, requests: dict[Mode, Request], max_error: float | None, error_of: Callable[[Kernel], float]
) -> list[Plan]:
    """Ever faster schedules, each the fastest next to the one before; at most :data:`REFINEMENTS`."""
    found: list[Plan] = []
    for _ in range(REFINEMENTS):
        s = best.schedule
        if s.mode not in requests:  # a vector kernel, whose mode is nothing
            break
        near = [x for x in neighbours(s, requests[s.mode]) if max_error is None or error_of(x) <= max_error]
        faster = min((_plan(x, simulate(x), None) for x in near), key=lambda p: p.seconds, default=best)
        if faster.seconds >= best.seconds:
            break
        found.append(best := faster)
    return found


def with_error(plan: Plan, error: float | None, source: str) -> Plan:
    """The plan with an error and where it comes from."""
    return Plan(plan.schedule, plan.timeline, plan.analytic_seconds, plan.roofline, error, source, plan.traffic)


@default_fp_state
def plan_of(schedule: Kernel, error: float | None = None, source: str = "given") -> Plan:
    """Return the plan of one schedule, simulated.

    Parameters
    ----------
    schedule : Kernel
        Placed on a chip.
    error : float, optional
        Relative error (eq. 13) of its product; None: that of a sample of normal elements.
    source : str
        Where the error comes from.
    """
    timeline = simulate(schedule)
    seconds = schedule.estimated_seconds() or timeline.seconds
    if error is None:
        error, source = sampled_error()(schedule), "sample of normal elements"
    return with_error(_plan(schedule, timeline, seconds), error, source)


def _plan(s: Kernel, timeline: Timeline | None, seconds: float | None) -> Plan:
    if seconds is None:
        timeline = timeline or simulate(s)
        seconds = timeline.seconds
    return Plan(s, timeline, seconds, s.roofline(), traffic=s.traffic())


def _distinct(plans: list[Plan]) -> list[Plan]:
    """Without plans that differ only in the order of the same tiles and take as long."""
    seen: dict[tuple, Plan] = {}
    for p in plans:
        s = p.schedule
        seen.setdefault((s.kernel, s.mode, s.blocking, s.resident, s.grid), p)
    return list(seen.values())


def _warnings(p: Plan) -> Iterator[str]:
    s = p.schedule
    idle = s.cores - s.used_cores
    if idle > IDLE_SHARE * s.cores:
        name, share = p.bound
        reason = (
            f"{s.tiles} tiles of C and slices of k for them"
            if s.tiles < s.cores
            else f"the grid that is fastest has {s.used_cores} cores"
        )
        why = f"; {name} is {share:.0%} busy, so that more cores would not help" if name == "memory" else ""
        yield f"{idle} of {s.cores} cores are idle: {reason}{why}"
    if s.resident == "none" and s.waves > 1:
        last = s.active_cores(s.waves - 1)
        lost = (s.cores - last) / (s.cores * s.waves)
        if lost > IDLE_SHARE:
            yield f"the last of {s.waves} waves has work for {last} of {s.cores} cores: {lost:.0%} of their turns are lost"


def check_matrices_fit(m: int, k: int, n: int) -> None:
    """Refuse sizes below 1, and matrices that fit no chip's memory (ValueError)."""
    check_sizes(m, k, n)
    if max(m, k, n) > LARGEST_SIZE or m * k + k * n + m * n > MOST_ELEMENTS:
        raise ValueError(
            f"{m} x {k} x {n} needs {4 * (m * k + k * n + m * n) / 2**30:.0f} GiB for A, B and C: beyond any chip's memory"
        )


def _check_request(m, k, n, rank, max_error, data, top, simulated, kernel) -> None:
    check_matrices_fit(m, k, n)
    if kernel not in PLAN_KERNELS:
        raise ValueError(f"kernel is one of {', '.join(PLAN_KERNELS)}, got {kernel!r}")
    if rank not in RANKS:
        raise ValueError(f"rank is one of {', '.join(RANKS)}, got {rank!r}")
    if top < 1 or (simulated is not None and simulated < 1):
        raise ValueError(f"top and simulated must be at least 1, got {top} and {simulated}")
    if max_error is not None and not max_error > 0:
        raise ValueError(f"max_error must be above 0, got {max_error}")
    if data is not None:
        shapes = tuple(np.shape(x) for x in data)
        if shapes != ((m, k), (k, n)):
            raise ValueError(f"data must have the shapes {(m, k)} and {(k, n)}, got {shapes}")
