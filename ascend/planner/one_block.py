"""The plan of a block that somebody names."""

from typing import Any

from ascend.blocking import Blocking, candidate_rejections
from ascend.chips.chip import Chip
from ascend.dialects import ANY, DIALECTS, said_modes
from ascend.planner.plan import Plan, plan_of
from ascend.schedule import build_schedule, variant
from ascend.terms import Mode, combination
from ascend.tiling.fields import described


def plan_of_block(
    m: int, k: int, n: int, chip: Chip, block: tuple[int, int, int], *, kernel: str = "grid", mode: Mode | None = None,
    split: int | None = None, target: str = "", **options: Any,
) -> Plan:  # fmt: skip
    """The plan of a named block: what `target` says of it, else of a grid's choices the fastest residency.

    Parameters
    ----------
    m, k, n : int
        Sizes: A is m x k, B is k x n.
    chip : Chip
        The chip.
    block : (int, int, int)
        bm, bk, bn.
    kernel : {"grid", "paper"}
        Whose block it is.
    mode : str, optional
        How terms are combined; the first that `target` says if None.
    split : int, optional
        Slices of k.
    target : str
        A dialect, or "".
    **options
        Of :func:`ascend.schedule.build_schedule`.

    Raises
    ------
    ValueError
        With every constraint that the block breaks, or for what the target cannot say.
    """
    mode = mode or DIALECTS.get(target, ANY).modes[0]
    said_modes(target, options["terms"], (mode,), split)
    words = combination(mode).words(options["terms"])
    broken = candidate_rejections(*block, chip, options["buffering"], words, options["operand"])
    if broken and kernel == "paper":
        raise ValueError(f"block {block} does not fit {chip.name}: {'; '.join(map(str, broken))}")
    schedule = build_schedule(m, k, n, chip, Blocking(*block), mode=mode, kernel=kernel, split=split, **options)
    if kernel == "paper":
        return plan_of(schedule)
    if target:
        return plan_of(described(schedule, target) or schedule)
    kept = [schedule]
    for resident in ("a", "b"):
        try:
            kept.append(variant(schedule, resident=resident, grid=None, split=split))
        except ValueError:
            continue
    return min(map(plan_of, kept), key=lambda found: found.seconds)
