"""This module runs passes of accumulators on bit-vectors: it gives a pass's term and the conditions under which it holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from ..arithmetic.numbers import Number
from ..arithmetic.passes import Pass
from ..formats import Format
from . import terms as t
from .integers import as_code
from .terms import Term


class Unencodable(TypeError):
    """`Unencodable` is the error for a specification that has no encoding for solvers."""


class Formats(NamedTuple):
    """`Formats` holds the formats of a, b, c, d and of block scales, and the number of elements that share a block scale."""

    a: Format
    b: Format
    c: Format
    d: Format
    scale: Format | None = None
    block_size: int | None = None

    def __str__(self) -> str:
        scales = "" if self.scale is None else f", scales in {self.scale.name} of {self.block_size} elements"
        return f"{self.a.name} x {self.b.name} + {self.c.name} to {self.d.name}{scales}"


@dataclass(frozen=True, eq=False)
class TermPass(Pass):
    """`TermPass` is a pass whose encodings are terms; `conditions` collects the conditions under which its term is right."""

    conditions: list[Term] = field(default_factory=list)

    on_terms: ClassVar[bool] = True

    @property
    def draw(self) -> int:
        """Return 0, because engines with stochastic rounding have no encoding for solvers."""
        return 0

    @property
    def term(self) -> Term:
        """Return the encoding of the result as a term. Raises Unencodable."""
        return as_code(self.spec.pass_term(self), self.formats[3].bits)

    def inner(self, spec: Any, **changes: Any) -> Term:
        """Return the term that another accumulator computes from this pass with fields changed. Raises Unencodable."""
        return replace(self, spec=spec, **changes).term

    def assume_part(self, numbers: Sequence[Number]) -> None:
        """Add the condition that all numbers take part in an alignment."""
        self.conditions.extend(t.condition(number.part) for number in numbers)

    def unencodable(self, reason: str) -> None:
        """Raise Unencodable, because the rest of the pass works on plain integers only."""
        raise Unencodable(reason)
