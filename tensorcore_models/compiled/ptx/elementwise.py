"""Builds elementwise instructions: the ones with a meaning, and the few whose operands are more than values."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from ..isa.meaning import Meaning
from ..isa.operations import function_of
from ..isa.types import TYPE_BITS, array_type
from .approximations import build_approximate
from .decode import (
    Operation,
    build_elementwise,
    id_reader,
    pure_operation,
    reader,
    register_of,
    unknown,
    unwritten_from,
)
from .meanings import MAKERS, compared, meaning_of
from .syntax import Negated, Pair, PTXInstruction, Register, Sink, Vector


def build_arithmetic(ins: PTXInstruction) -> Operation:
    """Return div, rcp or sqrt, rounded to nearest or computed by the special-function unit."""
    return build_approximate(ins) if {"approx", "full"} & set(ins.modifiers) else build_elementwise(ins)


def build_lop3(ins: PTXInstruction) -> Operation:
    """Return lop3, whose last operand is a truth table; the name of its expression contains the table."""
    m = meaning_of(ins)
    if m is None or len(ins.operands) != 5:
        raise unknown(ins)
    named = f"{ins.operands[4].value:#x}", *ins.modifiers
    return pure_operation(PTXInstruction(ins.name, named, ins.operands[:4], ins.guard, ins.line), m)


_COMBINED = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def build_setp(ins: PTXInstruction) -> Operation:
    """Return setp: one or two predicates from a comparison, combined with a third predicate."""
    words = ins.modifiers
    combine = next((_COMBINED[w] for w in words[1:-1] if w in _COMBINED), None)
    m = compared(ins, tuple(word for word in words[1:-1] if word not in _COMBINED))
    target, sources = ins.operands[0], ins.operands[1:]
    if m is None:
        raise unknown(ins)
    if len(sources) != 2 + (combine is not None):
        raise unknown(ins, f"compares {len(sources)} operands, expected {2 + (combine is not None)}")
    targets = (target.first, target.second) if isinstance(target, Pair) else (target,)
    function, row = function_of(m), Meaning("joined", "pred", (*m.sources, "pred")[: len(sources)], options=words)
    reads = [reader(operand, kind, ins) for operand, kind in zip(sources, row.sources, strict=True)]
    ids = [id_reader(operand, kind) for operand, kind in zip(sources, row.sources, strict=True)]
    names, rows = (ins.opcode, ".".join((ins.name, "not", *words))), (row, replace(row, options=("not", *words)))

    def compute(machine, lanes):
        values = [read(machine, lanes) for read in reads]
        found = np.asarray(function(*values[:2]))
        for turn, register in enumerate(targets):
            if isinstance(register, Sink):
                continue
            each = ~found if turn else found
            each = each if combine is None else combine(each, values[2])
            owners = None
            if machine.trace is not None:
                given = [read(machine, lanes) for read in ids]
                owners = machine.trace.elementwise(names[turn], ins.line, rows[turn], values, given)
            machine.registers.write(register.number, each, lanes, owners)

    numbers = [x.number for x in targets if isinstance(x, Register)]
    return unwritten_from(row, function, sources, reads, numbers, compute)


# -- moves ---------------------------------------------------------------------------------------------------------------
def build_move(ins: PTXInstruction) -> Operation:
    """Return mov: a copy, the address of a variable, or packing and unpacking of vectors."""
    if len(ins.operands) != 2:
        raise unknown(ins)
    (target, source), kind = ins.operands, ins.modifiers[-1]
    whole = TYPE_BITS.get(kind, 128)
    if whole > 64 or isinstance(source, Negated):
        raise unknown(ins)
    if isinstance(target, Vector):
        return _unpack(ins, target, source, whole)
    if isinstance(source, Vector):  # the first item is in the low bits
        parts = (f"b{whole // len(source.items)}",) * len(source.items)
        flat = PTXInstruction(ins.name, (*ins.modifiers, "pack"), (target, *source.items), ins.guard, ins.line)
        return pure_operation(flat, Meaning("pack", f"b{whole}", parts))
    plain = kind if kind == "pred" else f"b{whole}"
    return pure_operation(ins, Meaning("move", plain, (plain,)))


def _unpack(ins: PTXInstruction, target: Vector, source, whole: int) -> Operation:
    part, size = whole // len(target.items), whole // 8 // len(target.items)
    read, ids = reader(source, f"b{whole}", ins), id_reader(source, f"b{whole}")
    narrow, wide = array_type(f"b{part}"), array_type(f"b{whole}").type
    number = register_of(source)

    def run(machine, lanes):
        holes = None if number is None else machine.registers.unwritten(number, lanes)
        with nullcontext() if holes is None else machine.registers.unchecked():
            value, owners = np.asarray(read(machine, lanes)), ids(machine, lanes)
        for place, register in enumerate(target.items):
            if not isinstance(register, Sink):
                own = None if owners is None else owners[:, place * size : (place + 1) * size]
                machine.registers.write(register.number, (value >> wide(place * part)).astype(narrow), lanes, own)
                if holes is not None:
                    gone = (holes >> holes.dtype.type(place * part)).astype(narrow)
                    machine.registers.forget(register.number, lanes, gone)

    return run


BUILDERS = {
    **dict.fromkeys(MAKERS, build_elementwise), **dict.fromkeys(("div", "rcp", "sqrt"), build_arithmetic),
    "lop3": build_lop3, "setp": build_setp, "mov": build_move,
}  # fmt: skip
