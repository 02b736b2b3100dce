"""This module defines one call of a kernel that computes a recovery method, such as SGEMM-cube, and its allowed results."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.bounded_product import Data, MethodProduct, output_bound
from mpgemm.bounds.kernel_order import kernel_order
from mpgemm.bounds.method_bounds import method_bound, word_values
from mpgemm.bounds.populations import in_random_order
from mpgemm.recovery.counts import result_format
from mpgemm.recovery.engines import ieee_engine, resolve_engine
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.run import check_operands, prepare
from mpgemm.testing.call import sampled_rows
from mpgemm.testing.case import KernelCase
from mpgemm.testing.epilogues import broadcast, epilogue_of
from mpgemm.testing.sampled import KernelStatistics, statistics_of
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat, get_format

#: Ways to add the products of words that kernels of a method may choose. All but "core" allow words with a scale.
ACCUMULATIONS = ("core", "outside", "termwise", "elementwise")


class _Bound(NamedTuple):
    """`_Bound` is the certified bound of a method's sums with the rounding to an output format."""

    sums: np.ndarray
    exact: np.ndarray
    sizes: np.ndarray
    result: Format
    out: Format | IntegerFormat

    def bound(self, finite: bool) -> np.ndarray:
        """Return the bound, infinite where a sum may overflow unless results are known to be `finite`."""
        out = self.out
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.where(np.isnan(self.sums), np.inf, self.sums)
            if isinstance(out, Format) and out != self.result:
                if finite:
                    largest = np.abs(self.exact) + total
                    return (total + out.unit_roundoff * largest + out.min_subnormal) * bounds.MARGIN
                total = output_bound(total, self.exact, out)
            overflows = (self.sizes + total) * bounds.MARGIN >= self.result.max_finite
            return total if finite else np.where(overflows, np.inf, total)


@dataclass(frozen=True, kw_only=True)
class RecoveredCase(KernelCase):
    """`RecoveredCase` is one call of a kernel that computes a recovery method on a matrix unit.

    Its operands are those of the method, so that `engine` is a unit with operands and sums of FP32 (or FP64).

    Attributes
    ----------
    method : RecoveryMethod
        Method that the kernel computes.
    core : Engine
        Unit that multiplies the words.
    """

    method: RecoveryMethod
    core: Engine

    @property
    def label(self) -> str:
        return f"{self.method.name} on {self.core.label}"

    @property
    def order_in_words(self) -> str:
        return self.method.title

    @cached_property
    def _method_bound(self) -> np.ndarray:
        return method_bound(*self.operands, self.c, self.method, self.core).total

    def _bound_of(self, out: Format | IntegerFormat) -> Any:
        result = self._sums_format
        assert isinstance(result, Format)
        sizes = self.used.sizes if self.c is None else self.used.sizes + np.abs(self.c)
        return _Bound(self._method_bound, self.values, sizes, result, out)

    @property
    def bound_of_every_order(self) -> np.ndarray:
        return np.where(np.isfinite(self.values), self._bound_of(self._sums_format).bound(False), np.inf)

    @cached_property
    def statistics(self) -> KernelStatistics | None:
        """Return the statistical bound of right kernels, because the certified bound of a method hides lost low words."""
        if not self.bound.size:
            return None
        if self.epilogue is None:
            return statistics_of(self)
        sums = statistics_of(replace(self, epilogue=None, out_format=self._sums_format.name))
        return replace(sums, middle=self.epilogue.apply(sums.middle), half=self._behind(sums.half, True))

    @property
    def attributed(self) -> tuple[RecoveryMethod, Engine]:
        return self.method, self.core

    @property
    def derivation(self) -> str:
        found = method_bound(*self.operands, self.c, self.method, self.core)
        parts = [f"largest bound of the {row['part']}: {row['largest']:.4g}" for row in found.to_rows()]
        return "\n".join([f"{self.label}: {self.method.title}", *parts])

    @property
    def product(self) -> MethodProduct:  # type: ignore[override]
        out = get_format(self.out_format)
        narrow = out if isinstance(out, Format) and out != self._sums_format else None
        return MethodProduct(self.method, self.core, narrow)

    @property
    def data(self) -> Data:
        return Data(*self.operands, self.c)

    def model(self, rows: np.ndarray, columns: np.ndarray, **more: Any) -> list[np.ndarray]:
        return [self._computed(self.method, self.part(rows, columns))]

    @cached_property
    def alike(self) -> tuple[RecoveryMethod, ...]:
        """Return the method, and methods that add the same products of words in another way."""
        found = [self.method]
        for accumulation in ACCUMULATIONS if self.method.kind == "words" else ():
            if accumulation != self.method.accumulation:
                with contextlib.suppress(ValueError):  # a way that does not allow the words' scale
                    found.append(replace(self.method, accumulation=accumulation, restart_every=None))
        return tuple(found)

    def right_kernels(self, rows: np.ndarray, columns: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the sums of all methods in :attr:`alike`."""
        for method in self.alike:
            yield self._computed(method, self.part(rows, columns))

    def right_kernel(self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        data = in_random_order(self.part(rows, columns), self.core.k, rng)
        return self._computed(self.alike[int(rng.integers(len(self.alike)))], data)

    def _computed(self, method: RecoveryMethod, data: Data) -> np.ndarray:
        x, y, c, _ = data
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return prepare(x, y, c, method, self.core).product().astype(np.float64)

    def words(
        self, rows: np.ndarray, columns: np.ndarray, method: RecoveryMethod | None = None
    ) -> list[list[np.ndarray]]:
        """Return the words of rows of A, shape (rows, k), and of columns of B, (k, columns), in the operands' units.

        `method` splits the operands in another way.
        """
        x, y, _, _ = self.part(rows, columns)
        return list(word_values(prepare(x, y, None, method or self.method, self.core))[:2])


def recovered_case(
    method: str | RecoveryMethod, engine: Engine | str | None, a, b, c=None, *, out_format: str | None = None, epilogue=None,
    residual=None, rows: int | None = None, **others: Any,
) -> RecoveredCase:  # fmt: skip
    """Return the call of a kernel that computes a recovery method.

    Parameters
    ----------
    method : str or RecoveryMethod
        Method of :func:`mpgemm.list_methods`, with its options ("sgemm_cube:terms=4").
    engine : Engine, str or None
        Unit that multiplies the words; None for the method's own.
    a, b, c, out_format, epilogue, residual, rows
        See :func:`mpgemm.testing.gemm_tolerance`. Operands are FP32 or FP64.
    **others
        Options of :func:`mpgemm.testing.gemm_tolerance` that a method does not take.

    Raises
    ------
    ValueError, TypeError
        If the method or its unit is unknown, the unit does not take the words, shapes do not fit, the method has no bound, or
        an option has no meaning beside a method.
    """
    given = sorted(name for name, value in others.items() if value is not None and value != _DEFAULTS.get(name))
    if given:
        raise ValueError(
            f"got {', '.join(given)} with the method {method!r}, which fixes the words and the order of their products: leave "
            f"{', '.join(given)} out, or give options of the method, as in 'sgemm_cube:terms=4'"
        )
    row = method if isinstance(method, RecoveryMethod) else get_method(method)
    core = resolve_engine(engine, row)
    x, y, _ = check_operands(tcm.as_array(a, "a"), tcm.as_array(b, "b"), None)
    (m, k), n = x.shape, y.shape[1]
    added = None if c is None else broadcast(tcm.as_array(c, "c"), m, n, "c")
    done = epilogue_of(epilogue, None if residual is None else tcm.as_array(residual, "residual"), m, n)
    if done is not None:
        done.columns(n)
    lines = sampled_rows(m, rows)
    if lines is not None:
        x, added = x[lines], None if added is None else added[lines]
        done = None if done is None else done.part(lines, np.arange(n))
    result = result_format(row, x, y)
    unit = ieee_engine(result)
    out = get_format(result if out_format is None else out_format)
    return RecoveredCase(
        unit,
        (x, y),
        (x, y),
        None,
        added,
        out.name,
        kernel_order(core, k, 1, None, None, None),
        done,
        lines,
        method=row,
        core=core,
    )


#: Values with which an option of :func:`recovered_case` says nothing.
_DEFAULTS = {"splits": 1, "alpha": 1.0, "beta": 1.0}
