"""Lemmas: the lanes of group sums (`groups_lanes.h`) compute exact group sums with block scales, a lemma for each step.

They use the contracts of `operations.h`, and so hold for every instruction set.
"""

import itertools

import numpy as np

from tensorcore_models._kernels.groups import groups
from tensorcore_models.accumulators import GroupDotFusedSum
from tensorcore_models.arithmetic import numbers as n
from tensorcore_models.arithmetic.numbers import Number
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.integers import Int
from tensorcore_models.bitvectors.terms import Term
from tensorcore_models.formats import Format
from tensorcore_models.kernels.groups import GroupTables, fixed_point

from . import machine as m
from .lemmas import Goal, Lemma
from .machine import FP32, FP64
from .narrow_lemmas import free_integer

_SUM = (1 << 51) - 1  # aligned numbers and their sums stay below 2^51 units
_WORD_BIAS = 1023  # MPG_GROUP_WORD_BIAS
_FLOORS = (-400, 900)


def numbers_of(fmt: Format) -> np.ndarray:
    """Return the numbers of an operand's format in units of its smallest one."""
    found = fixed_point(fmt)
    if found is None:
        raise ValueError(f"{fmt.name} has no fixed-point numbers of one byte")
    return found.astype(np.int64)


def sums_stay_in_words(a: Format, b: Format, group: int) -> Lemma:
    """Return lemma 1: sums stay in 16-bit words."""

    def check() -> bool:
        x, y = (np.unique(numbers_of(fmt)) for fmt in (a, b))
        p, q = int(np.abs(x).max()), int(np.abs(y).max())
        bytes_fit = x.min() + p >= 0 and 2 * p <= 255 and q <= 127
        pair = 2 * (2 * p) * q  # of two bytes with the offset, at most
        whole = group * 2 * p * q  # of a group with the offset, and p q group of the start
        shifted = np.multiply.outer(x + p, y) - p * y
        return bool(bytes_fit and pair < 1 << 15 and whole < 1 << 15 and (shifted == np.multiply.outer(x, y)).all())

    return Lemma(
        f"groups 1, {group} products of {a.name} x {b.name}",
        "group sums stay in 16 bits, those of bytes with A's offset, too, of which no pair saturates; the start takes the "
        "offset away",
        check=check,
    )


def scaled_sums_are_exact(a: Format, b: Format, scale: Format, group: int) -> Lemma:
    """Return lemma 2: scaled sums are exact."""

    def check() -> bool:
        largest = group * int(np.abs(numbers_of(a)).max() * np.abs(numbers_of(b)).max())
        tables = [GroupTables.of(numbers_of(fmt), fmt.emin - fmt.fraction_bits, scale) for fmt in (a, b)]
        scales = [x.scale_values[x.scale_values > 0] for x in tables]
        both = np.multiply.outer(*scales)
        bits = 2 * (scale.fraction_bits + 1) + largest.bit_length()
        return bool(bits <= 53 and both.min() > 2.0**-600 and largest * both.max() < 2.0**600)

    return Lemma(
        f"groups 2, {group} products of {a.name} x {b.name}, scales {scale.name}",
        "a group sum times its two scales has at most 53 bits, far from the ends of double",
        check=check,
    )


def words_say_what_takes_part(scale: Format) -> Lemma:
    """Return lemma 3 for every pair of scales, including zeros and groups beyond k, and every floor."""

    def check() -> bool:
        words = GroupTables.of(np.zeros(256), 0, scale).scale_exponents.astype(np.int64)
        zeros = np.append(words == groups.SKIP, True)  # a group or a lane of padding has that word, too
        words = np.append(words, groups.SKIP)
        both = words[:, None] + (words[None, :] + _WORD_BIAS)
        out = zeros[:, None] | zeros[None, :]
        low, high = (floor + _WORD_BIAS for floor in _FLOORS)
        meant = np.add.outer(words, words) + _WORD_BIAS
        inside = both.min() >= -(1 << 15) and both.max() < 1 << 15 and low > 0 and high <= 2046
        return bool(inside and (both[out] < low).all() and (both == meant)[~out].all() and both[~out].max() <= 2046)

    return Lemma(
        f"groups 3, scales {scale.name}",
        "words of two scales add up within 16 bits to the biased exponent; beside a scale that is zero, in groups beyond k and "
        "in unused lanes they are below every floor",
        check=check,
    )


def _with_magic(negative: Term, size: Int) -> Term:
    """Return the double 1.5 * 2^52 + size with a sign, in units."""
    fraction = z.as_bits(z.plus(size, z.number(1 << 51)), 52)
    sign = t.choose(negative, t.constant(1, 1), t.constant(0, 1))
    return t.joined(sign, t.joined(t.constant(FP64.bias + 52, 11), fraction))


def _double_of(negative: Term, size: Int) -> Number:
    return n.plain(negative, size, z.number(0), 0)


def adding_truncates(bits: int) -> Lemma:
    """Return lemma 4 for numbers of so many bits: group sums with their scales, or c."""

    def goal() -> Goal:
        significand, first = free_integer("significand", 0, (1 << bits) - 1)
        align, second = free_integer("align", -1000, 49)
        x = n.plain(t.variable("negative", t.BOOL), significand, align, bits - 1)
        size = z.magnitude(n.cut(x, z.number(50), 50, "rz"))
        premise = z.at_most(size, z.number(_SUM))
        magic = _with_magic(x.negative, z.number(0))
        moved = m.add_exact(magic, x, FP64)
        less = m.value_of(FP64, m.subtract(moved, magic, FP64))
        return Goal((*first, *second, premise), m.same_value(less, _double_of(x.negative, size)))

    return Lemma(
        f"groups 4, {bits} bits",
        "M of the sign of x, plus x rounded toward zero, less M is x truncated to units",
        goal=goal,
    )


def result_is_truncated(fraction_bits: int) -> Lemma:
    """Return lemma 5: the contract of `chopped32` gives the algorithm's result if it is below 2^128."""

    def goal() -> Goal:
        total, first = free_integer("total", -_SUM, _SUM)
        top, second = free_integer("top", fraction_bits - 200, 120)
        unit = z.minus(top, z.number(fraction_bits))
        premise = z.less(z.magnitude(total), z.number(1 << (fraction_bits + 7)))
        sign = z.less(total, z.number(0))
        double = n.plain(sign, z.magnitude(total), unit, 0)
        found = m.add(m.as_machine(double, FP32), t.constant(0, 32), FP32)
        expected = n.finish(total, unit, FP32, GroupDotFusedSum(), "rz")
        return Goal((*first, *second, premise), t.equal(found, expected))

    return Lemma(
        f"groups 5, F = {fraction_bits}",
        "the total truncated to float32, plus +0, is the algorithm's result",
        goal=goal,
    )


def clamped_sum() -> Lemma:
    """Return the lemma on the sum that `integer_lanes.h` adds to c in any order of products: the contract of `add_clamped`."""

    def goal() -> Goal:
        c, x = (t.variable(name, 32) for name in "cx")
        total = t.added(c, x)
        over = t.bit(t.bits_and(t.bits_xor(c, total), t.bits_xor(x, total)), 31)
        largest = t.choose(t.bit(c, 31), t.constant(1 << 31, 32), t.constant((1 << 31) - 1, 32))
        found = t.choose(over, largest, total)
        exact = z.plus(*(z.ranged(term, -(1 << 31), (1 << 31) - 1) for term in (c, x)))
        ends = z.number(-(1 << 31)), z.number((1 << 31) - 1)
        return Goal((), t.equal(found, z.as_bits(z.smaller(z.larger(exact, ends[0]), ends[1]), 32)))

    return Lemma(
        "integer 1", "a sum that has the sign of neither addend is beyond int32; it is clamped to c's side", goal=goal
    )


def integer_sums_fit(a: tuple[int, int], b: tuple[int, int], terms: int) -> Lemma:
    """Return the lemma on `terms` products of integers from a[0] to a[1] and b[0] to b[1]; pairs are padded with zeros."""

    def check() -> bool:
        products = [x * y for x, y in itertools.product((*a, 0), (*b, 0))]
        words = min(*a, *b) >= -(1 << 15) and max(*a, *b) < 1 << 15
        return words and terms * min(products) >= -(1 << 31) and terms * max(products) < 1 << 31

    return Lemma(
        f"integer 2, {terms} products of {a} x {b}", "sums before they are clamped stay within int32", check=check
    )
