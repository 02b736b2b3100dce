"""This module has the operations of special functions on bit-vectors for solvers.

Their names are those of :mod:`tensorcore_models.functions.on_integers`. A condition is a term of width 0, a code is a term with
the bits of its format, an integer is an :class:`~tensorcore_models.bitvectors.integers.Int`.
"""

from ..arithmetic import numbers as n
from ..arithmetic.sums import ieee_sum
from ..bitvectors import integers as z
from ..bitvectors import terms as t
from ..bitvectors.integers import Int, larger, less, minus, number, plus, same, scaled, select, times
from ..bitvectors.integers import shifted_right as shifted
from ..bitvectors.passes import Unencodable
from ..bitvectors.terms import Term, both, choose, either, exclusive, negation
from ..bitvectors.terms import bits_and as word_and
from ..bitvectors.terms import bits_or as word_or
from ..bitvectors.terms import bits_xor as word_xor
from ..bitvectors.terms import equal as same_codes
from ..formats import Format, get_float_format
from .rules import RULES

__all__ = [
    "both", "choose", "either", "exclusive", "larger", "less", "minus", "negation", "number", "plus", "same", "same_codes",
    "scaled", "select", "shifted", "times", "word_and", "word_or", "word_xor",
]  # fmt: skip

FP32, FP64 = get_float_format("fp32"), get_float_format("fp64")
false = t.FALSE


# -- integers ------------------------------------------------------------------------------------------------------------
def bits(code: Term, high: int, low: int) -> Int:
    """Return bits `high` to `low` of a code, both included."""
    return z.natural(t.extract(code, high, low))


def low(x: Int, count: int) -> Int:
    """Return x modulo 2**count."""
    return z.natural(z.as_bits(x, count)) if count else number(0)


def floored(x: Int, places: int) -> Int:
    """Return x / 2**places rounded down, for a constant number of places."""
    if x.width <= places:
        return select(less(x, number(0)), number(-1), number(0))
    return z.ranged(t.extract(x.term, x.width - 1, places), x.low >> places, x.high >> places)


cut = floored


def product(x: Int, y: Int) -> Int:
    """Return the product of a natural number and an integer."""
    ends = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    width = max(z.width_of(min(ends), max(ends)), x.width, y.width)
    return z.ranged(t.multiplied(t.sign_extended(x.term, width), t.sign_extended(y.term, width)), min(ends), max(ends))


def _looked_up(values: list[int], index: Int, bit: int) -> Int:
    """Return the one of 2**(bit + 1) constants that the last bits of an index select."""
    if len(values) == 1:
        return number(values[0])
    half = len(values) // 2
    upper, lower = _looked_up(values[half:], index, bit - 1), _looked_up(values[:half], index, bit - 1)
    return select(same(low(floored(index, bit), 1), number(1)), upper, lower)


def entry(rows: list[tuple[tuple[int, int, int], ...]], table: Int, segment: Int) -> tuple[Int, Int, Int]:
    """Return the coefficients of a segment of a table."""
    found = []
    for column in range(3):
        value = number(0)
        for index, entries in enumerate(rows):
            values = [row[column] for row in entries]
            here = _looked_up(values, segment, len(values).bit_length() - 2)
            value = here if index == 0 else select(same(table, number(index)), here, value)
        found.append(value)
    return found[0], found[1], found[2]


def leading(x: Int, count: int) -> tuple[Int, Int]:
    """Return the `count` leading bits of a natural number (0 for 0), and the exponent of the leading bit."""
    wide = scaled(x, max(count + 1 - x.width, 0))
    shifted_bits, places = z.normalised(wide)
    first = minus(number(shifted_bits.width - 1 - (wide.width - x.width)), places)
    return bits(shifted_bits, shifted_bits.width - 1, shifted_bits.width - count), first


# -- codes ---------------------------------------------------------------------------------------------------------------
def code(value: int, width: int) -> Term:
    """Return a constant code of `width` bits."""
    return t.constant(value, width)


def as_code(x: Int, width: int) -> Term:
    """Return the code whose bits are those of x, modulo 2**width."""
    return z.as_bits(x, width)


def encoded(sign: Term, field: Int, significand: Int, fraction_bits: int) -> Term:
    """Return the 32-bit code of a significand with its leading bit; subnormal numbers become 0, overflow infinity."""
    exponent_bits = 31 - fraction_bits
    top = (1 << exponent_bits) - 1
    magnitude = t.joined(z.as_bits(field, exponent_bits), z.as_bits(significand, fraction_bits))
    magnitude = choose(less(field, number(top)), magnitude, t.constant(top << fraction_bits, 31))
    nothing = either(z.is_zero(significand), less(field, number(1)))
    magnitude = choose(nothing, t.constant(0, 31), magnitude)
    return t.joined(choose(sign, t.constant(1, 1), t.constant(0, 1)), magnitude)


# -- instructions on FP32 codes and words --------------------------------------------------------------------------------
def fma(x: Term, y: Term, addend: Term, rounding: str = "rne") -> Term:
    """Return x y + addend by the IEEE rules."""
    terms = [n.multiply(_decoded(x), _decoded(y)), _decoded(addend)]
    return ieee_sum(terms, FP32, RULES, rounding)


def _decoded(x: Term) -> n.Number:
    return n.decode(FP32, x, RULES)


def mul(x: Term, y: Term) -> Term:
    """Return the IEEE product."""
    sign = t.bits_and(t.bits_xor(x, y), t.constant(1 << 31, 32))
    return fma(x, y, sign)  # a zero of the product's sign changes nothing


def add(x: Term, y: Term) -> Term:
    """Return the IEEE sum."""
    return ieee_sum([_decoded(x), _decoded(y)], FP32, RULES, "rne")


def div(x: Term, y: Term) -> Term:
    """Raise Unencodable, because an IEEE quotient has no terms."""
    raise Unencodable("an IEEE division has no encoding for solvers")


def square_root(x: Term) -> Term:
    """Raise Unencodable, because an IEEE square root has no terms."""
    raise Unencodable("an IEEE square root has no encoding for solvers")


def below(x: Term, y: Term) -> Term:
    """Return whether x < y for FP32 numbers; false if one is NaN."""

    def ordered(code: Term) -> Int:
        return z.with_sign(t.bit(code, 31), z.natural(t.extract(code, 30, 0)))

    infinity = number(0x7F800000)
    numbers = [z.at_most(z.natural(t.extract(code, 30, 0)), infinity) for code in (x, y)]
    return both(*numbers, less(ordered(x), ordered(y)))


def word_add(x: Term, y: Term) -> Term:
    """Return the sum modulo 2**32."""
    return t.added(x, y)


def word_sub(x: Term, y: Term) -> Term:
    """Return the difference modulo 2**32."""
    return t.added(x, t.negative(y))


def shift_left(x: Term, places: int) -> Term:
    """Return x times 2**places modulo 2**32, for a constant number of places."""
    return t.shifted_left(x, t.constant(places, 32))


def shift_right(x: Term, places: int) -> Term:
    """Return x without its last `places` bits, for a constant number of places."""
    return t.shifted_right(x, t.constant(places, 32))


def from_integer(x: Term) -> Term:
    """Return the FP32 number nearest to a two's complement integer."""
    signed = z.ranged(x, -(1 << 31), (1 << 31) - 1)
    return n.finish(signed, number(0), FP32, RULES, "rne")


def product_in_double(x: Int, factor: int) -> Term:
    """Return a natural number, rounded to FP64, times an FP64 number given by its bits; the FP64 product is rounded to FP32."""
    wide = n.decode(FP64, n.finish(x, number(0), FP64, RULES, "rne"), RULES)
    constant, zero = (n.decode(FP64, t.constant(value, 64), RULES) for value in (factor, 0))
    return converted(ieee_sum([n.multiply(wide, constant), zero], FP64, RULES, "rne"), FP64, FP32)


def converted(x: Term, given: Format, wanted: Format, rounding: str = "rne") -> Term:
    """Return a code converted to another format; NaN has all bits set except the sign."""
    one, zero = _decoded(t.constant(0x3F800000, 32)), _decoded(t.constant(0x80000000, 32))
    return ieee_sum([n.multiply(n.decode(given, x, RULES), one), zero], wanted, RULES, rounding)


def joined(upper: Term, lower: Term, width: int) -> Term:
    """Return the code with `upper` above the `width` bits of `lower`."""
    return t.joined(upper, lower)
