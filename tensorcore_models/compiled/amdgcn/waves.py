"""Builds moves between lanes and their wave: v_readlane, v_readfirstlane, v_writelane (CDNA3 ISA, "Vector ALU Operations").

Compilers spill scalar registers into lanes of a vector register, sometimes both halves of a pair whose upper half was never
written. So an unwritten value may be moved; only its use is a fault.
"""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from ..errors import KernelFault
from .access import vectors_of
from .machine import WAVE
from .scalar_operands import Operation, ScalarSource, ScalarTarget, unknown
from .syntax import AMDInstruction


def _chosen(machine, waves) -> np.ndarray:
    """Return the first active lane of each wave, lane 0 if no lane is active."""
    count = machine.waves.count if waves is None else len(waves)
    base = (machine.waves.all_lanes if waves is None else waves) * WAVE
    lanes = machine.lanes(waves)
    if lanes is None:
        return base
    found = np.full(machine.waves.count, -1)
    found[lanes[::-1] // WAVE] = lanes[::-1]
    mine = found if waves is None else found[waves]
    assert len(mine) == count
    return np.where(mine < 0, base, mine)


def _moved(machine, number: int, target: ScalarTarget, waves, lanes: np.ndarray) -> None:
    """Move a register of one lane of each wave to a scalar register."""
    absent = machine.vectors.unwritten(number, lanes)
    try:
        with machine.vectors.unchecked() if absent is not None else nullcontext():
            value = machine.read_vector(number, waves, lanes)
    except KernelFault as fault:
        raise machine.of_lane(fault, lanes) from None
    ids = machine.vectors.read_ids(number, lanes) if machine.trace is not None else None
    target.write(machine, value, waves, ids)
    if absent is not None:
        machine.scalars.forget(target.first, waves, absent)


def build_first(ins: AMDInstruction) -> Operation:
    """Return the operation of v_readfirstlane_b32."""
    if len(ins.operands) != 2 or ins.modifiers:
        raise unknown(ins)
    target, number = ScalarTarget(ins.operands[0], "b32", ins), vectors_of(ins.operands[1], 1, ins)[0]
    return lambda machine, waves: _moved(machine, number, target, waves, _chosen(machine, waves))


def build_read(ins: AMDInstruction) -> Operation:
    """Return the operation of v_readlane_b32."""
    if len(ins.operands) != 3 or ins.modifiers:
        raise unknown(ins)
    target, number = ScalarTarget(ins.operands[0], "b32", ins), vectors_of(ins.operands[1], 1, ins)[0]
    which = ScalarSource(ins.operands[2], "u32", ins)

    def run(machine, waves):
        base = (machine.waves.all_lanes if waves is None else waves) * WAVE
        _moved(machine, number, target, waves, base + (which.read(machine, waves).astype(np.int64) & (WAVE - 1)))

    return run


def build_write(ins: AMDInstruction) -> Operation:
    """Return v_writelane_b32, which writes a scalar register to one lane's register, whatever EXEC says."""
    if len(ins.operands) != 3 or ins.modifiers:
        raise unknown(ins)
    number = vectors_of(ins.operands[0], 1, ins)[0]
    value, which = (ScalarSource(operand, "u32", ins) for operand in ins.operands[1:])

    def run(machine, waves):
        base = (machine.waves.all_lanes if waves is None else waves) * WAVE
        lanes = base + (which.read(machine, waves).astype(np.int64) & (WAVE - 1))
        ids = value.owners(machine, waves) if machine.trace is not None else None
        absent = None if value.registers is None else machine.scalars.unwritten(value.registers.first, waves)
        with machine.scalars.unchecked() if absent is not None else nullcontext():
            found = value.read(machine, waves)
        machine.write_vector(number, np.broadcast_to(found, lanes.shape), waves, lanes, ids)
        if absent is not None:
            machine.vectors.forget(number, lanes, np.broadcast_to(absent, lanes.shape))

    return run


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    "v_readfirstlane_b32": build_first, "v_readlane_b32": build_read, "v_writelane_b32": build_write,
}  # fmt: skip
