"""Fitting the free parameters of the timing model to a user's own msprof profile.

The file is op_summary_*.csv as CANN writes it (msprof, AI Core operators): the columns in :data:`COLUMNS` are read, and
where they are there the busy ratios of the pipes (:data:`RATIOS`), which tell what a pipe does from what it waits for. Each
MatMul row is predicted by the kernel that the caller names, or by the plan that this package chooses for its shapes; the kernel
that ran may have been another one then, so that the fit also absorbs the difference. A row that is not understood is left out
and named. Source of the columns: Huawei, op_summary (operator details), CANN 8.0.
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
#: Busy ratios of the AI Core's pipes, and ours.
RATIOS = {
    "aic_mac_ratio": "CUBE", "aic_mte1_ratio": "MTE1", "aic_mte2_ratio": "MTE2", "aic_fixpipe_ratio": "FIXP",
}  # fmt: skip
#: What is fitted, in this order, with the range that is searched, to times alone: at most one parameter for each row.
FREE = (
    ("launch_us", 0.0, 60.0),
    ("memory_share", 0.2, 1.0),
    ("sync_cycles_per_block", 0.0, 1000.0),
    ("l2_read_rate", 10.0, 400.0),
)
#: And to times with busy ratios; l0_share scales the rates from L1 to L0A and L0B alike.
FREE_WITH_RATIOS = (
    ("launch_us", 0.0, 60.0),
    ("l2_read_rate", 10.0, 400.0),
    ("l0_share", 0.2, 2.0),
    ("mmad_head", 0.0, 100.0),
    ("fixpipe_rate", 10.0, 400.0),
)
#: Shares and the parameters that they scale.
SHARES = {"memory_share": ("hbm_bytes_per_second",), "l0_share": ("l1_to_l0a_rate", "l1_to_l0b_rate")}
#: Rounds of coordinate search, and steps of each search.
ROUNDS, STEPS = 4, 14


class ProfileRow(NamedTuple):
    """A matrix product of a profile."""

    name: str
    m: int
    k: int
    n: int
    operand: str
    seconds: float
    busy: tuple[tuple[str, float], ...] = ()  # pipe and ratio


class Residual(NamedTuple):
    """Published or measured against predicted, before and after the fit (seconds)."""

    row: ProfileRow
    nominal: float
    calibrated: float


class Profile(NamedTuple):
    """The matrix products of a profile, and why other rows of products were left out."""

    rows: list[ProfileRow]
    skipped: list[str]


class ProfileFit(NamedTuple):
    """What the fit found."""

    chip: Chip  #: With the fitted parameters in force, marked as calibrated.
    parameters: dict[str, float]  #: The fitted parameters of the chip.
    residuals: list[Residual]  #: Measured against predicted times.

    def spread(self, calibrated: bool = True) -> float:
        """Root mean square of log(predicted / measured): 0.1 is about 10 %."""
        logs = [math.log((r.calibrated if calibrated else r.nominal) / r.row.seconds) for r in self.residuals]
        return math.sqrt(sum(x * x for x in logs) / len(logs))


def read_profile(path: str | Path) -> Profile:
    """The matrix products of an op_summary file; ValueError if a column is missing or no product is understood."""
    path = Path(path)
    rows: list[ProfileRow] = []
    skipped: list[str] = []
    for number, record in enumerate(_records(path), 2):
        kind, where = record["OP Type"] or "", f"{path}, line {number}"
        if kind.startswith(PRODUCTS):
            try:
                rows.append(_row(record, where))
            except ValueError as error:
                skipped.append(str(error))
        elif "matmul" in kind.lower():
            skipped.append(f"{where}: {kind!r} is no product of two matrices")
    if skipped and not rows:
        raise ValueError(skipped[0])
    if not rows:
        raise ValueError(f"{path}: no operator whose type begins with {', '.join(PRODUCTS)}")
    return Profile(rows, skipped)


def _records(path: Path) -> list[dict]:
    """The lines of a file with all of :data:`COLUMNS`."""
    with open(path, newline="", encoding="utf-8-sig") as stream:
        try:
            reader = csv.DictReader(stream)
            given, records = reader.fieldnames or [], list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} is no CSV file in UTF-8: {error}") from None
    missing = [column for column in COLUMNS if column not in given]
    if missing:
        raise ValueError(
            f"{path}: no column {', '.join(map(repr, missing))}; op_summary_*.csv of msprof with --task-time=l1 has them"
        )
    return records


def _row(record: dict, where: str) -> ProfileRow:
    shapes = [_shape(text, where) for text in (record["Input Shapes"] or "").strip('"').split(";") if text]
    outputs = [_shape(text, where) for text in (record["Output Shapes"] or "").strip('"').split(";") if text]
    padded = any(len(shape) == 4 for shape in shapes[:2])  # NZ fractals: sizes are rounded up
    shapes, outputs = [_unfolded(shape) for shape in shapes], [_unfolded(shape) for shape in outputs]
    if len(shapes) < 2 or len(outputs) < 1 or any(len(shape) != 2 for shape in (*shapes[:2], outputs[0])):
        raise ValueError(
            f"{where}: expected two matrices in 'Input Shapes' and one in 'Output Shapes', got "
            f"{record['Input Shapes']!r} and {record['Output Shapes']!r}"
        )
    m, n = outputs[0]
    inner = [size for size in sorted({*shapes[0], *shapes[1]}) if _is(shapes[0], m, size, padded)]
    inner = [size for size in inner if _is(shapes[1], size, n, padded)]
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
    busy = tuple((pipe, float(record[name])) for name, pipe in RATIOS.items() if _is_ratio(record.get(name)))
    return ProfileRow(record["Op Name"] or "", m, inner[0], n, OPERANDS[kind], duration * 1e-6, busy)


def _unfolded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Rows and columns of NZ fractals (columns / C0, rows / 16, 16, C0); others as they are."""
    return (shape[1] * shape[2], shape[0] * shape[3]) if len(shape) == 4 else shape


def _is(shape: tuple[int, ...], rows: int, columns: int, padded: bool) -> bool:
    """Whether a shape is rows x columns or its transpose, up to whole fractals where it may be padded."""
    step = 32 if padded else 1
    wanted = sorted(-(-size // step) for size in (rows, columns))
    return sorted(-(-size // step) for size in shape) == wanted


def _is_ratio(text: str | None) -> bool:
    try:
        return text is not None and 0 <= float(text) <= 1
    except ValueError:
        return False


def _shape(text: str, where: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.strip().strip('"').split(","))
    except ValueError:
        raise ValueError(f"{where}: {text!r} is no shape, expected sizes between commas") from None


def fit_profile(
    chip: Chip, rows: list[ProfileRow], progress: Callable[[int, int], None] | None = None,
    schedule_of: Callable[[ProfileRow], Kernel] | None = None,
) -> ProfileFit:  # fmt: skip
    """Fit the free parameters so that the squared logarithms of predicted over measured are least.

    With busy ratios the squares of their differences count, too. A coordinate search: each parameter in turn, by golden
    section over its range, a few rounds. With fewer observations than parameters only the first ones are fitted. A row's
    kernel is the best plan for its shapes unless `schedule_of` gives it.
    """
    if not rows:
        raise ValueError("a fit needs at least one measured product")
    schedules = [schedule_of(row) if schedule_of else _schedule(row, chip) for row in rows]
    observations = sum(1 + len(row.busy) for row in rows)
    free = (FREE_WITH_RATIOS if any(row.busy for row in rows) else FREE)[:observations]
    values = {name: 1.0 if name in SHARES else float(getattr(chip, name)) for name, _, _ in free}
    nominal = [simulate(schedule).seconds for schedule in schedules]

    def loss(candidate: dict[str, float]) -> float:
        changed = _changed(chip, candidate)
        total = 0.0
        for schedule, row in zip(schedules, rows, strict=True):
            timeline = simulate(schedule.timed_by(changed))
            total += math.log(timeline.seconds / row.seconds) ** 2
            total += sum((timeline.utilization[pipe] - ratio) ** 2 for pipe, ratio in row.busy)
        return total

    for number in range(ROUNDS):
        for place, (name, low, high) in enumerate(free):
            others = dict(values)

            def along(x: float, name: str = name, others: dict[str, float] = others) -> float:
                return loss(others | {name: x})

            values[name] = _least(along, low, high, values[name])
            if progress:
                progress(number * len(free) + place + 1, ROUNDS * len(free))
    fitted = _changed(chip, values)
    names = [own for name, _, _ in free for own in SHARES.get(name, (name,))]
    provenance = dict(fitted.provenance)
    for name in names:
        provenance[name] = Provenance("calibrated", f"fitted to {len(rows)} products of a profile")
    fitted = replace(fitted, provenance=provenance)
    times = [simulate(schedule.timed_by(fitted)).seconds for schedule in schedules]
    residuals = [Residual(*row) for row in zip(rows, nominal, times, strict=True)]
    return ProfileFit(fitted, {name: getattr(fitted, name) for name in names}, residuals)


def _schedule(row: ProfileRow, chip: Chip) -> Kernel:
    plans = plan(row.m, row.k, row.n, chip, terms=1, operand=row.operand, simulated=4, top=4, error_of=lambda s: 0.0)
    return next((p.schedule for p in plans if p.schedule.on_cube), plans[0].schedule)


def _changed(chip: Chip, values: dict[str, float]) -> Chip:
    changes = {name: value for name, value in values.items() if name not in SHARES}
    for share, scaled in SHARES.items():
        changes |= {name: values[share] * getattr(chip, name) for name in scaled if share in values}
    return chip.replace(**changes)


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
