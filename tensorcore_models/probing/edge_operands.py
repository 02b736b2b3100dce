"""Draws operands at the edges where fast kernels change their way of computing; :mod:`.edges` compares kernels on them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._kernels.narrow import narrow
from ..formats import Format, IntegerFormat, get_float_format
from ..formats.rounding import encode
from ..kernels.lowering import Lowered
from .random_operands import DrawnOperands, of_exponents

#: Edges at which products are drawn; each product also has some properties of the other edges.
EDGES = ("windows", "range", "largest sums", "addends", "pruned", "pairs of rows", "cancelling", "specials", "tails")

#: Sizes at which panels, blocks of rows and blocks of k end (block_sizes.h and the headers of the families).
SIZES = (1, 2, 4, 6, 8, 16, 32, 48, 64, 96, 128)
LENGTHS = (*SIZES, 256, 512)
#: Most multiply-adds of a product.
_LARGEST = 1 << 16
#: Shifts of a window: every shift that tf32 and bf16 can have.
_SHIFTS = range(-111, 113)
_LONG = (2000, 30000)  # lengths that are packed in several slices of k


def draw(rng: np.random.Generator, low: Lowered, edge: str, turn: int = 0, shape: tuple | None = None) -> DrawnOperands:
    """Return a product at one of :data:`EDGES`.

    Parameters
    ----------
    rng : numpy.random.Generator
        Generator of the random numbers.
    low : Lowered
        Unit for which the product is drawn.
    edge : str
        One of :data:`EDGES`.
    turn : int
        Number of the product. At the edge "windows", successive turns take all shifts; every fourth turn takes a special shift.
    shape : tuple of int, optional
        m, n and k; by default drawn around the sizes at which kernels change.

    Returns
    -------
    DrawnOperands
        Encodings in the containers of the unit's formats; A and B with strides of several kinds.
    """
    m, n, k = shape or _shape(rng, low, edge)
    if isinstance(low.a_format, IntegerFormat):
        a, b = _integers(rng, low.a_format, (m, k)), _integers(rng, low.b_format, (k, n))
        c = _integers(rng, low.c_format, (m, n))
    else:
        a, b, top = _factors(rng, low, (m, k), (k, n), edge, turn)
        c = _addends(rng, low, (m, n), top, edge)
    for name, change in _CHANGES.items():
        if name == edge or rng.random() < 0.3:
            change(rng, low, a, b)
    scales: tuple = (None, None)
    if low.scale_format is not None:
        blocks = -(-k // (low.block_size or k))
        scales = _scales(rng, low.scale_format, (m, blocks)), _scales(rng, low.scale_format, (blocks, n))
    return DrawnOperands(_laid_out(rng, a), _laid_out(rng, b), c, *scales)


def _shape(rng: np.random.Generator, low: Lowered, edge: str) -> tuple[int, int, int]:
    """Return m, n and k near sizes where kernels change; some k are so long that they are cut into slices."""
    if edge == "tails" and rng.random() < 0.1:
        return 1, int(rng.integers(1, 3)), int(rng.integers(*_LONG))
    step = low.accumulator.terms_per_step
    m, n = (max(1, int(rng.choice(SIZES) + rng.integers(-1, 2))) for _ in range(2))
    k = int(rng.choice(LENGTHS) if rng.random() < 0.5 else step * rng.integers(1, 5)) + int(rng.integers(-1, 2))
    k = max(1, min(k, _LARGEST // 8))
    n = max(1, min(n, _LARGEST // k))
    return max(1, min(m, _LARGEST // (k * n))), n, k


def _integers(rng: np.random.Generator, fmt: Any, shape: tuple) -> np.ndarray:
    """Return random integers, or the ends of the range, or one number everywhere."""
    mask = (1 << fmt.bits) - 1
    ends = np.array([fmt.minimum & mask, fmt.maximum, 0, 1, mask], np.uint64)
    bits = rng.integers(0, mask, shape, np.uint64, endpoint=True)
    kind = rng.integers(4)
    if kind == 0:
        bits = rng.choice(ends, shape)
    elif kind == 1:
        bits = np.full(shape, rng.choice(ends[:2]))
    return bits.astype(fmt.container)


def _factors(rng, low: Lowered, a_shape, b_shape, edge: str, turn: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return A and B whose exponents lie where the edge needs them, and about the largest exponent of a product."""
    kinds = ("windows", "range", "largest sums", "near", "any")
    kind = edge if edge in kinds else str(rng.choice(kinds))
    assert low.floating is not None
    formats = low.floating[:2]
    if kind == "any":
        a, b = (
            rng.integers(0, (1 << f.bits) - 1, s, np.uint64, endpoint=True).astype(f.container)
            for f, s in zip(formats, (a_shape, b_shape), strict=True)
        )
        return a, b, 0
    spans = _RANGES[kind](rng, low, turn)
    a, b = (
        _within(rng, fmt, shape, *span) for fmt, shape, span in zip(formats, (a_shape, b_shape), spans, strict=True)
    )
    if kind == "windows":  # each shift beside a zero
        for x, fmt in zip((a, b), formats, strict=True):
            x.flat[rng.integers(x.size)] = rng.choice([0, _sign(fmt)])
    if kind == "largest sums":
        a, b = (x | f.container.type(_fraction(f)) for x, f in zip((a, b), formats, strict=True))
        if rng.random() < 0.6:  # all of one sign
            a, b = (x & f.container.type(f.magnitude_mask) for x, f in zip((a, b), formats, strict=True))
    return a, b, spans[0][1] + spans[1][1]


def _fraction(fmt: Format) -> int:
    """Return a fraction of ones, without the last one if all ones would be a NaN."""
    ones = (1 << fmt.fraction_bits) - 1
    return (ones if fmt.specials != "fn" else ones & ~1) << fmt.padding_bits


def _windows(rng, low: Lowered, turn: int) -> tuple[tuple[int, int], ...]:
    """Return ranges of exponents that fill a window exactly or miss it by one, with shifts up to and beyond the largest.

    At every fourth turn, the power of two that stands for a zero of A would be infinite. A is taken as integers or as
    fractions, unscaled or times 2^-33.
    """
    assert low.floating is not None
    fmt, most, (fourth, rest) = low.floating[0], narrow.SHIFT, divmod(turn, 4)
    both = int(rng.choice([0, 1, -1, most, -most, most - 1, 1 - most, most + 1, -most - 1, rng.integers(-most, most)]))
    if rest == 0:
        shift = fmt.emin + 128 - (0, fmt.fraction_bits)[fourth // 2 % 2] - (0, 33)[fourth % 2]
        ends = [[s + narrow.LEAST, s + narrow.MOST] for s in (shift, -shift)]
    else:
        shift = _SHIFTS[(turn - 1 - fourth) * 83 % len(_SHIFTS)]
        shifts = (shift, both - shift) if rng.random() < 0.5 else (both - shift, shift)
        ends = [[s + narrow.LEAST, s + narrow.MOST] for s in shifts]
        if rng.random() < 0.15:
            ends[rng.integers(2)][rng.integers(2)] += int(rng.choice([-1, 1]))
    if rng.random() < 0.3:
        one = ends[rng.integers(2)]
        one[0] += int(rng.integers(0, 32))
    return tuple((min(e), max(e)) for e in ends)


def _range(rng, low: Lowered, turn: int) -> tuple[tuple[int, int], ...]:
    """Return exponents of products near the smallest and largest numbers of the result, and where lanes switch to another
    method."""
    assert low.floating is not None
    a, b, _, d = low.floating
    fraction = getattr(low.accumulator, "fraction_bits", None) or 24
    marks = (d.quantum_exponent, d.emin, d.emin + fraction, d.quantum_exponent + fraction, 120, d.emax, -30, -68)
    target = int(rng.choice(marks)) + int(rng.integers(-2, 3))
    first = int(np.clip(target // 2 + rng.integers(-20, 21), a.emin - 2, a.emax))
    second = int(np.clip(target - first, b.emin - 2, b.emax))
    wide = int(rng.choice([0, 1, 3, 12, 12, 40]))
    return (first - wide, first), (second - wide, second)


def _near(rng, low: Lowered, turn: int) -> tuple[tuple[int, int], ...]:
    wide = rng.integers(0, 14, 2)
    return (-int(wide[0]), 1), (-int(wide[1]), 1)


def _largest(rng, low: Lowered, turn: int) -> tuple[tuple[int, int], ...]:
    """Return one exponent for each operand, for sums of products of the largest significands."""
    assert low.floating is not None
    tops = [int(rng.integers(max(f.emin, -40), min(f.emax, 40) + 1)) for f in low.floating[:2]]
    return (tops[0], tops[0]), (tops[1], tops[1])


_RANGES: dict[str, Callable] = {"windows": _windows, "range": _range, "near": _near, "largest sums": _largest}


def _within(rng, fmt: Format, shape: tuple, low: int, high: int) -> np.ndarray:
    """Return numbers from 2^low to below 2^(high + 1) that include both ends; half of the time most numbers lie at the ends."""
    exponents = rng.integers(low, high + 1, shape)
    if rng.random() < 0.5:
        exponents = np.where(rng.random(shape) < 0.7, rng.choice([low, high], shape), exponents)
    exponents.flat[rng.integers(0, exponents.size, 2)] = low, high
    x = of_exponents(fmt, exponents + fmt.bias, rng)
    if fmt.signed and rng.random() < 0.2:
        x &= fmt.container.type(fmt.magnitude_mask)
    return x


def _addends(rng, low: Lowered, shape: tuple, top: int, edge: str) -> np.ndarray:
    """Return zeros of one sign, addends at the limits of lanes, or addends as far from the products as they may be to count."""
    fmt = low.c_format
    assert isinstance(fmt, Format)
    kind = rng.integers(5) if edge != "addends" else 1 + rng.integers(4)
    if kind == 0 or (kind == 4 and edge != "addends") or (kind == 3 and edge == "range"):
        return np.full(shape, rng.choice(np.array([0, _sign(fmt)], fmt.container)))
    if kind == 1:
        bits = rng.integers(0, (1 << fmt.bits) - 1, shape, np.uint64, endpoint=True).astype(fmt.container)
        return np.where(rng.random(shape) < rng.choice([0.03, 1]), bits, fmt.container.type(0))
    factors, exponents = 1 + rng.random(shape), np.clip(top + rng.integers(-60, 34, shape), -1000, 1000)
    if kind == 2:
        limits = np.array([-149, -127, -126, -68, -narrow.ADDEND, narrow.ADDEND, 96, 100, 120, 127, min(top, 127), 0])
        few = rng.random(shape) < rng.choice([0.05, 0.9])
        factors = np.where(few, rng.choice(np.array([1 - 2.0**-24, 1, 1 + 2.0**-23, 0]), shape), 1)
        exponents = np.where(few, rng.choice(limits, shape), 0)
    with np.errstate(all="ignore"):
        values = np.ldexp(factors, exponents) * rng.choice([-1.0, 1.0], shape)
        return encode(values, fmt, "rz", saturate=True).astype(fmt.container)


def _scales(rng, name: Any, shape: tuple) -> np.ndarray:
    """Return block scales near 1, of any size, or at the ends of their encodings."""
    fmt = get_float_format(name)
    one, most = fmt.bias << fmt.fraction_bits, (1 << fmt.bits) - 1
    kind = rng.integers(4)
    if kind == 0:
        return rng.choice(np.array([0, 1, 2, most, most - 1, one], fmt.container), shape)
    if kind == 1:
        return rng.integers(0, most, shape, fmt.container, endpoint=True)
    return (one + rng.integers(-9, 10, shape)).astype(fmt.container)


# -- changes of operands ------------------------------------------------------------------------------------------------------
def _sign(fmt: Any) -> int:
    """Return the sign bit of a format, 0 if it has none."""
    return 0 if isinstance(fmt, IntegerFormat) or not fmt.signed else fmt.sign_bit


def _prune(rng, low: Lowered, a: np.ndarray, b: np.ndarray) -> None:
    """Set to zeros of either sign: any elements, two of four neighbours, whole operations, or whole rows."""
    for x, fmt, along in ((a, low.a_format, 1), (b, low.b_format, 0)):
        kind = rng.integers(5)
        gone = rng.random(x.shape) < rng.choice([0.02, 0.5, 0.97])
        place = np.arange(x.shape[along])
        if kind == 1:
            gone = np.expand_dims(place % 4 < 2, 1 - along)
        elif kind == 2:
            gone = np.expand_dims(place // low.accumulator.terms_per_step % 2 == rng.integers(2), 1 - along)
        elif kind == 3:
            gone = np.expand_dims(rng.random(x.shape[1 - along]) < 0.5, along)
        elif kind == 4:
            continue
        minus = _sign(fmt) if isinstance(fmt, Format) and fmt.has_negative_zero else 0
        zeros = rng.choice(np.array([0, minus], fmt.container), x.shape)
        x[...] = np.where(gone, zeros, x)


def _pair(rng, low: Lowered, a: np.ndarray, b: np.ndarray) -> None:
    """Make each second row of A and column of B equal to its neighbour, or its negative, or zero."""
    for x, fmt in ((a, low.a_format), (b.T, low.b_format)):
        other = x[1::2]
        kind = rng.integers(4)
        if kind == 0:
            other[...] = x[: 2 * len(other) : 2]
        elif kind == 1:
            other[...] = x[: 2 * len(other) : 2] ^ fmt.container.type(_sign(fmt))
        elif kind == 2:
            other[...] = 0


def _cancel(rng, low: Lowered, a: np.ndarray, b: np.ndarray) -> None:
    """Make the products of the second half of k, or of odd k, the negatives of the other products."""
    half = a.shape[1] // 2
    if half and rng.random() < 0.5:
        a[:, half : 2 * half], b[half : 2 * half] = (
            a[:, :half] ^ low.a_format.container.type(_sign(low.a_format)),
            b[:half],
        )
    elif half:
        a[:, 1 : 2 * half : 2] = a[:, : 2 * half : 2] ^ low.a_format.container.type(_sign(low.a_format))
        b[1 : 2 * half : 2] = b[: 2 * half : 2]


def _specials(rng, low: Lowered, a: np.ndarray, b: np.ndarray) -> None:
    """Add a few infinities, NaNs, subnormal numbers and largest numbers."""
    for x, fmt in ((a, low.a_format), (b, low.b_format)):
        if not isinstance(fmt, Format):
            continue
        codes = [
            fmt.max_bits,
            1 << fmt.padding_bits,
            *(code for code in (fmt.inf_bits, fmt.nan_bits) if code is not None),
        ]
        chosen = rng.integers(0, x.size, int(rng.integers(0, 4)))
        signs = rng.choice(np.array([0, _sign(fmt)], np.uint64), chosen.size)
        x.flat[chosen] = rng.choice(np.array(codes, np.uint64), chosen.size) | signs


_CHANGES: dict[str, Callable] = {
    "cancelling": _cancel,
    "pruned": _prune,
    "pairs of rows": _pair,
    "specials": _specials,
}


def _laid_out(rng, x: np.ndarray) -> np.ndarray:
    """Return the same encodings in memory by rows, by columns, or with gaps between the columns."""
    kind = rng.integers(3)
    if kind == 0:
        return x
    if kind == 1:
        return np.asfortranarray(x)
    apart = np.zeros((x.shape[0], 2 * x.shape[1] + 1), x.dtype)
    apart[:, 1::2] = x
    return apart[:, 1::2]
