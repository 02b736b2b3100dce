"""Where the error of a whole SGEMM-cube product comes from: five parts that add up to it.

With the words' sums ``A' = A_h + A_l / 2^s_a`` and B', the computed product differs from the exact one by

    C^ - A B  =  (A' - A) B' + A (B' - B)  -  A_l B_l / 2^(s_a + s_b)  +  the rest

The first two terms are the split's, the third is the low-low product that is left out, the rest what the sums round
(*accumulation*). The first three are taken apart by what happened to the elements: beyond fp16's range (*overflow*), or so
small that fewer than 22 bits are kept (*range*: the low word is then no longer small, and neither is the product that is left
out). What remains is the 22 bits that two words hold (*split*) and the *dropped term*. Products of differences are formed in
binary64: their own error is 2^-53 of a part. :func:`mpgemm.bounds.attribution.attribute` does the same for one dot product of
any method, step by step in rational numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.experiments.operand_ranges import FP16_OVERFLOW
from tensorcore_models.formats.split_analysis import FULL_BITS
from tensorcore_models.formats.words import bits_kept

SOURCES = ("overflow", "range", "split", "dropped term", "accumulation")


@dataclass(frozen=True)
class _Words:
    """One operand in its two words."""

    value: np.ndarray
    low: np.ndarray
    joined: np.ndarray
    overflow: np.ndarray
    small: np.ndarray

    def only(self, source: str, values: np.ndarray) -> np.ndarray:
        """`values` where the element belongs to a source, else 0."""
        here = {"overflow": self.overflow, "range": self.small, "split": ~(self.overflow | self.small)}[source]
        return np.where(here, values, 0.0)

    def change(self, source: str) -> np.ndarray:
        """What the split changes in the elements of one source."""
        return self.only(source, self.joined - self.value)


def _split(x: np.ndarray, scale: int) -> _Words:
    finite = np.where(np.isfinite(x), x, np.float32(0))
    high, low = tcm.split_fp16(finite, scale, overflow="saturate")
    overflow = np.abs(finite) >= FP16_OVERFLOW
    small = (bits_kept(finite, (high, low), scale) < FULL_BITS) & ~overflow & (finite != 0)
    scaled = np.ldexp(low.astype(np.float64), -scale)
    return _Words(finite.astype(np.float64), scaled, high.astype(np.float64) + scaled, overflow, small)


def error_sources(
    a: np.ndarray, b: np.ndarray, error: np.ndarray, scales: tuple[int, int], weights: np.ndarray | float = 1.0
) -> Mapping[str, float]:
    """The Frobenius norm of each part of an error.

    Parameters
    ----------
    a, b : numpy.ndarray, shapes (m, k) and (k, n)
        float32 operands; what is not finite counts as 0.
    error : numpy.ndarray, shape (m, n)
        computed - exact in float64; elements that are not finite are left out.
    scales : (int, int)
        s_a and s_b of the split.
    weights : numpy.ndarray or float
        What each element of a part is multiplied with before its norm is taken.

    Returns
    -------
    dict of str to float
        A part for each of :data:`SOURCES`.
    """
    x, y = _split(a, scales[0]), _split(b, scales[1])
    parts = {
        source: x.change(source) @ y.joined + x.value @ y.change(source) for source in ("overflow", "range", "split")
    }
    # of the low-low product, what overflowed comes first, then what is small, whichever operand it is in
    x_in, y_in = x.only("overflow", x.low), y.only("overflow", y.low)
    parts["overflow"] = parts["overflow"] - (x_in @ y.low + (x.low - x_in) @ y_in)
    normal = x.only("split", x.low) @ y.only("split", y.low)
    parts["range"] = parts["range"] - ((x.low - x_in) @ (y.low - y_in) - normal)
    parts["dropped term"] = -normal
    parts["accumulation"] = error - sum(parts.values())
    counted = np.isfinite(error)
    return {source: float(np.linalg.norm(np.where(counted, part, 0.0) * weights)) for source, part in parts.items()}
