"""This module makes an engine of a user's function."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ..formats import get_format
from ..formats.names import format_name
from ..formats.operands import operand_bits, values_of_bits
from ..integers import integer_arguments
from .engine import Engine, FormatLike


@dataclasses.dataclass(frozen=True)
class CallableEngine(Engine):
    """`CallableEngine` is an engine that calls a user's function f(a, b, c) for each k step.

    The function takes value arrays of shapes (m, k), (k, n) and (m, n), where k is the k step. :func:`as_engine` makes it.
    """

    function: Callable[[Any, Any, Any], Any]
    a_format: FormatLike
    b_format: FormatLike
    c_format: FormatLike
    d_format: FormatLike
    k: int
    name: str = "callable"
    largest_input_scale: int = 0
    tflops: float | None = None

    @property
    def label(self) -> str:
        return self.name

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        formats = self.formats
        # The function may write to its arguments.
        a, b, total, total_format = a.copy(), b.copy(), c.copy(), formats[2]
        for start in range(0, a.shape[1], self.k):
            part = slice(start, start + self.k)
            d = self.function(
                values_of_bits(a[:, part], formats[0]),
                values_of_bits(b[part], formats[1]),
                values_of_bits(total, total_format),
            )
            if np.shape(d) != c.shape:
                raise ValueError(f"{self.name} returned shape {np.shape(d)}, expected {c.shape}")
            total, total_format = operand_bits(d, formats[3], None, f"the result of {self.name}"), formats[3]
        return total


@integer_arguments("k", "largest_input_scale")
def as_engine(
    function: Callable[[Any, Any, Any], Any],
    *,
    a_format: FormatLike,
    b_format: FormatLike | None = None,
    c_format: FormatLike | None = None,
    d_format: FormatLike,
    k: int,
    largest_input_scale: int = 0,
    tflops: float | None = None,
) -> CallableEngine:
    """Wrap a user's callable as a matrix engine.

    Parameters
    ----------
    function : callable
        Function f(a, b, c) -> d of value arrays of shapes (m, k), (k, n), (m, n), in the numpy or ml_dtypes types of the
        formats.
    a_format, b_format, c_format, d_format : str or Format
        Formats of the operands and the result; `b_format` defaults to `a_format`, `c_format` to `d_format`.
    k : int
        Number of products along k that one call adds.
    largest_input_scale : int
        Largest s for which the unit can compute D = A B + C 2^-s (the function is then given the scaled c).
    tflops : float, optional
        Peak rate of the unit in TFLOP/s or TOP/s, from which comparisons compute costs.

    Raises
    ------
    TypeError
        If `function` cannot be called.
    ValueError
        For an unknown format, k below 1, a negative scale, or a rate that is not above 0.
    """
    if not callable(function):
        raise TypeError(f"as_engine wraps a function f(a, b, c), got {type(function).__name__}: pass a callable")
    if k < 1:
        raise ValueError(f"k step is {k}, expected at least 1")
    if largest_input_scale < 0:
        raise ValueError(f"the largest scale of the accumulator input is {largest_input_scale}, expected at least 0")
    if tflops is not None and not 0 < tflops < float("inf"):
        raise ValueError(f"tflops is {tflops!r}, expected a finite rate above 0, or None")
    given = (a_format, b_format or a_format, c_format or d_format, d_format)
    a, b, c, d = (format_name(get_format(f)) for f in given)
    return CallableEngine(
        function, a, b, c, d, k, getattr(function, "__name__", "callable"), largest_input_scale, tflops
    )
