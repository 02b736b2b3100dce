"""Floating-point instructions (PTX ISA 9.1, 9.7.3 to 9.7.5), and the names that integers share with them.

Results that are NaN have all bits below the sign set, as PTX says for f32, f16 and bf16; for f64 the payload is not published,
so a NaN result there is refused. Approximations (``.approx``, ``div.full``) are :mod:`.approximations`.
"""

from collections.abc import Callable

import numpy as np

from .. import floats
from ..errors import Refused
from .approximations import build_approximate
from .decode import Operation, Pure, pure_operation, unknown
from .integers import FLOAT_FORMATS, arithmetic
from .syntax import TYPE_BITS, PTXInstruction

ROUNDINGS = {"rn": "rne", "rz": "rz", "rm": "rd", "rp": "ru"}
_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def finished(function: Callable, kind: str, *, flush: bool, saturate: bool) -> Callable:
    """`function` of encodings with PTX's flushing of operands and results, saturation and NaN."""
    fmt = FLOAT_FORMATS[kind]

    def run(*operands):
        operands = [np.asarray(x) for x in operands]
        if flush:
            operands = [floats.flushed(x, fmt) for x in operands]
        out = function(*operands)
        if flush:
            out = floats.flushed(out, fmt)
        if saturate:
            return floats.saturated(out, fmt)
        if kind == "f64":
            if floats.is_nan(out, fmt).any():
                raise Refused("an f64 result is NaN, whose payload is not published")
            return out
        return floats.canonical(out, fmt, _NAN[kind])

    return run


def in_halves(function: Callable, bits: int) -> Callable:
    """A function of encodings on both halves of packed operands."""
    half, whole = (np.uint16, np.uint32) if bits == 32 else (np.uint32, np.uint64)

    def run(*operands):
        shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
        parts = [np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1).view(half) for x in operands]
        return np.ascontiguousarray(function(*parts)).astype(half, copy=False).view(whole).reshape(shape)

    return run


def extreme_of(name: str, kind: str, words: set[str]) -> Callable:
    """min or max of encodings, with the modifiers NaN and xorsign.abs."""
    fmt, nan = FLOAT_FORMATS[kind], _NAN.get(kind, 0x7FFFFFFFFFFFFFFF)

    def chosen(x, y):
        return floats.extreme(x, y, fmt, largest=name == "max", nan_wins="NaN" in words, nan=nan)

    def run(*operands):
        if "abs" in words:
            sign = operands[0].dtype.type(1 << (TYPE_BITS[kind] - 1))
            signs = (operands[0] ^ operands[1]) & sign
            out = chosen(operands[0] & ~sign, operands[1] & ~sign)
            return np.where(floats.is_nan(out, fmt), out, out | signs)
        out = operands[0]
        for operand in operands[1:]:
            out = chosen(out, operand)
        return out

    return run


def _function(ins: PTXInstruction, kind: str, words: set[str]) -> tuple[Callable, int] | None:
    """The function of encodings without flushing and NaN, and how many operands it takes."""
    fmt, name = FLOAT_FORMATS[kind], ins.name
    rounding = next((ROUNDINGS[w] for w in words if w in ROUNDINGS), "rne")
    sign = 1 << (TYPE_BITS[kind] - 1)
    if name in ("min", "max"):
        return extreme_of(name, kind, words), len(ins.operands) - 1
    if name == "neg":
        return lambda x: x ^ x.dtype.type(sign), 1
    if name == "abs":
        return lambda x: x & ~x.dtype.type(sign), 1
    if name == "add":
        return lambda x, y: floats.add(x, y, fmt, rounding), 2
    if name == "sub":
        return lambda x, y: floats.add(x, y ^ y.dtype.type(sign), fmt, rounding), 2
    if name == "mul":
        return lambda x, y: floats.multiply(x, y, fmt, rounding), 2
    if name in ("fma", "mad"):
        return lambda x, y, z: floats.fma(x, y, z, fmt, rounding), 3
    if rounding == "rne" and kind in ("f32", "f64") and "rn" in words:
        if name == "div":
            return lambda x, y: floats.divide(x, y, fmt), 2
        if name == "sqrt":
            return lambda x: floats.square_root(x, fmt), 1
        if name == "rcp":
            one = np.array(1.0, np.float32 if kind == "f32" else np.float64)
            return lambda x: floats.divide(one.view(x.dtype), x, fmt), 1
    return None


_MODIFIERS = {*ROUNDINGS, "ftz", "sat", "NaN", "xorsign", "abs"}


def floating(ins: PTXInstruction) -> Pure | None:
    """add, sub, mul, fma, mad, div, sqrt, rcp, neg, abs, min, max of one floating-point type; None for others."""
    kind, words = ins.modifiers[-1], set(ins.modifiers[:-1])
    packed = kind.removesuffix("x2")
    if packed not in FLOAT_FORMATS or words - _MODIFIERS - {"relu"}:
        return None
    found = _function(ins, packed, words)
    if found is None:
        return None
    function, count = found
    if ins.name in ("neg", "abs") and kind != "f64":  # signs only; NaN becomes the canonical one with ftz or not
        function = finished(function, packed, flush="ftz" in words, saturate=False)
    elif ins.name not in ("neg", "abs"):
        function = finished(function, packed, flush="ftz" in words, saturate="sat" in words)
    if "relu" in words:
        function = _relu(function, packed)
    if kind != packed:
        function = in_halves(function, TYPE_BITS[kind])
    return Pure(f"b{TYPE_BITS[kind]}", (f"b{TYPE_BITS[kind]}",) * count, function)


def _relu(function: Callable, kind: str) -> Callable:
    fmt = FLOAT_FORMATS[kind]

    def run(*operands):
        out = function(*operands)
        negative = out >> out.dtype.type(TYPE_BITS[kind] - 1) != 0
        return np.where(negative & ~floats.is_nan(out, fmt), out.dtype.type(0), out)

    return run


def build(ins: PTXInstruction) -> Operation:
    """The operation of an arithmetic instruction, integer or floating point."""
    if {"approx", "full"} & set(ins.modifiers):
        return build_approximate(ins)
    row = arithmetic(ins) if ins.name not in ("fma", "sqrt", "rcp") else None
    row = row or floating(ins)
    if row is None:
        raise unknown(ins)
    return pure_operation(ins, row)


def build_copysign(ins: PTXInstruction) -> Operation:
    """copysign: the sign of the first operand, the magnitude of the second."""
    kind = f"b{TYPE_BITS[ins.modifiers[-1]]}"
    sign = 1 << (TYPE_BITS[kind] - 1)
    return pure_operation(
        ins, Pure(kind, (kind, kind), lambda x, y: (x & x.dtype.type(sign)) | (y & y.dtype.type(sign - 1)))
    )


def build_testp(ins: PTXInstruction) -> Operation:
    """testp: what kind of number an operand is."""
    test, kind = ins.modifiers[0], ins.modifiers[-1]
    fmt = FLOAT_FORMATS[kind]
    tests: dict[str, Callable] = {
        "finite": np.isfinite, "infinite": np.isinf, "notanumber": np.isnan, "number": lambda x: ~np.isnan(x),
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
        "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
    }  # fmt: skip
    if test not in tests:
        raise unknown(ins)
    return pure_operation(ins, Pure("pred", (kind,), lambda x: tests[test](floats.values(np.asarray(x), fmt))))


BUILDERS = {
    **dict.fromkeys(
        ("add", "sub", "mul", "mad", "div", "rem", "abs", "neg", "min", "max", "fma", "sqrt", "rcp"), build
    ),
    "copysign": build_copysign,
    "testp": build_testp,
}
