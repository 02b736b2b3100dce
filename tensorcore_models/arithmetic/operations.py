"""This module defines the few operations on integers of known range, and on conditions, that numbers are computed with.

An integer is an `int`, or an object that stands for an integer, such as a bit-vector of known range whose value a solver knows.
Python's own operators give sums, differences, products, negation, comparisons, ``x << places``, ``x >> places`` of a natural
number and ``x & mask`` (two's complement), and ``&``, ``|`` and ``^`` of conditions (a bool, or an object that stands for one).
All other operations are functions of this module. They compute with plain integers; for other types, they call the interpreter
that :func:`interpret` registered for the type.
"""

from collections.abc import Sequence
from operator import index
from typing import Any

from ..formats.exact_rounding import shift_right_rounded

#: An integer or an object that stands for an integer; a condition or an object that stands for a condition.
Whole = Any
Condition = Any

_INTERPRETERS: dict[type, Any] = {}


def interpret(interpreter: Any, *types: type) -> None:
    """Register `interpreter`, whose functions have the same names as this module's, for objects of the given types."""
    _INTERPRETERS.update(dict.fromkeys(types, interpreter))


def _interpreter(*values: Any) -> Any:
    for x in values:
        if (found := _INTERPRETERS.get(type(x))) is not None:
            return found
    kinds = " and ".join(type(x).__name__ for x in values)
    raise TypeError(
        f"got operands of types {kinds}, expected {', '.join(['int', *(x.__name__ for x in _INTERPRETERS)])}: convert the "
        "operands to int"
    )


def noted(result: Any, does: str, *about: Any, by: Any = None) -> Any:
    """Report how `result` was computed to an interpreter that keeps notes, and return `result`.

    `does` names a method of :class:`tensorcore_models.arithmetic.nodes.Notes`; `by` is the part of `result` whose type chooses
    the interpreter. No notes are kept for plain integers and terms.
    """
    value = result if by is None else by
    if type(value) is not int:
        note = getattr(_INTERPRETERS.get(type(value)), "note", None)
        if note is not None:
            note(value, result, does, about)
    return result


# -- conditions ----------------------------------------------------------------------------------------------------------
def no(condition: Condition) -> Condition:
    """Return the negation of a condition."""
    return condition ^ True


def never(condition: Condition) -> bool:
    """Return whether a condition is known to be false."""
    return not condition if type(condition) is bool else condition.value == 0


def every(conditions: Any) -> Condition:
    """Return the condition that all conditions hold."""
    found: Condition = True
    for condition in conditions:
        found = found & condition
    return found


def some(conditions: Any) -> Condition:
    """Return the condition that at least one of the conditions holds."""
    found: Condition = False
    for condition in conditions:
        found = found | condition
    return found


def select(condition: Condition, x: Any, y: Any, width: int = 0) -> Any:
    """Take x where the condition holds, else y: integers, conditions, or codes of `width` bits."""
    if condition is True:
        return x
    if condition is False:
        return y
    return _interpreter(condition).select(condition, x, y, width)


def seldom(condition: Condition) -> Condition:
    """Mark a condition as one that seldom holds, so that an interpreter may treat that case separately."""
    return condition if type(condition) is bool else _interpreter(condition).seldom(condition)


# -- integers ------------------------------------------------------------------------------------------------------------
def low(x: Whole) -> int:
    """Return the least value that x can have."""
    return x if type(x) is int else x.low


def high(x: Whole) -> int:
    """Return the greatest value that x can have."""
    return x if type(x) is int else x.high


def same(x: Whole, y: Whole) -> Condition:
    """Return the condition x = y."""
    if type(x) is int and type(y) is int:
        return x == y
    return _interpreter(x, y).same(x, y)


def larger(x: Whole, y: Whole) -> Whole:
    """Take the larger of x and y."""
    if type(x) is int and type(y) is int:
        return x if x > y else y
    return _interpreter(x, y).larger(x, y)


def magnitude(x: Whole) -> Whole:
    """Give |x|."""
    return abs(x) if type(x) is int else _interpreter(x).magnitude(x)


def total(addends: Sequence[Whole]) -> Whole:
    """Add all addends."""
    for x in addends:
        if type(x) is not int:
            return _interpreter(x).total(addends)
    return sum(addends)


def shifted_left(x: Whole, amount: Whole) -> Whole:
    """Multiply x by 2^amount for a natural amount."""
    if type(x) is int and type(amount) is int:
        return x << amount
    return _interpreter(x, amount).shifted_left(x, amount)


def shifted_right(x: Whole, amount: Whole, rounding: str = "rz", negative: Condition = False, draw: int = 0) -> Whole:
    """Divide the magnitude x by 2^amount, both natural, and round; only plain integers can be rounded with a `draw`."""
    if type(x) is int and type(amount) is int:
        return shift_right_rounded(x, amount, rounding, negative, draw)
    return _interpreter(x, amount).shifted_right(x, amount, rounding, negative)


def normalised(x: Whole) -> tuple[Whole, int, Whole]:
    """Shift a natural number left until its bit `top` is 1 (0 stays 0); return it, `top` and the number of places."""
    if type(x) is int:
        return x, max(x.bit_length() - 1, 0), 0
    return _interpreter(x).with_leading_bit(x)


def wrapped(x: Whole, width: int) -> Whole:
    """Take x modulo 2^width as a two's complement number of `width` bits."""
    half = 1 << (width - 1)
    if -half <= low(x) and high(x) < half:
        return x
    return (x + half) % (2 * half) - half if type(x) is int else _interpreter(x).wrapped(x, width)


# -- codes ---------------------------------------------------------------------------------------------------------------
def natural(code: Any) -> Whole:
    """Read a code as the natural number with its bits."""
    if type(code) is int:
        return code
    found = _INTERPRETERS.get(type(code))
    return index(code) if found is None else found.natural(code)


def joined(negative: Condition, magnitude: Whole, width: int, padding: int, signed: bool) -> Any:
    """Join a sign (if `signed`), a magnitude modulo the bits that remain, and `padding` zeros to a code of `width` bits."""
    if type(negative) is bool and type(magnitude) is int:
        return (negative and signed) << (width - 1) | magnitude << padding
    return _interpreter(negative, magnitude).joined(negative, magnitude, width, padding, signed)
