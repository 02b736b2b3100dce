"""wgmma (PTX ISA 9.1, 9.7.16): products of a warp group, B and mostly A from shared memory. Done at once."""

import re

import numpy as np

from ...formats import get_format
from ...hardware.cuda.layouts import WARPGROUP, mma_layout, warpgroup_accumulator
from .. import fragments
from ..errors import KernelFault
from .decode import Operation, id_reader, reader, unknown
from .mma import FORMATS, write_tiles
from .movement import items
from .shared_tiles import load_tiles, signed, wgmma_descriptor
from .syntax import Immediate, PTXInstruction, Register, Vector
from .warps import whole_warps


def warpgroups(machine, lanes: np.ndarray | None, ins: PTXInstruction) -> np.ndarray:
    """Lanes of the warp groups that run an instruction, one a row; KernelFault if one is there in part."""
    every = machine.threads.all_lanes if lanes is None else lanes
    if len(every) % WARPGROUP == 0 and machine.threads.lanes_per_block % WARPGROUP == 0:
        rows = every.reshape(-1, WARPGROUP)
        if (rows[:, 0] % WARPGROUP == 0).all() and (rows[:, -1] - rows[:, 0] == WARPGROUP - 1).all():
            return rows
    raise KernelFault(f"{ins.opcode} is run by a part of a warp group only; all its 128 threads have to")


def build(ins: PTXInstruction) -> Operation:
    """wgmma.fence, commit_group, wait_group and mma_async."""
    deed = ins.modifiers[0]
    if deed == "fence":
        return lambda machine, lanes: machine.checks.group_fenced(lanes)
    if deed == "commit_group":
        return lambda machine, lanes: machine.checks.group_committed(lanes)
    if deed == "wait_group":
        left = ins.operands[0].value
        return lambda machine, lanes: machine.checks.group_waited(lanes, left)
    if deed != "mma_async":
        raise unknown(ins)
    return whole_warps(_product(ins))


def _constant(operand, ins: PTXInstruction) -> int:
    if not isinstance(operand, Immediate):
        raise unknown(ins, "needs constants for its factors and transpositions")
    return operand.value - (1 << 64) if operand.value >> 63 else operand.value


#: Factors and transpositions of A and B from the constants that there are: integers have none, A in registers no transposition.
_FACTORS = {
    0: lambda given: (1, 1, 0, 0), 2: lambda given: (*given, 0, 0), 3: lambda given: (*given[:2], 0, given[2]), 4: tuple,
}  # fmt: skip


def _product(ins: PTXInstruction) -> Operation:
    """The operation of wgmma.mma_async."""
    words, operands = ins.modifiers, ins.operands
    shape = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", words[3]) if len(words) > 5 else None
    types = [w for w in words[4:] if w in FORMATS]
    if shape is None or len(types) != 3 or set(words[4:]) - {*types, "satfinite"}:
        raise unknown(ins)
    m, n, k = (int(x) for x in shape.groups())
    d_format, a_format, b_format = (FORMATS[w] for w in types)
    name = f"wgmma.m64n8k{k}.{'.'.join(types)}" + (".satfinite" if "satfinite" in words else "")
    accumulator = warpgroup_accumulator(n, get_format(d_format).bits)
    targets = items(operands[0])
    factors = [_constant(operand, ins) for operand in operands[4:]]
    if len(factors) not in _FACTORS:
        raise unknown(ins)
    scale_a, scale_b, turn_a, turn_b = _FACTORS[len(factors)](factors)
    if len(targets) != accumulator.registers or not {scale_a, scale_b} <= {1, -1}:
        raise unknown(ins)
    kept = reader(operands[3], "pred", ins) if len(operands) > 3 else None
    held = [reader(x, "b32", ins) for x in targets]
    owners = [id_reader(x, "b32") for x in targets]
    from_registers = isinstance(operands[1], Vector)
    a_fragment = mma_layout((16, 8, k), a_format, b_format, "fp32", "fp32").a if from_registers else None
    a_words = [reader(x, "b32", ins) for x in items(operands[1])] if from_registers else []
    a_owners = [id_reader(x, "b32") for x in items(operands[1])] if from_registers else []
    described = [reader(operand, "b64", ins) for operand in operands[1:3] if isinstance(operand, Register)]
    sizes = [get_format(f).bits // 8 for f in (a_format, b_format)]

    def operand_tiles(machine, lanes, groups, side):
        descriptors = [wgmma_descriptor(int(x)) for x in _uniform(described[side - 2](machine, lanes), groups, ins)]
        rows = machine.threads.row[groups[:, 0]]
        height, turned = ((m, turn_a), (n, turn_b))[side]
        return load_tiles(machine, rows, descriptors, height, k, sizes[side], bool(turned), groups[:, 0], "wgmma")

    def run(machine, lanes):
        row = machine.matrix_row(name, ins).with_shape(m, n)
        groups = warpgroups(machine, lanes, ins)
        if from_registers:
            words = [np.broadcast_to(read(machine, lanes), (groups.size,)) for read in a_words]
            a = fragments.matrices(words, a_fragment).reshape(len(groups), m, k)
            a_ids = fragments.element_ids([x(machine, lanes) for x in a_owners], a_fragment, 4 * len(groups))
            a_ids = None if a_ids is None else a_ids.reshape(len(groups), m, k, -1)
        else:
            a, a_ids = operand_tiles(machine, lanes, groups, 0)
        b, b_ids = operand_tiles(machine, lanes, groups, 1)
        b, b_ids = b.swapaxes(1, 2), None if b_ids is None else b_ids.swapaxes(1, 2)
        a, b = signed(a, scale_a), signed(b, scale_b)
        machine.checks.group_used(lanes, [x.number for x in targets])
        keep = np.ones(len(groups), bool)
        if kept is not None:
            keep = np.broadcast_to(kept(machine, lanes), (groups.size,)).reshape(groups.shape)[:, 0]
        c, c_ids = np.zeros((len(groups), 1, m, n), get_format(d_format).container), None
        if keep.any():
            c = fragments.matrices(
                [np.broadcast_to(read(machine, lanes), (groups.size,)) for read in held], accumulator
            )
            c = np.where(keep[:, None, None, None], c, c.dtype.type(0))
            if machine.trace is not None:
                c_ids = fragments.element_ids([read(machine, lanes) for read in owners], accumulator, len(groups))
                c_ids = None if c_ids is None else np.where(keep[:, None, None, None, None], c_ids, 0)[:, 0]
        tiles = [np.ascontiguousarray(x) for x in (a, b, c[:, 0])]
        result = row.mma_bits(*tiles)
        ids = (
            machine.trace.product(row, [a_ids, b_ids, c_ids], tiles, ins.line, (scale_a, scale_b))
            if machine.trace is not None
            else None
        )
        write_tiles(machine, targets, accumulator, result[:, None], ids, lanes)

    return run


def _uniform(values, groups: np.ndarray, ins: PTXInstruction) -> np.ndarray:
    """One value for each group, which all its threads must hold."""
    table = np.broadcast_to(values, (groups.size,)).reshape(groups.shape)
    if (table != table[:, :1]).any():
        raise KernelFault(f"{ins.opcode}: the threads of a warp group hold different descriptors")
    return table[:, 0]


BUILDERS = {"wgmma": build}
