"""Measures the causes (:mod:`mpgemm.bounds.error_parts`) of the error of a whole SGEMM-cube product."""

from collections.abc import Mapping

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.error_parts import SplitOperand, error_parts
from tensorcore_models.formats.split_analysis import FP16_OVERFLOW, FULL_BITS

#: Products of words that SGEMM-cube keeps: all but low times low.
KEPT = ((0, 0), (0, 1), (1, 0))


def error_sources(
    a: np.ndarray, b: np.ndarray, error: np.ndarray, scales: tuple[int, int], weights: np.ndarray | float = 1.0
) -> Mapping[str, float]:
    """Return the Frobenius norm of each part of computed - exact times `weights`; elements that are not finite count as 0."""
    counted = np.isfinite(error)
    parts = error_parts(_split(a, scales[0]), _split(b, scales[1]), KEPT, np.where(counted, error, 0.0))
    return {cause: float(np.linalg.norm(np.where(counted, part, 0.0) * weights)) for cause, part in parts.items()}


def _split(x: np.ndarray, scale: int) -> SplitOperand:
    finite = np.where(np.isfinite(x), x, np.float32(0))
    high, low = tcm.split_fp16(finite, scale, overflow="saturate")
    words = (high.astype(np.float64), np.ldexp(low.astype(np.float64), -scale))
    return SplitOperand(finite.astype(np.float64), words, np.abs(finite) >= FP16_OVERFLOW, FULL_BITS)
