"""What one pass of an accumulator is given, and its operands taken apart under the accumulator's edge rules."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..formats.exact_rounding import stochastic_draw
from . import arithmetic as operations
from .operands import Operand, decode


@dataclass(frozen=True, eq=False)
class Pass:
    """The input of one pass: the products and the addend of one result element.

    Parameters
    ----------
    spec : Accumulator
        The algorithm.
    a, b : list of int
        Encodings of up to `spec.terms_per_step` operands each.
    c : int
        Encoding of the addend: the result of the pass before, or the c of the chain.
    formats : tuple of Format or IntegerFormat
        Of a, b, this c and the result.
    scales : tuple of tuple of Operand
        Block scales of each product; empty tuples without scales.
    index : int
        Number of the pass in its chain.
    element : int
        Place of the result element in its matrix, counted along the rows.
    """

    spec: Any
    a: list[int]
    b: list[int]
    c: int
    formats: tuple[Any, ...]
    scales: tuple[tuple[Operand, ...], ...] = ()
    index: int = 0
    element: int = 0

    @property
    def arithmetic(self) -> Any:
        """The module with the operations in which a family says its pass."""
        return operations

    @cached_property
    def x(self) -> list[Operand]:
        """The operands of A taken apart, zeros as the edge rule `zero_operand` says."""
        return self._operands(self.a, 0)

    @cached_property
    def y(self) -> list[Operand]:
        """The operands of B."""
        return self._operands(self.b, 1)

    @property
    def draw(self) -> int:
        """The draw of a stochastic rounding; in the first pass that of :func:`tensorcore_models.encode` for the element."""
        key = self.spec.key
        return 0 if key is None else stochastic_draw(key, self.index << 32 | self.element)

    def inner(self, spec: Any, **changes: Any) -> int:
        """What another algorithm computes of this pass with some parameters changed."""
        return spec.pass_bits(replace(self, spec=spec, **changes))

    def assume_part(self, numbers: list[Operand]) -> None:
        """Nothing: which numbers take part in an alignment is known."""

    def _operands(self, codes: list[int], which: int) -> list[Operand]:
        rule = getattr(self.spec, "zero_operand", "format_minimum")
        return [decode(self.formats[which], bits, self.spec, zero_rule=rule) for bits in codes]

    @cached_property
    def addend(self) -> Operand:
        """The addend taken apart, with the alignment exponent that the edge rules `zero_c` and `subnormal_c` give it."""
        c = decode(self.formats[2], self.c, self.spec, zero_rule=self.spec.zero_c)
        if self.spec.subnormal_c == "normalised" and not c.is_zero and c.kind == "finite":
            return c._replace(align=c.leading)
        return c
