"""This module checks sizes and other integers of callers: Python's and NumPy's integers pass, booleans and text are refused."""

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

_P = ParamSpec("_P")
_T = TypeVar("_T")


def checked_integer(value: Any, name: str) -> int:
    """Return `value` as a Python integer, whose products do not overflow; TypeError if `value` is not an integer."""
    if type(value) is int:
        return value
    if isinstance(value, bool | np.bool_ | np.ndarray) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {value!r}: pass an int")
    return operator.index(value)


def integer_arguments(*names: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorate a function so that the named arguments go through :func:`checked_integer`; a default of None stays allowed."""

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        parameters = inspect.signature(function).parameters
        optional = frozenset(name for name in names if parameters[name].default is None)
        places = tuple((place, name) for place, name in enumerate(parameters) if name in names)

        @functools.wraps(function)
        def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            given: list[Any] = list(args)
            named: dict[str, Any] = dict(kwargs)
            for place, name in places:
                values: Any = given if place < len(given) else named
                at: Any = place if place < len(given) else name
                if at == name and name not in named or values[at] is None and name in optional:
                    continue
                values[at] = checked_integer(values[at], name)
            return function(*given, **named)  # type: ignore[call-arg, arg-type]

        return run

    return decorate


def integer_fields(instance: Any, *names: str) -> None:
    """Turn named fields of a frozen dataclass into Python integers, in its ``__post_init__``; TypeError for other values."""
    for name in names:
        object.__setattr__(instance, name, checked_integer(getattr(instance, name), name))
