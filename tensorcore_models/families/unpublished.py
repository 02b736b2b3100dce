"""Unpublished: the arithmetic of units of which nothing is public."""

from dataclasses import dataclass
from typing import ClassVar

from ..explanations.descriptions import Words
from .base import ASPECTS, Accumulator

_NOTHING = "nobody has published what the unit computes"


@dataclass(frozen=True)
class Unpublished(Accumulator):
    """`Unpublished` is the arithmetic of a unit that nobody has published: it is listed, and computes nothing."""

    takes_scales: ClassVar[bool] = True
    published: ClassVar[bool] = False
    left_out: ClassVar = {a.title: _NOTHING for a in ASPECTS if a.title not in ("integers", "words")}

    def pass_bits(self, p):
        raise ValueError("this arithmetic is not public, so there is nothing to compute with")

    def words(self, d):
        steps = ("Nobody has published what this unit computes, so there is no model of it.",)
        return Words("Not public", steps, "", "computes what is not public")
