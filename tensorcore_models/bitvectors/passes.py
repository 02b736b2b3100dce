"""What one pass of an accumulator is given, as terms: the twin of :class:`tensorcore_models.reference.Pass`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from ..formats import Format
from . import arithmetic as operations
from . import numbers as n
from .arithmetic import Unencodable as Unencodable
from .numbers import Number
from .terms import Term


class Formats(NamedTuple):
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

    @property
    def arithmetic(self) -> Any:
        """The module with the operations in which a family says its pass."""
        return operations

    @property
    def draw(self) -> int:
        """Of a stochastic rounding: engines with one have no encoding."""
        return 0

    def operands(self, codes: Sequence[Term], fmt: Format) -> list[Number]:
        rule = getattr(self.spec, "zero_operand", "format_minimum")
        return [n.decode(fmt, code, self.spec, zero_rule=rule) for code in codes]

    @cached_property
    def x(self) -> list[Number]:
        """The operands of A."""
        return self.operands(self.a, self.formats[0])

    @cached_property
    def y(self) -> list[Number]:
        """The operands of B."""
        return self.operands(self.b, self.formats[1])

    @cached_property
    def addend(self) -> Number:
        """c with the alignment exponent that the edge rules `zero_c` and `subnormal_c` give it."""
        c = n.decode(self.formats[2], self.c, self.spec, zero_rule=self.spec.zero_c)
        return n.normalised(c) if self.spec.subnormal_c == "normalised" else c

    def inner(self, spec: Any, **changes: Any) -> Term:
        """What another algorithm computes of this pass with some parameters changed; raises Unencodable."""
        return spec.pass_term(replace(self, spec=spec, **changes))

    def assume_part(self, numbers: Sequence[Number]) -> None:
        """Add the condition that all numbers take part in an alignment."""
        self.conditions.extend(number.part for number in numbers)
