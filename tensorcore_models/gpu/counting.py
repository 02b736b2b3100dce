"""Counts a compiled kernel's work for a product: the instructions of its inner loop in SASS, and its spills."""

import re
import tempfile
from collections import Counter
from dataclasses import dataclass

from ..compiled.sass import disassembled

_LABEL = re.compile(r"\s*(\.L_[\w]+):")
_CODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
_TARGET = re.compile(r"`\((\.L_[\w]+)\)")
#: Opcodes of local memory, to which registers are spilled.
LOCAL = ("LDL", "STL")


@dataclass(frozen=True)
class LoopCount:
    """`LoopCount` holds the instructions of a kernel's inner loop.

    Attributes
    ----------
    instructions : int
        Instructions of one iteration, for each thread.
    products : int
        Number of products that one iteration adds in each thread.
    opcodes : dict of str to int
    spills : int
        Number of loads and stores of local memory in the whole kernel.
    """

    instructions: int
    products: int
    opcodes: dict[str, int]
    spills: int

    @property
    def each(self) -> float:
        """Return the instructions for one product."""
        return self.instructions / self.products


#: Entry of .nv.info: format 4, attribute 0x2f (registers), 8 bytes: symbol and number.
_REGISTERS = b"\x04\x2f\x08\x00"


def register_count(cubin: bytes) -> int:
    """Return the registers of a thread of a cubin's kernel, as ptxas -v prints them; raise ValueError if the cubin has no such
    entry.
    """
    at = cubin.find(_REGISTERS)
    if at < 0:
        raise ValueError(
            "the cubin has no .nv.info entry for the registers of its kernel: give a cubin that ptxas wrote"
        )
    return int.from_bytes(cubin[at + 8 : at + 12], "little")


def loop_count(cubin: bytes, products: int) -> LoopCount:
    """Return the inner loop of a cubin with one nest of loops: of the loops without another one inside, the one with most
    instructions.

    Parameters
    ----------
    cubin : bytes
    products : int
        Number of products that one iteration adds in each thread.

    Raises
    ------
    ValueError
        If the kernel has no loop.
    """
    labels: dict[str, int] = {}
    code: list[tuple[str, str]] = []
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = disassembled(file.name)
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif found := _CODE.search(line):
            code.append((found[1], found[2]))
    loops = []
    for place, (opcode, operands) in enumerate(code):
        target = _TARGET.search(operands) if opcode.startswith("BRA") else None
        if target and labels.get(target[1], len(code)) < place:
            loops.append((labels[target[1]], place))
    inner = [x for x in loops if not any(x != y and x[0] <= y[0] and y[1] <= x[1] for y in loops)]
    if not inner:
        raise ValueError(
            "the kernel has no loop, whose instructions could be counted: give the text of a kernel with a loop"
        )
    first, last = max(inner, key=lambda loop: loop[1] - loop[0])
    opcodes = Counter(opcode.partition(".")[0] for opcode, _ in code[first : last + 1])
    spills = sum(opcode.partition(".")[0] in LOCAL for opcode, _ in code)
    return LoopCount(last + 1 - first, products, dict(opcodes), spills)
