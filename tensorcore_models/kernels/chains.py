"""This module runs accumulators as chains of fused multiply-adds in the CPU's own float32 and double (chains.h)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._kernels.chains import chains
from ..families.base import OPERAND_NAN, SumAlgorithm
from ..formats import FORMATS, Format
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for
from .common import RunningResult, float_values, generic_promoted, redo_elements, running_sum, value_slices
from .generic import generic_bits
from .lowering import Lowered


@dataclass(frozen=True)
class ChainsKernel:
    """`ChainsKernel` runs SequentialFMA to nearest even into fp32 or fp64, and LanedFMA into fp32.

    The result format can represent every operand.

    Parameters
    ----------
    dtype : dtype
        Type in which the chains run.
    a_format, b_format : Format
        Formats of the operands.
    nan : int
        Encoding of NaN results.
    redo : {"", "nan", "special"}
        Results that the generic kernel computes again: "nan" for NaNs whose payload matters, "special" for infinities, too, if
        they become the largest number (an infinity never vanishes again in a chain).
    flush : bool
        Whether subnormal operands and tiny results become zero, as on x86 under FTZ and DAZ.
    pairs : bool
        Whether the odd product of each pair comes first.
    lanes, terms : int
        Lanes of LanedFMA, and products of one operation; 0 for SequentialFMA.
    """

    dtype: np.dtype
    a_format: Format
    b_format: Format
    nan: int
    redo: str = ""
    flush: bool = False
    pairs: bool = False
    lanes: int = 0
    terms: int = 0

    @classmethod
    def of(cls, low: Lowered) -> "ChainsKernel | None":
        """Return the kernel for an accumulator with its formats, None if the lanes do not cover it."""
        (algorithm, spec), formats = low.form, low.floating
        if formats is None or low.scale_format is not None:
            return None
        a, b, c, d = formats
        if (c.name, d.name) not in (("fp32", "fp32"), ("fp64", "fp64")) or not (_holds(d, a) and _holds(d, b)):
            return None
        dtype = np.dtype(np.float32 if d.name == "fp32" else np.float64)
        nan = d.magnitude_mask if spec.nan == "all_ones" else d.nan_encoding()
        redo = "nan" if spec.nan in OPERAND_NAN else ""
        if algorithm is SumAlgorithm.LANES:
            if spec.terms > chains.LONGEST or not (_flushed_alike(spec, a, d) and _flushed_alike(spec, b, d)):
                return None
            return cls(dtype, a, b, nan, redo, True, False, spec.lanes, spec.terms)
        if algorithm is not SumAlgorithm.FMA_CHAIN or spec.rounding != "rne" or spec.flush_inputs != spec.flush_outputs:
            return None
        flush = spec.flush_inputs
        if flush and not (a.emin == b.emin == d.emin):
            return None
        return cls(dtype, a, b, nan, "special" if spec.saturate else redo, flush, spec.pair_order == "odd_first")

    def promotes(self, every: int) -> bool:
        """Return whether the lanes can also add chains of `every` products outside the unit."""
        plain = not self.redo and not self.flush and not self.pairs and not self.lanes
        return every <= chains.LONGEST and plain and chains.available(isa_level())

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None, every: int | None = None) -> np.ndarray:
        """Return D = A B + C for one pair of matrices as `kernels.matrix_bits`, or `kernels.promoted_bits` with `every`."""
        level = isa_level()
        if not chains.available(level, self.flush):
            return generic_bits(low, a, b, c) if every is None else generic_promoted(low, a, b, c, None, None, every)
        (m, k), n = a.shape, b.shape[1]
        threads = threads_for(m * n * k)
        d = running_sum(c, threads)
        values = d.view(self.dtype)
        task = {"every": every or self.terms, "lanes": self.lanes, "pairs": self.pairs, "flush": self.flush}
        nan = (
            self.nan if every is None else FORMATS[f"fp{8 * values.itemsize}"].nan_encoding()
        )  # the NaN of sums outside the unit
        unit, special = every or self.terms or (2 if self.pairs else 1), False
        made = not (self._taken(self.a_format) and self._taken(self.b_format))
        for part in value_slices(m, n, k, unit, values.itemsize if made else 0):
            x, y = self._operand(a[:, part], self.a_format), self._operand(b[part], self.b_format)
            special |= chains.chains(x, y, values, task, nan, level, threads)
        if self.redo and special:
            again = np.isnan(values) if self.redo == "nan" else ~np.isfinite(values)
            if again.any():
                redo_elements(low, d, RunningResult.of(values, again.view(np.uint8)), a, b, c)
        return d

    def _taken(self, fmt: Format) -> bool:
        """Return whether the kernel reads encodings of the format without conversion."""
        return fmt.dtype == self.dtype or (fmt.name == "bf16" and self.dtype == np.float32)

    def _operand(self, x: np.ndarray, fmt: Format) -> np.ndarray:
        """Return an operand as numbers, or as encodings if the kernel reads them."""
        if fmt.name == "bf16" and self._taken(fmt):
            return np.ascontiguousarray(x)
        return float_values(x, fmt, self.dtype)


def _flushed_alike(spec: Any, fmt: Format, result: Format) -> bool:
    """Return whether the accumulator flushes operands of the format exactly where float32 flushes subnormal numbers."""
    if spec.flush_inputs:
        return fmt.emin == result.emin
    return fmt.emin - fmt.fraction_bits >= result.emin


def _holds(result: Format, fmt: Format) -> bool:
    """Return whether the result format can represent every number of the format."""
    fine = fmt.fraction_bits <= result.fraction_bits and fmt.emin - fmt.fraction_bits >= result.quantum_exponent
    return fine and fmt.emax <= result.emax and fmt.specials != "scale" and not fmt.padding_bits
