"""Converts between formats, and between floating-point numbers and integers."""

from collections.abc import Callable

import numpy as np

from ...formats.rounding import decode, encode
from .. import floats
from .floating import NAN, format_of
from .meaning import Meaning
from .types import FORMATS, array_type, bits_of, one

#: Roundings to a whole number; "rna" here adds 0.5 and rounds down, as v_cvt_rpi_i32_f32 does.
_WHOLE: dict[str, Callable] = {
    "rne": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil, "rna": lambda x: np.floor(x + 0.5),
}  # fmt: skip


def to_format(exact: np.ndarray, fmt: str, rounding: str, *, saturate: bool = False, relu: bool = False) -> np.ndarray:
    """Return encodings of values (float32 or float64) in `fmt`; NaN becomes the canonical NaN of NVIDIA's units."""
    nan = np.isnan(exact)
    if relu:
        exact = np.where(exact < 0, exact.dtype.type(0), exact)
    if fmt == "tf32" and rounding == "rna":
        bits = exact.astype(np.float32).view(np.uint32)
        finite = np.isfinite(exact)  # half a unit is added to the magnitude, then 13 bits are truncated
        bits = np.where(finite, bits + np.uint32(0x1000) & np.uint32(0xFFFFE000), bits)
    elif fmt == "fp64":
        return exact.astype(np.float64).view(np.uint64)
    else:
        bits = encode(np.where(nan, exact.dtype.type(0), exact), fmt, rounding, saturate=saturate or None)
    if nan.any():
        if fmt not in NAN:
            raise ValueError(f"NaN has no encoding in {fmt}")
        bits = np.where(nan, bits.dtype.type(NAN[fmt]), bits)
    return bits


def converted(m: Meaning) -> Callable:
    """Return the function of a conversion, by its types."""
    if m.result != one(m.result) or m.sources[0] != one(m.sources[0]):
        return _packed(m)
    if m.result not in FORMATS:
        return _to_integer(m)
    return _between_floats(m) if m.sources[0] in FORMATS else _from_integer(m)


def _between_floats(m: Meaning) -> Callable:
    """Return a function of encodings; with the option "whole" it rounds to a whole number."""
    narrow, wide = format_of(m.sources[0]), format_of(m.result)
    whole = _WHOLE[m.rounding] if "whole" in m.options else None
    rounding = "rne" if whole else m.rounding
    form = {"saturate": "satfinite" in m.options, "relu": "relu" in m.options}

    def run(bits):
        bits = floats.flushed(np.asarray(bits), narrow) if m.flush[0] else np.asarray(bits)
        exact = decode(bits, narrow, np.float64 if narrow == "fp64" else np.float32)
        out = to_format(exact if whole is None else whole(exact), wide, rounding, **form)
        out = floats.flushed(out, wide) if m.flush[1] else out
        return floats.saturated(out, wide) if m.saturate else out

    return run


def _to_integer(m: Meaning) -> Callable:
    """Return values rounded to whole numbers and clamped; NaN gives 0 (in 64 bits, only the top bit set)."""
    kind, fmt, whole = array_type(m.result), format_of(m.sources[0]), _WHOLE[m.rounding]
    low, high = (int(np.iinfo(kind).min), int(np.iinfo(kind).max))

    def run(bits):
        bits = floats.flushed(np.asarray(bits), fmt) if m.flush[0] else np.asarray(bits)
        exact = whole(decode(bits, fmt, np.float64))
        nan = np.isnan(exact)
        inside = (exact > float(low) - 1) & (exact < float(high) + 1) & ~nan
        if kind.itemsize == 8:
            inside &= (exact >= float(low)) & (exact < float(high))
        whole_numbers = np.where(inside, exact, 0.0).astype(kind)
        clamped = np.where(exact < 0, kind.type(low), kind.type(high))
        undefined = kind.type(0) if kind.itemsize < 8 else np.array(1 << 63, np.uint64).view(kind)[()]
        return np.where(inside, whole_numbers, np.where(nan, undefined, clamped))

    return run


def _from_integer(m: Meaning) -> Callable:
    fmt, rounding = format_of(m.result), m.rounding

    def run(x):
        x = np.asarray(x)
        if x.dtype.itemsize < 8 or fmt == "fp64" and rounding == "rne":
            out = to_format(x.astype(np.float64), fmt, rounding)
        elif fmt == "fp32" and rounding == "rne":
            out = x.astype(np.float32).view(np.uint32)
        else:  # 64 bits as a sum of two exact parts, rounded to odd, then once to the format
            high, low = x >> x.dtype.type(32), x & x.dtype.type(0xFFFFFFFF)
            out = to_format(floats.sum_to_odd(high.astype(np.float64) * 2.0**32, low.astype(np.float64)), fmt, rounding)
        return floats.saturated(out, fmt) if m.saturate else out

    return run


def _packed(m: Meaning) -> Callable:
    """Return a conversion to two numbers at once: from two operands, of which the first is the upper half, or from a pair."""
    function, wide = converted(m.half()), array_type(m.result).type
    width, inside = _width(m.result), _width(m.sources[0])

    def run(*operands):
        if len(operands) == 2:
            high, low = operands
        else:
            pair = np.asarray(operands[0])
            kind = array_type(one(m.sources[0]))
            low, high = (
                (pair & pair.dtype.type((1 << inside) - 1)).astype(kind),
                (pair >> pair.dtype.type(inside)).astype(kind),
            )
        return function(high).astype(wide) << wide(width) | function(low).astype(wide)

    return run


def _width(kind: str) -> int:
    """Return the bits of one number of a pair."""
    return bits_of(kind) // 2


def byte_converted(m: Meaning) -> Callable:
    """Return one byte of a word as a floating-point number."""
    place = np.uint32(8 * m.options[0])
    return lambda x: (np.asarray(x) >> place & np.uint32(255)).astype(np.float32).view(np.uint32)
