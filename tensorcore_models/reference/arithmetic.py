"""The operations in which families write their passes, on plain integers; `bitvectors.arithmetic` has the same names on terms.

A code is an encoding, a number an :class:`Operand`, a total an integer, a condition a bool. A family's `pass_bits` finds one of
the two modules as `p.arithmetic`.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import and_ as masked
from operator import mul as times
from typing import Any

from ..formats import Format
from ..formats.exact_rounding import round_to_bits
from . import ieee
from .aligned import aligned, finish, largest_exponent, overflowed, scaled_product
from .aligned import as_addends as taking_part
from .operands import (
    Operand,
    SpecialRules,
    decode,
    flushed,
    flushed_to_zero,
    multiply,
    normalised,
    special_bits,
    special_result,
)

__all__ = [
    "decode", "finish", "flushed", "flushed_to_zero", "largest_exponent", "masked", "multiply", "normalised", "overflowed",
    "scaled_product", "taking_part", "times",
]  # fmt: skip


#: Whether codes and numbers are terms.
on_terms = False


# -- conditions and totals -----------------------------------------------------------------------------------------------
def every(conditions: Iterable[bool]) -> bool:
    """Whether all conditions hold."""
    return all(conditions)


def chosen(condition: bool, x: int, y: int) -> int:
    """The total x where the condition holds, else y."""
    return x if condition else y


def farther(number: Operand, largest: int, distance: int) -> bool:
    """Whether a number's alignment exponent is below the largest one by more than a distance."""
    return number.align is not None and number.align < largest - distance


def shifted(total: int, places: int) -> int:
    """A total times 2**places."""
    return total << places


def cut(number: Operand, largest: int, fraction_bits: int, rounding: str) -> int:
    """The signed multiple of 2**(largest - fraction_bits) that a number becomes."""
    return aligned(number, largest - fraction_bits, rounding)


def summed(totals: Sequence[int], largest: int, fraction_bits: int) -> tuple[int, int]:
    """The sum of multiples of 2**(largest - fraction_bits), and that exponent."""
    return sum(totals), largest - fraction_bits


def rounded_down(total: int, exponent: int, fraction_bits: int) -> tuple[int, int]:
    """A sum with its exponent, normalised and rounded down to so many fraction bits."""
    places = max(abs(total).bit_length() - 1 - fraction_bits, 0)
    return total >> places, exponent + places


# -- sums that are numbers -----------------------------------------------------------------------------------------------
def exact_sum(numbers: Sequence[Operand]) -> Operand:
    """The exact sum of finite numbers, of alignment exponent 0."""
    unit = min(x.exponent for x in numbers)
    total = sum((-x.significand if x.negative else x.significand) << (x.exponent - unit) for x in numbers)
    return Operand("finite", total < 0, abs(total), unit, 0)


def left_out(number: Operand, condition: bool) -> Operand:
    """A number that takes no part in an alignment where the condition holds."""
    return number._replace(align=None) if condition else number


def cut_sum(numbers: Sequence[Operand], fraction_bits: int, rounding: str) -> Operand:
    """Numbers aligned to their largest exponent and cut, summed exactly: a number that keeps this exponent."""
    largest = largest_exponent(numbers)
    total, unit = summed([cut(x, largest, fraction_bits, rounding) for x in numbers], largest, fraction_bits)
    return Operand("finite", total < 0, abs(total), unit, largest)


def sum_aligned(spec: Any, numbers: Sequence[Operand]) -> Operand:
    """One alignment of all addends of a fused sum, summed exactly; the result keeps the alignment exponent."""
    largest = largest_exponent(numbers, spec.exponent_floor)
    if spec.fraction_bits is None:
        unit, rounding = min(x.exponent for x in numbers), "rz"
    elif spec.sticky:
        unit, rounding = largest - spec.fraction_bits - 1, "ro"  # one more bit that collects all that is cut off
    else:
        unit, rounding = largest - spec.fraction_bits, spec.alignment_rounding
    total = sum(aligned(x, unit, rounding) for x in numbers)
    if spec.integer_bits is not None:  # two's complement with so many bits above the point at 2**largest
        half = 1 << (spec.integer_bits + largest - unit)
        total = (total + half) % (2 * half) - half
    return Operand("finite", total < 0, abs(total), unit, largest)


def normalising_add(spec: Any, x: Operand, y: Operand) -> Operand:
    """The aligned sum of two addends, normalised to the fraction bits of `spec`."""
    total = sum_aligned(spec, [x, y])
    if not total.significand:
        return total
    unit = max(total.leading - spec.fraction_bits, total.exponent)
    return Operand("finite", total.negative, abs(aligned(total, unit, spec.alignment_rounding)), unit, total.leading)


# -- encodings -----------------------------------------------------------------------------------------------------------
def zero(fmt: Format) -> int:
    """The code of +0."""
    return 0


def negative_zero(fmt: Format) -> int:
    """The code of -0."""
    return fmt.sign_bit


def unless_special(numbers: Sequence[Operand], finite: Callable[[], int], fmt: Format, spec: SpecialRules) -> int:
    """The code of the NaN or infinity that a sum of the numbers is; where all are finite, what `finite` gives."""
    special = special_result(list(numbers))
    return special_bits(special, fmt, spec) if special else finite()


def rounded_sum(spec: Any, total: Operand, fmt: Format, draw: int = 0) -> int:
    """The sum of a fused operation in the output format; `draw` is that of a stochastic rounding."""
    signed = -total.significand if total.negative else total.significand
    kept, flush = spec.output_fraction_bits, spec.flush_outputs
    return finish(signed, total.exponent, fmt, spec, spec.output_rounding, kept, flush, draw)


def add(
    x: int, x_format: Format, y: int, y_format: Format, fmt: Format, spec: SpecialRules, rounding: str,
    flush: bool = False, to_inf: bool = False,
) -> int:  # fmt: skip
    """IEEE addition of two codes; `flush`: results that are encoded as subnormal numbers become zero."""
    kept = ieee.SUBNORMAL if flush else ieee.KEEP
    return ieee.add(x, x_format, y, y_format, fmt, spec, rounding, flush=kept, to_inf=to_inf)


def fma(
    x: Operand, y: Operand, z: Operand, fmt: Format, spec: SpecialRules, rounding: str, flush: bool, saturate: bool,
    draw: int = 0,
) -> int:  # fmt: skip
    """IEEE fused multiply-add; `flush`: what is tiny before it is rounded becomes zero; `draw`: of a stochastic rounding."""
    kept = ieee.TINY if flush else ieee.KEEP
    return ieee.fma(x, y, z, fmt, spec, rounding, flush=kept, saturate=saturate, random=draw)


def converted(fmt: Format, code: int, via: Format, spec: SpecialRules) -> int:
    """A code in another format, rounded to nearest even; NaN is the quiet one."""
    x = decode(fmt, code, spec)
    if x.kind == "nan":
        return via.nan_encoding()
    if x.kind == "inf":
        return via.exponent_mask | (via.sign_bit if x.negative else 0)
    return round_to_bits(x.negative, x.significand, x.exponent, via)


def without_subnormals(code: int, fmt: Format) -> int:
    """A code, or a zero of its sign in place of a subnormal number."""
    return code if code & fmt.exponent_mask else code & fmt.sign_bit


def unencodable(reason: str) -> None:
    """Nothing: whatever follows is computed. On terms it raises Unencodable."""
