"""A tile of FidelityPhases as a term over bit-vectors: the twin of its integers, step for step."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...bitvectors import integers as z
from ...bitvectors import terms as t
from ...bitvectors.integers import Int
from ...bitvectors.terms import Term
from ...formats import Format
from .parts import BELOW, DIGITS, ERRATUM, GROUP, STEP, TAKEN, follows, lowered


class _Number(NamedTuple):
    """An operand taken apart: significand of 11 bits, exponent, whether it is a number other than zero."""

    negative: Term
    significand: Term
    exponent: Int
    live: Term


class _Sum(NamedTuple):
    """A group's sum in units of the accumulator's last place at an exponent field."""

    value: Int
    exponent: Int


def added_step(spec: Any, phase: int, a: Sequence[Term], b: Sequence[Term], c: Term, formats: Sequence[Format]) -> Term:
    """The accumulator after one step of the unit: up to 16 products in one phase."""
    groups = [
        _group(phase, a[start : start + GROUP], b[start : start + GROUP], formats) for start in range(0, STEP, GROUP)
    ]
    return _added(groups, c, formats[3], spec.erratum == "minus_one")


def _field(code: Term, fmt: Format) -> Term:
    low = fmt.fraction_bits + fmt.padding_bits
    return t.extract(code, low + fmt.exponent_bits - 1, low)


def _fraction(code: Term, fmt: Format) -> Term:
    return t.extract(code, fmt.fraction_bits + fmt.padding_bits - 1, fmt.padding_bits)


def _widened(bits: Term, zeros: int) -> Term:
    return t.joined(bits, t.constant(0, zeros)) if zeros else bits


def _taken_apart(code: Term, fmt: Format) -> _Number:
    field = _field(code, fmt)
    live = t.any_bit(field)
    whole = _widened(t.joined(t.constant(1, 1), _fraction(code, fmt)), DIGITS - 1 - fmt.fraction_bits)
    exponent = z.minus(z.natural(field), z.number(fmt.bias))
    return _Number(t.bit(code, fmt.bits - 1), t.choose(live, whole, t.constant(0, DIGITS)), exponent, live)


def _part(significand: Term, phase: int, side: int) -> Int:
    """What a multiplier takes of a significand."""
    bits = TAKEN[side]
    if not follows(phase, side):
        return z.natural(t.extract(significand, DIGITS - 1, DIGITS - bits))
    low = max(DIGITS - 2 * bits, 0)
    return z.natural(_widened(t.extract(significand, DIGITS - bits - 1, low), max(2 * bits - DIGITS, 0)))


def _natural(x: Int) -> Int:
    """A number known to be at least 0."""
    return z.ranged(x.term, 0, max(x.high, 0))


def _shifted(value: Int, down: Int, rounding: str) -> Int:
    """value / 2^down for a natural `down`, rounded; most products are zeros where solvers are asked for a small input."""
    if value.low == value.high == 0:
        return value
    negative = z.less(value, z.number(0))
    return z.with_sign(negative, z.shifted_right(z.magnitude(value), _natural(down), rounding, negative))


def _group(phase: int, a: Sequence[Term], b: Sequence[Term], formats: Sequence[Format]) -> _Sum:
    """The sum of a group of products, aligned to their largest exponent."""
    lift = formats[3].bias - lowered(phase)
    zero = z.number(max(0, lift - formats[0].bias - formats[1].bias))
    top, products = zero, []
    for codes in zip(a, b, strict=True):
        x, y = (_taken_apart(code, fmt) for code, fmt in zip(codes, formats, strict=False))
        live = t.both(x.live, y.live)
        size = z.times(_part(x.significand, phase, 0), _part(y.significand, phase, 1))
        size = z.with_sign(t.exclusive(x.negative, y.negative), z.select(live, size, z.number(0)))
        exponent = z.select(live, z.plus(z.plus(x.exponent, y.exponent), z.number(lift)), zero)
        products.append((size, exponent))
        top = z.larger(top, exponent)
    total = z.number(0)
    for size, exponent in products:
        total = z.plus(total, _shifted(size, z.minus(top, exponent), "rna"))
    return _Sum(z.scaled(z.select(z.less(z.number(0), top), total, z.number(0)), BELOW), top)


def _added(groups: Sequence[_Sum], c: Term, fmt: Format, erratum: bool) -> Term:
    """Both sums and the accumulator, rounded to its format."""
    up = 23 - fmt.fraction_bits
    code = _field(c, fmt)
    field = z.natural(code)
    size = z.natural(_widened(t.joined(t.constant(1, 1), _fraction(c, fmt)), up))
    held = z.with_sign(t.bit(c, fmt.bits - 1), z.select(t.any_bit(code), size, z.number(0)))
    top = field
    for group in groups:
        top = z.larger(top, group.exponent)
    total = z.number(0)
    for value, exponent, rounding in (*((*group, "rnu") for group in groups), (held, field, "rna")):
        kept = _shifted(value, z.minus(top, exponent), rounding)
        total = z.plus(total, z.scaled(_shifted(kept, z.number(BELOW), rounding), BELOW) if up else kept)
    nothing = t.either(z.at_most(top, z.number(0)), z.is_zero(total))
    return t.choose(nothing, t.constant(0, fmt.bits), _encoded(total, top, fmt, erratum))


def _encoded(total: Int, exponent: Int, fmt: Format, erratum: bool) -> Term:
    """A sum other than 0 in units of 2^-23 at an exponent field, normalised and rounded."""
    digits, five, largest = fmt.fraction_bits + 1, fmt.exponent_bits == 5, (1 << fmt.exponent_bits) - 1
    size = z.magnitude(total)
    bits, places = z.normalised(z.scaled(size, max(digits + 1 - size.width, 0)))
    kept = z.shifted_right(z.natural(bits), z.number(bits.width - digits), "rna")
    carry = z.natural(t.bit(z.as_bits(kept, digits + 1), digits))
    length = z.minus(z.number(bits.width - max(digits + 1 - size.width, 0)), places)
    exponent = z.plus(z.plus(exponent, carry), z.minus(length, z.number(24)))
    if erratum:
        wrong = z.same(total, z.number(-1))
        exponent = z.plus(exponent, z.select(wrong, z.number(ERRATUM), z.number(0)))
    over = z.at_most(z.number(largest + five), exponent)
    fraction = z.as_bits(kept, fmt.fraction_bits)
    most = t.constant((1 << fmt.fraction_bits) - 1 if five else 0, fmt.fraction_bits)
    field = t.choose(over, t.constant(largest, fmt.exponent_bits), z.as_bits(exponent, fmt.exponent_bits))
    negative = t.choose(z.less(total, z.number(0)), t.constant(1, 1), t.constant(0, 1))
    found = t.joined(t.joined(negative, field), t.choose(over, most, fraction))
    return t.choose(z.at_most(exponent, z.number(0)), t.constant(0, fmt.bits), found)
