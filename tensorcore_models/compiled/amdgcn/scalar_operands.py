"""From an instruction to an operation: a function of the machine and the waves that run it.

A group of instructions is a module with a table ``BUILDERS``: name -> a function of the instruction that gives its operation.
What is elementwise is a :class:`~..isa.meaning.Meaning`. Operands of scalar instructions and their expressions are seen to
here, those of vector instructions in :mod:`.vector_operands`.
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
#: Types of numbers that vector instructions compute with.
NUMBERS = ("f16", "f32", "f64")
_INLINE = (0.0, 0.5, 1.0, 2.0, 4.0, 0.15915494, 0.15915494309189532)


def unknown(ins: AMDInstruction, why: str = "is not known here") -> Refused:
    """Return the refusal of an instruction."""
    return Refused(f"{ins.opcode} {why}", ins.line)


def unpublished(ins: AMDInstruction) -> Refused:
    """Return the refusal of an instruction whose results nobody has published."""
    return Refused(
        f"{ins.opcode}: which bits it gives is not published; run with unpublished='nearest' for correctly rounded ones",
        ins.line,
    )


def type_of(name: str) -> str:
    """Return a type as it is spelled here: AMD's i32 is s32."""
    return name.replace("i", "s")


# -- constants -------------------------------------------------------------------------------------------------------------
def constant(literal: Literal, kind: str, ins: AMDInstruction):
    """Return a constant as a number of a type (CDNA3 ISA, "Inline Constants" and "Literal Constant")."""
    value, bits = literal.value, 8 * size_of(kind)
    dtype = array_type(kind)
    if isinstance(value, float):
        if bits != 32 and abs(value) not in _INLINE:
            raise unknown(ins, f"has the constant {value}, whose encoding in {bits} bits is not known here")
        raw = int(encode(value, {16: "fp16", 32: "fp32", 64: "fp64"}[bits]))
        if bits == 64:
            raw = int(np.float64(0.15915494309189532 if abs(value) == 0.15915494 else abs(value)).view(np.uint64))
            raw |= (value < 0) << 63
    elif bits == 64 and not -16 <= value <= 64:
        if kind == "f64":
            raw = value << 32
        elif 0 <= value < 1 << (31 if kind[0] == "s" else 32):  # LLVM: zeros above but for signed operands
            raw = value
        else:
            raise unknown(ins, f"has the constant {value:#x}, whose other 32 bits are not known here")
    else:
        raw = value
    if not -(1 << (max(bits, 32) - 1)) <= raw < 1 << max(bits, 32):
        raise unknown(ins, f"has the constant {value}, which does not fit into {bits} bits")
    return np.array(raw % (1 << bits), f"u{bits // 8}").view(dtype)[()]


# -- scalar operands -------------------------------------------------------------------------------------------------------
class ScalarSource:
    """An operand of a scalar instruction, or a scalar operand of another one: a value for each wave."""

    def __init__(self, operand: Operand, kind: str, ins: AMDInstruction):
        self.kind, self.size, self.dtype = kind, size_of(kind), array_type(kind)
        self.fixed = constant(operand, kind, ins) if isinstance(operand, Literal) else None
        self.registers: RegisterRange | None = None
        if isinstance(operand, Word) and operand.name in WINDOWS and self.size == 8:
            self.fixed = self.dtype.type(WINDOWS[operand.name])
        if self.fixed is None:
            count = max(1, self.size // 4)
            if not isinstance(operand, RegisterRange) or operand.vector or operand.count != count:
                raise unknown(ins, f"takes {count} scalar register{'s' * (count > 1)} here")
            self.registers = operand

    def read(self, machine, waves):
        """Return values over the waves, or one number."""
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
        """Return whose bytes the values are, shape (waves, bytes); None: nobody's."""
        if self.registers is None:
            return None
        places = range(self.registers.first, self.registers.first + max(1, self.size // 4))
        return joined([machine.scalars.read_ids(n, waves) for n in places], self.size)


def joined(parts: list, size: int) -> np.ndarray | None:
    """Return owners of neighbouring registers as owners of one value of `size` bytes."""
    if all(part is None for part in parts):
        return None
    count = next(len(part) for part in parts if part is not None)
    whole = np.concatenate([np.zeros((count, 4), np.int64) if part is None else part for part in parts], 1)
    return whole[:, :size] if whole.shape[1] >= size else np.pad(whole, ((0, 0), (0, size - whole.shape[1])))


class ScalarTarget:
    """The registers that a scalar result goes to."""

    def __init__(self, operand: Operand, kind: str, ins: AMDInstruction):
        count = max(1, size_of(kind) // 4)
        if not isinstance(operand, RegisterRange) or operand.vector or operand.count != count:
            raise unknown(ins, f"gives {count} scalar register{'s' * (count > 1)}")
        self.first, self.count = operand.first, count

    def write(self, machine, value, waves, ids=None) -> None:
        """Write values over the waves, or one number."""
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


#: What SCC becomes, from (meaning, operands, result).
_FLAGS: dict[str, Callable] = {
    "nonzero": lambda m, values, found: found != 0,
    "carry": lambda m, values, found: exact(m)(*values) >> 32 != 0,
    "overflow": lambda m, values, found: exact(m)(*values) != found,
    "first": lambda m, values, found: (values[0] != values[1]) & (found == values[0]),
}


def scalar_operation(ins: AMDInstruction, m: Meaning, flag: str = "") -> Operation:
    """Return the operation of an elementwise scalar instruction; `flag` names what it makes of SCC, a comparison writes only
    that."""
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
