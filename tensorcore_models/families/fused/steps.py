"""Computes one fused operation of FusedDotAdd or ParametricDotAdd, on plain integers or on terms (`p.arithmetic`)."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from ...arithmetic import Number
from ...formats import Format


def step(spec: Any, p: Any) -> Any:
    """Return the code of one fused operation; c is added last if `c_position` is "late"."""
    z, (a_format, b_format, c_format, d_format) = p.arithmetic, p.formats[:4]
    x, y, c = p.x, p.y, p.addend
    if spec.flush_inputs:
        x = [_flushed(spec, z, number, a_format, spec.zero_operand) for number in x]
        y = [_flushed(spec, z, number, b_format, spec.zero_operand) for number in y]
    if spec.flush_inputs or spec.flush_c:
        c = _flushed(spec, z, c, c_format, spec.zero_c)
    products = [z.scaled_product(a, b, s, spec.scaled_zero) for a, b, s in zip(x, y, p.scales, strict=True)]
    products = [z.overflowed(product, spec.product_overflow_exponent) for product in products]
    if spec.normalised_products:
        products = [z.normalised(product) for product in products]
    late = spec.c_position == "late"
    early = [] if late else [c]

    def finite() -> Any:
        pieces = _pieces(spec, z, x, y, products, p.formats)
        if spec.c_position == "exact":
            return _with_exact_c(spec, p, pieces, products, c)
        return _rounded(spec, p, fused_sum(spec, p, pieces, early), [*products, *early], len(products))

    dot = z.unless_special([*products, *early], finite, d_format, spec)
    if not late:
        return dot
    flush, to_inf = spec.flush_outputs, spec.late_rounding == "ro"
    return z.add(dot, d_format, p.c, c_format, d_format, spec, spec.late_rounding, flush, to_inf)


def _flushed(spec: Any, z: Any, x: Any, fmt: Format, zero_rule: str) -> Any:
    """Return an operand, with zero in place of a subnormal number, as `flushed` says."""
    return z.flushed_to_zero(x, fmt, zero_rule) if spec.flushed == "as_zero" else z.flushed(x, fmt.emin)


def _pieces(spec: Any, z: Any, x: Sequence[Any], y: Sequence[Any], products: Sequence[Any], formats: Any) -> list:
    """Return the products, or the products of the parts of their operands' significands, which keep the products' exponents."""
    if not spec.significand_parts:
        return list(products)
    lefts, rights = (part_masks(fmt.precision, spec.significand_parts) for fmt in formats[:2])
    masks = [(left, right) for left in lefts for right in rights]
    return [
        piece for a, b, product in zip(x, y, products, strict=True) for piece in z.part_products(product, a, b, masks)
    ]


def part_masks(precision: int, widths: tuple[int, ...]) -> list[int]:
    """Return the bits of each part of a significand, from the leading one down."""
    ends = [precision - sum(widths[:n]) for n in range(len(widths) + 1)]
    return [(1 << top) - (1 << bottom) for top, bottom in zip(ends, ends[1:], strict=False)]


# -- sums ----------------------------------------------------------------------------------------------------------------
def fused_sum(spec: Any, p: Any, products: Sequence[Any], c: Sequence[Any]) -> Any:
    """Return the unrounded sum of products and c by the alignment of `spec`; None if no addend takes part."""
    z = p.arithmetic
    start, leaves = z.taking_part(c), z.taking_part(products)
    if not start and not leaves:
        return None
    if spec.fraction_bits is None:
        return z.sum_aligned(spec, [*start, *leaves])
    if spec.alignment == "odd_even":
        groups = [z.taking_part(products[parity::2]) for parity in (0, 1)]
        return z.sum_aligned(spec, [*(z.sum_aligned(spec, group) for group in groups if group), *start])
    if spec.alignment == "pairwise":
        p.assume_part(leaves)
        return z.sum_aligned(spec, [*([z.tree_sum(spec, leaves)] if leaves else []), *start])
    if spec.normalise_each_add:
        return reduce(partial(z.normalising_add, spec), [*start, *leaves])
    return z.sum_aligned(spec, [*start, *leaves])


def _with_exact_c(spec: Any, p: Any, pieces: list, products: list, c: Any) -> Any:
    """Return the code of the aligned products plus an exact c; terms have a shorter form (`solver_terms`)."""
    total = fused_sum(spec, p, pieces, [])
    if p.on_terms:
        from .solver_terms import with_exact_c

        assert p.draw == 0
        return with_exact_c(spec, p.formats[3], total, products, c)
    exact = p.arithmetic.exact_sum([c] if total is None else [total, c])
    return _rounded(spec, p, exact, [*products, c], len(products))


def _rounded(spec: Any, p: Any, total: Any, addends: Sequence[Number], products: int) -> Any:
    """Return the code of a rounded sum (None stands for 0) of `products` products and c; `zero_sign` decides a zero's sign."""
    z, fmt = p.arithmetic, p.formats[3]
    nothing = total is None or z.same(total.significand, 0)
    if total is not None and (nothing is False or spec.zero_sign == "positive"):
        return z.rounded_sum(spec, total, fmt, p.draw)
    minus = spec.zero_sign != "positive" and _zero_is_negative(spec, z, addends, products)
    if nothing is True:
        return z.select(minus, fmt.sign_bit if fmt.has_negative_zero else 0, 0, fmt.bits)
    return z.with_zero_sign(total, minus, z.rounded_sum(spec, total, fmt, p.draw), fmt)


def _zero_is_negative(spec: Any, z: Any, addends: Sequence[Number], products: int) -> Any:
    """Return the condition that a sum that is exactly zero is -0; its first addends are the products."""
    down, count = spec.output_rounding == "rd", max(products, spec.terms) + spec.padding
    if spec.zero_sign == "majority":
        minus = z.total([z.select(x.negative, 1, 0) for x in addends[:products]]) * 2 > count
    else:
        minus = z.every(x.negative for x in addends) if products == count else False
        minus = minus | z.some(x.negative for x in addends) if down else minus
    return z.select(z.every(x.is_zero for x in addends), minus, down)
