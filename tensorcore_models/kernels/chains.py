"""Chains of fused multiply-adds in the CPU's own float32 and double (chains.h): which accumulators, and how they are run."""

from dataclasses import dataclass

import numpy as np

from .._kernels import chains
from ..accumulators import SequentialFMA
from ..formats import Format
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for
from ..machine.workspace import workspace
from .common import float_values, generic_promoted, redo_elements, slice_length
from .generic import generic_bits
from .lowering import Lowered


@dataclass(frozen=True)
class ChainsPlan:
    """SequentialFMA to nearest even into fp32 or fp64, of operands that are such numbers.

    Parameters
    ----------
    dtype : dtype
        Type in which the chains run.
    a_format, b_format : Format
        Formats of the operands.
    nan : int
        Encoding of NaN results.
    saturate : bool
        Results beyond the format become its largest number: left to the generic kernel, as an infinity never vanishes again.
    """

    dtype: np.dtype
    a_format: Format
    b_format: Format
    nan: int
    saturate: bool

    @classmethod
    def of(cls, low: Lowered) -> "ChainsPlan | None":
        """The plan for an accumulator with its formats, None if the lanes do not cover it."""
        spec, formats = low.accumulator, low.floating
        if type(spec) is not SequentialFMA or formats is None or low.scale_format is not None:
            return None
        a, b, c, d = formats
        if (c.name, d.name) not in (("fp32", "fp32"), ("fp64", "fp64")) or d.nan_bits is None:
            return None
        plain = spec == SequentialFMA(nan=spec.nan, tf32_nan=spec.tf32_nan, saturate=spec.saturate)
        if not plain or not (_holds(d, a) and _holds(d, b)):
            return None
        nan = d.magnitude_mask if spec.nan == "all_ones" else d.nan_bits
        return cls(np.dtype(np.float32 if d.name == "fp32" else np.float64), a, b, nan, spec.saturate)

    def promotes(self, every: int) -> bool:
        """Whether chains of `every` products can be added up outside in the lanes."""
        return every <= chains.LONGEST and not self.saturate and chains.available(isa_level())

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None, every: int | None = None) -> np.ndarray:
        """D = A B + C for one pair of matrices, as `kernels.matrix_bits`; with `every` as `kernels.promoted_bits`."""
        level = isa_level()
        if not chains.available(level):
            return generic_bits(low, a, b, c) if every is None else generic_promoted(low, a, b, c, None, None, every)
        (m, k), n = a.shape, b.shape[1]
        x, y = float_values(a, self.a_format, self.dtype), float_values(b, self.b_format, self.dtype)
        d = np.array(c, c.dtype, order="C")
        values, group, size = d.view(self.dtype), every or 1, self.dtype.itemsize
        length = slice_length(-(-k // group) * group, group, (m + n) * size)
        buffer = workspace(chains.workspace_bytes(m, n, length, size, every or 0, level))
        chains.chains(x, y, values, buffer, length, every or 0, self.nan, level, threads_for(m * n * k))
        if self.saturate:
            redo = np.ascontiguousarray(~np.isfinite(values), np.uint8)
            if redo.any():
                redo_elements(low, d, redo, np.zeros(m, np.uint8), np.zeros(n, np.uint8), a, b, c)
        return d


def _holds(result: Format, fmt: Format) -> bool:
    """Whether every number of the format is one of the result's."""
    fine = fmt.fraction_bits <= result.fraction_bits and fmt.emin - fmt.fraction_bits >= result.quantum_exponent
    return fine and fmt.emax <= result.emax and fmt.specials != "scale" and not fmt.padding_bits
