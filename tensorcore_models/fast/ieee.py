"""Accumulators made of float32 operations in lanes (ieee_lanes.h): GPS of CDNA1 and CDNA2, FP32 chains of FMAs."""

from dataclasses import dataclass

import numpy as np

from .._kernels import fda
from ..accumulators import GroupPairwiseSum, SequentialFMA
from ..formats import Format
from ..isa import isa_level
from ..kernels import generic_bits
from ..lowering import Lowered
from ..rounding import decode
from ..threads import get_num_threads
from .common import redo_elements

_SMALLEST_NORMAL = 0x00800000


@dataclass(frozen=True)
class IeeePlan:
    """GroupPairwiseSum of fp16 and bf16, SequentialFMA of operands that are float32 numbers.

    Parameters
    ----------
    group : int
        Products of one pairwise sum; 0 for fused multiply-adds.
    operands : tuple of (Format, int)
        Formats of a and b, and the magnitudes of their encodings below which they become +0.
    flush_results : bool
        Products and sums below 2^-126 become zero, and c below it +0.
    nan : int
        Encoding of NaN results.
    saturate : bool
        Results beyond the format become its largest number: left to the generic kernel, as an infinity never vanishes again.
    """

    group: int
    operands: tuple[tuple[Format, int], tuple[Format, int]]
    flush_results: bool
    nan: int
    saturate: bool = False

    @classmethod
    def of(cls, low: Lowered) -> "IeeePlan | None":
        """The plan for an accumulator with its formats, None if the lanes do not cover it."""
        spec, formats = low.accumulator, low.floating
        if formats is None or low.scale_format is not None:
            return None
        a, b, c, d = formats
        if (c.name, d.name) != ("fp32", "fp32") or d.nan_bits is None:
            return None
        nan = 0x7FFFFFFF if spec.nan == "all_ones" else d.nan_bits
        if type(spec) is SequentialFMA:
            plain = spec == SequentialFMA(nan=spec.nan, tf32_nan=spec.tf32_nan, saturate=spec.saturate)
            return cls(0, ((a, 0), (b, 0)), False, nan, spec.saturate) if plain and _in_float32(a) and _in_float32(b) else None
        if type(spec) is not GroupPairwiseSum or any(f.name not in ("fp16", "bf16") for f in (a, b)):
            return None
        if spec.group not in (2, 4) or spec.flush_results != (spec.flush_input != "none"):
            return None
        operands = ((a, _flushed_below(a, spec.flush_input)), (b, _flushed_below(b, spec.flush_input)))
        return cls(spec.group, operands, spec.flush_results, nan)

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """D = A B + C for one pair of matrices, as `kernels.matrix_bits`."""
        if isa_level() == 0 and self.group == 0 or self.group and a.shape[1] % self.group:
            return generic_bits(low, a, b, c)  # no fused multiply-add in the baseline; a last group with fewer products
        x, y = (_values(bits, *rule) for bits, rule in zip((a, b), self.operands, strict=True))
        d = np.array(c, np.uint32, order="C")
        if self.flush_results:
            magnitude = d & 0x7FFFFFFF
            d[(magnitude < _SMALLEST_NORMAL) & (magnitude != 0)] = 0
        values = d.view(np.float32)
        fda.ieee(x, y, values, self.group, self.flush_results, isa_level(), get_num_threads())
        if self.saturate:
            redo = np.ascontiguousarray(~np.isfinite(values), np.uint8)
            if redo.any():
                redo_elements(low, d, redo, np.zeros(len(d), np.uint8), np.zeros(d.shape[1], np.uint8), a, b, c)
        else:
            d[np.isnan(values)] = self.nan
        return d


def _flushed_below(fmt: Format, rule: str) -> int:
    """Smallest magnitude that an operand may have and is not flushed."""
    if rule == "none" or (rule == "fp32" and fmt.name == "fp16"):
        return 0
    return 1 << fmt.fraction_bits


def _in_float32(fmt: Format) -> bool:
    """Whether every number of the format is one of float32."""
    small = fmt.fraction_bits <= 23 and fmt.emin - fmt.fraction_bits >= -149 and fmt.emax <= 127
    return small and fmt.specials != "scale" and not fmt.padding_bits


def _values(x: np.ndarray, fmt: Format, flush_below: int) -> np.ndarray:
    """float32 values of fp32, fp16 or bf16 encodings, small ones flushed to +0."""
    if flush_below:  # zeros, whose magnitude - 1 wraps around, keep their sign
        one = x.dtype.type(1)
        x = x * ((x & x.dtype.type(fmt.magnitude_mask)) - one >= x.dtype.type(flush_below) - one)
    if fmt.name == "fp16":
        return np.ascontiguousarray(x).view(np.float16).astype(np.float32)
    if fmt.name == "bf16":
        return (np.ascontiguousarray(x).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if fmt.name == "fp32":
        return np.ascontiguousarray(x).view(np.float32)
    return decode(x, fmt, np.float32)
