"""Builds vector instructions on floating-point numbers (CDNA3 ISA, "Vector ALU Operations"): one rounding each, by the MODE
register.

Payloads of NaN results are not published. A NaN result is refused, or is the quiet NaN if the caller asks for that. Likewise
approximations (v_rcp, v_exp, ...) are refused, or replaced by correctly rounded numbers.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..isa.meaning import Meaning
from ..isa.operations import function_of
from ..isa.types import FORMATS
from .scalar_operands import NUMBERS, Operation, unknown, unpublished
from .syntax import AMDInstruction, Literal, Modified, Operand, RegisterRange
from .vector_operands import VectorSource, VectorTarget, active, named, settled, side_by_side, vector_operation


def _rows(kind: str) -> dict[str, Meaning]:
    def row(operation: str, count: int, **rest) -> Meaning:
        return Meaning(operation, kind, (kind,) * count, nan="quiet", **rest)

    found = {
        "add": row("add", 2), "sub": row("sub", 2), "subrev": row("sub", 2, turned=True), "mul": row("mul", 2),
        "fma": row("fma", 3), "med3": row("med3", 3), **{name: row(name, 2) for name in ("min", "max")},
        **{f"{name}3": row(name, 3) for name in ("min", "max")},
        **{name: row("convert", 1, rounding=rounding, options=("whole",))
           for name, rounding in (("rndne", "rne"), ("trunc", "rz"), ("floor", "rd"), ("ceil", "ru"))},
    }  # fmt: skip
    return {f"v_{name}_{kind}": each for name, each in found.items()}


#: Elementwise instructions: name -> meaning.
ROWS: dict[str, Meaning] = {name: m for kind in NUMBERS for name, m in _rows(kind).items()}


def build(ins: AMDInstruction) -> Operation:
    """Return the operation of an elementwise instruction."""
    return vector_operation(ins, ROWS[ins.name])


def build_accumulating(ins: AMDInstruction) -> Operation:
    """Return the operation of v_fmac (the target is the addend), v_fmaak and v_fmamk (a constant is the addend or a factor)."""
    name = f"v_fma_{ins.name.rpartition('_')[2]}"
    if ins.encoding in ("sdwa", "dpp"):
        raise unknown(ins)
    operands = (*ins.operands, ins.operands[0]) if ins.name.startswith("v_fmac") else ins.operands
    return vector_operation(replace(ins, name=name, operands=operands), ROWS[name])


# -- packed numbers ----------------------------------------------------------------------------------------------------------
def _selected(ins: AMDInstruction, name: str, count: int, default: int) -> list[int]:
    found = ins.modifiers.get(name, [default] * count)
    if not isinstance(found, list) or len(found) != count or not {*found} <= {0, 1}:
        raise unknown(ins, f"with {name}:{found} is not modelled")
    return found


def build_packed(ins: AMDInstruction) -> Operation:
    """Return the operation of v_pk_add, mul, fma, min or max, on two f32 of neighbouring registers or two f16 of one
    register."""
    name, kind = ins.name.split("_")[2:4]
    m = ROWS[f"v_{name}_{kind}"]
    count = len(m.sources)
    if len(ins.operands) != 1 + count or ins.modifiers.keys() - {"op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp"}:
        raise unknown(ins, "has operands or modifiers that are not modelled")
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
        settings = machine.mode_of(waves).under(m)
        for sources in halves:
            read = [source.read(machine, waves, lanes) for source in sources]
            values = [np.asarray(value) for value, _ in read]
            found.append(settled(machine, single, function_of(settings)(*values), FORMATS[kind]))
            own = None
            if machine.trace is not None:
                told = replace(settings, saturate=bool(ins.modifiers.get("clamp")))
                name, given = named(single, m, settings), [owner for _, owner in read]
                own = machine.trace.elementwise(name, ins.line, told, values, given)
            owners.append(own)
        wide = np.uint64 if kind == "f32" else np.uint32
        bits = found[0].astype(wide) | found[1].astype(wide) << wide(8 * size)
        target.write(machine, bits, waves, lanes, side_by_side(owners, size))

    return active(run)


def _half(ins: AMDInstruction, operand, kind: str, pick: int, negated: bool) -> VectorSource:
    """Return one of the two numbers of a packed operand."""
    if kind == "f16":
        if isinstance(operand, Literal) and pick:
            raise unknown(ins, "selects the upper half of a constant, which is not modelled")
        part = (2, 2) if pick else None
        return VectorSource(Modified(operand, True) if negated else operand, kind, ins, part)
    source: Operand
    if isinstance(operand, RegisterRange) and operand.count == 2:
        source = RegisterRange(operand.vector, operand.first + pick, 1)
    elif isinstance(operand, Literal) and not pick:
        source = operand
    else:
        raise unknown(ins, "has an operand whose upper number is not modelled")
    return VectorSource(Modified(source, True) if negated else source, kind, ins)


# -- division and approximations -----------------------------------------------------------------------------------------------
#: Approximations: name -> the real function.
_APPROXIMATE = {
    "exp": "ex2", "log": "lg2", "rcp": "rcp", "rcp_iflag": "rcp", "rsq": "rsqrt", "sqrt": "sqrt", "sin": "sin_turns",
    "cos": "cos_turns",
}  # fmt: skip


def build_approximate(ins: AMDInstruction) -> Operation:
    """Return the operation of an instruction whose bits are not published: correctly rounded stand-ins if the caller asks for
    them."""
    name, _, kind = ins.name[2:].rpartition("_")
    m = Meaning("nearest", kind, (kind,), options=(_APPROXIMATE[name],), nan="quiet")
    stand_in = vector_operation(ins, m)

    def run(machine, waves):
        if machine.unpublished != "nearest":
            raise unpublished(ins)
        machine.assume(
            f"{ins.name} gives the nearest {FORMATS[kind]} number; the bits of the hardware are not published"
        )
        return stand_in(machine, waves)

    return run


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys(ROWS, build),
    **dict.fromkeys(("v_fmac_f32", "v_fmac_f64", "v_fmaak_f32", "v_fmamk_f32"), build_accumulating),
    **dict.fromkeys(
        (f"v_pk_{name}_{kind}" for name, kind in (
            ("add", "f32"), ("mul", "f32"), ("fma", "f32"), ("add", "f16"), ("mul", "f16"), ("fma", "f16"), ("min", "f16"),
            ("max", "f16"))), build_packed),
    **dict.fromkeys((f"v_{name}_{kind}" for name in _APPROXIMATE for kind in NUMBERS), build_approximate),
}  # fmt: skip
