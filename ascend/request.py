"""What is to be computed and by what kind of kernel: what the planner and the closed forms are asked."""

from dataclasses import dataclass

from ascend.blocking import Buffering
from ascend.chips.chip import Chip
from ascend.schedule_options import Layout, Merge, WithOptions, check_presplit
from ascend.terms import Mode

#: Where a plan is typed into; "": anywhere.
TARGETS = ("", "ascendc", "catlass", "pto")


@dataclass(frozen=True)
class Request(WithOptions):
    """A product and its kernel's options, as :class:`ascend.tile_schedule.TileSchedule` has them; the planner chooses the rest.

    With a `target` only schedules that it can say: rectangles of tiles for each core (AscendC's TCubeTiling, pto-isa), or tiles
    dealt one by one in a swizzled order (CATLASS).
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

    def options(self) -> dict:
        """Keywords of :func:`ascend.build_schedule`."""
        names = ("terms", "buffering", "mode", "operand", "merge", "layout", "warm", "presplit")
        return {name: getattr(self, name) for name in names}
