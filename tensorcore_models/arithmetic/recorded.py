"""This module is the interpreter of :mod:`tensorcore_models.arithmetic.operations` for recorded integers."""

import sys
from collections.abc import Sequence
from typing import Any

from . import operations
from .recorder import Flag, PassRecorder, Whole


def _recorder(*values: Any) -> PassRecorder:
    return next(x.recorder for x in values if isinstance(x, Whole | Flag))


def note(value: Any, result: Any, does: str, about: tuple[Any, ...]) -> None:
    getattr(_recorder(value).notes, does)(result, *about)


def select(condition: Any, x: Any, y: Any, width: int = 0) -> Any:
    return _recorder(condition).select(condition, x, y)


def same(x: Any, y: Any) -> Any:
    return _recorder(x, y).same(x, y)


def larger(x: Any, y: Any) -> Any:
    return _recorder(x, y).larger(x, y)


def magnitude(x: Any) -> Any:
    return _recorder(x).magnitude(x)


def total(addends: Sequence[Any]) -> Any:
    found: Any = 0
    for x in addends:
        found = x + found
    return found


def shifted_left(x: Any, amount: Any) -> Any:
    return _recorder(x, amount).shifted_left(x, amount)


def shifted_right(x: Any, amount: Any, rounding: str = "rz", negative: Any = False, draw: int = 0) -> Any:
    return _recorder(x, amount).shifted_right(x, amount, rounding, negative, draw)


def with_leading_bit(x: Any) -> tuple[Any, int, Any]:
    return _recorder(x).with_leading_bit(x)


def wrapped(x: Any, width: int) -> Any:
    half = 1 << (width - 1)
    return ((x + half) & (2 * half - 1)) - half


def natural(code: Whole) -> Whole:
    return code


def joined(negative: Any, magnitude: Any, width: int, padding: int, signed: bool) -> Any:
    recorder = _recorder(negative, magnitude)
    if type(magnitude) is int:
        magnitude &= (1 << width - padding - signed) - 1
    else:
        magnitude = recorder.masked(magnitude, (1 << width - padding - signed) - 1)
    sign = operations.select(negative, 1 << width - 1, 0) if signed else 0
    return (magnitude << padding) + sign


def seldom(condition: Flag) -> Any:
    return condition.recorder.set_apart(condition)


operations.interpret(sys.modules[__name__], Whole, Flag)
