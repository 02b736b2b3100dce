"""Defines the request to the planner and the closed forms: the product to compute and the kind of its kernel."""

from dataclasses import dataclass

from ascend.blocking import Buffering
from ascend.chips.chip import Chip
from ascend.dialects import check_dialect
from ascend.schedule_options import Dequantize, Layout, Merge, Template, WithOptions, check_presplit, what_dequantizes
from ascend.terms import Mode


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
    dequantize: Dequantize = ""
    target: str = ""

    def __post_init__(self):
        if self.target:
            check_dialect(self.target, self.chip)
        object.__setattr__(self, "dequantize", what_dequantizes(self.dequantize, self.chip))
        check_presplit(self.presplit, self.terms)

    def options(self) -> dict:
        """Keywords of :func:`ascend.build_schedule`."""
        names = (
            "terms",
            "buffering",
            "mode",
            "operand",
            "merge",
            "layout",
            "warm",
            "presplit",
            "template",
            "dequantize",
        )
        return {name: getattr(self, name) for name in names}

    @property
    def template(self) -> Template:  # type: ignore[override]  # here it follows from the target
        """AscendC's Matmul loads several blocks together (MDL)."""
        return "mdl" if self.target == "ascendc" else ""

    @property
    def balanced(self) -> bool | None:
        """Whether tiles are nearly equal: a target's are whole blocks but for the last; None where the kernel chooses."""
        return False if self.target else None
