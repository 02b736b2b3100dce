"""Computes one step of FidelityPhases, up to 16 products in one phase, on plain integers or on terms."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...arithmetic import operations as z
from ...arithmetic.operations import Condition, Whole, larger, no, same, select
from ...formats import Format
from .parts import BELOW, DIGITS, ERRATUM, GROUP, STEP, TAKEN, follows, lowered


class GroupSum(NamedTuple):
    """A GroupSum is a group's sum in units of the accumulator's last place at an exponent field."""

    value: Whole
    exponent: Whole


def _part(significand: Whole, phase: int, side: int) -> Whole:
    """Return the bits that a multiplier takes of a significand of 11 bits."""
    bits = TAKEN[side]
    if not follows(phase, side):
        return significand >> DIGITS - bits
    return (significand << bits) >> DIGITS - bits & (1 << bits) - 1


def _taken_apart(code: Any, fmt: Format) -> tuple[Condition, Whole, Whole]:
    """Return sign, significand of 11 bits (0 for zeros and subnormal numbers) and exponent field of an encoding."""
    whole = z.natural(code)
    field = whole >> fmt.fraction_bits + fmt.padding_bits & (1 << fmt.exponent_bits) - 1
    fraction = whole >> fmt.padding_bits & (1 << fmt.fraction_bits) - 1
    significand = select(same(field, 0), 0, (fraction + (1 << fmt.fraction_bits)) << DIGITS - 1 - fmt.fraction_bits)
    return same(whole >> (fmt.bits - 1) & 1, 1), significand, field


def _rounded(value: Whole, down: Whole, rounding: str) -> Whole:
    """Round value / 2^down."""
    negative = value < 0
    size = z.shifted_right(z.magnitude(value), larger(down, 0), rounding, negative)
    return select(negative, -size, size)


def group_sums(phase: int, a: Sequence[Any], b: Sequence[Any], formats: Sequence[Format]) -> list[GroupSum]:
    """Return the sums of both groups of products; the products of a group are aligned to their largest exponent."""
    starts = range(0, STEP, GROUP)
    return [_group(phase, a[start : start + GROUP], b[start : start + GROUP], formats) for start in starts]


def _group(phase: int, a: Sequence[Any], b: Sequence[Any], formats: Sequence[Format]) -> GroupSum:
    lift = formats[3].bias - lowered(phase) - formats[0].bias - formats[1].bias
    zero = max(0, lift)
    top: Whole = zero
    products = []
    for codes in zip(a, b, strict=True):
        (x_sign, x, x_field), (y_sign, y, y_field) = map(_taken_apart, codes, formats)
        live = no(same(x, 0) | same(y, 0))
        exponent = select(live, x_field + y_field + lift, zero)
        size = _part(x, phase, 0) * _part(y, phase, 1)
        products.append((select(x_sign ^ y_sign, -size, size), exponent))
        top = larger(top, exponent)
    total = z.total([_rounded(size, top - exponent, "rna") for size, exponent in products]) if products else 0
    return GroupSum(select(top > 0, total, 0) << BELOW, top)


def added(groups: Sequence[GroupSum], c: Any, fmt: Format, erratum: bool) -> Any:
    """Return the code of the accumulator plus both sums; ties of the sums go up, ties of the accumulator away from zero."""
    up, whole = 23 - fmt.fraction_bits, z.natural(c)
    field = whole >> fmt.fraction_bits & (1 << fmt.exponent_bits) - 1
    size = ((whole & (1 << fmt.fraction_bits) - 1) + (1 << fmt.fraction_bits)) << up
    size = select(same(field, 0), 0, size)
    top = field
    for group in groups:
        top = larger(top, group.exponent)
    addends = [(*group, "rnu") for group in groups]
    addends.append((select(same(whole >> (fmt.bits - 1) & 1, 1), -size, size), field, "rna"))
    kept = [(_rounded(value, top - exponent, rounding), rounding) for value, exponent, rounding in addends]
    total = z.total([_rounded(x, BELOW, rounding) << BELOW if up else x for x, rounding in kept])
    return select((top <= 0) | same(total, 0), 0, _encoded(total, top, fmt, erratum), fmt.bits)


def _encoded(total: Whole, exponent: Whole, fmt: Format, erratum: bool) -> Any:
    """Normalise, round and encode a nonzero sum in units of 2^-23 at an exponent field."""
    digits, five, largest = fmt.fraction_bits + 1, fmt.exponent_bits == 5, (1 << fmt.exponent_bits) - 1
    size = z.magnitude(total)
    pad = max(digits - z.high(size).bit_length(), 0)
    significand, top, places = z.normalised(size << pad)
    kept = z.shifted_right(significand, top + 1 - digits, "rna")
    exponent = exponent + (kept >> digits) - places + (top + 1 - pad - 24)
    if erratum:
        exponent = exponent + select(same(total, -1), ERRATUM, 0)
    over = exponent >= largest + five  # the result is infinity, or the largest number of a format without infinity
    field = select(over, largest, exponent & largest)
    fraction = select(over, (1 << fmt.fraction_bits) - 1 if five else 0, kept & (1 << fmt.fraction_bits) - 1)
    found = z.joined(total < 0, (field << fmt.fraction_bits) + fraction, fmt.bits, fmt.padding_bits, fmt.signed)
    return select(exponent <= 0, 0, found, fmt.bits)
