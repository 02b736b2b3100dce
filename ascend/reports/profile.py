"""This module reads the matrix products of a profile: msprof's op_summary or torch_npu's kernel_details.

msprof writes op_summary_*.csv, torch_npu's profiler kernel_details.csv. The columns :data:`COLUMNS` are read, and if
present the busy time of each pipe (:data:`PIPE_COLUMNS`), which separates a pipe's work from its waits. A line that is
not understood is left out and named. Sources of the columns: Huawei, op_summary (CANN 8.5, devaids/profiling,
atlasprofiling_16_0067) and the headers in msprof's own tests for two generations; kernel_details: Ascend Extension for
PyTorch. :mod:`ascend.reports.fit` fits a chip to the products, :mod:`ascend.reports.overlay` compares them with a
prediction.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ascend.reports.profile_products import READERS, ProductLine, product_of
from ascend.reports.profile_table import number_in, read_table
from ascend.schedule_options import Dequantize

COLUMNS = ("Op Name", "OP Type", "Task Duration(us)", "Input Shapes", "Input Data Types", "Output Shapes")
#: Names of the same columns in kernel_details.csv and other versions.
ALSO_CALLED = {
    "Name": "Op Name", "Type": "OP Type", "Op Type": "OP Type", "Duration(us)": "Task Duration(us)",
    "Average Duration(us)": "Task Duration(us)",
}  # fmt: skip
EXPECTED = "op_summary_*.csv of msprof with --task-time=l1, or kernel_details.csv of torch_npu with record_shapes=True"
#: Beginnings of the columns of a pipe's busy time; "_time(us)" and "_ratio" follow. Chips whose cores have both units
#: omit "aic_" and "aiv_".
PIPE_COLUMNS = {
    "CUBE": ("aic_mac", "aic_cube", "mac"), "MTE1": ("aic_mte1", "mte1"), "MTE2": ("aic_mte2", "mte2"),
    "MTE3": ("aic_mte3", "mte3"), "FIXP": ("aic_fixpipe", "fixpipe"), "SCALAR": ("aic_scalar", "scalar"),
    "VECTOR": ("aiv_vec", "vec"),
}  # fmt: skip
#: Columns of the time that the cores themselves ran; the ratios are shares of it.
CORE_TIMES = {"aic": ("aicore_time(us)", "aic_time(us)"), "aiv": ("aiv_time(us)",)}


class ProfileRow(NamedTuple):
    """`ProfileRow` is a matrix product of a profile."""

    name: str
    m: int
    k: int
    n: int
    operand: str
    seconds: float
    busy: tuple[tuple[str, float], ...] = ()  #: each pipe with the share of `seconds` that it was busy
    products: tuple[int, ...] = ()  #: m of each product of a batch or of groups
    dequantize: Dequantize = ""  #: unit that scales sums of int8 operands
    layout: str = ""  #: "nz", "nd" or "nt"; "": the profile does not say
    remarks: tuple[str, ...] = ()  #: facts that the profile does not give, and the assumptions in their place
    lines: int = 1  #: lines of the profile that this product stands for

    @property
    def product(self) -> tuple:
        """Return the key of a product: sizes, operands, layout and scales."""
        return self.m, self.k, self.n, self.operand, self.products, self.dequantize, self.layout


class Profile(NamedTuple):
    """`Profile` holds the matrix products of a profile, and why other lines of products were left out."""

    rows: list[ProfileRow]
    skipped: list[str]


def read_profile(path: str | Path) -> Profile:
    """Return the matrix products of an op_summary or kernel_details file, line by line.

    Raises
    ------
    ValueError
        If the file has another format, a column is missing or no product is understood.
    """
    table = read_table(path, EXPECTED, ALSO_CALLED)
    table.needs(COLUMNS, f"expected {EXPECTED}")
    rows: list[ProfileRow] = []
    skipped: list[str] = []
    for number, fields, extra in table.lines:
        where = f"{table.path}, line {number}"
        try:
            if extra:
                raise ValueError(
                    f"{where}: {len(table.columns) + len(extra)} fields for {len(table.columns)} columns: shapes "
                    f"that contain commas need quotes"
                )
            product = product_of(fields, where)
            if product:
                rows.append(_row(product, fields, _duration(fields, where)))
        except ValueError as error:
            skipped.append(str(error))
    if skipped and not rows:
        raise ValueError(skipped[0])
    if not rows:
        raise ValueError(f"{table.path}: {_no_products([line.fields['OP Type'] for line in table.lines])}")
    return Profile(rows, skipped)


def _row(product: ProductLine, fields: Mapping[str, str], duration: float) -> ProfileRow:
    """Return a line's product with its time (us) and its pipes."""
    times = {pipe: _busy_time(pipe, fields, duration) for pipe in PIPE_COLUMNS}
    busy = tuple(
        (pipe, min(time / duration, 1.0)) for pipe, time in times.items() if time is not None and time <= duration
    )
    wrong = [pipe for pipe, time in times.items() if time is not None and time > duration]
    remarks = (f"{', '.join(wrong)} busy for longer than the task: left out",) if wrong else ()
    return ProfileRow(
        fields["Op Name"], product.m, product.k, product.n, product.operand, duration * 1e-6, busy, product.products,
        product.dequantize, product.layout, (*product.remarks, *remarks),
    )  # fmt: skip


def _busy_time(pipe: str, fields: Mapping[str, str], duration: float) -> float | None:
    """Return the microseconds that a pipe was busy: its time column, else its ratio times the time that the cores ran.

    The launch is no part of that time.
    """
    names = PIPE_COLUMNS[pipe]
    time = number_in(fields, *(f"{name}_time(us)" for name in names))
    ratio = number_in(fields, *(f"{name}_ratio" for name in names))
    if time is not None or ratio is None:
        return time
    unit = "aiv" if pipe == "VECTOR" else "aic"
    return ratio * min(number_in(fields, *CORE_TIMES[unit], *CORE_TIMES["aic"]) or duration, duration)


def _no_products(kinds: list[str]) -> str:
    """Return the reason for which no line is a product."""
    if all(kind.upper() in ("", "N/A") for kind in kinds):
        return "'OP Type' is empty in all lines, as --task-time=l0 leaves it: profile with --task-time=l1"
    found = ", ".join(sorted(set(filter(None, kinds)))[:5])
    return f"no operator whose type begins with {', '.join(READERS)}; the file has {found}"


def _duration(fields: Mapping[str, str], where: str) -> float:
    """Return the microseconds of a line."""
    duration = number_in(fields, "Task Duration(us)")
    if not duration:
        raise ValueError(f"{where}: 'Task Duration(us)' must be above 0, got {fields['Task Duration(us)']!r}")
    return duration


def together(rows: Iterable[ProfileRow]) -> list[ProfileRow]:
    """Return the lines with those of the same product merged, in order of first lines.

    A merged line has the median of the times and the means of the busy shares.
    """
    groups: dict[tuple, list[ProfileRow]] = {}
    for row in rows:
        groups.setdefault(row.product, []).append(row)
    return [_median(group) for group in groups.values()]


def _median(rows: list[ProfileRow]) -> ProfileRow:
    if len(rows) == 1:
        return rows[0]
    shares = [dict(row.busy) for row in rows]
    busy = tuple(
        (pipe, math.fsum(share[pipe] for share in shares) / len(rows))
        for pipe in PIPE_COLUMNS
        if all(pipe in share for share in shares)
    )
    return rows[0]._replace(
        seconds=statistics.median(row.seconds for row in rows), busy=busy, lines=sum(row.lines for row in rows)
    )
