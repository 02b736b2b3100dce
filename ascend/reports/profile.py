"""The matrix products of a user's own msprof profile.

The file is op_summary_*.csv as CANN writes it (msprof, AI Core operators), or kernel_details.csv of torch_npu's profiler: the
columns in :data:`COLUMNS` are read, and where they are there the busy ratios of the pipes (:data:`RATIOS`), which tell what a
pipe does from what it waits for. A row that is not understood is left out and named. Sources of the columns: Huawei, op_summary
(operator details), CANN 8.0; Ascend Extension for PyTorch, kernel_details.
:mod:`ascend.reports.fit` fits a chip to them.
"""

import csv
import math
from pathlib import Path
from typing import NamedTuple

from ascend.schedule_options import Dequantize

COLUMNS = ("Op Name", "OP Type", "Task Duration(us)", "Input Shapes", "Input Data Types", "Output Shapes")
#: The same columns, as kernel_details.csv of torch_npu's profiler and newer versions call them.
ALSO_CALLED = {
    "Name": "Op Name", "Type": "OP Type", "Duration(us)": "Task Duration(us)", "aic_cube_ratio": "aic_mac_ratio",
}  # fmt: skip
#: Beginnings of the operator types that are matrix products, and how their shapes are read.
PRODUCTS = {
    "MatMul": "product", "Mmad": "product", "Gemm": "product", "QuantBatchMatmul": "quantised", "QuantMatmul": "quantised",
    "BatchMatMul": "batch", "GroupedMatmul": "grouped",
}  # fmt: skip
#: CANN's data types to operand formats.
OPERANDS = {
    "FLOAT16": "fp16", "DT_FLOAT16": "fp16", "DT_BF16": "bf16", "BF16": "bf16", "BFLOAT16": "bf16", "FLOAT": "fp32",
    "DT_FLOAT": "fp32", "FLOAT32": "fp32", "INT8": "int8", "DT_INT8": "int8",
}  # fmt: skip
#: Busy ratios of the AI Core's pipes, and ours.
RATIOS = {
    "aic_mac_ratio": "CUBE", "aic_mte1_ratio": "MTE1", "aic_mte2_ratio": "MTE2", "aic_fixpipe_ratio": "FIXP",
}  # fmt: skip


class ProfileRow(NamedTuple):
    """A matrix product of a profile."""

    name: str
    m: int
    k: int
    n: int
    operand: str
    seconds: float
    busy: tuple[tuple[str, float], ...] = ()  # pipe and ratio
    products: tuple[int, ...] = ()  # m of each product of a batch or of groups
    dequantize: Dequantize = ""  # what scales sums of int8 operands


class Profile(NamedTuple):
    """The matrix products of a profile, and why other rows of products were left out."""

    rows: list[ProfileRow]
    skipped: list[str]


def read_profile(path: str | Path) -> Profile:
    """The matrix products of an op_summary file; ValueError if a column is missing or no product is understood."""
    path = Path(path)
    rows: list[ProfileRow] = []
    skipped: list[str] = []
    for number, record in enumerate(_records(path), 2):
        kind, where = record["OP Type"] or "", f"{path}, line {number}"
        read_as = next((how for start, how in PRODUCTS.items() if kind.lower().startswith(start.lower())), None)
        if read_as:
            try:
                rows.append(_row(record, where, read_as))
            except ValueError as error:
                skipped.append(str(error))
        elif "matmul" in kind.lower():
            skipped.append(f"{where}: {kind!r} is no product that is timed here")
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
            given = [ALSO_CALLED.get(name, name) for name in reader.fieldnames or []]
            reader.fieldnames = given
            records = list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} is no CSV file in UTF-8: {error}") from None
    missing = [column for column in COLUMNS if column not in given]
    if missing:
        raise ValueError(
            f"{path}: no column {', '.join(map(repr, missing))}; op_summary_*.csv of msprof with --task-time=l1 and "
            "kernel_details.csv of torch_npu's profiler have them"
        )
    return records


def _row(record: dict, where: str, kind: str) -> ProfileRow:
    shapes = [_shape(text, where) for text in (record["Input Shapes"] or "").strip('"').split(";") if text]
    outputs = [_shape(text, where) for text in (record["Output Shapes"] or "").strip('"').split(";") if text]
    data_types = (record["Input Data Types"] or "").strip('"').upper().split(";")
    try:
        duration = float(record["Task Duration(us)"])
    except (TypeError, ValueError):
        duration = math.nan
    if not 0 < duration < math.inf:
        raise ValueError(f"{where}: 'Task Duration(us)' must be above 0, got {record['Task Duration(us)']!r}")
    given = f"{record['Input Shapes']!r} and {record['Output Shapes']!r}"
    m, k, n, products = {"batch": _batch, "grouped": _grouped}.get(kind, _matrices)(shapes, outputs, where, given)
    operand = data_types[0]
    if operand not in OPERANDS:
        raise ValueError(f"{where}: unknown data type {operand!r}; known: {', '.join(OPERANDS)}")
    busy = tuple((pipe, float(record[name])) for name, pipe in RATIOS.items() if _is_ratio(record.get(name)))
    scaled = _scaled(record, shapes, m) if kind == "quantised" else ""
    return ProfileRow(
        record["Op Name"] or "", m, k, n, OPERANDS[operand], duration * 1e-6, busy, products, scaled,
    )  # fmt: skip


def _matrices(shapes: list, outputs: list, where: str, given: str) -> tuple[int, int, int, tuple[int, ...]]:
    """Sizes of one product: m, k, n and no batch."""
    padded = any(len(shape) == 4 for shape in shapes[:2])  # NZ fractals: sizes are rounded up
    shapes, outputs = [_unfolded(shape) for shape in shapes], [_unfolded(shape) for shape in outputs]
    if len(shapes) < 2 or len(outputs) < 1 or any(len(shape) != 2 for shape in (*shapes[:2], outputs[0])):
        raise ValueError(f"{where}: expected two matrices in 'Input Shapes' and one in 'Output Shapes', got {given}")
    m, n = outputs[0]
    inner = [size for size in sorted({*shapes[0], *shapes[1]}) if _is(shapes[0], m, size, padded)]
    inner = [size for size in inner if _is(shapes[1], size, n, padded)]
    if not inner:
        raise ValueError(f"{where}: shapes {shapes[0]} and {shapes[1]} do not give {outputs[0]}")
    return m, inner[0], n, ()


def _batch(shapes: list, outputs: list, where: str, given: str) -> tuple[int, int, int, tuple[int, ...]]:
    """Sizes of a batch: of one product, and m of each. One matrix for the whole batch has no size of it or 1."""
    if len(shapes) < 2 or not outputs or len(outputs[0]) < 3 or min(len(shape) for shape in shapes[:2]) < 2:
        raise ValueError(f"{where}: expected a batch in 'Output Shapes' and two operands, got {given}")
    count = math.prod(outputs[0][:-2])
    for shape in shapes[:2]:
        if math.prod(shape[:-2]) not in (1, count):
            raise ValueError(f"{where}: an operand has {math.prod(shape[:-2])} matrices for {count} products: {given}")
    m, k, n, _ = _matrices([shape[-2:] for shape in shapes[:2]], [outputs[0][-2:]], where, given)
    return m, k, n, (m,) * count


def _grouped(shapes: list, outputs: list, where: str, given: str) -> tuple[int, int, int, tuple[int, ...]]:
    """Sizes of a grouped product: all rows, and those of each group, taken as nearly equal: the file has only their sum."""
    if len(shapes) < 2 or not outputs or (len(shapes[0]), len(shapes[1]), len(outputs[0])) != (2, 3, 2):
        raise ValueError(f"{where}: expected rows, a weight for each group and one output of all rows, got {given}")
    groups = shapes[1][0]
    m, k, n, _ = _matrices([shapes[0], shapes[1][1:]], outputs, where, given)
    share, rest = divmod(m, groups)
    sizes = tuple(share + (group < rest) for group in range(groups))
    return m, k, n, tuple(size for size in sizes if size)


def _scaled(record: dict, shapes: list, m: int) -> Dequantize:
    """Name the unit that scales the sums: vector units for a scale of each row or 32 bits, FIXPIPE for one of each column."""
    kinds = (record.get("Output Data Types") or "").strip('"').upper()
    of_rows = any(shape in ((m,), (m, 1)) for shape in shapes[3:])
    return "vector" if of_rows or "BF16" in kinds or "BFLOAT16" in kinds else "fixpipe"


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
