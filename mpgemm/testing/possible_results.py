"""This module decides which results a right kernel can have, element by element, and with all errors taken together.

If a sum, or the rounding to the output's format, may overflow, no finite bound is certified. A finite result shows that
nothing overflowed, so the bound without overflow holds for it. A result that is not finite must have a kind and sign
that a right kernel can have: those of the exact result, or those of the model if the kernel adds in the model's order.
For sums in several parts it may also be an infinity whose sign the positive or the negative products can reach, or NaN
if both can.

A certified bound holds for each element and grows with k faster than errors do, so that sums in a narrower format stay
within it. Many elements together show them: of two errors with the same distribution, each is the larger one in half of
the elements. Errors `times` as large (normal, independent) are larger in a share of 2/pi arctan(times). Counting works
for any sizes of the elements. If errors are hardly random (sums of one sign on units that truncate), every one may be
slightly larger, so their mean must be larger, too. Smaller errors are right, because kernels may lose less than the
model.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from mpgemm.bounds.kernel_model import model_results
from mpgemm.bounds.populations import evenly
from mpgemm.bounds.sizes import multiply, sizes_of
from mpgemm.recovery.engines import ieee_engine
from mpgemm.testing.case import KernelCase
from mpgemm.testing.recovered_case import RecoveredCase
from mpgemm.testing.sampled import right_kernel
from tensorcore_models.catalogue import list_instructions
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import Format, get_float_format, get_format
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.threads import one_thread

#: Share of elements without a finite bound beyond which a test shows too little.
UNBOUNDED = 0.1
FINITE, PLUS, MINUS, NAN = range(4)


def kinds(x: np.ndarray) -> np.ndarray:
    """Return for each value whether it is finite, plus or minus infinity, or NaN."""
    x = np.asarray(x).astype(np.float64)
    return np.where(np.isnan(x), NAN, np.where(np.isfinite(x), FINITE, np.where(x > 0, PLUS, MINUS)))


def unbounded(allowed: KernelCase) -> np.ndarray:
    """Return the elements with a finite exact result and an infinite bound."""
    return ~np.isfinite(allowed.bound) & np.isfinite(allowed.result)


def unbounded_line(allowed: KernelCase) -> str | None:
    """Return a sentence on the number of elements without a finite bound and their test; None if all have one."""
    count, size = int(np.count_nonzero(unbounded(allowed))), allowed.bound.size
    if not count:
        return None
    return (
        f"{count} of {size} elements have no finite bound, because a sum or the result may overflow; there infinities and NaN "
        "are compared by kind and sign"
    )


def too_many_unbounded(allowed: KernelCase) -> str | None:
    """Return the reason for which a test shows too little, or None if enough elements have a finite bound."""
    if np.count_nonzero(unbounded(allowed)) <= UNBOUNDED * allowed.bound.size:
        return None
    return (
        f"{unbounded_line(allowed)}; with more than {UNBOUNDED:.0%} of them a test shows too little. Use smaller operands, "
        "or a wider output format."
    )


def right_elements(out: np.ndarray, allowed: KernelCase) -> np.ndarray:
    """Return the elements that a right kernel can have returned, in its output format."""
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
    """Return which errors are at most their bound.

    FP64 differences decide if each, with its largest error, settles the question; otherwise exact ones do.
    """
    bound = allowed.finite_bound
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(values - allowed.result)
        slack = 2.0**-51 * (near + np.abs(allowed.result)) + 2.0**-1022
        within, beyond = near + slack <= bound, near - slack > bound
        if (within | beyond).all():
            return within
        return np.abs(allowed.error_of(out)) <= bound


def _possible(allowed: KernelCase, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return for each kind whether a right kernel can return it, shape (kinds, rows, columns)."""
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
        for sign in (-1, 1):  # the result itself, at the end of its bound
            add(kinds(allowed.rounded(exact + sign * np.where(given, bound, 0.0))), given)
    return found


def _reaches(allowed: KernelCase, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether a partial sum can overflow to plus, and to minus infinity: all products of that sign reach the limit."""
    a, b = allowed.a[rows], allowed.b[:, columns]
    sums, sizes = multiply(a, b), sizes_of(a, b)
    if allowed.c is not None:
        c = allowed.c[np.ix_(rows, columns)]
        sums, sizes = sums + c, sizes + np.abs(c)
    bound = allowed.finite_bound[np.ix_(rows, columns)]
    limit = allowed.overflow_from
    return (sizes + sums) / 2 + bound >= limit, (sizes - sums) / 2 + bound >= limit


#: Largest number of multiplications for one right kernel.
BUDGET = 1 << 25
#: Largest number of elements that are compared.
ELEMENTS = 1 << 14
#: Number of right kernels of random orders that are tried if the test names no order.
DRAWS = 3
#: Ratio of errors up to which they are right if the test names no order. Chosen, not derived: none of 240 right kernels of
#: tests/testing/test_fault_table.py exceeds it.
LARGER = 1.5
#: Ratio if the test names the order: errors differ only by instructions of another length.
LARGER_IN_ORDER = 1.15
#: Standard errors by which the share must exceed this: one right test in 3.5 million does by chance (normal, one side).
SURE = 5.0
#: Share of a result below which differences do not count: FP32 steps around the unit in another order.
NOTHING = 2.0**-23


@dataclass(frozen=True)
class KernelSpread:
    """`KernelSpread` compares the errors of a kernel with those of right kernels."""

    larger: float  #: share of the elements with different errors in which the kernel's errors are larger
    times: float  #: mean of these errors over that of the right kernel's
    elements: int  #: number of elements with different errors
    compared: int  #: number of elements that were compared
    allowed: float = LARGER  #: allowed ratio of the errors

    @property
    def limit(self) -> float:
        """Return the share from which on errors are too large."""
        expected = 2 / math.pi * math.atan(self.allowed)
        return expected + SURE * math.sqrt(expected * (1 - expected) / max(self.elements, 1))

    @property
    def right(self) -> bool:
        """Return whether a right kernel can have such errors."""
        return self.larger <= self.limit or self.times <= self.allowed

    def __str__(self) -> str:
        return (
            f"errors are {self.times:.3g} times as large as a right kernel's on average, and larger in {self.larger:.1%} of "
            f"the {self.elements} elements in which they differ ({self.compared} compared; up to {self.allowed} times, or in "
            f"{self.limit:.1%}, is right)"
        )


def spread_of(out: np.ndarray, allowed: KernelCase) -> KernelSpread | None:
    """Return a comparison of a result's errors with right kernels' on some rows and columns, or None."""
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
    """Return a result compared with the nearest right kernel, before the output's rounding.

    Differences up to `own`, the loss of an epilogue, do not count.
    """
    fmt = get_float_format(allowed.out_format)
    times_allowed = LARGER_IN_ORDER if _in_order(allowed) else LARGER
    found = []
    with np.errstate(all="ignore"):
        error = np.maximum(np.abs(out - exact) - own, 0.0)  # the possible loss of an epilogue is not the sum's
        for kernel in kernels:
            right = np.abs(round_to(kernel, fmt) - exact)
            other = np.abs(error - right) > NOTHING * np.abs(exact)  # False for NaN
            elements = int(np.count_nonzero(other))
            larger = np.count_nonzero(error[other] > right[other]) / max(elements, 1)
            times = float(np.sum(error[other]) / np.sum(right[other])) if elements else 1.0
            found.append(KernelSpread(larger, times, elements, exact.size, times_allowed))
    return min(found, key=lambda each: (not each.right, each.times))


def _sample(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return evenly spread rows and columns."""
    most = max(1, min(ELEMENTS, BUDGET // max(k, 1)))
    down = min(m, max(math.isqrt(most), most // n))
    across = min(n, most // down)
    return evenly(m, down), evenly(n, across)


def right_kernels(allowed: KernelCase, rows, columns) -> list[np.ndarray]:
    """Return results of right kernels before the last rounding.

    They are the model's, those of related units, and, if the order is unknown, of random orders; for blocks scaled
    outside also those of a kernel that multiplies with one factor after the other.
    """
    wide = allowed.sums_columns(columns)
    if isinstance(allowed, RecoveredCase):
        return [allowed.finished(sums, rows, columns) for sums in allowed.right_kernels(rows, wide)]
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
    """Return a kernel that multiplies integer weights with their scales and rounds them to A's type before the product."""
    assert allowed.dequantised is not None
    x, y, c, scaling = allowed.part(rows, columns)
    assert scaling is not None
    used = round_to(y.astype(np.float64) * scaling.spread_b(), allowed.dequantised)
    return model_results(allowed.engine, x, used, c, None, {})[-1]


def _in_order(allowed: KernelCase) -> bool:
    """Return whether the test or its scales name one order, so that every chain is known."""
    return allowed.order.known and (allowed.order.stated or allowed.order.block is not None)


def _beside(allowed: KernelCase) -> list[Engine]:
    """Return the units beside the kernel's: the shortest instruction (most roundings), FP32 fused multiply-adds."""
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
