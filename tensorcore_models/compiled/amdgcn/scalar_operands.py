"""Turns a scalar instruction into an operation: a function of the machine and of the waves that run it.

Each group of instructions is a module with a table ``BUILDERS``, which maps a name to a function that builds the operation of
an instruction. Elementwise instructions have a :class:`~..isa.meaning.Meaning`. This module handles operands of scalar
instructions and their expressions; :mod:`.vector_operands` handles those of vector instructions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...formats.rounding import encode
from ..errors import Refused
from ..isa.meaning import Meaning
from ..isa.operations import exact, function_of
from ..isa.types import array_type, size_of
from .syntax import SCC, WINDOWS, AMDInstruction, Literal, Operand, RegisterRange, Word

Operation = Callable[[Any, np.ndarray | None], Any]
#: Types of floating-point numbers that vector instructions compute with.
NUMBERS = ("f16", "f32", "f64")
_INLINE = (0.0, 0.5, 1.0, 2.0, 4.0, 0.15915494, 0.15915494309189532)


def unknown(ins: AMDInstruction, why: str = "is not modelled") -> Refused:
    """Return the error that refuses an instruction."""
    return Refused(f"{ins.opcode} {why}", ins.line)


def unpublished(ins: AMDInstruction) -> Refused:
    """Return the error that refuses an instruction whose bits nobody has published."""
    return Refused(
        f"{ins.opcode}: the bits of its results are not published; run with unpublished='nearest' to round correctly",
        ins.line,
    )


def type_of(name: str) -> str:
    """Return the package's name of an AMD type (i32 is s32)."""
    return name.replace("i", "s")


# -- constants -------------------------------------------------------------------------------------------------------------
def constant(literal: Literal, kind: str, ins: AMDInstruction):
    """Return the encoding of a constant in a type (CDNA3 ISA, "Inline Constants" and "Literal Constant")."""
    value, bits = literal.value, 8 * size_of(kind)
    dtype = array_type(kind)
    if isinstance(value, float):
        if bits != 32 and abs(value) not in _INLINE:
            raise unknown(ins, f"has the constant {value}, whose encoding in {bits} bits is not modelled")
        raw = int(encode(value, {16: "fp16", 32: "fp32", 64: "fp64"}[bits]))
        if bits == 64:
            raw = int(np.float64(0.15915494309189532 if abs(value) == 0.15915494 else abs(value)).view(np.uint64))
            raw |= (value < 0) << 63
    elif bits == 64 and not -16 <= value <= 64:
        if kind == "f64":
            raw = value << 32
        elif 0 <= value < 1 << (31 if kind[0] == "s" else 32):  # LLVM extends with zeros, except for signed operands
            raw = value
        else:
            raise unknown(ins, f"has the constant {value:#x}, whose other 32 bits are not modelled")
    else:
        raw = value
    if not -(1 << (max(bits, 32) - 1)) <= raw < 1 << max(bits, 32):
        raise unknown(ins, f"has the constant {value}, which does not fit into {bits} bits")
    return np.array(raw % (1 << bits), f"u{bits // 8}").view(dtype)[()]


# -- scalar operands -------------------------------------------------------------------------------------------------------
class ScalarSource:
    """`ScalarSource` is a scalar operand: one value for each wave."""

    def __init__(self, operand: Operand, kind: str, ins: AMDInstruction):
        self.kind, self.size, self.dtype = kind, size_of(kind), array_type(kind)
        self.fixed = constant(operand, kind, ins) if isinstance(operand, Literal) else None
        self.registers: RegisterRange | None = None
        if isinstance(operand, Word) and operand.name in WINDOWS and self.size == 8:
            self.fixed = self.dtype.type(WINDOWS[operand.name])
        if self.fixed is None:
            count = max(1, self.size // 4)
            if not isinstance(operand, RegisterRange) or operand.vector or operand.count != count:
                raise unknown(ins, f"needs an operand of {count} scalar register{'s' * (count > 1)}")
            self.registers = operand

    def read(self, machine, waves):
        """Return the values over the waves, or one number that all waves share."""
        if self.registers is None:
            return np.asarray(self.fixed)
        value = machine.read_scalar(self.registers.first, waves)
        if self.size == 8:
            high = machine.read_scalar(self.registers.first + 1, waves)
            value = value.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        if value.dtype == self.dtype:
            return value
        return value.view(self.dtype) if value.dtype.itemsize == self.dtype.itemsize else value.astype(self.dtype)

    def owners(self, machine, waves) -> np.ndarray | None:
        """Return the expressions of the values' bytes, shape (waves, bytes); None if no byte depends on an input."""
        if self.registers is None:
            return None
        places = range(self.registers.first, self.registers.first + max(1, self.size // 4))
        return joined([machine.scalars.read_ids(n, waves) for n in places], self.size)


def joined(parts: list, size: int) -> np.ndarray | None:
    """Return the expressions of neighbouring registers as those of one value of `size` bytes."""
    if all(part is None for part in parts):
        return None
    count = next(len(part) for part in parts if part is not None)
    whole = np.concatenate([np.zeros((count, 4), np.int64) if part is None else part for part in parts], 1)
    return whole[:, :size] if whole.shape[1] >= size else np.pad(whole, ((0, 0), (0, size - whole.shape[1])))


class ScalarTarget:
    """`ScalarTarget` holds the registers that a scalar result goes to."""

    def __init__(self, operand: Operand, kind: str, ins: AMDInstruction):
        count = max(1, size_of(kind) // 4)
        if not isinstance(operand, RegisterRange) or operand.vector or operand.count != count:
            raise unknown(ins, f"needs {count} scalar register{'s' * (count > 1)} for its result")
        self.first, self.count = operand.first, count

    def write(self, machine, value, waves, ids=None) -> None:
        """Write values over the waves, or one number for all waves."""
        value = np.asarray(value)
        if self.count == 1:
            bits = value.view(np.uint32) if value.dtype.itemsize == 4 else value.astype(np.uint32)
            machine.write_scalar(self.first, bits, waves, ids)
            return
        bits = value.view(np.uint64) if value.dtype.itemsize == 8 else value.astype(np.uint64)
        for place in range(2):
            own = None if ids is None else ids[:, 4 * place : 4 * place + 4]
            part = (bits >> np.uint64(32 * place)).astype(np.uint32)
            machine.write_scalar(self.first + place, part, waves, own)


#: Values of SCC, by name: functions of the meaning, the operands and the result.
_FLAGS: dict[str, Callable] = {
    "nonzero": lambda m, values, found: found != 0,
    "carry": lambda m, values, found: exact(m)(*values) >> 32 != 0,
    "overflow": lambda m, values, found: exact(m)(*values) != found,
    "first": lambda m, values, found: (values[0] != values[1]) & (found == values[0]),
}


def scalar_operation(ins: AMDInstruction, m: Meaning, flag: str = "") -> Operation:
    """Return the operation of an elementwise scalar instruction; `flag` names how it sets SCC. A comparison writes only SCC."""
    given, compares = ins.operands, m.result == "pred"
    if len(given) != len(m.sources) + (not compares):
        raise unknown(ins, f"has {len(given)} operands, expected {len(m.sources) + (not compares)}")
    target = None if compares else ScalarTarget(given[0], m.result, ins)
    operands = given if compares else given[1:]
    sources = [ScalarSource(operand, kind, ins) for operand, kind in zip(operands, m.sources, strict=True)]
    function = function_of(m)

    def run(machine, waves):
        values = [source.read(machine, waves) for source in sources]
        found, ids, flag_ids = function(*values), None, None
        if machine.trace is not None:
            owners = [source.owners(machine, waves) for source in sources]
            if any(owner is not None for owner in owners):
                ids = None if compares else machine.trace.elementwise(ins.name, ins.line, m, values, owners)
                flag_ids = machine.trace.flag(ins, values, owners)
        if target is not None:
            target.write(machine, found, waves, ids)
        if flag or compares:
            held = found if compares else _FLAGS[flag](m, values, found)
            machine.write_scalar(SCC, np.asarray(held, bool), waves, flag_ids)

    return run
