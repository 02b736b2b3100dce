"""Operations in which families write passes, on terms for solvers; their names are those of
:mod:`tensorcore_models.reference.arithmetic`.

A code is a term, a number a :class:`Number`, a total an :class:`Int`, a condition a term of one bit.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..formats import Format
from ..reference.operands import SpecialRules
from . import integers as z
from . import numbers as n
from . import sums
from . import terms as t
from .integers import Int, times
from .integers import scaled as shifted
from .integers import select as chosen
from .numbers import (
    Number,
    decode,
    finish,
    flushed,
    flushed_to_zero,
    largest_exponent,
    multiply,
    normalised,
    overflowed,
)
from .numbers import aligned as cut
from .sums import rounded_sum, scaled_product, taking_part
from .terms import Term

__all__ = [
    "chosen", "cut", "decode", "finish", "flushed", "flushed_to_zero", "largest_exponent", "multiply", "normalised",
    "overflowed", "rounded_sum", "scaled_product", "shifted", "taking_part", "times",
]  # fmt: skip


class Unencodable(TypeError):
    """A specification that has no terms."""


#: Whether codes and numbers are terms.
on_terms = True


# -- conditions and totals -----------------------------------------------------------------------------------------------
def every(conditions: Iterable[Term]) -> Term:
    """Whether all conditions hold."""
    return t.both(*conditions)


def farther(number: Number, largest: Int, distance: int) -> Term:
    """Whether a number's alignment exponent is below the largest one by more than a distance."""
    return z.less(number.align, z.minus(largest, z.number(distance)))


def masked(significand: Int, mask: int) -> Int:
    """Some bits of a significand."""
    width = mask.bit_length()
    return z.natural(t.bits_and(z.as_bits(significand, width), t.constant(mask, width)))


def summed(totals: Sequence[Int], largest: Int, fraction_bits: int) -> tuple[Int, Int]:
    """The sum of multiples of 2**(largest - fraction_bits), and that exponent."""
    return n.total_of(totals), z.minus(largest, z.number(fraction_bits))


def rounded_down(total: Int, exponent: Int, fraction_bits: int) -> tuple[Int, Int]:
    """A sum with its exponent, normalised and rounded down to so many fraction bits."""
    negative = z.less(total, z.number(0))
    bits, places = z.normalised(z.magnitude(total))
    cut_off = bits.width - 1 - fraction_bits
    if cut_off <= 0:
        return total, exponent
    kept = z.shifted_right(z.natural(bits), z.number(cut_off), "rd", negative)
    return z.with_sign(negative, kept), z.minus(z.plus(exponent, z.number(cut_off)), places)


# -- sums that are numbers -----------------------------------------------------------------------------------------------
def exact_sum(numbers: Sequence[Number]) -> Number:
    """The exact sum of finite numbers, of alignment exponent 0."""
    total, exponent = sums.exact_sum(numbers)
    return sums.as_number(z.scaled(total, max(exponent.low, 0)), z.number(0), max(-exponent.low, 0), t.TRUE)


def left_out(number: Number, condition: Term) -> Number:
    """A number that takes no part in an alignment where the condition holds."""
    return number._replace(part=t.both(number.part, t.negation(condition)))


def cut_sum(numbers: Sequence[Number], fraction_bits: int, rounding: str) -> Number:
    """Numbers aligned to their largest exponent and cut, summed exactly: a number that keeps this exponent."""
    largest = largest_exponent(numbers)
    total = n.total_of([cut(x, largest, fraction_bits, rounding) for x in numbers])
    return sums.as_number(total, largest, fraction_bits, t.either(*(x.part for x in numbers)))


def sum_aligned(spec: Any, numbers: Sequence[Number]) -> Number:
    """One alignment of all addends of a fused sum, summed exactly; the result keeps the alignment exponent."""
    if spec.fraction_bits is None:
        total, exponent = sums.exact_sum(numbers)
        return sums.as_number(total, exponent, 0, t.TRUE)
    return sums.sum_aligned(spec, numbers, spec.fraction_bits)


def normalising_add(spec: Any, x: Number, y: Number) -> Number:
    """The aligned sum of two addends, normalised to the fraction bits of `spec`."""
    whole = normalised(sum_aligned(spec, [x, y]))
    places = max(whole.point - spec.fraction_bits, 0)
    kept = z.shifted_right(whole.significand, z.number(places), spec.alignment_rounding, whole.negative)
    added = n.plain(whole.negative, kept, whole.align, whole.point - places)
    return n.choose(t.both(x.part, y.part), added, n.choose(y.part, y, x))


# -- encodings -----------------------------------------------------------------------------------------------------------
def zero(fmt: Format) -> Term:
    """The code of +0."""
    return t.constant(0, fmt.bits)


def negative_zero(fmt: Format) -> Term:
    """The code of -0."""
    return t.constant(fmt.sign_bit, fmt.bits)


def unless_special(numbers: Sequence[Number], finite: Callable[[], Term], fmt: Format, spec: SpecialRules) -> Term:
    """The code of the NaN or infinity that a sum of the numbers is; where all are finite, what `finite` gives."""
    return n.with_specials(numbers, finite(), fmt, spec)


def add(
    x: Term, x_format: Format, y: Term, y_format: Format, fmt: Format, spec: SpecialRules, rounding: str,
    flush: bool = False, to_inf: bool = False,
) -> Term:  # fmt: skip
    """IEEE addition of two codes; `flush`: results that are encoded as subnormal numbers become zero."""
    return n.ieee_sum([decode(x_format, x, spec), decode(y_format, y, spec)], fmt, spec, rounding, flush, to_inf)


def fma(
    x: Number, y: Number, addend: Number, fmt: Format, spec: SpecialRules, rounding: str, flush: bool, saturate: bool,
    draw: int = 0,
) -> Term:  # fmt: skip
    """IEEE fused multiply-add; stochastic roundings, which take a `draw`, have no encoding."""
    if flush or saturate or spec.nan in ("x86", "dmma"):
        unencodable("a fused multiply-add that flushes, saturates or keeps NaN payloads has no encoding")
    return n.ieee_sum([multiply(x, y), addend], fmt, spec, rounding)


def converted(fmt: Format, code: Term, via: Format, spec: SpecialRules) -> Term:
    """A code in a format that has all numbers of its own."""
    x = decode(fmt, code, spec)
    exponent = z.minus(x.align, z.number(x.point))
    rounded = n.rounded_magnitude(x.negative, x.significand, exponent, via, "rne")
    finite = n.encoded(x.negative, z.as_bits(rounded.code, via.exponent_bits + via.fraction_bits), via)
    infinite = n.encoded(x.negative, t.constant(via.exponent_mask >> via.padding_bits, finite.width - 1), via)
    found = t.choose(x.inf, infinite, finite)
    return found if x.nan is t.FALSE else t.choose(x.nan, t.constant(via.nan_encoding(), via.bits), found)


def without_subnormals(code: Term, fmt: Format) -> Term:
    """A code, or a zero of its sign in place of a subnormal number."""
    high, low = fmt.exponent_bits + fmt.fraction_bits + fmt.padding_bits - 1, fmt.fraction_bits + fmt.padding_bits
    sign = t.joined(t.extract(code, fmt.bits - 1, fmt.bits - 1), t.constant(0, fmt.bits - 1))
    return t.choose(t.any_bit(t.extract(code, high, low)), code, sign)


def unencodable(reason: str) -> None:
    """Raises Unencodable: whatever follows is for plain integers."""
    raise Unencodable(reason)
