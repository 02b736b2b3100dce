"""This module reads PipeUtilization.csv of msopprof (msprof op): one kernel, a line for each core that ran it.

The file has neither the sizes nor the duration: the caller gives the sizes, and OpBasicInfo.csv in the same folder has
the duration. Source of the columns: Huawei, PipeUtilization (CANN 8.5, devaids/optool, atlasopdev_16_0099): aic_* of a
cube, aiv_* of a vector core, "NA" for the other kind.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ascend.reports.profile import CORE_TIMES, PIPE_COLUMNS, ProfileRow
from ascend.reports.profile_table import number_in, read_table

EXPECTED = "PipeUtilization.csv of msopprof (msprof op)"
BASIC = "OpBasicInfo.csv"
#: Ratio of the slowest core's time to the mean above which the cores' work is called uneven.
UNEVEN = 1.1


class _Cores(NamedTuple):
    """`_Cores` holds the lines of one kind of core: how long each ran, and the mean time of each pipe (us)."""

    ran: list[float]
    busy: dict[str, float]


def is_pipe_utilization(path: str | Path) -> bool:
    """Return whether a file has the name that msopprof gives PipeUtilization.csv."""
    return Path(path).name.lower().startswith("pipeutilization")


def read_pipe_utilization(path: str | Path, size: tuple[int, int, int], operand: str, layout: str) -> ProfileRow:
    """Return the product of a PipeUtilization file, as a row of a profile.

    Parameters
    ----------
    path : str or Path
        PipeUtilization.csv. The duration comes from OpBasicInfo.csv in its folder, else from the slowest core's time.
    size : tuple of int
        Sizes m, k and n of the product.
    operand : str
        Format of A and B.
    layout : str
        Layout of A and B in memory.

    Raises
    ------
    ValueError
        If the file has another format, or no cube ran.
    """
    table = read_table(path, EXPECTED)
    if "aic_time(us)" not in table.columns and "aicore_time(us)" not in table.columns:
        table.needs(("aic_time(us)",), f"expected {EXPECTED}")
    cubes = _cores([line.fields for line in table.lines], "aic")
    vectors = _cores([line.fields for line in table.lines], "aiv")
    if not cubes.ran:
        raise ValueError(
            f"{path}: no line has a time in aic_time(us), so no cube ran this kernel: give the file of a matrix product"
        )
    name, duration, remarks = _basic_info(Path(path).with_name(BASIC))
    slowest, mean = max(cubes.ran), sum(cubes.ran) / len(cubes.ran)
    if duration is None:
        duration = slowest
        remarks.append(f"no {BASIC} beside it: the slowest core's time is taken for the duration, without the launch")
    if slowest > UNEVEN * mean:
        remarks.append(
            f"the work of {len(cubes.ran)} cubes is uneven: they ran {mean:.4g} us on average, the slowest {slowest:.4g}"
        )
    busy = tuple(
        (pipe, min(cores.busy[pipe] / duration, 1.0))
        for pipe in PIPE_COLUMNS
        for cores in (vectors if pipe == "VECTOR" and vectors.ran else cubes,)
        if pipe in cores.busy
    )
    return ProfileRow(
        name or Path(path).parent.name, *size, operand, duration * 1e-6, busy, (), "", layout, tuple(remarks)
    )


def _cores(lines: list[dict[str, str]], kind: str) -> _Cores:
    """Return the cores of one kind; a pipe's time is the mean over them."""
    own = [line for line in lines if number_in(line, *CORE_TIMES[kind])]
    ran = [number_in(line, *CORE_TIMES[kind]) or 0.0 for line in own]
    busy = {}
    for pipe, names in PIPE_COLUMNS.items():
        times = [_busy(line, names, time) for line, time in zip(own, ran, strict=True)]
        known = [time for time in times if time is not None]
        if known and len(known) == len(times):
            busy[pipe] = sum(known) / len(known)
    return _Cores(ran, busy)


def _busy(line: Mapping[str, str], names: tuple[str, ...], ran: float) -> float | None:
    """Return the microseconds of a pipe on one core: its own column, or its ratio times the core's time."""
    time = number_in(line, *(f"{name}_time(us)" for name in names))
    ratio = number_in(line, *(f"{name}_ratio" for name in names))
    return time if time is not None else None if ratio is None else ratio * ran


def _basic_info(path: Path) -> tuple[str, float | None, list[str]]:
    """Return the name, duration (us) and remarks of OpBasicInfo.csv; no duration if there is no such file."""
    if not path.is_file():
        return "", None, []
    table = read_table(path, f"{BASIC} of msopprof")
    table.needs(("Op Name", "Task Duration(us)"), f"expected {BASIC} of msopprof")
    fields = table.lines[0].fields
    duration = number_in(fields, "Task Duration(us)")
    if not duration:
        raise ValueError(f"{path}: 'Task Duration(us)' must be above 0, got {fields['Task Duration(us)']!r}")
    current, rated = number_in(fields, "Current Freq"), number_in(fields, "Rated Freq")
    if current is not None and rated is not None and 0 < current < rated:
        slow = f"the cores ran at {current:g} of {rated:g} MHz, so times are longer by {rated / current - 1:.0%}"
        return fields["Op Name"], duration, [slow]
    return fields["Op Name"], duration, []
