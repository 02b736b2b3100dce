"""Numbers are computed by few operations on integers of known range and on conditions.

An integer is an `int`, or an object that stands for one: a bit-vector of known range, of which a solver knows the value. Sums,
differences, products, negation, comparisons, ``x << places``, ``x >> places`` of a natural number and ``x & mask`` (two's
complement) are Python's own operators, so are ``&``, ``|`` and ``^`` of conditions (a bool, or an object that stands for one).
The rest are the functions of this module, which compute with plain integers; the interpreter that :func:`interpret` names for a
type says what they do with its objects.
"""

from collections.abc import Sequence
from operator import index
from typing import Any

from ..formats.exact_rounding import shift_right_rounded

#: An integer or what stands for one, a condition or what stands for one.
Whole = Any
Condition = Any

_INTERPRETERS: dict[type, Any] = {}


def interpret(interpreter: Any, *types: type) -> None:
    """Let the functions of `interpreter`, which have the names of those here, work on objects of these types."""
    _INTERPRETERS.update(dict.fromkeys(types, interpreter))


def _interpreter(*values: Any) -> Any:
    for x in values:
        if (found := _INTERPRETERS.get(type(x))) is not None:
            return found
    kinds = " and ".join(type(x).__name__ for x in values)
    raise TypeError(
        f"arithmetic is on int and on {', '.join(x.__name__ for x in _INTERPRETERS) or 'nothing else'}, got {kinds}"
    )


def noted(result: Any, does: str, *about: Any, by: Any = None) -> Any:
    """Tell an interpreter that keeps notes what `result` is, and return it; `by` is a part of it that is of a known type.

    `does` is a method of :class:`tensorcore_models.arithmetic.nodes.Notes`. Of plain integers and of terms nothing is kept.
    """
    value = result if by is None else by
    if type(value) is not int:
        note = getattr(_INTERPRETERS.get(type(value)), "note", None)
        if note is not None:
            note(value, result, does, about)
    return result


# -- conditions ----------------------------------------------------------------------------------------------------------
def no(condition: Condition) -> Condition:
    """Say that a condition does not hold."""
    return condition ^ True


def never(condition: Condition) -> bool:
    """Tell whether it is known that a condition does not hold."""
    return not condition if type(condition) is bool else condition.value == 0


def every(conditions: Any) -> Condition:
    """Say that all conditions hold."""
    found: Condition = True
    for condition in conditions:
        found = found & condition
    return found


def some(conditions: Any) -> Condition:
    """Say that one of the conditions holds."""
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
    """Say of a condition that it seldom holds, so that an interpreter may set the case apart."""
    return condition if type(condition) is bool else _interpreter(condition).seldom(condition)


# -- integers ------------------------------------------------------------------------------------------------------------
def low(x: Whole) -> int:
    """Give the least that x can be."""
    return x if type(x) is int else x.low


def high(x: Whole) -> int:
    """Give the greatest that x can be."""
    return x if type(x) is int else x.high


def same(x: Whole, y: Whole) -> Condition:
    """Say that x = y."""
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
    """Divide the magnitude x by 2^amount, both natural, and round; only plain integers have a `draw` to round by."""
    if type(x) is int and type(amount) is int:
        return shift_right_rounded(x, amount, rounding, negative, draw)
    return _interpreter(x, amount).shifted_right(x, amount, rounding, negative)


def normalised(x: Whole) -> tuple[Whole, int, Whole]:
    """Shift a natural number left until its bit `top` is 1 (0 stays 0); return it, `top` and by how many places."""
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
    """Make a code of `width` bits: a sign if there is one, a magnitude modulo what is left, `padding` zeros below."""
    if type(negative) is bool and type(magnitude) is int:
        return (negative and signed) << (width - 1) | magnitude << padding
    return _interpreter(negative, magnitude).joined(negative, magnitude, width, padding, signed)
