"""Pairwise sums of float32 operations in lanes (ieee_lanes.h): GPS of CDNA1 and CDNA2."""

from dataclasses import dataclass

import numpy as np

from .._kernels import fda
from ..accumulators import GroupPairwiseSum
from ..formats import Format
from ..machine.instruction_sets import isa_level
from ..machine.threads import get_num_threads
from .common import float_values
from .generic import generic_bits
from .lowering import Lowered

_SMALLEST_NORMAL = 0x00800000


@dataclass(frozen=True)
class PairwisePlan:
    """GroupPairwiseSum of fp16 and bf16.

    Parameters
    ----------
    group : int
        Products of one pairwise sum.
    operands : tuple of (Format, int)
        Formats of a and b, and the magnitudes of their encodings below which they become +0.
    flush_results : bool
        Products and sums below 2^-126 become zero, and c below it +0.
    nan : int
        Encoding of NaN results.
    """

    group: int
    operands: tuple[tuple[Format, int], tuple[Format, int]]
    flush_results: bool
    nan: int

    @classmethod
    def of(cls, low: Lowered) -> "PairwisePlan | None":
        """The plan for an accumulator with its formats, None if the lanes do not cover it."""
        spec, formats = low.accumulator, low.floating
        if type(spec) is not GroupPairwiseSum or formats is None or low.scale_format is not None:
            return None
        a, b, c, d = formats
        if (c.name, d.name) != ("fp32", "fp32") or any(f.name not in ("fp16", "bf16") for f in (a, b)):
            return None
        if spec.group not in (2, 4) or spec.flush_results != (spec.flush_input != "none") or d.nan_bits is None:
            return None
        operands = ((a, _flushed_below(a, spec.flush_input)), (b, _flushed_below(b, spec.flush_input)))
        return cls(spec.group, operands, spec.flush_results, d.magnitude_mask if spec.nan == "all_ones" else d.nan_bits)

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """D = A B + C for one pair of matrices, as `kernels.matrix_bits`."""
        if a.shape[1] % self.group:
            return generic_bits(low, a, b, c)  # a last group with fewer products
        x, y = (_values(bits, *rule) for bits, rule in zip((a, b), self.operands, strict=True))
        d = np.array(c, np.uint32, order="C")
        if self.flush_results:
            magnitude = d & 0x7FFFFFFF
            d[(magnitude < _SMALLEST_NORMAL) & (magnitude != 0)] = 0
        values = d.view(np.float32)
        fda.ieee(x, y, values, self.group, self.flush_results, isa_level(), get_num_threads())
        d[np.isnan(values)] = self.nan
        return d


def _flushed_below(fmt: Format, rule: str) -> int:
    """Smallest magnitude that an operand may have and is not flushed."""
    if rule == "none" or (rule == "fp32" and fmt.name == "fp16"):
        return 0
    return 1 << fmt.fraction_bits


def _values(x: np.ndarray, fmt: Format, flush_below: int) -> np.ndarray:
    """float32 values of fp16 or bf16 encodings, small ones flushed to +0."""
    if flush_below:  # zeros, whose magnitude - 1 wraps around, keep their sign
        one = x.dtype.type(1)
        x = x * ((x & x.dtype.type(fmt.magnitude_mask)) - one >= x.dtype.type(flush_below) - one)
    return float_values(x, fmt, np.dtype(np.float32))
