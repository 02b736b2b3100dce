"""How identify looks for units that convert their operands: by what other families have, inside of a conversion."""

import itertools
from collections.abc import Iterator
from typing import Any

from ...aspects.search import Field, Interface, Search, divisors, inside, unscaled
from ...formats import get_float_format
from ..base import Accumulator
from ..fma_chain import SequentialFMA
from ..fused import ParametricDotAdd
from ..fused.search import FIELDS as PARAMETRIC
from .integers import converts

#: Formats in which units multiply.
CARRIERS = ("fp16", "bf16", "tf32", "fp32")


def carriers(interface: Interface, spec: Any = None) -> list[tuple[str, bool]]:
    """Formats that have the operands' numbers, and whether what is subnormal there becomes zero, where either can show."""
    operands = interface.formats[:2]
    found = []
    for name, flush in itertools.product(CARRIERS, (False, True)):
        via = get_float_format(name)
        rounds = any(fmt.padding_bits for fmt in operands)
        other = rounds or any((fmt.emin, fmt.bias) != (via.emin, via.bias) for fmt in operands)
        tiny = any(fmt.quantum_exponent < via.emin for fmt in operands)
        if all(converts(fmt, via) for fmt in operands) and (other or flush) and (tiny or not flush):
            found.append((name, flush))
    return found


def _fused_starts(cls: Any, interface: Interface) -> Iterator[Any]:
    digits = interface.formats[3].fraction_bits
    places: tuple[tuple[Any, str], ...] = (("early", "rz"), ("exact", "rne"))
    shapes = itertools.product(carriers(interface), divisors(interface), places, (digits + 1, 2 * digits))
    for (via, flush), terms, (c_position, rounding), bits in shapes:
        dot = ParametricDotAdd(terms, bits, c_position=c_position, output_rounding=rounding)
        yield cls(dot, via, flush)


def _chain_starts(cls: Any, interface: Interface) -> Iterator[Any]:
    for (via, tiny), flush in itertools.product(carriers(interface), (False, True)):
        yield cls(SequentialFMA(flush_inputs=flush, flush_outputs=flush), via, tiny)


def searches(cls: Any) -> tuple[Search, ...]:
    """Fused sums and chains of multiply-adds, of converted operands."""
    conversion = Field(("via_format", "flush"), carriers)
    fused = tuple(inside(field, "dot") for field in PARAMETRIC if field.name != "scaled_zero")
    chain = tuple(inside(field, "dot") for search in SequentialFMA.searches() for field in search.fields)
    shape = ("dot.terms", "dot.c_position", "via_format")
    return (
        Search(
            "fused sums of converted operands", (conversion, *fused), unscaled(lambda i: _fused_starts(cls, i)), shape,
            90, lambda s: isinstance(s.dot.parametric(), ParametricDotAdd),
        ),
        Search(
            "chains of multiply-adds of converted operands", (conversion, *chain),
            unscaled(lambda i: _chain_starts(cls, i)), ("via_format",), 91,
            lambda s: isinstance(s.dot, Accumulator) and s.dot.parametric() is None,
        ),
    )  # fmt: skip
