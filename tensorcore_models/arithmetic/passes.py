"""A Pass holds what one pass of an accumulator is given, its operands taken apart under the accumulator's edge rules."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from .. import arithmetic
from ..formats.exact_rounding import stochastic_draw
from .numbers import Number, decode, normalised


@dataclass(frozen=True, eq=False)
class Pass:
    """A Pass is the input of one pass: the products and the addend of one result element.

    Parameters
    ----------
    spec : Accumulator
        The algorithm.
    a, b : sequence of int
        Encodings of up to `spec.terms_per_step` operands each.
    c : int
        Encoding of the addend: the result of the pass before, or the c of the chain.
    formats : tuple of Format or IntegerFormat
        Of a, b, this c and the result.
    scales : tuple of tuple of Number
        Block scales of each product; empty tuples without scales.
    index : int
        Number of the pass in its chain.
    element : int
        Place of the result element in its matrix, counted along the rows.
    """

    spec: Any
    a: Sequence[Any]
    b: Sequence[Any]
    c: Any
    formats: tuple[Any, ...]
    scales: tuple[tuple[Number, ...], ...] = ()
    index: int = 0
    element: int = 0

    #: Whether encodings are terms for solvers.
    on_terms: ClassVar[bool] = False

    @property
    def arithmetic(self) -> Any:
        """Return the package whose operations `pass_bits` uses."""
        return arithmetic

    @cached_property
    def x(self) -> list[Number]:
        """Give the operands of A taken apart, zeros as the edge rule `zero_operand` says."""
        return self._operands(self.a, 0)

    @cached_property
    def y(self) -> list[Number]:
        """Give the operands of B."""
        return self._operands(self.b, 1)

    def _operands(self, codes: Sequence[Any], which: int) -> list[Number]:
        rule = getattr(self.spec, "zero_operand", "format_minimum")
        return [decode(self.formats[which], code, self.spec, zero_rule=rule) for code in codes]

    @cached_property
    def addend(self) -> Number:
        """Give the addend taken apart, with the alignment exponent that the edge rules `zero_c` and `subnormal_c` give it."""
        c = decode(self.formats[2], self.c, self.spec, zero_rule=self.spec.zero_c)
        return normalised(c) if self.spec.subnormal_c == "normalised" else c

    @property
    def draw(self) -> int:
        """Return the draw of a stochastic rounding; in the first pass it is the draw of :func:`tensorcore_models.encode`."""
        key = self.spec.key
        return 0 if key is None else stochastic_draw(key, self.index << 32 | self.element)

    def inner(self, spec: Any, **changes: Any) -> Any:
        """Return the code that another algorithm computes from this pass, with the given parameters of the pass changed."""
        return spec.pass_bits(replace(self, spec=spec, **changes))

    def assume_part(self, numbers: Sequence[Number]) -> None:
        """Do nothing: which numbers take part in an alignment is known. Terms are right under the condition that all do."""

    def unencodable(self, reason: str) -> None:
        """Do nothing: whatever follows is computed. On terms Unencodable is raised."""
