"""Lemmas: the 64-bit lanes (`wide_lanes.h`) compute a fused dot-add into fp32, a lemma for each step.

The steps are those of `wide_fda` and `wide_sums`. The lemmas use the contracts of `operations.h`, and so hold for every
instruction set.

All lemmas but the last two are independent of the operand formats: they hold for any product of two significands of up
to 24 bits.
"""

from tensorcore_models.accumulators import FusedDotAdd
from tensorcore_models.arithmetic import numbers as n
from tensorcore_models.arithmetic.numbers import Number
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.integers import Int
from tensorcore_models.bitvectors.terms import Term

from . import machine as m
from .lemmas import Goal, Lemma
from .machine import FP32, FP64
from .narrow_lemmas import free_integer

_SIGNIFICAND = 24
_SUM = (1 << 51) - 1  # sums stay below 2^51 units
#: Alignment exponents of products of bf16, tf32 or fp32 operands, and of c, and beyond.
_EXPONENTS = (-300, 256)
_WORD_BIAS, _LOWEST_BIAS, _LOWEST_OF_ZERO = 1023, 1024, 4096


def _with_magic(units: Int) -> Term:
    """Return the double 1.5 * 2^52 + units, in units; its encoding has the exponent of 2^52 and the rest as fraction."""
    fraction = z.as_bits(z.plus(units, z.number(1 << 51)), 52)
    return t.joined(t.constant(FP64.bias + 52, 12), fraction)


def _free_sum() -> tuple[Int, list[Term]]:
    return free_integer("sum", -_SUM, _SUM)


def _free_product(bits: int) -> tuple[Number, list[Term]]:
    """Return a number of so many bits in units, below 2^50 of them and arbitrarily small."""
    significand, first = free_integer("significand", 0, (1 << bits) - 1)
    align, second = free_integer("align", -1000, 49)
    return n.plain(t.variable("negative", t.BOOL), significand, align, bits - 1), first + second


def _floor(x: Number) -> Int:
    """Return the largest integer not above x."""
    return n.cut(x, z.number(50), 50, "rd")


def adding_rounds_down(bits: int) -> Lemma:
    """Return lemma 1, for products of so many bits: adding rounds down."""

    def goal() -> Goal:
        units, first = _free_sum()
        product, second = _free_product(bits)
        floored = z.plus(units, _floor(product))
        premise = t.both(z.at_most(z.number(-_SUM), floored), z.at_most(floored, z.number(_SUM)))
        found = m.add_exact(_with_magic(units), product, FP64)
        within = z.ranged(floored.term, -_SUM, _SUM)
        return Goal((*first, *second, premise), t.equal(found, _with_magic(within)))

    return Lemma(
        f"wide 1, products of {bits} bits",
        "madd_down without directed rounding: fma(a, b, M + s) toward zero is M + s + floor(a b), in units",
        goal=goal,
    )


def truncation_is_floor_and_count() -> Lemma:
    """Return lemma 2: truncation is the floor plus a count."""

    def goal() -> Goal:
        product, premises = _free_product(2 * _SIGNIFICAND)
        truncated = n.cut(product, z.number(50), 50, "rz")
        whole = z.same(n.cut(product, z.number(50), 50, "ro"), truncated)
        one_more = t.both(product.negative, t.negation(_is_multiple(product)))
        corrected = z.plus(_floor(product), z.select(one_more, z.number(1), z.number(0)))
        return Goal(
            tuple(premises), t.both(z.same(truncated, corrected), t.either(whole, t.negation(_is_multiple(product))))
        )

    return Lemma(
        "wide 2",
        "a product truncated to units is its floor, and one more if it is negative and no multiple of a unit",
        goal=goal,
    )


def _is_multiple(x: Number) -> Term:
    """Return whether a number is an integer: its lowest set bit is not below the point."""
    bits = x.significand.width - 1
    missing = z.larger(z.minus(z.number(x.point), x.align), z.number(0))
    missing = z.ranged(missing.term, 0, missing.high)
    kept = z.shifted_left(z.shifted_right(x.significand, _at_most(missing, bits)), _at_most(missing, bits))
    return z.same(kept, x.significand)


def _at_most(x: Int, limit: int) -> Int:
    cut = z.select(z.less(z.number(limit), x), z.number(limit), x)
    return z.ranged(cut.term, 0, limit)


def lowest_bit_of_product() -> Lemma:
    """Return lemma 3: the lowest set bit of a product."""

    def goal() -> Goal:
        x, y = (t.variable(name, 2 * _SIGNIFICAND) for name in "xy")
        odd = [t.bit(number, 0) for number in (x, y)]
        return Goal(tuple(odd), t.bit(t.multiplied(x, y), 0))

    return Lemma("wide 3", "the product of two odd integers is odd: lowest set bits add their exponents", goal=goal)


def words_count_negative_fractions(fraction_bits: int) -> Lemma:
    """Return lemma 4: words count negative fractions."""

    def goal() -> Goal:
        premises: list[Term] = []
        words, lowest, negative, zero = [], [], [], []
        for name in "ab":
            exponent, found = free_integer(f"lowest_{name}", -400, 400)
            is_zero, sign = t.variable(f"zero_{name}", t.BOOL), t.variable(f"negative_{name}", t.BOOL)
            word = z.plus(z.select(is_zero, z.number(_LOWEST_OF_ZERO), exponent), z.number(_LOWEST_BIAS))
            high = t.choose(sign, t.constant(1 << 15, 16), t.constant(0, 16))
            words.append(t.bits_or(z.as_bits(word, 16), high))
            premises += found
            lowest.append(exponent)
            negative.append(sign)
            zero.append(is_zero)
        top, found = free_integer("top", -900, 512)
        premises += found
        limit = z.plus(top, z.number(_WORD_BIAS + 2 * _LOWEST_BIAS - _WORD_BIAS - fraction_bits - 32768))
        counted = t.below_signed(t.added(*words), z.as_bits(limit, 16))
        unit = z.minus(top, z.number(fraction_bits))
        fraction = z.less(z.plus(*lowest), unit)
        meant = t.both(t.exclusive(*negative), *(t.negation(x) for x in zero), fraction)
        return Goal(tuple(premises), t.equal(counted, meant))

    return Lemma(
        f"wide 4, F = {fraction_bits}",
        "the sum of two operands' words is below the limit, as a signed 16-bit number, exactly where the product is "
        "negative and its lowest set bit is below the unit",
        goal=goal,
    )


def _free_word() -> tuple[Int, list[Term]]:
    """Return the highest word of M, the number of units from which sums start."""
    return free_integer("word", 1 << 10, (1 << 15) - 1)


def count_is_added() -> Lemma:
    """Return lemma 5: the count is added."""

    def goal() -> Goal:
        units, first = _free_sum()
        count, second = free_integer("count", 0, 32)
        word, third = _free_word()
        start, total = z.plus(units, word), z.plus(units, count)
        within = [z.at_most(z.number(-_SUM), start), z.at_most(start, z.number(_SUM))]
        end = z.ranged(z.minus(word, count).term, 0, (1 << 15) - 1)
        started = _with_magic(z.ranged(start.term, -_SUM, _SUM))
        found = m.subtract(started, _with_magic(end), FP64)
        joined = t.joined(t.constant(((FP64.bias + 52) << 4 | 8) << 32, 48), z.as_bits(end, 16))
        meant = m.as_machine(n.plain(z.less(total, z.number(0)), z.magnitude(total), z.number(0), 0), FP64)
        same = m.same_value(m.value_of(FP64, found), m.value_of(FP64, meant))
        return Goal((*first, *second, *third, *within), t.both(same, t.equal(_with_magic(end), joined)))

    return Lemma(
        "wide 5",
        "`ends` of M's word and w - count is M + w - count units, and M + w + s less that is s + count units, exactly",
        goal=goal,
    )


def addend_is_truncated(fraction_bits: int) -> Lemma:
    """Return lemma 6: the addend is truncated."""

    def goal() -> Goal:
        bits = t.variable("c", 32)
        c = m.value_of(FP32, bits)
        distance, premises = free_integer("distance", 0, 600)  # e_max less c's exponent
        # In units of 2^(e_max - F): c's exponent is F less the distance.
        scaled = c._replace(align=z.minus(z.number(fraction_bits), distance))
        word, found = _free_word()
        magic = _with_magic(word)
        double = m.as_machine(scaled._replace(negative=t.FALSE), FP64)
        size = m.subtract(m.add(double, magic, FP64), magic, FP64)
        signed = t.joined(t.choose(c.negative, t.constant(1, 1), t.constant(0, 1)), t.extract(size, 62, 0))
        truncated = n.cut(scaled, z.number(fraction_bits), fraction_bits, "rz")
        total = z.plus(truncated, word)
        within = z.ranged(total.term, -_SUM, _SUM)
        return Goal((*premises, *found), t.equal(m.add(signed, magic, FP64), _with_magic(within)))

    return Lemma(
        f"wide 6, F = {fraction_bits}",
        "add_truncated without directed rounding: (|c| + M) - M with c's sign, plus M, is M + c truncated to units",
        goal=goal,
    )


def result_is_truncated(fraction_bits: int) -> Lemma:
    """Return lemma 7: the result is truncated."""

    def goal() -> Goal:
        units, first = _free_sum()
        magic = _with_magic(z.number(0))
        difference = m.subtract(_with_magic(units), magic, FP64)
        top, second = free_integer("top", fraction_bits - 149, 120)
        unit = z.minus(top, z.number(fraction_bits))
        largest = z.number(1 << (fraction_bits + 8))  # 32 products and c are below 2^(F + 8) units
        premise = z.less(z.magnitude(units), largest)
        double = m.times_power(difference, unit, FP64)
        cut = t.bits_and(double, t.constant(~0x1FFFFFFF, 64))
        expected = n.finish(units, unit, FP32, FusedDotAdd(), "rz")
        wanted = m.value_of(FP32, expected)
        converted = m.same_value(m.value_of(FP64, cut), wanted)
        positive = t.either(z.less(units, z.number(0)), t.negation(t.bit(cut, 63)))  # 0 is +0
        return Goal((*first, *second, premise), t.both(converted, positive))

    return Lemma(
        f"wide 7, F = {fraction_bits}",
        "with e_max from F - 149 to 120, the double of the sum without its last 29 bits is the sum truncated to fp32",
        goal=goal,
    )


def nearest_by_adding(bits: int) -> Lemma:
    """Return lemma 8, for products of so many bits, on the addend of `wide_nearest`."""

    def goal() -> Goal:
        product, premises = _free_product(bits)
        units = n.cut(product, z.number(50), 50, "rne")
        within = t.both(z.at_most(z.number(-_SUM), units), z.at_most(units, z.number(_SUM)))
        found = m.add_exact(_with_magic(z.number(0)), product, FP64, "rne")
        return Goal((*premises, within), t.equal(found, _with_magic(z.ranged(units.term, -_SUM, _SUM))))

    return Lemma(
        f"wide 8, products of {bits} bits",
        "madd64 under rounding to nearest: fma(a, b, M) is M and the product rounded to nearest even, in units",
        goal=goal,
    )
