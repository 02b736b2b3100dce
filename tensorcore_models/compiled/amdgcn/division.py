"""Builds the steps of an FP32 division, and exponents: v_div_scale, fmas and fixup, v_ldexp, v_frexp (CDNA3 ISA,
pseudo-code)."""

from collections.abc import Callable

import numpy as np

from ..errors import Refused
from ..isa.division import scaled_back, scaled_operand
from ..isa.meaning import Meaning
from .scalar_operands import Operation, unknown
from .syntax import VCC, AMDInstruction, RegisterRange
from .vector import mask_target, write_mask
from .vector_operands import VectorSource, VectorTarget, active, settled, vector_operation


def build_scale(ins: AMDInstruction) -> Operation:
    """Return the operation of v_div_scale_f32."""
    if len(ins.operands) != 5 or ins.modifiers:
        raise unknown(ins, "has operands or modifiers that are not modelled")
    target, out = VectorTarget(ins.operands[0], "f32", ins), mask_target(ins.operands[1], ins)
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[2:]]
    m = Meaning("div_scale", "f32", ("f32",) * 3, nan="quiet")

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        found, undone = scaled_operand(*(np.asarray(value) for value, _ in read))
        ids = None
        if machine.trace is not None:
            values, owners = [value for value, _ in read], [own for _, own in read]
            ids = machine.trace.elementwise(ins.name, ins.line, m, values, owners)
        target.write(machine, found, waves, lanes, ids)
        write_mask(machine, out, undone, waves, lanes)

    return active(run)


def build_multiply_add(ins: AMDInstruction) -> Operation:
    """Return the operation of v_div_fmas_f32, a multiply-add rounded once; where VCC is set it undoes the scale of
    v_div_scale."""
    if len(ins.operands) != 4 or ins.modifiers:
        raise unknown(ins, "has operands or modifiers that are not modelled")
    target = VectorTarget(ins.operands[0], "f32", ins)
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[1:]]
    flags = VectorSource(RegisterRange(False, VCC, 2), "pred", ins)
    m = Meaning("div_fmas", "f32", ("f32",) * 3, nan="quiet")

    def run(machine, waves, lanes):
        mode, read = machine.mode_of(waves), [source.read(machine, waves, lanes) for source in sources]
        if any(mode.flushes("fp32")) or mode.rounding("fp32") != "rne":
            raise Refused(f"{ins.opcode} is modelled only for rounding to nearest with subnormal numbers", ins.line)
        x, y, z = (np.asarray(value) for value, _ in read)
        back, _ = flags.read(machine, waves, lanes)
        found = settled(machine, ins, scaled_back(x, y, z, back), "fp32")
        ids = None
        if machine.trace is not None:
            values, owners = [value for value, _ in read], [own for _, own in read]
            ids = machine.trace.elementwise(ins.name, ins.line, m, values, owners)
        target.write(machine, found, waves, lanes, ids)

    return active(run)


def _of(operation: str, result: str, *sources: str) -> Meaning:
    return Meaning(operation, result, sources, nan="quiet")


ROWS: dict[str, Meaning] = {
    "v_div_fixup_f32": _of("fixed_quotient", "f32", "f32", "f32", "f32"),
    **{f"v_ldexp_{kind}": _of("scaled_by_power", kind, kind, "s32") for kind in ("f32", "f64")},
    "v_frexp_mant_f32": _of("fraction", "f32", "f32"), "v_frexp_exp_i32_f32": _of("power", "s32", "f32"),
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """Return the operation of an elementwise instruction."""
    return vector_operation(ins, ROWS[ins.name])


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys(ROWS, build), "v_div_scale_f32": build_scale, "v_div_fmas_f32": build_multiply_add,
}  # fmt: skip
