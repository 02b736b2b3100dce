"""Lists the options of a tile schedule, checks them without a chip, and derives the properties that follow from them."""

import math
from functools import cached_property
from typing import Literal, cast

from ascend.blocking import ACCUMULATOR_BYTES, SPLIT_OPERANDS
from ascend.chips.chip import Chip
from ascend.operand_formats import FORMATS, OperandFormat
from ascend.terms import Combination, Mode, combination

#: The operand whose panel stays in L1; "none": both are streamed.
Resident = Literal["a", "b", "none"]
RESIDENTS = ("a", "b", "none")
#: How A and B lie in memory: NZ fractals, or ND rows that somebody has to turn into fractals; "nt": ND with B as n x k rows.
Layout = Literal["nz", "nd", "nt"]
LAYOUTS = ("nz", "nd", "nt")
#: Bytes in which FIXPIPE writes rows of C at its full rate.
ROW_ALIGNMENT = 32
#: Operands whose words lie in memory already.
PRESPLITS = ("", "a", "b", "ab")
#: How slices of k become one C: FP32 additions in memory in any order, or a pass that adds them in order of k.
Merge = Literal["atomic", "reduce"]
MERGES = ("atomic", "reduce")


#: Templates of AscendC's Matmul: one block of A and of B in L1 at a time, or several that are loaded together; "": neither.
Template = Literal["", "norm", "mdl"]
TEMPLATES = ("", "norm", "mdl")


#: What scales the sums of int8 operands: FIXPIPE those of each column on their way out, 16 bits wide; vector units those of
#: each row and column afterwards; "": nothing.
Dequantize = Literal["", "fixpipe", "vector"]
DEQUANTIZES = ("fixpipe", "vector")


def what_dequantizes(said: object, chip: Chip | None = None) -> Dequantize:
    """Name the unit that scales the sums: True is FIXPIPE, False nothing; ValueError if it is unknown or the chip lacks it."""
    found = {True: "fixpipe", False: ""}[said] if isinstance(said, bool) else said
    if found not in ("", *DEQUANTIZES):
        raise ValueError(f"dequantize is one of {', '.join(DEQUANTIZES)}, got {said!r}")
    if found == "fixpipe" and chip and not chip.fixpipe:
        raise ValueError(
            f"dequantize: {chip.name} has no FIXPIPE, its vector units scale the sums: dequantize='vector'"
        )
    return cast(Dequantize, found)


def check_presplit(presplit: str, terms: int) -> None:
    """Refuse operands that cannot be split already: unknown ones, and those of a kernel without words (ValueError)."""
    if presplit not in PRESPLITS:
        raise ValueError(f"presplit is one of {', '.join(filter(None, PRESPLITS))}, got {presplit!r}")
    if presplit and terms == 1:
        raise ValueError("presplit: a kernel of one term has no words that could be split already")


def check_options(terms: int, mode: str, operand: str) -> None:
    """Refuse, whatever the chip, unknown options and several terms of operands that are not split (ValueError)."""
    if terms not in (1, 3, 4):
        raise ValueError(f"terms is 1 (plain), 3 (eq. 7) or 4 (low-low too), got {terms!r}")
    combination(mode)
    if operand not in FORMATS:
        raise ValueError(f"operand is one of {', '.join(FORMATS)}, got {operand!r}")
    if operand not in SPLIT_OPERANDS and terms != 1:
        raise ValueError(f"{operand} operands are not split: terms must be 1")


class WithOptions:
    """The properties that follow from the options alone, for a schedule and for a request to the planner."""

    m: int
    k: int
    n: int
    chip: Chip | None
    terms: int
    mode: Mode
    operand: str
    layout: Layout
    merge: Merge
    warm: bool
    presplit: str
    template: Template
    dequantize: Dequantize

    @cached_property
    def placed_on(self) -> Chip:
        """The chip; raises ValueError for an unblocked schedule, which has none."""
        if self.chip is None:
            raise ValueError("an unblocked schedule has no chip, so no time: build it with build_schedule")
        return self.chip

    @cached_property
    def combination(self) -> Combination:
        """The combination of words that the mode stands for."""
        return combination(self.mode)

    @cached_property
    def passes(self) -> tuple[tuple[str, ...], ...]:
        """Terms computed together: one tuple for each time that the schedule is walked."""
        return self.combination.passes(self.terms)

    @cached_property
    def words(self) -> int:
        """FP16 words of each element in L1 at a time: 2 for a kernel that fuses the terms."""
        return self.combination.words(self.terms)

    @cached_property
    def accumulators(self) -> int:
        """L0C tiles of one C block."""
        return self.combination.accumulators(self.terms)

    @cached_property
    def copies_behind_fixpipe(self) -> int:
        """FP32 copies of C that a last pass combines behind FIXPIPE."""
        return self.combination.copies_behind_fixpipe(self.terms) if self.placed_on.fixpipe else 1

    @property
    def adds_slices_in_memory(self) -> bool:
        """Whether slices of k can be merged atomically: not where FIXPIPE writes terms that a later pass combines."""
        return not (self.placed_on.fixpipe and len(self.passes) * self.accumulators > 1)

    def check_merge(self, slices: int) -> None:
        """Refuse slices of k that cannot be merged as the options ask (ValueError)."""
        if self.merge == "atomic" and slices > 1 and not self.adds_slices_in_memory:
            raise ValueError(
                f"atomic merging on {self.placed_on.name}: FIXPIPE adds what is in L0C, but the {self.terms} terms of a slice "
                f"are combined ({self.mode}) by a later pass, before slices may be added; take merge='reduce', "
                "mode='elementwise' (one sum in L0C), or one slice"
            )

    @property
    def split_elements(self) -> int:
        """Elements of A and B that the split pass reads."""
        if self.terms == 1:
            return 0
        return self.m * self.k * ("a" not in self.presplit) + self.k * self.n * ("b" not in self.presplit)

    @property
    def format(self) -> OperandFormat:
        """The format of the operands."""
        return FORMATS[self.operand]

    @cached_property
    def operand_bytes(self) -> int | float:
        """Bytes of one operand element, without block scales."""
        return self.format.bytes

    @cached_property
    def scalar_cycles(self) -> float:
        """Cycles of the scalar unit for each k block."""
        chip = self.placed_on
        return {"": 0.0, "norm": chip.norm_scalar_cycles, "mdl": chip.mdl_scalar_cycles}[self.template]

    @cached_property
    def mmad_head(self) -> float:
        """Cycles of a cube instruction besides its steps: more where each one finds an idle cube."""
        chip = self.placed_on
        return chip.norm_mmad_head if self.template == "norm" else chip.mmad_head

    @cached_property
    def fixpipe_row_extra(self) -> float:
        """Cycles that FIXPIPE takes longer for a row of C, on average: rows that do not start on whole 32 bytes."""
        unaligned = 1 - math.gcd(ROW_ALIGNMENT, ACCUMULATOR_BYTES * self.n) / ROW_ALIGNMENT
        return unaligned * self.placed_on.fixpipe_unaligned_cycles

    @cached_property
    def scale_bytes(self) -> float:
        """Bytes of block scales for each byte of an operand."""
        return self.format.scale_bytes

    @property
    def reads_rows_of_b(self) -> bool:
        """Whether MTE2 takes pieces along n of ND rows of B."""
        return self.layout == "nd" and self.terms == 1 and self.chip is not None and bool(self.chip.nd_to_nz)

    @property
    def converts(self) -> bool:
        """Whether a pass turns ND operands into NZ before the multiplication."""
        return self.layout != "nz" and self.terms == 1 and self.chip is not None and not self.chip.nd_to_nz
