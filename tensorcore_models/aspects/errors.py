"""Defines the parts of one accumulator step's error: facts about operands, roundings, alignment exponents.

:mod:`mpgemm.bounds.bounds` has the derivation and computes bounds of whole products. A *unit* is an engine with its formats and
block scales.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..formats import Format, get_float_format
from ..formats.exact_rounding import NEAREST


class Alignment(NamedTuple):
    """`Alignment` holds the parts of alpha for a unit that aligns its addends, adds them exactly, and rounds once.

    `products` and `sums` bound the loss by the truncation of the products of a step and of the running sum, relative to 2 to
    the alignment exponent. `rounding` bounds the loss by rounding the result, relative to its leading power of two.
    `towards_zero` says whether all of these round toward zero, so that no sum exceeds the sizes of its addends.
    """

    products: float
    sums: float
    rounding: float
    towards_zero: bool


class Roundings(NamedTuple):
    """`Roundings` describes the roundings of one kind in a step.

    `number` is their number, and `unit` their last place relative to the largest size of the step's sum. A `directed` rounding
    (toward zero, down) errs by less than a unit to one side, by half a unit on average if all discarded parts are equally
    likely. A rounding to nearest errs by at most half a unit, by zero on average.
    """

    number: int
    unit: float
    directed: bool


def roundings_to(fraction_bits: int, rounding: str, count: int = 1) -> Roundings:
    """Return `count` roundings to a number of fraction bits; stochastic ones err by less than a unit, by zero on average."""
    if rounding == "sr":
        return Roundings(count, 2.0 ** (1 - fraction_bits), False)
    return Roundings(count, 2.0**-fraction_bits, rounding not in NEAREST)


@dataclass(frozen=True)
class StepError:
    """`StepError` bounds the error of one step of a core.

    Parameters
    ----------
    relative : float
        alpha, the error relative to the largest size of the step's sum.
    absolute : float
        beta, the error by underflow, floors of the alignment and flushing.
    terms : int
        Number of products of the step.
    derivation : tuple of str
        Texts that explain both numbers.
    alignment : Alignment, optional
        Parts of alpha, for a unit that aligns once and rounds once.
    roundings : tuple of Roundings
        Roundings whose errors alpha adds; empty if the family does not state them.
    products : float
        Loss of the step's own products, relative to their sizes. It does not grow with the number of steps of a chain.
    """

    relative: float
    absolute: float
    terms: int
    derivation: tuple[str, ...]
    alignment: Alignment | None = None
    roundings: tuple[Roundings, ...] = ()
    products: float = 0.0


@dataclass(frozen=True)
class GroupFacts:
    """`GroupFacts` bounds the alignment exponents of exact group sums.

    2 to the exponents of a group's scales is at most `lift` times the sum of the group's |a b| times its scales. `floor` is the
    largest exponent of a group without this bound, whose products or a scale are zero.
    """

    lift: float
    floor: int | None


@dataclass(frozen=True)
class OperandFacts:
    """`OperandFacts` holds exponents of A and B, including those of block scales.

    `largest` are the largest alignment exponents of A and B. `small` are the largest alignment exponents of elements that are
    zero or subnormal, or have such a scale; None if no such element takes part. `groups` is for units that sum groups exactly.
    """

    largest: tuple[int, int]
    small: tuple[int | None, int | None]
    groups: GroupFacts | None = None

    @property
    def floor(self) -> int | None:
        """Return the largest alignment exponent of products that are smaller than 2 to it; None if there are none."""
        lifted = [s + other for s, other in zip(self.small, self.largest[::-1], strict=True) if s is not None]
        return max(lifted, default=None)


class BlockScales(NamedTuple):
    """`BlockScales` holds the format of a unit's block scales and the number of products that share a scale."""

    format: Format
    size: int


def block_scales(unit: Any) -> BlockScales | None:
    """Return the block scales of a unit; None for a unit without block scales."""
    if unit.scale_format is None or unit.block_size is None:
        return None
    return BlockScales(get_float_format(unit.scale_format), unit.block_size)


def unit_of(rounding: str, nearest: float, directed: float) -> float:
    """Return `nearest` for a rounding to nearest, else `directed`."""
    return nearest if rounding in NEAREST else directed


def tiny_error(fmt: Format, fraction_bits: int, rounding: str) -> float:
    """Return a bound on the error of rounding a subnormal number to `fraction_bits`, at least the smallest positive float."""
    return max(unit_of(rounding, 0.5, 1.0) * math.ldexp(1.0, fmt.emin - fraction_bits), math.ulp(0.0))


def cuts_text(number: str, fraction_bits: int, lost: float) -> str:
    """Return the sentence of a derivation about addends that are cut at one alignment."""
    return f"the alignment of {number} addends at F = {fraction_bits} loses at most {lost:.3g} of the largest"


def rounding_text(times: int, rounding: str, fraction_bits: int, lost: float) -> str:
    """Return the sentence of a derivation about roundings to a number of fraction bits."""
    roundings = "1 rounding loses" if times == 1 else f"{times} roundings lose"
    return f"{roundings} at most {lost:.3g} of the sum ({rounding} to {fraction_bits} fraction bits)"


def output_error(spec: Any, fmt: Format) -> tuple[float, float, str]:
    """Return the relative error, the absolute error and the text of the rounding to the result format."""
    rounding, fraction = spec.output_rounding, fmt.fraction_bits
    relative = unit_of(rounding, 0.5, 1.0) * 2.0**-fraction
    absolute = math.ldexp(1.0, fmt.emin - fraction)
    return relative, absolute, rounding_text(1, rounding, fraction, relative)


def aligned_error(spec: Any, unit: Any, facts: OperandFacts) -> StepError:
    """Return the error of a fused dot-add in closed form: all addends are cut at one alignment, and the sum is rounded once.

    :mod:`tensorcore_models.aspects.derived_errors` derives the same bound from a recorded pass, which takes longer.
    """
    d = unit.formats[3]
    limited = spec.output_fraction_bits
    fraction = d.fraction_bits if limited is None else min(d.fraction_bits, limited)
    lost = unit_of(spec.alignment_rounding, 0.5, 1.0) * 2.0**-spec.fraction_bits
    last = unit_of(spec.output_rounding, 0.5, 1.0) * 2.0**-fraction
    cut = (spec.terms + 1) * lost
    floor = alignment_floor(spec, unit, facts.floor)
    absolute = cut * 2.0 ** min(floor, 1000) * (1 + last) + tiny_error(d, fraction, spec.output_rounding)
    cuts = cuts_text(f"{spec.terms} + 1", spec.fraction_bits, cut)
    text = f"{cuts}; {rounding_text(1, spec.output_rounding, fraction, last)}"
    zero = (spec.alignment_rounding, spec.output_rounding) == ("rz", "rz")
    roundings = (
        roundings_to(spec.fraction_bits, spec.alignment_rounding, spec.terms + 1),
        roundings_to(fraction, spec.output_rounding),
    )
    parts = Alignment(spec.terms * lost, lost, last, zero)
    return StepError(compounded(cut, last), absolute, spec.terms, (text, *scales_text(unit)), parts, roundings)


def fma_error(unit: Any, rounding: str) -> StepError:
    """Return the error of a fused multiply-add without flushing in closed form, which is one rounding."""
    d = unit.formats[3]
    last = unit_of(rounding, 0.5, 1.0) * 2.0**-d.fraction_bits
    text = rounding_text(1, rounding, d.fraction_bits, last)
    return StepError(
        last, tiny_error(d, d.fraction_bits, rounding), 1, (text,), None, (roundings_to(d.fraction_bits, rounding),)
    )


def compounded(first: float, second: float) -> float:
    """Return the relative error of two errors in turn, (1 + x)(1 + y) - 1."""
    return first + second + first * second


def alignment_floor(spec, unit: Any, lifted: int | None) -> int:
    """Return E0, the largest alignment exponent of zero and subnormal numbers; `lifted` is that of products."""
    exponents = [
        fmt.emin for fmt in unit.formats[2:]
    ]  # exponents of a subnormal c and of a subnormal intermediate result
    if spec.zero_c == "minus126":
        exponents.append(-126)
    if spec.exponent_floor is not None:
        exponents.append(spec.exponent_floor)
    if lifted is not None:
        exponents.append(lifted)
    return max(exponents)


def scales_text(unit: Any) -> tuple[str, ...]:
    """Return the text of a derivation about block scales that multiply each product; empty for a unit without scales."""
    scales = block_scales(unit)
    if scales is None:
        return ()
    return (f"{scales.format.name} scales of {scales.size} products are multiplied exactly; |A| and |B| include them",)


class AlignedOperand(NamedTuple):
    """`AlignedOperand` holds the alignment exponent of each element of A or B, and whether it takes part and is small."""

    exponents: np.ndarray
    part: np.ndarray
    small: np.ndarray


def aligned_operand(x: np.ndarray, fmt: Format, rule: str) -> AlignedOperand:
    """Return the alignment of values: subnormal numbers have the smallest normal exponent, zeros that of `rule`."""
    finite = np.isfinite(x)
    exponents = np.frexp(np.where(finite, x, 1.0))[1].astype(np.int64) - 1
    exponents = np.maximum(exponents, fmt.emin)
    zero = x == 0
    exponents = np.where(zero, -126 if rule == "minus126" else fmt.emin, exponents)
    return AlignedOperand(exponents, finite & ~(zero & (rule == "skip")), np.abs(x) < fmt.min_normal)


def top_exponent(exponents: np.ndarray, where: np.ndarray) -> int | None:
    """Return the largest of the marked exponents; None if no exponent is marked."""
    return int(exponents[where].max()) if where.any() else None
