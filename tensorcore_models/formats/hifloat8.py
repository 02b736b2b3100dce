"""This module rounds to HiFloat8 by a table of its numbers, because its exponent field has no fixed position for the kernels.

:class:`tensorcore_models.formats.rows.HiFloat8` defines the numbers. The paper (arXiv 2409.16626) rounds to nearest, ties away
from zero (TA); its hybrid rounding is not here.
"""

from typing import Any

import numpy as np

from .exact_rounding import check_rounding, magnitudes, stochastic_draws
from .rows import FORMATS

FORMAT = FORMATS["hifloat8"]


def encode_hifloat8(x: np.ndarray, rounding: str = "rna", saturate: bool = False, seed: int = 0) -> np.ndarray:
    """Return encodings (uint8) of float64 values of any shape; with `saturate`, infinity becomes the largest number, 2^15.

    `rounding` and `seed` are those of :func:`tensorcore_models.formats.rounding.encode`. Raises ValueError for an unknown
    rounding.
    """
    check_rounding(rounding)
    x = np.asarray(x, np.float64)
    numbers = np.array([float(value) for value, _ in magnitudes(FORMAT)])
    codes = np.array([code for _, code in magnitudes(FORMAT)], np.uint8)
    last = len(numbers) - 1
    negative = np.signbit(x)
    size = np.abs(np.where(np.isnan(x), 0.0, x))
    above = np.minimum(np.searchsorted(numbers, size), last)
    below = np.where(numbers[above] == size, above, np.maximum(above - 1, 0))
    gap = np.where(above == below, 1.0, numbers[above] - numbers[below])
    part = np.where(size < numbers[last], (size - numbers[below]) / gap, 1.0)
    if rounding == "sr":
        away = np.floor(part * 2.0**32) > stochastic_draws(seed, x.size).reshape(x.shape)
    else:
        away = _goes_away(rounding, part, np.floor(numbers[below] / gap) % 2 == 1, negative)
    place = np.where(size >= numbers[last], np.where(_toward_zero(rounding, negative), last - 1, last), 0)
    place = np.where(size < numbers[last], np.where((part > 0) & away, above, below), place)
    place = np.where(np.isinf(x), last, place)
    found = codes[np.minimum(place, last - 1) if saturate else place]
    found = np.where(negative & (found > 0), found | np.uint8(0x80), found)
    return np.where(np.isnan(x), np.uint8(FORMAT.nan_encoding()), found)


def _toward_zero(rounding: str, negative: np.ndarray) -> np.ndarray:
    """Return where overflow becomes the largest number instead of infinity."""
    return (
        negative
        if rounding == "ru"
        else ~negative
        if rounding == "rd"
        else np.full(negative.shape, rounding in ("rz", "ro"))
    )


def _goes_away(rounding: str, part: np.ndarray, odd: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Return where a number with a rest of `part` units is rounded away from zero."""
    directed: dict[str, Any] = {"rz": False, "ra": True, "ru": ~negative, "rd": negative, "ro": ~odd}
    if rounding in directed:
        return np.broadcast_to(directed[rounding], part.shape)
    ties: dict[str, Any] = {"rne": odd, "rna": True, "rnu": ~negative, "rnd": negative, "rnz": False, "rno": ~odd}
    return (part > 0.5) | ((part == 0.5) & ties[rounding])
