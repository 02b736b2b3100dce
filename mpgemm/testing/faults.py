"""This module simulates faults of kernels, and computes how often a test with a tolerance detects them.

A fault is a function that turns right results into those of a faulty kernel. How often whole products show the fault
follows from the tail of its errors over the tolerance (:mod:`mpgemm.bounds.tails`), and from the number of elements
that it affects.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mpgemm.bounds.bounded_product import BoundedProduct, Data, EngineProduct, Errors, MethodProduct
from mpgemm.bounds.method_bounds import word_values
from mpgemm.bounds.populations import evenly, part_of
from mpgemm.bounds.sizes import sizes_of
from mpgemm.bounds.tails import exceedance
from mpgemm.recovery.engines import ieee_engine
from mpgemm.recovery.run import prepare
from mpgemm.testing.case import KernelCase
from mpgemm.testing.possible_results import compared, right_kernels
from mpgemm.testing.sampled import ratio
from mpgemm.testing.tolerance_result import in_words
from tensorcore_models.formats import Format, get_float_format, get_format
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.machine.threads import one_thread

#: Rows and columns of a faulty tile, and products of k that are faulty together.
TILE, BLOCK = 16, 32
#: Faults that lose products of the sum.
LOST_PRODUCTS = (f"the least block of {BLOCK} k dropped", "the least single k dropped")
#: Nanoseconds of one product of narrow sums, and budget for all of them.
OF_PRODUCT, BUDGET = 15.0, 0.6e9
#: Rows and columns of a block on which faults are tried, and largest number of blocks.
SIDE, BLOCKS = 32, 4
#: Formats that an accumulator may have by mistake.
ACCUMULATORS = ("fp16", "bf16")


@dataclass(frozen=True)
class FaultCase:
    """`FaultCase` is a right product of the multiplied operands, before it is rounded to the output's format."""

    product: BoundedProduct
    data: Data
    right: Errors
    used: tuple[np.ndarray, np.ndarray, np.ndarray | None]
    #: epilogue of sums, and the right product after it; both are None without an epilogue
    end: Callable[[np.ndarray], np.ndarray] | None = None
    ended: Errors | None = None

    @property
    def result(self) -> Format:
        """Return the format of the kernel's results."""
        return self.product.out_format or self.product.engine.formats[3]


#: Function that returns the values of a faulty kernel before the output's rounding, NaN in unaffected elements, or None if the
#: fault cannot occur with these operands.
Faulty = Callable[[FaultCase], np.ndarray | None]


def _dropped_block(case: FaultCase) -> np.ndarray | None:
    """Return the product without the block of k that matters least."""
    a, b, _ = case.used
    if a.shape[1] <= BLOCK:
        return None
    lost = [a[:, start : start + BLOCK] @ b[start : start + BLOCK] for start in range(0, a.shape[1], BLOCK)]
    return case.right.computed - min(lost, key=lambda x: float(np.linalg.norm(x)))


def _dropped_k(case: FaultCase) -> np.ndarray | None:
    """Return the product without the value of k that matters least."""
    a, b, _ = case.used
    if a.shape[1] < 2:
        return None
    least = int(np.argmin(np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=1)))
    return case.right.computed - np.outer(a[:, least], b[least])


def _accumulator(fmt: str) -> Faulty:
    """Return sums that are rounded to a narrow format after every product."""

    def faulty(case: FaultCase) -> np.ndarray | None:
        narrow = get_float_format(fmt)
        own = case.product.engine.formats[3]
        if not isinstance(own, Format) or own.fraction_bits <= narrow.fraction_bits:
            return None
        return narrow_sums(fmt, *case.used)

    return faulty


def narrow_sums(fmt: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """Return A B + C by fused multiply-adds in order of k, with sums rounded to a format; float64 of FP32 values."""
    engine = ieee_engine("fp32", fmt)
    with np.errstate(over="ignore", invalid="ignore"):
        added = None if c is None else round_to(c.astype(np.float64), get_float_format(fmt))
        return engine.gemm(a.astype(np.float32), b.astype(np.float32), added).astype(np.float64)


def _rounded_twice(case: FaultCase) -> np.ndarray | None:
    """Return the result after rounding to another narrow format first."""
    fmt = case.result
    if not isinstance(fmt, Format) or fmt.name == "fp64" or case.end is not None:
        return None
    return round_to(case.right.computed, get_float_format(twice_through(fmt)))


def twice_through(fmt: Format) -> str:
    """Return the narrow format to which an output is rounded first by mistake."""
    return "bf16" if fmt.name in ("fp32", "fp16") else "fp16"


def _no_sums_outside(case: FaultCase) -> np.ndarray | None:
    """Return one chain over all of k in place of sums outside of the unit."""
    product = case.product
    if not isinstance(product, EngineProduct) or product.promote_every is None:
        return None
    return replace(product, promote_every=None).errors(case.data).computed


def _no_low_words(case: FaultCase) -> np.ndarray | None:
    """Return the product of the first words of a recovery method."""
    product = case.product
    if not isinstance(product, MethodProduct) or product.method.kind != "words" or product.method.words < 2:
        return None
    a, b, _ = word_values(prepare(case.data.a, case.data.b, None, product.method, product.engine))
    low = [pair for pair in product.method.products if pair != (0, 0)]
    return case.right.computed - np.sum([a[i] @ b[j] for i, j in low], 0)


def _tf32_operands(case: FaultCase) -> np.ndarray | None:
    """Return the product of operands in TF32 if the kernel's operands are wider."""
    tf32 = get_float_format("tf32")
    a, b, c = case.used
    narrow = [round_to(x, tf32) for x in (a, b)]
    if all(np.array_equal(x, y) for x, y in zip(narrow, (a, b), strict=True)):
        return None
    return narrow[0] @ narrow[1] + (0.0 if c is None else c.astype(np.float64))


def _transposed_tile(case: FaultCase) -> np.ndarray | None:
    side = min(TILE, *case.right.computed.shape)
    if side < 2:
        return None
    moved = np.full_like(case.right.computed, np.nan)
    moved[:side, :side] = case.right.computed[:side, :side].T
    moved[np.arange(side), np.arange(side)] = np.nan
    return moved


def _stale_accumulator(case: FaultCase) -> np.ndarray | None:
    """Return a tile whose accumulator starts from the sums of the previous tile."""
    if case.right.computed.size < 2:
        return None
    axis = int(case.right.computed.shape[0] < 2)
    return case.right.computed + np.roll(case.right.computed, 1, axis)


#: (name, function of the fault, largest number of affected elements of a product)
FAULTS: tuple[tuple[str, Faulty, int | None], ...] = (
    ("zeros", lambda case: np.zeros_like(case.right.computed), None),
    (LOST_PRODUCTS[0], _dropped_block, None),
    (LOST_PRODUCTS[1], _dropped_k, None),
    ("FP16 accumulation", _accumulator("fp16"), None),
    ("BF16 accumulation", _accumulator("bf16"), None),
    ("no sums outside of the unit", _no_sums_outside, None),
    ("output rounded twice", _rounded_twice, None),
    ("TF32 operands", _tf32_operands, None),
    (f"a tile of {TILE} x {TILE} without low words", _no_low_words, TILE * TILE),
    (f"a transposed tile of {TILE} x {TILE}", _transposed_tile, TILE * (TILE - 1)),
    (f"a stale accumulator in a tile of {TILE} x {TILE}", _stale_accumulator, TILE * TILE),
)


def case_of(product: BoundedProduct, data: Data) -> FaultCase:
    """Return a right product, on which faults are tried."""
    expected = product.expected(data)
    if isinstance(product, EngineProduct):
        expected = *product.multiplied(data), data.c
    return FaultCase(product, data, product.errors(data), expected)


def blocks_for(rows: int, k: int, columns: int) -> int:
    """Return the number of blocks on which faults can be tried within the time budget."""
    cost = max(1.0, OF_PRODUCT * len(ACCUMULATORS) * rows * k * columns)
    return int(min(max(BUDGET // cost, 1), BLOCKS))


@dataclass(frozen=True)
class Limit:
    """`Limit` is the error that a test allows: atol (a number, or one for each element) + rtol |exact| + relative S.

    `together` judges the errors of all elements together.
    """

    rtol: float = 0.0
    atol: float | np.ndarray = 0.0
    relative: float = 0.0
    together: Callable[[np.ndarray], bool] | None = None

    def of(self, found: Errors) -> np.ndarray:
        """Return the limit of each element."""
        with np.errstate(invalid="ignore"):
            by_value = self.rtol * np.abs(found.exact) if self.rtol else 0.0
            by_size = self.relative * found.sizes if self.relative else 0.0
            return np.broadcast_to(self.atol + by_value + by_size, found.exact.shape)


def faults_seen(cases: Sequence[FaultCase], limits: Mapping[str, Limit], elements: int) -> dict[str, dict[str, float]]:
    """Return, for each tolerance and fault, the share of whole products of so many elements in which the fault is detected."""
    found: dict[str, dict[str, float]] = {name: {} for name in limits}
    for fault, faulty, reach in FAULTS:
        made = [
            (case, values if case.end is None else case.end(values))
            for case in cases
            if (values := faulty(case)) is not None
        ]
        if len(made) < len(cases):
            continue
        count = elements if reach is None else min(reach, elements)
        for name, limit in limits.items():
            ratios = np.concatenate([_over(case, values, limit) for case, values in made])
            found[name][fault] = 1 - (1 - exceedance(ratios, 1.0)) ** count
            if limit.together is not None and reach is None and not all(limit.together(_rounded(*x)) for x in made):
                found[name][fault] = 1.0
    return found


def _rounded(case: FaultCase, values: np.ndarray) -> np.ndarray:
    """Return values rounded to the output's format."""
    return values if case.product.out_format is None else round_to(values, case.product.out_format)


def _over(case: FaultCase, values: np.ndarray, limit: Limit) -> np.ndarray:
    """Return a fault's errors over the limit in affected elements; infinite if the result is not finite."""
    right = case.ended or case.right
    reached = ~np.isnan(values) | ~np.isfinite(right.computed)
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(_rounded(case, values[reached]) - right.exact[reached])
    return ratio(np.where(np.isfinite(error), error, np.inf), limit.of(right)[reached])


# -- faults of a kernel's case -----------------------------------------------------------------------------------------
@default_fp_state
def faults_of(allowed: KernelCase) -> dict[str, float]:
    """Return the fraction of products in which a test with this tolerance detects a fault, for each fault that was tried.

    A fault is a mistake of a kernel, such as a dropped block of k or a sum in FP16. Each fault is simulated on at most 32 rows
    and 32 columns of the test's result; an epilogue is applied to the faulty sums. The fraction for the whole product is
    extrapolated from the errors of these elements, by the tail of their distribution.

    Parameters
    ----------
    allowed : KernelCase
        Operands and tolerance of the test, from :func:`gemm_tolerance`.

    Returns
    -------
    dict of str to float
        Fraction of products in which the fault is detected, for each fault's name; empty for an empty product.
    """
    if 0 in (*allowed.bound.shape, allowed.a.shape[1]):
        return {}
    case, limit = _tried(allowed)
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        return faults_seen([case], {"": limit}, allowed.bound.size)[""]


def missed_faults(allowed: KernelCase) -> str | None:
    """Return a sentence, as `mpgemm tolerance` prints it, on the faults that a test with this tolerance misses.

    The result is None for an empty product.
    """
    found = faults_of(allowed)
    return in_words(found) if found else None


def _tried(allowed: KernelCase) -> tuple[FaultCase, Limit]:
    """Return some rows and columns of the right product, with the limit of each element."""
    rows, columns = (evenly(size, SIDE) for size in allowed.result.shape)
    wide, part = allowed.sums_columns(columns), np.ix_(rows, columns)
    data = part_of(allowed.data, rows, wide)
    used = allowed.a[rows], allowed.b[:, wide], None if allowed.c is None else allowed.c[np.ix_(rows, wide)]
    with np.errstate(over="ignore", invalid="ignore"):
        computed, sums = allowed.model(rows, wide)[-1], allowed.values[np.ix_(rows, wide)]
        right = Errors(computed, sums, sizes_of(*used), np.abs(computed - sums))
    line = allowed.statistics
    atol = allowed.bound[part]  # no fault is detected if the limit is infinite
    if line is not None:
        seen = line.half[part] + np.abs(line.middle - allowed.result)[part]
        atol = np.where(np.isfinite(atol), np.minimum(atol, seen), atol)
    out, kernels, exact = get_format(allowed.out_format), right_kernels(allowed, rows, columns), allowed.result[part]
    own = np.asarray(allowed.own_error)[part] if allowed.epilogue is not None else 0.0

    def together(values: np.ndarray) -> bool:
        return not isinstance(out, Format) or compared(values, kernels, exact, allowed, own).right

    def end(values: np.ndarray) -> np.ndarray:
        """Return the values after the epilogue; NaN of unaffected elements stays."""
        free = np.isnan(values)
        found = allowed.finished(np.where(free, computed, values), rows, columns)
        free = free if free.shape == found.shape else np.logical_and(*np.split(free, 2, axis=-1))
        return np.where(free, np.nan, found)

    case, limit = FaultCase(allowed.product, data, right, used), Limit(atol=atol, together=together)
    if allowed.epilogue is not None:
        right = Errors(end(computed), exact, np.abs(exact), np.abs(end(computed) - exact))
        case = replace(case, end=end, ended=right)
    return case, limit
