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
#: First address of the generic windows of local memory (LDS) and scratch, by the operand that gives it.
WINDOWS = {"src_shared_base": 1 << 36, "src_private_base": 1 << 37}
#: Scalar registers by number: all that instructions encode, then SCC, which has a number of its own in this package.
SCC = 128
SCALARS = 129
#: Vector registers by number: 256 of a lane, then 256 accumulation registers.
ACCUMULATORS = 256
VECTORS = 512


@dataclass(frozen=True, slots=True)
class RegisterRange:
    """`RegisterRange` is a range of neighbouring 32-bit registers.

    Parameters
    ----------
    vector : bool
        Whether each lane has such registers (VGPR, AGPR), or each wave (SGPR).
    first, count : int
        First register and their number; accumulation registers start at `ACCUMULATORS`.
    """

    vector: bool
    first: int
    count: int

    def name(self, place: int = 0) -> str:
        """Return one of the registers as the text spells it."""
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
    """`Literal` is a constant: an integer, or a floating-point number as the text spells it."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Word:
    """`Word` is a label, or a word whose meaning depends on the instruction."""

    name: str


@dataclass(frozen=True, slots=True)
class Modified:
    """`Modified` is an operand that is negated, taken as its absolute value, or sign-extended."""

    operand: "Operand"
    negated: bool = False
    absolute: bool = False
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`Call` is a word with arguments: vmcnt(0), hwreg(HW_REG_MODE, 4, 2)."""

    name: str
    arguments: tuple[str, ...]


Operand = RegisterRange | Literal | Word | Modified | Call


@dataclass(frozen=True)
class AMDInstruction:
    """`AMDInstruction` is one instruction.

    Parameters
    ----------
    name : str
        Name without the suffix of its encoding.
    encoding : str
        One of "", e32, e64, dpp, sdwa.
    operands : tuple
        Operands in the text's order.
    modifiers : dict
        Modifiers after the operands: name -> number, list of numbers, word or True.
    line : int
        Line of the text.
    target : int or None
        Index of the instruction that a branch goes to.
    behind : int or None
        Address after the instruction in its code object.
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
        """Return the name with the suffix of its encoding."""
        return self.name + (f"_{self.encoding}" if self.encoding else "")


@dataclass(frozen=True)
class KernelArgument:
    """`KernelArgument` is an argument in the kernel's segment, given by the caller or (hidden) filled by the launch: offset,
    size, kind."""

    name: str
    offset: int
    size: int
    kind: str


@dataclass
class AMDKernel:
    """`AMDKernel` is a kernel of a text or code object.

    Attributes
    ----------
    name : str
        Name of the kernel.
    facts : dict
        Fields of the kernel descriptor, named as the assembler's directives without ``.amdhsa_``.
    metadata : dict
        Sizes of work-groups from the metadata.
    arguments : list of KernelArgument
        Arguments by rising offset.
    code : list of AMDInstruction
        Instructions by rising address, from the kernel's first one.
    places : dict
        Address in a code object -> index of the instruction in `code`; empty for assembly text.
    """

    name: str
    facts: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)
    arguments: list[KernelArgument] = field(default_factory=list)
    code: list[AMDInstruction] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    @property
    def parameters(self) -> list[KernelArgument]:
        """Return the arguments that the caller gives."""
        return [argument for argument in self.arguments if not argument.kind.startswith("hidden")]


@dataclass
class CodeObject:
    """`CodeObject` holds the kernels of a text, and the processor that it is for."""

    target: str = ""
    kernels: dict[str, AMDKernel] = field(default_factory=dict)
