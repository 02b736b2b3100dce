"""Dot product and c, both rounded down, as terms over bit-vectors: the twin of the integers."""

from collections.abc import Sequence
from typing import Any

from ...bitvectors import integers as z
from ...bitvectors import numbers as n
from ...bitvectors import terms as t
from ...bitvectors.integers import Int
from ...bitvectors.numbers import Number
from ...bitvectors.passes import TermPass
from ...bitvectors.sums import as_number, taking_part
from ...bitvectors.terms import Term
from ...formats import Format


def step_term(spec: Any, p: TermPass) -> Term:
    """One operation: products alone, then their sum with c."""
    c = p.addend
    products = [n.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)]
    limited = [n.overflowed(product, spec.product_overflow_exponent) for product in products]
    groups = [taking_part(limited[i :: spec.parity_groups]) for i in range(spec.parity_groups)]
    sums = [_truncated_sum(group, spec.fraction_bits, "rz") for group in groups if group]
    if len(sums) == 2:
        sums = [_truncated_sum(sums, spec.fraction_bits, spec.add_rounding)]
    finite = _round_down_add(spec, taking_part(sums), taking_part([c]), p.formats.d)
    if spec.c_inf_with_overflow == "nan":
        return n.with_specials([*limited, c], finite, p.formats.d, spec)
    return n.with_specials([*products, c], n.with_specials(limited, finite, p.formats.d, spec), p.formats.d, spec)


def _truncated_sum(numbers: Sequence[Number], fraction_bits: int, rounding: str) -> Number:
    largest = n.largest_exponent(numbers)
    total = n.total_of([n.aligned(x, largest, fraction_bits, rounding) for x in numbers])
    return as_number(total, largest, fraction_bits, t.either(*(x.part for x in numbers)))


def _round_down_add(spec: Any, dot: list[Number], start: list[Number], fmt: Format) -> Term:
    parts = [*dot, *start]
    if not parts:
        return t.constant(0, fmt.bits)
    largest = n.largest_exponent(parts, spec.exponent_floor)
    bits = max(spec.dot_fraction_bits, spec.c_fraction_bits)
    addends = [
        z.scaled(n.aligned(x, largest, spec.dot_fraction_bits, spec.add_rounding), bits - spec.dot_fraction_bits)
        for x in dot
    ]
    for c in start:
        cut = n.aligned(c, largest, spec.c_fraction_bits, spec.add_rounding)
        if spec.c_cutoff is not None:
            far = z.less(c.align, z.minus(largest, z.number(spec.c_cutoff)))
            cut = z.select(far, n.aligned(c, largest, spec.c_fraction_bits, "rz"), cut)
        addends.append(z.scaled(cut, bits - spec.c_fraction_bits))
    total, exponent = n.total_of(addends), z.minus(largest, z.number(bits))
    if spec.sum_fraction_bits is not None:
        total, exponent = rounded_down(total, exponent, spec.sum_fraction_bits)
    return n.finish(total, exponent, fmt, spec, spec.output_rounding)


def rounded_down(total: Int, exponent: Int, fraction_bits: int) -> tuple[Int, Int]:
    """A sum normalised and rounded down to so many fraction bits."""
    negative = z.less(total, z.number(0))
    bits, places = z.normalised(z.magnitude(total))
    cut = bits.width - 1 - fraction_bits
    if cut <= 0:
        return total, exponent
    kept = z.shifted_right(z.natural(bits), z.number(cut), "rd", negative)
    return z.with_sign(negative, kept), z.minus(z.plus(exponent, z.number(cut)), places)
