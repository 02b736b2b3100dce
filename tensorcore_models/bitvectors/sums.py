"""Sums of numbers that are aligned to a common exponent, as terms: the twin of `reference.aligned`."""

from collections.abc import Sequence
from typing import Any

from ..formats import Format
from . import integers as z
from . import numbers as n
from . import terms as t
from .integers import Int
from .numbers import Number
from .terms import Term


def exact_sum(numbers: Sequence[Number]) -> tuple[Int, Int]:
    """Sum of numbers and its exponent, nothing cut off."""
    lowest = min(x.align.low - x.point for x in numbers)
    addends = []
    for x in numbers:
        up = z.minus(x.align, z.number(x.point + lowest))
        addends.append(z.with_sign(x.negative, z.shifted_left(x.significand, up)))
    return n.total_of(addends), z.number(lowest)


def _wrapped(total: Int, integer_bits: int | None, fraction_bits: int) -> Int:
    """`total` in two's complement with `integer_bits` bits above the point."""
    if integer_bits is None:
        return total
    half = 1 << (integer_bits + fraction_bits)
    if -half <= total.low and total.high < half:
        return total
    return z.ranged(z.as_bits(total, integer_bits + fraction_bits + 1), -half, half - 1)


def sum_aligned(spec: Any, numbers: Sequence[Number], fraction_bits: int, largest: Int | None = None) -> Number:
    """One alignment of all addends (to `largest`, if given), summed exactly; the result keeps the alignment exponent."""
    if largest is None:
        largest = n.largest_exponent(numbers, spec.exponent_floor)
    kept, rounding = (fraction_bits + 1, "ro") if spec.sticky else (fraction_bits, spec.alignment_rounding)
    total = _wrapped(n.total_of([n.aligned(x, largest, kept, rounding) for x in numbers]), spec.integer_bits, kept)
    return as_number(total, largest, kept, t.either(*(x.part for x in numbers)))


def as_number(total: Int, largest: Int, point: int, part: Term) -> Number:
    """A signed sum in units of 2^(largest - point), which keeps its alignment exponent."""
    return n.plain(z.less(total, z.number(0)), z.magnitude(total), largest, point, part)


def rounded_sum(spec: Any, total: Number, fmt: Format, draw: int = 0) -> Term:
    """The sum in the output format; no term is rounded stochastically."""
    signed = z.with_sign(total.negative, total.significand)
    exponent = z.minus(total.align, z.number(total.point))
    return n.finish(signed, exponent, fmt, spec, spec.output_rounding, spec.output_fraction_bits, spec.flush_outputs)


def taking_part(numbers: Sequence[Number]) -> list[Number]:
    """The numbers that can take part in an alignment."""
    return [x for x in numbers if x.part is not t.FALSE]


def scaled_product(a: Number, b: Number, scales: tuple[Number, ...], scaled_zero: str) -> Number:
    """Product of two operands and their block scales, exponents added up."""
    product = n.multiply(a, b)
    skip = bool(scales) and scaled_zero == "skip"
    part = t.both(product.part, t.negation(product.is_zero)) if skip else product.part
    for scale in scales:
        product = n.multiply(product, scale)
    return product._replace(part=t.both(part, product.part))
