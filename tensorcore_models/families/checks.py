"""Checks the fields of an accumulator: types, ranges and roundings."""

import dataclasses
import types
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from ..formats.exact_rounding import check_rounding
from ..formats.rows import Format
from ..integers import checked_integer

MAX_TERMS = 1024
MAX_FRACTION_BITS = 120
#: Largest size of a parameter that is an exponent. It exceeds the exponents of products of binary64 numbers, and sums of plain
#: integers have that many bits.
MAX_EXPONENT = 4096


def require(condition: bool, spec: object, message: str) -> None:
    if not condition:
        raise ValueError(f"{type(spec).__name__}: {message}")


@lru_cache
def field_checks(cls: type) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return (name, check) for each field of a dataclass whose annotation is not a string.

    A check returns the value in the type of the annotation, so that NumPy's integers and booleans become Python's. It raises
    TypeError for a value of another type, and ValueError for a value that a Literal does not list.
    """
    fields = [field for field in dataclasses.fields(cls) if not isinstance(field.type, str)]
    return tuple((field.name, _check_of(field.type, f"{cls.__name__}: {field.name}")) for field in fields)


def _check_of(expected: Any, what: str) -> Callable[[Any], Any]:
    """Return the function that checks a value against an annotation; `what` names the value in messages."""
    origin, choices = get_origin(expected), get_args(expected)
    if origin is Literal:
        return partial(_one_of, choices=choices, what=what)
    if origin in (types.UnionType, Union):
        others = [choice for choice in choices if choice is not type(None)]
        check = _check_of(others[0], what) if len(others) == 1 else _anything
        return (lambda value: None if value is None else check(value)) if type(None) in choices else check
    if expected is bool:
        return partial(_truth, what=what)
    if expected is int:
        return partial(checked_integer, name=what)
    if origin is tuple and choices == (int, ...):
        return partial(_integers, what=what)
    return partial(_instance, expected=expected, what=what) if isinstance(expected, type) else _anything


def _anything(value: Any) -> Any:
    return value


def _one_of(value: Any, choices: tuple, what: str) -> Any:
    if value not in choices:
        raise ValueError(f"{what} is {value!r}, expected one of {', '.join(map(repr, choices))}")
    return value


def _truth(value: Any, what: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} is {value!r}, expected True or False")
    return bool(value)


def _integers(value: Any, what: str) -> tuple[int, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"{what} is {value!r}, expected a sequence of integers")
    return tuple(checked_integer(item, what) for item in value)


def _instance(value: Any, expected: type, what: str) -> Any:
    if not isinstance(value, expected):
        raise TypeError(f"{what} is {value!r}, expected {expected.__name__}")
    return value


def check_range(spec: object, name: str, low: int, high: int, *, optional: bool = False) -> None:
    """Raise ValueError unless a field is an integer from `low` to `high`, or None if it is `optional`."""
    value = getattr(spec, name)
    known = (optional and value is None) or low <= value <= high
    require(known, spec, f"{name} {value} must be {low} to {high}{', or None' if optional else ''}")


def check_exponent(spec: object, name: str) -> None:
    """Raise ValueError unless a field is an exponent or None."""
    check_range(spec, name, -MAX_EXPONENT, MAX_EXPONENT, optional=True)


def check_keyed(spec: Any, name: str) -> None:
    """Raise ValueError unless a field is a rounding, and `seed` is a key that is nonzero only for stochastic rounding."""
    require(0 <= spec.seed < 1 << 64, spec, f"seed {spec.seed} must lie in [0, 2**64)")
    stochastic = check_rounding(getattr(spec, name)) == "sr"
    require(
        stochastic or not spec.seed,
        spec,
        f"seed {spec.seed} is a key of stochastic rounding: choose {name} 'sr' or seed 0",
    )


def check_deterministic(spec: object, name: str) -> None:
    require(
        check_rounding(getattr(spec, name)) != "sr",
        spec,
        f"{name} cannot be stochastic: choose another rounding than 'sr'",
    )


def holds(wide: Format, narrow: Format) -> bool:
    """Return whether a format has all finite numbers of another one."""
    fits = narrow.fraction_bits <= wide.fraction_bits and narrow.max_finite <= wide.max_finite
    fits = fits and (wide.signed or not narrow.signed)
    return fits and narrow.emin - narrow.fraction_bits >= wide.emin - wide.fraction_bits
