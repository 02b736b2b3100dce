"""Compares this package's results with their certified bounds before it judges them.

Every function that ranks or judges results calls :func:`hold`. If a result is outside of its bound, the result or the bound
is wrong: :class:`OutsideBound` says which element is outside, and carries the operands and names that compute the product
again. These bounds replace |A||B| by products of norms (:mod:`mpgemm.bounds.norms`), which cost little compared to the
product. They are at most twice the deterministic bound on normal and uniform data (measured), and larger where exponents are
spread.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mpgemm.bounds import bounds
from mpgemm.bounds.method_bounds import run_bound
from mpgemm.bounds.norms import Lines, largest_of, norms, split_norms
from mpgemm.bounds.operand_facts import accumulator_of, facts_of_formats
from mpgemm.bounds.sizes import multiply
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.machine.fp_state import default_fp_state


@dataclass(frozen=True)
class JudgedProduct:
    """`JudgedProduct` holds the name of a judged product, the recipe to compute it again, and its operands."""

    label: str
    #: JSON-compatible recipe: "method", a name that :func:`mpgemm.experiments.methods.build_methods` takes, and options.
    recipe: Mapping
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None = None


class OutsideBound(ArithmeticError):
    """`OutsideBound` is raised if an error of a result of this package exceeds its certified bound.

    Then the result or the bound is wrong, and nothing is concluded from them.

    Attributes
    ----------
    product : JudgedProduct
        The product with its operands.
    computed : ndarray, shape (m, n)
        The computed result.
    place : (int, int)
        Row and column of the element whose error is the largest multiple of its bound.
    error, bound : float
        Error and bound of that element.
    elements : int
        Number of elements whose error exceeds their bound.
    """

    def __init__(
        self, product: JudgedProduct, computed, place: tuple[int, int], error: float, bound: float, elements: int
    ):
        super().__init__(product, computed, place, error, bound, elements)  # pickling keeps these arguments
        self.product, self.computed, self.place = product, np.asarray(computed), place
        self.error, self.bound, self.elements = error, bound, elements

    def __str__(self) -> str:
        i, j = self.place
        return (
            f"{self.product.label}: C[{i}, {j}] = {float(self.computed[i, j]):.9g} is {self.error:.3g} off the exact value, "
            f"but its certified bound is {self.bound:.3g} ({self.elements} of {self.computed.size} elements are outside); "
            "this is a fault of the package, please report it"
        )


def hold(product: JudgedProduct, computed: np.ndarray, error: np.ndarray, bound: np.ndarray | None) -> None:
    """Raise OutsideBound if an element's error (computed - exact) exceeds its bound, or is NaN while the bound is finite.

    A bound that is None, infinite or NaN is not checked.
    """
    if bound is None:
        return
    with np.errstate(invalid="ignore"):
        size = np.abs(np.asarray(error, np.float64))
        outside = np.isfinite(bound) & ~(size <= bound)
    if not outside.any():
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(outside, np.nan_to_num(size / bound, nan=np.inf, posinf=np.inf), -1.0)
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(share)), share.shape))
    raise OutsideBound(product, computed, (i, j), float(size[i, j]), float(bound[i, j]), int(outside.sum()))


def within(error: np.ndarray, bound: np.ndarray | None) -> bool:
    """Return whether all ``|error|`` are within the least, finite element of the bound, in one pass; True without a bound."""
    if bound is None or not error.size or not bound.size:
        return bound is not None
    return bool(max(np.max(error), -np.min(error)) <= np.min(bound) < np.inf)


# -- bounds that cost little -------------------------------------------------------------------------------------------------
@default_fp_state
def quick_run_bound(run, lines: tuple[Lines, Lines] | None = None) -> np.ndarray | None:
    """Return the bound of a prepared recovery method, None if no bound is derived.

    lines: lines of its operands, if the caller has them.
    """
    try:
        return run_bound(run, lines or (Lines(run.a, 1), Lines(run.b, 0))).total
    except ValueError:
        return None


@default_fp_state
def quick_engine_bound(engine: Engine, a: Lines, b: Lines) -> np.ndarray | None:
    """Return the bound of one chain over k on an engine that rounds its operands to nearest, None if its core is unknown."""
    formats = engine.formats[:2]
    if not all(isinstance(fmt, Format) for fmt in formats):
        return None
    first, second = (
        split_norms(x.norms, x.largest, x.values.shape[x.axis], 1, 0, get_float_format(fmt), True)
        for x, fmt in zip((a, b), formats, strict=True)
    )
    if first is None or second is None:  # an operand is not finite or may overflow, so no bound holds
        return None
    ((x,), lost_a, top_a), ((y,), lost_b, top_b) = first, second
    bound = _chain_bound(engine, x * y, a.values.shape[1], (top_a, top_b))
    with np.errstate(all="ignore"):
        return None if bound is None else bound + (lost_a * (y + lost_b) + x * lost_b) * bounds.MARGIN


def _chain_bound(engine: Engine, sizes: np.ndarray, k: int, tops: tuple[int, int]) -> np.ndarray | None:
    """Return the bound of a chain of k products for operands below 2^tops that its formats hold, None if its core is unknown.

    sizes: |A||B| + |C|, or upper bounds of it.
    """
    if accumulator_of(engine) is None:
        return None
    facts = facts_of_formats(engine, tops)
    with np.errstate(all="ignore"):
        try:
            steps = bounds.steps_of(engine, k, bounds.step_error(engine, facts).terms)
            return bounds.accumulation_bound(engine, sizes, steps, facts)
        except ValueError:
            return None


def held_product(engine: Engine, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """Return one chain on an engine for float64 operands that its formats hold; raise OutsideBound if it is outside.

    The FP64 product stands for the exact one; its own bound, much smaller than the engine's, is added to the engine's.
    """
    found = np.asarray(engine.gemm(a, b, c))
    with np.errstate(all="ignore"):
        sizes = norms(a, 1) * norms(b, 0) + (0.0 if c is None else np.abs(np.asarray(c, np.float64)))
        top_a, top_b = (int(np.frexp(largest_of(x, axis).max(initial=0.0))[1]) for x, axis in ((a, 1), (b, 0)))
        bound = _chain_bound(engine, sizes, a.shape[1], (top_a, top_b))
        if bound is None or engine.formats[3].name == "fp64":
            return found
        bound = bound + sums_bound(sizes, a.shape[1] + 1, "fp64")
        error = found.astype(np.float64) - (multiply(a, b) + (0.0 if c is None else c))
    recipe = {"engine_product": engine.label}
    hold(JudgedProduct(engine.label, recipe, a, b, None if c is None else np.asarray(c)), found, error, bound)
    return found


def with_rounded_operands(bound: np.ndarray, x: Lines, y: Lines) -> np.ndarray:
    """Return a bound of a product of rounded operands that also covers the rounding of the operands."""
    if x.given is not x or y.given is not y:
        with np.errstate(all="ignore"):
            lost = x.lost @ y.given.norms + x.norms @ y.lost
            bound = bound + lost * bounds.MARGIN
    return np.where(np.isnan(bound), np.inf, bound)


def ended_bound(bound: np.ndarray, product: np.ndarray, c, alpha: float, beta: float, fmt: str) -> np.ndarray:
    """Return the bound of RN(RN(alpha D) + RN(beta C)) in a format, infinite where it may overflow.

    bound: bound of D, whose exact value is `product`.
    """
    with np.errstate(all="ignore"):
        own = abs(alpha) * bound * bounds.MARGIN
        sizes = (abs(alpha) * np.abs(product) + own) * bounds.MARGIN + (0.0 if c is None else abs(beta) * np.abs(c))
        return own + sums_bound(sizes, 2, fmt)


def sums_bound(sizes: np.ndarray, terms: int, fmt: str) -> np.ndarray:
    """Return the bound of `terms` products that are summed in a format in any order, infinite where a sum may overflow.

    Each product and each sum is rounded once to nearest; fused multiply-adds round less.
    """
    row = get_float_format(fmt)
    with np.errstate(all="ignore"):
        bound = sizes * bounds.growth(row.unit_roundoff, terms + 1) + terms * row.min_subnormal
        bound = bound * bounds.MARGIN
        return np.where((sizes + bound) * bounds.MARGIN < row.max_finite, bound, np.inf)
