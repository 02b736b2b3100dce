"""Specifications that certainly compute the same with the formats at hand, and why."""

from ... import kernels
from ...accumulators import Accumulator, FusedDotAdd, ParametricDotAdd, as_parametric
from ..interface import Interface
from .families import changed, engine_of, lowest_bit, lowest_exponent


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
    floors = [getattr(spec, "exponent_floor", None) for spec in (one, other)]
    if changed(interface, one, {"exponent_floor": floors[1]}) != other:
        return ""
    reasons = [_floor_is_idle(interface, one, floor) for floor in floors]
    return next(filter(None, reversed(reasons)), "") if all(reasons) else ""


def _floor_is_idle(interface: Interface, spec: Accumulator, floor: int | None) -> str:
    """Why a floor of the alignment changes nothing, empty where it may."""
    if floor is None:
        return "no floor"
    if floor <= lowest_exponent(interface, spec):
        return "no addend's exponent lies below the floor"
    if isinstance(spec, FusedDotAdd | ParametricDotAdd):
        full = as_parametric(spec)
        if full.fraction_bits is None:
            return "nothing is cut off, wherever the floor is"
        loses_nothing = floor - full.fraction_bits <= lowest_bit(interface)
        if loses_nothing and full.integer_bits is None and not full.normalise_each_add:
            return "no addend has a bit below the last place at the floor"
    return ""
