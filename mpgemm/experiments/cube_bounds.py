"""Computes certified bounds of an experiment's other methods: products in FP32 and FP64, and products on the Ascend cube.

Products of norms (:mod:`mpgemm.bounds.norms`) replace |A||B|; :mod:`mpgemm.bounds.watching` compares results with the bounds.
"""

import numpy as np

import tensorcore_models as tcm
from ascend.numeric.arguments import ScaleExponent, scale_exponents
from mpgemm.bounds.bounds import MARGIN
from mpgemm.bounds.norms import Lines, norms, split_norms
from mpgemm.bounds.watching import sums_bound, with_rounded_operands
from tensorcore_models.formats.split_analysis import DEFAULT_SCALE_EXPONENT, chosen_scale_exponent


def sgemm_bound(fmt: str, a: Lines, b: Lines, c: np.ndarray | None = None) -> np.ndarray:
    """Return the bound of a product (plus c) in FP32 or FP64, in any order of k, with operands rounded to that format."""
    dtype = tcm.FORMATS[fmt].dtype
    with np.errstate(all="ignore"):
        x, y = a.rounded_to(dtype), b.rounded_to(dtype)
        sizes = x.norms * y.norms
        given = 0.0 if c is None else np.abs(c - c.astype(dtype).astype(np.float64))
        sizes = sizes if c is None else sizes + np.abs(c.astype(np.float64)) + given
        bound = sums_bound(sizes, a.values.shape[1] + 1, fmt) + given
    return with_rounded_operands(bound, x, y)


def cube_bound(
    words: bool, a: Lines, b: Lines, *, order: str = "termwise", scale_exponent: ScaleExponent = 12,
    low_low: bool = False, row_scaling: bool = False, accumulate: str = "fp32", **_,
) -> np.ndarray | None:  # fmt: skip
    """Return the bound of :func:`ascend.cube_gemm` (`words`) or `cube_hgemm` on the 910A, for every rounding of steps and
    every blocking of k.

    Every sum of a term is rounded once for each product, once for each group of k (at least a cube step), and a few times at
    the end.
    """
    x, y, k = a.rounded_to(np.float32), b.rounded_to(np.float32), a.values.shape[1]
    if row_scaling:
        if scale_exponent != DEFAULT_SCALE_EXPONENT:
            return None
        return with_rounded_operands(_scaled_cube_bound(x, y, 3 * (k + k // 16 + 2) + 8), x, y)
    if scale_exponent == "auto":
        scale_exponent = x.of(_automatic), y.of(_automatic)
    scales = scale_exponents(scale_exponent, x.values, y.values, order) if words else (0, 0)
    sides = []
    for z, scale in zip((x, y), scales, strict=True):
        found = split_norms(z.norms, z.largest, k, 2 if words else 1, scale, tcm.FORMATS["fp16"], True)
        if found is None:  # words may saturate, and norms do not bound that loss
            return _saturated_cube_bound(words, x.whole, y.whole, scales, low_low, accumulate)
        sides.append((z.norms, *found[:2]))
    (size_a, words_a, left_a), (size_b, words_b, left_b) = sides
    with np.errstate(all="ignore"):
        lost = left_a * size_b + (size_a + left_a) * left_b
        bound = lost * MARGIN + _cube_sums(words_a, words_b, scales, k, low_low, accumulate)
    return with_rounded_operands(bound, x, y)


def _automatic(x: np.ndarray, axis: int) -> int:
    return chosen_scale_exponent(x)


def _cube_sums(words_a, words_b, scales, k: int, low_low: bool, accumulate: str) -> np.ndarray:
    """Return a bound of the error by sums and by the term that is left out, from norms of words in the operands' units."""
    if len(words_a) == 1:
        return sums_bound(words_a[0] * words_b[0], k + k // 16 + 2, accumulate)
    sizes = sum(words_a) * sum(words_b)
    bound = sums_bound(sizes, (4 if low_low else 3) * (k + k // 16 + 2) + 8, "fp32")
    bound = bound if low_low else bound + words_a[1] * words_b[1]
    # Sums of scaled words are larger by the scales until they are scaled back.
    limit = tcm.FORMATS["fp32"].max_finite / 2
    return np.where(np.ldexp(sizes, max(0, *scales, sum(scales))) < limit, bound, np.inf)


def _saturated_cube_bound(words: bool, x: Lines, y: Lines, scales, low_low: bool, accumulate: str) -> np.ndarray:
    """Return the bound from the words themselves, for words that may saturate."""
    (words_a, x), (words_b, y) = (
        z.of(_saturated_words, scale if words else None, z.given) for z, scale in zip((x, y), scales, strict=True)
    )
    with np.errstate(all="ignore"):
        sums = _cube_sums(words_a, words_b, scales, x.values.shape[1], low_low, accumulate)
        return with_rounded_operands(sums, x, y)


def _saturated_words(x: np.ndarray, axis: int, scale: int | None, given: Lines) -> tuple[list[np.ndarray], Lines]:
    """Return the norms of two words, or of one word without a scale, and the lines of their sum."""
    if scale is None:
        words = [tcm.round_to(x, "fp16", saturate=True, nan=0.0)]
    else:
        words = list(tcm.split_fp16(x, scale, "saturate", nan=0.0))
    values = [np.ldexp(w.astype(np.float64), -j * (scale or 0)) for j, w in enumerate(words)]
    return [norms(w, axis) for w in values], Lines(sum(values), axis, given)


def _scaled_cube_bound(a: Lines, b: Lines, terms: int) -> np.ndarray:
    """Return the bound with row scaling, which brings the largest element of rows and columns to 2^14.

    Words lose 2^-22 of an element, or 2^-48 of the largest element of the row; the product of the low words is below 2^-20 of
    the product of the norms.
    """
    with np.errstate(all="ignore"):
        sizes = a.norms * b.norms
        lost = 2 * (2.0**-22 + 2.0**-48 * a.values.shape[1] ** 0.5) + 2.0**-20
        bound = lost * sizes + sums_bound(1.01 * sizes, terms, "fp32")
    return np.where(np.isnan(bound), np.inf, bound)
