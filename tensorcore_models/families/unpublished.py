"""Defines Unpublished, which stands for the arithmetic of units that nobody has published."""

from dataclasses import dataclass
from typing import ClassVar

from ..explanations.descriptions import Words
from .aspect_list import ASPECTS
from .base import Accumulator

_NOTHING = "nobody has published what the unit computes"


@dataclass(frozen=True)
class Unpublished(Accumulator):
    """`Unpublished` stands for an arithmetic that nobody has published, so that a unit can be listed but not computed."""

    takes_scales: ClassVar[bool] = True
    published: ClassVar[bool] = False
    left_out: ClassVar = {a.title: _NOTHING for a in ASPECTS if a.title not in ("integers", "words")}

    def pass_bits(self, p):
        raise ValueError(
            "the arithmetic of this unit is not public, so no product can be computed: choose another unit"
        )

    def words(self, d):
        steps = ("Nobody has published what this unit computes, so there is no model of it.",)
        return Words("The arithmetic is not public", steps, "", "has an arithmetic that is not public")
