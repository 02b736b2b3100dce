"""Fitting the free parameters of the timing model to a user's own msprof profile.

The file is op_summary_*.csv as CANN writes it (msprof, AI Core operators): the columns in :data:`COLUMNS` are read. Each
MatMul row is predicted by the plan that this package chooses for its shapes; the kernel that ran may have been another one, so
that the fit also absorbs the difference. Source of the columns: Huawei, op_summary (operator details), CANN 8.0.
"""

import csv
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ascend.chips.chip import Chip, Provenance
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import simulate
from ascend.planner import plan

COLUMNS = ("Op Name", "OP Type", "Task Duration(us)", "Input Shapes", "Input Data Types", "Output Shapes")
#: Beginnings of the operator types that are matrix products.
PRODUCTS = ("MatMul", "Mmad", "Gemm")
#: CANN's data types to operand formats.
OPERANDS = {
    "FLOAT16": "fp16", "DT_FLOAT16": "fp16", "DT_BF16": "bf16", "BF16": "bf16", "BFLOAT16": "bf16", "FLOAT": "fp32",
    "DT_FLOAT": "fp32", "FLOAT32": "fp32", "INT8": "int8", "DT_INT8": "int8",
}  # fmt: skip
#: What is fitted, in this order, with the range that is searched: at most one parameter for each row.
FREE = (
    ("launch_us", 0.0, 60.0),
    ("memory_share", 0.2, 1.0),
    ("sync_cycles_per_block", 0.0, 1000.0),
    ("non_overlapped_fraction", 0.0, 1.0),
)
#: Rounds of coordinate search, and steps of each search.
ROUNDS, STEPS = 4, 14


class Row(NamedTuple):
    """A matrix product of a profile."""

    name: str
    m: int
    k: int
    n: int
    operand: str
    seconds: float


class Residual(NamedTuple):
    """Published or measured against predicted, before and after the fit (seconds)."""

    row: Row
    nominal: float
    calibrated: float


class ProfileFit(NamedTuple):
    """What the fit found.

    Attributes
    ----------
    chip : Chip
        With the fitted parameters in force, marked as calibrated.
    parameters : dict of str to float
        launch_us, sync_cycles_per_block, non_overlapped_fraction, and hbm_bytes_per_second.
    residuals : list of Residual
        Measured against predicted times.
    """

    chip: Chip
    parameters: dict[str, float]
    residuals: list[Residual]

    def spread(self, calibrated: bool = True) -> float:
        """Root mean square of log(predicted / measured): 0.1 is about 10 %."""
        logs = [math.log((r.calibrated if calibrated else r.nominal) / r.row.seconds) for r in self.residuals]
        return math.sqrt(sum(x * x for x in logs) / len(logs))


def read_profile(path: str | Path) -> list[Row]:
    """The matrix products of an op_summary file.

    Raises
    ------
    ValueError
        If a column is missing, a row malformed, or no row a matrix product.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    with open(path, newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream)
        given = reader.fieldnames or []
        missing = [column for column in COLUMNS if column not in given]
        if missing:
            raise ValueError(
                f"{path}: no column {', '.join(map(repr, missing))}; op_summary_*.csv of msprof with --task-time=l1 has them"
            )
        rows = []
        for number, record in enumerate(reader, 2):
            if (record["OP Type"] or "").startswith(PRODUCTS):
                rows.append(_row(record, f"{path}, line {number}"))
    if not rows:
        raise ValueError(f"{path}: no operator whose type begins with {', '.join(PRODUCTS)}")
    return rows


def _row(record: dict, where: str) -> Row:
    shapes = [_shape(text, where) for text in (record["Input Shapes"] or "").strip('"').split(";") if text]
    outputs = [_shape(text, where) for text in (record["Output Shapes"] or "").strip('"').split(";") if text]
    if len(shapes) < 2 or len(outputs) < 1 or any(len(shape) != 2 for shape in (*shapes[:2], outputs[0])):
        raise ValueError(
            f"{where}: expected two matrices in 'Input Shapes' and one in 'Output Shapes', got "
            f"{record['Input Shapes']!r} and {record['Output Shapes']!r}"
        )
    m, n = outputs[0]
    inner = [size for size in shapes[0] if sorted((m, size)) == sorted(shapes[0])]
    inner = [size for size in inner if sorted((size, n)) == sorted(shapes[1])]
    if not inner:
        raise ValueError(f"{where}: shapes {shapes[0]} and {shapes[1]} do not give {outputs[0]}")
    kind = (record["Input Data Types"] or "").strip('"').split(";")[0].upper()
    if kind not in OPERANDS:
        raise ValueError(f"{where}: unknown data type {kind!r}; known: {', '.join(OPERANDS)}")
    try:
        duration = float(record["Task Duration(us)"])
    except (TypeError, ValueError):
        duration = math.nan
    if not 0 < duration < math.inf:
        raise ValueError(f"{where}: 'Task Duration(us)' must be above 0, got {record['Task Duration(us)']!r}")
    return Row(record["Op Name"] or "", m, inner[0], n, OPERANDS[kind], duration * 1e-6)


def _shape(text: str, where: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.strip().strip('"').split(","))
    except ValueError:
        raise ValueError(f"{where}: {text!r} is no shape, expected sizes between commas") from None


def fit_profile(chip: Chip, rows: list[Row], progress: Callable[[int, int], None] | None = None) -> ProfileFit:
    """Fit the free parameters so that the squared logarithms of predicted over measured are least.

    A coordinate search: each parameter in turn, by golden section over its range, a few rounds. With fewer rows than
    parameters only the first ones are fitted.

    Parameters
    ----------
    chip : Chip
        The chip whose parameters are used.
    rows : list of Row
        The measured rows.
    progress : callable, optional
        Called with (done, total) searches.

    Raises
    ------
    ValueError
        Without rows, or for a row that the chip cannot run.
    """
    if not rows:
        raise ValueError("a fit needs at least one measured product")
    schedules = [_schedule(row, chip) for row in rows]
    free = FREE[: len(rows)]
    values = {name: 1.0 if name == "memory_share" else getattr(chip, name) for name, _, _ in FREE}
    nominal = [simulate(schedule).seconds for schedule in schedules]

    def loss(candidate: dict[str, float]) -> float:
        changed = _changed(chip, candidate)
        times = (simulate(schedule.timed_by(changed)).seconds for schedule in schedules)
        return sum(math.log(time / row.seconds) ** 2 for time, row in zip(times, rows, strict=True))

    for number in range(ROUNDS):
        for place, (name, low, high) in enumerate(free):
            others = dict(values)

            def along(x: float, name: str = name, others: dict[str, float] = others) -> float:
                return loss(others | {name: x})

            values[name] = _least(along, low, high, values[name])
            if progress:
                progress(number * len(free) + place + 1, ROUNDS * len(free))
    fitted = _changed(chip, values)
    names = [name if name != "memory_share" else "hbm_bytes_per_second" for name, _, _ in free]
    provenance = dict(fitted.provenance)
    for name in names:
        provenance[name] = Provenance("calibrated", f"fitted to {len(rows)} products of a profile")
    fitted = replace(fitted, provenance=provenance)
    times = [simulate(schedule.timed_by(fitted)).seconds for schedule in schedules]
    residuals = [Residual(*row) for row in zip(rows, nominal, times, strict=True)]
    return ProfileFit(fitted, {name: getattr(fitted, name) for name in names}, residuals)


def _schedule(row: Row, chip: Chip) -> Kernel:
    plans = plan(row.m, row.k, row.n, chip, terms=1, operand=row.operand, simulated=4, top=4, error_of=lambda s: 0.0)
    return next((p.schedule for p in plans if p.schedule.on_cube), plans[0].schedule)


def _changed(chip: Chip, values: dict[str, float]) -> Chip:
    share = values["memory_share"]
    rest = {name: value for name, value in values.items() if name != "memory_share"}
    return chip.replace(hbm_bytes_per_second=share * chip.hbm_bytes_per_second, **rest)


def _least(f: Callable[[float], float], low: float, high: float, now: float) -> float:
    """Where `f` is least on [low, high] by golden section; `now` if that is better."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = low, high
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    fx, fy = f(x), f(y)
    for _ in range(STEPS):
        if fx <= fy:
            b, y, fy = y, x, fx
            x = b - ratio * (b - a)
            fx = f(x)
        else:
            a, x, fx = x, y, fy
            y = a + ratio * (b - a)
            fy = f(y)
    found = min(((fx, x), (fy, y), (f(low), low), (f(now), now)))
    return found[1]
