"""This module reads the sizes, layout and operands of a matrix product from an operator's line in a profile.

Sources: msprof's op_summary (Huawei, CANN 8.5, devaids/profiling/atlasprofiling_16_0067: shapes of inputs between ";", as they
are stored, empty where an optional input is left out; HF32 Eligible; MatMul operators that become MIX_AIC); FRACTAL_NZ as
(columns / C0, rows / 16, 16, C0) of the stored matrix (AscendC data formats, atlas_ascendc_10_0099). Inputs of each operator:
hicann/ops-nn e5c3fa93, op_graph of mat_mul_v3, batch_mat_mul_v3, quant_batch_matmul_v3 and weight_quant_batch_matmul_v2
(x, weight, antiquant scale and offset, quant scale and offset, bias); GroupedMatmul as the aclnn page
lists them (x, weight, bias, scale, offset, antiquant scale and offset, group list, scale of each token).
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ascend.schedule_options import Dequantize

Shape = tuple[int, ...]
#: Operand format of each CANN data type.
OPERANDS = {
    "FLOAT16": "fp16", "BF16": "bf16", "BFLOAT16": "bf16", "FLOAT": "fp32", "FLOAT32": "fp32", "INT8": "int8",
    "FLOAT8_E4M3FN": "fp8", "FLOAT8_E5M2": "fp8", "HIFLOAT8": "hifloat8", "FLOAT4_E2M1": "mxfp4",
}  # fmt: skip
#: Format of both operands here, for operators that widen B on vector units, by A's and B's format.
WIDENED = {
    ("FLOAT16", "INT8"): "w8a16", ("BF16", "INT8"): "w8a16", ("BFLOAT16", "INT8"): "w8a16", ("INT8", "INT4"): "a8w4",
    ("FLOAT8_E4M3FN", "FLOAT4_E2M1"): "a8w4mx",
}  # fmt: skip
#: Type of the block scales that make FP8 operands MXFP8.
BLOCK_SCALE = "FLOAT8_E8M0"
FRACTAL_ROWS = 16
#: Remark on a MatMul that also ran on vector cores.
LAID_OUT = "ran as MIX_AIC: vector cores laid out an operand before the product, which is not timed here"


class ProductLine(NamedTuple):
    """`ProductLine` holds the facts that a line gives on its timed product."""

    m: int
    k: int
    n: int
    operand: str
    products: tuple[int, ...] = ()  #: m of each product of a batch or of groups
    dequantize: Dequantize = ""  #: unit that scales sums of int8 operands
    layout: str = ""  #: "nz", "nd" or "nt"; "": the line does not say
    remarks: tuple[str, ...] = ()  #: facts that the line does not give, and the assumptions in their place


class _Line(NamedTuple):
    """`_Line` is an operator's line: inputs by position, with an empty shape for an omitted optional input."""

    where: str
    shapes: list[Shape]
    kinds: list[str]
    formats: list[str]
    outputs: list[Shape]
    output_kind: str
    given: str

    def matrix(self, at: int, batched: bool = False) -> "_Matrix":
        """Return the last two dimensions of an input as stored, and the number of matrices before them."""
        shape, form = self.shapes[at], self.formats[at] if at < len(self.formats) else ""
        folded = (len(shape) in (4, 5) and not batched) or (form == "FRACTAL_NZ" and len(shape) >= 4)
        if folded and shape[-2] == FRACTAL_ROWS:
            rows, columns = shape[-3] * shape[-2], shape[-4] * shape[-1]
            return _Matrix(rows, columns, shape[:-4], (shape[-2], shape[-1]), "nz")
        return _Matrix(shape[-2], shape[-1], shape[:-2], (1, 1), "nz" if form == "FRACTAL_NZ" else "nd" if form else "")


class _Matrix(NamedTuple):
    rows: int
    columns: int
    before: Shape
    units: tuple[int, int]  #: units that the numbers of rows and columns are rounded up to
    layout: str

    def as_stored(self, turned: bool) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (size, unit) of each side, or of its transpose."""
        sides = (self.rows, self.units[0]), (self.columns, self.units[1])
        return (sides[1], sides[0]) if turned else sides


class _Sizes(NamedTuple):
    m: int
    k: int
    n: int
    layout: str
    remarks: tuple[str, ...]


def product_of(fields: Mapping[str, str], where: str) -> ProductLine | None:
    """Return the product of an operator's line, or None for operators that are no matrix products.

    Raises
    ------
    ValueError
        If the product is not timed here, or the line contradicts itself; the message gives the line, its content and the
        expectation.
    """
    kind = fields["OP Type"]
    read = next((how for name, how in READERS.items() if re.fullmatch(rf"{name}(V\d+)?", kind, re.IGNORECASE)), None)
    if read is None:
        if "matmul" not in kind.lower():
            return None
        why = next((why for word, why in NOT_TIMED.items() if word.lower() in kind.lower()), "")
        raise ValueError(f"{where}: operator {kind!r} cannot be timed{why}, expected one of {', '.join(READERS)}")
    line = _line_of(fields, where)
    first, second = [*line.kinds, ""][:2]
    widened = WIDENED.get((first, second), "") if read in (_quantised, _grouped) else ""
    operand = widened or _operand(line, fields)
    found = read(line)
    core = fields.get("Task Type", fields.get("Accelerator Core", ""))
    mixed = (LAID_OUT,) if core == "MIX_AIC" and read in (_product, _batch) else ()
    scaled = _scaled(line, found.m) if operand == "int8" and read is not _product else ""
    return found._replace(operand=operand, dequantize=scaled, remarks=(*found.remarks, *mixed))


def _line_of(fields: Mapping[str, str], where: str) -> _Line:
    def split(column: str) -> list[str]:
        return [word.strip().strip('"') for word in fields.get(column, "").strip('"').split(";")]

    shapes, outputs = ([_shape(text, where) for text in split(column)] for column in ("Input Shapes", "Output Shapes"))
    kinds = [word.upper().removeprefix("DT_") for word in split("Input Data Types")]
    return _Line(
        where, shapes, kinds, [word.upper() for word in split("Input Formats")], [shape for shape in outputs if shape],
        split("Output Data Types")[0].upper().removeprefix("DT_"),
        f"{fields.get('Input Shapes', '')!r} and {fields.get('Output Shapes', '')!r}",
    )  # fmt: skip


def _shape(text: str, where: str) -> Shape:
    if text.upper() in ("", "N/A"):
        return ()
    try:
        shape = tuple(int(size) for size in text.split(","))
    except ValueError:
        raise ValueError(f"{where}: expected sizes separated by commas as a shape, got {text!r}") from None
    if min(shape) < 1:
        raise ValueError(
            f"{where}: {text!r} has a size below 1: remove the line, because an empty product takes no time"
        )
    return shape


def _operand(line: _Line, fields: Mapping[str, str]) -> str:
    """Return the format of both operands. Raises ValueError if they differ or the format is unknown."""
    first = line.kinds[0]
    if first not in OPERANDS:
        raise ValueError(f"{line.where}: unknown data type {first!r}; known: {', '.join(OPERANDS)}")
    operand = OPERANDS[first]
    if len(line.kinds) > 1 and line.kinds[1] and OPERANDS.get(line.kinds[1]) != operand:
        raise ValueError(
            f"{line.where}: A is {first} and B is {line.kinds[1]}, but products of these two formats cannot be timed "
            f"(vector units convert one format into the other): remove the line"
        )
    if operand == "fp8" and BLOCK_SCALE in line.kinds:
        return "mxfp8"
    return "hf32" if operand == "fp32" and fields.get("HF32 Eligible", "").upper() == "YES" else operand


def _product(line: _Line) -> ProductLine:
    """Return one product; leading dimensions of A before a single B become rows."""
    if len(line.shapes) > 1 and len(line.shapes[1]) == 2 and len(line.shapes[0]) == 3 and line.outputs:
        a, c = line.shapes[0], line.outputs[0]
        if len(c) == 3 and c[:-1] == a[:-1]:
            rows = math.prod(a[:-1])
            line = line._replace(shapes=[(rows, a[-1]), *line.shapes[1:]], outputs=[(rows, c[-1])])
    if len(line.shapes) < 2 or not line.outputs or not _are_matrices(line):
        raise ValueError(
            f"{line.where}: expected two matrices in 'Input Shapes' and one in 'Output Shapes', got {line.given}"
        )
    sizes = _sizes(line, line.matrix(0), line.matrix(1), _output(line))
    return ProductLine(*sizes[:3], "", layout=sizes.layout, remarks=sizes.remarks)


def _are_matrices(line: _Line) -> bool:
    parts = [line.matrix(at) for at in (0, 1) if len(line.shapes[at]) >= 2]
    return len(parts) == 2 and not any(part.before for part in parts) and len(line.outputs[0]) in (2, 4)


def _output(line: _Line) -> tuple[int, int]:
    """Return the rows and columns of C, converted from fractals if it lies in them."""
    shape = line.outputs[0]
    return (shape[-3] * shape[-2], shape[-4] * shape[-1]) if len(shape) == 4 else (shape[-2], shape[-1])


def _quantised(line: _Line) -> ProductLine:
    """Return one product, or a batch of them."""
    return _batch(line) if line.outputs and len(line.outputs[0]) == 3 else _product(line)


def _batch(line: _Line) -> ProductLine:
    """Return a batch: the sizes of one product, and m of each.

    A matrix that the whole batch shares has no batch dimension, or one of 1.
    """
    shapes, outputs = line.shapes, line.outputs
    if len(shapes) < 2 or not outputs or len(outputs[0]) < 3 or min(len(shape) for shape in shapes[:2]) < 2:
        raise ValueError(
            f"{line.where}: expected a batch in 'Output Shapes' and two operands in 'Input Shapes', got {line.given}"
        )
    a, b, count = line.matrix(0, True), line.matrix(1, True), math.prod(outputs[0][:-2])
    for matrix in (a, b):
        if math.prod(matrix.before) not in (1, count):
            raise ValueError(
                f"{line.where}: an operand has {math.prod(matrix.before)} matrices for {count} products, expected 1 or "
                f"{count}, got {line.given}"
            )
    sizes = _sizes(line, a, b, outputs[0][-2:])
    return ProductLine(*sizes[:3], "", (sizes.m,) * count, layout=sizes.layout, remarks=sizes.remarks)


def _grouped(line: _Line) -> ProductLine:
    """Return groups of rows, each with its own weight.

    The weights are one tensor or a list of tensors; the output is one tensor or one for each group.
    """
    shapes, outputs = line.shapes, line.outputs
    if len(outputs) > 1:
        return _listed_groups(line)
    if len(shapes) < 2 or not outputs or len(shapes[0]) != 2 or len(outputs[0]) != 2 or len(shapes[1]) < 2:
        raise ValueError(
            f"{line.where}: expected rows and a weight for each group in 'Input Shapes', and one output of all rows, got "
            f"{line.given}"
        )
    weight = line.matrix(1)
    listed = next((at for at, shape in enumerate(shapes[1:]) if shape != shapes[1]), len(shapes) - 1)
    groups = weight.before[0] if weight.before else listed
    sizes = _sizes(line, line.matrix(0), weight, outputs[0])
    share, rest = divmod(sizes.m, groups)
    rows = tuple(size for size in (share + (group < rest) for group in range(groups)) if size)
    remarks = (*sizes.remarks, "rows of each group taken as nearly equal: the file has only their sum")
    return ProductLine(*sizes[:3], "", rows, layout=sizes.layout, remarks=remarks)


def _listed_groups(line: _Line) -> ProductLine:
    """Return groups whose rows, weights and outputs are separate tensors, in this order."""
    count = len(line.outputs)
    parts = []
    for group in range(count):
        if len(line.shapes) < 2 * count or min(len(line.shapes[at]) for at in (group, count + group)) < 2:
            raise ValueError(f"{line.where}: expected rows and a weight for each of {count} outputs, got {line.given}")
        parts.append(_sizes(line, line.matrix(group), line.matrix(count + group), line.outputs[group]))
    if len({(part.k, part.n) for part in parts}) > 1:
        raise ValueError(f"{line.where}: expected groups with equal k and equal n, got {line.given}")
    first, rows = parts[0], tuple(part.m for part in parts)
    return ProductLine(sum(rows), first.k, first.n, "", rows, layout=first.layout, remarks=first.remarks)


def _sizes(line: _Line, a: _Matrix, b: _Matrix, c: Shape) -> _Sizes:
    """Return m, k and n, the layout of the operands, and remarks. Raises ValueError if the shapes do not multiply to C."""
    m, n = c[-2:]
    fits = []
    for a_turned in (False, True):
        for b_turned in (False, True):
            (rows, row_unit), (ka, unit_a) = a.as_stored(a_turned)
            (kb, unit_b), (columns, column_unit) = b.as_stored(b_turned)
            unit = max(unit_a, unit_b)
            if _same(rows, m, row_unit) and _same(columns, n, column_unit) and _same(ka, kb, unit):
                fits.append((a_turned, b_turned, ka if unit_a <= unit_b else kb))
    if not fits:
        raise ValueError(
            f"{line.where}: operands of shapes {line.shapes[0]} and {line.shapes[1]} cannot give a product of shape {c}, "
            f"transposed or not: correct or remove the line"
        )
    b_orders = {b_turned for _, b_turned, _ in fits}
    remarks = []
    if "nz" in (a.layout, b.layout):
        layout = "nz"
        if a.layout != b.layout:
            one, other = ("A", "B") if b.layout == "nz" else ("B", "A")
            remarks.append(f"{other} lies in NZ fractals, {one} in rows: timed with both in NZ")
    elif not b.layout or len(b_orders) > 1:
        layout = ""
        if b.layout:
            remarks.append("the shapes do not say whether B is stored K x N or N x K (--layout nd or nt)")
    else:
        layout = "nt" if b_orders == {True} else "nd"
    if all(a_turned for a_turned, _, _ in fits):
        remarks.append("A is stored K x M, timed as M x K rows")
    return _Sizes(m, fits[0][2], n, layout, tuple(remarks))


def _same(size: int, wanted: int, unit: int) -> bool:
    """Return whether a size equals the wanted one, up to rounding to whole units."""
    return -(-size // unit) == -(-wanted // unit)


def _scaled(line: _Line, m: int) -> Dequantize:
    """Return the unit that scales the sums: vector units for scales of rows or BF16, FIXPIPE for one scale of each column."""
    of_rows = any(
        shape in ((m,), (m, 1)) and kind in ("FLOAT", "FLOAT32")
        for shape, kind in zip(line.shapes[3:], line.kinds[3:], strict=False)
    )
    return "vector" if of_rows or line.output_kind in ("BF16", "BFLOAT16") else "fixpipe"


#: Readers of each operator's lines; a version (V2, V3, ...) may follow the name.
READERS: dict[str, Callable[[_Line], ProductLine]] = {
    "MatMul": _product, "Mmad": _product, "Gemm": _product, "BatchMatMul": _batch, "QuantBatchMatmul": _quantised,
    "QuantMatmul": _quantised, "WeightQuantBatchMatmul": _quantised, "GroupedMatmul": _grouped,
}  # fmt: skip
#: Parts of the names of products that are not timed here, with the reason.
NOT_TIMED = {
    "AllReduce": " because it waits for other chips (mpgemm plan --overlap times product and communication)",
    "AllGather": " because it waits for other chips (mpgemm plan --overlap times product and communication)",
    "ReduceScatter": " because it waits for other chips (mpgemm plan --overlap times product and communication)",
    "Swiglu": " because it also does vector work",
}
