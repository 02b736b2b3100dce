"""Runs approximate instructions (``ex2``, ``rcp``, ``rsqrt``, ...) on the functions of the launch's architecture.

:mod:`tensorcore_models.functions` knows their bits; an inferred function is recorded as an assumption. An approximation that it
lacks is refused, unless the caller asks for correctly rounded stand-ins, which are recorded as assumptions, too.
"""

from collections.abc import Callable

import numpy as np

from ...functions import Function, get_function
from .. import floats
from ..isa.meaning import Meaning
from ..isa.types import one
from .assembled import SCALE
from .decode import Operation, pure_operation, unknown, unpublished
from .syntax import PTXInstruction


def _known(unit: str, name: str) -> Function | None:
    """Return the function of an architecture, or None."""
    try:
        return get_function(unit, name)
    except ValueError:
        return None


def _on_words(function: Function) -> Callable:
    """Return the function on arrays of the register's type; for FP64 it takes and gives the upper 32 bits of each number."""
    if function.row.operand != "fp64 high":
        return function.bits

    def upper(bits):
        words = (np.asarray(bits, np.uint64) >> np.uint64(32)).astype(np.uint32)
        return function.bits(words).astype(np.uint64) << np.uint64(32)

    return upper


def build_approximate(ins: PTXInstruction) -> Operation:
    """Return the operation of ex2, lg2, sin, cos, tanh, rsqrt or an approximate div, rcp, sqrt."""
    if not {"approx", "full"} & set(ins.modifiers):
        raise unknown(ins)
    kind, flush = ins.modifiers[-1], "ftz" in ins.modifiers
    sources = (kind,) * (2 if ins.name == "div" else 1)
    nearest = Meaning("nearest", kind, sources, flush=(flush, flush), options=(ins.name,))
    stand_in = pure_operation(ins, nearest) if kind == "f32" else None
    name = ".".join((ins.name, *map(one, ins.modifiers)))
    m = Meaning("function", kind, sources, flush=(flush, flush), options=(name,))
    known: dict[str, tuple[Function, Operation] | None] = {}

    def of_unit(unit: str) -> tuple[Function, Operation] | None:
        if unit not in known:
            function = _known(unit, ins.opcode)
            made = None if function is None else (function, pure_operation(ins, m, _on_words(function)))
            known[unit] = made
        return known[unit]

    def run(machine, lanes):
        found = of_unit(machine.launch.unit)
        if found is not None:
            function, operation = found
            if not function.evidence.startswith("hardware"):
                machine.assume(f"{ins.opcode}: {function.evidence}")
            return operation(machine, lanes)
        if machine.unpublished != "nearest" or stand_in is None:
            raise unpublished(ins)
        machine.assume(f"{ins.opcode} gives the nearest fp32 number; the bits of the hardware are not published")
        return stand_in(machine, lanes)

    return run


_TINY, _LARGE = np.float32(2.0**24), np.float32(0.25)


def _scale(which: str) -> Callable:
    """Return a function from a divisor to the power of two by which an approximate division scales both operands."""

    def run(bits):
        size = np.abs(floats.values(np.asarray(bits), "fp32"))
        scale = np.ones_like(size)
        if which in ("full", "tiny"):
            scale[size < np.float32(2.0**-126)] = _TINY
        if which in ("full", "large"):
            scale[size > np.float32(2.0**126)] = _LARGE
        return scale.view(np.uint32)

    return run


def build_scale(ins: PTXInstruction) -> Operation:
    """Return the operation that computes the scale of a divisor, a step of an approximate division (:mod:`.assembled`)."""
    return pure_operation(ins, Meaning(SCALE, "b32", ("b32",), options=ins.modifiers[:1]), _scale(ins.modifiers[0]))


BUILDERS = {**dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh", "rsqrt"), build_approximate), SCALE: build_scale}
