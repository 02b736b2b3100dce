"""Encodings that make accumulators err: random bits, clustered exponents, cancellation, zeros, edges, specials.

"underflow": products and their sums lie around the smallest numbers of FP32, where formats reach that far."""

import numpy as np

import tensorcore_models as tcm
from tensorcore_models.formats import Format, IntegerFormat

STYLES = ("bits", "normal", "clustered", "cancelling", "sparse", "subnormal", "overflow", "underflow", "specials")


def width_mask(fmt) -> int:
    """Mask over the bits that an encoding may have."""
    return (1 << fmt.bits) - 1


def random_bits(rng: np.random.Generator, fmt, shape) -> np.ndarray:
    """Every encoding equally likely."""
    bits = rng.integers(0, 1 << 64, shape, np.uint64, endpoint=False)
    return (bits & np.uint64(width_mask(fmt))).astype(fmt.container)


def _with_exponents(rng, fmt: Format, shape, fields) -> np.ndarray:
    fraction = rng.integers(0, 1 << 63, shape, np.uint64) & np.uint64((1 << fmt.fraction_bits) - 1)
    fields = np.clip(fields, 0, (1 << fmt.exponent_bits) - 1).astype(np.uint64)
    bits = ((fields << np.uint64(fmt.fraction_bits)) | fraction) << np.uint64(fmt.padding_bits)
    sign = rng.integers(0, 2, shape).astype(np.uint64) * np.uint64(fmt.sign_bit)
    return (bits | sign).astype(fmt.container)


def _finite(fmt: Format, bits: np.ndarray) -> np.ndarray:
    """`bits` with specials replaced by zeros of the same array's first finite style: the largest finite number."""
    magnitude = bits.astype(np.uint64) & np.uint64(fmt.magnitude_mask)
    special = magnitude > np.uint64(fmt.max_bits)
    if fmt.specials == "fnuz":
        special |= (bits.astype(np.uint64) & np.uint64(fmt.sign_bit | fmt.magnitude_mask)) == np.uint64(fmt.sign_bit)
    return np.where(special, fmt.container.type(fmt.max_bits), bits).astype(fmt.container)


def encodings(rng: np.random.Generator, fmt, shape, style: str) -> np.ndarray:
    """Encodings of `fmt` in one of :data:`STYLES`; the last dimension is k for "cancelling"."""
    if isinstance(fmt, IntegerFormat) or style == "bits":
        return random_bits(rng, fmt, shape)
    middle, top = fmt.bias, (1 << fmt.exponent_bits) - 1
    if style == "normal" and fmt.dtype_name and fmt.bits <= 64:
        return _finite(fmt, tcm.encode(rng.standard_normal(shape), fmt, saturate=True).astype(fmt.container))
    if style in ("normal", "clustered"):
        return _finite(fmt, _with_exponents(rng, fmt, shape, middle + rng.integers(-2, 3, shape)))
    if style == "cancelling":
        bits = _finite(fmt, _with_exponents(rng, fmt, shape, middle + rng.integers(-12, 2, shape)))
        half = shape[-1] // 2
        bits[..., half : 2 * half] = bits[..., :half] ^ fmt.container.type(fmt.sign_bit)
        return _finite(fmt, bits)
    if style == "sparse":
        bits = _finite(fmt, random_bits(rng, fmt, shape))
        zero = rng.random(shape) < 0.7
        sign = fmt.sign_bit if fmt.has_negative_zero else 0
        zeros = rng.integers(0, 2, shape).astype(np.uint64) * np.uint64(sign)
        return np.where(zero, zeros.astype(fmt.container), bits).astype(fmt.container)
    if style == "subnormal":
        return _finite(fmt, _with_exponents(rng, fmt, shape, rng.integers(0, 3, shape)))
    if style == "underflow":
        lowest = max(fmt.bias - 77, 0)  # products of two from 2^-152 to 2^-122, or a format's smallest numbers
        return _finite(fmt, _with_exponents(rng, fmt, shape, lowest + rng.integers(0, 16, shape)))
    if style == "overflow":
        return _finite(fmt, _with_exponents(rng, fmt, shape, rng.choice([middle, top - 1, top], shape)))
    bits = _finite(fmt, random_bits(rng, fmt, shape))
    return np.where(rng.random(shape) < 0.04, _special(rng, fmt, shape), bits).astype(fmt.container)


def _special(rng, fmt: Format, shape) -> np.ndarray:
    codes = [0, fmt.max_bits]
    if fmt.has_inf:
        codes += [fmt.inf_bits, fmt.inf_bits | fmt.sign_bit, fmt.inf_bits | 1, fmt.inf_bits | (1 << fmt.padding_bits)]
    if fmt.has_nan:
        codes += [fmt.nan_bits, fmt.nan_bits | fmt.sign_bit]
    return rng.choice(np.array(codes, np.uint64), shape).astype(fmt.container)
