"""Bounds the errors of products that an engine, or a recovery method on an engine, computes.

The error is the difference to the exact product of the given operands, or (`reference` "rounded") of the operands rounded to
the engine's formats. Rounding the operands changes each element by at most ``|A - A'||B| + |A'||B - B'|``, which is computed
from the operands themselves; rounding the result to a narrower output format costs half a unit in its last place.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from typing import Any, NamedTuple

import numpy as np

from mpgemm.bounds import bounds
from mpgemm.bounds.kernel_bound import KernelBound, used_operands
from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.kernel_order import ANY, KernelOrder, check_sums_outside, kernel_order
from mpgemm.bounds.method_bounds import method_bound
from mpgemm.bounds.sizes import sizes_of
from mpgemm.exact.product import exact_gemm
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.run import prepare
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import Format, IntegerFormat, get_format
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.fp_state import default_fp_state

REFERENCES = ("given", "rounded")


class Data(NamedTuple):
    """`Data` holds the operands of one product, of shapes (m, k), (k, n) and (m, n), and their scales."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None = None
    scaling: Scaling | None = None


class Errors(NamedTuple):
    """`Errors` holds a product that is not yet rounded to an output format, exact values, S = |A||B| + |C|, and |error|."""

    computed: np.ndarray
    exact: np.ndarray
    sizes: np.ndarray
    error: np.ndarray


class Bounded(NamedTuple):
    """`Bounded` holds certified bounds of a product that is rounded to its output format; `least` is at most |exact|."""

    least: np.ndarray
    sizes: np.ndarray
    bound: np.ndarray


class Measured(NamedTuple):
    """`Measured` holds a product rounded to its output format, with exact values, S, |error| and the bound of the error."""

    computed: np.ndarray
    exact: np.ndarray
    sizes: np.ndarray
    error: np.ndarray
    bound: np.ndarray


def output_bound(bound: np.ndarray, exact: np.ndarray, fmt: Format) -> np.ndarray:
    """Return a bound that also covers rounding to nearest into an output format, infinite where that may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(exact) + bound
        total = bound + fmt.unit_roundoff * largest + fmt.min_subnormal
        return np.where(largest * bounds.MARGIN < fmt.max_finite, total * bounds.MARGIN, np.inf)


def _errors(expected, values) -> Errors:
    reference = exact_gemm(*expected)
    values = np.asarray(values).astype(np.float64)  # float64 holds the values of every result format
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(np.asarray(reference.error_of(values)))
        sizes = sizes_of(*expected)
    error = np.where(np.isfinite(values), error, np.inf)
    return Errors(values, np.asarray(reference.rounded("fp64")), sizes, error)


def _least(expected, sizes: np.ndarray) -> np.ndarray:
    """Return a number that is at most |exact|: the float64 product less a bound of its rounding errors."""
    a, b, c = expected
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.abs(a @ b if c is None else a @ b + c.astype(np.float64))
        least = near - (a.shape[1] + 2) * 2.0**-52 * sizes - 2.0**-1022
    return np.where(least > 0, least, 0.0)


def _bounded(expected, bound: np.ndarray, out_format: Format | None) -> Bounded:
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = sizes_of(*expected)
        least = _least(expected, sizes)
        if out_format is not None:  # |exact| is above `least` by at most twice that margin
            bound = output_bound(bound, least + (expected[0].shape[1] + 2) * 2.0**-51 * sizes + 2.0**-1021, out_format)
    return Bounded(least, sizes, bound)


def _measured(found: Errors, bound: np.ndarray, out_format: Format | None) -> Measured:
    if out_format is None:
        return Measured(*found, bound)
    values = round_to(found.computed, out_format)
    with np.errstate(over="ignore", invalid="ignore"):
        # found.exact is rounded to nearest in FP64, a relative error below 2^-53
        error = np.abs(values - found.exact)
        error = np.where(error == 0, 0.0, error + 2.0**-53 * np.abs(found.exact))
    error = np.where(np.isfinite(values), error, np.inf)
    return Measured(values, found.exact, found.sizes, error, output_bound(bound, found.exact, out_format))


class BoundedProduct(ABC):
    """`BoundedProduct` is a way to multiply whose error has a bound."""

    engine: Engine  #: Engine that multiplies.
    out_format: Format | None  #: Format to which the result is rounded to nearest.

    @property
    @abstractmethod
    def label(self) -> str:
        """Return the name of the product in tables."""

    @abstractmethod
    def expected(self, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return A, B and C of the exact product; A and B are float64 and multiplied by their block scales."""

    @abstractmethod
    def errors(self, data: Data) -> Errors:
        """Return the product before rounding to an output format, and its errors.

        Raises ValueError if shapes do not fit, or operands are beyond the range of the format.
        """

    @abstractmethod
    def _bound(self, data: Data) -> np.ndarray:
        """Return the bound of the error before the rounding to an output format."""

    @default_fp_state
    def bounded(self, data: Data) -> Bounded:
        """Return certified bounds of the product's error; raise ValueError like :meth:`errors`, or if no bound is known."""
        return _bounded(self.expected(data), self._bound(data), self.out_format)

    @default_fp_state
    def measure(self, data: Data) -> Measured:
        """Return the product rounded to the output format, its error and its bound; raise ValueError like :meth:`bounded`."""
        return _measured(self.errors(data), self._bound(data), self.out_format)


@dataclass(frozen=True)
class EngineProduct(BoundedProduct):
    """`EngineProduct` is a product on an engine.

    Raises ValueError for an unknown `reference`, or if `promote_every` is given and the engine's results are not FP32.
    """

    engine: Engine
    #: Interval of :meth:`tensorcore_models.Engine.gemm`; of an allowed range (least, most), the most is computed.
    promote_every: int | tuple[int, int] | None = None
    #: Operands of the exact product: "given", or "rounded" to the engine's formats. The engine rounds operands to nearest.
    reference: str = "given"
    out_format: Format | None = None  #: Format to which the result is rounded to nearest.
    #: k_order, splits: orders of k that are allowed, as in :func:`mpgemm.testing.gemm_tolerance`.
    k_order: Any = "sequential"
    splits: int = 1

    def __post_init__(self):
        if self.reference not in REFERENCES:
            raise ValueError(f"reference is {self.reference!r}, expected one of {', '.join(map(repr, REFERENCES))}")
        if self.promote_every is not None:
            check_sums_outside(self.engine)

    @property
    def label(self) -> str:
        return self.engine.label

    def order(self, data: Data) -> KernelOrder:
        """Return the orders of k that are allowed."""
        return kernel_order(self.engine, data.a.shape[1], self.splits, self.k_order, self.promote_every, data.scaling)

    @default_fp_state
    def errors(self, data: Data) -> Errors:
        order = self.order(data)
        options: dict[str, Any] = {"promote_every": None if order.promote_every is None else order.promote_every[1]}
        if order.k_order != ANY:
            options["k_order"] = order.k_order
        c = None if data.c is None else operand_bits(data.c, self.engine.formats[2], None, "c")
        added = None if c is None else values_of_bits(c, self.engine.formats[2])
        found = model_results(self.engine, *self._used(data), added, data.scaling, options)[0]
        return _errors(self.expected(data), found)

    def _bound(self, data: Data) -> np.ndarray:
        rounded, scaling = self.rounded(data), data.scaling
        used = used_operands(self.engine, *rounded, scaling)
        c = None if data.c is None else data.c.astype(np.float64)
        outside = scaling is not None and scaling.roundings > 0
        result = get_format("fp32") if outside else self.engine.formats[3]
        with np.errstate(over="ignore", invalid="ignore"):
            case = KernelBound(self.engine, used, c, scaling, self.order(data), result, running=False)
            bound = case.bound(False)
            if self.reference == "rounded":
                return bound
            expected, (a, b) = self.expected(data), self._scaled(rounded, data)
            if np.array_equal(expected[0], a) and np.array_equal(expected[1], b):
                return bound
            lost = np.abs(expected[0] - a) @ np.abs(expected[1])
            lost = lost + np.abs(a) @ np.abs(expected[1] - b)
            return np.where(np.isnan(lost), np.inf, bound + lost * bounds.MARGIN)

    def rounded(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B rounded to the engine's formats, float64, without block scales."""
        a, b = self.engine.formats[:2]
        bits_a, bits_b = _encoded(data.a, a, "a"), _encoded(data.b, b, "b")
        return values_of_bits(bits_a, a).astype(np.float64), values_of_bits(bits_b, b).astype(np.float64)

    def expected(self, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        given = data.a.astype(np.float64), data.b.astype(np.float64)
        return *self._scaled(self.rounded(data) if self.reference == "rounded" else given, data), data.c

    def multiplied(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B rounded to the engine's formats and multiplied by their block scales, float64."""
        return self._scaled(self.rounded(data), data)

    def _used(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B rounded to the engine's formats, in the dtypes of these formats."""
        pairs = zip(data[:2], self.engine.formats[:2], "ab", strict=True)
        a, b = (values_of_bits(_encoded(x, fmt, name), fmt) for x, fmt, name in pairs)
        return a, b

    def _scaled(self, pair, data: Data) -> tuple[np.ndarray, np.ndarray]:
        if self.engine.scale_format is not None and data.scaling is None:
            self.engine.check_scales(pair[0].shape, pair[1].shape, None, None)
        if data.scaling is None:
            return pair
        return pair[0] * data.scaling.spread_a(), pair[1] * data.scaling.spread_b()


def _encoded(x: np.ndarray, fmt: Format | IntegerFormat, name: str) -> np.ndarray:
    return operand_bits(x, fmt, None if isinstance(fmt, IntegerFormat) else "rne", name)


@dataclass(frozen=True)
class MethodProduct(BoundedProduct):
    """`MethodProduct` is a product that a recovery method computes."""

    method: RecoveryMethod
    engine: Engine
    out_format: Format | None = None  #: Format to which the result is rounded to nearest.

    @property
    def label(self) -> str:
        return f"{self.method.name} on {self.engine.label}"

    @default_fp_state
    def errors(self, data: Data) -> Errors:
        """Return the product and its errors; raise ValueError for block scales, which recovery methods do not take."""
        if data.scaling is not None:
            raise ValueError(
                f"got scales with method {self.method.name}, expected none, because recovery methods take no scales; multiply "
                "the operands by the scales first"
            )
        return _errors(self.expected(data), prepare(data.a, data.b, data.c, self.method, self.engine).product())

    def _bound(self, data: Data) -> np.ndarray:
        return method_bound(data.a, data.b, data.c, self.method, self.engine).total

    def expected(self, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        return data.a.astype(np.float64), data.b.astype(np.float64), data.c


def upwards(x: float, digits: int = 3) -> float:
    """Return a number rounded up to some decimal digits, so that a printed bound is still a bound."""
    if x == 0 or not math.isfinite(x):
        return x
    exact = Decimal(x)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    found = float(exact.quantize(unit, rounding=ROUND_UP, context=Context(prec=2000)))
    return found if found >= x else math.nextafter(found, math.inf)
