"""This module splits values into words of a narrower format, and joins words.

Xue et al., SGEMM-cube, eq. 7 is ``V_high = to_half(V)``, ``V_low = to_half((V - to_single(V_high)) * 2**s_b)``. This module
splits into any number of words of any format. Word j holds the residual r_j times ``2**s_j``, rounded, where r_0 = x and

    r_(j+1) = r_j - word_j * 2**-s_j

is one subtraction in the type of the source (float32 or float64), as in the vector unit of the hardware. The subtraction is
exact for rne, rna and rz while no word overflows. Otherwise it is correctly rounded, and can be inexact in two cases: after a
saturated word, and with ru, rd, ro and sr after a tiny residual that was rounded away from zero to a word more than 24 (53)
binades above it. The scaling is always exact.

Special values follow from the same formula, element by element:

- On overflow with ``overflow="inf"``, the word is infinite and the next residual is an infinity of the other sign (NaN if x is
  infinite). The sum of such words is NaN, as on hardware that converts this way.
- On overflow with ``overflow="saturate"`` (Ascend 910A), the word is the largest finite number, and the next word holds the
  residual, which usually saturates too.
- NaN gives NaN in every word, with its sign and leading payload bits in formats that keep them; inf - inf gives the positive
  quiet NaN. ``nan=0.0`` replaces every NaN with 0, as on the 910A.
- Zero residuals are +0; word 0 of -0 is -0 if the format has -0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._kernels.conversion import split as split_kernel
from ..integers import checked_integer
from ..machine.fp_state import default_fp_state
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for_product
from .exact_rounding import encode_exact
from .interop import as_array
from .names import get_float_format
from .operands import values_of_bits
from .rounding import SLICE, decode, encode, source_array
from .rows import FORMATS, Format

OVERFLOWS = ("inf", "saturate")


def word_scale_exponents(scale_exponent: int | Sequence[int], words: int) -> tuple[int, ...]:
    """Return the exponents s_j of the words: a sequence unchanged, or (0, s, 2s, ...) for an int s.

    With (0, s, 2s, ...), each word is scaled by 2**s more than the word before (eq. 7 for two words). Raises TypeError if an
    exponent is not an integer, ValueError for a wrong number of exponents.
    """
    given = isinstance(scale_exponent, Sequence | np.ndarray)
    numbers: list[Any] = list(scale_exponent) if isinstance(scale_exponent, Sequence | np.ndarray) else [scale_exponent]
    if isinstance(scale_exponent, str) or any(isinstance(s, bool) or not hasattr(s, "__index__") for s in numbers):
        raise TypeError(f"scale_exponent must be an integer or one integer for each word, got {scale_exponent!r}")
    if not given:
        return tuple(j * int(numbers[0]) for j in range(words))
    if len(numbers) != words:
        raise ValueError(f"scale_exponent has {len(numbers)} entries, expected one for each of {words} words")
    return tuple(int(s) for s in numbers)


def _check_overflow(overflow: str) -> bool:
    if overflow not in OVERFLOWS:
        raise ValueError(f"unknown overflow {overflow!r}, expected one of {', '.join(OVERFLOWS)}")
    return overflow == "saturate"


def _as_words(encodings: list[np.ndarray], fmt: Format, bits: bool) -> tuple[np.ndarray, ...]:
    if bits:
        return tuple(encodings)
    return tuple(values_of_bits(word, fmt) for word in encodings)


@default_fp_state
def split(
    x: Any,
    fmt: str | Format,
    words: int = 2,
    scale_exponent: int | Sequence[int] = 0,
    rounding: str = "rne",
    overflow: str = "inf",
    *,
    bits: bool = False,
    nan: float | None = None,
    subnormals: str = "keep",
    seed: int = 0,
) -> tuple[np.ndarray, ...]:
    """Return values split into words of a format.

    Word j is the residual r_j times ``2**s_j``, rounded to `fmt`. r_0 is x, and r_(j+1) = r_j - word_j 2**-s_j is computed by
    one subtraction in the type of x (float32 or float64). The module's docstring has the rules for overflow, NaN and zeros.

    Parameters
    ----------
    x : array_like
        Values as float32, float64, or a type that converts to one of them exactly (see :func:`tensorcore_models.encode`). They
        are not modified.
    fmt : str or Format
        Format of the words.
    words : int
        Number of words, at least 1.
    scale_exponent : int or sequence of int
        Exponents s_j, one for each word. An int s stands for s_j = j s; with two words, s is s_b in eq. 7 of Xue et al.
        (arXiv:2507.23387v4).
    rounding, nan, subnormals, seed
        See :func:`tensorcore_models.encode`; stochastic rounding of word j uses the seed ``seed + j``.
    overflow : {"inf", "saturate"}
        Whether a word that overflows becomes infinite (NaN in formats without infinity) or the largest finite number.
    bits : bool
        Whether to return encodings instead of values.

    Returns
    -------
    tuple of numpy.ndarray
        Words in the shape of `x`: values in the numpy or ml_dtypes type of `fmt` (float32 for tf32), or, with `bits`,
        encodings in its container type.

    Raises
    ------
    ValueError
        If a name is unknown, `words` is below 1, the number of exponents is wrong, a word has no encoding, or
        `fmt` has no numpy or ml_dtypes type and `bits` is false.
    TypeError
        If `x` is not an array of real numbers.

    Examples
    --------
    >>> import tensorcore_models as tcm
    >>> [word.item() for word in tcm.split(1 / 3, "fp16", scale_exponent=12)]
    [0.333251953125, 0.333251953125]
    """
    row, saturate = get_float_format(fmt), _check_overflow(overflow)
    words = checked_integer(words, "words")
    if words < 1:
        raise ValueError(f"words must be at least 1, got {words}")
    if not bits and row.dtype is None:
        raise ValueError(f"{row.name} has no numpy or ml_dtypes type: ask for encodings with bits=True")
    scales = word_scale_exponents(scale_exponent, words)
    source = source_array(x)
    fused = row == FORMATS["fp16"] and words == 2 and scales[0] == 0 and rounding == "rne" and subnormals == "keep"
    if fused and source.dtype == np.float32:
        return _as_words(list(_split_fp16(source, scales[1], saturate, nan)), row, bits)
    if row == FORMATS["bf16"] and rounding == "rne" and subnormals == "keep" and _bf16_by_halves(source, scales):
        return _as_words(_split_bf16(source, scales), row, bits)
    encodings, residual = [], source
    for j, s in enumerate(scales):
        scaled, left = _scaled_up(residual, s)
        encodings.append(encode(scaled, row, rounding, saturate, nan, subnormals, seed + j, scale_exponent=left))
        if j + 1 < words:
            residual = _residual(residual, encodings[-1], row, s)
    return _as_words(encodings, row, bits)


#: Largest scale for which the smallest bit of a bf16 word, 2^-133, is still an FP32 number after the scale is divided out.
_BF16_SCALES = 16


def _bf16_by_halves(x: np.ndarray, scales: Sequence[int]) -> bool:
    """Return whether the words of x are the rounded upper halves of FP32 numbers, because no scaled word can overflow."""
    if x.dtype != np.float32 or not all(0 <= s <= _BF16_SCALES for s in scales):
        return False
    largest = max(x.max(initial=0.0), -x.min(initial=0.0))
    return bool(largest < 2.0 ** (126 - max(scales)))  # False where there is a NaN


#: Number of elements that are split at a time, so that their residuals stay in the cache.
_BF16_PART = 1 << 14


def _split_bf16(x: np.ndarray, scales: Sequence[int]) -> list[np.ndarray]:
    """Return encodings of bf16 words of FP32 numbers, each the rounded upper half of the scaled residual."""
    words = [np.empty(x.shape, np.uint16) for _ in scales]
    flat, places = x.reshape(-1), [word.reshape(-1) for word in words]
    for start in range(0, flat.size, _BF16_PART):
        part = slice(start, start + _BF16_PART)
        left = flat[part]
        for s, place in zip(scales, places, strict=True):
            scale = np.float32(2.0**s)
            halves = (left * scale).view(np.uint32)
            halves += np.uint32(0x7FFF) + (halves >> np.uint32(16) & np.uint32(1))
            place[part] = halves >> np.uint32(16)
            halves &= np.uint32(0xFFFF0000)
            left = left - halves.view(np.float32) * (1 / scale)
    return words


def _scaled_up(x: np.ndarray, scale: int) -> tuple[np.ndarray, int]:
    """Return x times 2**scale and 0 if float32 can hold the products, which encodes faster; else return x and `scale`."""
    if x.dtype != np.float32 or not 0 < scale <= 126:
        return x, scale
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = x * np.float32(2.0**scale)
    return (x, scale) if np.isinf(scaled).any() else (scaled, 0)


def _residual(x: np.ndarray, word: np.ndarray, fmt: Format, scale: int) -> np.ndarray:
    """Return x - word * 2**-scale in the type of x, with the NaN rules of the module."""
    smallest, largest = fmt.emin - fmt.fraction_bits - scale, fmt.emax - scale
    in_float32 = x.dtype == np.float32 and smallest >= -149 and max(fmt.emax, largest) <= 127 and abs(scale) <= 126
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if in_float32:  # decoding is exact, and so is the scaling
            taken = decode(word, fmt, np.float32) * np.float32(2.0**-scale)
        else:
            taken = _scaled(decode(word, fmt), -scale).astype(x.dtype)
        difference = x - taken
    nan = np.isnan(difference)
    if nan.any():
        difference = np.where(nan, np.where(np.isnan(x), x, x.dtype.type(np.nan)), difference)
    return np.asarray(difference)


def _split_fp16(x: np.ndarray, scale: int, saturate: bool, nan: float | None) -> tuple[np.ndarray, np.ndarray]:
    high, low = np.empty(x.shape, np.uint16), np.empty(x.shape, np.uint16)
    fmt = FORMATS["fp16"]
    keep_nan = nan is None or np.isnan(nan)
    nan_code = fmt.nan_encoding() if nan is None or np.isnan(nan) else encode_exact(nan, fmt, saturate=saturate)
    parts = (x.reshape(-1), high.reshape(-1), low.reshape(-1))
    scale, isa = max(-1000, min(1000, scale)), isa_level()
    threads = threads_for_product(4 * x.size)  # about four operations per element
    for start in range(0, x.size, SLICE):  # signals are checked between slices
        s, h, w = (part[start : start + SLICE].view(np.uint8) for part in parts)
        split_kernel.split_fp16(s, h, w, scale, saturate, nan_code, keep_nan, isa, threads)
    return high, low


@default_fp_state
def split_fp16(
    x: Any, scale_exponent: int = 12, overflow: str = "inf", *, bits: bool = False, nan: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 values split into high and scaled low float16 words in one pass (eq. 7 of Xue et al., arXiv:2507.23387v4).

    The words have the same bits as those of ``split(x, "fp16", 2, scale_exponent, "rne", overflow)``.

    Parameters
    ----------
    x : array_like
        Values of type float32 or narrower. float64 is refused: round it to float32 first, or use :func:`split`.
    scale_exponent : int
        Exponent s_b of eq. 7 of Xue et al.
    overflow : {"inf", "saturate"}
        Whether a word that overflows becomes infinity or the largest finite number, as on the Ascend 910A.
    bits : bool
        Whether to return encodings (uint16) instead of float16 values.
    nan : float, optional
        Replacement of NaN (0.0 on the 910A); by default NaN is kept.

    Returns
    -------
    high, low : numpy.ndarray
        Words of type float16 (uint16 with `bits`), in the shape of `x`.

    Raises
    ------
    ValueError, TypeError
        If `x` is not float32 or narrower, `scale_exponent` not an integer, or `overflow` unknown.
    """
    source, saturate = source_array(x), _check_overflow(overflow)
    if source.dtype != np.float32:
        raise TypeError(
            f"split_fp16 splits float32 values, got {as_array(x).dtype}: round x with .astype(numpy.float32), "
            "or use split, which takes float64"
        )
    (_, scale) = word_scale_exponents(scale_exponent, 2)
    high, low = _as_words(list(_split_fp16(source, scale, saturate, nan)), FORMATS["fp16"], bits)
    return high, low


def _word_values(words: Sequence[Any], fmt: str | Format | None) -> list[np.ndarray]:
    if len(words) == 0:
        raise ValueError("join got an empty sequence of words: pass the result of split")
    if fmt is not None:
        return [decode(word, fmt) for word in words]
    return [source_array(word, f"word {j}").astype(np.float64) for j, word in enumerate(words)]


@default_fp_state
def join(words: Sequence[Any], scale_exponent: int | Sequence[int] = 0, fmt: str | Format | None = None) -> np.ndarray:
    """Return the exact sum of ``word_j * 2**-s_j`` as float64; infinite and NaN words follow the IEEE addition.

    Parameters
    ----------
    words : sequence of array_like
        Words, as :func:`split` returns them.
    scale_exponent : int or sequence of int
        Exponents that were given to :func:`split`.
    fmt : str or Format, optional
        Format of the words if they are encodings (``bits=True``).

    Raises
    ------
    ValueError
        If a sum has no exact float64 value (the words are too far apart), or the number of exponents is wrong.
    """
    values = _word_values(words, fmt)
    scales = word_scale_exponents(scale_exponent, len(values))
    total = np.zeros(np.broadcast_shapes(*(value.shape for value in values)))
    exact = np.ones(total.shape, bool)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for value, scale in zip(values, scales, strict=True):
            term = _scaled(value, -scale)
            exact &= (_scaled(term, scale) == value) | ~np.isfinite(value)
            new = total + term
            rest = new - total  # Knuth's two-sum: what the addition lost
            lost = (total - (new - rest)) + (term - rest)
            exact &= (lost == 0) | ~(np.isfinite(total) & np.isfinite(term))
            total = new
    if not exact.all():
        raise ValueError(
            "the words have no exact float64 sum, because they span more than 53 bits or exceed its exponent range: add the "
            "words as Fractions"
        )
    return total


def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    """Return values * 2**exponent, by a multiplication if float64 has the factor, which is several times faster than ldexp."""
    return values * 2.0**exponent if abs(exponent) <= 1000 else np.ldexp(values, exponent)


@default_fp_state
def bits_kept(
    x: Any, words: Sequence[Any], scale_exponent: int | Sequence[int] = 0, fmt: str | Format | None = None
) -> np.ndarray:
    """Return how many fraction bits of each value its words keep.

    Let E be the exponent of x, and err the difference of x and the sum of its words. The number is ``-log2(|err| / 2**E) - 1``.
    So b bits are kept if the error is at most half the value of the b-th bit after the leading bit. The number is limited to
    the range from 0 to the number of fraction bits of the type of x: 23 for float32 and narrower types, 52 for float64. If the
    sum of the words is exact, the number is this upper limit. Figure 2(b) of Xue et al. (arXiv:2507.23387v4) shows this
    number; it is 22 for two fp16 words if no word overflows or underflows.

    Parameters
    ----------
    x : array_like
        Values that were split.
    words, scale_exponent, fmt
        See :func:`join`.

    Returns
    -------
    numpy.ndarray
        Numbers of bits as float64; 0 where a word of a finite value is not finite, NaN where x is not finite.
    """
    source = source_array(x)
    cap = 23 if source.dtype == np.float32 else 52
    values = _word_values(words, fmt)
    error = source.astype(np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        for value, scale in zip(values, word_scale_exponents(scale_exponent, len(values)), strict=True):
            error = error - _scaled(value, -scale)
        exponent = np.frexp(source)[1] - 1
        bits = exponent - np.log2(np.abs(error)) - 1.0
    bits = np.where(error == 0, cap, np.clip(np.where(np.isfinite(error), bits, 0.0), 0.0, cap))
    return np.where(np.isfinite(source), bits, np.nan)
