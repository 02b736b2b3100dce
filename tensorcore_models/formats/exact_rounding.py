"""This module rounds in exact integers: slow and readable, the reference that every kernel is tested against.

A number is a sign and ``magnitude * 2**exponent`` with integer `magnitude`; nothing here passes through a
float.
"""

import math
import struct
from fractions import Fraction
from functools import cache
from typing import Literal

import numpy as np

from .rows import Format

#: Rounding modes. rne, rna, rnu, rnd, rnz, rno: to nearest with ties to even, away from zero, up, down, toward zero, to odd
#: (xie-mma-sim, tables I and II). rz, ra: toward zero, away from zero. ru, rd: toward +inf, -inf. ro: to odd (an inexact result
#: gets an odd last bit). sr: stochastic, away from zero with the probability of the discarded fraction. The order is that of
#: the kernels (convert.h).
Rounding = Literal["rne", "rna", "rz", "ru", "rd", "ro", "sr", "ra", "rnu", "rnd", "rnz", "rno"]
ROUNDINGS: tuple[str, ...] = ("rne", "rna", "rz", "ru", "rd", "ro", "sr", "ra", "rnu", "rnd", "rnz", "rno")
#: Modes whose error is at most half a unit in the last place.
NEAREST = ("rne", "rna", "rnu", "rnd", "rnz", "rno")

#: Random bits that a stochastic rounding compares the discarded fraction with.
STOCHASTIC_BITS = 32


def check_rounding(rounding: str) -> str:
    """Return `rounding` if it is a known mode; raises ValueError with the known modes if not."""
    if rounding not in ROUNDINGS:
        raise ValueError(f"unknown rounding {rounding!r}, expected one of {', '.join(ROUNDINGS)}")
    return rounding


def shift_right_rounded(magnitude: int, shift: int, rounding: str, negative: bool, random: int = 0) -> int:
    """Return ``magnitude / 2**shift`` rounded to an integer magnitude; a shift below 0 multiplies exactly.

    The directed modes use the sign `negative`. For sr, `random` is a draw from [0, 2**STOCHASTIC_BITS): the result is rounded
    away from zero if the first STOCHASTIC_BITS bits of the discarded fraction exceed the draw.
    """
    if shift <= 0:
        return magnitude << -shift
    kept = magnitude >> shift
    rest = magnitude & ((1 << shift) - 1)
    if rest == 0:
        return kept
    half = 1 << (shift - 1)
    if rounding == "rne":
        up = rest > half or (rest == half and kept & 1 == 1)
    elif rounding == "rna":
        up = rest >= half
    elif rounding in ("rnu", "rnd", "rnz", "rno"):
        tie = {"rnu": not negative, "rnd": negative, "rnz": False, "rno": kept & 1 == 0}[rounding]
        up = rest > half or (rest == half and tie)
    elif rounding == "ra":
        up = True
    elif rounding == "rz":
        up = False
    elif rounding == "ru":
        up = not negative
    elif rounding == "rd":
        up = negative
    elif rounding == "ro":
        up = kept & 1 == 0
    elif rounding == "sr":
        up = (rest << STOCHASTIC_BITS) >> shift > random
    else:
        raise ValueError(f"unknown rounding {rounding!r}, expected one of {', '.join(ROUNDINGS)}")
    return kept + up


def round_to_bits(
    negative: bool,
    magnitude: int,
    exponent: int,
    fmt: Format,
    rounding: str = "rne",
    *,
    saturate: bool = False,
    overflow_to_inf: bool = False,
    fraction_bits: int | None = None,
    random: int = 0,
) -> int:
    """Encode ``(-1)**negative * magnitude * 2**exponent`` in `fmt`, rounded once; zero is +0 if the format has no -0.

    With `overflow_to_inf`, overflow gives infinity (or NaN) in every rounding mode, as on tensor cores, which round toward
    zero; with `saturate`, it gives the largest finite number. `fraction_bits` can be fewer than the format stores, as in
    Hopper's fp8 instructions: the other bits are 0, and subnormal results keep as many bits below the smallest normal exponent.
    `random` is the draw of :func:`shift_right_rounded`. Raises OverflowError if the number overflows and the format has neither
    infinity nor NaN, ValueError if the format lacks zero or a sign that the number needs.
    """
    sign = fmt.sign_bit if negative else 0
    if magnitude == 0:
        if fmt.specials == "scale":
            raise ValueError(f"{fmt.name} has no encoding of zero: give a positive number")
        return sign if fmt.has_negative_zero else 0
    if negative and not fmt.signed:
        raise ValueError(f"{fmt.name} is unsigned and cannot encode a negative number: give the number's magnitude")
    kept_bits = fmt.fraction_bits if fraction_bits is None else min(fraction_bits, fmt.fraction_bits)
    leading = magnitude.bit_length() - 1 + exponent  # exponent of the leading bit
    quantum = max(leading, fmt.emin) - kept_bits  # unit of the rounded result
    rounded = shift_right_rounded(magnitude, quantum - exponent, rounding, negative, random)
    if rounded == 0:
        if fmt.specials == "scale":  # the format has no zero: the result is its smallest number
            return 0
        return sign if fmt.has_negative_zero else 0
    leading = rounded.bit_length() - 1 + quantum
    largest = fmt.decode_exact(fmt.max_bits)
    if leading > fmt.emax or rounded << max(quantum - largest.exponent, 0) > largest.significand << max(
        largest.exponent - quantum, 0
    ):
        return overflow_bits(negative, fmt, "rne" if overflow_to_inf else rounding, saturate)
    if leading < fmt.emin:
        return sign | (rounded << (quantum - fmt.quantum_exponent)) << fmt.padding_bits
    shift = quantum - (leading - fmt.fraction_bits)
    significand = rounded << shift if shift >= 0 else rounded >> -shift
    fraction = significand & ((1 << fmt.fraction_bits) - 1)
    return sign | ((leading + fmt.bias) << fmt.fraction_bits | fraction) << fmt.padding_bits


def overflow_bits(negative: bool, fmt: Format, rounding: str = "rne", saturate: bool = False) -> int:
    """Return the encoding of a number beyond the largest finite number of `fmt` (IEEE 754-2019, 7.4, for all formats).

    Modes that never round away from zero on that side give the largest finite number. Other modes give infinity, NaN if the
    format has no infinity, and raise OverflowError if it has neither.
    """
    sign = fmt.sign_bit if negative else 0
    toward_zero = rounding in ("rz", "ro") or (rounding == "ru" and negative) or (rounding == "rd" and not negative)
    if saturate or toward_zero:
        return sign | fmt.max_bits
    if fmt.has_inf:
        return sign | fmt.exponent_mask
    if fmt.has_nan:
        return fmt.nan_encoding() | (sign if fmt.specials == "fn" else 0)
    raise OverflowError(
        f"a number beyond {fmt.max_finite} has no encoding in {fmt.name}, which has neither infinity nor NaN"
        ": saturate=True gives the largest finite number"
    )


_MASK64 = (1 << 64) - 1


def _mix64(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK64
    return z ^ (z >> 31)


def stochastic_draw(seed: int, index: int) -> int:
    """Return the draw from [0, 2**32) of the element with flat index `index`.

    It is the upper half of output ``index + 1`` of SplitMix64 (Steele, Lea, Flood 2014) started at ``mix64(seed)``, where mix64
    is the finaliser of SplitMix64. It depends on (seed, index) alone.
    """
    state = (_mix64(seed & _MASK64) + (index + 1) * 0x9E3779B97F4A7C15) & _MASK64
    return _mix64(state) >> 32


@cache
def magnitudes(fmt: Format) -> tuple[tuple[Fraction, int], ...]:
    """Return (number, encoding) of all non-negative numbers of a format without fields, ascending, with the overflow bound."""
    found = [(Fraction(fmt.beyond), fmt.exponent_mask)]
    for code in range(fmt.sign_bit):
        kind, _, significand, exponent = fmt.decode_exact(code)
        if kind == "finite":
            found.append((significand * Fraction(2) ** exponent, code))
    return tuple(sorted(found))


def _encode_tapered(x: Fraction, negative: bool, fmt: Format, rounding: str, saturate: bool, random: int) -> int:
    """Return the encoding of a number with magnitude `x` in a format without fields."""
    numbers = magnitudes(fmt)
    last = len(numbers) - 1
    above = next((i for i, (value, _) in enumerate(numbers) if value >= x), last)
    low, high = numbers[max(above - 1, 0)][0], numbers[above][0]
    if x >= high and above == last:
        cut = rounding in ("rz", "ro") or rounding == ("rd", "ru")[negative]
        above -= cut
    elif high != x:
        part, count = (x - low) / (high - low), int(low / (high - low))
        digits = part.denominator.bit_length() - 1
        kept = shift_right_rounded((count << digits) + part.numerator, digits, rounding, negative, random)
        above -= kept == count
    code = numbers[min(above, last - saturate)][1]
    return code | fmt.sign_bit if negative and code else code


def stochastic_draws(seed: int, count: int) -> np.ndarray:
    """Return :func:`stochastic_draw` of the elements 0 to `count` - 1, as uint64."""
    with np.errstate(over="ignore"):
        z = np.uint64(_mix64(seed)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (z ^ z >> np.uint64(31)) >> np.uint64(32)


def encode_exact(
    x: float | Fraction | int,
    fmt: Format,
    rounding: str = "rne",
    *,
    saturate: bool | None = None,
    nan: float | None = None,
    subnormals: str = "keep",
    seed: int = 0,
    index: int = 0,
    scale_exponent: int = 0,
) -> int:
    """Encode one number with the rules and parameters of :func:`tensorcore_models.formats.rounding.encode`.

    A float may be -0, infinite or NaN; a Fraction must be an integer times a power of two. `index` is the element's index for
    stochastic rounding. Raises ValueError for a number that has no encoding in the format.
    """
    if isinstance(x, float) and not math.isfinite(x):
        if math.isnan(x):
            return _nan_exact(x, fmt, saturate, nan, subnormals)
        return _inf_exact(x < 0, fmt, fmt.clamps if saturate is None else saturate)
    numerator, denominator = x.as_integer_ratio()
    if denominator & (denominator - 1):
        raise ValueError(f"{x} is not an integer times a power of two: round the number to a float first")
    negative = numerator < 0 or (isinstance(x, float) and math.copysign(1.0, x) < 0)
    exponent = scale_exponent - (denominator.bit_length() - 1)
    random = stochastic_draw(seed, index) if rounding == "sr" else 0
    if not fmt.has_fields:
        size = abs(Fraction(numerator)) * Fraction(2) ** exponent
        code = _encode_tapered(size, negative, fmt, check_rounding(rounding), bool(saturate), random)
        return 0 if subnormals == "flush" and code & 0x7F < 8 else code
    try:
        bits = round_to_bits(
            negative and (fmt.signed or numerator != 0),
            abs(numerator),
            exponent,
            fmt,
            check_rounding(rounding),
            saturate=fmt.clamps if saturate is None else saturate,
            random=random,
        )
    except OverflowError as error:
        raise ValueError(str(error)) from None
    magnitude = (bits & fmt.magnitude_mask) >> fmt.padding_bits
    is_nan = fmt.decode_exact(bits).kind == "nan"
    if subnormals == "flush" and fmt.has_subnormals and not is_nan and magnitude < 1 << fmt.fraction_bits:
        return bits & fmt.sign_bit if fmt.has_negative_zero else 0
    return bits


def _nan_exact(x: float, fmt: Format, saturate: bool | None, nan: float | None, subnormals: str) -> int:
    if nan is not None and not math.isnan(nan):
        return encode_exact(float(nan), fmt, saturate=saturate, subnormals=subnormals)
    if not fmt.has_nan:
        if saturate:
            return fmt.max_bits
        raise ValueError(
            f"{fmt.name} has no NaN: give a replacement as nan=value, or saturate=True, which gives {fmt.max_finite}"
        )
    (source,) = struct.unpack("<Q", struct.pack("<d", x))
    sign = fmt.sign_bit if source >> 63 and fmt.specials in ("ieee", "fn") else 0
    if fmt.specials != "ieee":
        return fmt.nan_encoding() | sign
    payload = (source & ((1 << 52) - 1)) << fmt.fraction_bits >> 52
    return fmt.nan_encoding() | sign | payload << fmt.padding_bits


def _inf_exact(negative: bool, fmt: Format, saturate: bool) -> int:
    if negative and not fmt.signed:
        raise ValueError(f"{fmt.name} is unsigned and cannot encode a negative number: give the number's magnitude")
    try:
        return overflow_bits(negative, fmt, "rne", saturate)
    except OverflowError:
        raise ValueError(
            f"{fmt.name} has neither infinity nor NaN: give saturate=True for the largest finite number, "
            f"{fmt.max_finite}"
        ) from None
