"""Fused sums as terms over bit-vectors, the twin of `integers`."""

from collections.abc import Sequence
from typing import Any

from ...bitvectors import integers as z
from ...bitvectors import numbers as n
from ...bitvectors import terms as t
from ...bitvectors.numbers import Number
from ...bitvectors.passes import TermPass
from ...bitvectors.sums import as_number, exact_sum, rounded_sum, scaled_product, sum_aligned, taking_part
from ...bitvectors.terms import Term
from ...formats import Format


def _sum_normalising(spec: Any, numbers: Sequence[Number], fraction_bits: int) -> Number:
    """Addends one by one, each intermediate sum normalised to F fraction bits."""
    total = numbers[0]
    for number in numbers[1:]:
        added = sum_aligned(spec, [total, number], fraction_bits)
        whole = n.normalised(added)
        cut = max(whole.point - fraction_bits, 0)
        kept = z.shifted_right(whole.significand, z.number(cut), spec.alignment_rounding, whole.negative)
        step = n.plain(whole.negative, kept, whole.align, whole.point - cut)
        total = n.choose(t.both(total.part, number.part), step, n.choose(number.part, number, total))
    return total


def _sum_pairwise(spec: Any, numbers: Sequence[Number], fraction_bits: int) -> Number:
    """Binary tree of two-operand alignments over neighbours."""
    if len(numbers) == 1:
        return numbers[0]
    middle = (len(numbers) + 1) // 2
    halves = [_sum_pairwise(spec, part, fraction_bits) for part in (numbers[:middle], numbers[middle:])]
    return sum_aligned(spec, halves, fraction_bits)


def _fused_sum(spec: Any, products: Sequence[Number], start: Sequence[Number], conditions: list[Term]) -> Number | None:
    """Unrounded sum of products and c by the alignment that `spec` names; None if nothing can take part."""
    start = taking_part(start)
    everything = [*start, *taking_part(products)]
    if not everything:
        return None
    if spec.fraction_bits is None:
        total, exponent = exact_sum(everything)
        return as_number(total, exponent, 0, t.TRUE)
    bits = spec.fraction_bits
    if spec.alignment == "odd_even":
        groups = [taking_part(products[parity::2]) for parity in (0, 1)]
        return sum_aligned(spec, [*(sum_aligned(spec, group, bits) for group in groups if group), *start], bits)
    if spec.alignment == "pairwise":
        leaves = taking_part(products)
        conditions.extend(x.part for x in leaves)
        return sum_aligned(spec, [*([_sum_pairwise(spec, leaves, bits)] if leaves else []), *start], bits)
    if spec.normalise_each_add:
        return _sum_normalising(spec, everything, bits)
    return sum_aligned(spec, everything, bits)


def _flushed(spec: Any, number: n.Number, fmt: Format, zero_rule: str) -> n.Number:
    """An operand with `flush_inputs`."""
    return n.flushed_to_zero(number, fmt, zero_rule) if spec.flushed == "as_zero" else n.flushed(number, fmt.emin)


def step_term(spec: Any, p: TermPass) -> Term:
    """One fused operation; c is added last where it is late."""
    formats = p.formats
    x, y, c = p.x, p.y, p.addend
    if spec.flush_inputs:
        x = [_flushed(spec, number, formats.a, spec.zero_operand) for number in x]
        y = [_flushed(spec, number, formats.b, spec.zero_operand) for number in y]
        c = _flushed(spec, c, formats.c, spec.zero_c)
    products = [scaled_product(a, b, s, spec.scaled_zero) for a, b, s in zip(x, y, p.scales, strict=True)]
    products = [n.overflowed(product, spec.product_overflow_exponent) for product in products]
    if spec.normalised_products:
        products = [n.normalised(product) for product in products]
    early = [c] if spec.c_position == "early" else []
    total = _fused_sum(spec, products, early, p.conditions)
    dot = t.constant(0, formats.d.bits) if total is None else rounded_sum(spec, total, formats.d)
    dot = n.with_specials(products + early, dot, formats.d, spec)
    if spec.c_position == "early":
        return dot
    late = [n.decode(formats.d, dot, spec), n.decode(formats.c, p.c, spec)]
    return n.ieee_sum(late, formats.d, spec, spec.late_rounding, spec.flush_outputs)
