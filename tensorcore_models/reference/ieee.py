"""IEEE operations in exact integers: sums, fused multiply-adds and products, rounded once each."""

from ..formats import Format
from ..formats.exact_rounding import round_to_bits, shift_right_rounded
from .operands import Operand, SpecialRules, decode, multiply, operand_nan_bits, special_bits, special_result, zero_bits

#: Which results become zero: none; those that are encoded as subnormal numbers; those that are below the smallest normal
#: number when they are rounded with an unbounded exponent.
KEEP, SUBNORMAL, TINY = range(3)


def rounded_sum(
    terms: list[Operand],
    fmt: Format,
    spec: SpecialRules,
    rounding: str,
    *,
    flush: int,
    saturate: bool,
    to_inf: bool,
    operands: list[Operand] | None = None,
    random: int = 0,
) -> int:
    """IEEE sum of exact numbers, rounded once; signed zeros by IEEE 754-2019, 6.3.

    `operands`, by default `terms`, are the operation's, in the order in which the unit looks for a NaN among them.
    """
    special = special_result(terms)
    if special:
        if saturate:  # Ascend 910A: NaN becomes 0, infinity the largest finite number
            return 0 if special == "nan" else fmt.max_bits | (fmt.sign_bit if special == "-inf" else 0)
        if special == "nan" and spec.nan in ("x86", "dmma"):
            return operand_nan_bits(terms if operands is None else operands, fmt)
        return special_bits(special, fmt, spec)
    unit = min(x.exponent for x in terms)
    total = sum((-x.significand if x.negative else x.significand) << (x.exponent - unit) for x in terms)
    if total == 0:
        all_negative = all(x.negative for x in terms) if all(x.significand == 0 for x in terms) else False
        mixed = not all_negative and (rounding == "rd") and any(x.negative for x in terms)
        return zero_bits(all_negative or mixed, fmt)
    if flush == TINY and _is_tiny(total, unit, fmt, rounding, random):
        return zero_bits(total < 0, fmt)
    bits = round_to_bits(
        total < 0, abs(total), unit, fmt, rounding, saturate=saturate, overflow_to_inf=to_inf and not saturate,
        random=random,
    )  # fmt: skip
    smallest = 1 << (fmt.fraction_bits + fmt.padding_bits)
    if flush == SUBNORMAL and bits & fmt.magnitude_mask < smallest and fmt.decode_exact(bits).kind == "finite":
        return zero_bits(total < 0, fmt)
    return bits


def _is_tiny(total: int, unit: int, fmt: Format, rounding: str, random: int) -> bool:
    """Whether total * 2^unit, rounded to the format's precision with an unbounded exponent, is below its normal numbers."""
    quantum = abs(total).bit_length() - 1 + unit - fmt.fraction_bits
    rounded = shift_right_rounded(abs(total), quantum - unit, rounding, total < 0, random)
    return rounded.bit_length() - 1 + quantum < fmt.emin


def add(
    x: int,
    x_format: Format,
    y: int,
    y_format: Format,
    fmt: Format,
    spec: SpecialRules,
    rounding: str = "rne",
    *,
    flush: int = KEEP,
    to_inf: bool = False,
) -> int:
    """IEEE addition of two encodings."""
    terms = [decode(x_format, x, spec), decode(y_format, y, spec)]
    return rounded_sum(terms, fmt, spec, rounding, flush=flush, saturate=False, to_inf=to_inf)


def fma(
    x: Operand,
    y: Operand,
    z: Operand,
    fmt: Format,
    spec: SpecialRules,
    rounding: str,
    *,
    flush: int,
    saturate: bool = False,
    random: int = 0,
) -> int:
    """IEEE fused multiply-add of numbers taken apart."""
    operands = [y, z, x] if spec.nan == "dmma" else [x, y, z]
    return rounded_sum(
        [multiply(x, y), z], fmt, spec, rounding, flush=flush, saturate=saturate, to_inf=False, operands=operands,
        random=random,
    )  # fmt: skip


def product(
    x: Operand, y: Operand, fmt: Format, spec: SpecialRules, rounding: str, flush: int, to_inf: bool = False
) -> int:
    """IEEE product; a zero keeps the product's sign."""
    return rounded_sum([multiply(x, y)], fmt, spec, rounding, flush=flush, saturate=False, to_inf=to_inf)
