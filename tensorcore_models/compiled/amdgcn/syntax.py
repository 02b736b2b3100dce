"""Represents an AMDGCN text as data: kernels with their descriptor, instructions, operands."""

from dataclasses import dataclass, field

#: Numbers of scalar registers that have names, as instructions encode them (AMD CDNA3 ISA, "Scalar Operands").
NAMED_SCALARS = {
    "flat_scratch": (102, 2), "flat_scratch_lo": (102, 1), "flat_scratch_hi": (103, 1),
    "xnack_mask": (104, 2), "xnack_mask_lo": (104, 1), "xnack_mask_hi": (105, 1),
    "vcc": (106, 2), "vcc_lo": (106, 1), "vcc_hi": (107, 1), "m0": (124, 1),
    "exec": (126, 2), "exec_lo": (126, 1), "exec_hi": (127, 1),
}  # fmt: skip
VCC, EXEC, M0 = 106, 126, 124
#: Where the generic windows of local memory (LDS) and scratch begin, by the operand that gives it.
WINDOWS = {"src_shared_base": 1 << 36, "src_private_base": 1 << 37}
#: Scalar registers by number: all that instructions encode, then SCC, which has a number of its own here.
SCC = 128
SCALARS = 129
#: Vector registers by number: 256 of a lane, then 256 accumulation registers.
ACCUMULATORS = 256
VECTORS = 512


@dataclass(frozen=True, slots=True)
class RegisterRange:
    """Neighbouring registers of 32 bits.

    Parameters
    ----------
    vector : bool
        Whether each lane has them (VGPR, AGPR), or each wave (SGPR).
    first, count : int
        Which; numbers of accumulation registers start at `ACCUMULATORS`.
    """

    vector: bool
    first: int
    count: int

    def name(self, place: int = 0) -> str:
        """Return one of them as the text spells it."""
        return register_name(self.vector, self.first + place)


def register_name(vector: bool, number: int) -> str:
    """Return a register as the text spells it."""
    if vector:
        return f"a{number - ACCUMULATORS}" if number >= ACCUMULATORS else f"v{number}"
    if number == SCC:
        return "scc"
    return next((name for name, row in NAMED_SCALARS.items() if row == (number, 1)), f"s{number}")


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: an integer, or a floating-point number as the text has it."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Word:
    """A label, or a word whose meaning is the instruction's."""

    name: str


@dataclass(frozen=True, slots=True)
class Modified:
    """An operand with its sign changed, without it, or sign-extended."""

    operand: "Operand"
    negated: bool = False
    absolute: bool = False
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A word with arguments: vmcnt(0), hwreg(HW_REG_MODE, 4, 2)."""

    name: str
    arguments: tuple[str, ...]


Operand = RegisterRange | Literal | Word | Modified | Call


@dataclass(frozen=True)
class AMDInstruction:
    """One instruction.

    Parameters
    ----------
    name : str
        Without the suffix of its encoding.
    encoding : str
        "", e32, e64, dpp or sdwa.
    operands : tuple
        In the text's order.
    modifiers : dict
        What stands behind the operands: name -> number, list of numbers, word or True.
    line : int
        Line of the text.
    target : int or None
        Where a branch goes.
    behind : int or None
        The address behind it in its code object.
    """

    name: str
    encoding: str
    operands: tuple[Operand, ...]
    modifiers: dict
    line: int
    target: int | None = None
    behind: int | None = None

    @property
    def opcode(self) -> str:
        """The name with its encoding."""
        return self.name + (f"_{self.encoding}" if self.encoding else "")


@dataclass(frozen=True)
class KernelArgument:
    """An argument, or a hidden one that the launch fills: where it lies in the kernel's argument segment, what it is."""

    name: str
    offset: int
    size: int
    kind: str


@dataclass
class AMDKernel:
    """A kernel of a text or code object.

    Attributes
    ----------
    name : str
        The kernel's name.
    facts : dict
        Fields of the kernel descriptor, named as the assembler's directives without ``.amdhsa_``.
    metadata : dict
        What the metadata say of it: sizes of work-groups.
    arguments : list of KernelArgument
        In order of their place.
    code : list of AMDInstruction
        In order of addresses, from the kernel's first one on.
    places : dict
        Addresses of a code object -> place of the instruction in `code`; none are known of a text.
    """

    name: str
    facts: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)
    arguments: list[KernelArgument] = field(default_factory=list)
    code: list[AMDInstruction] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    @property
    def parameters(self) -> list[KernelArgument]:
        """The arguments that the caller gives."""
        return [argument for argument in self.arguments if not argument.kind.startswith("hidden")]


@dataclass
class CodeObject:
    """The kernels of a text, and the processor that it is for."""

    target: str = ""
    kernels: dict[str, AMDKernel] = field(default_factory=dict)
