"""A statistical line for a kernel whose certified bound sees no dropped block: what right kernels return on these operands.

Draws are right kernels in orders that the test allows (the unit's steps permuted, chains and sums outside of random lengths) on
random rows and columns. Units that cut lose the same share of all results of one sign: the line has that share in its middle,
``|out - (1 + share) exact| <= half |A||B|``, and its half width is carried from the draws to all m n elements by the tail of
their errors (:mod:`mpgemm.bounds.tails`). Where a test does not say how long the kernel's chains are, what lies between
that share and nothing lost is right, too.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mpgemm.bounds.bounded_product import Data, sizes_of
from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.kernel_order import ANY, KernelOrder
from mpgemm.bounds.populations import in_random_order
from mpgemm.bounds.tails import upper_limit
from mpgemm.bounds.watching import JudgedProduct, hold
from mpgemm.testing.vacuity import Vacuity, check_tolerance
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_format
from tensorcore_models.machine.threads import one_thread

#: Share of right products that pass, with which confidence.
QUANTILE, CONFIDENCE = 0.999, 0.95
#: Rows and columns of a draw, products that all draws may have, and draws at least and at most.
SIDE, BUDGET, FEWEST, MOST = 16, 1 << 26, 24, 200


class AsksForLine(Protocol):
    """What is asked of a :class:`mpgemm.testing.case.KernelCase`, which asks for its line itself."""

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


@dataclass(frozen=True)
class KernelStatistics:
    """What right kernels return."""

    #: middle, half: float64, shape (m, n): |out - middle| <= half.
    middle: np.ndarray
    half: np.ndarray
    share: float  #: What results of one sign lose, over themselves.
    relative: float  #: Half width over |A||B| + |C|, without the output's rounding.
    draws: int
    elements: int
    power: Vacuity  #: What the line lets pass.

    def __str__(self) -> str:
        p = self.power
        return (
            f"statistical ({QUANTILE:.1%} of right products pass, confidence {CONFIDENCE:.0%}; {self.elements} elements in "
            f"{self.draws} right kernels of random orders): |out - {1 + self.share:.6g} exact| <= {self.relative:.3g} "
            f"(|A||B| + |C|) and the output's rounding; power: {p.blocks - p.unseen_blocks} of {p.blocks} blocks of "
            f"{p.block} products and {p.terms - p.unseen_terms} of {p.terms} single k are seen if they are left out"
        )


def powerless(found: Vacuity) -> bool:
    """Whether a tolerance sees fewer than half of the blocks of k that can be left out."""
    return found.vacuous or (found.blocks > 1 and 2 * found.unseen_blocks > found.blocks)


def needed(allowed: AsksForLine) -> str:
    """What would make a certified line of a test that has none."""
    order, advice = allowed.order, []
    if not order.known:
        advice.append("the kernel's order of k (k_order=, promote_every=)")
    elif order.promote_every is None and order.block is None and get_format(allowed.engine.d_format).name == "fp32":
        advice.append("a kernel that adds its sums up outside of the unit (promote_every=128)")
    advice.append("fewer values of k")
    if order.known:
        advice.append("bits (assert_bits)")
    return "a certified line needs " + ", or ".join(advice)


def statistics_of(allowed: AsksForLine) -> KernelStatistics:
    """The line of right kernels."""
    rng = np.random.default_rng(0)
    m, n = allowed.bound.shape
    k = allowed.a.shape[1]
    side_m, side_n = min(m, SIDE), min(n, SIDE)
    draws = int(np.clip(BUDGET // max(1, side_m * k * side_n), FEWEST, MOST))
    errors, exacts, sizes = [], [], []
    with one_thread(), np.errstate(all="ignore"):
        for _ in range(draws):
            rows = np.sort(rng.choice(m, side_m, replace=False))
            columns = np.sort(rng.choice(n, side_n, replace=False))
            exact = allowed.values[np.ix_(rows, columns)]
            found = right_kernel(allowed, rows, columns, rng)
            good = np.isfinite(found) & np.isfinite(exact)
            errors.append(np.where(good, found - exact, 0.0).ravel())
            exacts.append(np.where(good, exact, 0.0).ravel())
            sizes.append(sizes_of(allowed.a[rows], allowed.b[:, columns], allowed.part(rows, columns)[2]).ravel())
    all_exact, all_errors = np.concatenate(exacts), np.concatenate(errors)
    squares = float(np.sum(np.square(all_exact)))
    share = float(np.sum(all_errors * all_exact)) / squares if squares > 0 else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [
            np.where(error == share * exact, 0.0, np.abs(error - share * exact) / size)
            for error, exact, size in zip(errors, exacts, sizes, strict=True)
        ]
    relative = upper_limit(ratios, -np.expm1(np.log(QUANTILE)) / max(1, m * n), CONFIDENCE)
    return _line(allowed, share, relative, draws, all_errors.size)


def _line(allowed: AsksForLine, share: float, relative: float, draws: int, elements: int) -> KernelStatistics:
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
    return KernelStatistics(middle, half, share, relative, draws, elements, power)


def right_kernel(allowed: AsksForLine, rows, columns, rng: np.random.Generator) -> np.ndarray:
    """A right kernel of a random order on some rows and columns. Raises OutsideBound if it is none by its bound."""
    order, unit = allowed.order, allowed.engine
    x, y, c, scaling = allowed.part(rows, columns)
    together = int(np.lcm(unit.k, 1 if scaling is None or scaling.block is None else scaling.block))
    data = in_random_order(Data(x, y, c, scaling), together, rng)
    options: dict[str, Any] = {}
    if order.promote_every is not None:
        least, most = order.promote_every
        options["promote_every"] = int(rng.integers(least // unit.k, most // unit.k + 1)) * unit.k
    elif order.splits > 1:
        options["k_order"] = f"split_k:{rng.integers(1, order.splits + 1)}"
    elif order.k_order == ANY:
        options["k_order"] = f"split_k:{2 ** rng.integers(0, 5)}"
    elif order.k_order != "sequential":
        options["k_order"] = order.k_order
    x, y = np.ascontiguousarray(data.a), np.ascontiguousarray(data.b)
    found = model_results(unit, x, y, c, data.scaling, options)[-1]
    where = np.ix_(rows, columns)
    product = JudgedProduct(unit.label, {"engine": unit.label, "chains": options}, x, y, c)
    with np.errstate(invalid="ignore"):
        hold(product, found, found - allowed.values[where], allowed.bound_of_every_order[where])
    return found
