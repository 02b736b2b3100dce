"""Computes IEEE operations on encodings, whole arrays at a time, as NVIDIA's and AMD's vector units do: one rounding each.

Formats have the package's names. The caller gives the NaN result (`nan`), because units differ in it. Where the exact result of
an operation has more bits than float64, it is rounded to odd first (:func:`tensorcore_models.formats.sums.sum_to_odd`), which
keeps the second rounding right. Binary64 with a rounding other than to nearest, and binary64 fused multiply-adds, run on the
package's own sequential multiply-add.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from ..engines.matrix_engine import MatrixEngine
from ..families.fma_chain import SequentialFMA
from ..formats import get_float_format
from ..formats.rounding import decode, encode
from ..formats.sums import sum_to_odd

_NATIVE = {"fp32": np.float32, "fp64": np.float64}


def values(bits: np.ndarray, fmt: str) -> np.ndarray:
    """Return values of encodings: a view for fp32 and fp64, float32 for narrower formats."""
    if fmt in _NATIVE:
        return bits.view(_NATIVE[fmt])
    return decode(bits, fmt, np.float32)


def canonical(bits: np.ndarray, fmt: str, nan: int) -> np.ndarray:
    """Return the encodings with `nan` for every NaN."""
    row = get_float_format(fmt)
    magnitude = bits & bits.dtype.type(row.magnitude_mask)
    infinity = row.magnitude_mask - ((1 << row.fraction_bits) - 1)
    wrong = magnitude > bits.dtype.type(infinity)
    return np.where(wrong, bits.dtype.type(nan), bits) if wrong.any() else bits


def is_nan(bits: np.ndarray, fmt: str) -> np.ndarray:
    """Return a mask of the encodings that are NaN."""
    row = get_float_format(fmt)
    return (bits & bits.dtype.type(row.magnitude_mask)) > bits.dtype.type(
        row.magnitude_mask - ((1 << row.fraction_bits) - 1)
    )


def flushed(bits: np.ndarray, fmt: str) -> np.ndarray:
    """Return the encodings with subnormal numbers made zeros of their sign."""
    row = get_float_format(fmt)
    sign = bits.dtype.type(1 << (row.bits - 1))
    exponent = bits.dtype.type(row.magnitude_mask - ((1 << row.fraction_bits) - 1))
    return np.where((bits & exponent) == 0, bits & sign, bits)


def saturated(bits: np.ndarray, fmt: str) -> np.ndarray:
    """Return the encodings clamped to [+0, 1], NaN as +0."""
    one = bits.dtype.type(int(encode(1.0, fmt)))
    negative = bits >> bits.dtype.type(8 * bits.dtype.itemsize - 1) != 0
    return np.where(negative | is_nan(bits, fmt), bits.dtype.type(0), np.minimum(bits, one))


def rounded(exact: np.ndarray, fmt: str, rounding: str) -> np.ndarray:
    """Return encodings of float64 values (exact, or rounded to odd) in `fmt`; NaN as any NaN."""
    if fmt == "fp64":
        return exact.view(np.uint64)
    if rounding == "rne" and fmt == "fp32":
        return exact.astype(np.float32).view(np.uint32)
    nan = np.isnan(exact)
    bits = encode(np.where(nan, 0.0, exact), fmt, rounding)
    return np.where(nan, bits.dtype.type(get_float_format(fmt).nan_encoding()), bits)


@cache
def _chain(fmt: str, rounding: str) -> MatrixEngine:
    return MatrixEngine(SequentialFMA(rounding=rounding), a_format=fmt, b_format=fmt, c_format=fmt, d_format=fmt, k=1)


def _on_unit(a, b, c, fmt: str, rounding: str) -> np.ndarray:
    """Return a b + c of each element, on a multiply-add of the package."""
    from ..kernels import batch_bits

    a, b, c = np.broadcast_arrays(np.atleast_1d(a), b, c)
    tiles = [np.ascontiguousarray(x).reshape(-1, 1, 1) for x in (a, b, c)]
    return batch_bits(_chain(fmt, rounding), *tiles).reshape(a.shape)


def add(a: np.ndarray, b: np.ndarray, fmt: str, rounding: str = "rne") -> np.ndarray:
    """Return the encodings of a + b."""
    x, y = values(a, fmt), values(b, fmt)
    if rounding == "rne" and fmt in _NATIVE:
        return (x + y).view(a.dtype)
    if fmt == "fp64":
        return _on_unit(a, np.uint64(0x3FF0000000000000), b, fmt, rounding)
    total = sum_to_odd(np.asarray(x, np.float64), np.asarray(y, np.float64))
    if rounding == "rd":  # an exact zero from opposite signs is -0 (IEEE 754-2019, 6.3)
        total = np.where((total == 0) & (np.signbit(x) | np.signbit(y)), -0.0, total)
    return rounded(total, fmt, rounding)


def multiply(a: np.ndarray, b: np.ndarray, fmt: str, rounding: str = "rne") -> np.ndarray:
    """Return the encodings of a b."""
    x, y = values(a, fmt), values(b, fmt)
    if rounding == "rne" and fmt in _NATIVE:
        return (x * y).view(a.dtype)
    if fmt == "fp64":
        product = (x * y).view(np.uint64)
        zero = (product ^ product) | (
            (np.bitwise_xor(a, b) >> np.uint64(63)) << np.uint64(63)
        )  # keeps the product's sign
        return _on_unit(a, b, zero, fmt, rounding)
    return rounded(np.asarray(x, np.float64) * np.asarray(y, np.float64), fmt, rounding)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, fmt: str, rounding: str = "rne") -> np.ndarray:
    """Return the encodings of a b + c, rounded once."""
    if fmt == "fp64":
        return _on_unit(a, b, c, fmt, rounding)
    x, y, z = (np.asarray(values(v, fmt), np.float64) for v in (a, b, c))
    product = x * y
    total = sum_to_odd(product, z)
    if rounding == "rd":
        total = np.where((total == 0) & (np.signbit(product) | np.signbit(z)), -0.0, total)
    return rounded(total, fmt, rounding)


def divide(a: np.ndarray, b: np.ndarray, fmt: str) -> np.ndarray:
    """Return the encodings of the quotient, rounded to nearest, in fp32 or fp64."""
    return (values(a, fmt) / values(b, fmt)).view(a.dtype)


def square_root(a: np.ndarray, fmt: str) -> np.ndarray:
    """Return the encodings of the square root, rounded to nearest, in fp32 or fp64."""
    return np.sqrt(values(a, fmt)).view(a.dtype)


def extreme(a: np.ndarray, b: np.ndarray, fmt: str, *, largest: bool, nan_wins: bool, nan: int) -> np.ndarray:
    """Return the larger or smaller of two numbers; -0 is below +0. A NaN and a number give the number unless `nan_wins`."""
    a, b = np.broadcast_arrays(a, b)
    sign = a.dtype.type(1 << (8 * a.dtype.itemsize - 1))

    def ordered(bits):
        """Return encodings as integers in the order of the numbers."""
        return np.where(bits & sign != 0, ~bits, bits | sign)

    first = (ordered(a) >= ordered(b)) == largest
    out = np.where(first, a, b)
    left, right = is_nan(a, fmt), is_nan(b, fmt)
    if left.any() or right.any():
        out = np.where(left, b, np.where(right, a, out))
        out = np.where((left | right) if nan_wins else (left & right), a.dtype.type(nan), out)
    return out


#: Comparisons of values: name -> function.
COMPARISONS: dict[str, Callable] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def compare(a: np.ndarray, b: np.ndarray, fmt: str, comparison: str) -> np.ndarray:
    """Return a comparison: eq, ne, lt, le, gt, ge (false with NaN), with u (true with NaN), num (neither is NaN), nan (one
    is)."""
    nan = is_nan(a, fmt) | is_nan(b, fmt)
    if comparison in ("num", "nan"):
        return nan == (comparison == "nan")
    known = COMPARISONS[comparison.removesuffix("u")](values(a, fmt), values(b, fmt))
    return known | nan if comparison.endswith("u") else known & ~nan
