"""HiFloat8 (HiF8), Ascend's 8-bit format with tapered precision: arXiv 2409.16626.

Behind the sign a prefix code, the dot, says how many bits of exponent follow; what is left is fraction:

    dot    exponent bits   exponents           fraction bits
    11     4               +-8 to +-15         1
    10     3               +-4 to +-7          2
    01     2               +-2, +-3            3
    001    1               +-1                 3
    0001   0               0                   3
    0000   0               2^(m - 23), m = 1 to 7 in the last three bits, no fraction

An exponent is a sign and a magnitude whose leading one is not stored. Code 0 is zero (there is no -0), 0x80 is NaN, and the
largest code of either sign, 0x6F and 0xEF, is infinity. The rows of :mod:`.rows` have one width of exponent, so HiF8 is none of
them; every number of it is one of fp16 and of bf16, on whose units its products can be run.
"""

from functools import cache

import numpy as np

from .exact_rounding import check_rounding

#: (dot, its length, exponent bits), the longest prefix last.
_DOTS = ((0b11, 2, 4), (0b10, 2, 3), (0b01, 2, 2), (0b001, 3, 1), (0b0001, 4, 0))
INFINITY, NAN = 0x6F, 0x80


def value_of(code: int) -> float:
    """The number of one encoding, 0 to 255; raises ValueError for others."""
    if not 0 <= code <= 255:
        raise ValueError(f"an encoding of HiFloat8 is 0 to 255, got {code}")
    magnitude, sign = code & 0x7F, -1.0 if code & 0x80 else 1.0
    if code == NAN:
        return float("nan")
    if magnitude == INFINITY:
        return sign * float("inf")
    if magnitude < 8:
        return sign * 2.0 ** (magnitude - 23) if magnitude else 0.0
    length, width = next((length, width) for dot, length, width in _DOTS if magnitude >> 7 - length == dot)
    fraction_bits = 7 - length - width
    field = magnitude >> fraction_bits & (1 << width) - 1
    exponent = 0
    if width:
        leading = 1 << width - 1
        exponent = (field & leading - 1 | leading) * (-1 if field & leading else 1)
    return sign * (1 + (magnitude & (1 << fraction_bits) - 1) / (1 << fraction_bits)) * 2.0**exponent


@cache
def _numbers() -> tuple[np.ndarray, np.ndarray]:
    """The finite numbers that are not negative, ascending, with 1.5 x 2^15 in infinity's place, and their encodings."""
    found = sorted((1.5 * 2.0**15 if code == INFINITY else value_of(code), code) for code in range(0x80))
    return np.array([x for x, _ in found]), np.array([code for _, code in found], np.uint8)


def decode_hifloat8(codes) -> np.ndarray:
    """float32 values of encodings (uint8), any shape; they are exact."""
    codes = np.asarray(codes)
    if codes.dtype != np.uint8:
        raise TypeError(f"encodings of HiFloat8 are uint8, got {codes.dtype}")
    return np.array([value_of(code) for code in range(256)], np.float32)[codes]


def encode_hifloat8(x, rounding: str = "rna", *, saturate: bool = False) -> np.ndarray:
    """Encodings (uint8) of real numbers, any shape.

    Parameters
    ----------
    x : array_like of float
        Values.
    rounding : {"rna", "rz", "ru", "rd", "ra"}
        The paper's TA, ties away from zero, or a directed one. Its hybrid and stochastic roundings are not here.
    saturate : bool
        Numbers beyond the largest, 2^15, and infinities become it.

    Raises
    ------
    ValueError
        For another rounding.
    """
    if check_rounding(rounding) not in ("rna", "rz", "ru", "rd", "ra"):
        raise ValueError(f"HiFloat8 is rounded rna, rz, ru, rd or ra, not {rounding}")
    x = np.asarray(x, np.float64)
    numbers, codes = _numbers()
    size = np.abs(np.where(np.isfinite(x), x, 0.0))
    above = np.minimum(np.searchsorted(numbers, size), len(numbers) - 1)
    below = np.where(numbers[above] == size, above, np.maximum(above - 1, 0))
    negative = np.signbit(x)
    away = {"rz": np.zeros(x.shape, bool), "ra": np.ones(x.shape, bool), "ru": ~negative, "rd": negative}.get(rounding)
    if away is None:
        away = size - numbers[below] >= numbers[above] - size
    beyond = size >= numbers[-1]  # from infinity's place on: a finite number only where it is cut
    place = np.where(beyond, len(numbers) - 1, np.where(away, above, below))
    cut = np.isfinite(x) & ~away & beyond
    last = len(numbers) - 2
    place = np.where(saturate | cut, np.minimum(place, last), place)
    place = np.where(np.isinf(x), last if saturate else last + 1, place)
    found = codes[place]
    found = np.where(negative & (found > 0), found | np.uint8(0x80), found)
    return np.where(np.isnan(x), np.uint8(NAN), found)
