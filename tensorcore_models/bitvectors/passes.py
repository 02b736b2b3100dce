"""Passes of accumulators on bit-vectors: the term of a pass, and the conditions under which it is right."""

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
    """Formats of a, b, c and d, and of block scales."""

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
    """A pass whose encodings are terms; `conditions` gets those under which its term is right."""

    conditions: list[Term] = field(default_factory=list)

    on_terms: ClassVar[bool] = True

    @property
    def draw(self) -> int:
        """The draw of a stochastic rounding: engines with one have no encoding."""
        return 0

    @property
    def term(self) -> Term:
        """The encoding of the result; raises Unencodable."""
        return as_code(self.spec.pass_term(self), self.formats[3].bits)

    def inner(self, spec: Any, **changes: Any) -> Term:
        """Return the term that another algorithm computes of this pass with some parameters changed; raises Unencodable."""
        return replace(self, spec=spec, **changes).term

    def assume_part(self, numbers: Sequence[Number]) -> None:
        """Add the condition that all numbers take part in an alignment."""
        self.conditions.extend(t.condition(number.part) for number in numbers)

    def unencodable(self, reason: str) -> None:
        """Raise Unencodable: whatever follows is for plain integers."""
        raise Unencodable(reason)
