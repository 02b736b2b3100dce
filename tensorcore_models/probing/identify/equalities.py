"""Proves, by rules on their fields, that two specifications give the same result on every input of an interface."""

import dataclasses
from typing import Any

from ... import kernels
from ...aspects.search import lowest_bit, lowest_exponent
from ...families.base import Accumulator
from ...families.checks import MAX_EXPONENT
from ..interface import Interface
from .fields import engine_of

#: Fields whose only effect is a higher exponent of the alignment, at most as high as :func:`_raised` returns.
LEVELS = {"exponent_floor", "zero_c", "subnormal_c"}

#: Fields that set the exponent of a zero or a subnormal c in the alignment.
ZEROS = {"zero_operand", "zero_c", "subnormal_c"}


def equal_because(interface: Interface, one: Accumulator, other: Accumulator) -> str:
    """Return why two specifications that take the interface's formats are equal on every input; empty if no rule proves it."""
    low, high = (kernels.lowered(engine_of(spec, interface)) for spec in (one, other))
    if low.arithmetic is not None and low.arithmetic == high.arithmetic:
        return "with these formats both are the same arithmetic"
    if type(one) is not type(other):
        return ""
    apart = {f.name for f in dataclasses.fields(one) if getattr(one, f.name) != getattr(other, f.name)}
    if apart == {"exponent_floor"}:
        lowest = max(lowest_exponent(interface, spec) for spec in (one, other))
        if all(floor is None or floor <= lowest for floor in (one.exponent_floor, other.exponent_floor)):  # type: ignore[attr-defined]
            return "no addend's exponent lies below the floor"
    if one.parametric() is None:
        return ""
    level = max((_raised(interface, spec, name) for spec in (one, other) for name in apart), default=MAX_EXPONENT)
    if apart <= LEVELS and _loses_nothing(interface, one, level):
        return "no addend has a bit below the last place that is kept there"
    if apart <= ZEROS and _has_one_floor_above(one, level) and interface.scale_format is None:
        return "the floor is above every exponent that a zero or a subnormal c gets"
    if apart == {"negative_underflow"} and _is_whole(interface, one):
        return "no sum has a bit below the last place of the smallest results"
    return ""


def _raised(interface: Interface, spec: Accumulator, name: str) -> int:
    """Return the highest exponent to which a field can raise an alignment, without block scales."""
    a, b, c, d = interface.formats
    minimum = max(c.emin, d.emin) if interface.k > spec.terms_per_step else c.emin
    value = getattr(spec, name)
    if name == "subnormal_c":
        return minimum
    if name == "exponent_floor":
        return -MAX_EXPONENT if value is None else value
    if value == "skip":
        return -MAX_EXPONENT
    if name == "zero_c":
        return -126 if value == "minus126" else minimum
    if name == "zero_operand":
        return (-126 if value == "minus126" else max(a.emin, b.emin)) + max(a.emax, b.emax)
    return MAX_EXPONENT


def _loses_nothing(interface: Interface, spec: Any, level: int) -> bool:
    """Return whether aligning to an exponent of at most `level` loses no bit, and the exponent has no other effect."""
    full = spec.parametric()
    if full.fraction_bits is None:
        return True
    return (
        level - full.fraction_bits <= lowest_bit(interface)
        and full.integer_bits is None
        and not full.normalise_each_add
    )


def _has_one_floor_above(spec: Any, level: int) -> bool:
    """Return whether a sum is aligned once, to an exponent that its floor keeps at `level` or above.

    It is false for a tree of alignments, in which a zero that takes part adds an alignment for its neighbour.
    """
    full = spec.parametric()
    one = full.alignment == "global" and not full.normalise_each_add
    return one and full.exponent_floor is not None and level <= full.exponent_floor


def _is_whole(interface: Interface, spec: Any) -> bool:
    """Return whether every sum is a multiple of the result's smallest number."""
    full = spec.parametric()
    d = interface.formats[3]
    whole = lowest_bit(interface) >= d.quantum_exponent
    return whole and full.output_fraction_bits is None and not full.flush_outputs
