"""Turns an instruction's text into an operation: a function of the machine and the lanes.

Each group of instructions is a module with a table ``BUILDERS``, which maps a name to a function that builds the operation of
an instruction. Elementwise instructions have a :class:`~..isa.meaning.Meaning` (:mod:`.meanings`). This module handles guards,
widths of registers, immediates and expressions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import KernelFault, Refused
from ..isa.meaning import Meaning
from ..isa.operations import function_of
from ..isa.types import array_type, bits_of, one, size_of
from .meanings import meaning_of
from .parse import decimal_bits
from .syntax import Decimal, Immediate, Negated, PTXInstruction, Register, Sink, Special, Symbol
from .unwritten import unwritten_bits

Operation = Callable[[Any, np.ndarray | None], Any]


def unknown(ins: PTXInstruction, why: str = "is not modelled") -> Refused:
    """Return the error that refuses an instruction."""
    return Refused(f"{ins.opcode} {why}", ins.line)


def unpublished(ins: PTXInstruction) -> Refused:
    """Return the error that refuses an instruction whose bits nobody has published."""
    return Refused(
        f"{ins.opcode}: the bits of its results are not published; run with unpublished='nearest' to round correctly",
        ins.line,
    )


def reader(operand, kind: str, ins: PTXInstruction) -> Operation:
    """Return a function that reads an operand as a PTX type: an array over the lanes, or one number for all."""
    dtype = array_type(kind)
    if isinstance(operand, Register):
        return _register_reader(operand, dtype, kind)
    if isinstance(operand, Negated):
        number = operand.register.number
        return lambda machine, lanes: ~machine.registers.read(number, lanes)
    if isinstance(operand, Immediate | Decimal):
        constant = immediate(operand, kind)
        return lambda machine, lanes: constant
    if isinstance(operand, Special):
        name = operand.name

        def special(machine, lanes):
            value = machine.special(name)
            value = value if np.ndim(value) == 0 or lanes is None else value[lanes]
            return value if value.dtype == dtype else value.astype(dtype)

        return special
    if isinstance(operand, Symbol):
        name = operand.name
        return lambda machine, lanes: dtype.type(machine.address_of(name))
    raise unknown(ins, f"has an operand of kind {type(operand).__name__.lower()}, which is not modelled")


def _register_reader(register: Register, dtype: np.dtype, kind: str) -> Operation:
    number, same = register.number, register.bits == bits_of(kind)
    if same and dtype.kind != "i":
        return lambda machine, lanes: machine.registers.read(number, lanes)
    if same:
        return lambda machine, lanes: machine.registers.read(number, lanes).view(dtype)
    used = -1 if kind == "pred" else (1 << bits_of(kind)) - 1
    return lambda machine, lanes: machine.registers.read(number, lanes, used).astype(dtype)


def immediate(operand: Immediate | Decimal, kind: str):
    """Return a constant as a number of the type's array type."""
    dtype = array_type(kind)
    if kind == "pred":
        return np.bool_(operand.value != 0)
    bits = 8 * dtype.itemsize
    if isinstance(operand, Decimal):
        value = decimal_bits(operand.value, bits)
    elif operand.float_bits == 64 and bits == 32:
        value = decimal_bits(float(np.uint64(operand.value).view(np.float64)), 32)
    else:
        value = operand.value
    return np.array(value % (1 << bits), f"u{dtype.itemsize}").view(dtype)[()]


def groups_left(ins: PTXInstruction) -> int:
    """Return the number of groups that a wait leaves pending: its one operand, a small constant."""
    operand = ins.operands[0]
    if not isinstance(operand, Immediate) or operand.value > 1 << 16:
        raise unknown(ins, "waits for a number of groups that is no constant up to 65536")
    return operand.value


def id_reader(operand, kind: str) -> Operation:
    """Return a function that reads the expressions of an operand's bytes (None if no byte depends on an input)."""
    if isinstance(operand, Negated):
        operand = operand.register
    if not isinstance(operand, Register):
        return lambda machine, lanes: None
    number, size = operand.number, size_of(kind)

    def read(machine, lanes):
        ids = machine.registers.read_ids(number, lanes)
        if ids is None or ids.shape[1] == size:
            return ids
        if ids.shape[1] > size:
            return ids[:, :size]
        return np.pad(ids, ((0, 0), (0, size - ids.shape[1])))

    return read


def build_elementwise(ins: PTXInstruction) -> Operation:
    """Return the operation of an instruction that has a meaning."""
    m = meaning_of(ins)
    if m is None:
        unpacked = ins.name == "cvt" and not any(kind != one(kind) for kind in ins.modifiers[-2:])
        raise unknown(ins, "lacks a rounding, or has one that is not modelled" if unpacked else "is not modelled")
    return pure_operation(ins, m)


def pure_operation(ins: PTXInstruction, m: Meaning, function: Callable | None = None) -> Operation:
    """Return the operation of an elementwise instruction whose first operand is the result.

    `function` replaces the meaning's function.
    """
    if len(ins.operands) != 1 + len(m.sources):
        raise unknown(ins, f"has {len(ins.operands)} operands, expected {1 + len(m.sources)}")
    target, result = ins.operands[0], array_type(m.result)
    function = function or function_of(m)
    reads = [reader(operand, kind, ins) for operand, kind in zip(ins.operands[1:], m.sources, strict=True)]
    if isinstance(target, Sink):
        return lambda machine, lanes: None
    if not isinstance(target, Register):
        raise unknown(ins, "needs a register for its result")
    number, name = target.number, ins.opcode
    ids = [id_reader(operand, kind) for operand, kind in zip(ins.operands[1:], m.sources, strict=True)]

    def compute(machine, lanes):
        values = [read(machine, lanes) for read in reads]
        found = function(*values)
        if found.dtype != result:
            found = found.view(result) if found.dtype.itemsize == result.itemsize else found.astype(result)
        owners = None
        if machine.trace is not None:
            owners = machine.trace.elementwise(name, ins.line, m, values, [read(machine, lanes) for read in ids])
        machine.registers.write(number, found, lanes, owners)

    return unwritten_from(m, function, ins.operands[1:], reads, (number,), compute)


def unwritten_from(
    m: Meaning,
    function: Callable,
    operands: Sequence,
    reads: Sequence[Operation],
    targets: Sequence[int],
    compute: Operation,
) -> Operation:
    """Return `compute` with results that count as unwritten where operands are.

    Compilers compute in all lanes what a few lanes need.
    """
    sources = [register_of(operand) for operand in operands]
    registers = [number for number in sources if number is not None]
    kinds = [array_type(kind if kind == "pred" else f"b{bits_of(kind)}") for kind in m.sources]
    result = array_type(m.result)

    def run(machine, lanes):
        file = machine.registers
        if file.complete(registers):
            compute(machine, lanes)
            return
        found = [None if number is None else file.unwritten(number, lanes) for number in sources]
        holes = [None if x is None else x.astype(kind, copy=False) for x, kind in zip(found, kinds, strict=True)]
        if all(hole is None or not hole.any() for hole in holes):
            compute(machine, lanes)
            return
        with file.unchecked():
            unwritten = unwritten_bits(m, function, [read(machine, lanes) for read in reads], holes)
            compute(machine, lanes)
        for number in targets:
            file.forget(number, lanes, unwritten.view(result))

    return run


def register_of(operand) -> int | None:
    """Return the number of the register that a plain operand reads; None for another operand."""
    operand = operand.register if isinstance(operand, Negated) else operand
    return operand.number if isinstance(operand, Register) else None


def registers_of(operands: Sequence) -> tuple[int, ...]:
    """Return the numbers of the registers that plain operands read."""
    return tuple(number for number in map(register_of, operands) if number is not None)


def guarded(operation: Operation, guard: tuple[Register, bool]) -> Operation:
    """Return the operation, run only on the lanes whose predicate holds."""
    number, negated = guard[0].number, guard[1]

    def run(machine, lanes):
        active = holding(machine, number, negated, lanes)
        if active is not None and not len(active):
            return None
        try:
            return operation(machine, active)
        except KernelFault as fault:
            if fault.line is None and fault.lanes is None:
                fault.lanes = active
            raise

    return run


def holding(machine, number: int, negated: bool, lanes: np.ndarray | None) -> np.ndarray | None:
    """Return the lanes whose predicate holds; None if all lanes do."""
    held = machine.registers.read(number, lanes)
    if machine.trace is not None:
        machine.trace.decided(machine.registers.read_ids(number, lanes), held, negated)
    if negated:
        held = ~held
    if held.all():
        return lanes
    return np.flatnonzero(held) if lanes is None else lanes[held]
