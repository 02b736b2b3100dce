"""What one pass of an accumulator is given, as terms: the twin of :class:`tensorcore_models.reference.Pass`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..formats import Format
from . import numbers as n
from .numbers import Number
from .terms import Term


class Unencodable(TypeError):
    """A specification that has no terms."""


@dataclass(frozen=True)
class Formats:
    """Formats of a, b, c and d, and of block scales."""

    a: Format
    b: Format
    c: Format
    d: Format
    scale: Format | None = None
    block_size: int | None = None


@dataclass(frozen=True)
class TermPass:
    """The products and the addend of one pass, and the conditions under which its term is right."""

    spec: Any
    a: tuple[Term, ...]
    b: tuple[Term, ...]
    c: Term
    formats: Formats
    scales: tuple[tuple[Number, ...], ...]
    conditions: list[Term] = field(default_factory=list)

    def operands(self, codes: Sequence[Term], fmt: Format) -> list[Number]:
        rule = getattr(self.spec, "zero_operand", "format_minimum")
        return [n.decode(fmt, code, self.spec, zero_rule=rule) for code in codes]

    @property
    def x(self) -> list[Number]:
        """The operands of A."""
        return self.operands(self.a, self.formats.a)

    @property
    def y(self) -> list[Number]:
        """The operands of B."""
        return self.operands(self.b, self.formats.b)

    @property
    def addend(self) -> Number:
        """c with the alignment exponent that the edge rules `zero_c` and `subnormal_c` give it."""
        c = n.decode(self.formats.c, self.c, self.spec, zero_rule=self.spec.zero_c)
        return n.normalised(c) if self.spec.subnormal_c == "normalised" else c
