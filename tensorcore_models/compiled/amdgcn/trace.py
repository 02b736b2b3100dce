"""Traces expressions through AMDGCN: SCC, comparisons of lanes, and numbers that integer instructions round to bf16."""

import numpy as np

from ..expressions import PLACES, ExpressionTrace, Operations
from ..isa.meaning import Meaning
from .syntax import AMDInstruction

#: Suffixes of the name of a number rounded to bf16 by integer instructions: by bytes of the value and the number's place in it.
_ROUNDED = {(2, 0): "", (4, 2): ".f32", (4, 0): ".b32"}


class AMDTrace(ExpressionTrace):
    """`AMDTrace` holds the expressions of an AMDGCN run."""

    def _mixture(self, row: list[int], held: list[int], line: int) -> int:
        """Return the expression of moved bytes.

        The upper half of a number rounded by integer instructions becomes its bf16 rounding.
        """
        places = [n for n in row if n]
        name = _ROUNDED.get((len(row), next(i for i, n in enumerate(row) if n)))
        if (
            name is not None
            and not any(held)
            and len(places) == 2
            and places[1] == places[0] + 1
            and places[0] % PLACES == 2
        ):
            number, rounding = self._rounded_to_bf16(places[0] // PLACES)
            if number:
                m = Meaning("convert", "bf16", ("f32",), rounding, nan="any")
                if name:  # the number lies in a half of a word
                    m = Meaning("round_to_bf16", name[1:], ("f32",), rounding, nan="any")
                return self.single(f"bf16.{rounding}{name}", line, [number * PLACES], [0], m)
        return super()._mixture(row, held, line)

    def _rounded_to_bf16(self, number: int) -> tuple[int, str]:
        """Return (x, rounding) of a sum whose upper half is x in bf16 unless x is NaN; (0, "") of another expression.

        The sum x + 0x7fff + (bit 16 of x) rounds ties to even, x + 0x7fff + 1 rounds ties away from zero.
        """
        block, place = self.block_of(number)
        if not isinstance(block, Operations) or block.name != "v_add3_u32":
            return 0, ""
        operands, constants = block.operands[place].tolist(), block.constants[place].tolist()
        if constants.count(0x7FFF) != 1 or operands[constants.index(0x7FFF)]:
            return 0, ""
        if sorted(constants) == [0, 1, 0x7FFF] and not operands[constants.index(1)]:
            return operands[constants.index(0)], "rna"
        one, other = (n for n, c in zip(operands, constants, strict=True) if c != 0x7FFF)
        return next(((x, "rne") for x, bit in ((one, other), (other, one)) if self._is_bit_16(bit, x)), (0, ""))

    def _is_bit_16(self, number: int, of: int) -> bool:
        """Return whether an expression is bit 16 of another one."""
        if not number or not of:
            return False
        block, place = self.block_of(number)
        if not isinstance(block, Operations):
            return False
        operands, constants = block.operands[place].tolist(), block.constants[place].tolist()
        if block.name == "v_bfe_u32":
            return operands == [of, 0, 0] and constants[1:] == [16, 1]
        if block.name != "v_and_b32" or sorted(constants) != [0, 1] or operands[constants.index(1)]:
            return False
        inner = operands[constants.index(0)]
        block, place = self.block_of(inner)
        if not isinstance(block, Operations) or block.name != "bytes.23__":
            return False
        return block.operands[place].tolist()[:2] == [of, of]

    def flag(self, ins: AMDInstruction, values: list, owners: list) -> np.ndarray:
        """Return the expression of SCC, if data decided it."""
        count = next(len(owner) for owner in owners if owner is not None)
        return self.operation(f"{ins.name}.scc", ins.line, values, owners, count, 1)

    def compared(self, ins: AMDInstruction, values: list, owners: list, held) -> None:
        """Note that lanes compared values, some of which depend on inputs: they decide the run that follows."""
        count = next(len(owner) for owner in owners if owner is not None)
        made = self.operation(ins.name, ins.line, values, owners, count, 1)
        self.decided(made, np.broadcast_to(held, (count,)), False)
