"""PTX as data: what an operand, an instruction, a variable and an entry are.

Source: PTX ISA 9.1, chapters 4 (syntax) and 6 (operands).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Register:
    """A virtual register: its number in the entry, its width in bits (1: a predicate)."""

    number: int
    bits: int
    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant, as a non-negative integer of 64 bits; `float_bits` says how wide the spelled floating-point number is."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True)
class Decimal:
    """A floating-point constant in decimal, whose encoding depends on the instruction's type."""

    value: float


@dataclass(frozen=True)
class Special:
    """A special register such as %tid.x."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """A variable, parameter or label."""

    name: str


@dataclass(frozen=True)
class Vector:
    """{a, b, ...}."""

    items: tuple


@dataclass(frozen=True)
class Address:
    """[base + offset], or [base, {coordinates}, ...]: what stands behind the first comma is `more`."""

    base: object
    offset: int
    more: tuple = ()


@dataclass(frozen=True)
class Pair:
    """d|p: two results."""

    first: object
    second: object


@dataclass(frozen=True)
class Negated:
    """!p, a negated predicate as an operand."""

    register: Register


@dataclass(frozen=True)
class Sink:
    """_, a result that is thrown away."""


@dataclass(frozen=True)
class PTXInstruction:
    """One instruction: `name` up to the first dot, `modifiers` behind it.

    `guard` is the predicate (register, whether negated) or None, `target` the index of the instruction that a branch goes to.
    """

    name: str
    modifiers: tuple[str, ...]
    operands: tuple
    guard: tuple[Register, bool] | None
    line: int

    @property
    def opcode(self) -> str:
        """As the program spells it."""
        return ".".join((self.name, *self.modifiers))


@dataclass(frozen=True)
class Variable:
    """A declared variable or parameter: state space, bytes, alignment, initial bytes (None: none given).

    An unsized array (dynamic shared memory) has size 0.
    """

    name: str
    space: str
    size: int
    alignment: int
    initial: bytes | None = None


@dataclass
class Entry:
    """A kernel: parameters, variables, code, and what its directives say about launches."""

    name: str
    parameters: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    code: list[PTXInstruction] = field(default_factory=list)
    labels: dict[int, int] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class Module:
    """A file: target, version, module variables, entries."""

    target: str = ""
    version: str = ""
    variables: list[Variable] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
