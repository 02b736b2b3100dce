"""This module turns published fields of a TCubeTiling, from a page or a kernel's log, into a schedule.

:mod:`ascend.tiling.fields` turns a schedule into fields.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ascend.blocking import Blocking, fractals
from ascend.chips.chip import Chip
from ascend.grid import Grid, Swizzle
from ascend.kernels.base import Kernel
from ascend.schedule import build_schedule
from ascend.schedule_options import DEEPEST_STREAM
from ascend.tiling.rules import ITERATE_M_FIRST

#: Fields that determine the schedule; omitted iterateOrder, stepM and stepN have AscendC's values.
NEEDED = (
    "M", "N", "Ka", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK", "depthA1", "depthB1",
)  # fmt: skip
DEFAULTS = {"iterateOrder": ITERATE_M_FIRST, "stepM": 1, "stepN": 1}


class Entered(NamedTuple):
    """`Entered` is a schedule made from fields, with notes on its differences from them."""

    schedule: Kernel
    notes: list[str]


def read_tiling(path: str | Path) -> dict[str, int]:
    """Return the fields in a JSON file: the object itself, or its "tiling" (as in the record of an emitted kernel).

    Raises
    ------
    ValueError
        If the file is no such object, or lacks a field that decides the schedule.
    """
    try:
        found: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}; expected the fields of a TCubeTiling") from None
    fields = found.get("tiling", found) if isinstance(found, dict) else found
    if not isinstance(fields, dict):
        raise ValueError(f"{path}: expected an object with the fields of a TCubeTiling, got {type(fields).__name__}")
    missing = [name for name in NEEDED if name not in fields]
    wrong = [name for name, value in fields.items() if type(value) is not int or value < 0]
    if missing or wrong:
        given = ", ".join(f"{name} = {fields[name]!r}" for name in wrong)
        why = (
            f"must have {', '.join(missing)}; add them"
            if missing
            else f"must have whole numbers of at least 0, got {given}"
        )
        raise ValueError(f"{path}: a TCubeTiling {why}")
    return fields


def entered(fields: Mapping[str, int], chip: Chip, template: str = "", **options: Any) -> Entered:
    """Return the schedule of AscendC's Matmul with these fields.

    Parameters
    ----------
    fields : mapping of str to int
        Fields by AscendC's names; sizes are in elements, rectangles and usedCoreNum count cubes.
    chip : Chip
        Chip on which the kernel runs.
    template : {"", "norm", "mdl"}
        Template of AscendC's Matmul; by default "norm" if one block of A and of B is in L1, else "mdl".
    **options
        Options of :func:`ascend.build_schedule`: operand, layout, unit_flag, dequantize, warm.

    Raises
    ------
    ValueError
        If a size is 0, there are more rectangles than cores, fields contradict each other, or as for
        :func:`ascend.build_schedule`.
    """
    f = DEFAULTS | dict(fields)
    if zero := [name for name in NEEDED if f[name] < 1]:
        raise ValueError(f"got 0 for {', '.join(zero)}, expected numbers above 0")
    if f.get("Kb", f["Ka"]) != f["Ka"]:
        raise ValueError(f"Ka = {f['Ka']} and Kb = {f['Kb']} differ: they must be equal")
    sides = (("M", "singleCoreM"), ("Ka", "singleCoreK"), ("N", "singleCoreN"))
    grid = Grid(*(fractals(f[whole], f[own]) for whole, own in sides))
    if f.get("usedCoreNum", grid.cores) != grid.cores:
        raise ValueError(
            f"usedCoreNum = {f['usedCoreNum']}, but the other fields divide the product into {grid.cores} rectangles: "
            f"make them agree; in MIX mode usedCoreNum must count cubes, and singleCoreM and singleCoreN must be the "
            f"rectangle of one cube"
        )
    depths = f["depthA1"] // f["stepM"], f["depthB1"] // f["stepN"]
    depth = max(min(*depths, DEEPEST_STREAM), 1)
    notes = [f"depthA1 = {f['depthA1']} and depthB1 = {f['depthB1']}: both streams are timed {depth} deep"]
    how = template or ("norm" if depth == 1 else "mdl")
    schedule = build_schedule(
        f["M"], f["Ka"], f["N"], chip, Blocking(f["baseM"], f["baseK"], f["baseN"]), kernel="grid", terms=1, grid=grid,
        resident="none", balanced=False, swizzle=Swizzle(1, int(f["iterateOrder"] == ITERATE_M_FIRST), False),
        depth=None if how == "norm" else depth, template=how, merge="atomic" if grid.k > 1 else "reduce", **options,
    )  # fmt: skip
    return Entered(schedule, notes if max(depths) > depth else [])
