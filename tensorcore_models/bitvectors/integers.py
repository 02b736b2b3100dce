"""This module computes with integers of known range as bit-vectors; no result overflows, as it is as wide as its range.

An :class:`Int` is a two's complement term with the least and the greatest value that it can have. Results that the ranges
decide (comparisons, shifts beyond the width, constants) are computed while the term is built. With this module
:mod:`tensorcore_models.arithmetic` works on `Int` as on plain integers; a plain integer is a constant everywhere.
"""

import sys
from collections.abc import Sequence
from typing import Any

from ..arithmetic import operations
from . import terms as t
from .terms import Condition, Term


def width_of(low: int, high: int) -> int:
    """Return how many bits a two's complement number from `low` to `high` needs."""
    return max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0) + 1


class Int:
    """`Int` is an integer from `low` to `high`; `term` is its two's complement, `width_of(low, high)` bits wide."""

    __slots__ = ("high", "low", "term")

    def __init__(self, term: Term, low: int, high: int):
        self.term, self.low, self.high = term, low, high

    @property
    def width(self) -> int:
        return self.term.width

    def __add__(self, other: "Whole") -> "Int":
        return plus(self, whole(other))

    def __sub__(self, other: "Whole") -> "Int":
        return minus(self, whole(other))

    def __rsub__(self, other: "Whole") -> "Int":
        return minus(whole(other), self)

    def __mul__(self, other: "Whole") -> "Int":
        return times(self, whole(other))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "Int":
        return negated(self)

    def __lshift__(self, places: int) -> "Int":
        return scaled(self, places)

    def __rshift__(self, places: int) -> "Int":
        return natural(t.extract(self.term, self.width - 2, places)) if places < self.width - 1 else number(0)

    def __and__(self, mask: int) -> "Int":
        width = mask.bit_length()
        bits = as_bits(self, width)
        return natural(bits if mask + 1 == 1 << width else t.bits_and(bits, t.constant(mask, width)))

    def __lt__(self, other: "Whole") -> Condition:
        return t.truth(less(self, whole(other)))

    def __gt__(self, other: "Whole") -> Condition:
        return t.truth(less(whole(other), self))

    def __le__(self, other: "Whole") -> Condition:
        return t.truth(at_most(self, whole(other)))

    def __ge__(self, other: "Whole") -> Condition:
        return t.truth(at_most(whole(other), self))


Whole = Int | int


def whole(x: Whole) -> Int:
    """Return x as an `Int`: a plain integer becomes a constant."""
    return number(x) if isinstance(x, int) else x


def number(value: int) -> Int:
    """Return a plain integer as a constant `Int`."""
    return Int(t.constant(value, width_of(value, value)), value, value)


def ranged(term: Term, low: int, high: int) -> Int:
    """Return a two's complement term known to lie within `low` to `high` as an `Int`, in the width of this range."""
    width = width_of(low, high)
    if low == high:
        return number(low)
    return Int(t.extract(term, width - 1, 0) if width <= term.width else t.sign_extended(term, width), low, high)


def natural(bits: Term | Int, high: int | None = None) -> Int:
    """Return an unsigned term, which is at most `high` if given, as an `Int`; an `Int` stays as it is."""
    if isinstance(bits, Int):
        return bits
    most = (1 << bits.width) - 1
    return ranged(t.zero_extended(bits, bits.width + 1), 0, most if high is None else min(high, most))


def as_code(x: Any, width: int) -> Term:
    """Return a code of `width` bits: a term has this width already, an integer is brought to it."""
    return x if isinstance(x, Term) else as_bits(x, width)


def as_bits(x: Int, width: int) -> Term:
    """Return the two's complement term of x with `width` bits (modulo 2**width)."""
    x = whole(x)
    return t.extract(x.term, width - 1, 0) if width <= x.width else t.sign_extended(x.term, width)


def _extended(x: Int, y: Int) -> tuple[Term, Term]:
    width = max(x.width, y.width)
    return t.sign_extended(x.term, width), t.sign_extended(y.term, width)


def plus(x: Int, y: Int) -> Int:
    x, y = whole(x), whole(y)
    low, high = x.low + y.low, x.high + y.high
    width = max(width_of(low, high), x.width, y.width)
    return ranged(t.added(t.sign_extended(x.term, width), t.sign_extended(y.term, width)), low, high)


def negated(x: Int) -> Int:
    x = whole(x)
    width = max(width_of(-x.high, -x.low), x.width)
    return ranged(t.negative(t.sign_extended(x.term, width)), -x.high, -x.low)


def minus(x: Int, y: Int) -> Int:
    return plus(x, negated(y))


def times(x: Int, y: Int) -> Int:
    """Return the product of two natural numbers."""
    x, y = whole(x), whole(y)
    high = x.high * y.high
    width = max(width_of(0, high), x.width, y.width)
    return ranged(t.multiplied(t.sign_extended(x.term, width), t.sign_extended(y.term, width)), 0, high)


def scaled(x: Int, places: int) -> Int:
    """Return x * 2**places, places >= 0."""
    x = whole(x)
    if places == 0:
        return x
    return ranged(t.joined(x.term, t.constant(0, places)), x.low << places, x.high << places)


def less(x: Int, y: Int) -> Term:
    """Return whether x < y."""
    x, y = whole(x), whole(y)
    if x.high < y.low:
        return t.TRUE
    if x.low >= y.high:
        return t.FALSE
    return t.below_signed(*_extended(x, y))


def at_most(x: Int, y: Int) -> Term:
    """Return whether x <= y."""
    return t.negation(less(y, x))


def same(x: Int, y: Int) -> Term:
    """Return whether x = y."""
    x, y = whole(x), whole(y)
    if x.high < y.low or y.high < x.low:
        return t.FALSE
    return t.equal(*_extended(x, y))


def is_zero(x: Int) -> Term:
    return same(x, number(0))


def select(condition: Condition, x: Any, y: Any, width: int = 0) -> Any:
    """Return x where the condition holds, else y: integers, truth values, or codes of `width` bits."""
    condition = t.condition(condition)
    if condition is t.TRUE:
        return x
    if condition is t.FALSE:
        return y
    if width:
        return t.choose(condition, as_code(x, width), as_code(y, width))
    if isinstance(x, Term | bool):
        return t.truth(t.choose(condition, t.condition(x), t.condition(y)))
    x, y = whole(x), whole(y)
    low, high = min(x.low, y.low), max(x.high, y.high)
    return ranged(t.choose(condition, *_extended(x, y)), low, high)


def larger(x: Int, y: Int) -> Int:
    """Return the larger of x and y."""
    x, y = whole(x), whole(y)
    if x.low >= y.high:
        return x
    if y.low >= x.high:
        return y
    chosen = select(less(x, y), y, x)
    return ranged(chosen.term, max(x.low, y.low), max(x.high, y.high))


def smaller(x: Int, y: Int) -> Int:
    """Return the smaller of x and y."""
    return negated(larger(negated(x), negated(y)))


def magnitude(x: Int) -> Int:
    """Return |x|."""
    x = whole(x)
    if x.low >= 0:
        return x
    absolute = select(less(x, number(0)), negated(x), x)
    return ranged(absolute.term, 0, max(x.high, -x.low))


def with_sign(is_negative: Term, x: Int) -> Int:
    """Return -x where the truth value holds, else x."""
    return select(is_negative, negated(x), x)


def _shift_amount(amount: Int, width: int) -> Term:
    """Return a natural `amount` as a term of `width` bits; an amount above `width` becomes `width`."""
    cut = number(width) if amount.low >= width else amount
    if cut.high > width:
        cut = ranged(select(less(number(width), cut), number(width), cut).term, min(cut.low, width), width)
    return as_bits(cut, width)


def shifted_left(x: Int, amount: Int) -> Int:
    """Return x * 2**amount for a natural amount, exactly and as wide as the largest amount needs."""
    x, amount = whole(x), whole(amount)
    if amount.low == amount.high:
        return scaled(x, amount.low)
    low, high = min(x.low, x.low << amount.high), max(x.high, x.high << amount.high)
    width = max(width_of(low, high), amount.high.bit_length() + 1)
    return ranged(t.shifted_left(t.sign_extended(x.term, width), as_bits(amount, width)), low, high)


def shifted_right(x: Int, amount: Int, rounding: str = "rz", is_negative: Term = t.FALSE) -> Int:
    """Return a magnitude x / 2**amount (both natural), rounded to an integer as `shift_right_rounded` does; "sr" is refused."""
    x, amount = whole(x), whole(amount)
    if amount.high <= 0:
        return x
    spare = 0 if rounding == "rz" else 1  # keep one more bit: the first bit that is cut off
    wide = scaled(x, spare)
    by = _shift_amount(amount, wide.width)
    shifted = t.shifted_right(wide.term, by)
    high = x.high >> max(amount.low, 0)
    if not spare:
        return ranged(shifted, 0, high)
    kept = ranged(t.extract(shifted, wide.width - 1, 1), 0, high)
    half = t.bit(shifted, 0)
    rest = t.negation(t.equal(t.shifted_left(shifted, by), wide.term))
    odd = t.bit(kept.term, 0)
    if rounding == "ro":
        width = width_of(0, high | 1)
        last = t.choose(t.either(half, rest), t.constant(1, width), t.constant(0, width))
        return ranged(t.bits_or(as_bits(kept, width), last), 0, high | 1)
    up = {
        "rne": t.both(half, t.either(rest, odd)),
        "rna": half,
        "ra": t.either(half, rest),
        "rnu": t.both(half, t.either(rest, t.negation(is_negative))),
        "rnd": t.both(half, t.either(rest, is_negative)),
        "rnz": t.both(half, rest),
        "rno": t.both(half, t.either(rest, t.negation(odd))),
        "ru": t.both(t.either(half, rest), t.negation(is_negative)),
        "rd": t.both(t.either(half, rest), is_negative),
    }[rounding]
    return plus(kept, select(up, number(1), number(0)))


def normalised(x: Int) -> tuple[Term, Int]:
    """Return a natural number shifted left until the highest of its `width - 1` bits is 1 (0 stays 0), and the places."""
    width = x.width - 1
    bits = t.extract(x.term, width - 1, 0) if width else t.constant(0, 1)
    width, places = bits.width, number(0)
    step = 1 << max(width - 1, 1).bit_length() - 1 if width > 1 else 0
    while step:
        empty = t.negation(t.any_bit(t.extract(bits, width - 1, width - step)))
        bits = t.choose(empty, t.shifted_left(bits, t.constant(step, width)), bits)
        places = plus(places, select(empty, number(step), number(0)))
        step >>= 1
    return bits, places


def fits(x: Int, bits: int) -> Term:
    """Return whether x fits in a two's complement number of `bits` bits."""
    half = 1 << (bits - 1)
    return t.both(at_most(number(-half), x), less(x, number(half)))


# -- the remaining functions of :mod:`tensorcore_models.arithmetic.operations` ---------------------------------------------
def seldom(condition: Condition) -> Condition:
    """Return the condition unchanged, because a term covers all cases."""
    return condition


def total(addends: Sequence[Whole]) -> Int:
    """Add in the order given, every addition as wide as the result, because solvers know that such additions commute."""
    found = [whole(x) for x in addends]
    low, high = sum(x.low for x in found), sum(x.high for x in found)
    width = max(width_of(low, high), *(x.width for x in found))
    result = t.constant(0, width)
    for x in found:
        result = t.added(result, t.sign_extended(x.term, width))
    return ranged(result, low, high)


def with_leading_bit(x: Int) -> tuple[Int, int, Int]:
    """Return :func:`normalised` of x with the index of the highest bit between the number and the places."""
    bits, places = normalised(x)
    return natural(bits), bits.width - 1, places


def wrapped(x: Int, width: int) -> Int:
    """Return x modulo 2**width as a two's complement number of `width` bits."""
    return ranged(as_bits(x, width), -1 << (width - 1), (1 << (width - 1)) - 1)


def joined(negative: Condition, magnitude: Whole | Term, width: int, padding: int, signed: bool) -> Term:
    """Join a sign (if `signed`), a magnitude modulo the bits that remain, and `padding` zeros to a code of `width` bits."""
    code = as_code(magnitude, width - padding - signed)
    if padding:
        code = t.joined(code, t.constant(0, padding))
    return t.joined(t.choose(negative, t.constant(1, 1), t.constant(0, 1)), code) if signed else code


operations.interpret(sys.modules[__name__], Term, Int)
