"""Sums that align their addends to a common exponent, in exact integers: what the algorithms with an alignment share."""

from collections.abc import Sequence
from typing import Protocol

from ..formats import Format
from ..formats.exact_rounding import round_to_bits, shift_right_rounded
from .operands import Operand, multiply, zero_bits


class UnderflowRule(Protocol):
    """The edge rule that says which sign a negative sum has that rounds to zero."""

    @property
    def negative_underflow(self) -> str: ...


def finish(
    total: int,
    exponent: int,
    fmt: Format,
    spec: UnderflowRule,
    rounding: str,
    fraction_bits: int | None = None,
    flush: bool = False,
    random: int = 0,
) -> int:
    """Normalise and round ``total * 2**exponent`` to `fmt`; the exact sum 0 is +0, overflow is infinity."""
    negative = total < 0
    bits = round_to_bits(
        negative, abs(total), exponent, fmt, rounding, overflow_to_inf=True, fraction_bits=fraction_bits, random=random
    )
    if fmt.decode_exact(bits).kind == "nan":  # overflow where there is no infinity; fnuz encodes it as -0
        return bits
    magnitude = bits & fmt.magnitude_mask
    if magnitude == 0 or (flush and magnitude < 1 << (fmt.fraction_bits + fmt.padding_bits)):
        return zero_bits(negative and spec.negative_underflow == "negative", fmt)
    return bits


def aligned(addend: Operand, unit: int, rounding: str) -> int:
    """Signed multiple of 2**unit nearest to the addend under `rounding`."""
    magnitude = shift_right_rounded(addend.significand, unit - addend.exponent, rounding, addend.negative)
    return -magnitude if addend.negative else magnitude


def as_addends(numbers: Sequence[Operand]) -> list[Operand]:
    """The numbers that take part in an alignment."""
    return [x for x in numbers if x.kind == "finite" and x.align is not None]


def largest_exponent(addends: Sequence[Operand], floor: int | None = None) -> int:
    """Alignment exponent of a fused sum of numbers that take part in it."""
    largest = max(x.align for x in addends if x.align is not None)
    return largest if floor is None else max(largest, floor)


def overflowed(product: Operand, limit: int | None) -> Operand:
    """`product`, or an infinity of its sign if it is at or beyond 2**limit."""
    if limit is not None and product.kind == "finite" and product.significand and product.leading >= limit:
        return Operand("inf", product.negative, 0, 0, None)
    return product


def scaled_product(a: Operand, b: Operand, scales: tuple[Operand, ...], scaled_zero: str) -> Operand:
    """Product of two operands and their block scales, exponents added up."""
    product = multiply(a, b)
    skip = bool(scales) and product.is_zero and scaled_zero == "skip"
    for scale in scales:
        product = multiply(product, scale)
    return product._replace(align=None) if skip else product
