"""Builds wgmma (PTX ISA 9.1, 9.7.16): products of a warp group, with B and mostly A from shared memory, done at once."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...formats import get_format
from ...hardware.cuda.layouts import WARPGROUP, mma_layout, warpgroup_accumulator
from .. import fragments
from ..errors import KernelFault
from ..isa.types import MATRIX_FORMATS
from .decode import Operation, groups_left, id_reader, reader, registers_of, unknown
from .mma import write_tiles
from .movement import items
from .shared_tiles import load_tiles, signed, wgmma_descriptor
from .syntax import Immediate, PTXInstruction, Vector
from .warps import whole_warps


def warpgroups(machine, lanes: np.ndarray | None, ins: PTXInstruction) -> np.ndarray:
    """Return the lanes of the warp groups that run an instruction, one group a row; raise KernelFault if a part of one is
    missing."""
    every = machine.threads.all_lanes if lanes is None else lanes
    if len(every) % WARPGROUP == 0 and machine.threads.lanes_per_block % WARPGROUP == 0:
        rows = every.reshape(-1, WARPGROUP)
        if (rows[:, 0] % WARPGROUP == 0).all() and (rows[:, -1] - rows[:, 0] == WARPGROUP - 1).all():
            return rows
    raise KernelFault(f"{ins.opcode} is run by a part of a warp group only; all its 128 threads must run it")


def build(ins: PTXInstruction) -> Operation:
    """Return wgmma.fence, commit_group, wait_group or mma_async."""
    deed = ins.modifiers[0]
    if deed == "fence":
        return lambda machine, lanes: machine.pending.fenced(lanes)
    if deed == "commit_group":
        return _told("committed")
    if deed == "wait_group":
        return _told("waited", groups_left(ins))
    if deed != "mma_async":
        raise unknown(ins)
    return whole_warps(_product(ins))


def _told(event: str, *arguments: int) -> Operation:
    """Tell the checks of memory and of registers of an event of a group."""

    def run(machine, lanes):
        getattr(machine.checks, f"group_{event}")(lanes, *arguments)
        getattr(machine.pending, event)(lanes, *arguments)

    return run


def _constant(operand, ins: PTXInstruction) -> int:
    if not isinstance(operand, Immediate):
        raise unknown(ins, "needs constants for its factors and transpositions")
    return operand.value - (1 << 64) if operand.value >> 63 else operand.value


#: Factors and transpositions of A and B, by the number of constants; integers have none, A in registers no transposition.
_FACTORS = {
    0: lambda given: (1, 1, 0, 0), 2: lambda given: (*given, 0, 0), 3: lambda given: (*given[:2], 0, given[2]), 4: tuple,
}  # fmt: skip


@dataclass(frozen=True)
class _Shape:
    """`_Shape` holds the parts of the opcode and the constants of wgmma.mma_async."""

    sizes: tuple[int, int, int]
    formats: tuple[str, str, str]
    name: str
    signs: tuple[int, int]
    turned: tuple[bool, bool]


def _shape(ins: PTXInstruction) -> _Shape:
    words = ins.modifiers
    shape = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", words[3]) if len(words) > 5 else None
    types = [w for w in words[4:] if w in MATRIX_FORMATS]
    factors = [_constant(operand, ins) for operand in ins.operands[4:]]
    if shape is None or len(types) != 3 or set(words[4:]) - {*types, "satfinite"} or len(factors) not in _FACTORS:
        raise unknown(ins)
    m, n, k = (int(x) for x in shape.groups())
    scale_a, scale_b, turn_a, turn_b = _FACTORS[len(factors)](factors)
    if not {scale_a, scale_b} <= {1, -1}:
        raise unknown(ins)
    name = f"wgmma.m64n8k{k}.{'.'.join(types)}" + (".satfinite" if "satfinite" in words else "")
    d, a, b = (MATRIX_FORMATS[w] for w in types)
    return _Shape((m, n, k), (d, a, b), name, (scale_a, scale_b), (bool(turn_a), bool(turn_b)))


def _from_registers(ins: PTXInstruction, shape: _Shape) -> Callable:
    """Return a function that reads A, and the expressions of its bytes, from the registers of each warp."""
    (m, _, k), (_, a_format, b_format) = shape.sizes, shape.formats
    fragment = mma_layout((16, 8, k), a_format, b_format, "fp32", "fp32").a
    words = [reader(x, "b32", ins) for x in items(ins.operands[1])]
    owners = [id_reader(x, "b32") for x in items(ins.operands[1])]

    def read(machine, lanes, groups):
        held = [np.broadcast_to(word(machine, lanes), (groups.size,)) for word in words]
        ids = fragments.element_ids([x(machine, lanes) for x in owners], fragment, 4 * len(groups))
        values = fragments.matrices(held, fragment).reshape(len(groups), m, k)
        return values, None if ids is None else ids.reshape(len(groups), m, k, -1)

    return read


def _from_shared(ins: PTXInstruction, shape: _Shape, side: int) -> Callable:
    """Return a function that reads A (side 0) or B transposed (side 1), and the expressions of its bytes, through a
    descriptor."""
    described = reader(ins.operands[1 + side], "b64", ins)
    height, size = shape.sizes[side], get_format(shape.formats[1 + side]).bits // 8

    def read(machine, lanes, groups):
        descriptors = [wgmma_descriptor(int(x)) for x in _uniform(described(machine, lanes), groups, ins)]
        rows, first = machine.threads.row[groups[:, 0]], groups[:, 0]
        return load_tiles(machine, rows, descriptors, height, shape.sizes[2], size, shape.turned[side], first, "wgmma")

    return read


class _AccumulatorRegisters:
    """`_AccumulatorRegisters` are the registers of D, which are also those of C."""

    def __init__(self, ins: PTXInstruction, shape: _Shape):
        fmt = get_format(shape.formats[0])
        self.targets, self.container = items(ins.operands[0]), fmt.container
        self.layout, self.sizes = warpgroup_accumulator(shape.sizes[1], fmt.bits), shape.sizes[:2]
        if len(self.targets) != self.layout.registers:
            raise unknown(ins)
        self._held = [reader(x, "b32", ins) for x in self.targets]
        self._owners = [id_reader(x, "b32") for x in self.targets]
        self._kept = reader(ins.operands[3], "pred", ins) if len(ins.operands) > 3 else None

    def read(self, machine, lanes, groups: np.ndarray):
        """Return C and the expressions of its bytes; C is zero for groups whose predicate says so."""
        keep = np.ones(len(groups), bool)
        if self._kept is not None:
            keep = np.broadcast_to(self._kept(machine, lanes), (groups.size,)).reshape(groups.shape)[:, 0]
        if not keep.any():
            return np.zeros((len(groups), *self.sizes), self.container), None
        words = [np.broadcast_to(read(machine, lanes), (groups.size,)) for read in self._held]
        c = fragments.matrices(words, self.layout)
        c = np.where(keep[:, None, None, None], c, c.dtype.type(0))[:, 0]
        if machine.trace is None:
            return c, None
        ids = fragments.element_ids([read(machine, lanes) for read in self._owners], self.layout, len(groups))
        return c, None if ids is None else np.where(keep[:, None, None, None, None], ids, 0)[:, 0]


def _product(ins: PTXInstruction) -> Operation:
    """Return the operation of wgmma.mma_async."""
    shape = _shape(ins)
    accumulator = _AccumulatorRegisters(ins, shape)
    in_registers = isinstance(ins.operands[1], Vector)
    left = _from_registers(ins, shape) if in_registers else _from_shared(ins, shape, 0)
    right = _from_shared(ins, shape, 1)
    (m, n, _), (sign_a, sign_b) = shape.sizes, shape.signs
    results = registers_of(accumulator.targets)
    operands = registers_of(items(ins.operands[1])) if in_registers else ()

    def run(machine, lanes):
        row = machine.matrix_row(shape.name, ins).with_shape(m, n)
        groups = warpgroups(machine, lanes, ins)
        (a, a_ids), (b, b_ids) = (read(machine, lanes, groups) for read in (left, right))
        b, b_ids = b.swapaxes(1, 2), None if b_ids is None else b_ids.swapaxes(1, 2)
        machine.pending.multiplied(lanes, results, operands)
        with machine.registers.unwatched():  # products on one accumulator are in order
            c, c_ids = accumulator.read(machine, lanes, groups)
        tiles = [np.ascontiguousarray(x) for x in (signed(a, sign_a), signed(b, sign_b), c)]
        result, ids = row.mma_bits(*tiles), None
        if machine.trace is not None:
            ids = machine.trace.product(row, [a_ids, b_ids, c_ids], tiles, ins.line, shape.signs)
        with machine.registers.unwatched():
            write_tiles(machine, accumulator.targets, accumulator.layout, result[:, None], ids, lanes)

    return run


def _uniform(values, groups: np.ndarray, ins: PTXInstruction) -> np.ndarray:
    """Return one value for each group, which all its threads must hold."""
    table = np.broadcast_to(values, (groups.size,)).reshape(groups.shape)
    if (table != table[:, :1]).any():
        raise KernelFault(f"{ins.opcode}: the threads of a warp group hold different descriptors")
    return table[:, 0]


BUILDERS = {"wgmma": build}
