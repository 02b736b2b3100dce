"""This module adds numbers in three ways: aligned to a common exponent, exactly, and by the IEEE rules."""

from collections.abc import Sequence
from typing import Any

from ..formats import Format
from . import operations as z
from .numbers import (
    NAN,
    NEGATIVE_INF,
    Number,
    SpecialRules,
    choose,
    cut,
    decode,
    encoded,
    finish,
    largest_exponent,
    multiply,
    normalised,
    noted,
    plain,
    rounded_magnitude,
    special_bits,
    unless_special,
    with_overflow,
    without_small,
)
from .operations import Condition, Whole, every, low, no, same, select, shifted_left, shifted_right, some

#: Flush modes. KEEP flushes nothing; SUBNORMAL flushes results that are encoded as subnormal numbers; TINY flushes results that
#: are below the smallest normal number when rounded with an unbounded exponent.
KEEP, SUBNORMAL, TINY = range(3)


# -- aligned sums --------------------------------------------------------------------------------------------------------
def as_number(total: Whole, align: Whole, point: int, part: Condition = True) -> Number:
    """Return a signed sum in units of 2^(align - point) as a number with the alignment exponent `align`."""
    return noted(plain(total < 0, z.magnitude(total), align, point, part), "signed", total)


def summed(totals: Sequence[Whole], largest: Whole, fraction_bits: int) -> tuple[Whole, Whole]:
    """Add multiples of 2**(largest - fraction_bits); return the sum and that exponent."""
    return z.total(totals), largest - fraction_bits


def cut_sum(numbers: Sequence[Number], fraction_bits: int, rounding: str) -> Number:
    """Align numbers to their largest exponent, truncate them and add exactly; the sum keeps this exponent."""
    largest = largest_exponent(numbers)
    total = cut_total(numbers, largest, fraction_bits, rounding)
    return as_number(total, largest, fraction_bits, some(x.part for x in numbers))


def cut_total(numbers: Sequence[Number], largest: Whole, fraction_bits: int, rounding: str) -> Whole:
    """Round numbers to multiples of 2**(largest - fraction_bits) and add them."""
    total = z.total([cut(x, largest, fraction_bits, rounding) for x in numbers])
    return z.noted(total, "cut_total", numbers, largest, fraction_bits, rounding)


def exact_total(numbers: Sequence[Number]) -> tuple[Whole, int]:
    """Add finite numbers exactly; return the sum and the exponent of its unit."""
    unit = min([low(x.align) - x.point for x in numbers])
    sizes = [shifted_left(x.significand, x.align - (x.point + unit)) for x in numbers]
    total = z.total([select(x.negative, -size, size) for x, size in zip(numbers, sizes, strict=True)])
    return z.noted(total, "total", numbers, unit), unit


def exact_sum(numbers: Sequence[Number]) -> Number:
    """Add finite numbers exactly; the sum has the alignment exponent 0."""
    total, unit = exact_total(numbers)
    return as_number(total << max(unit, 0), 0, max(-unit, 0))


def sum_aligned(spec: Any, numbers: Sequence[Number], largest: Whole | None = None) -> Number:
    """Align all addends of a fused sum once (to `largest`, if given) and add exactly; the sum keeps that exponent."""
    if spec.fraction_bits is None:
        total, unit = exact_total(numbers)
        return as_number(total, unit, 0)
    if largest is None:
        largest = largest_exponent(numbers, spec.exponent_floor)
    # With `sticky`, one more bit is the OR of all bits that are cut off.
    kept, rounding = (spec.fraction_bits + 1, "ro") if spec.sticky else (spec.fraction_bits, spec.alignment_rounding)
    total = cut_total(numbers, largest, kept, rounding)
    if spec.integer_bits is not None:  # the sum wraps: two's complement with integer_bits above 2**largest
        total = z.noted(z.wrapped(total, spec.integer_bits + kept + 1), "wrapped", total, largest - kept)
    return as_number(total, largest, kept, some(x.part for x in numbers))


def tree_sum(spec: Any, numbers: Sequence[Number]) -> Number:
    """Add neighbours in a binary tree of two-operand aligned sums; of plain integers, callers pass only those taking part."""
    whole, middle = numbers[0], (len(numbers) + 1) // 2
    if len(numbers) > 1:
        whole = sum_aligned(spec, [tree_sum(spec, half) for half in (numbers[:middle], numbers[middle:])])
    kept, rounding = (spec.fraction_bits + 1, "ro") if spec.sticky else (spec.fraction_bits, spec.alignment_rounding)
    return noted(whole, "tree", numbers, kept, rounding, spec.exponent_floor)


def normalising_add(spec: Any, x: Number, y: Number) -> Number:
    """Add two aligned addends and normalise the sum to the fraction bits of `spec`."""
    whole = normalised(sum_aligned(spec, [x, y]))
    places = max(whole.point - spec.fraction_bits, 0)
    kept = shifted_right(whole.significand, places, spec.alignment_rounding, whole.negative)
    added = plain(whole.negative, kept, whole.align, whole.point - places)
    noted(added, "kept", whole, spec.fraction_bits, spec.alignment_rounding)
    return noted(choose(x.part & y.part, added, choose(y.part, y, x)), "added", added, (x, y))


def rounded_down(total: Whole, exponent: Whole, fraction_bits: int) -> tuple[Whole, Whole]:
    """Normalise total * 2**exponent and round it down to `fraction_bits`; return the sum and the exponent of its unit."""
    negative = total < 0
    significand, top, places = z.normalised(z.magnitude(total))
    cut_off = top - fraction_bits
    if cut_off <= 0:
        return total, exponent
    kept, unit = shifted_right(significand, cut_off, "rd", negative), exponent + cut_off - places
    signed = select(negative, -kept, kept)
    return z.noted(signed, "kept_whole", unit, (total, exponent), fraction_bits, "rd"), unit


def rounded_sum(spec: Any, total: Number, fmt: Format, draw: int = 0) -> Any:
    """Round the sum of a fused operation to the output format; `draw` is the draw of a stochastic rounding."""
    value = z.noted(select(total.negative, -total.significand, total.significand), "valued", total)
    kept, flush = spec.output_fraction_bits, spec.flush_outputs
    return finish(value, total.exponent, fmt, spec, spec.output_rounding, kept, flush, draw)


def with_zero_sign(total: Number, minus: Condition, code: Any, fmt: Format) -> Any:
    """Return the encoding of a rounded sum; where the sum is exactly zero, return -0 if `minus` holds, else +0."""
    zero = select(minus, fmt.sign_bit if fmt.has_negative_zero else 0, 0, fmt.bits)
    return z.noted(select(same(total.significand, 0), zero, code, fmt.bits), "like", code, fmt)


# -- IEEE operations -----------------------------------------------------------------------------------------------------
def ieee_sum(
    numbers: Sequence[Number],
    fmt: Format,
    spec: SpecialRules,
    rounding: str,
    flush: int = KEEP,
    to_inf: bool = False,
    *,
    saturate: bool = False,
    operands: Sequence[Number] | None = None,
    draw: int = 0,
) -> Any:
    """Add one or two numbers by the IEEE rules, rounded once; signed zeros follow IEEE 754-2019, 6.3.

    Parameters
    ----------
    flush : {KEEP, SUBNORMAL, TINY}
        Mode that says which results become zeros of their sign.
    to_inf : bool
        Whether overflow gives infinity in every rounding.
    saturate : bool
        Whether NaN becomes 0, and infinity and overflow become the largest finite number (Ascend 910A).
    operands : sequence of Number, optional
        Operands of the operation, in the order in which the unit looks for a NaN; by default `numbers`.
    draw : int
        Draw of a stochastic rounding.
    """

    def special(name: str) -> Any:
        if saturate:
            return 0 if name == NAN else fmt.max_bits | (fmt.sign_bit if name == NEGATIVE_INF else 0)
        if name == NAN and spec.nan in ("x86", "dmma"):
            return operand_nan(numbers if operands is None else operands, fmt)
        return special_bits(name, fmt, spec)

    def finite() -> Any:
        total, exponent = _total_to_round(numbers, fmt)
        nothing, negative, size = same(total, 0), total < 0, z.magnitude(total)
        if nothing is not False:
            minus = every(x.negative for x in numbers) & every(x.is_zero for x in numbers)
            if rounding == "rd":
                minus = minus | some(x.negative for x in numbers)
            negative = select(nothing, minus, negative)
        code, overflow = rounded_magnitude(negative, size, exponent, fmt, rounding, None, draw)
        zero = same(code, 0)
        if flush == SUBNORMAL:
            code, zero = without_small(code, fmt)
        elif flush == TINY:
            zero = zero | _is_tiny(negative, size, exponent, fmt, rounding, draw)
            code = select(zero, 0, code)
        sign = negative if fmt.has_negative_zero else negative & no(zero)
        how = "rne" if to_inf and not saturate else rounding
        found = with_overflow(encoded(sign, code, fmt), overflow, negative, fmt, how, saturate)
        return z.noted(found, "rounded_sum", numbers, fmt, rounding, flush != KEEP)

    return unless_special(numbers, finite, fmt, special)


def _total_to_round(numbers: Sequence[Number], fmt: Format) -> tuple[Whole, Whole]:
    """Add a few numbers for a rounding to `fmt`; return the sum, which is exact for plain integers, and its exponent.

    For other integers, the addends are normalised first and the sum has just enough bits to be rounded; its last bit is the OR
    of the bits that are cut off. Exact sums of FP32 numbers would be 300 bits wide.
    """
    if all(type(x.significand) is int and type(x.align) is int for x in numbers):
        return exact_total(numbers)
    terms = [normalised(x)._replace(part=no(same(x.significand, 0))) for x in numbers]
    fraction_bits = max(fmt.fraction_bits + 3, *(x.point + 2 for x in terms))
    largest = largest_exponent(terms)
    return z.total([cut(x, largest, fraction_bits, "ro") for x in terms]), largest - fraction_bits


def _is_tiny(negative: Condition, size: Whole, exponent: Whole, fmt: Format, rounding: str, draw: int) -> Condition:
    """Say that size * 2^exponent, rounded to `fmt`'s precision with an unbounded exponent, is below `fmt`'s normal numbers."""
    pad = max(fmt.precision - z.high(size).bit_length(), 0)
    significand, top, places = z.normalised(size << pad)
    rounded = shifted_right(significand, top - fmt.fraction_bits, rounding, negative, draw)
    carry = rounded >> fmt.precision
    return exponent + (top - pad) - places + carry < fmt.emin


def operand_nan(operands: Sequence[Number], fmt: Format) -> Any:
    """Encode a NaN by the edge rules nan "x86" and "dmma": the first NaN of `operands` made quiet, else the default NaN."""
    quiet = fmt.nan_encoding()
    if fmt.specials != "ieee":
        return quiet
    found: Any = quiet | fmt.sign_bit
    for x in reversed(operands):
        payload, up = x.significand & (1 << x.point) - 1, fmt.fraction_bits - x.point
        payload = payload << up if up >= 0 else payload >> -up
        kept = (payload & (1 << fmt.fraction_bits - 1) - 1) + (fmt.nan_encoding() >> fmt.padding_bits)
        found = select(x.nan, encoded(x.negative, kept, fmt), found, fmt.bits)
    return found


def add(
    x: Any, x_format: Format, y: Any, y_format: Format, fmt: Format, spec: SpecialRules, rounding: str = "rne",
    flush: int = KEEP, to_inf: bool = False,
) -> Any:  # fmt: skip
    """Add two encodings by the IEEE rules."""
    return ieee_sum([decode(x_format, x, spec), decode(y_format, y, spec)], fmt, spec, rounding, flush, to_inf)


def fma(
    x: Number, y: Number, addend: Number, fmt: Format, spec: SpecialRules, rounding: str, flush: int = KEEP,
    saturate: bool = False, draw: int = 0,
) -> Any:  # fmt: skip
    """Compute x y + addend by the IEEE rules, rounded once; `draw` is the draw of a stochastic rounding."""
    terms, operands = [multiply(x, y), addend], [y, addend, x] if spec.nan == "dmma" else [x, y, addend]
    return ieee_sum(terms, fmt, spec, rounding, flush, saturate=saturate, operands=operands, draw=draw)


def product(
    x: Number, y: Number, fmt: Format, spec: SpecialRules, rounding: str, flush: int = KEEP, to_inf: bool = False
) -> Any:
    """Compute x y by the IEEE rules; a zero keeps the product's sign."""
    return ieee_sum([multiply(x, y)], fmt, spec, rounding, flush, to_inf, operands=[x, y])


def converted(fmt: Format, code: Any, via: Format, spec: SpecialRules) -> Any:
    """Convert an encoding to another format, rounded to nearest even; NaN becomes the format's quiet NaN."""
    x = decode(fmt, code, spec)
    rounded, overflow = rounded_magnitude(x.negative, x.significand, x.exponent, via, "rne")
    found = with_overflow(encoded(x.negative, rounded, via), overflow, x.negative, via)
    infinite = encoded(x.negative, via.exponent_mask >> via.padding_bits, via)
    found = select(x.inf, infinite, found, via.bits)
    found = found if x.nan is False else select(x.nan, via.nan_encoding(), found, via.bits)
    return z.noted(found, "converted", x, fmt, via)
