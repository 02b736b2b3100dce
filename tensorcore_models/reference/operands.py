"""Encodings taken apart for the reference: operands, products and their alignment exponents."""

from typing import NamedTuple, Protocol

from ..formats import Format
from ..formats.exact_rounding import overflow_bits


class SpecialRules(Protocol):
    """The edge rules that encodings are taken apart and specials put together by: those of every accumulator."""

    @property
    def nan(self) -> str: ...
    @property
    def tf32_nan(self) -> str: ...
    @property
    def key(self) -> int | None: ...


class Operand(NamedTuple):
    """One number (-1)^negative * significand * 2^exponent, aligned by `align` (None: takes no part).

    The significand of a decoded NaN is its fraction field, and `align` the number of bits of that.
    """

    kind: str  # "finite", "inf" or "nan"
    negative: bool
    significand: int
    exponent: int
    align: int | None

    @property
    def is_zero(self) -> bool:
        return self.kind == "finite" and self.significand == 0

    @property
    def leading(self) -> int:
        """Exponent of the leading bit of a nonzero number."""
        return self.significand.bit_length() - 1 + self.exponent


NAN = "nan"
POSITIVE_INF = "+inf"
NEGATIVE_INF = "-inf"


def zero_exponent(rule: str, fmt: Format) -> int | None:
    """Alignment exponent of a zero under the edge rules zero_operand and zero_c; None: it takes no part."""
    return {"minus126": -126, "format_minimum": fmt.emin, "skip": None}[rule]


def flushed(operand: Operand, below: int) -> Operand:
    """`operand`, or a zero of its sign if it is finite, nonzero and smaller than 2**below."""
    if operand.kind == "finite" and operand.significand and operand.leading < below:
        return operand._replace(significand=0)
    return operand


def flushed_to_zero(operand: Operand, fmt: Format, zero_rule: str) -> Operand:
    """`operand`, or what is below the smallest normal number as a zero of its sign, aligned as given ones are (`zero_rule`)."""
    zero = flushed(operand, fmt.emin)
    return operand if zero is operand else zero._replace(align=zero_exponent(zero_rule, fmt))


def decode(fmt: Format, bits: int, spec: SpecialRules, *, zero_rule: str = "format_minimum") -> Operand:
    """Take one encoding apart under the edge rules of `spec`.

    The alignment exponent is the one of the encoding: subnormal numbers have the smallest normal exponent.
    """
    kind, negative, significand, exponent = fmt.decode_exact(bits)
    if kind == "inf" and fmt.padding_bits and spec.tf32_nan == "kept" and int(bits) & ((1 << fmt.padding_bits) - 1):
        kind = "nan"
    align: int | None = exponent + fmt.fraction_bits
    if kind == "finite" and significand == 0:
        align = zero_exponent(zero_rule, fmt)
    return Operand(kind, negative, significand, exponent, align)


def normalised(operand: Operand) -> Operand:
    """`operand` with the exponent of its leading bit as alignment exponent."""
    if operand.kind != "finite" or operand.significand == 0:
        return operand
    return operand._replace(align=operand.leading)


def multiply(x: Operand, y: Operand) -> Operand:
    """Exact product, not normalised: alignment exponents add up; infinity and NaN by IEEE's rules."""
    negative = x.negative != y.negative
    if "nan" in (x.kind, y.kind) or (x.kind == "inf" and y.is_zero) or (y.kind == "inf" and x.is_zero):
        return Operand("nan", False, 0, 0, None)
    if "inf" in (x.kind, y.kind):
        return Operand("inf", negative, 0, 0, None)
    align = None if x.align is None or y.align is None else x.align + y.align
    return Operand("finite", negative, x.significand * y.significand, x.exponent + y.exponent, align)


def special_result(numbers: list[Operand]) -> str | None:
    """NaN or infinity of a sum of `numbers`, None if all are finite (step 1 of xie-mma-sim's algorithms)."""
    if any(x.kind == "nan" for x in numbers):
        return NAN
    signs = {x.negative for x in numbers if x.kind == "inf"}
    if len(signs) == 2:
        return NAN
    if signs:
        return NEGATIVE_INF if signs.pop() else POSITIVE_INF
    return None


def special_bits(special: str, fmt: Format, spec: SpecialRules) -> int:
    """Encoding of a special result: NaN by the edge rule `nan`, infinity as the format has it (NaN where it has none)."""
    if special != NAN:
        return overflow_bits(special == NEGATIVE_INF, fmt)
    if fmt.specials == "ieee" and spec.nan == "all_ones":
        return fmt.magnitude_mask | ((1 << fmt.padding_bits) - 1)
    if fmt.nan_bits is None:
        raise OverflowError(f"{fmt.name} has no NaN to encode the result")
    return fmt.nan_bits


def operand_nan_bits(operands: list[Operand], fmt: Format) -> int:
    """Encoding of a NaN result by the edge rules nan "x86" and "dmma": the first NaN of `operands` made quiet, else the default
    one.
    """
    quiet = fmt.nan_encoding()
    if fmt.specials != "ieee":
        return quiet
    for x in operands:
        if x.kind == "nan":
            bits = x.align or 0
            payload = x.significand << fmt.fraction_bits >> bits
            return quiet | payload << fmt.padding_bits | (fmt.sign_bit if x.negative else 0)
    return quiet | fmt.sign_bit


def zero_bits(negative: bool, fmt: Format) -> int:
    """Encoding of a zero, of that sign where the format has it."""
    return fmt.sign_bit if negative and fmt.has_negative_zero else 0
