"""This module sets the floating-point state of all computations: rounding to nearest even, subnormal numbers kept.

Libraries built with -ffast-math set flush-to-zero and denormals-are-zero in every thread that loads them, and C libraries may
choose another rounding mode. The kernels set the state in their own threads (``_kernels/common/fp_state.h``). NumPy's
operations run in the caller's thread, whose state is set and restored by functions that this module decorates.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from .._kernels.common.fp_state import enter, leave

_P = ParamSpec("_P")
_T = TypeVar("_T")
_C = TypeVar("_C", bound=Any)


def default_fp_state(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Run `function` in the default floating-point state and restore the caller's."""

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        state = enter()
        try:
            return function(*args, **kwargs)
        finally:
            leave(state)

    return run


def members_in_default_fp_state(cls: type[_C]) -> type[_C]:
    """Decorate a class so that its public methods, properties and cached properties run in the default state."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, functools.cached_property):
            member.func = default_fp_state(member.func)
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(default_fp_state(member.fget)))
        elif isinstance(member, FunctionType):
            setattr(cls, name, default_fp_state(member))
    return cls
