"""Represents PTX as data: operands, instructions, variables and entries.

Source: PTX ISA 9.1, chapters 4 (syntax) and 6 (operands).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Register:
    """`Register` is a virtual register: its number in the entry, its width in bits (1: a predicate)."""

    number: int
    bits: int
    name: str


@dataclass(frozen=True)
class Immediate:
    """`Immediate` is a constant, as a non-negative 64-bit integer.

    `float_bits` is the width of a spelled floating-point number.
    """

    value: int
    float_bits: int = 0


@dataclass(frozen=True)
class Decimal:
    """`Decimal` is a decimal floating-point constant, whose encoding depends on the instruction's type."""

    value: float


@dataclass(frozen=True)
class Special:
    """`Special` is a special register such as %tid.x."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """`Symbol` is a variable, parameter or label."""

    name: str


@dataclass(frozen=True)
class Vector:
    """`Vector` is a vector operand {a, b, ...}."""

    items: tuple


@dataclass(frozen=True)
class Address:
    """`Address` is [base + offset], or [base, {coordinates}, ...]; `more` holds the parts after the first comma."""

    base: object
    offset: int
    more: tuple = ()


@dataclass(frozen=True)
class Pair:
    """`Pair` is a pair of results d|p."""

    first: object
    second: object


@dataclass(frozen=True)
class Negated:
    """`Negated` is a negated predicate !p as an operand."""

    register: Register


@dataclass(frozen=True)
class Sink:
    """`Sink` is the operand _, which discards a result."""


@dataclass(frozen=True)
class PTXInstruction:
    """`PTXInstruction` is one instruction: `name` up to the first dot, `modifiers` after it.

    `guard` is the predicate (register, whether negated) or None, `target` the index of the instruction that a branch goes to.
    """

    name: str
    modifiers: tuple[str, ...]
    operands: tuple
    guard: tuple[Register, bool] | None
    line: int

    @property
    def opcode(self) -> str:
        """Return the opcode as the program spells it."""
        return ".".join((self.name, *self.modifiers))


@dataclass(frozen=True)
class Variable:
    """`Variable` is a declared variable or parameter: state space, bytes, alignment, initial bytes (None if none are given).

    An unsized array (dynamic shared memory) has size 0.
    """

    name: str
    space: str
    size: int
    alignment: int
    initial: bytes | None = None


@dataclass
class Entry:
    """`Entry` is a kernel: parameters, variables, code, and the launch bounds of its directives."""

    name: str
    parameters: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    code: list[PTXInstruction] = field(default_factory=list)
    labels: dict[int, int] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class Module:
    """`Module` is a PTX file: target, version, module variables, entries."""

    target: str = ""
    version: str = ""
    variables: list[Variable] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
