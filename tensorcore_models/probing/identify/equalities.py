"""Specifications that certainly compute the same with the formats at hand, and why."""

import dataclasses

from ... import kernels
from ...accumulators import Accumulator, FusedDotAdd, ParametricDotAdd, as_parametric
from ..interface import Interface
from .families import lowest_bit, lowest_exponent
from .fields import engine_of

#: Fields that only raise the exponent to which addends are aligned, and only as far as a level that the formats tell.
LEVELS = {"exponent_floor", "zero_c", "subnormal_c"}

#: Fields that give zeros and a subnormal c an exponent.
ZEROS = {"zero_operand", "zero_c", "subnormal_c"}


def equal_because(interface: Interface, one: Accumulator, other: Accumulator) -> str:
    """Why two specifications give the same on every input; empty where that is not certain.

    Parameters
    ----------
    interface : Interface
    one, other : Accumulator
        Specifications that take the interface's formats.
    """
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
    if not isinstance(one, FusedDotAdd | ParametricDotAdd):
        return ""
    if apart <= LEVELS and _loses_nothing(interface, one, max(_level(interface, spec) for spec in (one, other))):
        return "no addend has a bit below the last place that is kept there"
    if apart <= ZEROS and all(_below_the_floor(interface, spec) for spec in (one, other)):
        return "the floor is above every exponent that a zero or a subnormal c is given"
    if apart == {"negative_underflow"} and _is_whole(interface, one):
        return "no sum has a bit below the last place of the smallest results"
    return ""


def _level(interface: Interface, spec: Accumulator) -> int:
    """The highest exponent to which a floor, a c of zero or a subnormal c can raise an alignment."""
    _, _, c, d = interface.formats
    floor = getattr(spec, "exponent_floor", None)
    added = d.emin if interface.k > spec.terms_per_step else c.emin
    return max(c.emin, added, -126, c.emin if floor is None else floor)


def _loses_nothing(interface: Interface, spec: Accumulator, level: int) -> bool:
    """Whether an alignment to an exponent up to `level` cuts nothing off, and its exponent shows in nothing else."""
    full = as_parametric(spec)
    if full.fraction_bits is None:
        return True
    return (
        level - full.fraction_bits <= lowest_bit(interface)
        and full.integer_bits is None
        and not full.normalise_each_add
    )


def _below_the_floor(interface: Interface, spec: Accumulator) -> bool:
    """Whether zeros and a subnormal c never raise the one alignment of a sum above its floor.

    In a tree of alignments a zero that takes part makes its neighbour go through one more alignment.
    """
    full = as_parametric(spec)
    floor = full.exponent_floor
    one = full.alignment == "global" and not full.normalise_each_add
    if floor is None or not one or interface.scale_format is not None:
        return False
    a, b, _, _ = interface.formats
    zero = {"skip": None, "minus126": -126, "format_minimum": max(a.emin, b.emin)}[
        getattr(spec, "zero_operand", "skip")
    ]
    products = floor if zero is None else zero + max(a.emax, b.emax)
    return max(products, _level(interface, spec)) <= floor


def _is_whole(interface: Interface, spec: Accumulator) -> bool:
    """Whether every sum is a multiple of the result's smallest number."""
    full = as_parametric(spec)
    d = interface.formats[3]
    whole = lowest_bit(interface) >= d.quantum_exponent
    return whole and full.output_fraction_bits is None and not full.flush_outputs
