"""Computes the exact product in mpmath, as an independent reference for :class:`mpgemm.exact.product.ExactResult`.

It is slow: every number stays an exact mpmath float until it is rounded once, in integers.
"""

import math

import mpmath
import numpy as np

import tensorcore_models as tcm
from mpgemm.exact.mp import mp_gemm
from tensorcore_models.formats.exact_rounding import round_to_bits


class MpResult:
    """`MpResult` is a b (+ c) in exact mpmath arithmetic, with the parameters of :func:`mpgemm.mp_gemm`."""

    def __init__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None):
        self.shape = (a.shape[0], b.shape[1])
        product = mp_gemm(a, b, c)
        self.elements = [[product[i, j] for j in range(self.shape[1])] for i in range(self.shape[0])]

    def rounded(self, fmt: str) -> np.ndarray:
        """Return all elements correctly rounded (to nearest, ties to even) to a format."""
        row = tcm.FORMATS[fmt]
        values = np.array([[round_mpf(x, row) for x in line] for line in self.elements], dtype=np.float64)
        return values.reshape(self.shape).astype(row.dtype)

    def error_of(self, computed: np.ndarray) -> np.ndarray:
        """Return computed - exact, rounded once to binary64: 0 only for equal values, NaN if a value is not finite."""
        values = np.asarray(computed).astype(np.float64)
        fp64 = tcm.FORMATS["fp64"]
        result = np.empty(self.shape)
        for i, line in enumerate(self.elements):
            for j, exact in enumerate(line):
                if not (math.isfinite(values[i, j]) and mpmath.isfinite(exact)):
                    result[i, j] = math.nan
                    continue
                difference = mpmath.fsub(mpmath.mpf(float(values[i, j])), exact, exact=True)
                rounded = round_mpf(difference, fp64)
                result[i, j] = math.copysign(math.ulp(0.0), difference) if rounded == 0 != difference else rounded
        return result


def round_mpf(x: "mpmath.mpf", fmt: "tcm.Format") -> float:
    """Return an mpmath number rounded to `fmt`, as a float, which holds the values of every format up to binary64."""
    if not mpmath.isfinite(x):
        return float(x)
    sign, magnitude, exponent, _ = x._mpf_
    bits = round_to_bits(bool(sign), int(magnitude), int(exponent), fmt)
    kind, negative, significand, quantum = fmt.decode_exact(bits)
    if kind == "nan":
        return math.nan
    if kind == "inf":
        return -math.inf if negative else math.inf
    return math.ldexp(-significand if negative else significand, quantum)
