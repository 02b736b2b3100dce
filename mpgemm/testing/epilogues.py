"""This module models epilogues: functions that a kernel applies to its sums in FP32 before the output's rounding.

Each is a row of :data:`EPILOGUES` with the data of a certified bound: how an error of the sum grows (the steepest
slope, and how fast slopes change, so that flat parts count as flat), and the errors of the function's own steps in
FP32. Exponentials and hyperbolic tangents are assumed to be within :data:`ULPS` units in the last place. That holds for
libdevice's functions and for `ex2.approx` (published: CUDA Programming Guide, intrinsic functions), but not for
`tanh.approx.f32`, which is off by 2^-11.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

#: Unit roundoff of FP32, and assumed error in ulp of kernels' exponentials and hyperbolic tangents.
UNIT, ULPS = 2.0**-24, 4
#: Number of bisections of an interval that contains a value.
_HALVINGS = 80


class Activation(NamedTuple):
    """`Activation` is a function of an element, with a parameter if it has one; arguments are float64 arrays."""

    apply: Callable[[np.ndarray, float], np.ndarray]
    #: steepest slope, and largest change of the slope over a step of 1
    steepest: Callable[[float], float]
    bend: Callable[[float], float]
    #: own error over FP32's unit roundoff: (relative to the result, relative to the argument)
    own: tuple[float, float]
    #: argument from which on the function rises, so that its value determines the argument
    rises_from: float
    number: str = ""  #: name of the parameter; "" without one


def _sigmoid(x):
    return np.exp(-np.logaddexp(0.0, -x))


_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _gelu_tanh(x, _):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu_erf(x, _):
    return 0.5 * x * (1 + _ERF(x / math.sqrt(2)))


_INF = math.inf
#: Slopes and bends: maxima of the derivatives, found numerically and rounded up (tests/testing/test_epilogues.py).
EPILOGUES: dict[str, Activation] = {
    "relu": Activation(lambda x, _: np.maximum(x, 0.0), lambda _: 1.0, lambda _: _INF, (0, 0), 0.0),
    "leaky_relu": Activation(
        lambda x, s: np.where(x > 0, x, s * x), lambda s: max(1.0, abs(s)), lambda _: _INF, (1, 0), -_INF, "SLOPE"
    ),
    "silu": Activation(lambda x, _: x * _sigmoid(x), lambda _: 1.1, lambda _: 0.5, (2 * ULPS + 6, 3), 0.0),
    "gelu_tanh": Activation(_gelu_tanh, lambda _: 1.13, lambda _: 0.9, (4, 2 * ULPS + 6), 0.0),
    "gelu_erf": Activation(_gelu_erf, lambda _: 1.13, lambda _: 0.8, (4, 2 * ULPS + 4), 0.0),
    "softcap": Activation(
        lambda x, c: c * np.tanh(x / c), lambda _: 1.0, lambda c: 0.8 / c, (2 * ULPS + 4, 0), -_INF, "C"
    ),
}


class _Step(NamedTuple):
    """`_Step` is one named function of an epilogue."""

    name: str
    shape: Activation
    number: float


@dataclass(frozen=True)
class KernelEpilogue:
    """`KernelEpilogue` holds functions that are applied to the sums in order, perhaps with a residual; see
    :func:`epilogue_of`.
    """

    name: str
    steps: tuple[_Step, ...] = ()
    residual: np.ndarray | None = None  #: float64, shape (m, n), added after the functions
    pairs: bool = False  #: whether the result is silu(gate) up, with the gates in the first half of the columns
    #: function, lipschitz, interval: a caller's own function
    function: Callable[[np.ndarray], np.ndarray] | None = None
    lipschitz: float | None = None
    interval: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None

    @property
    def exact(self) -> bool:
        """Return whether its steps in FP32 are exact, so that bits can be compared."""
        return (
            all(step.name == "relu" for step in self.steps)
            and not self.pairs
            and self.residual is None
            and not self.function
        )

    @property
    def invertible(self) -> bool:
        """Return whether a value determines its sum, at least where the function rises."""
        return not self.pairs and self.function is None and len(self.steps) <= 1

    def columns(self, n: int) -> int:
        """Return the number of result columns for sums with n columns. Raises ValueError if pairs are needed and n is odd."""
        if self.pairs and n % 2:
            raise ValueError(
                f"epilogue {self.name} takes pairs of columns, but the product has {n} columns: make n even"
            )
        return n // 2 if self.pairs else n

    def part(self, rows: np.ndarray, columns: np.ndarray) -> "KernelEpilogue":
        """Return the epilogue of some rows and columns."""
        return self if self.residual is None else replace(self, residual=self.residual[np.ix_(rows, columns)])

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return the exact function of exact sums, in float64."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if self.function is not None:
                return np.asarray(self.function(x), np.float64)
            if self.pairs:
                gate, up = np.split(x, 2, axis=-1)
                return EPILOGUES["silu"].apply(gate, 0.0) * up
            for step in self.steps:
                x = step.shape.apply(x, step.number)
            return x if self.residual is None else x + self.residual

    def bound(self, x: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Return a bound on the error of the kernel's value in FP32, if the sums differ from x by at most `error`."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if self.function is not None:
                return self._of_function(x, error)
            if self.pairs:
                return self._of_pairs(x, error)
            for step in self.steps:
                x, error = _through(step, x, error)
            if self.residual is None:
                return error
            return error + UNIT * (np.abs(x + self.residual) + error) + 2.0**-149

    def _of_function(self, x, error):
        assert self.function is not None
        value = self.apply(x)
        if self.interval is not None:
            low, high = (np.asarray(v, np.float64) for v in self.interval(x - error, x + error))
            grown = np.maximum(np.abs(high - value), np.abs(value - low))
        else:
            assert self.lipschitz is not None
            grown = self.lipschitz * error
        return grown + 8 * UNIT * (np.abs(value) + grown) + 2.0**-149

    @staticmethod
    def _of_pairs(x, error):
        (gate, up), (of_gate, of_up) = np.split(x, 2, axis=-1), np.split(error, 2, axis=-1)
        value, lost = _through(_Step("silu", EPILOGUES["silu"], 0.0), gate, of_gate)
        total = np.abs(value) * of_up + lost * (np.abs(up) + of_up)
        return total + UNIT * (np.abs(value * up) + total) + 2.0**-149

    def inverse(self, y: np.ndarray) -> np.ndarray:
        """Return the sums that give the values where the function rises; NaN elsewhere, and if several sums give a value."""
        y = y if self.residual is None else y - self.residual
        if not self.steps:
            return y
        step = self.steps[0]
        with np.errstate(all="ignore"):
            if step.name == "softcap":
                return step.number * np.arctanh(y / step.number)
            if step.name == "leaky_relu":
                return np.where(y > 0, y, y / step.number) if step.number else np.where(y > 0, y, np.nan)
            low, high = np.zeros(y.shape), np.maximum(2 * np.abs(y), 4.0)  # x / 2 is less than each of them from 0 on
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                above = step.shape.apply(middle, step.number) > y
                low, high = np.where(above, low, middle), np.where(above, middle, high)
            return np.where(y > 0, np.where(np.isfinite(y), high, y), np.nan)

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Return an estimate of the function's slope at the sums."""
        if not self.steps:
            return np.ones(x.shape)
        step, by = self.steps[0], 1e-4 * np.maximum(np.abs(x), 1e-3)
        with np.errstate(all="ignore"):
            return (step.shape.apply(x + by, step.number) - step.shape.apply(x - by, step.number)) / (2 * by)


def _through(step: _Step, x: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (value of the exact argument, bound on the kernel's error)."""
    shape, value = step.shape, step.shape.apply(x, step.number)
    steepest = np.full(x.shape, shape.steepest(step.number))
    bend = shape.bend(step.number)
    if bend < _INF:
        by = 2.0**-20 * np.maximum(np.abs(x), 2.0**-10)
        slope = np.abs(shape.apply(x + by, step.number) - shape.apply(x - by, step.number)) / (2 * by)
        steepest = np.minimum(steepest, slope * (1 + 2.0**-10) + 2.0**-20 + bend * (error + by))
    grown = steepest * error
    of_result, of_argument = shape.own
    own = of_result * (np.abs(value) + grown)
    # rounding the exponential's argument gives an error that grows with it; 1 + tanh has the same absolute error where it is
    # small
    own = own + of_argument * (np.abs(x) + error) * (np.abs(value) + grown if step.name == "silu" else 1.0)
    return value, grown + own * UNIT + (2.0**-149 if any(shape.own) else 0.0)


def epilogue_of(given: Any, residual: Any, m: int, n: int) -> KernelEpilogue | None:
    """Return the epilogue that a test describes, or None.

    `given` holds names of :data:`EPILOGUES` (with a number, as in ``softcap:30``), "swiglu" and "residual", joined by
    "+"; or a pair (function, Lipschitz constant); or a callable object with `interval(low, high)`.
    """
    if given is None:
        if residual is not None:
            raise ValueError(
                "got residual without an epilogue that adds it: take epilogue='residual', or 'relu+residual'"
            )
        return None
    if not isinstance(given, str):
        return _callers(given, residual)
    *words, last = given.split("+")
    adds = last == "residual"
    words = words if adds else [*words, last]
    if adds != (residual is not None):
        raise ValueError(
            f"epilogue is {given!r} and residual= is {'not ' if residual is None else ''}given, expected residual= if and "
            "only if the epilogue ends with 'residual'"
        )
    if words == ["swiglu"] and not adds:
        return KernelEpilogue(given, pairs=True)
    added = None if residual is None else broadcast(residual, m, n, "residual")
    return KernelEpilogue(given, tuple(_step(word, given) for word in words), added)


def _step(word: str, given: str) -> _Step:
    name, _, text = word.partition(":")
    shape = EPILOGUES.get(name)
    if shape is None:
        known = [f"{key}:{row.number}" if row.number else key for key, row in EPILOGUES.items()]
        raise ValueError(
            f"epilogue is {given!r}, whose part {word!r} is unknown; expected names from {', '.join(known)}, swiglu and "
            "residual, joined by '+' with residual last, or (function, Lipschitz constant)"
        )
    try:
        number = float(text) if shape.number else 0.0
    except ValueError:
        number = math.nan
    if bool(text) != bool(shape.number) or not math.isfinite(number) or (name == "softcap" and number <= 0):
        wanted = f"{name}:{shape.number}, a number{' above 0' if name == 'softcap' else ''}" if shape.number else name
        raise ValueError(f"epilogue is {given!r}, expected {wanted}")
    return _Step(name, shape, number)


def _callers(given: Any, residual: Any) -> KernelEpilogue:
    """Return the epilogue of a caller's function with its Lipschitz constant, or with its interval form."""
    if residual is not None:
        raise ValueError(
            "got residual with a function as epilogue, expected a function that adds it: leave residual out"
        )
    if isinstance(given, tuple) and len(given) == 2 and callable(given[0]):
        lipschitz = float(given[1])
        if not 0 <= lipschitz < _INF:
            raise ValueError(f"the Lipschitz constant of the epilogue must be a number of at least 0, got {given[1]!r}")
        return KernelEpilogue("a function of the test", function=given[0], lipschitz=lipschitz)
    if callable(given) and callable(getattr(given, "interval", None)):
        return KernelEpilogue("a function of the test", function=given, interval=given.interval)
    raise TypeError(
        f"epilogue is {given!r}, expected a name, (function, Lipschitz constant), or a callable object with interval(low, "
        "high), because a function alone does not state how errors grow"
    )


def broadcast(x: Any, m: int, n: int, name: str) -> np.ndarray:
    """Return a matrix or vector as float64 of shape (m, n), broadcast as by numpy.

    Raises ValueError, with the shapes that fit, for another shape.
    """
    values = np.asarray(x)
    if values.shape not in ((m, n), (n,), (1, n), (m, 1), (1, 1), (1,), ()):
        raise ValueError(
            f"{name} has shape {values.shape}, expected ({m}, {n}), ({n},) or (1, {n}) for each column, ({m}, 1) for each row, "
            "or one number"
        )
    return np.broadcast_to(values.astype(np.float64), (m, n))
