"""Encodes exact values, as one number or as two factors."""

from fractions import Fraction
from functools import cache

from ..formats import Format
from ..formats.exact_rounding import round_to_bits

Factors = tuple[Fraction, Fraction]
Product = Fraction | Factors


class Unreachable(ValueError):
    """Unreachable is raised for a value that the formats do not have."""


ONE = Fraction(1)


@cache
def power(exponent: int) -> Fraction:
    """Return 2 to an integer power."""
    return Fraction(2) ** exponent


def leading_exponent(value: Fraction) -> int:
    """Return the exponent of the leading bit of a nonzero dyadic number."""
    return abs(value.numerator).bit_length() - value.denominator.bit_length()


def encode_value(value: Fraction, fmt: Format) -> int:
    """Return the encoding of a value in `fmt`; raises Unreachable if `fmt` does not have it."""
    bits = encoding_of(value, fmt)
    if bits is None:
        raise Unreachable(f"{fmt.name} does not have the number {value}: choose another one")
    return bits


@cache
def encoding_of(value: Fraction, fmt: Format) -> int | None:
    """Return the encoding of a value in `fmt`, None if `fmt` does not have it."""
    if value == 0:
        return 0
    exponent = -(value.denominator.bit_length() - 1)
    try:
        bits = round_to_bits(value < 0, abs(value.numerator), exponent, fmt, "rz")
    except (OverflowError, ValueError):
        return None
    return bits if decode_value(bits, fmt) == value else None


def hex_text(value: float | Fraction) -> str:
    """Return a number in C's hexadecimal notation, without zeros at the end of its fraction.

    >>> hex_text(-0.75), hex_text(2.0**-24), hex_text(0.0)
    ('-0x1.8p-1', '0x1p-24', '0x0p+0')
    """
    digits, _, exponent = float(value).hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}"


def decode_value(bits: int, fmt: Format) -> Fraction | None:
    """Return the value of an encoding, None for infinities and NaN; -0 is 0."""
    kind, negative, significand, exponent = fmt.decode_exact(bits)
    if kind != "finite":
        return None
    value = significand * power(exponent)
    return -value if negative else value


@cache
def factors(value: Fraction, a_format: Format, b_format: Format) -> tuple[int, int]:
    """Return encodings of two operands whose product is `value`: one has its significand, the other is a power of two.

    The exponent is split evenly. Normal operands are preferred, so that the product has the exponent of its value. Raises
    Unreachable if the formats do not have such operands.
    """
    if value == 0:
        return 0, 0
    lead = leading_exponent(value)
    significand = value / power(lead)
    found = []
    for share in sorted(
        range(lead - b_format.emax, lead - b_format.quantum_exponent + 1), key=lambda i: abs(2 * i - lead)
    ):
        for swap in (False, True):
            one, other = (ONE, significand) if swap else (significand, ONE)
            a, b = one * power(share), other * power(lead - share)
            first, second = encoding_of(a, a_format), encoding_of(b, b_format)
            if first is None or second is None:
                continue
            if leading_exponent(a) >= a_format.emin and leading_exponent(b) >= b_format.emin:
                return first, second
            found.append((first, second))
    if not found:
        raise Unreachable(f"no product of {a_format.name} and {b_format.name} is {value}: choose another value")
    return found[0]


def reaches(value: Fraction, a_format: Format, b_format: Format) -> bool:
    """Return whether :func:`factors` finds operands whose product is `value`."""
    try:
        factors(value, a_format, b_format)
    except Unreachable:
        return False
    return True


def product_bits(product: Product, scale: int, a_format: Format, b_format: Format) -> tuple[int, int]:
    """Return encodings of two operands whose product is `product`, a value or two factors, times 2**scale."""
    if isinstance(product, Fraction):
        return factors(product * power(scale), a_format, b_format)
    x, y = product
    for share in sorted(range(-abs(scale), abs(scale) + 1), key=lambda i: abs(2 * i - scale)):
        first, second = encoding_of(x * power(share), a_format), encoding_of(y * power(scale - share), b_format)
        if first is not None and second is not None:
            return first, second
    raise Unreachable(
        f"{a_format.name} and {b_format.name} have no operands with {x} * {y} * 2**{scale}: choose another scale"
    )


#: Exponents of scales that are tried, those nearest to scale 1 first.
SCALES = tuple(sorted(range(-60, 61), key=lambda s: (abs(s), -s)))
