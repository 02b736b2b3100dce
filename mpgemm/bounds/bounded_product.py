"""Ways to multiply that come with a deterministic bound of their error: an engine, and a recovery method on one.

The error is the one against the exact product of the operands as given, or (`reference` "rounded") as the engine's format holds
them. Rounding the operands of an engine costs ``|A - A'||B| + |A'||B - B'|`` for each element, which is computed from the
operands themselves; rounding the result to a narrower output format costs half a unit in its last place.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from typing import NamedTuple, Protocol

import numpy as np

from mpgemm.bounds import bounds
from mpgemm.bounds.method_bounds import method_bound
from mpgemm.bounds.operand_facts import apply_scales, facts_of, scaled_values
from mpgemm.exact.product import exact_gemm
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.run import recovered_gemm
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat, get_format
from tensorcore_models.formats.interop import format_of_dtype
from tensorcore_models.formats.operands import operand_bits, scale_bits, values_of_bits
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.fp_state import default_fp_state

REFERENCES = ("given", "rounded")


class Data(NamedTuple):
    """Operands of one product: arrays of shapes (m, k), (k, n), (m, n), and block scales where the engine has them."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None = None
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None


class Measured(NamedTuple):
    """One product: results, exact values and sizes S = |A||B| + |C| as float64, the error and its bound."""

    computed: np.ndarray
    exact: np.ndarray
    sizes: np.ndarray
    error: np.ndarray
    bound: np.ndarray


class BoundedProduct(Protocol):
    """A way to multiply whose error is bounded."""

    @property
    def label(self) -> str:
        """For tables."""

    def measure(self, data: Data) -> Measured:
        """The product, its error and its bound."""

    def expected(self, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Operands of the exact product, A and B as float64."""


def output_bound(bound: np.ndarray, exact: np.ndarray, fmt: Format) -> np.ndarray:
    """A bound with the rounding to nearest into an output format added; infinite where that may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(exact) + bound
        total = bound + fmt.unit_roundoff * largest + fmt.min_subnormal
        return np.where(largest * bounds.MARGIN < fmt.max_finite, total * bounds.MARGIN, np.inf)


def _measured(expected, values, bound, result, out_format) -> Measured:
    a, b, c = expected
    reference = exact_gemm(a, b, c)
    exact = np.asarray(reference.rounded("fp64"))
    values = np.asarray(values).astype(np.float64)  # every format of a result fits
    if out_format is not None:
        bound, values = output_bound(bound, exact, out_format), round_to(values, out_format)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        sizes = sizes if c is None else sizes + np.abs(c.astype(np.float64))
        if result == get_format("fp64"):
            error = np.abs(np.asarray(reference.error_of(values)))
        else:  # the exact value, rounded to nearest in FP64, is off by less than 2^-53 of itself
            error = np.abs(values - exact)
            error = np.where(error == 0, 0.0, error + 2.0**-53 * np.abs(exact))
    return Measured(values, exact, sizes, np.where(np.isfinite(values), error, np.inf), bound)


@dataclass(frozen=True)
class EngineProduct:
    """A product on an engine.

    Parameters
    ----------
    engine : Engine
    promote_every : int, optional
        As for :meth:`tensorcore_models.Engine.gemm`.
    reference : {"given", "rounded"}
        Which operands the exact product has; "given" ones are rounded to nearest for the engine.
    out_format : Format, optional
        To which the result is rounded to nearest.

    Raises
    ------
    ValueError
        If the reference is unknown, or sums outside are asked of an engine that does not give FP32.
    """

    engine: Engine
    promote_every: int | None = None
    reference: str = "given"
    out_format: Format | None = None

    def __post_init__(self):
        if self.reference not in REFERENCES:
            raise ValueError(f"reference is {self.reference!r}, expected one of {', '.join(map(repr, REFERENCES))}")
        if self.promote_every is not None and get_format(self.engine.d_format).name != "fp32":
            raise ValueError(
                f"{self.engine.label} gives {self.engine.formats[3].name}: sums outside are those of FP32 results"
            )

    @property
    def label(self) -> str:
        """For tables."""
        return self.engine.label

    def operands(self, data: Data) -> tuple[np.ndarray | None, ...]:
        """Encodings (A, B, C, scales of A, scales of B) as the engine takes them, None for C and scales that are not given."""
        formats = self.engine.formats
        a, b = (_encoded(x, f, n) for x, f, n in zip(data[:2], formats[:2], "ab", strict=True))
        c = None if data.c is None else operand_bits(data.c, formats[2], None, "c")
        scales = (
            scale_bits(s, self.engine.scale_format, n) for s, n in zip(data[3:], ("scale_a", "scale_b"), strict=True)
        )
        return a, b, c, *scales

    @default_fp_state
    def measure(self, data: Data) -> Measured:
        """The product, its error and its bound.

        Raises
        ------
        ValueError
            If shapes do not fit, no bound is known for the core, or operands are beyond the range of the format.
        """
        engine = self.engine
        bits = engine.gemm_bits(*self.operands(data), promote_every=self.promote_every)
        rounded = self.rounded(data)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.promote_every is None:
                bound = bounds.gemm_bound(engine, *rounded, data.c, scale_a=data.scale_a, scale_b=data.scale_b)
            else:
                bound = self._promoted_bound(*rounded, data, self.promote_every)
            expected = self.expected(data)
            if self.reference == "given":
                used = self._scaled(rounded, data)
                lost = np.abs(expected[0] - used[0]) @ np.abs(expected[1])
                lost = lost + np.abs(used[0]) @ np.abs(expected[1] - used[1])
                bound = np.where(np.isnan(lost), np.inf, bound + lost * bounds.MARGIN)
        return _measured(expected, values_of_bits(bits, engine.formats[3]), bound, engine.formats[3], self.out_format)

    def rounded(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """A and B as the engine takes them, float64, without block scales."""
        a, b = self.engine.formats[:2]
        bits_a, bits_b = _encoded(data.a, a, "a"), _encoded(data.b, b, "b")
        return values_of_bits(bits_a, a).astype(np.float64), values_of_bits(bits_b, b).astype(np.float64)

    def expected(self, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Operands of the exact product, A and B as float64 with their block scales."""
        given = data.a.astype(np.float64), data.b.astype(np.float64)
        return *self._scaled(self.rounded(data) if self.reference == "rounded" else given, data), data.c

    def _scaled(self, pair, data: Data) -> tuple[np.ndarray, np.ndarray]:
        a, b, scales_a, scales_b = scaled_values(self.engine, pair[0], pair[1], data.scale_a, data.scale_b)
        return apply_scales(self.engine, a, b, scales_a, scales_b)

    def _promoted_bound(self, a, b, data: Data, every: int) -> np.ndarray:
        facts = facts_of(self.engine, a, b)
        sizes = np.abs(a) @ np.abs(b)
        c = 0.0 if data.c is None else np.abs(data.c.astype(np.float64))
        found = bounds.promoted_bound(
            self.engine, np.where(np.isfinite(sizes), sizes, 0.0), a.shape[1], every, facts, c
        )
        return np.where(np.isfinite(sizes), found, np.inf)


def _encoded(x: np.ndarray, fmt: Format | IntegerFormat, name: str) -> np.ndarray:
    return operand_bits(x, fmt, None if isinstance(fmt, IntegerFormat) else "rne", name)


@dataclass(frozen=True)
class MethodProduct:
    """A product by a recovery method.

    Parameters
    ----------
    method : RecoveryMethod
    engine : Engine
    out_format : Format, optional
        To which the result is rounded to nearest.
    """

    method: RecoveryMethod
    engine: Engine
    out_format: Format | None = None

    @property
    def label(self) -> str:
        """For tables."""
        return f"{self.method.name} on {self.engine.label}"

    @default_fp_state
    def measure(self, data: Data) -> Measured:
        """The product, its error and its bound.

        Raises
        ------
        ValueError
            As :func:`mpgemm.method_bound`; also for block scales, which methods do not take.
        """
        if data.scale_a is not None or data.scale_b is not None:
            raise ValueError("recovery methods take no block scales")
        values = recovered_gemm(data.a, data.b, data.c, self.method, self.engine)
        bound = method_bound(data.a, data.b, data.c, self.method, self.engine).total
        return _measured(self.expected(data), values, bound, format_of_dtype(values.dtype), self.out_format)

    def expected(self, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Operands of the exact product, A and B as float64."""
        return data.a.astype(np.float64), data.b.astype(np.float64), data.c


def upwards(x: float, digits: int = 3) -> float:
    """A number rounded up to so many decimal digits, so that a printed bound stays one."""
    if x == 0 or not math.isfinite(x):
        return x
    exact = Decimal(x)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    found = float(exact.quantize(unit, rounding=ROUND_UP, context=Context(prec=2000)))
    return found if found >= x else math.nextafter(found, math.inf)
