"""Lemmas: the 32-bit lanes (`narrow_lanes.h`) compute a fused dot-add, with one lemma for each step of `narrow_step`.

The loops are one text for every instruction set. The result of an operation is its contract in `operations.h`, which
tests check for each set's instructions. Contracts that take more than one instruction of plain C and AVX2 (`in_units`,
`odd`, `fp16`) are written again here, on the bits of float32 and int32 numbers (:mod:`.machine`). The terms of the
encoding, which tests check against the integer reference, say what the steps have to compute.
"""

import numpy as np

from tensorcore_models.accumulators import FusedDotAdd
from tensorcore_models.arithmetic import numbers as n
from tensorcore_models.arithmetic.numbers import Number
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.integers import Int
from tensorcore_models.bitvectors.terms import Term
from tensorcore_models.formats import Format

from . import machine as m
from .lemmas import Goal, Lemma
from .machine import FP16, FP32

_PRESCALE = 33  # MPG_NARROW_PRESCALE
_WINDOW = (-16, 15)  # MPG_WINDOW_LEAST, MPG_WINDOW_MOST
LOWEST = -68  # MPG_NARROW_FLOOR - 127
#: Distance from which on no product reaches its unit, so that only c adds to the sum.
_FAR = 96


def free_integer(name: str, low: int, high: int) -> tuple[Int, list[Term]]:
    """Return a free integer, and the premise that it lies in its range."""
    term = t.variable(name, z.width_of(low, high))
    whole = z.Int(term, -(1 << (term.width - 1)), (1 << (term.width - 1)) - 1)
    return z.ranged(term, low, high), [z.at_most(z.number(low), whole), z.at_most(whole, z.number(high))]


def largest_significand(fmt: Format) -> int:
    return (2 << fmt.fraction_bits) - 1


def free_product(a: Format, b: Format) -> tuple[Number, list[Term]]:
    """Return a product of two operands with any possible sign, significand and alignment exponent."""
    significand, first = free_integer("significand", 0, largest_significand(a) * largest_significand(b))
    align, second = free_integer("align", a.emin + b.emin, a.emax + b.emax)
    point = a.fraction_bits + b.fraction_bits
    return n.plain(t.variable("negative", t.BOOL), significand, align, point), first + second


# -- the steps of narrow_step ----------------------------------------------------------------------------------------------
def product_units(product: Number, top: Int, fraction_bits: int) -> Int:
    """Return (int32_t) of the prescaled float32 product with `up` added to its bits."""
    scaled = product._replace(align=z.minus(product.align, z.number(_PRESCALE)))
    to_shift = t.constant((fraction_bits + 127 + _PRESCALE) << 23, 32)
    reached = m.power_bits(top, FP32)
    reached = t.choose(t.below(reached, to_shift), reached, to_shift)
    up = t.added(to_shift, t.negative(reached))
    return m.to_int32(t.added(m.as_machine(scaled, FP32), up))


def addend_units(bits: Term, top: Int, fraction_bits: int) -> Int:
    """Return (int32_t) of c scaled to its unit."""
    return m.to_int32(m.times_power(bits, z.minus(z.number(fraction_bits), top), FP32))


def truncated_result(total: Int, top: Int, fraction_bits: int, keep: int) -> Term:
    """Return (float)total & keep, times the unit."""
    x = t.bits_and(m.from_int32(total), t.constant(keep, 32))
    return m.times_power(x, z.minus(top, z.number(fraction_bits)), FP32)


def keep_of(kept: int | None) -> int:
    """Return the mask of the result bits that survive (`mpg_narrow_task.keep`)."""
    return 0xFFFFFFFF & ~((1 << (23 - (23 if kept is None else kept))) - 1)


# -- the lemmas --------------------------------------------------------------------------------------------------------------
def product_is_exact(a: Format, b: Format) -> Lemma:
    """Return lemma 1: the product is exact."""

    def check() -> bool:
        x = np.arange(largest_significand(a) + 1, dtype=np.int64)
        y = np.arange(largest_significand(b) + 1, dtype=np.int64)
        products = np.multiply.outer(x.astype(np.float32), y.astype(np.float32))
        exact = np.multiply.outer(x, y)
        least = 2.0 ** (a.quantum_exponent + b.quantum_exponent - _PRESCALE)
        return bool((products.astype(np.int64) == exact).all()) and least >= 2.0**-126

    return Lemma(
        f"narrow 1, {a.name} x {b.name}",
        "the float32 product of two significands is their exact product, and scaled by 2^-33 it is a normal number or zero",
        check=check,
    )


def exponent_bytes(a: Format, b: Format) -> Lemma:
    """Return lemma 8 on the bytes of the alignment, for every pair of operand exponents and zeros."""

    def check() -> bool:
        x = np.array([0, *(e + 143 for e in range(a.emin, a.emax + 1))])
        y = np.array([255, *(16 - e for e in range(b.emin, b.emax + 1))])
        fits = x.min() >= 0 and x.max() <= 255 and y.min() >= 0 and y.max() <= 255
        found = np.maximum(x[:, None] - y[None, :], 0)
        expected = np.zeros_like(found)
        expected[1:, 1:] = np.add.outer(np.arange(a.emin, a.emax + 1), np.arange(b.emin, b.emax + 1)) + 127
        return bool(fits and (found == expected).all())

    return Lemma(
        f"narrow 8, {a.name} x {b.name}",
        "the saturating difference of the exponent bytes is the float32 exponent field of the product's alignment exponent, 0 "
        "where an operand is zero",
        check=check,
    )


def powers_are_in_float32(fmt: Format, masked: bool = True) -> Lemma:
    """Return lemma 9 on the argument of `power32` while operands are packed; if `masked`, zeros have the power 0."""

    def check() -> bool:
        fields = np.arange(0, fmt.bias + fmt.emax + 1)
        exponents = np.maximum(fields, 1) - fmt.bias
        for shift in range(fmt.emin - 15 - 10, fmt.emax + 16 + 1):
            inside = (exponents - shift >= _WINDOW[0]) & (exponents - shift <= _WINDOW[1])
            for prescale in (0, _PRESCALE):
                arguments = exponents - shift - fmt.fraction_bits - prescale + 127
                zero = 0 if masked else int(arguments[0])
                if inside.any() and not (
                    1 <= arguments[inside].min() <= arguments[inside].max() <= 254 and 0 <= zero <= 254
                ):
                    return False
        return True

    return Lemma(
        f"narrow 9, {fmt.name}",
        "at every shift of a window the power of two of each operand inside is a normal number, and that of a zero is 0",
        check=check,
    )


def powers_are_in_the_lanes(fraction_bits: int) -> Lemma:
    """Return lemma 10 on the arguments of `scale_of`, `factor_of` and `unit_of`: any c, no products, padded rows, unused
    lanes.
    """

    def check() -> bool:
        tops = np.arange(LOWEST + 127, 255)
        factors, units, up = fraction_bits + 254 - tops, tops - fraction_bits, fraction_bits + 127 + _PRESCALE - tops
        in_range = min(factors.min(), units.min()) >= 1 and max(factors.max(), units.max()) <= 254
        largest = 32 - _PRESCALE + 127 - 1  # the field of a prescaled product below 2^32
        return bool(in_range and largest + up.max() <= 254)

    return Lemma(
        f"narrow 10, F = {fraction_bits}",
        "from the floor, which is all that padding and unused lanes have, to the largest c, units and scales are normal "
        "numbers, and the bits of a prescaled product plus its scale stay those of a number",
        check=check,
    )


def product_is_aligned(a: Format, b: Format, fraction_bits: int) -> Lemma:
    """Return lemma 2: the bits of a product plus `up`, converted to int32, are the product truncated to the unit."""

    def goal() -> Goal:
        product, premises = free_product(a, b)
        top, more = free_integer("top", LOWEST, 127)
        premises += [*more, t.either(z.at_most(product.align, top), z.is_zero(product.significand))]
        found = product_units(product, top, fraction_bits)
        return Goal(tuple(premises), z.same(found, n.cut(product, top, fraction_bits, "rz")))

    return Lemma(
        f"narrow 2, {a.name} x {b.name}, F = {fraction_bits}",
        "adding `up` to the bits of a product and converting to int32 truncates it to a multiple of 2^(e_max - F)",
        goal=goal,
    )


def addend_is_aligned(fraction_bits: int) -> Lemma:
    """Return lemma 3: the addend is aligned."""

    def goal() -> Goal:
        bits = t.variable("c", 32)
        c = m.value_of(FP32, bits)
        top, premises = free_integer("top", LOWEST, 127)
        usable = t.both(z.at_most(z.number(LOWEST), c.align), z.at_most(c.align, top))
        premises += [t.either(usable, t.negation(t.any_bit(t.extract(bits, 30, 0))))]
        found = addend_units(bits, top, fraction_bits)
        return Goal(tuple(premises), z.same(found, n.cut(c, top, fraction_bits, "rz")))

    return Lemma(
        f"narrow 3, F = {fraction_bits}",
        "c * 2^(F - e_max) in float32, converted to int32, is c truncated to a multiple of 2^(e_max - F)",
        goal=goal,
    )


def sum_bound(a: Format, b: Format, terms: int, fraction_bits: int) -> int:
    """Return the largest magnitude of a sum of aligned products."""
    point = a.fraction_bits + b.fraction_bits
    product = largest_significand(a) * largest_significand(b)
    return terms * (product << max(fraction_bits - point, 0) >> max(point - fraction_bits, 0))


def sum_is_exact(a: Format, b: Format, terms: int, fraction_bits: int) -> Lemma:
    """Return lemma 4: the sum is exact."""

    def goal() -> Goal:
        bound, own_bound = sum_bound(a, b, terms, fraction_bits), (1 << (fraction_bits + 1)) - 1
        products, first = free_integer("products", -bound, bound)
        own, second = free_integer("own", -own_bound, own_bound)
        total = z.plus(products, own)
        sum32, own32 = z.as_bits(products, 32), z.as_bits(own, 32)
        total32 = t.added(sum32, own32)
        wrapped = t.bit(t.bits_and(t.bits_xor(total32, sum32), t.bits_xor(total32, own32)), 31)
        exact = z.same(z.ranged(t.sign_extended(total32, 33), -(1 << 31), (1 << 31) - 1), total)
        inside = z.fits(products, 32)
        return Goal((*first, *second), t.both(inside, t.equal(wrapped, t.negation(exact))))

    return Lemma(
        f"narrow 4, {a.name} x {b.name}, N = {terms}, F = {fraction_bits}",
        "the int32 sum of the products is exact; with c it is exact unless the sign test says that it wrapped",
        goal=goal,
    )


def _wrapped_sum(products: Int, own: Int) -> tuple[Term, Term]:
    """Return the float32 of a sum outside of int32, as high * 256 + low, and whether it was truncated."""

    def arithmetic_shift(x: Int) -> Int:
        return z.ranged(t.extract(t.sign_extended(x.term, 40), 39, 8), x.low >> 8, x.high >> 8)

    def low_byte(x: Int) -> Int:
        return z.natural(t.extract(t.sign_extended(x.term, 40), 7, 0))

    high = m.from_int32(z.scaled(z.plus(arithmetic_shift(products), arithmetic_shift(own)), 8))
    low = m.from_int32(z.plus(low_byte(products), low_byte(own)))
    x = m.add(high, low, FP32)
    rest = m.subtract(x, high, FP32)
    return x, t.negation(m.same_value(m.value_of(FP32, rest), m.value_of(FP32, low)))


def wrapped_sum_is_truncated(a: Format, b: Format, terms: int, fraction_bits: int) -> Lemma:
    """Return lemma 5: a wrapped sum is truncated."""

    def goal() -> Goal:
        bound, own_bound = sum_bound(a, b, terms, fraction_bits), (1 << (fraction_bits + 1)) - 1
        products, first = free_integer("products", -bound, bound)
        own, second = free_integer("own", -own_bound, own_bound)
        total = z.plus(products, own)
        x, inexact = _wrapped_sum(products, own)
        cut = t.negation(z.is_zero(z.natural(t.extract(z.magnitude(total).term, 7, 0))))
        beyond = z.at_most(z.number((1 << 31) - 1), z.magnitude(total))
        truncated = m.same_value(m.value_of(FP32, x), m.value_of(FP32, m.from_int32(total)))
        return Goal((*first, *second, beyond), t.both(truncated, t.equal(inexact, cut)))

    return Lemma(
        f"narrow 5, {a.name} x {b.name}, N = {terms}, F = {fraction_bits}",
        "a sum at or beyond 2^31, as high * 256 + low in float32, is the truncated sum; `inexact` says whether it was cut",
        goal=goal,
    )


def _free_total(bound: int, fraction_bits: int, tops: tuple[int, int]) -> tuple[Int, Int, list[Term]]:
    total, first = free_integer("total", -bound, bound)
    top, second = free_integer("top", *tops)
    small = z.at_most(z.magnitude(total), z.number((1 << (fraction_bits + 1)) - 1))
    return total, top, [*first, *second, t.either(z.less(top, z.number(_FAR)), small)]


def result_is_truncated(bound: int, fraction_bits: int, kept: int | None = None) -> Lemma:
    """Return lemma 6: the result is truncated."""

    def goal() -> Goal:
        total, top, premises = _free_total(bound, fraction_bits, (LOWEST, 127))
        unit = z.minus(top, z.number(fraction_bits))
        found = truncated_result(total, top, fraction_bits, keep_of(kept))
        spec = FusedDotAdd(output_fraction_bits=kept)
        expected = n.finish(total, unit, FP32, spec, "rz", kept)
        return Goal(tuple(premises), t.equal(found, expected))

    return Lemma(
        f"narrow 6, sums to {bound}, F = {fraction_bits}, {23 if kept is None else kept} fraction bits",
        "(float)total & keep, times 2^(e_max - F), is the sum normalised and truncated",
        goal=goal,
    )


def nearest_fp16_chopped(x: Term) -> Term:
    """Compute the operation `fp16` of operations_plain.h."""
    sign = t.bits_and(x, t.constant(0x80000000, 32))
    magnitude = t.bits_and(x, t.constant(0x7FFFFFFF, 32))
    power = t.bits_and(x, t.constant(0x7F800000, 32))
    least = t.constant((127 - 14) << 23, 32)
    larger = t.choose(t.below(least, power), power, least)
    last = m.times_power(larger, z.number(-10), FP32)
    magic = t.added(last, t.constant((23 << 23) + (1 << 22), 32))  # last * 0x1.8p23
    total = m.add(magnitude, magic, FP32)
    rest = m.subtract(magnitude, m.subtract(total, magic, FP32), FP32)
    half = m.times_power(last, z.number(-1), FP32)
    odd = t.bits_and(total, t.constant(1, 32))
    up = t.extract(t.added(t.added(half, t.negative(rest)), t.negative(odd)), 31, 31)
    rounded = m.subtract(t.added(total, t.zero_extended(up, 32)), magic, FP32)
    return m.add(t.bits_or(rounded, sign), t.constant(0, 32), FP32)


def result_is_nearest(bound: int, fraction_bits: int, floor: int) -> Lemma:
    """Return lemma 7: the result is the nearest fp16 number."""

    def goal() -> Goal:
        total, top, premises = _free_total(bound, fraction_bits, (floor, 32))
        x = m.from_int32(total)
        whole = n.plain(z.less(total, z.number(0)), z.magnitude(total), z.number(0), 0)
        exact = m.same_value(m.value_of(FP32, x), whole)
        asked = t.either(t.negation(z.fits(total, 32)), t.equal(exact, z.same(m.to_int32(x), total)))
        odd = t.bits_or(x, t.choose(exact, t.constant(0, 32), t.constant(1, 32)))
        unit = z.minus(top, z.number(fraction_bits))
        found = nearest_fp16_chopped(m.times_power(odd, unit, FP32))
        expected = n.finish(total, unit, FP16, FusedDotAdd(output_rounding="rne"), "rne")
        number, wanted = m.value_of(FP32, found), n.decode(FP16, expected, FusedDotAdd())
        overflow = z.at_most(z.number(16), number.align)  # mpg_mark_overflow: 65536 or more
        finite = t.both(m.same_value(number, wanted._replace(inf=t.FALSE, nan=t.FALSE)), t.negation(wanted.inf))
        positive = t.either(t.any_bit(t.extract(found, 30, 0)), t.negation(t.bit(found, 31)))
        return Goal(tuple(premises), t.both(asked, t.choose(overflow, wanted.inf, t.both(finite, positive))))

    return Lemma(
        f"narrow 7, sums to {bound}, F = {fraction_bits}",
        "the sum rounded to 24 bits to odd, then by mpg_nearest_fp16_chopped, is the sum to the nearest fp16 number, and is "
        "marked where that is infinite; (int32_t)x != total says whether the rounding to 24 bits was exact",
        goal=goal,
    )
