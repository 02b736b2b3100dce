"""Encodings taken apart, multiplied, aligned and put together again, as terms: the twin of `reference.operands` and `finish`.

Every number has a fixed `point`: its value is ``(-1)^negative * significand * 2^(align - point)``, so that a shift by a
difference of alignment exponents is all that an alignment needs. Zeros have the significand 0 and any exponent.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..formats import Format
from ..formats.exact_rounding import overflow_bits
from ..reference.aligned import UnderflowRule
from ..reference.operands import NAN, SpecialRules, special_bits, zero_exponent
from . import integers as z
from . import terms as t
from .integers import Int
from .terms import Term


class Number(NamedTuple):
    """One number; `nan` and `inf` say what it is otherwise, `part` whether an alignment has it (edge rules leave zeros out)."""

    nan: Term
    inf: Term
    negative: Term
    significand: Int
    align: Int
    part: Term
    point: int

    @property
    def is_zero(self) -> Term:
        return t.both(t.negation(self.nan), t.negation(self.inf), z.is_zero(self.significand))


def plain(negative: Term, significand: Int, align: Int, point: int, part: Term = t.TRUE) -> Number:
    """A finite number."""
    return Number(t.FALSE, t.FALSE, negative, significand, align, part, point)


def _specials(fmt: Format, code: Term, magnitude: Term, keeps_padding: bool) -> tuple[Term, Term]:
    """Whether an encoding is a NaN, whether it is an infinity."""
    width = magnitude.width
    if fmt.specials == "ieee":
        top = t.constant(fmt.exponent_mask >> fmt.padding_bits, width)
        nan, inf = t.below(top, magnitude), t.equal(magnitude, top)
        if keeps_padding and fmt.padding_bits:
            payload = t.both(inf, t.any_bit(t.extract(code, fmt.padding_bits - 1, 0)))
            return t.either(nan, payload), t.both(inf, t.negation(payload))
        return nan, inf
    if fmt.specials == "fnuz":
        return t.equal(code, t.constant(fmt.sign_bit, code.width)), t.FALSE
    if fmt.specials in ("fn", "scale"):
        return t.equal(magnitude, t.constant((1 << width) - 1, width)), t.FALSE
    return t.FALSE, t.FALSE


def decode(fmt: Format, code: Term, spec: SpecialRules, *, zero_rule: str = "format_minimum") -> Number:
    """Take one encoding (a term of `fmt.bits` bits) apart under the edge rules of `spec`."""
    width = fmt.exponent_bits + fmt.fraction_bits
    magnitude = t.extract(code, fmt.padding_bits + width - 1, fmt.padding_bits)
    nan, inf = _specials(fmt, code, magnitude, spec.tf32_nan == "kept")
    negative = t.bit(code, fmt.bits - 1) if fmt.signed else t.FALSE
    field = z.natural(t.extract(magnitude, width - 1, fmt.fraction_bits))
    fraction = z.natural(t.extract(magnitude, fmt.fraction_bits - 1, 0)) if fmt.fraction_bits else z.number(0)
    if not fmt.has_subnormals:
        return Number(nan, inf, negative, z.number(1), z.minus(field, z.number(fmt.bias)), t.TRUE, 0)
    hidden = z.select(z.is_zero(field), z.number(0), z.number(1 << fmt.fraction_bits))
    significand = z.ranged(z.plus(hidden, fraction).term, 0, (2 << fmt.fraction_bits) - 1)
    align = z.minus(z.larger(field, z.number(1)), z.number(fmt.bias))
    number = Number(nan, inf, negative, significand, align, t.TRUE, fmt.fraction_bits)
    exponent = zero_exponent(zero_rule, fmt)
    if exponent is None:
        return number._replace(part=t.either(nan, inf, t.negation(number.is_zero)))
    return number._replace(align=z.select(number.is_zero, z.number(exponent), align))


def flushed(number: Number, below: int) -> Number:
    """`number`, with the significand 0 if it is below 2**below.

    The leading bit of `number` is at the point; that of a subnormal number is below the point.
    """
    subnormal = t.both(
        z.less(number.significand, z.number(1 << number.point)), z.at_most(number.align, z.number(below))
    )
    tiny = t.either(subnormal, z.less(number.align, z.number(below)))
    return number._replace(significand=z.select(tiny, z.number(0), number.significand))


def flushed_to_zero(number: Number, fmt: Format, zero_rule: str) -> Number:
    """`number`; a number below the smallest normal one becomes a zero, which is aligned as `zero_rule` says."""
    zero = flushed(number, fmt.emin)
    small = t.both(zero.is_zero, t.negation(t.either(number.nan, number.inf)))
    exponent = zero_exponent(zero_rule, fmt)
    if exponent is None:
        return zero._replace(part=t.both(number.part, t.negation(small)))
    return zero._replace(align=z.select(small, z.number(exponent), number.align))


def multiply(x: Number, y: Number) -> Number:
    """Exact product, not normalised; infinity and NaN by IEEE's rules."""
    nan = t.either(x.nan, y.nan, t.both(x.inf, y.is_zero), t.both(y.inf, x.is_zero))
    return Number(
        nan,
        t.both(t.negation(nan), t.either(x.inf, y.inf)),
        t.exclusive(x.negative, y.negative),
        z.times(x.significand, y.significand),
        z.plus(x.align, y.align),
        t.both(x.part, y.part),
        x.point + y.point,
    )


def normalised(number: Number) -> Number:
    """`number` with the exponent of its leading bit as alignment exponent; a zero keeps its own."""
    bits, places = z.normalised(number.significand)
    top = bits.width - 1
    leading = z.minus(z.plus(number.align, z.number(top - number.point)), places)
    align = z.select(z.is_zero(number.significand), number.align, leading)
    return number._replace(significand=z.natural(bits), align=align, point=top)


def with_point(number: Number, point: int) -> Number:
    """Give `number` more places below the point; its value stays."""
    return number._replace(significand=z.scaled(number.significand, point - number.point), point=point)


def choose(condition: Term, x: Number, y: Number) -> Number:
    """Finite numbers: x where the condition holds, else y."""
    point = max(x.point, y.point)
    x, y = with_point(x, point), with_point(y, point)
    return plain(
        t.choose(condition, x.negative, y.negative),
        z.select(condition, x.significand, y.significand),
        z.select(condition, x.align, y.align),
        point,
        t.choose(condition, x.part, y.part),
    )


def overflowed(product: Number, limit: int | None) -> Number:
    """`product`, or an infinity of its sign if it is at or beyond 2**limit."""
    if limit is None or product.align.high + product.significand.high.bit_length() - 1 - product.point < limit:
        return product
    beyond = t.both(
        t.negation(t.either(product.nan, product.inf, z.is_zero(product.significand))),
        z.at_most(z.number(limit), normalised(product).align),
    )
    return product._replace(inf=t.either(product.inf, beyond))


# -- alignment -----------------------------------------------------------------------------------------------------------
def largest_exponent(numbers: Sequence[Number], floor: int | None = None) -> Int:
    """Alignment exponent of a fused sum; what takes no part counts as the lowest exponent there is."""
    lowest = min(x.align.low for x in numbers)
    largest = z.number(lowest)
    for x in numbers:
        largest = z.larger(largest, z.select(x.part, x.align, z.number(lowest)))
    return largest if floor is None else z.larger(largest, z.number(floor))


def aligned(number: Number, largest: Int, fraction_bits: int, rounding: str) -> Int:
    """Signed multiple of 2**(largest - fraction_bits) that `number` becomes; `largest` is at least its exponent."""
    distance = z.minus(largest, number.align)
    distance = z.ranged(z.larger(distance, z.number(0)).term, 0, max(distance.high, 0))
    places = fraction_bits - number.point
    significand = z.scaled(number.significand, max(places, 0))
    amount = z.plus(distance, z.number(max(-places, 0)))
    return z.with_sign(number.negative, z.shifted_right(significand, amount, rounding, number.negative))


def total_of(addends: Sequence[Int]) -> Int:
    """Sum in the order given, all of it as wide as the result: solvers know that such additions commute."""
    low, high = sum(x.low for x in addends), sum(x.high for x in addends)
    width = max(z.width_of(low, high), *(x.width for x in addends))
    total = t.constant(0, width)
    for x in addends:
        total = t.added(total, t.sign_extended(x.term, width))
    return z.ranged(total, low, high)


# -- results -------------------------------------------------------------------------------------------------------------
def special_sum(numbers: Sequence[Number]) -> tuple[Term, Term, Term]:
    """Whether a sum of numbers is NaN, +infinity, -infinity before anything is added."""
    positive = t.either(*(t.both(x.inf, t.negation(x.negative)) for x in numbers))
    negative = t.either(*(t.both(x.inf, x.negative) for x in numbers))
    nan = t.either(*(x.nan for x in numbers), t.both(positive, negative))
    return nan, positive, negative


def with_specials(numbers: Sequence[Number], finite: Term, fmt: Format, spec: SpecialRules) -> Term:
    """The encoding `finite`, or that of the special result of `numbers`."""
    nan, positive, negative = special_sum(numbers)
    result = finite
    for condition, name in ((negative, "-inf"), (positive, "+inf"), (nan, NAN)):
        if condition is not t.FALSE:
            result = t.choose(condition, t.constant(special_bits(name, fmt, spec), fmt.bits), result)
    return result


class Rounded(NamedTuple):
    """A rounded magnitude: its encoding without padding, whether that is beyond the largest finite number."""

    code: Int
    overflow: Term


def rounded_magnitude(
    is_negative: Term, value: Int, exponent: Int, fmt: Format, rounding: str, fraction_bits: int | None = None
) -> Rounded:
    """A natural number times 2**exponent as encoding of `fmt`: normalised, rounded once (`round_to_bits`)."""
    kept = fmt.fraction_bits if fraction_bits is None else min(fraction_bits, fmt.fraction_bits)
    pad = max(kept + 2 - value.width, 0)
    bits, places = z.normalised(z.scaled(value, pad))
    top = bits.width - 1
    leading = z.minus(z.plus(exponent, z.number(top - pad)), places)
    lowest = z.number(fmt.emin)
    below = z.larger(z.minus(lowest, leading), z.number(0))
    amount = z.plus(z.number(top - kept), z.ranged(below.term, 0, below.high))
    significand = z.shifted_right(z.natural(bits), amount, rounding, is_negative)
    field = z.minus(z.larger(leading, lowest), lowest)
    field = z.ranged(field.term, 0, max(field.high, 0))
    code = z.scaled(z.plus(z.scaled(field, kept), significand), fmt.fraction_bits - kept)
    code = z.select(z.is_zero(value), z.number(0), code)
    most = z.number(fmt.max_bits >> fmt.padding_bits)
    return Rounded(code, z.less(most, code))


def encoded(is_negative: Term, magnitude: Term, fmt: Format) -> Term:
    """Sign and magnitude (without padding) as an encoding."""
    if fmt.padding_bits:
        magnitude = t.joined(magnitude, t.constant(0, fmt.padding_bits))
    if not fmt.signed:
        return magnitude
    return t.joined(t.choose(is_negative, t.constant(1, 1), t.constant(0, 1)), magnitude)


def finish(
    total: Int,
    exponent: Int,
    fmt: Format,
    spec: UnderflowRule,
    rounding: str,
    fraction_bits: int | None = None,
    flush: bool = False,
) -> Term:
    """Normalise and round ``total * 2**exponent`` to `fmt`; the exact sum 0 is +0, overflow is infinity."""
    negative = z.less(total, z.number(0))
    code, overflow = rounded_magnitude(negative, z.magnitude(total), exponent, fmt, rounding, fraction_bits)
    magnitude, zero = _flushed_bits(code, fmt, flush)
    keeps_sign = spec.negative_underflow == "negative" and fmt.has_negative_zero
    result = encoded(t.both(negative, t.either(t.negation(zero), t.TRUE if keeps_sign else t.FALSE)), magnitude, fmt)
    return _with_overflow(result, overflow, negative, fmt, "rne")


def _flushed_bits(code: Int, fmt: Format, flush: bool) -> tuple[Term, Term]:
    """The bits of a rounded magnitude, without subnormal numbers if they are flushed, and whether it is zero."""
    magnitude = z.as_bits(code, fmt.exponent_bits + fmt.fraction_bits)
    if not flush:
        return magnitude, z.is_zero(code)
    zero = z.less(code, z.number(1 << fmt.fraction_bits))
    return t.choose(zero, t.constant(0, magnitude.width), magnitude), zero


def _with_overflow(result: Term, overflow: Term, negative: Term, fmt: Format, rounding: str) -> Term:
    if overflow is t.FALSE:
        return result
    beyond = t.choose(negative, *(t.constant(overflow_bits(sign, fmt, rounding), fmt.bits) for sign in (True, False)))
    return t.choose(overflow, beyond, result)


def ieee_sum(
    numbers: Sequence[Number], fmt: Format, spec: SpecialRules, rounding: str, flush: bool = False, to_inf: bool = False
) -> Term:
    """IEEE sum of two numbers, rounded once; signed zeros by IEEE 754-2019, 6.3. `to_inf`: overflow is always infinity.

    The addends are normalised and kept to enough bits, the last of them the logical OR of what is cut off.
    """
    terms = [normalised(x)._replace(part=t.negation(z.is_zero(x.significand))) for x in numbers]
    fraction_bits = max(fmt.fraction_bits + 3, *(x.point + 2 for x in terms))
    largest = largest_exponent(terms)
    total = total_of([aligned(x, largest, fraction_bits, "ro") for x in terms])
    nothing = z.is_zero(total)
    all_zero, all_negative = t.both(*(x.is_zero for x in numbers)), t.both(*(x.negative for x in numbers))
    any_negative = t.either(*(x.negative for x in numbers))
    minus_zero = t.either(t.both(all_zero, all_negative), any_negative if rounding == "rd" else t.FALSE)
    negative = t.choose(nothing, minus_zero, z.less(total, z.number(0)))
    exponent = z.minus(largest, z.number(fraction_bits))
    code, overflow = rounded_magnitude(negative, z.magnitude(total), exponent, fmt, rounding)
    magnitude, zero = _flushed_bits(code, fmt, flush)
    if not fmt.has_negative_zero:
        negative = t.both(negative, t.negation(zero))
    result = _with_overflow(encoded(negative, magnitude, fmt), overflow, negative, fmt, "rne" if to_inf else rounding)
    return with_specials(numbers, result, fmt, spec)
