"""This module scales results by a scalar and adds results outside a matrix unit, correctly rounded.

Both operations round once, to nearest even by default. Intermediate float64 values are rounded to odd, so that a later rounding
to at most 51 bits is correct (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums").
"""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from ..machine.fp_state import default_fp_state
from .exact_rounding import check_rounding, encode_exact
from .operands import values_of_bits
from .rounding import decode, encode
from .rows import Format, IntegerFormat


def sum_to_odd(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x + y in float64, rounded to odd: an inexact sum becomes the odd neighbour on the side of TwoSum's error."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = x + y
        part = total - x
        error = (x - (total - part)) + (y - part)
        bits = np.asarray(total).view(np.int64)
        inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
        if not inexact.any():
            return total
        away = (error > 0) == (total > 0)
        return np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)


@default_fp_state
def scale_cut(bits: np.ndarray, exponent: int, fmt: Format) -> np.ndarray:
    """Return x 2^exponent for encodings x of `fmt` and exponent <= 0, truncated where the result is subnormal."""
    fields = bits >> bits.dtype.type(fmt.fraction_bits) & bits.dtype.type((1 << fmt.exponent_bits) - 1)
    lowered = bits - bits.dtype.type(-exponent << fmt.fraction_bits)
    rare = (fields <= -exponent) | (fields == (1 << fmt.exponent_bits) - 1)
    if rare.any():
        lowered[rare] = encode(np.ldexp(decode(bits[rare], fmt), exponent), fmt, "rz")
    return lowered


@default_fp_state
def scale_rounded(
    bits: np.ndarray, scalar: float, source: Format | IntegerFormat, target: Format | IntegerFormat
) -> np.ndarray:
    """Return RN(scalar * x) in `target` for encodings x of `source`; ValueError if integers would be scaled."""
    if isinstance(source, IntegerFormat) or isinstance(target, IntegerFormat):
        if scalar != 1 or source != target:
            raise ValueError(
                f"alpha or beta is {scalar}, but integer results cannot be scaled: use alpha = 1 and beta = 1 or 0"
            )
        return bits
    if scalar == 1 and source == target:
        return bits
    values = decode(bits, source)
    scalar = np.float64(scalar)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        if scalar == 1 or target.precision > 51:
            return encode(values * scalar, target)
        if source.precision > 26:
            return _scaled_exactly(values, scalar, target)
        # The scalar is split into its leading 26 bits and its rest; both times x, of at most 26 bits, are exact.
        high = np.float64(np.frombuffer((np.array(scalar).view(np.int64) & ~0x7FFFFFF).tobytes())[0])
        if not np.isfinite(scalar):
            return encode(values * scalar, target)
        return encode(
            sum_to_odd(values * high, values * (scalar - high)) if scalar != high else values * scalar, target
        )


def _scaled_exactly(values: np.ndarray, scalar: float, target: Format) -> np.ndarray:
    """Return RN(scalar * x) in rational arithmetic, element by element, because binary64 products need 106 bits."""
    out = encode(values * scalar, target)  # this result stands for infinities, NaN and zeros
    if np.isfinite(scalar):
        for index in zip(*np.nonzero(np.isfinite(values) & (values != 0)), strict=True):
            out[index] = encode_exact(Fraction(float(values[index])) * Fraction(float(scalar)), target)
    return out


@default_fp_state
def add_rounded(x: np.ndarray, y: np.ndarray, fmt: Format | IntegerFormat, rounding: str = "rne") -> np.ndarray:
    """Return x + y in `fmt`, rounded once; x, y and the result are encodings of `fmt`, and integers wrap.

    NaN results are the format's quiet NaN for every payload and rounding. Raises ValueError for an unknown rounding, and for
    formats of more than 51 significand bits unless sums are rounded to nearest even.
    """
    if isinstance(fmt, IntegerFormat):
        return x + y
    if check_rounding(rounding) == "rne" and fmt.name in ("fp32", "fp64"):
        return add_all(x, (y,), fmt)
    if fmt.precision > 51:
        raise ValueError(f"rounding is {rounding!r}, but sums in {fmt.name} can only be rounded to nearest even, 'rne'")
    a, b = decode(x, fmt), decode(y, fmt)
    total = sum_to_odd(a, b)
    if rounding == "rd":  # an exact zero from opposite signs is -0 when rounding down (IEEE 754-2019, 6.3)
        total = np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)
    bits, nan = encode(total, fmt, rounding), np.isnan(total)
    if fmt.has_nan and nan.any():
        bits[nan] = fmt.nan_encoding()
    return bits


@default_fp_state
def add_all(total: np.ndarray, addends: Iterable[np.ndarray], fmt: Format | IntegerFormat) -> np.ndarray:
    """Return total + x_1 + x_2 + ... in `fmt`, added from left to right as by :func:`add_rounded`; `total` is not changed.

    Sums of binary32 and binary64 are added in place, and NaN is searched for once.
    """
    if isinstance(fmt, IntegerFormat) or fmt.name not in ("fp32", "fp64"):
        for addend in addends:
            total = add_rounded(total, addend, fmt)
        return total
    values = None
    with np.errstate(invalid="ignore", over="ignore"):
        for addend in addends:
            if values is None:
                values = values_of_bits(total, fmt) + values_of_bits(addend, fmt)
            else:
                np.add(values, values_of_bits(addend, fmt), out=values)
    if values is None:
        return total
    bits = values.view(fmt.container)
    nan = np.isnan(values)
    if nan.any():
        bits[nan] = fmt.nan_encoding()
    return bits
