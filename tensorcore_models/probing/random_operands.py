"""Draws random operands of several kinds, to compare a unit with a model: encodings, so that every bit pattern can occur."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..formats import Format, IntegerFormat, get_float_format
from ..formats.rounding import encode
from .interface import Shaped


class DrawnOperands(NamedTuple):
    """`DrawnOperands` holds the encodings of a batch of matrices; scales are None for instructions without block scales."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None
    scale_b: np.ndarray | None

    def rows(self, part) -> "DrawnOperands":
        """Return some matrices of the batch."""
        scales = (None if x is None else x[part] for x in (self.scale_a, self.scale_b))
        return DrawnOperands(self.a[part], self.b[part], self.c[part], *scales)


Shape = tuple[int, ...]


def signed_zeros(fmt: Format, negative: np.ndarray) -> np.ndarray:
    """Return encodings of zeros, negative where asked for if the format has a negative zero.

    The sign bit is a number of the container's type, because numpy refuses FP64's as a Python integer.
    """
    sign = fmt.sign_bit if fmt.has_negative_zero else 0
    return np.where(negative, fmt.container.type(sign), fmt.container.type(0))


def _random_bits(fmt: Format | IntegerFormat, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return uniformly random encodings."""
    return rng.integers(0, 1 << fmt.bits, shape, dtype=fmt.container, endpoint=False)


def of_exponents(fmt: Format, exponent: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return numbers with the given exponent fields and random sign and fraction (never infinities or NaN)."""
    if not fmt.has_fields:
        sizes = np.ldexp(1 + rng.random(exponent.shape), exponent - fmt.bias)
        return encode(np.where(rng.integers(0, 2, exponent.shape) == 1, -sizes, sizes), fmt, "rz", saturate=True)
    top = (1 << fmt.exponent_bits) - (2 if fmt.specials == "ieee" else 1)
    field = np.clip(exponent, 0, top).astype(np.uint64)
    below = fmt.fraction_bits + fmt.padding_bits
    fraction = rng.integers(0, 1 << below, exponent.shape, dtype=np.uint64) if below else np.uint64(0)
    sign = rng.integers(0, 2, exponent.shape, dtype=np.uint64) << np.uint64(fmt.bits - 1)
    bits = field << np.uint64(below) | fraction | (sign if fmt.signed else np.uint64(0))
    bits = bits.astype(fmt.container)
    if fmt.specials in ("fn", "fnuz"):  # the NaN of these formats becomes zero
        read = bits & fmt.container.type(fmt.magnitude_mask) if fmt.specials == "fn" else bits
        bits = np.where(read == fmt.nan_bits, fmt.container.type(0), bits)
    return bits


def _normals(fmt, shape, rng):
    """Return standard normal values, without signs if the format has none."""
    values = rng.standard_normal(shape)
    return encode(values if fmt.signed else np.abs(values), fmt, "rne", saturate=True)


def _clustered(fmt, shape, rng):
    """Return numbers with exponents within a few binades of one centre for each matrix."""
    centre = rng.integers(1, (1 << fmt.exponent_bits) - 1, (shape[0], *(1,) * (len(shape) - 1)))
    return of_exponents(fmt, centre + rng.integers(-3, 4, shape), rng)


def _near_one(fmt, shape, rng):
    """Return numbers with exponents around that of 1, from wide to narrow."""
    return of_exponents(fmt, fmt.bias + rng.integers(-12, 13, shape), rng)


def _zeros(fmt, shape, rng):
    """Return zeros of either sign for two of three elements; the third has any exponent."""
    numbers = of_exponents(fmt, rng.integers(0, 1 << fmt.exponent_bits, shape), rng)
    zeros = signed_zeros(fmt, rng.integers(0, 2, shape) == 1)
    return np.where(rng.integers(0, 3, shape) > 0, zeros, numbers)


def _subnormals(fmt, shape, rng):
    """Return subnormal numbers for half of the elements.

    The others have any exponent in half of the matrices, small ones in the rest.
    """
    any_exponent = rng.integers(0, 1 << fmt.exponent_bits, shape)
    small = rng.integers(0, 4, shape)
    wide = rng.integers(0, 2, (shape[0], *(1,) * (len(shape) - 1))) == 1
    return of_exponents(fmt, np.where(rng.integers(0, 2, shape) == 1, 0, np.where(wide, any_exponent, small)), rng)


def _underflow(fmt, shape, rng):
    """Return small numbers and zeros, for c; A and B come from :func:`_underflowing_factors`."""
    numbers = of_exponents(fmt, rng.integers(0, 3, shape), rng)
    return np.where(rng.integers(0, 2, shape) == 1, fmt.container.type(0), numbers)


def _smallest_normal(fmt, shape, rng):
    """Return the smallest normal number and its neighbours, for c; A and B come from :func:`_underflowing_factors`."""
    below = (1 << fmt.fraction_bits) - 1
    bits = np.uint64(below) + rng.integers(0, 3, shape, dtype=np.uint64)
    sign = rng.integers(0, 2, shape, dtype=np.uint64) * np.uint64(fmt.sign_bit if fmt.signed else 0)
    return (bits << np.uint64(fmt.padding_bits) | sign).astype(fmt.container)


#: Kinds whose A and B are made together -> range of their products' exponents above the exponent of the result's last bit.
UNDERFLOWING = {"underflow": (-6, 8), "smallest_normal": (-6, 1)}


def _underflowing_factors(
    row: Shaped, kind: str, a_shape: Shape, b_shape: Shape, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Return A and B whose products lie within some binades of the result's smallest numbers, if their formats reach that
    far."""
    a_format, b_format, _, d_format = row.formats
    target = d_format.quantum_exponent + rng.integers(*UNDERFLOWING[kind], (a_shape[0], 1, 1))
    share = np.clip(target // 2, a_format.emin, a_format.emax)
    rest = np.clip(target - share, b_format.emin, b_format.emax)
    a = of_exponents(a_format, share + a_format.bias + rng.integers(-2, 3, a_shape), rng)
    return a, of_exponents(b_format, rest + b_format.bias + rng.integers(-2, 3, b_shape), rng)


def edge_encodings(fmt: Format) -> np.ndarray:
    """Return zeros, the ends of the subnormal and normal ranges, 1 and its neighbours, infinities and NaN, of both signs."""
    unit = 1 << fmt.padding_bits
    one = fmt.bias << (fmt.fraction_bits + fmt.padding_bits)
    min_normal = 1 << (fmt.fraction_bits + fmt.padding_bits)
    magnitudes = {0, unit, fmt.max_bits, fmt.max_bits - unit, *(bits for bits in (fmt.inf_bits, fmt.nan_bits) if bits)}
    magnitudes |= {min_normal - unit, min_normal, one - unit, one, one + unit}
    if fmt.has_inf:
        magnitudes |= {fmt.exponent_mask | unit, fmt.exponent_mask | fmt.magnitude_mask}
    if fmt.padding_bits:
        magnitudes |= {fmt.exponent_mask | 1, one | (unit - 1)}
    signed = {bits | fmt.sign_bit for bits in magnitudes} if fmt.signed else set()
    return np.array(sorted(magnitudes | signed), fmt.container)


def _edges(fmt, shape, rng):
    """Return edge encodings; special values are rare enough that most results are finite."""
    table = edge_encodings(fmt)
    finite = np.array([bits for bits in table if fmt.decode_exact(int(bits)).kind == "finite"], fmt.container)
    chosen = finite[rng.integers(0, len(finite), shape)]
    special = rng.integers(0, 64, shape) == 0
    return np.where(special, table[rng.integers(0, len(table), shape)], chosen)


#: Kinds of operands -> function that fills an array with encodings.
KINDS: dict[str, Callable[[Format, Shape, np.random.Generator], np.ndarray]] = {
    "random_bits": _random_bits,
    "normals": _normals,
    "clustered": _clustered,
    "cancellation": _near_one,
    "zeros": _zeros,
    "subnormals": _subnormals,
    "underflow": _underflow,
    "smallest_normal": _smallest_normal,
    "edges": _edges,
}


def _integers(fmt: IntegerFormat, kind: str, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return random integers; extremes for "edges", mostly zeros for "zeros"."""
    bits = _random_bits(fmt, shape, rng)
    mask = (1 << fmt.bits) - 1
    if kind == "edges":
        table = np.array([fmt.minimum & mask, fmt.maximum, 0, 1, mask], fmt.container)
        return table[rng.integers(0, len(table), shape)]
    return np.where(rng.integers(0, 3, shape) > 0, fmt.container.type(0), bits) if kind == "zeros" else bits


def _cancel(a: np.ndarray, b: np.ndarray, sign: int, rng: np.random.Generator) -> None:
    """Make most products of odd k the negatives of their left neighbours, in place."""
    pairs = a.shape[-1] // 2
    keep = rng.integers(0, 4, (a.shape[0], pairs)) > 0
    even, odd = np.arange(pairs) * 2, np.arange(pairs) * 2 + 1
    a[:, :, odd] = np.where(keep[:, None, :], a[:, :, even] ^ a.dtype.type(sign), a[:, :, odd])
    b[:, odd, :] = np.where(keep[:, :, None], b[:, even, :], b[:, odd, :])


def operands(row: Shaped, kind: str, count: int, rng: np.random.Generator) -> DrawnOperands:
    """Return a batch of `count` matrices for one instruction (or interface), of one of :data:`KINDS`; raise ValueError for
    others."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")

    def fill(fmt, *tail: int) -> np.ndarray:
        shape = (count, *tail)
        return _integers(fmt, kind, shape, rng) if isinstance(fmt, IntegerFormat) else KINDS[kind](fmt, shape, rng)

    a_format, b_format, c_format, _ = row.formats
    a, b, c = fill(a_format, row.m, row.k), fill(b_format, row.k, row.n), fill(c_format, row.m, row.n)
    if kind in UNDERFLOWING and not isinstance(a_format, IntegerFormat):
        a, b = _underflowing_factors(row, kind, a.shape, b.shape, rng)
    if kind == "cancellation":
        _cancel(a, b, 0 if isinstance(a_format, IntegerFormat) else a_format.sign_bit, rng)
    if row.scale_format is None:
        return DrawnOperands(a, b, c, None, None)
    scale, blocks = get_float_format(row.scale_format), row.scale_blocks
    centre = scale.bias << scale.fraction_bits
    spread = 1 << scale.bits if kind in ("random_bits", "edges") else 16

    def scales(*tail: int) -> np.ndarray:
        low = max(0, centre - spread // 2)
        high = min((1 << scale.bits) - 1, centre + spread // 2)
        return rng.integers(low, high, (count, *tail), dtype=scale.container, endpoint=True)

    return DrawnOperands(a, b, c, scales(row.m, blocks), scales(blocks, row.n))
