"""Results of this package are held against their certified bounds before anything is said about them.

Whatever ranks or judges a result calls :func:`hold`. A result outside of its bound is wrong, or the bound is:
:class:`OutsideBound` says which element, and carries the operands and the names by which the product is computed again.
Sizes in these bounds are products of norms (:func:`mpgemm.bounds.norms`), which take little beside the product:
at most twice the deterministic bound on normal and uniform data (measured), more where exponents are spread.
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
    """A product that is judged: how it is called, by what it is computed again, and its operands."""

    label: str
    #: JSON-compatible: "method", a name that :func:`mpgemm.experiments.methods.build_methods` takes, and options.
    recipe: Mapping
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None = None


class OutsideBound(ArithmeticError):
    """A result of this package is farther from the exact product than its certified bound: nothing is to be said about it.

    Attributes
    ----------
    product : JudgedProduct
    computed : ndarray, shape (m, n)
    place : (int, int)
        The element with the largest error over its bound.
    error, bound : float
        Of that element.
    elements : int
        Elements outside.
    """

    def __init__(
        self, product: JudgedProduct, computed, place: tuple[int, int], error: float, bound: float, elements: int
    ):
        super().__init__(product, computed, place, error, bound, elements)  # what pickling keeps
        self.product, self.computed, self.place = product, np.asarray(computed), place
        self.error, self.bound, self.elements = error, bound, elements

    def __str__(self) -> str:
        i, j = self.place
        return (
            f"{self.product.label}: C[{i}, {j}] = {float(self.computed[i, j]):.9g} is {self.error:.3g} off the exact value, "
            f"its certified bound is {self.bound:.3g} ({self.elements} of {self.computed.size} elements are outside)"
        )


def hold(product: JudgedProduct, computed: np.ndarray, error: np.ndarray, bound: np.ndarray | None) -> None:
    """Raise OutsideBound where ``|error|``, computed - exact, exceeds its bound, or is no number while the bound is finite.

    No bound (None, infinite or NaN) claims nothing.
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
    """Return whether all of ``|error|`` is within the least element of a bound, which is finite: one reading of the errors
    tells."""
    if bound is None or not error.size or not bound.size:
        return bound is not None
    return bool(max(np.max(error), -np.min(error)) <= np.min(bound) < np.inf)


# -- bounds that cost little -------------------------------------------------------------------------------------------------
@default_fp_state
def quick_run_bound(run, lines: tuple[Lines, Lines] | None = None) -> np.ndarray | None:
    """Of a prepared recovery method; None where none is derived. lines: Of its operands, where they are there."""
    try:
        return run_bound(run, lines or (Lines(run.a, 1), Lines(run.b, 0))).total
    except ValueError:
        return None


@default_fp_state
def quick_engine_bound(engine: Engine, a: Lines, b: Lines) -> np.ndarray | None:
    """Of one chain over k on an engine, of operands that are rounded to nearest to its formats; None without an algorithm."""
    formats = engine.formats[:2]
    if not all(isinstance(fmt, Format) for fmt in formats):
        return None
    first, second = (
        split_norms(x.norms, x.largest, x.values.shape[x.axis], 1, 0, get_float_format(fmt), True)
        for x, fmt in zip((a, b), formats, strict=True)
    )
    if first is None or second is None:  # a result that is not finite, or cannot be had, claims nothing
        return None
    ((x,), lost_a, top_a), ((y,), lost_b, top_b) = first, second
    bound = _chain_bound(engine, x * y, a.values.shape[1], (top_a, top_b))
    with np.errstate(all="ignore"):
        return None if bound is None else bound + (lost_a * (y + lost_b) + x * lost_b) * bounds.MARGIN


def _chain_bound(engine: Engine, sizes: np.ndarray, k: int, tops: tuple[int, int]) -> np.ndarray | None:
    """Of a chain of k products of these sizes of operands below 2^tops, which its formats hold; None without an algorithm."""
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
    """Return one chain on an engine of float64 operands that its formats hold, held against its bound. Raises OutsideBound.

    The exact product is the one in FP64 with the bound of that: much less than the engine's own.
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
    """Return a bound of the product of rounded operands, with what their rounding loses."""
    if x.given is not x or y.given is not y:
        with np.errstate(all="ignore"):
            lost = x.lost @ y.given.norms + x.norms @ y.lost
            bound = bound + lost * bounds.MARGIN
    return np.where(np.isnan(bound), np.inf, bound)


def ended_bound(bound: np.ndarray, product: np.ndarray, c, alpha: float, beta: float, fmt: str) -> np.ndarray:
    """Of RN(RN(alpha D) + RN(beta C)) in a format, where D is within `bound` of the product; infinite where it may overflow."""
    with np.errstate(all="ignore"):
        own = abs(alpha) * bound * bounds.MARGIN
        sizes = (abs(alpha) * np.abs(product) + own) * bounds.MARGIN + (0.0 if c is None else abs(beta) * np.abs(c))
        return own + sums_bound(sizes, 2, fmt)


def sums_bound(sizes: np.ndarray, terms: int, fmt: str) -> np.ndarray:
    """Of so many products added up in a format in any order, each product and sum rounded once, to nearest or with fused
    multiply-adds; infinite where one may overflow."""
    row = get_float_format(fmt)
    with np.errstate(all="ignore"):
        bound = sizes * bounds.growth(row.unit_roundoff, terms + 1) + terms * row.min_subnormal
        bound = bound * bounds.MARGIN
        return np.where((sizes + bound) * bounds.MARGIN < row.max_finite, bound, np.inf)
