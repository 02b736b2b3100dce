"""This module plans a block that the caller names."""

from typing import Any

from ascend.blocking import Blocking, candidate_rejections
from ascend.chips.chip import Chip
from ascend.dialects import ANY, DIALECTS, said_modes
from ascend.planner.result import Plan, plan_of
from ascend.schedule import build_schedule, variant
from ascend.schedule_options import ScheduleOptions
from ascend.term_modes import combination
from ascend.tiling.fields import described


def plan_of_block(
    m: int,
    k: int,
    n: int,
    chip: Chip,
    block: tuple[int, int, int],
    *,
    kernel: str = "grid",
    target: str = "",
    **options: Any,
) -> Plan:
    """Return the plan of a named block: the schedule that `target` allows, else the fastest residency of a grid.

    Parameters
    ----------
    m, k, n : int
        Sizes: A is m x k, B is k x n.
    chip : Chip
        The chip.
    block : (int, int, int)
        bm, bk, bn.
    kernel : {"grid", "paper"}
        Kernel of the block.
    target : str
        Dialect of the kernel, or "".
    **options
        Options of :func:`ascend.schedule.build_schedule`; the default mode is the first that `target` can express.

    Raises
    ------
    ValueError
        If the block breaks constraints (the message lists all), or the target cannot express the schedule.
    """
    mode = options.pop("mode", None) or DIALECTS.get(target, ANY).modes[0]
    asked = ScheduleOptions(mode=mode, **options)
    said_modes(target, asked.terms, (mode,), asked.split)
    words = combination(mode).words(asked.terms)
    broken = candidate_rejections(*block, chip, asked.buffering, words, asked.operand)
    if broken and kernel == "paper":
        raise ValueError(
            f"block {block} does not fit {chip.name} ({'; '.join(map(str, broken))}): take a block within these limits"
        )
    schedule = build_schedule(m, k, n, chip, Blocking(*block), mode=mode, kernel=kernel, **options)
    if kernel == "paper":
        return plan_of(schedule)
    if target:
        return plan_of(described(schedule, target) or schedule)
    kept = [schedule]
    for resident in ("a", "b"):
        try:
            kept.append(variant(schedule, resident=resident, grid=None, split=asked.split))
        except ValueError:
            continue
    return min(map(plan_of, kept), key=lambda found: found.seconds)
