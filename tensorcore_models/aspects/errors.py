"""Defines the terms of one accumulator step's error: facts of operands, roundings, alignment exponents.

:mod:`mpgemm.bounds.bounds` has the derivation and makes bounds of whole products of it. A *unit* is an engine with its
formats and block scales.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..formats import Format, get_float_format
from ..formats.exact_rounding import NEAREST


class Alignment(NamedTuple):
    """The parts of alpha of a unit that only aligns its addends, adds them exactly, and rounds once.

    `products` and `sums`: what cutting the products of a step, and the running sum, loses at most, over 2 to the alignment
    exponent. `rounding`: what rounding the result loses at most, over the power of two that it begins with. `towards_zero`: all
    of these cut towards zero, so that no sum is ever larger than its addends' sizes.
    """

    products: float
    sums: float
    rounding: float
    towards_zero: bool


class Roundings(NamedTuple):
    """Roundings of one kind in a step: how many, and the unit that each goes to over the largest size of the step's sum.

    A `directed` one (towards zero, down) errs by less than a unit to one side, by half a unit in the mean where the discarded
    part is as likely small as large; one to nearest by half a unit at most, by nothing in the mean.
    """

    number: int
    unit: float
    directed: bool


def roundings_to(fraction_bits: int, rounding: str, count: int = 1) -> Roundings:
    """Return `count` roundings to some fraction bits; a stochastic one errs by less than a unit, by nothing in the mean."""
    if rounding == "sr":
        return Roundings(count, 2.0 ** (1 - fraction_bits), False)
    return Roundings(count, 2.0**-fraction_bits, rounding not in NEAREST)


@dataclass(frozen=True)
class StepError:
    """Error of one step of a core, which takes `terms` products.

    `relative` is alpha, the error over the largest size of the step's sum; `absolute` is beta, what underflow, floors of the
    alignment and flushing add; `derivation` says where they come from; `alignment` has the parts of alpha, if it has them.
    `products` is what the step loses of its own products, over their sizes: of a chain's products no more, however many steps.
    `roundings` are those that alpha adds up, one by one; empty where a family does not state them.
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
    """Exact group sums and their scales.

    2^(exponents of a group's scales) is at most `lift` times the sum of the group's |a b| times its scales. `floor` is the
    largest exponent of a group to which that does not apply: its products, or a scale, are zero.
    """

    lift: float
    floor: int | None


@dataclass(frozen=True)
class OperandFacts:
    """Exponents of the operands of a product, block scales included: of A and of B.

    `largest` are the largest alignment exponents; `small` the same of elements that are zero or subnormal, or whose scale is
    (None if none of them takes part); `groups` for units that sum groups exactly.
    """

    largest: tuple[int, int]
    small: tuple[int | None, int | None]
    groups: GroupFacts | None = None

    @property
    def floor(self) -> int | None:
        """Return the exponent up to which products can lift the alignment beyond their size."""
        lifted = [s + other for s, other in zip(self.small, self.largest[::-1], strict=True) if s is not None]
        return max(lifted, default=None)


class BlockScales(NamedTuple):
    """The block scales of a unit: their format, and how many products share one."""

    format: Format
    size: int


def block_scales(unit: Any) -> BlockScales | None:
    """Return the block scales of a unit, None for one without."""
    if unit.scale_format is None or unit.block_size is None:
        return None
    return BlockScales(get_float_format(unit.scale_format), unit.block_size)


def unit_of(rounding: str, nearest: float, directed: float) -> float:
    """Return the error of one rounding, by whether it is to nearest."""
    return nearest if rounding in NEAREST else directed


def tiny_error(fmt: Format, fraction_bits: int, rounding: str) -> float:
    """Return what rounding to so many fraction bits loses of a number below the normal ones; never less than a float holds."""
    return max(unit_of(rounding, 0.5, 1.0) * math.ldexp(1.0, fmt.emin - fraction_bits), math.ulp(0.0))


def output_error(spec: Any, fmt: Format) -> tuple[float, float, str]:
    """Return (relative, absolute, text) of the rounding to the result format."""
    rounding, fraction = spec.output_rounding, fmt.fraction_bits
    relative = unit_of(rounding, 0.5, 1.0) * 2.0**-fraction
    absolute = math.ldexp(1.0, fmt.emin - fraction)
    return relative, absolute, f"1 rounding(s) {rounding} to {fraction} fraction bits: {relative:.3g} of the sum"


def aligned_error(spec: Any, unit: Any, facts: OperandFacts) -> StepError:
    """Return in closed form what is derived for a fused dot-add: all addends cut at one alignment, then one rounding.

    :mod:`tensorcore_models.aspects.derived_errors` derives the same for any pass, from a recording, which takes longer.
    """
    d = unit.formats[3]
    limited = spec.output_fraction_bits
    fraction = d.fraction_bits if limited is None else min(d.fraction_bits, limited)
    lost = unit_of(spec.alignment_rounding, 0.5, 1.0) * 2.0**-spec.fraction_bits
    last = unit_of(spec.output_rounding, 0.5, 1.0) * 2.0**-fraction
    cut = (spec.terms + 1) * lost
    floor = alignment_floor(spec, unit, facts.floor)
    absolute = cut * 2.0 ** min(floor, 1000) * (1 + last) + tiny_error(d, fraction, spec.output_rounding)
    text = (
        f"{spec.terms} + 1 addends cut at F = {spec.fraction_bits}: {cut:.3g} of the largest; "
        f"1 rounding(s) {spec.output_rounding} to {fraction} fraction bits: {last:.3g} of the sum"
    )
    zero = (spec.alignment_rounding, spec.output_rounding) == ("rz", "rz")
    roundings = (
        roundings_to(spec.fraction_bits, spec.alignment_rounding, spec.terms + 1),
        roundings_to(fraction, spec.output_rounding),
    )
    parts = Alignment(spec.terms * lost, lost, last, zero)
    return StepError(compounded(cut, last), absolute, spec.terms, (text, *scales_text(unit)), parts, roundings)


def fma_error(unit: Any, rounding: str) -> StepError:
    """Return in closed form what is derived for one fused multiply-add that flushes nothing: one rounding."""
    d = unit.formats[3]
    last = unit_of(rounding, 0.5, 1.0) * 2.0**-d.fraction_bits
    text = f"1 rounding(s) {rounding} to {d.fraction_bits} fraction bits: {last:.3g} of the sum"
    return StepError(
        last, tiny_error(d, d.fraction_bits, rounding), 1, (text,), None, (roundings_to(d.fraction_bits, rounding),)
    )


def compounded(first: float, second: float) -> float:
    """Return the relative error of several roundings in turn: (1 + x)(1 + y) - 1."""
    return first + second + first * second


def alignment_floor(spec, unit: Any, lifted: int | None) -> int:
    """Return E0, the exponent to which zeros and subnormals can lift the alignment; `lifted` are those among the products."""
    exponents = [fmt.emin for fmt in unit.formats[2:]]  # a subnormal c or intermediate result
    if spec.zero_c == "minus126":
        exponents.append(-126)
    if spec.exponent_floor is not None:
        exponents.append(spec.exponent_floor)
    if lifted is not None:
        exponents.append(lifted)
    return max(exponents)


def scales_text(unit: Any) -> tuple[str, ...]:
    """Describe block scales that multiply each product, for a derivation; nothing without."""
    scales = block_scales(unit)
    if scales is None:
        return ()
    return (f"{scales.format.name} scales of {scales.size} products are multiplied exactly; |A| and |B| include them",)


class AlignedOperand(NamedTuple):
    """Elements of A or of B: whether they take part in an alignment, with which exponent, and whether they are small."""

    exponents: np.ndarray
    part: np.ndarray
    small: np.ndarray


def aligned_operand(x: np.ndarray, fmt: Format, rule: str) -> AlignedOperand:
    """Return exponents of encodings: those of subnormal numbers are the smallest normal one, those of zeros follow `rule`."""
    finite = np.isfinite(x)
    exponents = np.frexp(np.where(finite, x, 1.0))[1].astype(np.int64) - 1
    exponents = np.maximum(exponents, fmt.emin)
    zero = x == 0
    exponents = np.where(zero, -126 if rule == "minus126" else fmt.emin, exponents)
    return AlignedOperand(exponents, finite & ~(zero & (rule == "skip")), np.abs(x) < fmt.min_normal)


def top_exponent(exponents: np.ndarray, where: np.ndarray) -> int | None:
    """Return the largest of the marked exponents; None where no exponent is marked."""
    return int(exponents[where].max()) if where.any() else None
