"""This module defines the request to the planner and the closed forms: a product and the options of its kernel."""

from dataclasses import dataclass

from ascend.chips.chip import Chip
from ascend.dialects import check_dialect
from ascend.schedule_options import WithOptions, describes_options, option


@describes_options
@dataclass(frozen=True)
class Request(WithOptions):
    """`Request` holds a product and its kernel's options, checked against the chip; the planner chooses the other options."""

    m: int
    k: int
    n: int
    chip: Chip
    target: str = option(
        "", "dialect of :mod:`ascend.dialects` that must be able to express the schedule: rectangles of tiles for each core "
        "(AscendC's TCubeTiling, pto-isa), or tiles dealt one by one in a swizzled order (CATLASS); \"\": any"
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        if self.target:
            check_dialect(self.target, self.chip)
            if self.template == "norm":
                raise ValueError(f"target {self.target} has no template norm: leave out the target or the template")
            if self.target == "ascendc":  # AscendC's Matmul loads several blocks together
                object.__setattr__(self, "template", "mdl")
        self.check_options()
        self.check_chip(self.chip)

    @property
    def balanced(self) -> bool | None:
        """Return whether tiles are nearly equal.

        It is False with a target, whose tiles are whole blocks, and None if the kernel chooses.
        """
        return False if self.target else None
