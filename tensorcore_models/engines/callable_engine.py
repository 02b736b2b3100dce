"""A user's function as an engine."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ..formats import get_format
from ..formats.operands import operand_bits, values_of_bits
from ..integers import integer_arguments
from .engine import Engine, FormatLike, format_name


@dataclasses.dataclass(frozen=True)
class CallableEngine(Engine):
    """`CallableEngine` runs a user's function as an engine: f(a, b, c) on value arrays of shapes (m, k), (k, n), (m,
    n), where k is the k step.

    Made by :func:`as_engine`.
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
        # The function may write to what it is given.
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
        f(a, b, c) -> d on value arrays in the natural types of the formats, shapes (m, k), (k, n), (m, n).
    a_format, b_format, c_format, d_format : str or Format
        Formats; b defaults to a's, c to d's.
    k : int
        Products that one call takes.
    largest_input_scale : int
        Largest s for which the unit can add to c 2^-s in place of c (the function then gets the scaled c).
    tflops : float, optional
        Its peak rate as you state it, TFLOP/s or TOP/s: comparisons compute costs with it.

    Raises
    ------
    TypeError
        If `function` cannot be called.
    ValueError
        For an unknown format, k below 1, a negative scale, or a rate that is not above 0.
    """
    if not callable(function):
        raise TypeError(f"as_engine wraps a callable, got {type(function).__name__}")
    if k < 1:
        raise ValueError(f"k step is {k}, expected at least 1")
    if largest_input_scale < 0:
        raise ValueError(f"the largest scale of the accumulator input is {largest_input_scale}, expected at least 0")
    if tflops is not None and not 0 < tflops < float("inf"):
        raise ValueError(f"tflops is {tflops!r}, expected a rate above 0")
    given = (a_format, b_format or a_format, c_format or d_format, d_format)
    a, b, c, d = (format_name(get_format(f)) for f in given)
    return CallableEngine(
        function, a, b, c, d, k, getattr(function, "__name__", "callable"), largest_input_scale, tflops
    )
