"""Fused sums as terms over bit-vectors, the twin of `integers`."""

from collections.abc import Sequence
from typing import Any

from ...bitvectors import integers as z
from ...bitvectors import numbers as n
from ...bitvectors import terms as t
from ...bitvectors.numbers import Number
from ...bitvectors.passes import TermPass, Unencodable
from ...bitvectors.sums import as_number, exact_sum, rounded_sum, scaled_product, sum_aligned, taking_part
from ...bitvectors.terms import Term
from ...formats import Format
from .integers import part_masks


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
    if spec.flush_inputs or spec.flush_c:
        c = _flushed(spec, c, formats.c, spec.zero_c)
    products = [scaled_product(a, b, s, spec.scaled_zero) for a, b, s in zip(x, y, p.scales, strict=True)]
    products = [n.overflowed(product, spec.product_overflow_exponent) for product in products]
    if spec.normalised_products:
        products = [n.normalised(product) for product in products]
    if spec.zero_sign != "positive" and spec.c_position != "exact":
        raise Unencodable("a fused sum whose zeros have signs has an encoding with an exact c only")
    if spec.c_position == "exact":
        return _with_exact_c(spec, _pieces(spec, x, y, products, formats), products, c, p)
    early = [c] if spec.c_position == "early" else []
    total = _fused_sum(spec, _pieces(spec, x, y, products, formats), early, p.conditions)
    dot = t.constant(0, formats.d.bits) if total is None else rounded_sum(spec, total, formats.d)
    dot = n.with_specials(products + early, dot, formats.d, spec)
    if spec.c_position == "early":
        return dot
    late = [n.decode(formats.d, dot, spec), n.decode(formats.c, p.c, spec)]
    return n.ieee_sum(late, formats.d, spec, spec.late_rounding, spec.flush_outputs, spec.late_rounding == "ro")


def _pieces(
    spec: Any, x: Sequence[Number], y: Sequence[Number], products: Sequence[Number], formats: Any
) -> list[Number]:
    """The products, or the products of the parts of their operands' significands, which keep the products' exponents."""
    if not spec.significand_parts:
        return list(products)
    lefts, rights = (part_masks(fmt.precision, spec.significand_parts) for fmt in (formats.a, formats.b))
    return [
        product._replace(significand=z.times(_masked(a.significand, left), _masked(b.significand, right)))
        for a, b, product in zip(x, y, products, strict=True)
        for left in lefts
        for right in rights
    ]


def _masked(significand: z.Int, mask: int) -> z.Int:
    """Some bits of a significand."""
    width = mask.bit_length()
    return z.natural(t.bits_and(z.as_bits(significand, width), t.constant(mask, width)))


def _with_exact_c(spec: Any, pieces: Sequence[Number], products: Sequence[Number], c: Number, p: TermPass) -> Term:
    """The aligned products, c added exactly, one rounding."""
    if spec.output_rounding not in ("rne", "rna", "ro") or spec.output_fraction_bits is not None:
        raise Unencodable("an exact c with a directed rounding or fewer fraction bits has no encoding")
    if spec.flush_outputs and spec.negative_underflow == "positive":
        raise Unencodable("an exact c whose negative sums are flushed to +0 has no encoding")
    total = _fused_sum(spec, pieces, [], p.conditions)
    negative = [product.negative for product in products]
    if spec.zero_sign == "majority":
        count = z.number(0)
        for sign in negative:
            count = z.plus(count, z.select(sign, z.number(1), z.number(0)))
        minus = z.less(z.number(spec.terms + spec.padding), z.scaled(count, 1))
        c = c._replace(negative=t.choose(t.both(c.is_zero, *(x.is_zero for x in products)), minus, c.negative))
    else:
        minus = t.FALSE if spec.padding or spec.zero_sign == "positive" else t.both(*negative)
    zeros = t.both(*(x.is_zero for x in products))
    if total is None:
        total = n.plain(minus, z.number(0), z.number(0), 0)
    total = total._replace(negative=t.choose(zeros, minus, total.negative))
    rounded = n.ieee_sum([total, c], p.formats.d, spec, spec.output_rounding, spec.flush_outputs, True)
    return n.with_specials([*products, c], rounded, p.formats.d, spec)
