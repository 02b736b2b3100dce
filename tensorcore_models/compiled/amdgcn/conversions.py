"""Builds vector conversions between formats, and between numbers and integers (CDNA3 ISA, "V_CVT")."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...formats import get_float_format
from ...formats.rounding import decode, encode
from .. import floats
from ..errors import Refused
from ..isa.meaning import Meaning
from ..isa.operations import function_of
from ..isa.types import FORMATS
from .scalar_operands import Operation, type_of, unknown
from .syntax import AMDInstruction, Modified
from .vector_operands import VectorSource, VectorTarget, active, named, settled, side_by_side, vector_operation


def _of(result: str, source: str, rounding: str = "rne", operation: str = "convert", options: tuple = ()) -> Meaning:
    return Meaning(operation, type_of(result), (type_of(source),), rounding, options=options, nan="quiet")


_WIDE, _HALF = ("i32", "u32"), ("i16", "u16")
#: Elementwise conversions: name -> meaning.
ROWS: dict[str, Meaning] = {
    **{f"v_cvt_{result}_{source}": _of(result, source)
       for result, source in (("f16", "f32"), ("f32", "f16"), ("f32", "f64"), ("f64", "f32"))},
    **{f"v_cvt_{kind}_{integer}": _of(kind, integer) for kinds, integers in ((("f32", "f64"), _WIDE), (("f16",), _HALF))
       for kind in kinds for integer in integers},
    **{f"v_cvt_{integer}_{kind}": _of(integer, kind, "rz") for kinds, integers in ((("f32", "f64"), _WIDE), (("f16",), _HALF))
       for kind in kinds for integer in integers},
    "v_cvt_flr_i32_f32": _of("i32", "f32", "rd"), "v_cvt_rpi_i32_f32": _of("i32", "f32", "rna"),
    **{f"v_cvt_f32_ubyte{i}": _of("f32", "u32", operation="byte", options=(i,)) for i in range(4)},
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """Return the operation of an elementwise conversion."""
    return vector_operation(ins, ROWS[ins.name])


# -- two numbers at once ---------------------------------------------------------------------------------------------------
#: Conversions of two f32 to two numbers of 16 bits: name -> (format, rounding; None: the rounding of the MODE register).
_PAIRS = {
    "v_cvt_pkrtz_f16_f32": ("fp16", "rz"), "v_cvt_pk_f16_f32": ("fp16", None), "v_cvt_pk_bf16_f32": ("bf16", "rne"),
}  # fmt: skip


def build_pair(ins: AMDInstruction) -> Operation:
    """Return the operation that converts two f32 to two 16-bit numbers in one register."""
    (fmt, rounding), kind = _PAIRS[ins.name], "bf16" if "bf16" in ins.name else "f16"
    if len(ins.operands) != 3 or ins.modifiers or ins.encoding in ("sdwa", "dpp"):
        raise unknown(ins, "has operands or modifiers that are not modelled")
    target = VectorTarget(ins.operands[0], "b32", ins)
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[1:]]
    m = _of(kind, "f32", rounding or "rne")

    def run(machine, waves, lanes):
        settings, words, owners = machine.mode_of(waves).under(m), [], []
        if rounding:
            settings = replace(settings, rounding=rounding)
        for source in sources:
            value, own = source.read(machine, waves, lanes)
            words.append(settled(machine, ins, function_of(settings)(value), fmt).astype(np.uint32))
            told = named(ins, m, settings)
            owners.append(None if own is None else machine.trace.elementwise(told, ins.line, settings, [value], [own]))
        target.write(machine, words[0] | words[1] << np.uint32(16), waves, lanes, side_by_side(owners, 2))

    return active(run)


# -- FP8 -------------------------------------------------------------------------------------------------------------------
#: FP8 formats of each processor: gfx942 has FNUZ (no infinities, no -0), gfx950 has the OCP formats.
_FP8 = {"cdna3": {"fp8": "e4m3fnuz", "bf8": "e5m2fnuz"}}


def _format(machine, ins: AMDInstruction, name: str) -> str:
    table = _FP8.get(machine.launch.unit)
    if table is None:
        raise Refused(f"{ins.opcode}: the FP8 formats of this unit are not modelled", ins.line)
    return table[name]


def build_from_fp8(ins: AMDInstruction) -> Operation:
    """Return the operation of v_cvt_f32_fp8 or v_cvt_pk_f32_fp8 (or bf8): one byte, or two bytes of a half register, to f32."""
    name, pairs = ins.name.rpartition("_")[2], "_pk_" in ins.name
    half = ins.modifiers.get("op_sel", [0])[0]
    word = str(ins.modifiers.get("src0_sel", "WORD_1" if half else "BYTE_0"))
    start = {"BYTE_0": 0, "BYTE_1": 1, "BYTE_2": 2, "BYTE_3": 3, "WORD_0": 0, "WORD_1": 2, "DWORD": 0}.get(word)
    rest = ins.modifiers.keys() - {"op_sel", "src0_sel", "dst_sel", "dst_unused"}
    if len(ins.operands) != 2 or start is None or rest or ins.modifiers.get("dst_sel", "DWORD") != "DWORD":
        raise unknown(ins)
    if half and not pairs:
        raise unknown(ins, "with op_sel is not modelled")
    target = VectorTarget(ins.operands[0], "b64" if pairs else "b32", ins)
    sources = [VectorSource(ins.operands[1], "b32", ins, (start + i, 1)) for i in range(1 + pairs)]
    m = _of("f32", "b8", operation=f"from_{name}")

    def run(machine, waves, lanes):
        fmt, found, owners = _format(machine, ins, name), [], []
        for source in sources:
            value, own = source.read(machine, waves, lanes)
            bits = decode(np.asarray(value).astype(np.uint8), fmt, np.float32).view(np.uint32)
            found.append(settled(machine, ins, bits, "fp32"))
            narrow = None if own is None else own[:, :1]
            owners.append(None if own is None else machine.trace.elementwise(ins.name, ins.line, m, [value], [narrow]))
        bits = found[0] if not pairs else found[0].astype(np.uint64) | found[1].astype(np.uint64) << np.uint64(32)
        target.write(machine, bits, waves, lanes, side_by_side(owners, 4))

    return active(run)


def build_to_fp8(ins: AMDInstruction) -> Operation:
    """Return the operation of v_cvt_pk_fp8_f32 (or bf8): two f32 to the bytes of a half register; the other half is kept."""
    name = ins.name.split("_")[3]
    select = ins.modifiers.get("op_sel", [0, 0, 0])
    if (
        len(ins.operands) != 3
        or ins.modifiers.keys() - {"op_sel"}
        or any(select[:2])
        or ins.encoding in ("sdwa", "dpp")
    ):
        raise unknown(ins, "has operands or modifiers that are not modelled")
    high = bool(select[-1])
    target = VectorTarget(ins.operands[0], "b16", ins, (2 if high else 0, 2), "PRESERVE")
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[1:]]
    m = _of("b8", "f32", operation=f"to_{name}")

    def run(machine, waves, lanes):
        fmt, words, owners = _format(machine, ins, name), [], []
        largest = get_float_format(fmt).max_finite
        for source in sources:
            value, own = source.read(machine, waves, lanes)
            exact = floats.values(np.asarray(value), "fp32").astype(np.float64)
            bits = encode(np.where(np.isnan(exact), 0.0, exact), fmt, "rne", saturate=True)
            if not (np.abs(exact) <= float(largest)).all():
                raise Refused(
                    f"{ins.opcode} of a number beyond {float(largest)} gives a result that is not published", ins.line
                )
            words.append(bits.astype(np.uint16))
            owners.append(None if own is None else machine.trace.elementwise(ins.name, ins.line, m, [value], [own]))
        target.write(machine, words[0] | words[1] << np.uint16(8), waves, lanes, side_by_side(owners, 1))

    return active(run)


# -- multiply-adds of mixed formats ----------------------------------------------------------------------------------------
def _value(bits, fmt: str, mode) -> np.ndarray:
    """Return the values of encodings as float64; the MODE register says whether subnormal encodings are flushed."""
    bits = floats.flushed(np.asarray(bits), fmt) if mode.flushes(fmt)[0] else np.asarray(bits)
    return floats.values(bits, fmt).astype(np.float64)


def build_mixed(ins: AMDInstruction) -> Operation:
    """Return the operation of v_fma_mix_f32, mixlo or mixhi.

    op_sel_hi and op_sel select f32, or a half register in f16, for each operand.
    """
    high, which = (ins.modifiers.get(name, [0, 0, 0]) for name in ("op_sel_hi", "op_sel"))
    if len(ins.operands) != 4 or ins.modifiers.keys() - {"op_sel", "op_sel_hi", "neg_lo", "neg_hi"}:
        raise unknown(ins, "has operands or modifiers that are not modelled")
    minus, absolute = (ins.modifiers.get(name, [0, 0, 0]) for name in ("neg_lo", "neg_hi"))
    sources = []
    for i, operand in enumerate(ins.operands[1:]):
        kind = "f16" if high[i] else "f32"
        if isinstance(operand, Modified) and (minus[i] or absolute[i]):
            raise unknown(ins, "changes the sign of an operand twice, which is not modelled")
        changed = Modified(operand, bool(minus[i]), bool(absolute[i])) if minus[i] or absolute[i] else operand
        sources.append((kind, VectorSource(changed, kind, ins, (2, 2) if high[i] and which[i] else None)))
    if ins.name == "v_fma_mix_f32":
        fmt, target = "fp32", VectorTarget(ins.operands[0], "f32", ins)
    else:
        part = (2 if ins.name == "v_fma_mixhi_f16" else 0, 2)
        fmt, target = "fp16", VectorTarget(ins.operands[0], "f16", ins, part, "PRESERVE")
    m = Meaning("mixed_fma", "f32" if fmt == "fp32" else "f16", tuple(kind for kind, _ in sources), nan="quiet")

    def run(machine, waves, lanes):
        mode = machine.mode_of(waves)
        read = [source.read(machine, waves, lanes) for _, source in sources]
        exact = [_value(value, FORMATS[kind], mode) for (kind, _), (value, _) in zip(sources, read, strict=True)]
        total = floats.sum_to_odd(exact[0] * exact[1], exact[2])
        found = floats.rounded(total, fmt, mode.rounding(fmt))
        found = settled(machine, ins, floats.flushed(found, fmt) if mode.flushes(fmt)[1] else found, fmt)
        ids = None
        if machine.trace is not None:
            name, values = ".".join([ins.name, f"mode{mode.bits & 0xFF:#x}"]), [value for value, _ in read]
            told = replace(m, options=(name,))
            ids = machine.trace.elementwise(name, ins.line, told, values, [own for _, own in read])
        target.write(machine, found, waves, lanes, ids)

    return active(run)


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys(ROWS, build), **dict.fromkeys(_PAIRS, build_pair),
    **dict.fromkeys(("v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"), build_from_fp8),
    **dict.fromkeys(("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32"), build_to_fp8),
    **dict.fromkeys(("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"), build_mixed),
}  # fmt: skip
