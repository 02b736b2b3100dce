"""Builds matrix instructions on the package's bit-exact rows, all waves at once (CDNA3 ISA, "Matrix Arithmetic Instructions").

These instructions run on all lanes, whatever EXEC says.
"""

from collections.abc import Callable

import numpy as np

from ...catalogue import amd
from ...formats import get_format
from .. import fragments
from ..errors import KernelFault
from .layouts import matrix_layout
from .scalar_operands import Operation, constant, unknown
from .syntax import AMDInstruction, Literal, RegisterRange


def build(ins: AMDInstruction) -> Operation:
    """Return the operation of a dense MFMA."""
    if len(ins.operands) != 4 or ins.modifiers:
        raise unknown(ins, f"with {', '.join(ins.modifiers) or 'other than four operands'} is not modelled")
    target, *sources = ins.operands
    if not isinstance(target, RegisterRange) or not target.vector:
        raise unknown(ins, "needs vector registers for its result")

    def run(machine, waves):
        row = machine.matrix_row(ins)
        widths = [max(8, get_format(fmt).bits) for fmt in row.formats[:3]]
        layout = matrix_layout(row.m, row.n, row.k, row.blocks, *widths)
        lanes = machine.every_lane(waves)
        count = machine.waves.count if waves is None else len(waves)
        read = [
            _matrix(machine, ins, operand, fragment, waves, lanes, count)
            for operand, fragment in zip(sources, layout, strict=True)
        ]
        tiles = [np.ascontiguousarray(bits.reshape(-1, *bits.shape[2:])) for bits, _ in read]
        result = row.mma_bits(*tiles)
        ids = None
        if machine.trace is not None:
            held = [None if own is None else own.reshape(-1, *own.shape[2:]) for _, own in read]
            ids = machine.trace.product(row, held, tiles, ins.line).reshape(count, *layout.c.shape, -1)
        _write(machine, ins, target, layout.c, result.reshape(count, *layout.c.shape), ids, waves, lanes)

    def named(machine, waves):
        try:
            return run(machine, waves)
        except KernelFault as fault:
            raise machine.of_lane(fault, machine.every_lane(waves)) from None

    return named


def _words(fragment) -> int:
    """Return the number of 32-bit registers that a fragment takes in a lane."""
    return fragment.registers * fragment.register_bits // 32


def _matrix(machine, ins, operand, fragment, waves, lanes, count: int):
    """Return matrices of shape (waves, blocks, rows, cols), and the expressions of their elements' bytes or None."""
    if isinstance(operand, Literal):
        kind = "f64" if fragment.bits == 64 else "f32"
        bits = constant(operand, kind, ins)
        return np.full((count, *fragment.shape), bits), None
    if not isinstance(operand, RegisterRange) or not operand.vector or operand.count != _words(fragment):
        raise unknown(ins, f"needs operands of {_words(fragment)} vector registers for a matrix")
    numbers = range(operand.first, operand.first + operand.count)
    words = [machine.read_vector(n, waves, lanes) for n in numbers]
    parts = [machine.vectors.read_ids(n, lanes) for n in numbers] if machine.trace is not None else []
    if fragment.register_bits == 64:
        words = [
            low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
            for low, high in zip(words[::2], words[1::2], strict=True)
        ]
        parts = [_both(low, high) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    owners = fragments.element_ids(parts, fragment, count) if parts else None
    return fragments.matrices(words, fragment), owners


def _both(low, high):
    if low is None and high is None:
        return None
    size = len(low if low is not None else high)
    return np.concatenate([np.zeros((size, 4), np.int64) if part is None else part for part in (low, high)], 1)


def _write(machine, ins, target: RegisterRange, fragment, result, ids, waves, lanes) -> None:
    """Write matrices to the registers that hold them."""
    if target.count != _words(fragment):
        raise unknown(ins, f"needs {_words(fragment)} vector registers for its result")
    words = fragments.registers_of(result, fragment)
    owners: list = [None] * len(words) if ids is None else fragments.register_ids(ids, fragment)
    number = target.first
    for word, own in zip(words, owners, strict=True):
        for half in range(fragment.register_bits // 32):
            part = word if fragment.register_bits == 32 else (word >> np.uint64(32 * half)).astype(np.uint32)
            mine = None if own is None else own[:, 4 * half : 4 * half + 4]
            machine.write_vector(number, part.view(np.uint32), waves, lanes, mine)
            number += 1


#: Dense instructions of all AMD architectures in the catalogue; a run looks up whether its unit has the instruction.
BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {row.name: build for row in amd.rows()}
