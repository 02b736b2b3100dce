"""Computes floating-point functions on encodings: arithmetic, comparisons, and stand-ins for unpublished instructions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...formats import get_float_format
from .. import floats
from ..errors import Refused
from .meaning import Meaning
from .types import FORMATS, one

#: NaN result of NVIDIA's units, by format: all bits below the sign are set.
NAN = {"fp16": 0x7FFF, "bf16": 0x7FFF, "fp32": 0x7FFFFFFF, "tf32": 0x7FFFFFFF, "e4m3fn": 0x7F, "e5m2": 0x7F}


def format_of(kind: str) -> str:
    """Return the package's name of the format of a type."""
    return FORMATS[one(kind)]


def sign_of(fmt: str, like: np.ndarray) -> Any:
    """Return the sign bit of a format as a number of an array's type."""
    return like.dtype.type(1 << (get_float_format(fmt).bits - 1))


def _negated(x: np.ndarray, fmt: str) -> np.ndarray:
    return x ^ sign_of(fmt, x)


def _chosen(m: Meaning, fmt: str) -> Callable:
    """Return the larger or smaller of two; a NaN and a number give the number unless the options say NaN. -0 is below +0."""
    nan = NAN.get(fmt, 0x7FFFFFFFFFFFFFFF) if m.nan == "all_ones" else get_float_format(fmt).nan_encoding()
    largest, nan_wins = m.operation == "max", "NaN" in m.options
    return lambda x, y: floats.extreme(x, y, fmt, largest=largest, nan_wins=nan_wins, nan=nan)


def _extreme(m: Meaning, fmt: str) -> Callable:
    chosen = _chosen(m, fmt)

    def run(*operands):
        if "abs" in m.options:  # compares magnitudes; the sign is the product of the signs
            x, y = operands
            sign = sign_of(fmt, x)
            out = chosen(x & ~sign, y & ~sign)
            return np.where(floats.is_nan(out, fmt), out, out | (x ^ y) & sign)
        out = operands[0]
        for operand in operands[1:]:
            out = chosen(out, operand)
        if "quiets" in m.options:  # a signalling NaN makes the result NaN
            row = get_float_format(fmt)
            for operand in operands:
                quiet = operand & operand.dtype.type(1 << (row.fraction_bits - 1)) != 0
                wrong = floats.is_nan(np.asarray(operand), fmt) & ~quiet
                out = np.where(wrong, out.dtype.type(row.nan_encoding()), out)
        return out

    return run


def _middle(m: Meaning, fmt: str) -> Callable:
    """Return the median of three numbers; NaN if one of them is NaN."""
    low, high = (_extreme(replace(m, operation=name), fmt) for name in ("min", "max"))
    nan = get_float_format(fmt).nan_encoding()

    def run(x, y, z):
        found = high(low(x, y), low(high(x, y), z))
        some = floats.is_nan(x, fmt) | floats.is_nan(y, fmt) | floats.is_nan(z, fmt)
        return np.where(some, found.dtype.type(nan), found)

    return run


def _reciprocal(m: Meaning, fmt: str) -> Callable:
    def run(x):
        return floats.divide(np.ones(1, floats.values(x, fmt).dtype).view(x.dtype), x, fmt)

    return run


#: Factories of functions of encodings, by operation, from (meaning, format); without flushing, clamping and canonical NaN.
ARITHMETIC: dict[str, Callable[[Meaning, str], Callable]] = {
    "add": lambda m, fmt: lambda x, y: floats.add(x, y, fmt, m.rounding),
    "sub": lambda m, fmt: lambda x, y: floats.add(x, _negated(y, fmt), fmt, m.rounding),
    "mul": lambda m, fmt: lambda x, y: floats.multiply(x, y, fmt, m.rounding),
    "fma": lambda m, fmt: lambda x, y, z: floats.fma(x, y, z, fmt, m.rounding),
    "div": lambda m, fmt: lambda x, y: floats.divide(x, y, fmt),
    "sqrt": lambda m, fmt: lambda x: floats.square_root(x, fmt), "rcp": _reciprocal,
    "neg": lambda m, fmt: lambda x: _negated(x, fmt), "abs": lambda m, fmt: lambda x: x & ~sign_of(fmt, x),
    "min": _extreme, "max": _extreme, "med3": _middle,
}  # fmt: skip


def arithmetic(m: Meaning) -> Callable:
    """Return a function of encodings by a meaning of :data:`ARITHMETIC`."""
    fmt = format_of(m.result)
    return finished(ARITHMETIC[m.operation](m, fmt), m, fmt)


def finished(function: Callable, m: Meaning, fmt: str) -> Callable:
    """Return `function` with flushing of operands and results, clamping, the canonical NaN, and relu.

    A NaN of AMD's units is left as it is: the code that writes the result refuses it, or makes it the quiet NaN.
    """

    def run(*operands):
        operands = tuple(floats.flushed(np.asarray(x), fmt) if m.flush[0] else np.asarray(x) for x in operands)
        out = function(*operands)
        out = floats.flushed(out, fmt) if m.flush[1] else out
        if m.saturate:
            return floats.saturated(out, fmt)
        out = _with_nan(out, m, fmt)
        if "relu" in m.options:
            out = np.where((out & sign_of(fmt, out) != 0) & ~floats.is_nan(out, fmt), out.dtype.type(0), out)
        return out

    return run


def _with_nan(out: np.ndarray, m: Meaning, fmt: str) -> np.ndarray:
    if m.nan != "all_ones":
        return out
    if fmt != "fp64":
        return floats.canonical(out, fmt, NAN[fmt])
    if m.operation not in ("neg", "abs") and floats.is_nan(out, fmt).any():
        raise Refused("an f64 result is NaN, whose payload is not published: use inputs without NaN")
    return out


# -- comparisons and tests ---------------------------------------------------------------------------------------------------
#: Comparisons of unsigned integers, under their PTX names.
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMPARISONS = {*floats.COMPARISONS, *(f"{n}u" for n in floats.COMPARISONS), "num", "nan", *_UNSIGNED}


def comparison(m: Meaning) -> Callable:
    """Return a predicate of two operands, by the first option; a name that ends in u is true with NaN."""
    name, fmt = m.options[0], FORMATS.get(m.sources[0])
    if name in ("true", "false"):
        return lambda x, y: np.full(np.broadcast(x, y).shape, name == "true")
    if fmt is None:
        return floats.COMPARISONS[_UNSIGNED.get(name, name)]
    if m.flush[0]:
        return lambda x, y: floats.compare(floats.flushed(x, fmt), floats.flushed(y, fmt), fmt, name)
    return lambda x, y: floats.compare(x, y, fmt, name)


def compared_as_number(m: Meaning) -> Callable:
    """Return a comparison whose result is all ones or 1.0."""
    held = comparison(m)
    yes = np.uint32(0x3F800000) if m.result == "f32" else np.uint32(0xFFFFFFFF)
    return lambda x, y: np.where(held(x, y), yes, np.uint32(0))


def classified(m: Meaning) -> Callable:
    """Return whether the second operand has the bit of the class, one of ten, that the number has (CDNA3 ISA,
    "V_CMP_CLASS")."""
    row = get_float_format(FORMATS[m.sources[0]])

    def run(bits, wanted):
        kind = bits.dtype.type
        magnitude, sign = bits & kind(row.magnitude_mask), bits >> kind(row.bits - 1) != 0
        infinity, hidden = kind(row.magnitude_mask - ((1 << row.fraction_bits) - 1)), kind(1 << row.fraction_bits)
        nan = magnitude > infinity
        quiet = nan & (magnitude & kind(1 << (row.fraction_bits - 1)) != 0)
        number = np.select(
            [magnitude == infinity, magnitude >= hidden, magnitude > 0], [0, 1, 2], 3
        )  # from large to zero
        place = np.where(nan, np.where(quiet, 1, 0), np.where(sign, 2 + number, 9 - number))
        return wanted >> place.astype(np.uint32) & np.uint32(1) != 0

    return run


_TESTS: dict[str, Callable] = {
    "finite": np.isfinite, "infinite": np.isinf, "notanumber": np.isnan, "number": lambda x: ~np.isnan(x),
    "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}  # fmt: skip


def tested(m: Meaning) -> Callable:
    """Return whether an operand is a number of a given kind: finite, infinite, normal, ..."""
    test, fmt = _TESTS[m.options[0]], FORMATS[m.sources[0]]
    return lambda x: test(floats.values(np.asarray(x), fmt))


def selected_by_sign(m: Meaning) -> Callable:
    """Return one of two operands, by the sign of a third."""
    floating = m.sources[2] == "f32"
    return lambda x, y, z: np.where((floats.values(z, "fp32") if floating else z) >= 0, x, y)


def sign_copied(m: Meaning) -> Callable:
    """Return the magnitude of the second operand with the sign of the first."""
    fmt = format_of(m.result)
    return lambda x, y: (x & sign_of(fmt, x)) | (y & ~sign_of(fmt, y))


# -- stand-ins ---------------------------------------------------------------------------------------------------------------
#: Real functions in float64, under PTX's names; sin and cos of turns are AMD's.
_REAL: dict[str, Callable] = {
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt, "rcp": lambda x: 1 / x, "sin_turns": lambda x: np.sin(2 * np.pi * x),
    "cos_turns": lambda x: np.cos(2 * np.pi * x),
}  # fmt: skip


def nearest(m: Meaning) -> Callable:
    """Return the correctly rounded value (by float64) of the real function that the first option names."""
    name, fmt = m.options[0], format_of(m.result)

    def run(*operands):
        if name == "div":
            return floats.divide(*operands, fmt)
        with np.errstate(all="ignore"):
            exact = _REAL[name](floats.values(operands[0], fmt).astype(np.float64))
        return floats.rounded(np.asarray(exact, np.float64), fmt, "rne")

    return finished(run, m, fmt)
