"""This module defines `Pass`, the operands of one pass of an accumulator, decoded under the accumulator's edge rules."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from .. import arithmetic
from ..formats.exact_rounding import stochastic_draw
from .numbers import Number, decode, normalised


@dataclass(frozen=True, eq=False)
class Pass:
    """`Pass` is the input of one pass: the operands and the addend of one result element.

    Parameters
    ----------
    spec : Accumulator
        Accumulator whose pass this is.
    a, b : sequence of int
        Encodings of up to `spec.terms_per_step` operands each.
    c : int
        Encoding of the addend: the result of the previous pass, or the c of the chain.
    formats : tuple of Format or IntegerFormat
        Formats of a, b, c and the result.
    scales : tuple of tuple of Number
        Block scales of each product; empty tuples if there are none.
    index : int
        Number of the pass in its chain, from 0.
    element : int
        Row-major index of the result element in its matrix.
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
        """Return the decoded operands of A; zeros have the exponent of the edge rule `zero_operand`."""
        return self._operands(self.a, 0)

    @cached_property
    def y(self) -> list[Number]:
        """Return the decoded operands of B."""
        return self._operands(self.b, 1)

    def _operands(self, codes: Sequence[Any], which: int) -> list[Number]:
        rule = getattr(self.spec, "zero_operand", "format_minimum")
        return [decode(self.formats[which], code, self.spec, zero_rule=rule) for code in codes]

    @cached_property
    def addend(self) -> Number:
        """Return the decoded addend with the alignment exponent of the edge rules `zero_c` and `subnormal_c`."""
        c = decode(self.formats[2], self.c, self.spec, zero_rule=self.spec.zero_c)
        return normalised(c) if self.spec.subnormal_c == "normalised" else c

    @property
    def draw(self) -> int:
        """Return the random integer of a stochastic rounding.

        In pass 0 it is the integer that :func:`tensorcore_models.encode` uses for the same seed and element.
        """
        key = self.spec.key
        return 0 if key is None else stochastic_draw(key, self.index << 32 | self.element)

    def inner(self, spec: Any, **changes: Any) -> Any:
        """Return the encoding that accumulator `spec` computes from this pass with the fields in `changes` replaced."""
        return spec.pass_bits(replace(self, spec=spec, **changes))

    def assume_part(self, numbers: Sequence[Number]) -> None:
        """Do nothing, because a pass on plain integers knows which numbers are added; a pass on terms adds a condition here."""

    def unencodable(self, reason: str) -> None:
        """Do nothing, because plain integers can compute every algorithm; a pass on terms raises Unencodable."""
