"""Computes a kernel's certified bound from its chains, the sums outside of the unit, scales, an addend and the output rounding.

For the chains, the smaller of two bounds counts. One uses only the sizes |A||B| + |C| and holds for every order that the test
allows; the other uses the running sums of these operands (:mod:`mpgemm.bounds.running`) and needs a known order. Each operation
outside of the unit is FP32 rounded to nearest, with a relative error of at most 2^-24.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpgemm.bounds import bounds
from mpgemm.bounds.kernel_order import ANY, KernelOrder
from mpgemm.bounds.operand_facts import apply_scales, facts_of
from mpgemm.bounds.running import GROUPS, chain_sum
from mpgemm.bounds.sizes import multiply, sizes_of
from tensorcore_models.aspects.errors import OperandFacts
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import Format, IntegerFormat, get_format
from tensorcore_models.formats.interop import format_of_dtype
from tensorcore_models.formats.rounding import decode

#: Unit roundoff and smallest positive number of FP32.
UNIT, TINY = 2.0**-24, 2.0**-149
#: Magnitude from which rounding to FP32 overflows.
LARGEST = 2.0**128 * (1 - 2.0**-25)


@dataclass(frozen=True, eq=False)
class Used:
    """`Used` holds the operands of a product in float64."""

    #: x, y: operands that the unit multiplies, shapes (m, k) and (k, n), with the unit's own block scales multiplied in.
    x: np.ndarray
    y: np.ndarray
    #: A and B without any scales.
    stored: tuple[np.ndarray, np.ndarray]
    scaling: Scaling | None
    facts: OperandFacts | None

    @cached_property
    def a(self) -> np.ndarray:
        """Return A times all its scales, which is exact."""
        return self.x if self.scaling is None else self.scaling.times_a(self.stored[0])

    @cached_property
    def b(self) -> np.ndarray:
        """Return B times all its scales, which is exact."""
        return self.y if self.scaling is None else self.scaling.times_b(self.stored[1])

    @cached_property
    def sizes(self) -> np.ndarray:
        """Return |A||B| with all scales, shape (m, n); scales outside of the unit are applied block by block of k."""
        scaling = self.scaling
        if scaling is None or scaling.applied == "product":
            return sizes_of(self.a, self.b)
        sizes, block = np.zeros((self.x.shape[0], self.y.shape[1])), scaling.block or max(self.x.shape[1], 1)
        for start in range(0, self.x.shape[1], block):
            taken, factors = slice(start, start + block), (np.abs(f.astype(np.float64)) for f in scaling.at(start))
            sizes += np.multiply(*factors) * sizes_of(self.x[:, taken], self.y[taken])
        return sizes * abs(scaling.whole_a * scaling.whole_b)


def used_operands(unit: Engine, x: np.ndarray, y: np.ndarray, scaling: Scaling | None) -> Used:
    """Return the operands of a product of values that the unit's formats hold; raise ValueError if block scales are missing."""
    given = _in_float64(x), _in_float64(y)
    inside: tuple = (None, None)
    if unit.scale_format is not None:
        unit.check_scales(x.shape, y.shape, *((None, None) if scaling is None else (scaling.bits_a, scaling.bits_b)))
        inside = (scaling.a, scaling.b) if scaling is not None else inside
    used = apply_scales(unit, *given, *inside)
    return Used(used[0], used[1], given, scaling, facts_of(unit, *given, *inside))


def _in_float64(x: np.ndarray) -> np.ndarray:
    """Return values in float64; 8-bit values come from a table, which is faster."""
    x = np.asarray(x)
    fmt = format_of_dtype(x.dtype)
    if fmt is None or fmt.bits > 8:
        return x.astype(np.float64)
    return decode(np.ascontiguousarray(x).view(np.uint8), fmt)


@dataclass(frozen=True)
class KernelBound:
    """`KernelBound` holds the facts of a kernel's computation that its error depends on, and bounds the error."""

    unit: Engine
    used: Used  #: Operands of the product.
    c: np.ndarray | None  #: Addend, float64, shape (m, n).
    scaling: Scaling | None
    order: KernelOrder
    out: Format | IntegerFormat
    #: Exact result rounded to float64, shape (m, n); needed if the output is rounded.
    exact: np.ndarray | None = None
    #: Whether the running sums of a known order are used; without them the bound holds for every order of the same chains.
    running: bool = True
    #: Number of FP32 roundings of C before it is added, where scales are applied outside.
    c_roundings: int = 0
    #: Format to which a kernel may round B times its scales before it multiplies.
    dequantised: Format | None = None

    @property
    def outside(self) -> bool:
        """Return whether scales are applied outside of the unit, and c is added after them."""
        return self.scaling is not None and self.scaling.roundings > 0

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Return |X||Y| (+ |C| where c may be in the chain), which is not finite where an operand is not."""
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = sizes_of(self.used.x, self.used.y)
            return sizes if self.c is None or self.outside else sizes + np.abs(self.c)

    @cached_property
    def _usable(self) -> np.ndarray:
        return np.isfinite(self._sizes)

    # -- chains ----------------------------------------------------------------------------------------------------------
    def _by_size(self) -> np.ndarray:
        """Return the bound of the error of all chains together, for any order that is allowed."""
        step = bounds.step_error(self.unit, self.used.facts)
        order, k = self.order, self.order.k
        if order.promote_every is None and order.block is None:
            ragged = order.additions if order.k_order != ANY else 0
            steps = bounds.steps_of(self.unit, k, step.terms) + ragged * bounds.steps_of(
                self.unit, self.unit.k, step.terms
            )
            count = 1
        else:
            steps, count = bounds.steps_of(self.unit, order.longest, step.terms), order.additions + 1
        relative, absolute = bounds.chain_error(step, steps)
        sizes = np.where(self._usable, self._sizes, 0.0) * bounds.MARGIN
        return np.where(sizes > 0, relative * sizes, 0.0) + absolute * count

    @cached_property
    def _chains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of (the sum of the chains' |results|, their error), with block scales multiplied in."""
        if isinstance(self.unit.formats[3], IntegerFormat):
            sizes = np.where(self._usable, self._sizes, 0.0)
            lost = bounds.step_error(self.unit, self.used.facts).products
            return self._scaled_sizes(sizes), self._scaled_sizes(sizes) * lost
        if self.scaling is not None and self.order.block is not None:
            return self._of_blocks()
        error = self._by_size()
        sizes = np.where(self._usable, self._sizes, 0.0)
        if not self.running or not self.order.known or not self._usable.all():
            return sizes, error
        found = self._run()
        total = sum((np.abs(chain.sums) + chain.error for chain in found), np.zeros_like(sizes))
        added = 0.0 if self.c is None or self.outside else np.abs(self.c)
        running = sum((chain.error for chain in found), np.zeros_like(sizes))
        return np.minimum(sizes, total + added), np.minimum(error, running)

    def _run(self):
        chains = self.order.chains()
        addend = 0.0 if self.c is None or self.outside else np.abs(self.c)
        groups = max(GROUPS // max(len(chains), 1), 1)
        return [
            chain_sum(self.unit, self.used.x, self.used.y, pieces, self.used.facts, addend, groups) for pieces in chains
        ]

    def _scaled_sizes(self, sizes: np.ndarray) -> np.ndarray:
        if self.scaling is None or self.order.block is None:
            return sizes
        return self.used.sizes

    def _of_blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the same bounds for chains of one block of scales each.

        FP32 rounds twice: the product of the two scales and then the chain's result times it, or the chain's result times one
        scale after the other. A fused multiply-add rounds less.
        """
        step = bounds.step_error(self.unit, self.used.facts)
        relative, absolute = bounds.chain_error(step, bounds.steps_of(self.unit, self.order.longest, step.terms))
        total, error = (np.zeros((self.used.x.shape[0], self.used.y.shape[1])) for _ in range(2))
        known = self.running and self.order.known and bool(self._usable.all())
        chains = (
            KernelOrder(self.order.k, self.order.step, block=self.order.longest).chains()
            if not known
            else self.order.chains()
        )
        for (piece,) in chains:
            factor_a, factor_b = (v.astype(np.float64) for v in self.scaling.at(piece.start))  # type: ignore[union-attr]
            factor, larger = np.abs(factor_a * factor_b), np.maximum(np.abs(factor_a), np.abs(factor_b))
            if known:
                chain = chain_sum(self.unit, self.used.x, self.used.y, (piece,), self.used.facts, groups=8)
                lost = np.minimum(relative * chain.sizes * bounds.MARGIN + absolute, chain.error)
                sizes = np.minimum(chain.sizes, np.abs(chain.sums))
            else:
                taken = slice(piece.start, piece.stop)
                sizes = multiply(np.abs(self.used.x[:, taken]), np.abs(self.used.y[taken]))
                sizes = np.where(np.isfinite(sizes), sizes, 0.0)
                lost = relative * sizes * bounds.MARGIN + absolute
            total += factor * (sizes + lost)
            error += factor * lost + (bounds.growth(UNIT, 2) * factor + TINY) * (sizes + lost) + TINY * (1 + larger)
        return total, error

    # -- outside ---------------------------------------------------------------------------------------------------------
    def bound(self, finite: bool) -> np.ndarray:
        """Return the bound of each element's error; unless `finite`, it is infinite where an operation may overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            reach, error = self._chains
            result = self.unit.formats[3]
            fits = self._usable & (
                (np.where(self._usable, self._sizes, 0.0) + error) * bounds.MARGIN < bounds.overflow_from(self.unit)
            )
            unit = result.unit_roundoff if isinstance(result, Format) else 0.0
            additions = self.order.additions + (self.c is not None and not self.outside)
            error = error + bounds.growth(unit, additions) * (reach + error) + additions * TINY
            if self.outside:
                error, fits_outside = self._outside(reach, error)
                fits = fits & fits_outside
            if self.dequantised is not None:
                error = error + self._of_weights(self.dequantised)
            if self.outside:
                result = get_format("fp32")
            if self.out != result and isinstance(self.out, Format) and self.exact is not None:
                reaches = np.abs(self.exact) + error
                error = error + self.out.unit_roundoff * reaches * bounds.MARGIN + self.out.min_subnormal / 2
                fits = fits & (reaches * (1 + self.out.unit_roundoff) < self.out.max_finite)
            error = error * bounds.MARGIN
            return np.where(self._usable & (fits | finite), error, np.inf)

    def _outside(self, reach: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (error, mask of elements that cannot overflow) after the scales and c."""
        assert self.scaling is not None
        known = self.exact is not None and self.c is None
        exact = np.abs(self.exact if known else multiply(self.used.a, self.used.b))  # type: ignore[arg-type]
        exact = np.where(np.isfinite(exact), exact, 0.0)
        fits = np.ones(error.shape, bool)
        if self.scaling.applied != "block":
            first, second = self._factors()
            integer = isinstance(self.unit.formats[3], IntegerFormat)
            small = (1 + second + reach + error) * 2 * TINY
            largest = np.maximum(np.maximum(first * second, (reach + error) * first), (reach + error) * first * second)
            fits = largest * bounds.MARGIN < LARGEST
            error = error * first * second
            error = error + bounds.growth(UNIT, 2 + integer) * (exact + error) + small
        else:
            fits = (reach + error) * bounds.MARGIN < LARGEST
        if self.c is not None:
            own = (UNIT * np.abs(self.c) + TINY) * self.c_roundings
            error = error + own + UNIT * (exact + error + np.abs(self.c) + own) + TINY
        return error, fits

    def _of_weights(self, fmt: Format) -> np.ndarray:
        """Return a bound of the error from rounding B times its scales to a format."""
        a = np.abs(self.used.a)
        least = a.sum(1, keepdims=True) * fmt.min_subnormal / 2
        return (fmt.unit_roundoff * multiply(a, np.abs(self.used.b)) + least) * bounds.MARGIN

    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return magnitudes of the factors that are applied at the end, shapes (m, 1) and (1, n)."""
        scaling = self.scaling
        assert scaling is not None
        if scaling.applied == "product":
            return np.full((1, 1), abs(scaling.whole_a)), np.full((1, 1), abs(scaling.whole_b))
        a, b = scaling.at(0)
        return np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64))
