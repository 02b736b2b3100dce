"""Certified bounds of the methods of an experiment that are no recovery methods: sums in FP32 and FP64, and the Ascend cube's.

Sizes are products of norms (:mod:`mpgemm.bounds.norms`); :mod:`mpgemm.bounds.watching` holds results against them.
"""

import numpy as np

import tensorcore_models as tcm
from ascend.cube_arguments import ScaleExponent, scale_exponents
from mpgemm.bounds.bounds import MARGIN
from mpgemm.bounds.norms import largest_of, norms, split_norms
from mpgemm.bounds.watching import sums_bound, with_rounded_operands
from mpgemm.experiments.cases import as_fp32
from tensorcore_models.formats.split_analysis import DEFAULT_SCALE_EXPONENT


def sgemm_bound(fmt: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """Bound of a product (plus c) in FP32 or FP64 in any order of k, of operands rounded to it."""
    dtype = tcm.FORMATS[fmt].dtype
    with np.errstate(all="ignore"):
        x, y = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
        sizes = norms(x, 1) * norms(y, 0)
        given = 0.0 if c is None else np.abs(c - c.astype(dtype).astype(np.float64))
        sizes = sizes if c is None else sizes + np.abs(c.astype(np.float64)) + given
        bound = sums_bound(sizes, a.shape[1] + 1, fmt) + given
    return with_rounded_operands(bound, (a, x), (b, y))


def cube_bound(
    words: bool, a: np.ndarray, b: np.ndarray, *, order: str = "termwise", scale_exponent: ScaleExponent = 12,
    low_low: bool = False, row_scaling: bool = False, accumulate: str = "fp32", **_,
) -> np.ndarray | None:  # fmt: skip
    """Bound of :func:`ascend.cube_gemm` (`words`) or `cube_hgemm` on the 910A, however steps round and k is cut.

    Every sum of a term is rounded once for each product, each group of k (of a cube step at least) and a few times at the end.
    """
    x, y, k = as_fp32(a), as_fp32(b), a.shape[1]
    if row_scaling:
        if scale_exponent != DEFAULT_SCALE_EXPONENT:
            return None
        return with_rounded_operands(_scaled_cube_bound(x, y, 3 * (k + k // 16 + 2) + 8), (a, x), (b, y))
    scales = scale_exponents(scale_exponent, x, y, order) if words else (0, 0)
    sides = []
    for z, axis, scale in ((x, 1, scales[0]), (y, 0, scales[1])):
        size, largest = norms(z, axis), largest_of(z, axis)
        found = split_norms(size, largest, k, 2 if words else 1, scale, tcm.FORMATS["fp16"], True)
        if found is None:  # words saturate: what is lost is not told by norms
            return _saturated_cube_bound(words, a, b, scales, low_low, accumulate)
        sides.append((size, *found[:2]))
    (size_a, words_a, left_a), (size_b, words_b, left_b) = sides
    with np.errstate(all="ignore"):
        lost = left_a * size_b + (size_a + left_a) * left_b
        bound = lost * MARGIN + _cube_sums(words_a, words_b, scales, k, low_low, accumulate)
    return with_rounded_operands(bound, (a, x), (b, y))


def _cube_sums(words_a, words_b, scales, k: int, low_low: bool, accumulate: str) -> np.ndarray:
    """What sums and the term that is left out lose, by norms of the words in the operands' units."""
    if len(words_a) == 1:
        return sums_bound(words_a[0] * words_b[0], k + k // 16 + 2, accumulate)
    sizes = sum(words_a) * sum(words_b)
    bound = sums_bound(sizes, (4 if low_low else 3) * (k + k // 16 + 2) + 8, "fp32")
    bound = bound if low_low else bound + words_a[1] * words_b[1]
    # Sums of scaled words are larger by their scales while they last.
    limit = tcm.FORMATS["fp32"].max_finite / 2
    return np.where(np.ldexp(sizes, max(0, *scales, sum(scales))) < limit, bound, np.inf)


def _saturated_cube_bound(words: bool, a, b, scales, low_low: bool, accumulate: str) -> np.ndarray:
    """By the words themselves."""
    sides, kept = [], []
    for given, axis, scale in ((a, 1, scales[0]), (b, 0, scales[1])):
        z = as_fp32(given)
        split = (
            tcm.split_fp16(z, scale, "saturate", nan=0.0)
            if words
            else [tcm.round_to(z, "fp16", saturate=True, nan=0.0)]
        )
        values = [np.ldexp(w.astype(np.float64), -j * scale) for j, w in enumerate(split)]
        sides.append([norms(w, axis) for w in values])
        kept.append((given, sum(values)))
    with np.errstate(all="ignore"):
        return with_rounded_operands(_cube_sums(sides[0], sides[1], scales, a.shape[1], low_low, accumulate), *kept)


def _scaled_cube_bound(a: np.ndarray, b: np.ndarray, terms: int) -> np.ndarray:
    """Rows and columns that begin at 2^14 lose 2^-22 of an element in their words, or 2^-48 of the largest of the row, and the
    product of the low words is below 2^-20 of that of the norms."""
    with np.errstate(all="ignore"):
        sizes = norms(a, 1) * norms(b, 0)
        lost = 2 * (2.0**-22 + 2.0**-48 * a.shape[1] ** 0.5) + 2.0**-20
        bound = lost * sizes + sums_bound(1.01 * sizes, terms, "fp32")
    return np.where(np.isnan(bound), np.inf, bound)
