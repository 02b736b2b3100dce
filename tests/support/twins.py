"""Kernel against reference: both compute the same matrices of encodings and must agree bit for bit."""

from dataclasses import dataclass

import numpy as np
from random_encodings import STYLES, encodings, random_bits

from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import Accumulator
from tensorcore_models.formats import get_format
from tensorcore_models.machine import instruction_sets as isa


@dataclass(frozen=True)
class Unit:
    """An accumulator with formats: as much of an engine as kernels and reference look at."""

    accumulator: Accumulator
    a_format: object
    b_format: object
    c_format: object = "fp32"
    d_format: object = "fp32"
    scale_format: object = None
    block_size: int | None = None

    @property
    def formats(self):
        return tuple(get_format(f) for f in (self.a_format, self.b_format, self.c_format, self.d_format))


def operands(rng: np.random.Generator, unit, m: int, k: int, n: int, style: str) -> tuple:
    """a, b, c and scales for one product, in one style of encodings; c often as large as the products."""
    a_format, b_format, c_format, _ = unit.formats
    a = encodings(rng, a_format, (m, k), style)
    b_style = "bits" if style == "cancelling" and rng.random() < 0.2 else style
    b = encodings(rng, b_format, (n, k), b_style)
    if style == "cancelling":  # b alike in both halves, so that products cancel
        half = k // 2
        b[:, half : 2 * half] = b[:, :half]
    c = encodings(rng, c_format, (m, n), {"cancelling": "clustered", "underflow": "subnormal"}.get(style, style))
    if rng.random() < 0.3:
        c = np.zeros_like(c)
    scales = (None, None)
    if unit.scale_format is not None:
        fmt, blocks = get_format(unit.scale_format), -(-k // unit.block_size)
        scales = (_scales(rng, fmt, (m, blocks), style), _scales(rng, fmt, (blocks, n), style))
    return a, b.T, c, *scales


def _scales(rng, fmt, shape, style: str) -> np.ndarray:
    bits = random_bits(rng, fmt, shape)
    if style in ("bits", "specials"):
        return bits
    spread = 1 << max(fmt.exponent_bits + fmt.fraction_bits - 4, 0)
    middle = fmt.bias << fmt.fraction_bits
    return (middle + rng.integers(-spread // 2, spread // 2 + 1, shape)).astype(fmt.container)


def assert_twins(unit, rng: np.random.Generator, dots: int, ks, styles=STYLES) -> None:
    """Compare every instruction set's kernel and the reference on about `dots` dot products, over styles and lengths."""
    done = 0
    while done < dots:
        style, k = str(rng.choice(styles)), int(rng.choice(ks))
        m, n = int(rng.integers(1, 6)), int(rng.integers(1, 21))
        args = operands(rng, unit, m, k, n, style)
        expected = reference.mma_bits(unit, *args)
        for level in isa.available_isas():
            assert_same(unit, on_isa(level, unit, args), expected, args, f"{style} on {level}")
        done += m * n


def on_isa(level: str, unit, args: tuple) -> np.ndarray:
    """The product by the kernels of one instruction set."""
    isa.set_isa(level)
    try:
        return kernels.matrix_bits(unit, *args)
    finally:
        isa.set_isa(None)


def assert_same(unit, got: np.ndarray, expected: np.ndarray, args: tuple, style: str = "") -> None:
    """Bits agree; else say which element of what."""
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if not np.array_equal(got, expected):
        i, j = (int(x[0]) for x in np.nonzero(got != expected))
        a, b, c, *scales = args
        raise AssertionError(
            f"{unit}, {style}: element ({i}, {j}) is {int(got[i, j]):#x}, the reference has {int(expected[i, j]):#x}; "
            f"a {[hex(x) for x in a[i]]}, b {[hex(x) for x in b[:, j]]}, c {int(c[i, j]):#x}, "
            f"scales {[None if s is None else s.tolist() for s in scales]}"
        )
