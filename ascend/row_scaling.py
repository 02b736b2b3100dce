"""Rows and columns scaled by powers of two, which brings all of FP32 into the range of FP16 words."""

import numpy as np

#: Row scaling brings the largest element of a row to this binade: neither FP16 word overflows for s_b up to 12.
ROW_SCALING_EXPONENT = 14
_FP32_MAX = np.finfo(np.float32).max


def scaled(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """x with every row (axis 1) or column (axis 0) shifted, and the shifts, kept as a matrix of one column or row.

    Elements more than 2^126 below the largest of their row may be rounded to FP32 subnormals; both FP16 words of
    them are 0 anyway for s_b up to 88.
    """
    finite = np.where(np.isfinite(x), np.abs(x), np.float32(0))
    largest = finite.max(axis=axis, keepdims=True, initial=0.0)
    shifts = np.where(largest > 0, ROW_SCALING_EXPONENT + 1 - np.frexp(largest)[1], 0).astype(np.int32)
    return np.ldexp(x, shifts), shifts


def unscaled(out: np.ndarray, shifts: np.ndarray, c: np.ndarray | None, overflow: str) -> np.ndarray:
    """The product of scaled matrices with the shifts undone and c, if there is one, added by RN."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        out = np.ldexp(out, -shifts)
        if overflow == "saturate":
            out = np.clip(out, -_FP32_MAX, _FP32_MAX)
        if c is not None:
            out = out + c
    if overflow == "saturate":
        return np.clip(out, -_FP32_MAX, _FP32_MAX)
    out[np.isnan(out)] = np.nan
    return out
