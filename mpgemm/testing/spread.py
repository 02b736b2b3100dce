"""Are a kernel's errors, all taken together, those of a right kernel?

A certified bound holds for each element and grows with k faster than errors do, so that sums in a narrower format stay inside
of it. Many elements tell: of two errors with the same distribution each is the larger one in half of the elements; errors that
are `times` as large (normal, not related) are so in a share of 2/pi arctan(times). Counting holds whatever the sizes of the
elements are. Where errors are hardly random (sums of one sign on units that cut) every one may be the larger one by little, so
that their mean must be larger, too. Errors that are smaller are right: kernels may lose less than the model.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from mpgemm.recovery.engines import ieee_engine
from mpgemm.testing.case import KernelCase
from mpgemm.testing.sampled import right_kernel
from tensorcore_models.catalogue import list_instructions
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import Format, get_float_format, get_format
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.threads import one_thread

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
#: Standard errors that the share must be beyond that.
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
    """Errors of a result beside those of right kernels, on some rows and columns; None where there is nothing to compare."""
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
    """A result beside that right kernel, not rounded to the output's format yet, which is nearest to it; differences up to
    `own`, what an epilogue loses, mean nothing."""
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
    """Rows and columns, evenly spread."""
    most = max(1, min(ELEMENTS, BUDGET // max(k, 1)))
    down = min(m, max(math.isqrt(most), most // n))
    across = min(n, most // down)
    return np.linspace(0, m - 1, down).astype(int), np.linspace(0, n - 1, across).astype(int)


def right_kernels(allowed: KernelCase, rows, columns) -> list[np.ndarray]:
    """Results of the model, of units beside it, and where the order is not known of random orders, before the last rounding;
    where blocks are scaled outside also of a kernel that multiplies with one factor after the other."""
    wide = allowed.sums_columns(columns)
    found = allowed.model(rows, wide)
    if allowed.scaling is not None and allowed.scaling.applied == "block":
        found = [*found, *allowed.model(rows, wide, fused=False)]
    for unit in _beside(allowed):
        found = [*found, *replace(allowed, engine=unit).model(rows, wide)]
    if not _in_order(allowed):
        rng = np.random.default_rng(0)
        found = [*found, *(right_kernel(allowed, rows, wide, rng) for _ in range(DRAWS))]
    return [allowed.finished(sums, rows, columns) for sums in found]


def _in_order(allowed: KernelCase) -> bool:
    """Whether the test names one order, or scales do: every chain is then known."""
    return allowed.order.known and (allowed.order.stated or allowed.order.block is not None)


def _beside(allowed: KernelCase) -> list[Engine]:
    """Other units for a kernel of the device: the instruction of the fewest products (most roundings), fused multiply-
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
