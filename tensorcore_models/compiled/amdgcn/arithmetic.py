"""Vector instructions on floating-point numbers (CDNA3 ISA, "Vector ALU Operations"): one rounding each, by the MODE register.

Payloads of NaN results are not published: such results are refused, or are the quiet NaN if the caller asks for that. So are
approximations (v_rcp, v_exp, ...), for which correctly rounded numbers stand in.
"""

from collections.abc import Callable

import numpy as np

from ...formats import get_float_format
from .. import floats
from .decode import FORMATS, AluRow, Operation, unknown, unpublished
from .syntax import AMDInstruction, Literal, Modified, Operand, RegisterRange
from .vector_operands import VectorSource, VectorTarget, active, settled, vector_operation


def sign_of(fmt: str) -> int:
    """The bit of a format's sign."""
    return 1 << (get_float_format(fmt).bits - 1)


def by_mode(function: Callable, fmt: str, *, flush: bool = True) -> Callable:
    """``function(rounding, *encodings)`` with operands and results flushed as the MODE register says."""

    def run(mode, *operands):
        operands = [np.asarray(x) for x in operands]
        before, after = mode.flushes(fmt) if flush else (False, False)
        if before:
            operands = [floats.flushed(x, fmt) for x in operands]
        found = function(mode.rounding(fmt), *operands)
        return floats.flushed(found, fmt) if after else found

    return run


def _extreme(fmt: str, largest: bool) -> Callable:
    nan = get_float_format(fmt).nan_encoding()
    quiet = 1 << (get_float_format(fmt).fraction_bits - 1)

    def run(mode, *operands):
        if mode.flushes(fmt)[0]:
            operands = tuple(floats.flushed(np.asarray(x), fmt) for x in operands)
        found = operands[0]
        for operand in operands[1:]:
            found = floats.extreme(found, operand, fmt, largest=largest, nan_wins=False, nan=nan)
        if mode.quiets:  # a signalling NaN makes the result NaN
            for operand in operands:
                wrong = floats.is_nan(np.asarray(operand), fmt) & (operand & operand.dtype.type(quiet) == 0)
                found = np.where(wrong, found.dtype.type(nan), found)
        return found

    return run


def _middle(fmt: str) -> Callable:
    """med3 of numbers; NaN is refused by what it gives."""
    low, high = _extreme(fmt, False), _extreme(fmt, True)
    nan = get_float_format(fmt).nan_encoding()

    def run(mode, x, y, z):
        found = high(mode, low(mode, x, y), low(mode, high(mode, x, y), z))
        some = floats.is_nan(x, fmt) | floats.is_nan(y, fmt) | floats.is_nan(z, fmt)
        return np.where(some, found.dtype.type(nan), found)

    return run


def _whole(function: Callable, fmt: str) -> Callable:
    """Rounded to a whole number; the sign of a zero stays."""

    def run(mode, x):
        if mode.flushes(fmt)[0]:
            x = floats.flushed(x, fmt)
        value = floats.values(x, fmt).astype(np.float64)
        return floats.rounded(np.copysign(function(value), value), fmt, "rne")

    return run


def _rows(kind: str) -> dict[str, AluRow]:
    fmt = FORMATS[kind]
    flip = (np.uint16, np.uint32, np.uint64)[("f16", "f32", "f64").index(kind)](sign_of(fmt))
    one, two, three = (kind,), (kind,) * 2, (kind,) * 3

    def row(kinds, function) -> AluRow:
        return AluRow(kind, kinds, by_mode(function, fmt), moded=True)

    found = {
        "add": row(two, lambda r, x, y: floats.add(x, y, fmt, r)),
        "sub": row(two, lambda r, x, y: floats.add(x, y ^ flip, fmt, r)),
        "subrev": row(two, lambda r, x, y: floats.add(x ^ flip, y, fmt, r)),
        "mul": row(two, lambda r, x, y: floats.multiply(x, y, fmt, r)),
        "fma": row(three, lambda r, x, y, z: floats.fma(x, y, z, fmt, r)),
        **{name: AluRow(kind, two, _extreme(fmt, name == "max"), moded=True) for name in ("min", "max")},
        **{f"{name}3": AluRow(kind, three, _extreme(fmt, name == "max"), moded=True) for name in ("min", "max")},
        "med3": AluRow(kind, three, _middle(fmt), moded=True),
        **{name: AluRow(kind, one, _whole(function, fmt), moded=True)
           for name, function in (("rndne", np.rint), ("trunc", np.trunc), ("floor", np.floor), ("ceil", np.ceil))},
    }  # fmt: skip
    return {f"v_{name}_{kind}": each for name, each in found.items()}


#: Elementwise instructions.
ROWS: dict[str, AluRow] = {name: row for kind in FORMATS for name, row in _rows(kind).items()}


def build(ins: AMDInstruction) -> Operation:
    """The operation of an elementwise instruction."""
    return vector_operation(ins, ROWS[ins.name])


def build_accumulating(ins: AMDInstruction) -> Operation:
    """v_fmac: the target is the addend; v_fmaak and v_fmamk: a constant is the addend or a factor."""
    name = f"v_fma_{ins.name.rpartition('_')[2]}"
    if ins.encoding in ("sdwa", "dpp"):
        raise unknown(ins)
    operands = (*ins.operands, ins.operands[0]) if ins.name.startswith("v_fmac") else ins.operands
    return vector_operation(AMDInstruction(name, ins.encoding, operands, ins.modifiers, ins.line), ROWS[name])


# -- packed numbers ----------------------------------------------------------------------------------------------------------
def _selected(ins: AMDInstruction, name: str, count: int, default: int) -> list[int]:
    found = ins.modifiers.get(name, [default] * count)
    if not isinstance(found, list) or len(found) != count or not {*found} <= {0, 1}:
        raise unknown(ins, f"with {name}:{found} is not known here")
    return found


def build_packed(ins: AMDInstruction) -> Operation:
    """v_pk_add, mul, fma, min, max: on two f32 of neighbouring registers, or two f16 of one."""
    name, kind = ins.name.split("_")[2:4]
    row = ROWS[f"v_{name}_{kind}"]
    count = len(row.sources)
    if len(ins.operands) != 1 + count or ins.modifiers.keys() - {"op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp"}:
        raise unknown(ins, "has operands or modifiers that are not known here")
    picks = [_selected(ins, "op_sel", count, 0), _selected(ins, "op_sel_hi", count, 1)]
    signs = [_selected(ins, "neg_lo", count, 0), _selected(ins, "neg_hi", count, 0)]
    halves = [
        [_half(ins, operand, kind, pick[i], bool(sign[i])) for i, operand in enumerate(ins.operands[1:])]
        for pick, sign in zip(picks, signs, strict=True)
    ]
    target = VectorTarget(ins.operands[0], "b64" if kind == "f32" else "b32", ins)
    single = AMDInstruction(f"v_{name}_{kind}", "", (), ins.modifiers, ins.line)
    size = 4 if kind == "f32" else 2

    def run(machine, waves, lanes):
        found, owners = [], []
        mode = machine.mode_of(waves)
        for sources in halves:
            read = [source.read(machine, waves, lanes) for source in sources]
            values = [np.asarray(value) for value, _ in read]
            found.append(settled(machine, single, row.function(mode, *values), FORMATS[kind]))
            own = None
            if machine.trace is not None and any(owner is not None for _, owner in read):
                own = machine.trace.elementwise(single, row, values, [owner for _, owner in read], mode)
            owners.append(own)
        wide = np.uint64 if kind == "f32" else np.uint32
        bits = found[0].astype(wide) | found[1].astype(wide) << wide(8 * size)
        ids = None
        if any(own is not None for own in owners):
            length = next(len(own) for own in owners if own is not None)
            ids = np.concatenate([np.zeros((length, size), np.int64) if own is None else own for own in owners], 1)
        target.write(machine, bits, waves, lanes, ids)

    return active(run)


def _half(ins: AMDInstruction, operand, kind: str, pick: int, negated: bool) -> VectorSource:
    """One of the two numbers of an operand."""
    if kind == "f16":
        if isinstance(operand, Literal) and pick:
            raise unknown(ins, "selects the upper half of a constant")
        part = (2, 2) if pick else None
        return VectorSource(Modified(operand, True) if negated else operand, kind, ins, part)
    source: Operand
    if isinstance(operand, RegisterRange) and operand.count == 2:
        source = RegisterRange(operand.vector, operand.first + pick, 1)
    elif isinstance(operand, Literal) and not pick:
        source = operand
    else:
        raise unknown(ins, "has an operand whose upper number is not known here")
    return VectorSource(Modified(source, True) if negated else source, kind, ins)


# -- division and approximations -----------------------------------------------------------------------------------------------
_APPROXIMATE: dict[str, Callable] = {
    "exp": np.exp2, "log": np.log2, "rcp": lambda x: 1 / x, "rcp_iflag": lambda x: 1 / x, "rsq": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt, "sin": lambda x: np.sin(2 * np.pi * x), "cos": lambda x: np.cos(2 * np.pi * x),
}  # fmt: skip


def build_approximate(ins: AMDInstruction) -> Operation:
    """Functions whose bits are not published: correctly rounded stand-ins if the caller asks for them."""
    name, _, kind = ins.name[2:].rpartition("_")
    if kind not in FORMATS:
        raise unknown(ins)
    fmt, function = FORMATS[kind], _APPROXIMATE[name]

    def nearest(mode, x):
        if mode.flushes(fmt)[0]:
            x = floats.flushed(x, fmt)
        with np.errstate(all="ignore"):
            found = floats.rounded(function(floats.values(x, fmt).astype(np.float64)), fmt, "rne")
        return floats.flushed(found, fmt) if mode.flushes(fmt)[1] else found

    stand_in = vector_operation(ins, AluRow(kind, (kind,), nearest, moded=True))

    def run(machine, waves):
        if machine.unpublished != "nearest":
            raise unpublished(ins)
        machine.assume(f"{ins.name} gives the nearest {fmt} number; the bits of the hardware are not published")
        return stand_in(machine, waves)

    return run


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys(ROWS, build),
    **dict.fromkeys(("v_fmac_f32", "v_fmac_f64", "v_fmaak_f32", "v_fmamk_f32"), build_accumulating),
    **dict.fromkeys(
        (f"v_pk_{name}_{kind}" for name, kind in (
            ("add", "f32"), ("mul", "f32"), ("fma", "f32"), ("add", "f16"), ("mul", "f16"), ("fma", "f16"), ("min", "f16"),
            ("max", "f16"))), build_packed),
    **dict.fromkeys((f"v_{name}_{kind}" for name in _APPROXIMATE for kind in FORMATS), build_approximate),
}  # fmt: skip
