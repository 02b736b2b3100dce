"""This module converts the FP32 results of Gaudi's matrix engine to bf16, fp16 and fp8.

It restates fp32_to_bf16, fp32_to_cfp16 and fp32_to_fp8 of HabanaAI/Intel_Gaudi3_Software e6cef1c (MIT), mme/mme_reference.
:func:`tensorcore_models.encode` has other rules for infinities, NaN and stochastic rounding.
"""

import dataclasses
from typing import Any, Literal

import numpy as np

from ..formats import Format, get_float_format
from ..integers import checked_integer

#: Target formats. All except bf16 allow any bias and any meaning of the largest exponent.
TARGETS = ("bf16", "fp16", "e4m3", "e5m2")
ROUNDINGS = ("rne", "rz", "ru", "rd", "sr", "rna")
#: A shift beyond all places of an FP32 significand.
_FAR = 40


def convert_results(
    results: np.ndarray,
    target: str | Format,
    *,
    rounding: str = "rne",
    bias: int | None = None,
    specials: Literal["ieee", "finite", "fn"] = "ieee",
    random: np.ndarray | None = None,
    clip: bool = False,
    clip_infinities: bool = False,
    flush: bool = False,
) -> np.ndarray:
    """Return FP32 results (uint32 encodings) as encodings in bf16, fp16, e4m3 or e5m2, converted as Gaudi converts them.

    Parameters
    ----------
    results : ndarray of uint32
        Encodings of FP32 numbers.
    target : str or Format
        Format of the output.
    rounding : {"rne", "rz", "ru", "rd", "sr", "rna"}
        Rounding mode.
    bias : int, optional
        Exponent bias of the target; by default that of the format.
    specials : {"ieee", "finite", "fn"}
        Meaning of the target's largest exponent: infinities and NaN ("ieee"), numbers ("finite"), or numbers except that all
        ones is NaN ("fn", fp8 only).
    random : ndarray, optional
        One 32-bit number for each result, for rounding "sr". A result is rounded away from zero if its discarded bits, as a
        fraction of 32 bits, are not below this number. A result below half of the smallest number of fp16 or fp8 becomes zero
        (seen in the model's vectors).
    clip : bool
        Whether finite numbers that overflow become the largest finite number.
    clip_infinities : bool
        With `clip`, whether infinities become the largest finite number, too.
    flush : bool
        Whether subnormal results become zero, or the smallest normal number if they are rounded up in magnitude.

    Raises
    ------
    TypeError, ValueError
        If `results` is not uint32, a name is unknown, or `random` is given without "sr" or missing with it.
    """
    fmt = _target(target, bias, specials)
    if rounding not in ROUNDINGS:
        raise ValueError(f"rounding is {rounding!r}, expected one of Gaudi's: {', '.join(ROUNDINGS)}")
    if (random is None) == (rounding == "sr"):
        raise ValueError(
            f"got rounding {rounding!r} and {'no ' if random is None else ''}random numbers: give random numbers, one for each "
            "result, with rounding 'sr' only"
        )
    bits = np.asarray(results)
    if bits.dtype != np.uint32:
        raise TypeError(f"results are {bits.dtype}, expected encodings of FP32 in uint32: use .view(numpy.uint32)")
    draws = np.broadcast_to(np.asarray(0 if random is None else random, np.uint32), bits.shape)
    negative = bits >> np.uint32(31) != 0
    code = _rounded(bits, fmt, rounding, negative, draws, flush)
    toward_zero = (rounding == "rz") | ((rounding == "ru") & negative) | ((rounding == "rd") & ~negative)
    infinite_in, nan = bits & 0x7FFFFFFF == 0x7F800000, bits & 0x7FFFFFFF > 0x7F800000
    return _with_specials(fmt, code, negative, toward_zero, infinite_in, nan, clip, clip_infinities)


def _target(target: str | Format, bias: int | None, specials: str) -> Format:
    fmt = get_float_format(target)
    if fmt.name not in TARGETS:
        raise ValueError(f"target is {fmt.name}, expected a format of Gaudi's conversions: {', '.join(TARGETS)}")
    codes = {"bf16": ("ieee",), "fp16": ("ieee", "finite")}.get(fmt.name, ("ieee", "finite", "fn"))
    if specials not in codes:
        raise ValueError(f"specials is {specials!r}, expected {', '.join(map(repr, codes))} for {fmt.name}")
    if bias is not None and fmt.name == "bf16" and bias != fmt.bias:
        raise ValueError(f"bias is {bias}, expected {fmt.bias}, the only bias of bf16")
    found = fmt.bias if bias is None else checked_integer(bias, "bias")
    changes: dict[str, Any] = {"bias": found, "specials": specials, "dtype_name": ""}
    return dataclasses.replace(fmt, **changes)


def _rounded(bits, fmt: Format, rounding: str, negative, random, flush: bool) -> np.ndarray:
    """Return the magnitudes of the encodings in a format without largest number, before overflow is handled."""
    field, fraction = (bits >> np.uint32(23) & 0xFF).astype(np.int64), (bits & 0x7FFFFF).astype(np.int64)
    tiny = field == 0
    significand = np.where(tiny, fraction, fraction | 1 << 23)
    exponent = np.where(tiny, -126, field - 127)
    if fmt.name != "bf16":  # of a subnormal number only its presence counts
        exponent = np.where(tiny, -1000, exponent)
    normal = (exponent >= fmt.emin) & ~(tiny & (significand < 1 << 23))
    places = np.minimum(np.maximum(fmt.emin - exponent, 0), _FAR) + 23 - fmt.fraction_bits
    kept, rest = significand >> places, significand & (1 << places) - 1
    half, fits = 1 << places - 1, fmt.name == "bf16"
    up = {
        "rne": (rest > half) | ((rest == half) & (kept & 1 == 1)),
        "rna": rest >= half,
        "rz": np.zeros(rest.shape, bool),
        "ru": (rest > 0) & ~negative,
        "rd": (rest > 0) & negative,
        "sr": (_fraction(rest, places) >= random.astype(np.int64)) & (fits | (rest >= half) | (kept > 0)),
    }[rounding]
    code = kept + (up & (rest > 0)) + np.where(normal, (exponent - fmt.emin) << fmt.fraction_bits, 0)
    least = 1 << fmt.fraction_bits
    if flush:
        away = (significand > 0) & (((rounding == "ru") & ~negative) | ((rounding == "rd") & negative))
        code = np.where(code < least, np.where(away, least, 0), code)
    return code


def _fraction(rest: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the discarded bits as a fraction of 32 bits."""
    return np.where(places <= 32, rest << np.maximum(32 - places, 0), rest >> np.maximum(places - 32, 0))


def _with_specials(fmt, code, negative, toward_zero, infinite_in, nan, clip, clip_infinities) -> np.ndarray:
    ones = (1 << fmt.exponent_bits + fmt.fraction_bits) - 1
    largest = fmt.max_bits
    sign = np.where(negative, fmt.sign_bit, 0)
    beyond = infinite_in | (code > largest)
    clipped = clip & (clip_infinities | ~infinite_in)
    end = {"ieee": fmt.exponent_mask, "finite": ones, "fn": ones}[fmt.specials]
    ends = np.where(clipped | (toward_zero & ~infinite_in), largest, end)
    code = np.where(beyond, ends, code) | sign
    code = np.where(nan, ones | (sign if fmt.specials == "fn" else 0), code)
    return code.astype(fmt.container)
