"""What the options of a tile schedule can be, and what is wrong with them without a chip."""

from typing import Literal

from ascend.blocking import OPERAND_BYTES, SPLIT_OPERANDS
from ascend.terms import combination

#: The operand whose panel stays in L1; "none": both are streamed.
Resident = Literal["a", "b", "none"]
RESIDENTS = ("a", "b", "none")
#: How A and B lie in memory: NZ fractals, or ND rows that somebody has to turn into fractals; "nt": ND with B as n x k rows.
Layout = Literal["nz", "nd", "nt"]
LAYOUTS = ("nz", "nd", "nt")
#: Operands whose words lie in memory already.
PRESPLITS = ("", "a", "b", "ab")
#: How slices of k become one C: FP32 additions in memory in any order, or a pass that adds them in order of k.
Merge = Literal["atomic", "reduce"]
MERGES = ("atomic", "reduce")


def check_presplit(presplit: str, terms: int) -> None:
    """Check which operands are split already.

    Raises
    ------
    ValueError
        If they are none, or the kernel has no words.
    """
    if presplit not in PRESPLITS:
        raise ValueError(f"presplit is one of {', '.join(filter(None, PRESPLITS))}, got {presplit!r}")
    if presplit and terms == 1:
        raise ValueError("presplit: a kernel of one term has no words that could be split already")


def check_options(terms: int, mode: str, operand: str) -> None:
    """Check what does not depend on a chip.

    Raises
    ------
    ValueError
        If an option is unknown, or unsplit operands are given several terms.
    """
    if terms not in (1, 3, 4):
        raise ValueError(f"terms is 1 (plain), 3 (eq. 7) or 4 (low-low too), got {terms!r}")
    combination(mode)
    if operand not in OPERAND_BYTES:
        raise ValueError(f"operand is one of {', '.join(OPERAND_BYTES)}, got {operand!r}")
    if operand not in SPLIT_OPERANDS and terms != 1:
        raise ValueError(f"{operand} operands are not split: terms must be 1")
