"""Checks of an accumulator's fields: their types, ranges and roundings."""

import types
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from ..formats.exact_rounding import check_rounding
from ..integers import checked_integer

MAX_TERMS = 1024
MAX_FRACTION_BITS = 120
#: Exponents of parameters lie within this, beyond every product of two binary64 numbers: sums are integers of that many bits.
MAX_EXPONENT = 4096


def require(condition: bool, spec: object, message: str) -> None:
    if not condition:
        raise ValueError(f"{type(spec).__name__}: {message}")


def checked_value(value: Any, expected: Any, what: str) -> Any:
    """`value` as the plain type that the annotation `expected` says: NumPy's integers and booleans become Python's.

    Raises
    ------
    TypeError
        If it is of another type.
    ValueError
        If it is none of a Literal's values.
    """
    origin, choices = _parts(expected)
    if origin is Literal:
        if value not in choices:
            raise ValueError(f"{what} is {value!r}, expected one of {', '.join(map(repr, choices))}")
        return value
    if origin in (types.UnionType, Union):
        if value is None and type(None) in choices:
            return None
        others = [choice for choice in choices if choice is not type(None)]
        return checked_value(value, others[0], what) if len(others) == 1 else value
    if expected is bool:
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{what} is {value!r}, expected True or False")
        return bool(value)
    if expected is int:
        return checked_integer(value, what)
    if origin is tuple and choices == (int, ...):
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise TypeError(f"{what} is {value!r}, expected integers")
        return tuple(checked_value(item, int, what) for item in value)
    if isinstance(expected, type) and not isinstance(value, expected):
        raise TypeError(f"{what} is {value!r}, expected {expected.__name__}")
    return value


@lru_cache
def _parts(expected: Any) -> tuple[Any, tuple]:
    """Origin and arguments of an annotation."""
    return get_origin(expected), get_args(expected)


def check_exponent(spec: object, name: str) -> None:
    """A parameter that is an exponent, or None."""
    value = getattr(spec, name)
    require(
        value is None or -MAX_EXPONENT <= value <= MAX_EXPONENT,
        spec,
        f"{name} {value} must be {-MAX_EXPONENT} to {MAX_EXPONENT}, or None",
    )


def check_kept(spec: object, name: str = "output_fraction_bits") -> None:
    """A number of fraction bits that a result keeps, or None."""
    value = getattr(spec, name)
    require(
        value is None or 0 <= value <= MAX_FRACTION_BITS,
        spec,
        f"{name} {value} must be 0 to {MAX_FRACTION_BITS}, or None",
    )


def check_deterministic(spec: object, name: str) -> None:
    require(check_rounding(getattr(spec, name)) != "sr", spec, f"{name} cannot be stochastic")
