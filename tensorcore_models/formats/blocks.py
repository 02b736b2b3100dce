"""This module quantises real matrices to the block-scaled formats mxfp8, mxfp6, mxfp4 and nvfp4.

A block of `block_size` consecutive elements along k shares one scale: x_i is approximately scale * q_i. The OCP Microscaling
Formats specification (v1.0, section 6.3) sets the scale to 2^(floor(log2(max|x|)) - emax), where emax is the exponent of the
element format's largest number. In nvfp4 the scale is max|x| / max_finite in ue4m3 (NVIDIA, PTX ISA, block scaling); an FP32
scale of the whole tensor is left to the caller.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..integers import checked_integer, integer_arguments
from ..machine.fp_state import default_fp_state
from .exact_rounding import check_rounding
from .interop import as_array
from .names import get_float_format
from .operands import values_of_bits
from .rounding import decode, encode
from .rows import Format

#: Block formats by name: (element format, scale format, block size).
BLOCK_FORMATS: dict[str, tuple[str, str, int]] = {
    "mxfp8_e4m3": ("e4m3fn", "ue8m0", 32),
    "mxfp8_e5m2": ("e5m2", "ue8m0", 32),
    "mxfp6_e3m2": ("e3m2", "ue8m0", 32),
    "mxfp6_e2m3": ("e2m3", "ue8m0", 32),
    "mxfp4": ("e2m1", "ue8m0", 32),
    "nvfp4": ("e2m1", "ue4m3", 16),
}


@dataclass(frozen=True)
class BlockScaled:
    """`BlockScaled` is a quantised matrix: encodings of its elements and of its block scales.

    Attributes
    ----------
    bits : ndarray
        Encodings of the elements, in the shape of the matrix.
    scales : ndarray of uint8
        Encodings of the scales, in the shape of the matrix but with ceil(length / block_size) entries along `axis`.
    element_format, scale_format : Format
        Formats of the elements and of the scales.
    block_size : int
        Number of consecutive elements along `axis` that share a scale.
    axis : int
        Axis along k: 1 for a, 0 for b.
    """

    bits: np.ndarray
    scales: np.ndarray
    element_format: Format
    scale_format: Format
    block_size: int
    axis: int

    @property
    @default_fp_state
    def elements(self) -> np.ndarray:
        """Return the elements without their scales, in the numpy or ml_dtypes type of their format, which `gemm` takes."""
        return values_of_bits(self.bits, self.element_format)

    @default_fp_state
    def values(self) -> np.ndarray:
        """Return the quantised matrix, scale * element, exactly in float64."""
        spread = np.repeat(decode(self.scales, self.scale_format), self.block_size, axis=self.axis)
        length = self.bits.shape[self.axis]
        spread = spread[:, :length] if self.axis == 1 else spread[:length]
        return decode(self.bits, self.element_format) * spread


@default_fp_state
@integer_arguments("axis")
def quantize_blocks(
    x,
    kind: str | tuple[str, str, int] = "mxfp8_e4m3",
    *,
    axis: int,
    scale_rounding: Literal["floor", "ceil", "nearest"] = "floor",
    rounding: str = "rne",
    saturate: bool = True,
) -> BlockScaled:
    """Return a real matrix quantised in blocks along k, with one scale for each block.

    Parameters
    ----------
    x : array_like
        Finite values of shape (m, k) with ``axis=1`` or (k, n) with ``axis=0``. The last block may be shorter.
    kind : str or (element format, scale format, block size)
        Name of :data:`BLOCK_FORMATS`, or the three values of such a row.
    axis : {0, 1}
        Axis along k.
    scale_rounding : {"floor", "ceil", "nearest"}
        Rounding of a block's scale to its format, where max is the largest magnitude in the block, and emax and max_finite are
        the exponent and the value of the largest number of the element format. For ue8m0, "floor" gives
        2^(floor(log2 max) - emax) (the OCP rule), "ceil" the smallest power of two at which no element overflows, "nearest"
        the power of two whose ratio to max / max_finite is nearest to 1. For other scale formats, max / max_finite is rounded
        down, up or to nearest even.
    rounding : str
        Rounding of the elements.
    saturate : bool
        Whether elements beyond the format's range become its largest number; if False, the rule of `encode` applies.

    Raises
    ------
    ValueError
        If `x` holds NaN or infinity, or is not a matrix, or a name is unknown.

    Notes
    -----
    A block of zeros gets the scale 1. Scales beyond the range of their format are clamped to it.
    """
    element, scale, block_size = _kind(kind)
    check_rounding(rounding)
    if scale_rounding not in ("floor", "ceil", "nearest"):
        raise ValueError(f"scale_rounding is {scale_rounding!r}, expected 'floor', 'ceil' or 'nearest'")
    values = as_array(x, "x").astype(np.float64)
    if values.ndim != 2 or axis not in (0, 1):
        raise ValueError(f"x has shape {values.shape} and axis is {axis!r}: expected a matrix and axis 0 or 1")
    if not np.isfinite(values).all():
        raise ValueError(
            f"x holds {int((~np.isfinite(values)).sum())} NaN or infinite values, expected finite values: replace these values"
        )
    largest = _block_maxima(np.abs(values), block_size, axis)
    scales = _scale_bits(largest, element, scale, scale_rounding)
    spread = np.repeat(decode(scales, scale), block_size, axis=axis)
    spread = spread[:, : values.shape[1]] if axis == 1 else spread[: values.shape[0]]
    # A scale of ue4m3 can underflow to zero; its elements are then zero as well.
    quotient = np.divide(values, spread, out=np.zeros_like(values), where=spread != 0)
    bits = encode(quotient, element, rounding, saturate=saturate)
    return BlockScaled(bits, scales, element, scale, block_size, axis)


def _kind(kind) -> tuple[Format, Format, int]:
    if isinstance(kind, str):
        if kind not in BLOCK_FORMATS:
            raise ValueError(f"unknown block format {kind!r}, expected one of {', '.join(BLOCK_FORMATS)}")
        kind = BLOCK_FORMATS[kind]
    element, scale, block_size = kind
    block_size = checked_integer(block_size, "block_size")
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}, expected at least 1")
    return get_float_format(element), get_float_format(scale), block_size


def _block_maxima(magnitudes: np.ndarray, block_size: int, axis: int) -> np.ndarray:
    if magnitudes.shape[axis] == 0:
        shape = list(magnitudes.shape)
        return np.zeros(shape)
    starts = np.arange(0, magnitudes.shape[axis], block_size)
    return np.maximum.reduceat(magnitudes, starts, axis=axis)


def _scale_bits(largest: np.ndarray, element: Format, scale: Format, rounding: str) -> np.ndarray:
    ratio = largest / element.max_finite
    if scale.specials == "scale":
        _, exponent = np.frexp(np.where(largest > 0, largest, 1.0))
        if rounding == "floor":
            power = exponent - 1 - element.emax
        else:
            fraction, exponent = np.frexp(np.where(largest > 0, ratio, 1.0))
            above = fraction > 0.5 if rounding == "ceil" else fraction > np.sqrt(0.5)
            power = exponent - 1 + above
        power = np.clip(np.where(largest > 0, power, 0), scale.emin, scale.emax)
        return encode(np.ldexp(1.0, power), scale)
    mode = {"floor": "rd", "ceil": "ru", "nearest": "rne"}[rounding]
    return encode(np.where(largest > 0, ratio, 1.0), scale, mode, saturate=True)
