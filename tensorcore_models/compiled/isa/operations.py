"""Defines the one table of functions that compute meanings, which the machines of PTX and AMDGCN run."""

from collections.abc import Callable
from functools import cache

import numpy as np

from . import conversions, division, floating, integers
from .meaning import Meaning
from .types import FORMATS, array_type, one

#: Factories of functions of arrays, by operation; operations of :mod:`.integers` and :mod:`.floating` without one go by type.
OPERATIONS: dict[str, Callable[[Meaning], Callable]] = {
    **integers.MADE, **division.MADE, "convert": conversions.converted, "byte": conversions.byte_converted,
    "compare": floating.comparison, "set": floating.compared_as_number, "class": floating.classified, "test": floating.tested,
    "select_by_sign": floating.selected_by_sign, "copysign": floating.sign_copied, "nearest": floating.nearest,
}  # fmt: skip


@cache
def function_of(m: Meaning) -> Callable:
    """Return the function of operand arrays that a meaning stands for.

    Raises
    ------
    KeyError
        If the operation has no such type.
    """
    function = _of_one(m)
    if m.operation != "convert" and m.result != one(m.result):
        function = in_halves(function, array_type(one(m.result)), array_type(m.result))
    return (lambda *operands: function(*operands[::-1])) if m.turned else function


def _of_one(m: Meaning) -> Callable:
    if m.operation in OPERATIONS:
        return OPERATIONS[m.operation](m)
    if one(m.result) in FORMATS and m.operation not in ("move", "select"):
        return floating.arithmetic(m)
    function = integers.PLAIN[m.operation]
    if m.saturate:
        return saturated(function, array_type(m.result))
    return (
        (lambda *operands: np.maximum(function(*operands), operands[0].dtype.type(0)))
        if "relu" in m.options
        else function
    )


def exact(m: Meaning) -> Callable:
    """Return an operation on 32-bit integers, computed in 64 bits, where its carry and overflow are visible."""
    function = integers.PLAIN[m.operation] if m.operation in integers.PLAIN else integers.MADE[m.operation](m)

    def run(*operands):
        wide = [np.asarray(x).astype(np.int64) for x in operands]
        return function(*(wide[::-1] if m.turned else wide))

    return run


def saturated(function: Callable, kind: np.dtype) -> Callable:
    """Return a function of integers whose exact result is clamped to the range of its type."""
    limits = np.iinfo(kind)

    def run(*operands):
        exact = function(*(np.asarray(x).astype(np.int64) for x in operands))
        return np.clip(exact, limits.min, limits.max).astype(kind)

    return run


def in_halves(function: Callable, half: np.dtype, whole: np.dtype) -> Callable:
    """Return a function of numbers, applied to both halves of packed operands."""

    def run(*operands):
        shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
        parts = [np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1).view(half) for x in operands]
        return np.ascontiguousarray(function(*parts)).astype(half, copy=False).view(whole).reshape(shape)

    return run
