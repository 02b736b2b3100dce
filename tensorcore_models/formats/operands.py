"""This module converts an engine's operands between values and encodings, and checks them."""

import numpy as np

from ..machine.fp_state import default_fp_state
from .interop import as_array, format_of_dtype
from .names import get_format
from .rounding import decode, encode
from .rows import Format, IntegerFormat


def check_bits(
    x, fmt: Format | IntegerFormat, name: str, ndim: int | None = None, *, ignore_high: bool = False
) -> np.ndarray:
    """Return `x` as an array of encodings of `fmt` in its container type, of `ndim` dimensions (None: at least 2).

    The ignored low bits of tf32 may have any value. The high bits of a container wider than the format must be 0, unless
    `ignore_high`. Raises TypeError for another type, ValueError for a wrong number of dimensions or nonzero high bits.
    """
    array = np.asarray(x)
    if array.dtype != fmt.container:
        if array.dtype.kind != "u" or array.dtype.itemsize != fmt.container.itemsize:
            raise TypeError(
                f"{name}: encodings of {fmt.name} are {fmt.container.name}, got {array.dtype}: for values use gemm or mma"
            )
        array = array.astype(fmt.container)  # another byte order
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} has shape {array.shape}, expected {ndim} dimensions")
    if ndim is None and array.ndim < 2:
        raise ValueError(f"{name} has shape {array.shape}, expected at least 2 dimensions")
    if fmt.bits < 8 * fmt.container.itemsize and array.size:
        if ignore_high:
            return array & fmt.container.type((1 << fmt.bits) - 1)
        if int(array.max()) >> fmt.bits:
            raise ValueError(
                f"{name}: expected {fmt.bits}-bit encodings of {fmt.name} with high bits 0, got {int(array.max()):#x}"
            )
    return array


@default_fp_state
def operand_bits(x, fmt: Format | IntegerFormat, rounding: str | None, name: str, saturate: bool = False) -> np.ndarray:
    """Return values as encodings of `fmt`; an array whose type has this format keeps its bits (NaN payloads included).

    Values beyond the range become infinity if the format has it. They become the largest finite number with `saturate`, or if
    the format has neither infinity nor NaN (fp4, fp6: OCP MX v1.0, section 5.3). Raises ValueError for values beyond the range
    of a format with NaN but no infinity, for NaN in a format without NaN, and for inexact values if `rounding` is None.
    """
    array = as_array(x, name)
    if isinstance(fmt, IntegerFormat):
        return _integer_bits(array, fmt, name)
    if format_of_dtype(array.dtype) == fmt:
        return array.astype(array.dtype.newbyteorder("="), copy=False).view(fmt.container)  # any strides, no copy
    if rounding is not None:
        return _rounded_bits(array, fmt, rounding, name, saturate)
    return _exact_bits(array, fmt, name)


#: Number of values that are checked at a time, which keeps temporary arrays small.
_CHECKED = 1 << 20


def _exact_bits(array: np.ndarray, fmt: Format, name: str) -> np.ndarray:
    """Return the encodings of values that `fmt` can represent; raise ValueError for other values."""
    out, flat = np.empty(array.shape, fmt.container), array.reshape(-1)
    bits = out.reshape(-1)
    wrong, first = 0, 0
    for start in range(0, flat.size, _CHECKED):
        part = slice(start, start + _CHECKED)
        bits[part] = encode(flat[part], fmt, "rz", saturate=not fmt.has_inf)
        lost = ~_same(decode(bits[part], fmt), flat[part])
        if not wrong and lost.any():
            first = start + int(np.argmax(lost))
        wrong += int(np.count_nonzero(lost))
    if wrong:
        index = tuple(int(i) for i in np.unravel_index(first, array.shape))
        raise ValueError(
            f"{name}: {wrong} of {array.size} values are not representable in {fmt.name}, the first is "
            f"{float(array[index])!r} at {index}: round {name} first, or pass input_rounding"
        )
    return out


def _same(found: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return where two arrays have equal values, or NaN in both."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = given.astype(np.float64)
    return (found == values) | (np.isnan(found) & np.isnan(values))


def _rounded_bits(array: np.ndarray, fmt: Format, rounding: str, name: str, saturate: bool) -> np.ndarray:
    if fmt.has_inf:
        return encode(array, fmt, rounding, saturate)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        nans = np.isnan(array.astype(np.float64))
    if not fmt.has_nan:
        if nans.any():
            raise ValueError(
                f"{name}: {np.count_nonzero(nans)} of {array.size} values are NaN, which {fmt.name} lacks: replace these values"
            )
        return encode(array, fmt, rounding, saturate=True)
    bits = encode(array, fmt, rounding, saturate)
    lost = np.isnan(decode(bits, fmt)) & ~nans
    if lost.any():
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(lost)), array.shape))
        raise ValueError(
            f"{name}: {np.count_nonzero(lost)} of {array.size} values are beyond the range of {fmt.name}, which has no "
            f"infinity (largest {fmt.max_finite:g}), the first is {float(array[index])!r} at {index}: scale {name}, or pass "
            "input_saturate=True"
        )
    return bits


def _integer_bits(array: np.ndarray, fmt: IntegerFormat, name: str) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers for {fmt.name}, got {array.dtype}")
    if array.dtype == fmt.dtype and fmt.bits == 8 * fmt.container.itemsize:
        return np.ascontiguousarray(array).view(fmt.container).reshape(array.shape)
    if array.size and (int(array.min()) < fmt.minimum or int(array.max()) > fmt.maximum):
        outside = int(((array < fmt.minimum) | (array > fmt.maximum)).sum())
        raise ValueError(
            f"{name}: {outside} of {array.size} values are outside the range of {fmt.name}, {fmt.minimum} to {fmt.maximum}: "
            "clip or scale the values first"
        )
    mask = fmt.container.type((1 << fmt.bits) - 1)
    return array.astype(fmt.dtype).view(fmt.container) & mask


@default_fp_state
def values_of_bits(bits: np.ndarray, fmt: Format | IntegerFormat) -> np.ndarray:
    """Return encodings as values of the format's natural type, or float32 if the format has none."""
    if isinstance(fmt, IntegerFormat):
        bits = np.ascontiguousarray(bits)
        if fmt.signed and fmt.bits < 8 * fmt.container.itemsize:
            sign = fmt.container.type(1 << (fmt.bits - 1))
            return ((bits ^ sign).astype(fmt.dtype) - fmt.dtype.type(sign)).astype(fmt.dtype)
        return bits.view(fmt.dtype)
    if fmt.dtype is None:
        return decode(bits, fmt, np.float32)
    return np.ascontiguousarray(bits).view(fmt.dtype).reshape(bits.shape)


def scale_bits(x, scale_format, name: str) -> np.ndarray | None:
    """Return block scales as encodings: uint8 arrays are encodings, arrays of other types are values to be encoded exactly."""
    if x is None or scale_format is None:
        return x
    array = as_array(x, name)
    if array.dtype == np.uint8:
        return array
    return operand_bits(array, get_format(scale_format), None, name)
