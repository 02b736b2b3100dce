"""Lemmas: the 32-bit lanes (`narrow_lanes.h`) round dot product and c down, with one lemma for each step of `narrow_down`.

Products and their sums are those of a fused dot-add (:mod:`.narrow_lemmas`, lemmas 1, 2, 4 and 8). AVX2 and AVX-512 round by
other instructions inside of the operations, whose contracts are the same (tests/operations).
"""

from tensorcore_models.accumulators import FusedDotRoundDownAdd
from tensorcore_models.arithmetic import numbers as n
from tensorcore_models.arithmetic.sums import rounded_down
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.integers import Int
from tensorcore_models.bitvectors.terms import Term

from . import machine as m
from .lemmas import Goal, Lemma
from .machine import FP32
from .narrow_lemmas import LOWEST, free_integer

#: Exponents from which on c is left to the generic kernel.
_FARTHEST = 100


def shifted_down(x: Term, amount: Term) -> Term:
    """Return x >> amount of an int32, as CPUs compute it, with copies of the sign."""
    sign = t.choose(t.bit(x, 31), t.constant(0xFFFFFFFF, 32), t.constant(0, 32))
    return t.bits_xor(t.shifted_right(t.bits_xor(x, sign), amount), sign)


def smaller(x: Term, y: Term) -> Term:
    return t.choose(t.below(x, y), x, y)


def subtracted(x: Term, y: Term) -> Term:
    return t.added(x, t.negative(y))


def word(value: int) -> Term:
    return t.constant(value, 32)


# -- the steps of narrow_down --------------------------------------------------------------------------------------------
def parts(total: Term, distance: Term, guard: int) -> tuple[Term, Term]:
    """Return `right(total, distance)` and `low` of narrow_down."""
    far = t.choose(t.below(word(25), distance), subtracted(distance, word(25)), word(0))
    near = subtracted(distance, far)
    rest = shifted_down(total, smaller(far, word(31)))
    low = t.shifted_left(t.shifted_left(rest, subtracted(word(31), near)), word(1))
    low = t.shifted_right(t.shifted_right(low, word(31 - guard)), word(1))
    return shifted_down(total, smaller(distance, word(31))), low


def addend(bits: Term, top: Int, fraction_bits: int) -> Int:
    """Compute the operation `floored` of operations_plain.h; (float)cut is above x where x is negative and no integer."""
    x = m.times_power(bits, z.minus(z.number(fraction_bits), top), FP32)
    cut = m.to_int32(x)
    back = m.value_of(FP32, m.from_int32(cut))
    above = t.both(t.bit(x, 31), t.negation(m.same_value(back, m.value_of(FP32, x))))
    return z.minus(cut, z.select(above, z.number(1), z.number(0)))


def result(high: Int, low: Int, top: Int, fraction_bits: int, guard: int, whole: int) -> Term:
    """Return `madd(coarse, finer, fine)` times the unit: the sum of two float32 numbers, rounded once."""
    high32, low32 = z.as_bits(high, 32), z.as_bits(low, 32)
    size = t.bits_xor(high32, shifted_down(high32, word(31)))
    lost = t.shifted_right(size, word(whole))
    kept = t.choose(t.below(lost, t.bits_and(low32, t.inverted(lost))), low32, word(0))
    coarse = t.bits_and(high32, word(0xFFFFFF00))
    fine = t.bits_or(t.bits_and(t.shifted_left(high32, word(guard)), word(255 << guard)), kept)
    parts = (z.ranged(t.sign_extended(x, 32), -(1 << 31), (1 << 31) - 1) for x in (coarse, fine))
    first, second = parts
    units = m.from_int32(z.plus(z.scaled(first, guard), second), "rne")
    return m.times_power(units, z.minus(top, z.number(fraction_bits + guard)), FP32)


# -- the lemmas --------------------------------------------------------------------------------------------------------------
def parts_are_floors(bound: int, guard: int) -> Lemma:
    """Return lemma 1: the parts are floors."""

    def goal() -> Goal:
        total, premises = free_integer("total", -bound, bound)
        distance, more = free_integer("distance", 0, 255)
        high, low = parts(z.as_bits(total, 32), z.as_bits(distance, 32), guard)
        found = t.joined(high, t.extract(low, guard - 1, 0))
        negative = z.less(total, z.number(0))
        floor = z.with_sign(negative, z.shifted_right(z.scaled(z.magnitude(total), guard), distance, "rd", negative))
        inside = t.equal(t.shifted_right(low, word(guard)), word(0))
        return Goal((*premises, *more), t.both(inside, t.equal(found, z.as_bits(floor, 32 + guard))))

    return Lemma(
        f"down 1, sums to {bound}, {guard} guard bits",
        "high and low are the dot product's units at the largest exponent, with guard bits, rounded down, at any distance",
        goal=goal,
    )


def addend_is_floor(fraction_bits: int) -> Lemma:
    """Return lemma 2: the addend is a floor."""

    def goal() -> Goal:
        bits = t.variable("c", 32)
        c = m.value_of(FP32, bits)
        top, premises = free_integer("top", LOWEST, _FARTHEST)
        usable = t.both(z.at_most(z.number(LOWEST), c.align), z.at_most(c.align, top))
        premises += [t.either(usable, t.negation(t.any_bit(t.extract(bits, 30, 0))))]
        return Goal(tuple(premises), z.same(addend(bits, top, fraction_bits), n.cut(c, top, fraction_bits, "rd")))

    return Lemma(
        f"down 2, F = {fraction_bits}", "c scaled, converted and mended is c rounded down to its unit", goal=goal
    )


def result_is_rounded_once(bound: int, fraction_bits: int, guard: int, sum_bits: int | None) -> Lemma:
    """Return lemma 3: the result is rounded once."""

    def goal() -> Goal:
        high, premises = free_integer("high", -bound, bound)
        low, second = free_integer("low", 0, (1 << guard) - 1)
        top, third = free_integer("top", LOWEST, _FARTHEST)
        whole = 31 if sum_bits is None else min(31, sum_bits - guard + 1)
        found = result(high, low, top, fraction_bits, guard, whole)
        total, exponent = z.plus(z.scaled(high, guard), low), z.minus(top, z.number(fraction_bits + guard))
        if sum_bits is not None:
            total, exponent = rounded_down(total, exponent, sum_bits)
        expected = n.finish(total, exponent, FP32, FusedDotRoundDownAdd(), "rne")
        return Goal((*premises, *second, *third), t.equal(found, expected))

    return Lemma(
        f"down 3, |high| to {bound}, F = {fraction_bits}, {guard} guard bits, sum to {sum_bits} bits",
        "the float32 of narrow_down is the total rounded down to its bits, then to nearest even",
        goal=goal,
    )
