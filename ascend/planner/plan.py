"""This module chooses schedules: closed forms rank the candidates, the simulator times the best, and each plan has its error.

A plan says why it has its rank, how large the error of its order of summation is, what bounds its time, and which
values to type into a kernel.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ascend.blocking import Buffering
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.dialects import said_modes
from ascend.kernels.base import Kernel
from ascend.operands import cube_instruction, product_is_published
from ascend.pipes.simulate import simulate
from ascend.planner.choice import Choice, check_matrices_fit
from ascend.planner.refine import neighbours
from ascend.planner.result import Plan, bare_plan, with_error
from ascend.request import Request
from ascend.schedule_options import options_of, refuse_unknown
from ascend.term_modes import Mode
from tensorcore_models.integers import integer_arguments
from tensorcore_models.machine.fp_state import default_fp_state

#: Limit on the steps from the fastest schedule to a faster neighbour.
REFINEMENTS = 4
#: Gain from another order of tiles dealt one by one: such a schedule within this factor may overtake the fastest.
NEARLY = 1.03
#: Options of :func:`plan` with their defaults; without a mode the planner takes the faster of the modes with the same bits.
_OPTIONS = {name: default for record in (Choice, Request) for name, (default, _) in options_of(record).items()}
_OPTIONS["mode"] = None


def _with_all_options(function: Callable) -> Callable:
    """Show the options of the records in the function's signature."""
    own = inspect.signature(function)
    named = [x for x in own.parameters.values() if x.kind is not x.VAR_KEYWORD]
    rest = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in _OPTIONS.items()
        if name not in own.parameters
    ]
    function.__signature__ = own.replace(parameters=[*named, *rest])  # type: ignore[attr-defined]
    return function


@_with_all_options
@default_fp_state
@integer_arguments("m", "k", "n", "terms")
def plan(
    m: int, k: int, n: int, chip: Chip | str, terms: int = 3, buffering: Buffering = "double", **options: Any
) -> list[Plan]:
    """Return the best schedules for C = A B (A m x k, B k x n) on a chip.

    Parameters
    ----------
    m, k, n : int
        Sizes: A is m x k, B is k x n.
    chip : Chip or str
        The chip whose parameters are used, or its name.
    terms, buffering
        Number of terms, and single or double buffers; see :class:`ascend.schedule_options.SharedOptions`.
    **options
        Fields of :class:`ascend.planner.choice.Choice`, which say how plans are chosen, and of
        :class:`ascend.request.Request`, which say what the kernel computes. The default of `mode` depends on the kernel:
        "paper" takes termwise; "grid" takes the faster of termwise and fused, which give the same bits. If FIXPIPE merges
        slices of k atomically, the default is elementwise, because the other modes do not support such a merge.

    Returns
    -------
    list of Plan
        Plans, best first. Times within half a percent count as equal; then plans with more cores, with blocks in
        multiples of 64 and 32, and with less traffic come first.

    Raises
    ------
    ValueError
        If sizes or options are impossible, or no schedule satisfies the options.
    TypeError
        If an option is unknown.
    """
    chip = get_chip(chip)
    check_matrices_fit(m, k, n)
    refuse_unknown("plan", options, tuple(_OPTIONS))
    mode: Mode | None = options.pop("mode", None)
    choice = Choice(**{name: options.pop(name) for name in options_of(Choice) if name in options})
    choice.check_data(m, k, n)
    asked = Request(m, k, n, chip, terms=terms, buffering=buffering, mode=mode or "termwise", **options)
    chip.cube_step_k(asked.operand)
    published = product_is_published(asked.operand)
    if not published and (choice.max_error is not None or choice.data is not None):
        cube_instruction(asked.operand)  # the error says why there is no product to measure
    modes = said_modes(
        asked.target, terms, (mode,) if mode else choice.planner.modes(asked, choice.split), choice.split
    )
    requests = {each: replace(asked, mode=each) for each in modes}
    plans = _candidates(requests, choice)
    if choice.rank == "time" and choice.planner.refines:
        plans += _refined(plans, requests, choice)
    plans = _distinct(choice.planner.ranked(plans, choice.rank))[: choice.top]
    if not published:
        why = (
            "weights have scales of the user's own"
            if asked.widens
            else f"how the cube adds {asked.operand} products is not published"
        )
        return [with_error(p, None, why) for p in plans]
    return [with_error(p, choice.error(p.schedule), choice.measured[1]) for p in plans]


def _candidates(requests: dict[Mode, Request], choice: Choice) -> list[Plan]:
    """Return the first schedules of each request, simulated if times rank them.

    There are as many as the caller wants or a few more. Raises ValueError if there are none.
    """
    plans: list[Plan] = []
    refused: list[float] = []
    fastest = math.inf
    by_time, limit = choice.rank == "time", choice.max_error

    def accepts(schedule: Kernel) -> bool:
        error = choice.error(schedule)
        if limit is not None and not error <= limit:
            refused.append(error)
            return False
        return True

    for request in requests.values():
        wanted = (request, choice.count, choice.rank, choice.split, accepts if limit is not None else None)
        for schedule, seconds in choice.planner.schedules(*wanted):
            if by_time and len(plans) >= choice.top and (seconds or 0.0) > choice.planner.hopeless * fastest:
                continue
            plans.append(bare_plan(schedule, simulate(schedule) if by_time else None, seconds))
            fastest = min(fastest, plans[-1].seconds)
            if choice.progress:
                choice.progress(len(plans), max(choice.count * len(requests), len(plans)))
    if not plans:
        r = next(iter(requests.values()))
        raise ValueError(
            f"no block keeps the error below {limit:g}, the best reaches {min(refused):.3g}: take more terms" if refused
            else f"no block fits a {r.mode} kernel of {r.terms} terms of {r.operand} operands on {r.chip.name}: "
            "change mode, terms, operand or chip"
        )  # fmt: skip
    return plans


def _refined(plans: list[Plan], requests: dict[Mode, Request], choice: Choice) -> list[Plan]:
    """Return faster schedules near the fastest, and near the fastest that deals tiles one by one if it is nearly as fast."""
    best = min(plans, key=lambda p: p.seconds)
    dealt = [p for p in plans if p.schedule.deals_one_by_one and p.seconds < NEARLY * best.seconds]
    starts = [best, *sorted(dealt, key=lambda p: p.seconds)[:1]]
    return [p for start in starts[: 1 + (starts[-1] is not best)] for p in _climbed(start, requests, choice)]


def _climbed(best: Plan, requests: dict[Mode, Request], choice: Choice) -> list[Plan]:
    """Return ever faster schedules, each the fastest neighbour of the one before, at most :data:`REFINEMENTS`."""
    found: list[Plan] = []
    for _ in range(REFINEMENTS):
        s = best.schedule
        if s.mode not in requests:  # a vector kernel, which has no mode
            break
        near = [
            x for x in neighbours(s, requests[s.mode]) if choice.max_error is None or choice.error(x) <= choice.max_error
        ]  # fmt: skip
        faster = min((bare_plan(x, simulate(x), None) for x in near), key=lambda p: p.seconds, default=best)
        if faster.seconds >= best.seconds:
            break
        found.append(best := faster)
    return found


def _distinct(plans: list[Plan]) -> list[Plan]:
    """Return the plans without those that differ from a faster one only in the order of the same tiles."""
    seen: dict[tuple, Plan] = {}
    for p in plans:
        s = p.schedule
        seen.setdefault((s.kernel, s.mode, s.blocking, s.resident, s.grid), p)
    return list(seen.values())
