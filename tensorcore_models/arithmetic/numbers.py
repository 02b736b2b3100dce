"""This module decodes, multiplies, truncates, rounds and encodes numbers, stated once over integers of known range.

Every number has a `point`: its value is ``(-1)^negative * significand * 2^(align - point)``, so that numbers are aligned by a
shift by the difference of their alignment exponents. A zero has the significand 0 and any exponent. On plain integers these
functions are the slow exact reference of every test; on bit-vectors they build the terms that solvers are asked about.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..formats import Format
from ..formats.exact_rounding import overflow_bits
from . import operations as z
from .operations import Condition, Whole, larger, low, natural, never, no, same, select, shifted_right


class SpecialRules(Protocol):
    """`SpecialRules` are the edge rules of every accumulator for decoding operands and for encoding special results."""

    @property
    def nan(self) -> str: ...
    @property
    def tf32_nan(self) -> str: ...
    @property
    def key(self) -> int | None: ...


class UnderflowRule(Protocol):
    """`UnderflowRule` is the edge rule that gives the sign of a negative sum that rounds to zero."""

    @property
    def negative_underflow(self) -> str: ...


class Number(NamedTuple):
    """`Number` is a decoded number, finite unless `nan` or `inf` holds; `part` says whether it takes part in an alignment.

    Edge rules can exclude zeros from alignments. The last `point` bits of a decoded NaN's significand are its fraction field.
    """

    nan: Condition
    inf: Condition
    negative: Condition
    significand: Whole
    align: Whole
    part: Condition
    point: int

    @property
    def is_zero(self) -> Condition:
        """Say that the number is zero."""
        return no(self.nan | self.inf) & same(self.significand, 0)

    @property
    def kind(self) -> str:
        """Name the kind of a number of plain integers: "finite", "inf" or "nan"."""
        return "nan" if self.nan else "inf" if self.inf else "finite"

    @property
    def exponent(self) -> Whole:
        """Return the exponent of the significand's unit in the last place."""
        return self.align - self.point


def plain(negative: Condition, significand: Whole, align: Whole, point: int, part: Condition = True) -> Number:
    """Make a finite number."""
    return Number(False, False, negative, significand, align, part, point)


def noted(number: Number, does: str, *about: Any) -> Number:
    """Report how `number` was computed to an interpreter that keeps notes, and return `number`."""
    known = type(number.significand) is int
    if known and type(number.align) is int:
        return number
    return z.noted(number, does, *about, by=number.align if known else number.significand)


# -- decoding ------------------------------------------------------------------------------------------------------------
def zero_exponent(rule: str, fmt: Format) -> int | None:
    """Return the alignment exponent of a zero under the edge rules zero_operand and zero_c; None if it takes no part."""
    return {"minus126": -126, "format_minimum": fmt.emin, "skip": None}[rule]


def decode(fmt: Format, code: Any, spec: SpecialRules, *, zero_rule: str = "format_minimum") -> Number:
    """Decode one encoding under the edge rules of `spec`; the code of a format without fields must be a plain integer.

    The alignment exponent is the one of the encoding: subnormal numbers have the smallest normal exponent.
    """
    if not fmt.has_fields:
        x = fmt.decode_exact(code)
        return Number(x.kind == "nan", x.kind == "inf", x.negative, x.significand, x.exponent, True, 0)
    point, whole = fmt.fraction_bits, natural(code)
    magnitude = whole >> fmt.padding_bits & (1 << fmt.exponent_bits + point) - 1
    field = magnitude >> point
    nan, inf = map(z.seldom, _specials(fmt, whole, magnitude, spec.tf32_nan == "kept"))
    negative = same(whole >> (fmt.bits - 1) & 1, 1) if fmt.signed else False
    if not fmt.has_subnormals:
        number = Number(nan, inf, negative, 1, field - fmt.bias, True, 0)
        return number if type(code) is int else noted(number, "decoded", fmt, code, zero_rule)
    nothing = same(field, 0)
    significand = select(nothing, 0, 1 << point) + (magnitude & (1 << point) - 1)
    align = larger(field, 1) - fmt.bias
    part: Condition = True
    if nothing is not False:
        zero, exponent = no(nan | inf) & same(significand, 0), zero_exponent(zero_rule, fmt)
        if exponent is None:
            part = no(zero)
        elif exponent != fmt.emin:  # emin is the exponent of subnormal numbers and already set
            align = select(zero, exponent, align)
    number = Number(nan, inf, negative, significand, align, part, point)
    return number if type(code) is int else noted(number, "decoded", fmt, code, zero_rule)


def _specials(fmt: Format, code: Whole, magnitude: Whole, keeps_padding: bool) -> tuple[Condition, Condition]:
    """Return two conditions: the encoding is a NaN, and it is an infinity."""
    if fmt.specials == "ieee":
        top = fmt.exponent_mask >> fmt.padding_bits
        nan, inf = top < magnitude, same(magnitude, top)
        if keeps_padding and fmt.padding_bits:
            payload = inf & ((code & (1 << fmt.padding_bits) - 1) > 0)
            return nan | payload, inf & no(payload)
        return nan, inf
    if fmt.specials == "fnuz":
        return same(code & 2 * fmt.sign_bit - 1, fmt.sign_bit), False
    if fmt.specials in ("fn", "scale"):
        return same(magnitude, fmt.magnitude_mask >> fmt.padding_bits), False
    return False, False


def positive_zero(number: Number) -> Number:
    """Replace a zero of either sign with +0; other numbers stay."""
    return noted(number._replace(negative=number.negative & no(number.is_zero)), "same", number)


def flushed(number: Number, below: int) -> Number:
    """Replace `number` with a zero of its sign if its magnitude is below 2**below.

    The leading bit of a normal number is at the point, and that of a subnormal number below the point.
    """
    subnormal = (number.significand < 1 << number.point) & (number.align <= below)
    tiny = subnormal | (number.align < below)
    if tiny is False:
        return number
    return noted(number._replace(significand=select(tiny, 0, number.significand)), "flushed", number, below)


def flushed_to_zero(number: Number, fmt: Format, zero_rule: str) -> Number:
    """Replace a subnormal number with a zero of its sign, which is aligned like a zero operand (`zero_rule`)."""
    zero = flushed(number, fmt.emin)
    small, exponent = zero.is_zero, zero_exponent(zero_rule, fmt)
    if exponent is None:
        return noted(zero._replace(part=number.part & no(small)), "flushed", number, fmt.emin)
    # A flushed zero has the exponent of a zero operand: the smallest of its format, or a constant.
    return noted(zero._replace(align=select(small, exponent, number.align)), "flushed", number, max(fmt.emin, exponent))


# -- products ------------------------------------------------------------------------------------------------------------
def multiply(x: Number, y: Number) -> Number:
    """Multiply x and y exactly without normalising: alignment exponents add up; infinity and NaN follow the IEEE rules."""
    nan, inf = x.nan | y.nan, x.inf | y.inf
    if inf is not False:
        nan = nan | (x.inf & y.is_zero) | (y.inf & x.is_zero)
        inf = no(nan) & inf
    product = Number(
        nan,
        inf,
        x.negative ^ y.negative,
        x.significand * y.significand,
        x.align + y.align,
        x.part & y.part,
        x.point + y.point,
    )
    return product if type(product.align) is int else noted(product, "product", (x, y))


def scaled_product(a: Number, b: Number, scales: tuple[Number, ...], scaled_zero: str) -> Number:
    """Multiply two operands and their block scales; exponents add up."""
    product = multiply(a, b)
    skipped = product.is_zero if scales and scaled_zero == "skip" else False
    for scale in scales:
        product = multiply(product, scale)
    if skipped is False:
        return product
    return noted(product._replace(part=product.part & no(skipped)), "product", (a, b, *scales))


def part_products(product: Number, x: Number, y: Number, masks: Sequence[tuple[int, int]]) -> list[Number]:
    """Multiply parts of the significands of x and y; each partial product keeps the exponent of the given product.

    `masks` are pairs of a bit mask of x and a bit mask of y; each pair of one bit of x and one bit of y is in exactly one.
    """
    parts = [product._replace(significand=(x.significand & left) * (y.significand & right)) for left, right in masks]
    return [noted(part, "parts", product, index, len(parts)) for index, part in enumerate(parts)]


def normalised(number: Number) -> Number:
    """Give `number` the exponent of its leading bit as alignment exponent; a zero keeps its own."""
    significand, top, places = z.normalised(number.significand)
    leading = number.align + (top - number.point) - places
    align = select(same(number.significand, 0), number.align, leading)
    return noted(number._replace(significand=significand, align=align, point=top), "same", number)


def overflowed(product: Number, limit: int | None) -> Number:
    """Replace `product` with an infinity of its sign if its magnitude is at least 2**limit."""
    above = z.high(product.significand).bit_length() - 1 - product.point
    near = limit is not None and z.seldom(limit - above - 1 < product.align)
    if limit is None or near is False:
        return product
    finite = no(product.nan | product.inf | same(product.significand, 0))
    return product._replace(inf=product.inf | near & finite & (limit <= normalised(product).align))


def with_point(number: Number, point: int) -> Number:
    """Give `number` more places below the point; its value stays."""
    longer = number._replace(significand=number.significand << (point - number.point), point=point)
    return noted(longer, "same", number)


def choose(condition: Condition, x: Number, y: Number) -> Number:
    """Take x where the condition holds, else y, both finite."""
    point = max(x.point, y.point)
    pairs = zip(with_point(x, point)[2:6], with_point(y, point)[2:6], strict=True)
    negative, significand, align, part = (select(condition, *pair) for pair in pairs)
    return plain(negative, significand, align, point, part)


# -- alignment -----------------------------------------------------------------------------------------------------------
def taking_part(numbers: Iterable[Number]) -> list[Number]:
    """Leave out numbers that cannot take part in an alignment."""
    return [x for x in numbers if not never(x.part)]


def left_out(number: Number, condition: Condition) -> Number:
    """Let a number take no part in an alignment where the condition holds."""
    return noted(number._replace(part=number.part & no(condition)), "left_out", number, condition)


def largest_exponent(numbers: Sequence[Number], floor: int | None = None) -> Whole:
    """Return the alignment exponent of a fused sum: the largest exponent of the numbers that take part, at least `floor`."""
    lowest = min(low(x.align) for x in numbers)
    largest = lowest
    for x in numbers:
        largest = larger(largest, x.align if x.part is True else select(x.part, x.align, lowest))
    return z.noted(largest if floor is None else larger(largest, floor), "largest", numbers, floor)


def farther(number: Number, largest: Whole, distance: int) -> Condition:
    """Say that a number's alignment exponent is below the largest one by more than a distance."""
    return number.align < largest - distance


def cut(number: Number, largest: Whole, fraction_bits: int, rounding: str) -> Whole:
    """Round a number to a signed multiple of 2**(largest - fraction_bits); `largest` is at least its exponent."""
    distance, places = larger(largest - number.align, 0), fraction_bits - number.point
    significand = number.significand << places if places > 0 else number.significand
    size = shifted_right(significand, distance - places if places < 0 else distance, rounding, number.negative)
    if type(size) is int and type(number.negative) is bool:
        return -size if number.negative else size
    return z.noted(select(number.negative, -size, size), "cut", number, largest, fraction_bits, rounding)


# -- results -------------------------------------------------------------------------------------------------------------
class Rounded(NamedTuple):
    """`Rounded` is the encoding of a magnitude without padding; `overflow` says that it exceeds the largest finite number."""

    code: Whole
    overflow: Condition


def rounded_magnitude(
    negative: Condition,
    value: Whole,
    exponent: Whole,
    fmt: Format,
    rounding: str,
    fraction_bits: int | None = None,
    draw: int = 0,
) -> Rounded:
    """Normalise a natural number times 2**exponent and round it once to an encoding of `fmt`.

    `fraction_bits` may be fewer than the format stores (the remaining bits are 0); `draw` is the draw of a stochastic rounding.
    """
    kept = fmt.fraction_bits if fraction_bits is None else min(fraction_bits, fmt.fraction_bits)
    pad = max(kept + 1 - z.high(value).bit_length(), 0)
    significand, top, places = z.normalised(value << pad)
    leading = exponent + (top - pad) - places
    below = larger(fmt.emin - leading, 0)
    rounded = shifted_right(significand, below + (top - kept), rounding, negative, draw)
    field = larger(leading, fmt.emin) - fmt.emin
    code = ((field << kept) + rounded) << (fmt.fraction_bits - kept)
    code = select(same(value, 0), 0, code)
    return Rounded(code, fmt.max_bits >> fmt.padding_bits < code)


def encoded(negative: Condition, code: Whole, fmt: Format) -> Any:
    """Join a sign and a magnitude (without padding) to an encoding."""
    return z.joined(negative, code, fmt.bits, fmt.padding_bits, fmt.signed)


def finish(
    total: Whole,
    exponent: Whole,
    fmt: Format,
    spec: UnderflowRule,
    rounding: str,
    fraction_bits: int | None = None,
    flush: bool = False,
    draw: int = 0,
) -> Any:
    """Normalise and round ``total * 2**exponent`` to `fmt`; the exact sum 0 is +0, overflow is infinity."""
    negative = total < 0
    code, overflow = rounded_magnitude(negative, z.magnitude(total), exponent, fmt, rounding, fraction_bits, draw)
    code, zero = without_small(code, fmt) if flush else (code, same(code, 0))
    minus = negative if spec.negative_underflow == "negative" and fmt.has_negative_zero else negative & no(zero)
    found = with_overflow(encoded(minus, code, fmt), overflow, negative, fmt)
    return z.noted(found, "rounded", total, exponent, fmt, rounding, fraction_bits, flush)


def without_small(code: Whole, fmt: Format) -> tuple[Whole, Condition]:
    """Replace a rounded magnitude that is subnormal with 0; return it and the condition that it is 0."""
    zero = code < 1 << fmt.fraction_bits
    return select(zero, 0, code), zero


def with_overflow(
    result: Any, overflow: Condition, negative: Condition, fmt: Format, rounding: str = "rne", saturate: bool = False
) -> Any:
    """Return `result`, or where it overflows the encoding that the rounding gives beyond the largest finite number."""
    if overflow is False:
        return result
    plus, minus = (overflow_bits(sign, fmt, rounding, saturate) for sign in (False, True))
    return select(overflow, select(negative, minus, plus, fmt.bits), result, fmt.bits)


def flushed_to_positive(code: Any, fmt: Format, spec: SpecialRules, below: int) -> Any:
    """Replace the encoding of a number below 2**below in magnitude, and that of -0, with +0."""
    small = flushed(decode(fmt, code, spec), below).is_zero
    return z.noted(select(small, 0, code, fmt.bits), "recoded", code, fmt, below)


def without_subnormals(code: Any, fmt: Format) -> Any:
    """Replace the encoding of a subnormal number with a zero of its sign."""
    whole = natural(code)
    found = select(same(whole & fmt.exponent_mask, 0), whole & fmt.sign_bit, code, fmt.bits)
    return z.noted(found, "recoded", code, fmt, fmt.emin)


# -- specials ------------------------------------------------------------------------------------------------------------
NAN, POSITIVE_INF, NEGATIVE_INF = "nan", "+inf", "-inf"


def special_sum(numbers: Iterable[Number]) -> tuple[Condition, Condition, Condition]:
    """Return three conditions: a sum of numbers is NaN, +infinity, -infinity; if NaN holds, it takes precedence."""
    nan: Condition = False
    positive: Condition = False
    negative: Condition = False
    for x in numbers:
        if x.inf is not False:
            positive, negative = positive | x.inf & no(x.negative), negative | x.inf & x.negative
        if x.nan is not False:
            nan = nan | x.nan
    return nan | positive & negative, positive, negative


def special_bits(special: str, fmt: Format, spec: SpecialRules) -> int:
    """Encode a special result: NaN by the edge rule `nan`, infinity by the format (NaN if the format has no infinity)."""
    if special != NAN:
        return overflow_bits(special == NEGATIVE_INF, fmt)
    if fmt.specials == "ieee" and spec.nan == "all_ones":
        return fmt.magnitude_mask | ((1 << fmt.padding_bits) - 1)
    if fmt.nan_bits is None:
        raise OverflowError(f"the result is NaN, which {fmt.name} cannot encode: use an output format with NaN")
    return fmt.nan_bits


def unless_special(
    numbers: Iterable[Number], finite: Callable[[], Any], fmt: Format, code_of: SpecialRules | Callable[[str], Any]
) -> Any:
    """Return the encoding of a sum: NaN or infinity if the numbers give one, else the value of `finite`.

    `code_of` are the edge rules that encode a special result, or a function from the name of a special result to its encoding.
    """
    specials = special_sum(numbers)
    if all(map(never, specials)):
        return finite()
    cases = [(x, name) for x, name in zip(specials, (NAN, POSITIVE_INF, NEGATIVE_INF), strict=True) if not never(x)]
    codes = code_of if callable(code_of) else lambda name: special_bits(name, fmt, code_of)
    for condition, name in cases[:1]:
        if condition is True:
            return codes(name)
    result = found = finite()
    for condition, name in reversed(cases):
        found = select(condition, codes(name), found, fmt.bits)
    return z.noted(found, "like", result, fmt)
