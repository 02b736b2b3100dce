"""This module runs accumulators of integer dot products into int32 (integer.h)."""

from dataclasses import dataclass

import numpy as np

from .._kernels.integer import integer
from ..families.base import SumAlgorithm
from ..formats import IntegerFormat
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for, threads_for_product
from .common import Source, lanes_over_rows, running_sum
from .lowering import Lowered

_WRAPPING_TERMS = 256  # sums without clamping may be split anywhere
_EXACT_SUM = (1 << 31) - 1  # largest exact sum of one clamping operation in int32


@dataclass(frozen=True)
class IntegerOperand:
    """`IntegerOperand` is an integer format for the lanes, whose numbers are ((code & keep) ^ flip) - flip."""

    keep: int
    flip: int

    @classmethod
    def of(cls, fmt: IntegerFormat) -> "IntegerOperand":
        return cls(keep=(1 << fmt.bits) - 1, flip=1 << (fmt.bits - 1) if fmt.signed else 0)


@dataclass(frozen=True)
class IntegerTask:
    """`IntegerTask` holds the parameters of the lanes (mpg_integer_task of integer.h)."""

    terms: int
    clamp: bool


@dataclass(frozen=True)
class IntegerKernel:
    """`IntegerKernel` runs IntegerDotAdd of integers of at most 8 bits into int32."""

    task: IntegerTask
    a: IntegerOperand
    b: IntegerOperand

    @classmethod
    def of(cls, low: Lowered) -> "IntegerKernel | None":
        """Return the kernel for an accumulator with its formats, None if the lanes do not cover it."""
        (algorithm, spec), a, b = low.form, low.a_format, low.b_format
        if algorithm is not SumAlgorithm.INTEGER or low.scale_format is not None:
            return None
        if not isinstance(a, IntegerFormat) or not isinstance(b, IntegerFormat) or max(a.bits, b.bits) > 8:
            return None
        if any(not isinstance(f, IntegerFormat) or f.bits != 32 or not f.signed for f in (low.c_format, low.d_format)):
            return None
        terms = spec.terms if spec.saturate else _WRAPPING_TERMS
        if terms % 2 or terms * max(a.maximum, -a.minimum) * max(b.maximum, -b.minimum) > _EXACT_SUM:
            return None
        return cls(IntegerTask(terms, spec.saturate), IntegerOperand.of(a), IntegerOperand.of(b))

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C for one pair of matrices as `kernels.matrix_bits` does."""
        operands, swapped = self._arranged(a, b)
        threads = threads_for_product(a.size * b.shape[1])
        d = running_sum(c.T if swapped else c, threads)
        integer.integer(*operands, a.shape[1], d.view(np.int32), vars(self.task), isa_level(), threads)
        return d.T.copy() if swapped else d

    def run_batch(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C for many small products, shapes (batch, m, k), (batch, k, n), (batch, m, n)."""
        (count, m, k), n = a.shape, b.shape[2]
        operands, swapped = self._arranged(a, b)
        d = np.array(c, np.uint32, order="C")
        rows = d.reshape(-1, n).view(np.int32)
        threads = threads_for(count * m * n * k)
        integer.integer(*operands, k, rows, vars(self.task), isa_level(), threads, items=count, turned=swapped)
        return d

    def _arranged(self, a, b) -> tuple[tuple[Source, Source], bool]:
        """Return the kernel's sources for A and B, and whether they are exchanged."""
        x, y = Source.of_a(a, vars(self.a)), Source.of_b(b, vars(self.b))
        swapped = lanes_over_rows(a.shape[-2], b.shape[-1])
        return ((y, x) if swapped else (x, y)), swapped
