"""Changes one to three encodings of dot products at random, which makes new inputs that resemble the given ones."""

import numpy as np

from ...formats import Format
from ..interface import DotBatch, Interface
from .magnitudes import exponents, magnitudes, scaled, signed


def mutated(interface: Interface, batch: DotBatch, rng: np.random.Generator) -> DotBatch:
    """Return dot products with one to three random changes, finite numbers staying finite.

    One in eight is moved by a few binades.
    """
    a, b, c = batch.a.copy(), batch.b.copy(), batch.c.copy()
    scales = [s.copy() for s in batch.scales or ()]
    rows = np.arange(batch.size)
    for _ in range(int(rng.integers(1, 4))):
        where, other = rng.integers(0, interface.k, batch.size), rng.integers(0, interface.k, batch.size)
        mate = rng.permutation(batch.size)
        move = rng.integers(0, 8, batch.size)
        for values, fmt, kind in ((a, interface.formats[0], 0), (b, interface.formats[1], 1)):
            at = move == kind
            values[rows[at], where[at]] = _changed(values[rows[at], where[at]], fmt, rng)
        c[move == 2] = _changed(c[move == 2], interface.formats[2], rng)
        at = move == 3  # copy a product of the same dot product
        a[rows[at], where[at]], b[rows[at], where[at]] = a[rows[at], other[at]], b[rows[at], other[at]]
        at = move == 4  # copy a product of another dot product
        a[rows[at], where[at]], b[rows[at], where[at]] = a[mate[at], other[at]], b[mate[at], other[at]]
        at = move == 5
        a[rows[at], where[at]] = 0
        at = move == 6
        c[at] = np.where(rng.integers(0, 2, int(at.sum())) == 0, c[mate[at]], 0).astype(c.dtype)
        at = move == 7
        for values in scales:
            block = rng.integers(0, values.shape[1], batch.size)
            own = _changed(values[rows[at], block[at]], interface.scale_format, rng)
            values[rows[at], block[at]] = np.where(rng.integers(0, 2, own.size) == 0, values[mate[at], block[at]], own)
    changed = DotBatch(a, b, c, *scales)
    shift = np.where(rng.integers(0, 8, batch.size) == 0, rng.integers(-3, 4, batch.size), 0)
    return scaled(interface, changed, shift) if shift.any() else changed


def _changed(values: np.ndarray, fmt: Format, rng: np.random.Generator) -> np.ndarray:
    """Return encodings changed at random: one bit flipped, another exponent, the last places moved, a power of two, another
    sign."""
    size, step = values.size, fmt.fraction_bits + fmt.padding_bits
    magnitude = magnitudes(values, fmt)
    flipped = magnitude ^ (1 << rng.integers(fmt.padding_bits, max(step, fmt.padding_bits + 1), size))
    exponent = magnitude + (rng.integers(-4, 5, size) << step)
    last = magnitude + (rng.integers(-2, 3, size) << fmt.padding_bits)
    power = (np.clip(exponents(values, fmt) + rng.integers(-1, 2, size), fmt.emin, fmt.emax) + fmt.bias) << step
    chosen = np.choose(rng.integers(0, 4, size), [flipped, exponent, last, power])
    opposite = fmt.container.type(fmt.sign_bit if fmt.has_negative_zero else 0)
    sign = np.where(rng.integers(0, 5, size) == 0, values ^ opposite, values)
    return signed(chosen, sign, fmt)
