"""cvt (PTX ISA 9.1, 9.7.9.20 and 21): between integers, between floating-point types, and across."""

from collections.abc import Callable

import numpy as np

from ...formats import get_float_format
from ...formats.rounding import decode, encode
from .. import floats
from .arithmetic import ROUNDINGS
from .decode import Operation, Pure, array_type, pure_operation, unknown
from .syntax import TYPE_BITS, PTXInstruction

#: Rounding modes of cvt: to a float, and (with i) to an integer.
_ROUNDINGS = {**ROUNDINGS, "rna": "rna"}
_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
FORMATS = {
    "f64": "fp64", "f32": "fp32", "tf32": "tf32", "f16": "fp16", "bf16": "bf16", "e4m3": "e4m3fn", "e5m2": "e5m2",
    "e2m3": "e2m3", "e3m2": "e3m2", "e2m1": "e2m1", "ue8m0": "ue8m0",
}  # fmt: skip
_NAN = {"fp16": 0x7FFF, "bf16": 0x7FFF, "fp32": 0x7FFFFFFF, "tf32": 0x7FFFFFFF, "e4m3fn": 0x7F, "e5m2": 0x7F}
_PACKED = {f"{kind}x2": kind for kind in ("f16", "bf16", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1")}


def to_format(exact: np.ndarray, fmt: str, rounding: str, *, saturate: bool = False, relu: bool = False) -> np.ndarray:
    """Encodings of values (float32 or float64) in `fmt` by PTX's rules: NaN is the format's canonical one."""
    nan = np.isnan(exact)
    if relu:
        exact = np.where(exact < 0, exact.dtype.type(0), exact)
    if fmt == "tf32" and rounding == "rna":
        bits = exact.astype(np.float32).view(np.uint32)
        finite = np.isfinite(exact)  # half a unit is added to the magnitude, then 13 bits are cut
        bits = np.where(finite, bits + np.uint32(0x1000) & np.uint32(0xFFFFE000), bits)
    else:
        bits = encode(np.where(nan, exact.dtype.type(0), exact), fmt, rounding, saturate=saturate or None)
    if nan.any():
        if fmt not in _NAN:
            raise ValueError(f"NaN has no encoding in {fmt}")
        bits = np.where(nan, bits.dtype.type(_NAN[fmt]), bits)
    return bits


def _between_floats(source: str, target: str, words: set[str]) -> Callable | None:
    """A function of encodings."""
    rounding = next((_ROUNDINGS[w] for w in words if w in _ROUNDINGS), None)
    whole = next((_WHOLE[w] for w in words if w in _WHOLE), None)
    narrow, wide = FORMATS[source], FORMATS[target]
    smaller = get_float_format(wide).precision < get_float_format(narrow).precision
    if smaller and rounding is None and (source, target) != ("f16", "bf16"):
        return None  # of f16 to bf16 ptxas makes one instruction with and without .rn (F2F.BF16.F16, sm_90)

    def run(bits):
        bits = np.asarray(bits)
        if "ftz" in words and source == "f32":
            bits = floats.flushed(bits, "fp32")
        exact = decode(bits, narrow, np.float64 if narrow == "fp64" else np.float32)
        if whole is not None:
            exact = whole(exact)
        if wide == "fp64":
            return exact.astype(np.float64).view(np.uint64)
        out = to_format(exact, wide, rounding or "rne", saturate="satfinite" in words, relu="relu" in words)
        if "ftz" in words and target == "f32":
            out = floats.flushed(out, "fp32")
        return floats.saturated(out, wide) if "sat" in words else out

    return run


def _to_integer(source: str, target: str, words: set[str]) -> Callable | None:
    """Rounded to a whole number and clamped; NaN gives 0 (in 64 bits the top bit set)."""
    whole = next((_WHOLE[w] for w in words if w in _WHOLE), None)
    if whole is None:
        return None
    kind, fmt = array_type(target), FORMATS[source]
    low, high = (int(np.iinfo(kind).min), int(np.iinfo(kind).max))

    def run(bits):
        bits = np.asarray(bits)
        if "ftz" in words and source == "f32":
            bits = floats.flushed(bits, "fp32")
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


def _from_integer(target: str, words: set[str]) -> Callable | None:
    rounding = next((_ROUNDINGS[w] for w in words if w in _ROUNDINGS), None)
    if rounding is None:
        return None
    fmt = FORMATS[target]

    def run(x):
        x = np.asarray(x)
        if x.dtype.itemsize < 8:
            out = (
                to_format(x.astype(np.float64), fmt, rounding)
                if fmt != "fp64"
                else x.astype(np.float64).view(np.uint64)
            )
        elif fmt == "fp64" and rounding == "rne":
            out = x.astype(np.float64).view(np.uint64)
        elif fmt == "fp32" and rounding == "rne":
            out = x.astype(np.float32).view(np.uint32)
        else:
            # 64 bits as a sum of two exact parts, rounded to odd, then once to the format.
            high, low = (
                (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32,
                (x & x.dtype.type(0xFFFFFFFF)).astype(np.float64),
            )
            out = to_format(floats.sum_to_odd(high, low), fmt, rounding)
        return floats.saturated(out, fmt) if "sat" in words else out

    return run


def _between_integers(source: str, target: str, words: set[str]) -> Callable:
    kind = array_type(target)
    if "sat" not in words:
        return lambda x: np.asarray(x).astype(kind)
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)

    def run(x):
        own = np.iinfo(x.dtype)
        return np.clip(x, max(low, int(own.min)), min(high, int(own.max))).astype(kind)

    return run


def _packed(ins: PTXInstruction, target: str, source: str, words: set[str]) -> Operation | None:
    """Two numbers at once: from two f32, from a packed pair, or to one. The first operand is the upper half."""
    if target in _PACKED and source == "f32" and len(ins.operands) == 3:
        one = _between_floats("f32", _PACKED[target], words)
        bits = get_float_format(FORMATS[_PACKED[target]]).bits
        width = 4 if bits == 4 else 8 if bits <= 8 else 16
        kind = {4: np.uint8, 8: np.uint16, 16: np.uint32}[width]
        result = {4: "b8", 8: "b16", 16: "b32"}[width]

        def joined(high, low):
            return one(high).astype(kind) << kind(width) | one(low).astype(kind)

        return None if one is None else pure_operation(ins, Pure(result, ("b32", "b32"), joined))
    if target in ("f16x2", "bf16x2") and source in _PACKED and len(ins.operands) == 2:
        inner, outer = FORMATS[_PACKED[source]], FORMATS[_PACKED[target]]
        width = 4 if get_float_format(inner).bits == 4 else 8
        result = "b8" if width == 4 else "b16"

        def widened(pair):
            pair = np.asarray(pair)
            low, high = pair & pair.dtype.type((1 << width) - 1), pair >> pair.dtype.type(width)
            halves = [
                to_format(decode(x.astype(np.uint8), inner, np.float32), outer, "rne", relu="relu" in words).astype(
                    np.uint32
                )
                for x in (low, high)
            ]
            return halves[0] | halves[1] << np.uint32(16)

        return pure_operation(ins, Pure("b32", (result,), widened))
    if target in ("e4m3x2", "e5m2x2") and source in ("f16x2", "bf16x2") and len(ins.operands) == 2:
        one = _between_floats(_PACKED[source], _PACKED[target], words)

        def narrowed(pair):
            pair = np.asarray(pair)
            low, high = one(pair.astype(np.uint16)), one((pair >> np.uint32(16)).astype(np.uint16))
            return high.astype(np.uint16) << np.uint16(8) | low.astype(np.uint16)

        return None if one is None else pure_operation(ins, Pure("b16", ("b32",), narrowed))
    return None


_MODIFIERS = {*_ROUNDINGS, *_WHOLE, "ftz", "sat", "satfinite", "relu"}


def build(ins: PTXInstruction) -> Operation:
    """The operation of a conversion."""
    if len(ins.modifiers) < 2 or set(ins.modifiers[:-2]) - _MODIFIERS:
        raise unknown(ins)
    target, source = ins.modifiers[-2:]
    words = set(ins.modifiers[:-2])
    if target in _PACKED or source in _PACKED:
        operation = _packed(ins, target, source, words)
        if operation is None:
            raise unknown(ins)
        return operation
    floating = target in FORMATS, source in FORMATS
    if (not floating[0] and target[0] not in "us") or (not floating[1] and source[0] not in "us"):
        raise unknown(ins)
    if floating == (True, True):
        function = _between_floats(source, target, words)
    elif floating == (False, True):
        function = _to_integer(source, target, words)
    elif floating == (True, False):
        function = _from_integer(target, words)
    else:
        function = _between_integers(source, target, words)
    if function is None:
        raise unknown(ins, "lacks a rounding, or has one that is not known here")
    result = f"b{TYPE_BITS[target]}" if floating[0] else target
    read = f"b{TYPE_BITS[source]}" if floating[1] else source
    return pure_operation(ins, Pure(result, (read,), function))


BUILDERS = {"cvt": build}
