"""Which results a right kernel can have: element by element, and all errors taken together.

Where a sum, or the rounding to the output's format, may overflow, no finite bound is certified. A finite result
means that nothing overflowed, so that the bound without overflow holds for it; a result that is not finite must be of a kind
and sign that a right kernel can have: those of the exact result, those of the model where the kernel adds in the model's order,
and for sums in several parts an infinity whose sign the positive or the negative products can reach, or NaN where both can.

A certified bound holds for each element and grows with k faster than errors do, so that sums in a narrower format stay inside
of it. Many elements tell: of two errors with the same distribution each is the larger one in half of the elements; errors that
are `times` as large (normal, not related) are so in a share of 2/pi arctan(times). Counting holds whatever the sizes of the
elements are. Where errors are hardly random (sums of one sign on units that cut) every one may be the larger one by little, so
that their mean must be larger, too. Errors that are smaller are right: kernels may lose less than the model.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.populations import evenly
from mpgemm.bounds.sizes import multiply, sizes_of
from mpgemm.recovery.engines import ieee_engine
from mpgemm.testing.case import KernelCase
from mpgemm.testing.sampled import right_kernel
from tensorcore_models.catalogue import list_instructions
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import Format, get_float_format, get_format
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.threads import one_thread

#: Share of elements without a finite bound beyond which a test says too little.
UNBOUNDED = 0.1
FINITE, PLUS, MINUS, NAN = range(4)


def kinds(x: np.ndarray) -> np.ndarray:
    """Of each value whether it is finite, an infinity and which, or NaN."""
    x = np.asarray(x).astype(np.float64)
    return np.where(np.isnan(x), NAN, np.where(np.isfinite(x), FINITE, np.where(x > 0, PLUS, MINUS)))


def unbounded(allowed: KernelCase) -> np.ndarray:
    """Return elements whose exact result is finite and whose bound is not."""
    return ~np.isfinite(allowed.bound) & np.isfinite(allowed.result)


def unbounded_line(allowed: KernelCase) -> str | None:
    """Return how many elements have no finite bound, and what is asked of them; None where all have one."""
    count, size = int(np.count_nonzero(unbounded(allowed))), allowed.bound.size
    if not count:
        return None
    return (
        f"{count} of {size} elements have no finite bound, since a sum or the result may overflow: there infinities and NaN "
        "are compared by kind and sign"
    )


def too_many_unbounded(allowed: KernelCase) -> str | None:
    """Return why a test shows too little, None where enough elements have a finite bound."""
    if np.count_nonzero(unbounded(allowed)) <= UNBOUNDED * allowed.bound.size:
        return None
    return (
        f"{unbounded_line(allowed)}; where they are more than {UNBOUNDED:.0%} a test shows too little. Use smaller operands, "
        "or a wider output format."
    )


def right_elements(out: np.ndarray, allowed: KernelCase) -> np.ndarray:
    """Return which elements, in the kernel's output format, a right kernel can have returned."""
    values = out.astype(np.float64)
    exact = allowed.result
    right = np.isfinite(values) & _within(values, out, allowed)
    special = ~np.isfinite(allowed.bound)
    if not special.any():
        return right
    rows, columns = np.flatnonzero(special.any(1)), np.flatnonzero(special.any(0))
    part = np.ix_(rows, columns)
    kind = kinds(values[part])
    possible = _possible(allowed, rows, columns)
    fits = np.take_along_axis(possible, kind[None], 0)[0]
    fits &= (kind != FINITE) | right[part]
    fmt = get_format(allowed.out_format)
    if isinstance(fmt, Format) and fmt.bits <= 8:  # kernels saturate these formats
        with np.errstate(invalid="ignore"):
            beyond = np.abs(exact[part]) + allowed.finite_bound[part] >= fmt.max_finite
        beyond |= np.isinf(exact[part])
        fits |= beyond & (values[part] == np.copysign(fmt.max_finite, exact[part]))
    right[part] = np.where(special[part], fits, right[part])
    return right


def _within(values: np.ndarray, out: np.ndarray, allowed: KernelCase) -> np.ndarray:
    """Return which errors are at most their bound: by FP64 differences where these, each with the most that it is off, settle
    all."""
    bound = allowed.finite_bound
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(values - allowed.result)
        slack = 2.0**-51 * (near + np.abs(allowed.result)) + 2.0**-1022
        within, beyond = near + slack <= bound, near - slack > bound
        if (within | beyond).all():
            return within
        return np.abs(allowed.error_of(out)) <= bound


def _possible(allowed: KernelCase, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """For each kind whether a right kernel can return it, shape (kinds, rows, columns)."""
    part = np.ix_(rows, columns)
    exact, bound = allowed.result[part], allowed.finite_bound[part]
    found = np.zeros((4, *exact.shape), bool)

    def add(kind: np.ndarray, where: np.ndarray | bool = True) -> None:
        for each in range(4):
            found[each] |= (kind == each) & where

    with np.errstate(over="ignore", invalid="ignore"):
        given = np.isfinite(exact)
        add(kinds(allowed.rounded(exact)), ~given)
        for model in allowed.model(rows, allowed.sums_columns(columns)):
            add(kinds(allowed.rounded(allowed.finished(model, rows, columns))))
        if allowed.order.known or allowed.epilogue is not None:
            return found
        plus, minus = _reaches(allowed, rows, columns)
        found[FINITE] |= given
        found[PLUS] |= given & plus
        found[MINUS] |= given & minus
        found[NAN] |= given & plus & minus
        for sign in (-1, 1):  # the result itself, at the far end of its bound
            add(kinds(allowed.rounded(exact + sign * np.where(given, bound, 0.0))), given)
    return found


def _reaches(allowed: KernelCase, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether a partial sum can overflow to plus, and to minus infinity: all products of that sign reach the largest
    number."""
    a, b = allowed.a[rows], allowed.b[:, columns]
    sums, sizes = multiply(a, b), sizes_of(a, b)
    if allowed.c is not None:
        c = allowed.c[np.ix_(rows, columns)]
        sums, sizes = sums + c, sizes + np.abs(c)
    bound = allowed.finite_bound[np.ix_(rows, columns)]
    limit = allowed.overflow_from
    return (sizes + sums) / 2 + bound >= limit, (sizes - sums) / 2 + bound >= limit


#: Multiplications that are spent on one right kernel at most.
BUDGET = 1 << 25
#: Elements that are compared at most.
ELEMENTS = 1 << 14
#: Right kernels of random orders that are tried where the test names no order.
DRAWS = 3
#: Errors up to this many times as large are right where the test names no order. Chosen, not derived: of 240 right kernels of
#: tests/testing/test_fault_table.py none is beyond.
LARGER = 1.5
#: The same where the test names the order: errors differ by instructions of another length only.
LARGER_IN_ORDER = 1.15
#: Standard errors that the share must be beyond that: one right test in 3.5 million is by chance (normal, one side).
SURE = 5.0
#: Differences up to this share of a result mean nothing: steps in FP32 around the unit in another order.
NOTHING = 2.0**-23


@dataclass(frozen=True)
class KernelSpread:
    """Errors of a kernel beside those of right kernels."""

    larger: float  #: Share of the elements with other errors in which the kernel's are the larger ones.
    times: float  #: The mean of these errors over that of the right kernel's.
    elements: int  #: Elements with other errors.
    compared: int  #: Elements that were compared.
    allowed: float = LARGER  #: How many times as large errors may be.

    @property
    def limit(self) -> float:
        """The share from which errors are too large."""
        expected = 2 / math.pi * math.atan(self.allowed)
        return expected + SURE * math.sqrt(expected * (1 - expected) / max(self.elements, 1))

    @property
    def right(self) -> bool:
        """Whether a right kernel can have such errors."""
        return self.larger <= self.limit or self.times <= self.allowed

    def __str__(self) -> str:
        return (
            f"errors are {self.times:.3g} times as large as a right kernel's on average, and larger in {self.larger:.1%} of "
            f"the {self.elements} elements in which they differ ({self.compared} compared; up to {self.allowed} times, or in "
            f"{self.limit:.1%}, is right)"
        )


def spread_of(out: np.ndarray, allowed: KernelCase) -> KernelSpread | None:
    """Return errors of a result beside those of right kernels, on some rows and columns; None where there is nothing to
    compare."""
    if not isinstance(get_format(allowed.out_format), Format) or out.size == 0:
        return None
    m, n = out.shape
    rows, columns = _sample(m, n, allowed.a.shape[1])
    part = np.ix_(rows, columns)
    own = 0.0 if allowed.epilogue is None else np.asarray(allowed.own_error)[part]
    with one_thread(), np.errstate(all="ignore"):
        return compared(out[part], right_kernels(allowed, rows, columns), allowed.result[part], allowed, own)


def compared(
    out: np.ndarray, kernels: list[np.ndarray], exact: np.ndarray, allowed: KernelCase, own: np.ndarray | float = 0.0
) -> KernelSpread:
    """Return a result beside that right kernel, not rounded to the output's format yet, which is nearest to it; differences up
    to `own`, what an epilogue loses, mean nothing."""
    fmt = get_float_format(allowed.out_format)
    times_allowed = LARGER_IN_ORDER if _in_order(allowed) else LARGER
    found = []
    with np.errstate(all="ignore"):
        error = np.maximum(np.abs(out - exact) - own, 0.0)  # what an epilogue may lose is not the sum's
        for kernel in kernels:
            right = np.abs(round_to(kernel, fmt) - exact)
            other = np.abs(error - right) > NOTHING * np.abs(exact)  # False for NaN
            elements = int(np.count_nonzero(other))
            larger = np.count_nonzero(error[other] > right[other]) / max(elements, 1)
            times = float(np.sum(error[other]) / np.sum(right[other])) if elements else 1.0
            found.append(KernelSpread(larger, times, elements, exact.size, times_allowed))
    return min(found, key=lambda each: (not each.right, each.times))


def _sample(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns, evenly spread."""
    most = max(1, min(ELEMENTS, BUDGET // max(k, 1)))
    down = min(m, max(math.isqrt(most), most // n))
    across = min(n, most // down)
    return evenly(m, down), evenly(n, across)


def right_kernels(allowed: KernelCase, rows, columns) -> list[np.ndarray]:
    """Return results of the model, of units beside it, and where the order is not known of random orders, before the last
    rounding; where blocks are scaled outside also of a kernel that multiplies with one factor after the other."""
    wide = allowed.sums_columns(columns)
    found = allowed.model(rows, wide)
    if allowed.scaling is not None and allowed.scaling.applied == "block":
        found = [*found, *allowed.model(rows, wide, fused=False)]
    if allowed.dequantised is not None:
        found = [*found, _with_weights(allowed, rows, wide)]
    for unit in _beside(allowed):
        found = [*found, *replace(allowed, engine=unit).model(rows, wide)]
    if not _in_order(allowed):
        rng = np.random.default_rng(0)
        found = [*found, *(right_kernel(allowed, rows, wide, rng) for _ in range(DRAWS))]
    return [allowed.finished(sums, rows, columns) for sums in found]


def _with_weights(allowed: KernelCase, rows, columns) -> np.ndarray:
    """Return a kernel that rounds integer weights with their scales to A's type before it multiplies."""
    assert allowed.dequantised is not None
    x, y, c, scaling = allowed.part(rows, columns)
    assert scaling is not None
    used = round_to(y.astype(np.float64) * scaling.spread_b(), allowed.dequantised)
    return model_results(allowed.engine, x, used, c, None, {})[-1]


def _in_order(allowed: KernelCase) -> bool:
    """Return whether the test names one order, or scales do: every chain is then known."""
    return allowed.order.known and (allowed.order.stated or allowed.order.block is not None)


def _beside(allowed: KernelCase) -> list[Engine]:
    """Return other units for a kernel of the device: the instruction of the fewest products (most roundings), fused multiply-
    adds in FP32."""
    own = allowed.engine
    if own.scale_format is not None or own.formats[3].name != "fp32" or not isinstance(own, Instruction):
        return []
    formats = own.a_format, own.b_format, own.c_format, own.d_format, own.scale_format
    rows = [
        row for row in list_instructions(own.arch)
        if (row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format) == formats and row.k < own.k
        and own.k % row.k == 0
    ]  # fmt: skip
    found: list[Engine] = [min(rows, key=lambda row: row.k)] if rows else []
    return [*found, ieee_engine(own.a_format)] if own.a_format == own.b_format else found
