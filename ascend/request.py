"""What is to be computed and by what kind of kernel: what the planner and the closed forms are asked."""

from dataclasses import dataclass

from ascend.blocking import OPERAND_BYTES, Buffering
from ascend.chips.chip import Chip
from ascend.schedule_options import Layout, Merge, check_presplit
from ascend.terms import Combination, Mode, combination

#: Where a plan is typed into; "": anywhere.
TARGETS = ("", "ascendc", "catlass", "pto")


@dataclass(frozen=True)
class Request:
    """A product and its kernel's options; the planner chooses the rest.

    Parameters
    ----------
    m, k, n : int
        Sizes: A is m x k, B is k x n.
    chip : Chip
        The chip whose parameters are used.
    terms, buffering, mode, operand, merge, layout, warm, presplit
        As in :class:`ascend.tile_schedule.TileSchedule`.
    target : {"", "ascendc", "catlass", "pto"}
        Only schedules that these can say: rectangles of tiles for each core (AscendC's TCubeTiling, pto-isa), or tiles dealt
        one by one in a swizzled order (CATLASS).

    Raises
    ------
    ValueError
        If `target` or `presplit` is something else.
    """

    m: int
    k: int
    n: int
    chip: Chip
    terms: int = 3
    buffering: Buffering = "double"
    mode: Mode = "termwise"
    operand: str = "fp16"
    merge: Merge = "reduce"
    layout: Layout = "nz"
    warm: bool = False
    presplit: str = ""
    target: str = ""

    def __post_init__(self):
        if self.target not in TARGETS:
            raise ValueError(f"target is one of {', '.join(filter(None, TARGETS))}, got {self.target!r}")
        check_presplit(self.presplit, self.terms)

    @property
    def combination(self) -> Combination:
        """What the mode means."""
        return combination(self.mode)

    @property
    def words(self) -> int:
        """Words of each element in L1 at a time."""
        return self.combination.words(self.terms)

    @property
    def accumulators(self) -> int:
        """L0C tiles of one block of C."""
        return self.combination.accumulators(self.terms)

    @property
    def passes(self) -> tuple[tuple[str, ...], ...]:
        """Terms computed together: one tuple for each walk over the schedule."""
        return self.combination.passes(self.terms)

    @property
    def placed_on(self) -> Chip:
        """The chip."""
        return self.chip

    @property
    def operand_bytes(self) -> int:
        """Bytes of one operand element."""
        return OPERAND_BYTES[self.operand]

    @property
    def copies_behind_fixpipe(self) -> int:
        """FP32 copies of C that a last pass combines behind FIXPIPE."""
        return self.combination.copies_behind_fixpipe(self.terms) if self.chip.fixpipe else 1

    @property
    def converts(self) -> bool:
        """Whether a pass turns ND operands into NZ before the multiplication."""
        return self.layout != "nz" and self.terms == 1 and not self.chip.nd_to_nz

    @property
    def split_elements(self) -> int:
        """Elements of A and B that the split pass reads."""
        if self.terms == 1:
            return 0
        return self.m * self.k * ("a" not in self.presplit) + self.k * self.n * ("b" not in self.presplit)

    def options(self) -> dict:
        """Keywords of :func:`ascend.build_schedule`."""
        names = ("terms", "buffering", "mode", "operand", "merge", "layout", "warm", "presplit")
        return {name: getattr(self, name) for name in names}
