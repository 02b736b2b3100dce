"""One fused operation of FusedDotAdd or ParametricDotAdd in exact integers."""

from typing import Any

from ...formats import Format
from ...reference import ieee
from ...reference.aligned import (
    aligned,
    as_addends,
    finish,
    largest_exponent,
    overflowed,
    scaled_product,
)
from ...reference.operands import (
    Addend,
    Operand,
    flushed,
    flushed_to_zero,
    normalised,
    special_bits,
    special_result,
    zero_bits,
)
from ...reference.passes import Pass


def _wrapped(total: int, unit: int, largest: int, integer_bits: int | None) -> int:
    """`total` (in units of 2**unit) in two's complement with `integer_bits` bits above the point at 2**largest."""
    if integer_bits is None:
        return total
    half = 1 << (integer_bits + largest - unit)
    return (total + half) % (2 * half) - half


def _sum_aligned(spec: Any, addends: list[Addend]) -> Addend:
    """One alignment of all addends, summed exactly; the result keeps the alignment exponent (it is not normalised)."""
    largest = largest_exponent(addends, spec.exponent_floor)
    if spec.fraction_bits is None:
        unit, rounding = min(x.exponent for x in addends), "rz"
    elif spec.sticky:
        unit, rounding = largest - spec.fraction_bits - 1, "ro"  # one more bit that collects all that is cut off
    else:
        unit, rounding = largest - spec.fraction_bits, spec.alignment_rounding
    total = _wrapped(sum(aligned(x, unit, rounding) for x in addends), unit, largest, spec.integer_bits)
    return Addend(total < 0, abs(total), unit, largest)


def _sum_normalising(spec: Any, addends: list[Addend], fraction_bits: int) -> Addend:
    """Addends one by one, each intermediate sum normalised to F fraction bits."""
    total = addends[0]
    for addend in addends[1:]:
        total = _sum_aligned(spec, [total, addend])
        if total.magnitude:
            leading = total.magnitude.bit_length() - 1 + total.exponent
            unit = max(leading - fraction_bits, total.exponent)
            total = Addend(total.negative, abs(aligned(total, unit, spec.alignment_rounding)), unit, leading)
    return total


def _sum_pairwise(spec: Any, addends: list[Addend]) -> Addend:
    """Binary tree of two-operand alignments over neighbours."""
    if len(addends) == 1:
        return addends[0]
    middle = (len(addends) + 1) // 2
    return _sum_aligned(spec, [_sum_pairwise(spec, addends[:middle]), _sum_pairwise(spec, addends[middle:])])


def _fused_sum(spec: Any, products: list[Operand], c: list[Operand]) -> Addend | None:
    """Unrounded sum of products and c by the alignment that `spec` names; None if nothing takes part."""
    start = as_addends(c)
    if spec.alignment == "odd_even":
        groups = [as_addends(products[0::2]), as_addends(products[1::2])]
        parts = [_sum_aligned(spec, group) for group in groups if group] + start
        return _sum_aligned(spec, parts) if parts else None
    addends = as_addends(products)
    if spec.alignment == "pairwise":
        parts = ([_sum_pairwise(spec, addends)] if addends else []) + start
        return _sum_aligned(spec, parts) if parts else None
    if not start and not addends:
        return None
    if spec.normalise_each_add and spec.fraction_bits is not None:
        return _sum_normalising(spec, start + addends, spec.fraction_bits)
    return _sum_aligned(spec, start + addends)


def _flushed(spec: Any, x: Operand, fmt: Format, zero_rule: str) -> Operand:
    """An operand with `flush_inputs`."""
    return flushed_to_zero(x, fmt, zero_rule) if spec.flushed == "as_zero" else flushed(x, fmt.emin)


def step_bits(spec: Any, p: Pass) -> int:
    """One fused operation; c is added last where it is late."""
    a_format, b_format, c_format, d_format = p.formats
    a, b, c = p.x, p.y, p.addend
    if spec.flush_inputs:
        a = [_flushed(spec, x, a_format, spec.zero_operand) for x in a]
        b = [_flushed(spec, x, b_format, spec.zero_operand) for x in b]
    if spec.flush_inputs or spec.flush_c:
        c = _flushed(spec, c, c_format, spec.zero_c)
    products = [scaled_product(x, y, s, spec.scaled_zero) for x, y, s in zip(a, b, p.scales, strict=True)]
    products = [overflowed(product, spec.product_overflow_exponent) for product in products]
    if spec.normalised_products:
        products = [normalised(product) for product in products]
    late = spec.c_position == "late"
    special = special_result(products if late else [*products, c])
    pieces = products if special else _pieces(spec, a, b, products, p.formats)
    if not special and spec.c_position == "exact":
        return _with_exact_c(spec, pieces, products, c, d_format)
    if special:
        dot = special_bits(special, d_format, spec)
    else:
        total = _fused_sum(spec, pieces, [] if late else [c])
        if total is None or total.magnitude == 0:
            dot = _zero(spec, products, None if late else c, d_format)
        else:
            signed = -total.magnitude if total.negative else total.magnitude
            kept = spec.output_fraction_bits
            dot = finish(signed, total.exponent, d_format, spec, spec.output_rounding, kept, spec.flush_outputs)
    if not late:
        return dot
    to_inf, flush = spec.late_rounding == "ro", spec.flush_outputs
    return ieee.add(dot, d_format, p.c, c_format, d_format, spec, spec.late_rounding, flush=flush, to_inf=to_inf)


def _pieces(spec: Any, a: list[Operand], b: list[Operand], products: list[Operand], formats: Any) -> list[Operand]:
    """The products, or the products of the parts of their operands' significands, which keep the products' exponents."""
    if not spec.significand_parts:
        return products
    lefts, rights = (part_masks(fmt.precision, spec.significand_parts) for fmt in formats[:2])
    return [
        product._replace(significand=(x.significand & left) * (y.significand & right))
        for x, y, product in zip(a, b, products, strict=True)
        for left in lefts
        for right in rights
    ]


def part_masks(precision: int, widths: tuple[int, ...]) -> list[int]:
    """The bits of each part of a significand, from the leading one down."""
    ends = [precision - sum(widths[:n]) for n in range(len(widths) + 1)]
    return [(1 << top) - (1 << bottom) for top, bottom in zip(ends, ends[1:], strict=False)]


def _with_exact_c(spec: Any, pieces: list[Operand], products: list[Operand], c: Operand, d_format: Format) -> int:
    """The aligned products summed, c added exactly, one rounding."""
    total = _fused_sum(spec, pieces, []) or Addend(False, 0, c.exponent, c.exponent)
    unit = min(total.exponent, c.exponent)
    signed = (-total.magnitude if total.negative else total.magnitude) << (total.exponent - unit)
    signed += (-c.significand if c.negative else c.significand) << (c.exponent - unit)
    rounding = spec.output_rounding
    if signed:
        return finish(signed, unit, d_format, spec, rounding, spec.output_fraction_bits, spec.flush_outputs)
    return _zero(spec, products, c, d_format)


def _zero(spec: Any, products: list[Operand], c: Operand | None, fmt: Format) -> int:
    """A sum that is exactly zero; c is None where it is added later."""
    down = spec.output_rounding == "rd"
    if spec.zero_sign == "positive":
        return zero_bits(False, fmt)
    if (c is not None and c.significand) or any(not product.is_zero for product in products):
        return zero_bits(down, fmt)
    negative, count = sum(x.negative for x in products), max(len(products), spec.terms) + spec.padding
    if spec.zero_sign == "majority":
        return zero_bits(2 * negative > count, fmt)
    minus = c is None or c.negative
    return zero_bits((negative == count and minus) or (down and (negative > 0 or (c is not None and c.negative))), fmt)
