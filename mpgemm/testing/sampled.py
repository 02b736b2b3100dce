"""This module finds statistical bounds that whole right products stay below, by sampling the exact model of a kernel.

At quantile q at most a share 1 - q of right products of the given shape may fail, so each of their m n elements may
fail with probability (1 - q) / (m n) (union bound, without assumptions on how elements depend on each other). Blocks of
many products are computed on the model, and the tail of their elements' errors is extended to that probability
(:mod:`mpgemm.bounds.tails`).

:func:`estimate` gives atol + rtol |exact| for a tolerance that is pasted into a test. Errors of sums grow with the
sums, more or less, so of a few proportions of the two parts the one with the lowest limit at the mean |exact| is taken.
The rounding to an output format, half a unit in the last place, is not sampled but added in full.

:func:`statistics_of` gives the bound for a kernel's own operands if the certified bound detects no dropped block. Draws
are right kernels in orders that the test allows (the unit's steps permuted, chains and sums outside of random lengths).
Units that truncate lose the same share of all results of one sign, so the bound is centred on that share: ``|out - (1 +
share) exact| <= half |A||B|``. If a test does not state the length of the kernel's chains, results between that share
and no loss are right.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mpgemm.bounds.bounded_product import Bounded, BoundedProduct, Data, Errors, upwards
from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.kernel_order import ANY, KernelOrder
from mpgemm.bounds.populations import Population, in_random_order
from mpgemm.bounds.sizes import sizes_of
from mpgemm.bounds.tails import fit_tail, upper_limit
from mpgemm.bounds.watching import JudgedProduct, hold
from mpgemm.testing.tolerance_result import Statistical, Vacuity, check_tolerance
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaled import apply_at_end
from tensorcore_models.formats import Format, get_format
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.threads import one_thread
from tensorcore_models.orders.order import Chain, Sum

#: Fractions of the tolerance at the mean |exact| that rtol may have.
PARTS = (0.0, 0.25, 0.5, 0.75, 0.9)


#: Approximate budget of a sample in nanoseconds of one core, and costs of an operand's element, of a product (measured on an
#: AMD EPYC with AVX2), and of a draw.
BUDGET, OF_ELEMENT, OF_PRODUCT, OF_DRAW = 2.0e9, 25.0, 3.0, 2.0e6


#: Least and largest number of draws, and number of elements that suffices.
FEWEST, MOST, ENOUGH = 24, 400, 1 << 16


#: For a kernel's own operands: share of right products that pass, and its confidence;
QUANTILE, CONFIDENCE = 0.999, 0.95


#: rows and columns of a draw, largest number of products of all draws, and largest number of draws.
SIDE, PRODUCTS, MOST_KERNELS = 16, 1 << 26, 200


def check_share(quantile: float, confidence: float) -> None:
    """Raise ValueError unless both numbers lie between 0 and 1."""
    for name, value in (("quantile", quantile), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be a number between 0 and 1, such as 0.99, got {value}")


def cost_of(rows: int, k: int, columns: int) -> float:
    """Return the approximate cost of one draw in nanoseconds."""
    return k * (OF_ELEMENT * (rows + columns) + OF_PRODUCT * rows * columns) + OF_DRAW


def plan(shape: tuple[int, int, int], side: int) -> tuple[int, int]:
    """Return (rows and columns of a block, draws) for a sample."""
    m, k, n = shape
    while side > 4 and FEWEST * cost_of(min(m, side), k, min(n, side)) > BUDGET:
        side //= 2
    rows, columns = min(m, side), min(n, side)
    draws = min(BUDGET / cost_of(rows, k, columns), ENOUGH / (rows * columns), MOST)
    return side, max(FEWEST, int(draws))


@dataclass(frozen=True)
class Sample:
    """`Sample` holds an array for each draw: computed values and errors before an output's rounding."""

    computed: list[np.ndarray] = field(default_factory=list)
    error: list[np.ndarray] = field(default_factory=list)
    exact: list[np.ndarray] = field(default_factory=list)
    sizes: list[np.ndarray] = field(default_factory=list)

    @property
    def elements(self) -> int:
        """Return the number of elements."""
        return sum(x.size for x in self.error)

    def add(self, found: Errors) -> None:
        """Add a draw."""
        self.computed.append(found.computed.ravel())
        self.error.append(found.error.ravel())
        self.exact.append(found.exact.ravel())
        self.sizes.append(found.sizes.ravel())

    def mean(self) -> float:
        """Return the mean of |exact|."""
        return float(np.mean(np.abs(np.concatenate(self.exact)))) if self.elements else 0.0

    def over(self, rtol: float, atol: float) -> list[np.ndarray]:
        """Return the errors over the limit atol + rtol |exact|."""
        pairs = zip(self.error, self.exact, strict=True)
        return [ratio(error, atol + rtol * np.abs(exact)) for error, exact in pairs]

    def rounded_over(self, line: tuple[float, float], fmt: Format | None) -> list[np.ndarray]:
        """Return the errors over the limit of (rtol, atol) after rounding to an output format."""
        if fmt is None:
            return self.over(*line)
        rounded = (np.abs(round_to(x, fmt) - exact) for x, exact in zip(self.computed, self.exact, strict=True))
        errors = (np.where(np.isfinite(x), x, np.inf) for x in rounded)
        return [ratio(x, line[1] + line[0] * np.abs(exact)) for x, exact in zip(errors, self.exact, strict=True)]

    def over_sizes(self, relative: float = 1.0, absolute: float = 0.0) -> list[np.ndarray]:
        """Return the errors over the limit by size."""
        pairs = zip(self.error, self.sizes, strict=True)
        return [ratio(error, absolute + relative * size) for error, size in pairs]


def sample(
    product: BoundedProduct,
    draws: Iterator,
    count: int,
    found: Sample,
    progress: Callable[[int, int, str], None] | None = None,
) -> None:
    """Add `count` draws to `found`, which stays valid if the computation is interrupted."""
    for done, data in enumerate(draws, 1):
        found.add(product.errors(data))
        if progress is not None:
            progress(done, count, f"draws of {product.label}")


def estimate(
    found: Sample,
    whole: Sample,
    population: Population,
    quantile: float,
    confidence: float,
    by_size: tuple[float, float],
    out_format: Format | None,
) -> Statistical | None:
    """Return the statistical bound of whole products, which also covers those in `whole`; None if results overflow.

    `by_size` is the certified bound by size.
    """
    m, k, n = population.shape
    probability = -math.expm1(math.log(quantile)) / max(1, m * n)
    mean = found.mean()
    directions = [((part / mean) if mean else 0.0, 1 - part) for part in (PARTS if mean else PARTS[:1])]
    limits = [fit_tail(np.concatenate(found.over(*line))).limit(probability) for line in directions]
    rtol, atol = directions[int(np.argmin(limits))]
    limit = upper_limit([*found.over(rtol, atol)], probability, confidence)
    limit = max([limit, *(float(x.max(initial=0.0)) for x in whole.over(rtol, atol))])
    relative = upper_limit(found.over_sizes(), probability, confidence)
    relative = max([relative, *(float(x.max(initial=0.0)) for x in whole.over_sizes())])
    seen = max((float(x.max(initial=0.0)) for x in (*found.over(rtol, atol), *whole.over(rtol, atol))), default=0.0)
    of_bound = [float(x.max(initial=0.0)) for s in (found, whole) for x in s.over_sizes(*by_size)]
    line = np.array([relative, 0.0, rtol * limit, atol * limit])
    if out_format is not None:
        u = out_format.unit_roundoff
        line = line * (1 + u) + np.array([u, out_format.min_subnormal / 2, u, out_format.min_subnormal / 2])
        most = max((float(np.abs(x).max(initial=0.0)) for x in (*found.exact, *whole.exact)), default=0.0)
        if most * (1 + line[2]) + line[3] >= out_format.max_finite:
            return None
    if not np.isfinite(line).all():
        return None
    by_relative, by_absolute, rtol, atol = (upwards(float(x)) for x in line)
    return Statistical(
        quantile, confidence, len(found.error), found.elements, str(population), (m, k, n), by_relative, by_absolute, rtol,
        atol, seen / limit if limit else 0.0, max(of_bound, default=0.0),
    )  # fmt: skip


def ratio(error: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return errors over limits: 0/0 is 0, and an infinite error within an infinite limit is 1."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(error == 0, 0.0, np.where(np.isinf(error) & np.isinf(allowed), 1.0, error / allowed))


def largest_ratio(error: np.ndarray, allowed: np.ndarray) -> float:
    """Return the largest of :func:`ratio`."""
    return float(np.max(ratio(error, allowed), initial=0.0))


def tightest_line(found: Bounded) -> tuple[float, float] | None:
    """Return the (rtol, atol) above every bound that is lowest at the mean |exact|, or None if a bound is infinite."""
    x, bound = found.least.ravel(), found.bound.ravel()
    if not bound.size:
        return 0.0, 0.0
    if not np.isfinite(bound).all():
        return None
    x, bound = _upper_hull(x, bound)

    def atol(rtol: float) -> float:
        return float(np.max(bound - rtol * x, initial=0.0))

    mean, low = float(found.least.mean()), 0.0
    high = float(np.max(bound, initial=0.0) / max(mean, np.finfo(float).tiny))
    golden = (math.sqrt(5) - 1) / 2
    high = min(high, 1e300)
    for _ in range(60):  # atol(r) + r mean is convex in r
        left, right = high - golden * (high - low), low + golden * (high - low)
        if atol(left) + left * mean <= atol(right) + right * mean:
            high = right
        else:
            low = left
    rtol = low if atol(low) + low * mean <= atol(0.0) * (1 - 1e-6) else 0.0
    return rtol, atol(rtol)


#: Number of groups of elements by |exact|; in each group only the element with the largest bound can touch a line.
_GROUPS = 4096


def _upper_hull(x: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that a line above all of them can touch: each group's largest bound at its smallest |exact|."""
    if x.size <= _GROUPS:
        return x, bound
    order = np.argsort(x, kind="stable")
    starts = np.linspace(0, x.size, _GROUPS, endpoint=False).astype(int)
    return x[order[starts]], np.maximum.reduceat(bound[order], starts)


# -- a kernel's own operands --------------------------------------------------------------------------------------------------
class AsksForLine(Protocol):
    """`AsksForLine` lists the properties of a :class:`mpgemm.testing.case.KernelCase` that its statistical bound needs."""

    @property
    def engine(self) -> Engine: ...
    @property
    def order(self) -> KernelOrder: ...
    @property
    def out_format(self) -> str: ...
    @property
    def a(self) -> np.ndarray: ...
    @property
    def b(self) -> np.ndarray: ...
    @property
    def c(self) -> np.ndarray | None: ...
    @property
    def values(self) -> np.ndarray: ...
    @property
    def bound(self) -> np.ndarray: ...
    @property
    def bound_of_every_order(self) -> np.ndarray: ...
    def part(self, rows: np.ndarray, columns: np.ndarray) -> Data: ...
    def right_kernel(self, rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray: ...


@dataclass(frozen=True)
class KernelStatistics:
    """`KernelStatistics` is the statistical bound of right kernels."""

    #: middle, half: float64, shape (m, n): |out - middle| <= half.
    middle: np.ndarray
    half: np.ndarray
    share: float  #: relative loss of results of one sign
    relative: float  #: half width over |A||B| + |C|, without the output's rounding
    draws: int
    elements: int
    power: Vacuity  #: faults that pass the bound

    def __str__(self) -> str:
        p = self.power
        return (
            f"statistical ({QUANTILE:.1%} of right products pass, confidence {CONFIDENCE:.0%}; {self.elements} elements in "
            f"{self.draws} right kernels of random orders): |out - {1 + self.share:.6g} exact| <= {self.relative:.3g} "
            f"(|A||B| + |C|) and the output's rounding; power: {p.blocks - p.unseen_blocks} of {p.blocks} blocks of "
            f"{p.block} products and {p.terms - p.unseen_terms} of {p.terms} single k are detected if they are left out"
        )


def powerless(found: Vacuity) -> bool:
    """Return whether a tolerance detects fewer than half of the blocks of k that can be left out."""
    return found.vacuous or (found.blocks > 1 and 2 * found.unseen_blocks > found.blocks)


def needed(allowed: AsksForLine) -> str:
    """Return advice on how a test without a certified bound would get one."""
    order, advice = allowed.order, []
    if not order.known:
        advice.append("the kernel's order of k (k_order=, promote_every=)")
    elif order.promote_every is None and order.block is None and get_format(allowed.engine.d_format).name == "fp32":
        advice.append("a kernel that adds its sums outside of the unit (promote_every=128)")
    advice.append("fewer values of k")
    if order.known:
        advice.append("bits (assert_bits)")
    return "a certified bound needs " + ", or ".join(advice)


def statistics_of(allowed: AsksForLine) -> KernelStatistics:
    """Return the statistical bound of right kernels."""
    found = _of_right_kernels(allowed)
    exact, computed = np.concatenate(found.exact), np.concatenate(found.computed)
    squares = float(np.sum(np.square(exact)))
    share = float(np.sum((computed - exact) * exact)) / squares if squares > 0 else 0.0
    rest = [np.abs(x - y - share * y) for x, y in zip(found.computed, found.exact, strict=True)]
    ratios = [ratio(*pair) for pair in zip(rest, found.sizes, strict=True)]
    probability = -np.expm1(np.log(QUANTILE)) / max(1, allowed.bound.size)
    return _line(allowed, share, upper_limit(ratios, probability, CONFIDENCE), found)


def _of_right_kernels(allowed: AsksForLine) -> Sample:
    """Return results of right kernels of random orders on random rows and columns; not finite elements count as exact."""
    rng, found = np.random.default_rng(0), Sample()
    m, n = allowed.bound.shape
    side_m, side_n = min(m, SIDE), min(n, SIDE)
    draws = int(np.clip(PRODUCTS // max(1, side_m * allowed.a.shape[1] * side_n), FEWEST, MOST_KERNELS))
    with one_thread(), np.errstate(all="ignore"):
        for _ in range(draws):
            rows = np.sort(rng.choice(m, side_m, replace=False))
            columns = np.sort(rng.choice(n, side_n, replace=False))
            exact = allowed.values[np.ix_(rows, columns)]
            computed = allowed.right_kernel(rows, columns, rng)
            good = np.isfinite(computed) & np.isfinite(exact)
            exact, computed = np.where(good, exact, 0.0), np.where(good, computed, 0.0)
            sizes = sizes_of(allowed.a[rows], allowed.b[:, columns], allowed.part(rows, columns)[2])
            found.add(Errors(computed, exact, sizes, np.abs(computed - exact)))
    return found


def _line(allowed: AsksForLine, share: float, relative: float, found: Sample) -> KernelStatistics:
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = sizes_of(allowed.a, allowed.b, allowed.c)
        middle, half = (1 + share) * allowed.values, relative * sizes
        if not allowed.order.stated or allowed.order.k_order == ANY:  # kernels with shorter chains lose less
            middle, half = (1 + share / 2) * allowed.values, half + np.abs(share / 2 * allowed.values)
        out = get_format(allowed.out_format)
        if isinstance(out, Format):
            half = half + out.unit_roundoff * (np.abs(middle) + half) + out.min_subnormal / 2
    shown = slice(None, 4 * SIDE)
    c = None if allowed.c is None else allowed.c[shown, shown]
    power = check_tolerance(allowed.a[shown], allowed.b[:, shown], c, bound=half[shown, shown])
    return KernelStatistics(middle, half, share, relative, len(found.error), found.elements, power)


def _interval(ends: tuple[int, int], step: int, block: int | None, rng: np.random.Generator) -> int:
    """Return an allowed number of products between sums outside; with block scales, a divisor of it."""
    known = [x for x in range(ends[0], ends[1] + 1, step) if block is None or block % x == 0]
    return int(rng.choice(known))


def _sums_of_parts(unit: Engine, data: Data, parts: int, block: int | None, options: dict[str, Any]) -> np.ndarray:
    """Return the sums of parts of k, each with its own sum outside of the unit, added in FP32 from left to right."""
    k = data.a.shape[1]
    step = int(np.lcm(unit.k, block or options.get("promote_every", unit.k)))
    ends = sorted({min(-(-k * (i + 1) // parts // step) * step, k) for i in range(parts)} | {k})
    if block is not None:
        chains = [Chain((range(start, stop),)) for start, stop in zip([0, *ends], ends, strict=False)]
        order = {"k_order": Sum(tuple(chains))} if len(chains) > 1 else {}
        return model_results(unit, data.a, data.b, data.c, data.scaling, {**options, **order})[-1]
    total = np.zeros((len(data.a), data.b.shape[1]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for start, stop in zip([0, *ends], ends, strict=False):
            x, y = np.ascontiguousarray(data.a[:, start:stop]), np.ascontiguousarray(data.b[start:stop])
            total = total + model_results(unit, x, y, None, None, options)[-1].astype(np.float32)
        if data.scaling is not None:
            total = apply_at_end(total, data.scaling)
        return (total if data.c is None else total + data.c.astype(np.float32)).astype(np.float64)


def right_kernel(allowed: AsksForLine, rows, columns, rng: np.random.Generator) -> np.ndarray:
    """Return a right kernel of a random order on some rows and columns. Raises OutsideBound if it exceeds its bound."""
    order, unit = allowed.order, allowed.engine
    x, y, c, scaling = allowed.part(rows, columns)
    together = int(np.lcm(unit.k, 1 if scaling is None or scaling.block is None else scaling.block))
    data = in_random_order(Data(x, y, c, scaling), together, rng)
    options: dict[str, Any] = {}
    block = None if scaling is None or scaling.applied != "block" else scaling.block
    if order.promote_every is not None:
        options["promote_every"] = _interval(order.promote_every, unit.k, block, rng)
    parts = int(rng.integers(1, order.splits + 1))
    apart = parts > 1 and (block is not None or options)
    if order.k_order == ANY and not options:
        options["k_order"] = f"split_k:{2 ** rng.integers(0, 5)}"
    elif order.k_order not in (ANY, "sequential"):
        options["k_order"] = order.k_order
    elif parts > 1 and not apart:
        options["k_order"] = f"split_k:{parts}"
    x, y = np.ascontiguousarray(data.a), np.ascontiguousarray(data.b)
    if apart and (data.scaling is None or data.scaling.applied != "product"):
        found = _sums_of_parts(unit, Data(x, y, c, data.scaling), parts, block, options)
    else:
        found = model_results(unit, x, y, c, data.scaling, options)[-1]
    where = np.ix_(rows, columns)
    product = JudgedProduct(unit.label, {"engine": unit.label, "chains": options}, x, y, c)
    with np.errstate(invalid="ignore"):
        hold(product, found, found - allowed.values[where], allowed.bound_of_every_order[where])
    return found
