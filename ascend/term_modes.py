"""This module defines how the terms of a product are ordered and kept: one row for each mode, and the rules that follow.

No other module of the package asks for a mode by its name.
"""

from dataclasses import dataclass
from typing import Literal

#: (word of A, word of B) of each term, h high and l low, in the paper's order (eq. 7); the paper omits the fourth.
TERMS = ("hh", "lh", "hl", "ll")
Mode = Literal["termwise", "termwise_inplace", "fused", "elementwise"]


@dataclass(frozen=True)
class Combination:
    """`Combination` holds the facts of a mode: the products of words that a kernel forms, and the place where it adds them."""

    name: Mode
    order: str  #: Order of the sums, see :mod:`ascend.cube`: modes of one order give the same bits.
    #: Whether both words of A and B are in L1 at a time and one walk over the schedule computes all terms.
    together: bool = False
    accumulator_each: bool = False  #: Whether each term has its own accumulator in L0C.
    in_place: bool = False  #: Whether each walk adds its term to one C in memory.
    #: Whether the terms are kept apart and combined in the last write-back, or after FIXPIPE in an additional pass.
    combined_last: bool = False

    def words(self, terms: int) -> int:
        """Return the number of FP16 words of each element that are in L1 at a time."""
        return 2 if self.together and terms > 1 else 1

    def accumulators(self, terms: int) -> int:
        """Return the number of L0C tiles of one block of C."""
        return terms if self.accumulator_each else 1

    def passes(self, terms: int) -> tuple[tuple[str, ...], ...]:
        """Return the terms computed together, one tuple for each walk; small terms come first if they are combined last."""
        names = TERMS[:terms]
        if self.together:
            return (names,)
        return tuple((name,) for name in (names[1:] + names[:1] if self.combined_last else names))

    def copies_behind_fixpipe(self, terms: int) -> int:
        """Return the number of FP32 copies of C that FIXPIPE leaves for a last pass to combine; 1 needs no such pass."""
        return terms if self.combined_last else 1


_ROWS = (
    # One walk and one FP32 C for each term, combined in the last write-back (section 4.4).
    Combination("termwise", "termwise", combined_last=True),
    # Algorithm 1 run for each term into one C.
    Combination("termwise_inplace", "termwise_inplace", in_place=True),
    # Both words in L1, one walk, an accumulator in L0C for each term: the bits of termwise order.
    Combination("fused", "termwise", together=True, accumulator_each=True, combined_last=True),
    # Like fused, with one accumulator for all terms.
    Combination("elementwise", "elementwise", together=True),
)
COMBINATIONS: dict[str, Combination] = {row.name: row for row in _ROWS}
MODES: tuple[Mode, ...] = tuple(row.name for row in _ROWS)


def combination(mode: str) -> Combination:
    """Return the row of a mode. Raises ValueError with the known modes if there is none."""
    if mode not in COMBINATIONS:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    return COMBINATIONS[mode]
