"""Vector conversions between numbers and integers (CDNA3 ISA, "V_CVT")."""

from collections.abc import Callable

import numpy as np

from ...formats import get_float_format
from ...formats.rounding import decode, encode
from .. import floats
from ..errors import Refused
from .decode import FORMATS, AluRow, Operation, unknown
from .syntax import AMDInstruction, Modified
from .vector_operands import VectorSource, VectorTarget, active, settled, vector_operation


def _values(bits, fmt: str, mode) -> np.ndarray:
    """Values of encodings in float64, subnormal ones as the MODE register says."""
    bits = np.asarray(bits)
    if mode.flushes(fmt)[0]:
        bits = floats.flushed(bits, fmt)
    return floats.values(bits, fmt).astype(np.float64)


def _narrowed(source: str, target: str) -> Callable:
    """From one format to a narrower one, rounded by its mode; to a wider one."""

    def run(mode, bits):
        if mode.bits >> 23 & 1 and target == "fp16":
            raise Refused("conversions to f16 with FP16_OVFL are not known here")
        found = floats.rounded(_values(bits, source, mode), target, mode.rounding(target))
        return floats.flushed(found, target) if mode.flushes(target)[1] else found

    return run


def _from_integer(target: str) -> Callable:
    return lambda mode, x: floats.rounded(np.asarray(x).astype(np.float64), target, mode.rounding(target))


def _to_integer(source: str, dtype, whole: Callable = np.trunc) -> Callable:
    """Cut to a whole number and clamped; NaN gives 0."""
    low, high = (float(x) for x in (np.iinfo(dtype).min, np.iinfo(dtype).max))

    def run(mode, bits):
        value = whole(_values(bits, source, mode))
        return np.clip(np.where(np.isnan(value), 0.0, value), low, high).astype(dtype)

    return run


def _byte(place: int) -> Callable:
    return lambda mode, x: (np.asarray(x) >> np.uint32(8 * place) & np.uint32(255)).astype(np.float32).view(np.uint32)


#: Elementwise conversions.
ROWS: dict[str, AluRow] = {
    "v_cvt_f16_f32": AluRow("f16", ("f32",), _narrowed("fp32", "fp16"), moded=True),
    "v_cvt_f32_f16": AluRow("f32", ("f16",), _narrowed("fp16", "fp32"), moded=True),
    "v_cvt_f32_f64": AluRow("f32", ("f64",), _narrowed("fp64", "fp32"), moded=True),
    "v_cvt_f64_f32": AluRow("f64", ("f32",), _narrowed("fp32", "fp64"), moded=True),
    **{f"v_cvt_{kind}_{integer}": AluRow(kind, (integer,), _from_integer(FORMATS[kind]), moded=True)
       for kind, integer in (("f32", "i32"), ("f32", "u32"), ("f64", "i32"), ("f64", "u32"), ("f16", "i16"), ("f16", "u16"))},
    **{f"v_cvt_{integer}_{kind}": AluRow(integer, (kind,), _to_integer(FORMATS[kind], dtype), moded=True)
       for integer, dtype in (("i32", np.int32), ("u32", np.uint32)) for kind in ("f32", "f64")},
    **{f"v_cvt_{integer}_f16": AluRow(integer, ("f16",), _to_integer("fp16", dtype), moded=True)
       for integer, dtype in (("i16", np.int16), ("u16", np.uint16))},
    "v_cvt_flr_i32_f32": AluRow("i32", ("f32",), _to_integer("fp32", np.int32, np.floor), moded=True),
    "v_cvt_rpi_i32_f32": AluRow("i32", ("f32",), _to_integer("fp32", np.int32, lambda x: np.floor(x + 0.5)), moded=True),
    **{f"v_cvt_f32_ubyte{i}": AluRow("f32", ("u32",), _byte(i), moded=True) for i in range(4)},
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """The operation of an elementwise conversion."""
    return vector_operation(ins, ROWS[ins.name])


# -- two numbers at once ---------------------------------------------------------------------------------------------------
def _packed(fmt: str, kind: str, rounding: str | None) -> Callable:
    def one(mode, bits):
        found = floats.rounded(_values(bits, "fp32", mode), fmt, rounding or mode.rounding("fp16"))
        return floats.flushed(found, fmt) if mode.flushes("fp16")[1] and fmt == "fp16" else found

    return one


#: Two f32 to two numbers of 16 bits: name -> (format, rounding or None for that of the MODE register).
_PAIRS = {
    "v_cvt_pkrtz_f16_f32": ("fp16", "rz"), "v_cvt_pk_f16_f32": ("fp16", None), "v_cvt_pk_bf16_f32": ("bf16", "rne"),
}  # fmt: skip


def build_pair(ins: AMDInstruction) -> Operation:
    """Two f32 to two numbers of 16 bits in one register."""
    fmt, rounding = _PAIRS[ins.name]
    if len(ins.operands) != 3 or ins.modifiers or ins.encoding in ("sdwa", "dpp"):
        raise unknown(ins, "has operands or modifiers that are not known here")
    target = VectorTarget(ins.operands[0], "b32", ins)
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[1:]]
    convert, row = _packed(fmt, "f16", rounding), AluRow("f16", ("f32",), np.asarray)

    def run(machine, waves, lanes):
        mode, words, owners = machine.mode_of(waves), [], []
        for source in sources:
            value, own = source.read(machine, waves, lanes)
            words.append(settled(machine, ins, convert(mode, value), fmt).astype(np.uint32))
            owners.append(None if own is None else machine.trace.elementwise(ins, row, [value], [own], mode))
        target.write(machine, words[0] | words[1] << np.uint32(16), waves, lanes, _joined(owners, 2))

    return active(run)


def _joined(owners: list, size: int) -> np.ndarray | None:
    """Owners of neighbouring numbers of `size` bytes."""
    if all(own is None for own in owners):
        return None
    count = next(len(own) for own in owners if own is not None)
    return np.concatenate([np.zeros((count, size), np.int64) if own is None else own[:, :size] for own in owners], 1)


# -- FP8 -------------------------------------------------------------------------------------------------------------------
#: FP8 of the processors: gfx942 has the formats without infinities and -0 (FNUZ), gfx950 those of OCP.
_FP8 = {"cdna3": {"fp8": "e4m3fnuz", "bf8": "e5m2fnuz"}}


def _format(machine, ins: AMDInstruction, name: str) -> str:
    table = _FP8.get(machine.launch.unit)
    if table is None:
        raise Refused(f"{ins.opcode}: the FP8 formats of this unit are not known here", ins.line)
    return table[name]


def build_from_fp8(ins: AMDInstruction) -> Operation:
    """v_cvt_f32_fp8, v_cvt_pk_f32_fp8 and those of bf8: one byte, or the two of a half register, to f32."""
    name, pairs = ins.name.rpartition("_")[2], "_pk_" in ins.name
    half = ins.modifiers.get("op_sel", [0])[0]
    word = str(ins.modifiers.get("src0_sel", "WORD_1" if half else "BYTE_0"))
    start = {"BYTE_0": 0, "BYTE_1": 1, "BYTE_2": 2, "BYTE_3": 3, "WORD_0": 0, "WORD_1": 2, "DWORD": 0}.get(word)
    rest = ins.modifiers.keys() - {"op_sel", "src0_sel", "dst_sel", "dst_unused"}
    if len(ins.operands) != 2 or start is None or rest or ins.modifiers.get("dst_sel", "DWORD") != "DWORD":
        raise unknown(ins)
    if half and not pairs:
        raise unknown(ins, "with op_sel is not known here")
    target = VectorTarget(ins.operands[0], "b64" if pairs else "b32", ins)
    sources = [VectorSource(ins.operands[1], "b32", ins, (start + i, 1)) for i in range(1 + pairs)]
    row = AluRow("f32", ("b8",), np.asarray)

    def run(machine, waves, lanes):
        fmt, found, owners = _format(machine, ins, name), [], []
        for source in sources:
            value, own = source.read(machine, waves, lanes)
            bits = decode(np.asarray(value).astype(np.uint8), fmt, np.float32).view(np.uint32)
            found.append(settled(machine, ins, bits, "fp32"))
            narrow = None if own is None else own[:, :1]
            owners.append(None if own is None else machine.trace.elementwise(ins, row, [value], [narrow]))
        bits = found[0] if not pairs else found[0].astype(np.uint64) | found[1].astype(np.uint64) << np.uint64(32)
        target.write(machine, bits, waves, lanes, _joined(owners, 4))

    return active(run)


def build_to_fp8(ins: AMDInstruction) -> Operation:
    """v_cvt_pk_fp8_f32 and bf8: two f32 to the two bytes of a half register, whose other half stays."""
    name = ins.name.split("_")[3]
    select = ins.modifiers.get("op_sel", [0, 0, 0])
    if (
        len(ins.operands) != 3
        or ins.modifiers.keys() - {"op_sel"}
        or any(select[:2])
        or ins.encoding in ("sdwa", "dpp")
    ):
        raise unknown(ins, "has operands or modifiers that are not known here")
    high = bool(select[-1])
    target = VectorTarget(ins.operands[0], "b16", ins, (2 if high else 0, 2), "PRESERVE")
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[1:]]
    row = AluRow("b8", ("f32",), np.asarray)

    def run(machine, waves, lanes):
        fmt, words, owners = _format(machine, ins, name), [], []
        largest = get_float_format(fmt).max_finite
        for source in sources:
            value, own = source.read(machine, waves, lanes)
            exact = floats.values(np.asarray(value), "fp32").astype(np.float64)
            bits = encode(np.where(np.isnan(exact), 0.0, exact), fmt, "rne", saturate=True)
            if not (np.abs(exact) <= float(largest)).all():
                raise Refused(
                    f"{ins.opcode} of a number beyond {float(largest)}: what it gives is not published", ins.line
                )
            words.append(bits.astype(np.uint16))
            owners.append(None if own is None else machine.trace.elementwise(ins, row, [value], [own]))
        target.write(machine, words[0] | words[1] << np.uint16(8), waves, lanes, _joined(owners, 1))

    return active(run)


# -- multiply-adds of mixed formats ----------------------------------------------------------------------------------------
def build_mixed(ins: AMDInstruction) -> Operation:
    """v_fma_mix_f32, mixlo and mixhi: each operand is f32, or a half of a register (op_sel_hi: f16; op_sel: which)."""
    high, which = (ins.modifiers.get(name, [0, 0, 0]) for name in ("op_sel_hi", "op_sel"))
    if len(ins.operands) != 4 or ins.modifiers.keys() - {"op_sel", "op_sel_hi", "neg_lo", "neg_hi"}:
        raise unknown(ins, "has operands or modifiers that are not known here")
    minus, absolute = (ins.modifiers.get(name, [0, 0, 0]) for name in ("neg_lo", "neg_hi"))
    sources = []
    for i, operand in enumerate(ins.operands[1:]):
        kind = "f16" if high[i] else "f32"
        if isinstance(operand, Modified) and (minus[i] or absolute[i]):
            raise unknown(ins, "changes a sign twice")
        changed = Modified(operand, bool(minus[i]), bool(absolute[i])) if minus[i] or absolute[i] else operand
        sources.append((kind, VectorSource(changed, kind, ins, (2, 2) if high[i] and which[i] else None)))
    if ins.name == "v_fma_mix_f32":
        fmt, target = "fp32", VectorTarget(ins.operands[0], "f32", ins)
    else:
        part = (2 if ins.name == "v_fma_mixhi_f16" else 0, 2)
        fmt, target = "fp16", VectorTarget(ins.operands[0], "f16", ins, part, "PRESERVE")
    row = AluRow("f32" if fmt == "fp32" else "f16", tuple(kind for kind, _ in sources), np.asarray)

    def run(machine, waves, lanes):
        mode = machine.mode_of(waves)
        read = [source.read(machine, waves, lanes) for _, source in sources]
        exact = [_values(value, FORMATS[kind], mode) for (kind, _), (value, _) in zip(sources, read, strict=True)]
        total = floats.sum_to_odd(exact[0] * exact[1], exact[2])
        found = floats.rounded(total, fmt, mode.rounding(fmt))
        found = settled(machine, ins, floats.flushed(found, fmt) if mode.flushes(fmt)[1] else found, fmt)
        ids = None
        if machine.trace is not None and any(own is not None for _, own in read):
            ids = machine.trace.elementwise(ins, row, [value for value, _ in read], [own for _, own in read], mode)
        target.write(machine, found, waves, lanes, ids)

    return active(run)


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys(ROWS, build), **dict.fromkeys(_PAIRS, build_pair),
    **dict.fromkeys(("v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"), build_from_fp8),
    **dict.fromkeys(("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32"), build_to_fp8),
    **dict.fromkeys(("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"), build_mixed),
}  # fmt: skip
