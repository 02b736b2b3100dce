"""This module has the operations of special functions on Python's integers: exact and slow, the reference of the kernels.

A condition is a bool, a code an int. :mod:`tensorcore_models.functions.on_terms` has the same names on bit-vectors.
"""

import math
from fractions import Fraction
from operator import add as plus
from operator import eq as same
from operator import lshift as scaled
from operator import lt as less
from operator import mul as product
from operator import mul as times
from operator import not_ as negation
from operator import rshift as cut
from operator import rshift as floored
from operator import rshift as shifted
from operator import sub as minus
from operator import xor as exclusive

from .. import arithmetic
from ..formats import Format, get_float_format
from ..formats.exact_rounding import round_to_bits
from .rules import RULES

__all__ = [
    "cut", "exclusive", "floored", "less", "minus", "negation", "plus", "product", "same", "scaled", "shifted", "times",
]  # fmt: skip

FP32, FP64 = get_float_format("fp32"), get_float_format("fp64")
false = False


# -- integers ------------------------------------------------------------------------------------------------------------
def number(value: int) -> int:
    """Return an integer constant."""
    return value


def bits(code: int, high: int, low: int) -> int:
    """Return bits `high` to `low` of a code, both included."""
    return code >> low & (1 << (high - low + 1)) - 1


def low(x: int, count: int) -> int:
    """Return x modulo 2**count."""
    return x & (1 << count) - 1


def both(*conditions: bool) -> bool:
    """Return the conjunction of conditions."""
    return all(conditions)


def either(*conditions: bool) -> bool:
    """Return the disjunction of conditions."""
    return any(conditions)


def select(condition: bool, x: int, y: int) -> int:
    """Return x where the condition holds, else y."""
    return x if condition else y


choose = select
larger = max


def entry(rows: list[tuple[tuple[int, int, int], ...]], table: int, segment: int) -> tuple[int, int, int]:
    """Return the coefficients of a segment of a table."""
    return rows[table][segment]


def leading(x: int, count: int) -> tuple[int, int]:
    """Return the `count` leading bits of a natural number (0 for 0), and the exponent of the leading bit."""
    places = x.bit_length() - count
    return (x >> places if places >= 0 else x << -places), x.bit_length() - 1


# -- codes ---------------------------------------------------------------------------------------------------------------
def code(value: int, width: int) -> int:
    """Return a constant code of `width` bits."""
    return value


def as_code(x: int, width: int) -> int:
    """Return the code whose bits are those of x, modulo 2**width."""
    return low(x, width)


def encoded(sign: bool, field: int, significand: int, fraction_bits: int) -> int:
    """Return the 32-bit code of a significand with its leading bit; subnormal numbers become 0, overflow infinity."""
    top = (1 << (31 - fraction_bits)) - 1
    if significand == 0 or field <= 0:
        magnitude = 0
    elif field >= top:
        magnitude = top << fraction_bits
    else:
        magnitude = field << fraction_bits | low(significand, fraction_bits)
    return sign << 31 | magnitude


# -- instructions on FP32 codes and words --------------------------------------------------------------------------------
def _decoded(x: int):
    return arithmetic.decode(FP32, x, RULES)


def fma(x: int, y: int, addend: int, rounding: str = "rne") -> int:
    """Return x y + addend by the IEEE rules."""
    terms = (_decoded(x), _decoded(y), _decoded(addend))
    return arithmetic.fma(*terms, FP32, RULES, rounding)


def mul(x: int, y: int) -> int:
    """Return the IEEE product."""
    return arithmetic.product(_decoded(x), _decoded(y), FP32, RULES, "rne")


def add(x: int, y: int) -> int:
    """Return the IEEE sum."""
    return arithmetic.add(x, FP32, y, FP32, FP32, RULES)


def _rounded(negative: bool, value: Fraction) -> int:
    """Return a positive value rounded to nearest even, from enough of its bits, whose last is the OR of the remaining bits."""
    places = 160 + value.denominator.bit_length()
    whole, rest = divmod(value.numerator << places, value.denominator)
    return round_to_bits(negative, whole | (rest != 0), -places, FP32)


def div(x: int, y: int) -> int:
    """Return the IEEE quotient, rounded to nearest even."""
    a, b = _decoded(x), _decoded(y)
    sign = (x ^ y) & 0x80000000
    zeros, infinite = (a.is_zero, b.is_zero), (a.inf, b.inf)
    if a.nan or b.nan or all(zeros) or all(infinite):
        return 0x7FFFFFFF
    if infinite[0] or zeros[1]:
        return sign | 0x7F800000
    if zeros[0] or infinite[1]:
        return sign
    quotient = Fraction(a.significand, b.significand) * Fraction(2) ** (a.exponent - b.exponent)
    return _rounded(sign != 0, quotient)


def square_root(x: int) -> int:
    """Return the IEEE square root, rounded to nearest even."""
    a = _decoded(x)
    if a.is_zero:
        return x
    if a.nan or a.negative:
        return 0x7FFFFFFF
    if a.inf:
        return x
    places = 60 + (a.exponent & 1)
    square = a.significand << places
    root = math.isqrt(square)
    return round_to_bits(False, root << 1 | (root * root != square), (a.exponent - places) // 2 - 1, FP32)


def below(x: int, y: int) -> bool:
    """Return whether x < y for FP32 numbers; False if one is NaN."""
    a, b = _decoded(x), _decoded(y)
    if a.nan or b.nan:
        return False

    def ordered(code: int) -> int:
        return -(code & 0x7FFFFFFF) if code >> 31 else code

    return ordered(x) < ordered(y)


same_codes = same


def word_and(x: int, y: int) -> int:
    """Return the bitwise and."""
    return x & y


def word_or(x: int, y: int) -> int:
    """Return the bitwise or."""
    return x | y


def word_xor(x: int, y: int) -> int:
    """Return the bitwise exclusive or."""
    return x ^ y


def word_add(x: int, y: int) -> int:
    """Return the sum modulo 2**32."""
    return low(x + y, 32)


def word_sub(x: int, y: int) -> int:
    """Return the difference modulo 2**32."""
    return low(x - y, 32)


def shift_left(x: int, places: int) -> int:
    """Return x times 2**places modulo 2**32, for a constant number of places."""
    return low(x << places, 32)


def shift_right(x: int, places: int) -> int:
    """Return x without its last `places` bits, for a constant number of places."""
    return x >> places


def from_integer(x: int) -> int:
    """Return the FP32 number nearest to a two's complement integer."""
    signed = x - (x >> 31 << 32)
    return round_to_bits(signed < 0, abs(signed), 0, FP32) if signed else 0


def product_in_double(x: int, factor: int) -> int:
    """Return a natural number, rounded to FP64, times an FP64 number given by its bits; the FP64 product is rounded to FP32."""
    wide = arithmetic.decode(FP64, round_to_bits(False, x, 0, FP64) if x else 0, RULES)
    product = arithmetic.product(wide, arithmetic.decode(FP64, factor, RULES), FP64, RULES, "rne")
    return converted(product, FP64, FP32)


def converted(x: int, given: Format, wanted: Format, rounding: str = "rne") -> int:
    """Return a code converted to another format; NaN has all bits set except the sign."""
    terms = (arithmetic.decode(given, x, RULES), _decoded(0x3F800000), _decoded(0x80000000))
    return arithmetic.fma(*terms, wanted, RULES, rounding)


def joined(upper: int, lower: int, width: int) -> int:
    """Return the code with `upper` above the `width` bits of `lower`."""
    return upper << width | lower
