"""This module turns a plan into MatMulV3's tiling fields and tiling key, and its tilings into plans.

The key holds one number for each template parameter, the first in the lowest bits; a parameter of whole numbers counts by its
place among the values that it may have (AscendC, tiling template programming, GET_TPL_TILING_KEY). Sources: hicann/ops-nn
e5c3fa93, matmul/mat_mul_v3: op_kernel/mat_mul_v3_tiling_key.h and mat_mul_v3_tiling_data.h (Atlas A2 and A3), op_kernel/arch35/
mat_mul_tiling_key.h and mat_mul_tiling_data.h (Ascend 950), op_host/op_tiling/matmul_v3_base_tiling.cpp (tilingEnable, and
which operands vector cores lay out), matmul_v3_tuning.h (the fields of a *_runtime_kb.json). Vendor's unit tests of keys and
fields: tests/ut/op_host/test_matmul_v3_tiling.cpp.
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
from ascend.tiling.entered import Entered
from ascend.tiling.fields import layout_of, tiling_fields


class KeyPart(NamedTuple):
    """`KeyPart` is a template parameter of a tiling key: its name, its bits, and the names of its values in order."""

    name: str
    bits: int
    values: tuple[str, ...]


#: Template parameters of the key on Atlas A2 and A3.
A2_KEY = (
    KeyPart("LOADMODE", 4, ("BASE_FULLLOAD", "AL1_FULLLOAD", "BL1_FULLLOAD")),
    KeyPart(
        "SPLITCOREMODE", 8,
        ("BASE_SPLIT_K", "1", "SINGLE_CORE_SPLIT_K", "DETERMINISTIC_SPLIT_K", "MULTI_CORE_SPLIT_K", "SINGLE_CORE_NKM_SPLIT_K",
         "SINGLE_CORE_SPLIT_K_GM_TO_L1"),
    ),
    KeyPart("FIXOPTI", 4, ("BASE_FIXOPTI", "BASE_ENABLE_ALIGNOUT", "VEC_NZ2ND_UNALIGNOUT")),
    KeyPart("MIXND2NZ", 4, ("MIXND2NZ_TRUE", "MIXND2NZ_FALSE", "MIXND2NZ_TRUE_PARALLEL")),
    KeyPart("SPECIALOPT", 4, ("K_NOT_SHIFT", "K_SHIFT")),
    KeyPart("FP32ADDMM", 4, ("FP32_ADDMM_DISABLE", "FP32_ADDMM_ENABLE")),
)  # fmt: skip
#: Template parameters of the key on Ascend 950.
A5_KEY = (
    KeyPart("API_LEVEL", 4, ("HIGH_LEVEL", "BASIC_LEVEL", "TENSOR_LEVEL")),
    KeyPart("A_TRANS", 2, ("NO_TRANS", "TRANS")),
    KeyPart("B_TRANS", 2, ("NO_TRANS", "TRANS")),
    KeyPart("BATCH_MODEL", 4, ("FOR_BATCH", "ITER_BATCH_SINGLE_BIAS")),
    KeyPart(
        "MODEL", 4,
        ("BASIC", "STREAM_K", "K_EQUAL_ZERO", "TO_MUL", "TO_MULTI_MUL", "SLICE", "BASIC_SPLIT_K", "SK_SPLIT_K"),
    ),
    KeyPart("FULL_LOAD", 4, ("NO_FULL_LOAD", "A_FULL_LOAD", "B_FULL_LOAD", "AB_FULL_LOAD")),
    KeyPart("L0C2OUT_MODEL", 4, ("ON_THE_FLY", "1V1_ND_ALIG_FIXPIPE", "1V2_ND_ALIG_FIXPIPE")),
)  # fmt: skip
#: Bytes of a line; MTE2 converts ND rows of whole lines to NZ fractals while it loads them.
LINE = 256
#: Bytes of other rows that MTE2 converts while it loads them.
ON_THE_WAY = (32, 64, 96, 128, 160, 192, 224, 256, 384)
#: Bytes below which ragged rows of HF32 are converted while they are loaded, too.
LONG_LINE = 512
#: Largest number of elements of a row that MTE2 can convert.
LONGEST_INNER = 65535
#: ge::DataType and ge::Format of a knowledge line.
DATA_TYPES = {0: "fp32", 1: "fp16", 2: "int8", 27: "bf16"}
NZ_FORMAT = 29
#: Operands that the operator multiplies (mat_mul_v3_def.cpp; FP32 as HF32 on request).
MULTIPLIED = ("fp16", "bf16", "fp32", "hf32")
#: Fields of a knowledge line that determine a schedule.
NEEDED = (
    "usedCoreNum", "singleCoreM", "singleCoreN", "baseM", "baseN", "baseK", "depthA1", "depthB1", "stepM", "stepN",
    "l2MTileCnt", "l2NTileCnt", "l2MTileBlock", "l2NTileBlock", "tilingEnable",
)  # fmt: skip


def key_parts(chip: Chip) -> tuple[KeyPart, ...]:
    """Return the template parameters of the operator's key on a chip. Raises ValueError for a chip with unknown keys."""
    if not chip.fixpipe:
        raise ValueError(f"MatMulV3's keys are known for Atlas A2, A3 and Ascend 950 only, got {chip.name}")
    return A5_KEY if chip.name == "950" else A2_KEY


def encode_key(parts: tuple[KeyPart, ...], chosen: Mapping[str, str]) -> int:
    """Return the tiling key of named values; each other parameter has its first value.

    Raises ValueError for an unknown parameter or value.
    """
    if unknown := sorted(set(chosen) - {part.name for part in parts}):
        raise ValueError(
            f"unknown parameter {', '.join(unknown)}: the key has {', '.join(part.name for part in parts)}"
        )
    key = shift = 0
    for name, bits, values in parts:
        value = chosen.get(name, values[0])
        if value not in values:
            raise ValueError(f"{name} must be one of {', '.join(values)}, got {value!r}")
        key |= values.index(value) << shift
        shift += bits
    return key


def decode_key(parts: tuple[KeyPart, ...], key: int) -> dict[str, str]:
    """Return the named values of a tiling key. Raises ValueError if the number is no key."""
    found, rest = {}, key
    for name, bits, values in parts:
        rest, place = divmod(rest, 1 << bits)
        if place >= len(values):
            raise ValueError(
                f"{key} is not a tiling key: its field {name} must lie between 0 and {len(values) - 1}, got {place}"
            )
        found[name] = values[place]
    if rest or key < 0:
        raise ValueError(f"{key} is not a tiling key: it has more than {sum(part.bits for part in parts)} bits")
    return found


def laid_out(inner: int, outer: int, operand: str, operand_bytes: float) -> bool:
    """Return whether vector cores convert ND rows of `inner` elements to NZ before the product (Atlas A2 and A3).

    They do not if the rows are whole lines or have a length that MTE2 converts while it loads them. Other rules of the
    operator, for sizes that are multiples of 16384, are left out.
    """
    size = inner * operand_bytes
    aligned, on_the_way = size % LINE == 0, size in ON_THE_WAY
    whole_fp32 = operand == "fp32" and inner < LONGEST_INNER
    short_hf32 = operand == "hf32" and size < LONG_LINE
    normal = (not aligned or inner > LONGEST_INNER) and not on_the_way and not whole_fp32 and not short_hf32
    few = size <= 192 or (size <= 384 and inner % 2 == 0) or (size <= LONG_LINE and inner % 4 == 0)
    columns = outer > 8192 and inner > 1 and few and not aligned and not on_the_way and size != 32
    return normal or columns


class MatMulV3Tiling(NamedTuple):
    """`MatMulV3Tiling` is the operator's tiling of a plan."""

    key: int
    template: dict[str, str]  #: parameters of the key with their values
    fields: dict[str, int]  #: fields with the names of a knowledge line (A2, A3) or of MatMulV3BasicTilingData (950)


def check_matmul_v3(s: Kernel) -> None:
    """Raise ValueError if the operator's base template cannot express a plan; the message names the part and an alternative."""
    key_parts(s.placed_on)
    if not s.on_cube or s.terms > 1 or s.dequantize or s.operand not in MULTIPLIED:
        what = (
            "the vector units"
            if not s.on_cube
            else f"{s.terms} term(s) of {s.operand}" + " and scales" * bool(s.dequantize)
        )
        raise ValueError(
            f"MatMulV3 computes one term of {', '.join(MULTIPLIED)} on the cube, without scales, got {what}: plan with "
            "--terms 1 and one of these formats"
        )
    if len(s.k_slices) > 1 or s.groups > 1:
        raise ValueError(
            f"MatMulV3's tiling is known here only for plans that add all of k in one sum, got {len(s.k_slices)} slice(s) of k "
            f"with {s.groups} sum(s) each: plan with --for catlass --split 1"
        )
    if not s.deals_one_by_one:
        raise ValueError(
            f"MatMulV3 assigns tiles one by one, but this plan's placement is {s.placement()!r}: plan with --for catlass"
        )


def matmul_v3_tiling(s: Kernel) -> MatMulV3Tiling:
    """Return the key and the fields of a plan that deals tiles one by one. Raises ValueError for other plans.

    Bands of the plan's order become the operator's cut for L2. This is inferred: the operator staggers the tiles inside
    of a band, so that the same tiles are multiplied at about the same time, by other cores.
    """
    check_matmul_v3(s)
    return _a5_tiling(s) if s.placed_on.name == "950" else _a2_tiling(s)


def _a2_tiling(s: Kernel) -> MatMulV3Tiling:
    f, b, size = tiling_fields(s), s.blocking, s.operand_bytes
    rows, columns = len(s.row_blocks), len(s.column_blocks)
    band_m, band_n = (s.swizzle.offset, columns) if s.swizzle.direction == 0 else (rows, s.swizzle.offset)
    band_m, band_n = min(band_m, rows), min(band_n, columns)
    fields = {
        "usedCoreNum": min(s.used_cores, rows * columns), "singleCoreM": b.bm, "singleCoreN": b.bn, "singleCoreK": f["Ka"],
        "baseM": b.bm, "baseN": b.bn, "baseK": b.bk,
        **{name: f[name] for name in ("depthA1", "depthB1", "stepM", "stepN")}, "iterateOrder": 0,
        **{name: f[name] for name in ("stepKa", "stepKb", "dbL0A", "dbL0B", "dbL0C")},
        "l2MTileCnt": fractals(rows, band_m), "l2NTileCnt": fractals(columns, band_n), "l2MTileBlock": band_m,
        "l2NTileBlock": band_n, "l2IterateOrder": 0, "tilingEnable": 0,
    }  # fmt: skip
    in_rows = layout_of(s) != "nz"
    inner_b, outer_b = (s.k, s.n) if s.layout == "nt" else (s.n, s.k)
    vector = in_rows and (laid_out(s.k, s.m, s.operand, size) or laid_out(inner_b, outer_b, s.operand, size))
    template = {"MIXND2NZ": f"MIXND2NZ_{str(vector).upper()}"}
    key = encode_key(A2_KEY, template)
    return MatMulV3Tiling(key, decode_key(A2_KEY, key), fields)


def _a5_tiling(s: Kernel) -> MatMulV3Tiling:
    b = s.blocking
    fields = {
        "usedCoreNum": min(s.used_cores, len(s.row_blocks) * len(s.column_blocks)), "m": s.m, "n": s.n, "k": s.k,
        "mL1": b.bm, "nL1": b.bn, "kL1": s.load_k, "baseM": b.bm, "baseN": b.bn, "baseK": b.bk, "skSingleCoreK": s.k,
        "mTailCnt": 1, "nTailCnt": 1, "mBaseTailSplitCnt": 1, "nBaseTailSplitCnt": 1, "mTailMain": 0, "nTailMain": 0,
        "l1BufferNum": s.stream_slots, "l0cDB": min(s.l0c_slots, 2), "ubDB": 1,
    }  # fmt: skip
    key = encode_key(A5_KEY, {"API_LEVEL": "BASIC_LEVEL", "B_TRANS": "TRANS" if s.layout == "nt" else "NO_TRANS"})
    return MatMulV3Tiling(key, decode_key(A5_KEY, key), fields)


def matmul_v3_snippet(s: Kernel) -> str:
    """Return the key in words and the fields as JSON. Raises ValueError if the operator cannot express the plan."""
    found = matmul_v3_tiling(s)
    words = ", ".join(f"{name} {value}" for name, value in found.template.items())
    what = "MatMulV3BasicTilingData" if s.placed_on.name == "950" else 'the "knowledge" of a *_MatMulV3_runtime_kb.json'
    return f"// tiling key {found.key} (0x{found.key:x}): {words}\n// {what}:\n{json.dumps(found.fields)}"


# -- tilings that the caller gives ----------------------------------------------------------------------------------------


def read_knowledge(path: str | Path) -> dict[str, Any] | None:
    """Return the line of a *_MatMulV3_runtime_kb.json, or None if the file is something else.

    Raises
    ------
    ValueError
        If the file has several lines; it must have one.
    OSError
        If it cannot be read.
    """
    data = Path(path).read_bytes()
    if b'"knowledge"' not in data:
        return None
    lines = [line for line in data.splitlines() if line.strip()]
    try:
        records = [json.loads(line) for line in lines]
    except ValueError:  # one object over several lines
        try:
            records = [json.loads(data)]
        except ValueError as error:
            raise ValueError(f"{path} is not JSON: {error}; expected a line of a runtime_kb.json") from None
    if len(records) > 1:
        raise ValueError(
            f"{path} has {len(records)} tilings, one on each line: copy the line of your product into a separate file"
        )
    return records[0] if isinstance(records[0], dict) and "knowledge" in records[0] else None


def template_of(enable: int) -> dict[str, str]:
    """Return the template parameters in tilingEnable's digits: splitting of k, full loads, output, shift of k.

    Raises ValueError for unknown digits.
    """
    digits = {"SPLITCOREMODE": enable % 10, "LOADMODE": enable // 10 % 10, "FIXOPTI": enable // 1000 % 10}
    digits["SPECIALOPT"] = enable // 10000 % 10
    values = {part.name: part.values for part in A2_KEY}
    if wrong := [f"{name} {digit}" for name, digit in digits.items() if digit >= len(values[name])]:
        raise ValueError(f"tilingEnable = {enable}: digits of unknown templates: {', '.join(wrong)}; check the line")
    return {name: values[name][digit] for name, digit in digits.items()}


def entered_knowledge(record: Mapping[str, Any], chip: Chip, path: str | Path = "the tiling") -> Entered:
    """Return the schedule of a line of a *_MatMulV3_runtime_kb.json, and notes on its differences from the line.

    Parameters
    ----------
    record : mapping
        Line with "info_dict" (sizes, types, formats, transposes) and "knowledge" (the fields).
    chip : Chip
        Chip on which the operator runs.
    path : str or Path, optional
        File that messages name.

    Raises
    ------
    ValueError
        If a field is missing or contradicts others, or for a template that is not timed here.
    """
    info, fields = record.get("info_dict"), record["knowledge"]
    if not isinstance(info, dict) or not isinstance(fields, dict):
        raise ValueError(
            f'{path}: expected objects "info_dict" and "knowledge", got {type(info).__name__} and {type(fields).__name__}'
        )
    sizes = ("m", "k", "n", "a_dtype", "a_format", "b_format", "trans_a_flag", "trans_b_flag")
    if missing := [name for name in sizes if name not in info] + [name for name in NEEDED if name not in fields]:
        raise ValueError(f"{path}: this line of a runtime_kb.json lacks {', '.join(missing)}: give a complete line")
    if wrong := [name for name in NEEDED if type(fields[name]) is not int or fields[name] < 0]:
        given = ", ".join(repr(fields[name]) for name in wrong)
        raise ValueError(f"{path}: {', '.join(wrong)} must be whole numbers of at least 0, got {given}")
    if info["a_dtype"] not in DATA_TYPES:
        known = ", ".join(f"{code} ({name})" for code, name in DATA_TYPES.items())
        raise ValueError(f"{path}: a_dtype must be one of {known}, got {info['a_dtype']!r}")
    template = template_of(fields["tilingEnable"])
    if template["SPLITCOREMODE"] not in ("BASE_SPLIT_K", "1") or template["LOADMODE"] != "BASE_FULLLOAD":
        what = template["SPLITCOREMODE"] if template["LOADMODE"] == "BASE_FULLLOAD" else template["LOADMODE"]
        raise ValueError(
            f"{path}: template {what} (tilingEnable {fields['tilingEnable']}) cannot be timed: give a tiling of the "
            "base template"
        )
    single, block = ((fields[f"{of}M"], fields[f"{of}N"]) for of in ("singleCore", "base"))
    if single != block:
        raise ValueError(
            f"{path}: the base template's singleCoreM x singleCoreN must be baseM x baseN = "
            f"{block[0]} x {block[1]}, got {single[0]} x {single[1]}"
        )
    return _base_schedule(info, fields, chip, template)


def _base_schedule(info: Mapping[str, Any], f: Mapping[str, int], chip: Chip, template: Mapping[str, str]) -> Entered:
    """Return the schedule of the base template: tiles are dealt one by one, and the cut for L2 becomes bands."""
    swizzle, notes = _bands(f)
    depths = f["depthA1"] // max(f["stepM"], 1), f["depthB1"] // max(f["stepN"], 1)
    depth = max(min(*depths, DEEPEST_STREAM), 1)
    if max(depths) > depth:
        notes.append(f"depthA1 = {f['depthA1']} and depthB1 = {f['depthB1']}: both streams are timed {depth} deep")
    if info["trans_a_flag"]:
        notes.append("A is stored K x M, timed as M x K rows")
    if template["SPECIALOPT"] == "K_SHIFT":
        notes.append("the time leaves out K_SHIFT, by which each core begins at another place of k")
    in_nz = NZ_FORMAT in (info["a_format"], info["b_format"])
    layout = "nz" if in_nz else "nt" if info["trans_b_flag"] else "nd"
    schedule = build_schedule(
        info["m"], info["k"], info["n"], chip, Blocking(f["baseM"], f["baseK"], f["baseN"]), kernel="grid", terms=1,
        grid=Grid(), cores=f["usedCoreNum"], resident="none", balanced=False, swizzle=swizzle, depth=depth, template="mdl",
        operand=DATA_TYPES[info["a_dtype"]], layout=layout,
    )  # fmt: skip
    return Entered(schedule, notes)


def _bands(f: Mapping[str, int]) -> tuple[Swizzle, list[str]]:
    """Return the order nearest to the cut for L2, and a note on the difference."""
    rows, columns = max(f["l2MTileBlock"], 1), max(f["l2NTileBlock"], 1)
    if f["l2MTileCnt"] <= 1 < f["l2NTileCnt"]:
        return Swizzle(columns, 1, turns=False), []
    notes = []
    if f["l2NTileCnt"] > 1:
        notes.append(f"the cut for L2 into {rows} x {columns} tiles is timed as bands of {rows} rows of tiles")
    return Swizzle(rows, 0), notes
