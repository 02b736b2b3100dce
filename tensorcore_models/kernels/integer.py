"""Integer dot products into int32 (integer.h): which accumulators, and how they are run."""

from dataclasses import dataclass

import numpy as np

from .._kernels import integer
from ..accumulators import IntegerDotAdd
from ..formats import IntegerFormat
from ..machine.instruction_sets import isa_level
from ..machine.threads import get_num_threads, threads_for
from ..machine.workspace import workspace
from .common import flat, lanes_over_rows, slice_length
from .lowering import Lowered

# Where nothing is clamped, sums may be cut anywhere: so many products of 8-bit integers have a sum that is exact in float32.
_WRAPPING_TERMS = 256
_EXACT_SUM = 1 << 24


@dataclass(frozen=True)
class IntegerOperand:
    """An integer format as the lanes take it: a number is ((code & keep) ^ flip) - flip."""

    keep: int
    flip: int

    @classmethod
    def of(cls, fmt: IntegerFormat) -> "IntegerOperand":
        return cls(keep=(1 << fmt.bits) - 1, flip=1 << (fmt.bits - 1) if fmt.signed else 0)


@dataclass(frozen=True)
class IntegerPlan:
    """IntegerDotAdd of integers of at most 8 bits into int32."""

    terms: int
    clamp: bool
    a: IntegerOperand
    b: IntegerOperand

    @classmethod
    def of(cls, low: Lowered) -> "IntegerPlan | None":
        """The plan for an accumulator with its formats, None if the lanes do not cover it."""
        spec, a, b = low.accumulator, low.a_format, low.b_format
        if type(spec) is not IntegerDotAdd or low.scale_format is not None:
            return None
        if not isinstance(a, IntegerFormat) or not isinstance(b, IntegerFormat) or max(a.bits, b.bits) > 8:
            return None
        if any(not isinstance(f, IntegerFormat) or f.bits != 32 or not f.signed for f in (low.c_format, low.d_format)):
            return None
        terms = spec.terms if spec.saturate else _WRAPPING_TERMS
        if terms % 2 or terms * max(a.maximum, -a.minimum) * max(b.maximum, -b.minimum) > _EXACT_SUM:
            return None
        return cls(terms, spec.saturate, IntegerOperand.of(a), IntegerOperand.of(b))

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """D = A B + C for one pair of matrices, as `kernels.matrix_bits`."""
        (m, k), n = a.shape, b.shape[1]
        swapped = lanes_over_rows(m, n)
        x, y = (flat(a), k, 1, self.a), (flat(b), 1, n, self.b)
        if swapped:
            x, y = y, x
        d = np.array(c.T if swapped else c, np.uint32, order="C")
        down, across = d.shape
        length = slice_length(k + k % 2, self.terms, integer.workspace_bytes(down, across, 1))
        buffer = workspace(integer.workspace_bytes(down, across, length))
        integer.integer(
            *(*x, *y, k, d.view(np.int32), buffer, length, self.terms, self.clamp, isa_level(), get_num_threads())
        )
        return d.T.copy() if swapped else d

    def run_batch(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """D = A B + C for many small products, shapes (batch, m, k), (batch, k, n), (batch, m, n)."""
        (count, m, k), n = a.shape, b.shape[2]
        swapped = lanes_over_rows(m, n)
        x, y = (flat(a), k, 1, self.a), (flat(b), 1, n, self.b)
        if swapped:
            x, y = y, x
        d = np.array(c, np.uint32, order="C")
        threads = threads_for(count * m * n * k)
        integer.integer_batch(*x, *y, k, d.view(np.int32), swapped, self.terms, self.clamp, isa_level(), threads)
        return d
