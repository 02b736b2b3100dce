"""Builds dot products addend by addend, by exponent, sign and style of significand."""

import numpy as np

from ...formats import Format
from ...formats.rounding import encode
from ..interface import DotBatch, Interface


class Draft:
    """`Draft` is a batch of dot products under construction: addends are placed one by one by exponent, sign and style of
    significand.

    The exponent of a product is the sum of the exponents of a and b; it is divided between the two operands at random.
    """

    def __init__(self, interface: Interface, size: int, rng: np.random.Generator):
        self.interface, self.size, self.rng = interface, size, rng
        a, b, c, _ = interface.formats
        self.low, self.high = a.emin + b.emin, a.emax + b.emax
        #: Exponent of the product of each block's two scales, for which the operands of an addend compensate.
        self.shift = np.zeros((size, max(1, interface.scale_blocks)), int)
        self.held = np.zeros(self.shift.shape, bool)
        scale = interface.scale_format
        self.reach = (2 * scale.emin, 2 * scale.emax) if isinstance(scale, Format) else (0, 0)
        self.a = np.zeros((size, interface.k), a.container)
        self.b = np.zeros((size, interface.k), b.container)
        self.c = np.zeros(size, c.container)
        self.rows = np.arange(size)

    def number(self, fmt: Format, exponent: np.ndarray, negative: np.ndarray, style: np.ndarray) -> np.ndarray:
        """Return encodings with these exponents, clipped to the format's range, including subnormals.

        `style` gives the significand: 0 is 1, 1 has all fraction bits set, 2 is random, 3 is one and a half.
        """
        fraction_bits = fmt.fraction_bits
        full = (1 << fraction_bits) - 1
        half = 1 << (fraction_bits - 1) if fraction_bits else 0
        any_fraction = self.rng.integers(0, full + 1, exponent.shape, dtype=np.uint64)
        fraction = np.choose(style, [np.uint64(0), np.uint64(full), any_fraction, np.uint64(half)])
        if not fmt.has_fields:
            sizes = np.ldexp(1 + fraction / (full + 1), np.clip(exponent, fmt.quantum_exponent, fmt.emax))
            return encode(np.where(negative, -sizes, sizes), fmt, "rz", saturate=True)
        field = (np.clip(exponent, fmt.emin, fmt.emax) + fmt.bias).astype(np.uint64)
        below = np.clip(fmt.emin - exponent, 0, fraction_bits).astype(np.uint64)
        lead = np.uint64(1 << fraction_bits)
        bits = np.where(below > 0, (lead | fraction) >> below, field << np.uint64(fraction_bits) | fraction)
        bits = bits << np.uint64(fmt.padding_bits)
        limit = np.uint64(fmt.max_bits)
        bits = np.minimum(bits, limit) | np.where(negative, np.uint64(fmt.sign_bit), np.uint64(0))
        return bits.astype(fmt.container)

    def place(self, where: np.ndarray, exponent, negative, style=0) -> None:
        """Write an addend at position `where` of each dot product; position k means c."""
        k = self.interface.k
        a, b, c, _ = self.interface.formats
        exponent, negative, style = (np.broadcast_to(np.asarray(x), (self.size,)) for x in (exponent, negative, style))
        block = np.minimum(where, k - 1) // (self.interface.block_size or k)
        self._reach_for(block, exponent)
        self.held[self.rows, block] |= where < k
        product = exponent - self.shift[self.rows, block]
        share = product // 2 + self.rng.integers(-1, 2, self.size)
        subnormal = product < self.low
        a_low, b_low = (np.where(subnormal, fmt.quantum_exponent, fmt.emin) for fmt in (a, b))
        first = np.clip(share, np.maximum(a_low, product - b.emax), np.minimum(a.emax, product - b_low))
        x = self.number(a, first, negative, style)
        y = self.number(b, product - first, np.zeros(self.size, bool), style)
        at = where < k
        self.a[self.rows[at], where[at]], self.b[self.rows[at], where[at]] = x[at], y[at]
        self.c[~at] = self.number(c, exponent, negative, style)[~at]

    def exponents(self, low: int | None = None, high: int | None = None) -> np.ndarray:
        """Return random exponents of products: from -2 to 2 in half of the dot products, anywhere between the bounds in the
        others.
        """
        low, high = self.low if low is None else low, self.high if high is None else high
        anywhere = self.rng.integers(low, high + 1, self.size)
        near = np.clip(self.rng.integers(-2, 3, self.size), low, high)
        chosen = np.where(self.rng.integers(0, 2, self.size) == 1, near, anywhere)
        self.aim(chosen)
        return chosen

    def aim(self, exponent: np.ndarray) -> None:
        """Choose block scales with which products can have these exponents.

        In half of the dot products the scale is 1 if possible.
        """
        bare = (self.rng.integers(0, 2, self.size) == 1) & (exponent >= self.low) & (exponent <= self.high)
        within = np.where(bare, exponent, self.rng.integers(self.low, self.high + 1, self.size))
        self.shift[:] = np.clip(exponent - within, *self.reach)[:, None]

    def _reach_for(self, block: np.ndarray, exponent: np.ndarray) -> None:
        """Choose new scales for blocks without addends if the next addend needs others."""
        product = exponent - self.shift[self.rows, block]
        far = ~self.held[self.rows, block] & ((product < self.low) | (product > self.high))
        within = self.rng.integers(self.low, self.high + 1, self.size)
        self.shift[self.rows[far], block[far]] = np.clip(exponent - within, *self.reach)[far]

    def positions(self, count: int) -> np.ndarray:
        """Return `count` different positions (size, count), where k is c; in half of the dot products they are neighbours."""
        k = self.interface.k
        order = np.argsort(self.rng.random((self.size, k + 1)), axis=1)[:, :count]
        start = self.rng.integers(0, k + 1, (self.size, 1))
        near = (start + np.arange(count)) % (k + 1)
        near = self.rng.permuted(near, axis=1)
        return np.where(self.rng.integers(0, 2, (self.size, 1)) == 1, near, order)

    def sign(self) -> np.ndarray:
        """Return a random sign for each dot product (true: negative)."""
        return self.rng.integers(0, 2, self.size) == 1

    def done(self) -> DotBatch:
        """Return the finished dot products with their block scales, some of which are moved by a few binades or last places."""
        scale = self.interface.scale_format
        if not isinstance(scale, Format):
            return DotBatch(self.a, self.b, self.c)
        shape = (self.size, self.interface.scale_blocks)
        top = (1 << scale.exponent_bits + scale.fraction_bits) - 1
        share = np.clip(self.shift // 2 + self.rng.integers(-2, 3, shape), scale.emin, scale.emax)
        share = np.clip(share, self.shift - scale.emax, self.shift - scale.emin)
        chosen = []
        for exponent in (share, self.shift - share):
            one = (exponent + scale.bias) << scale.fraction_bits
            near = one + (self.rng.integers(-3, 4, shape) << scale.fraction_bits)
            wide = self.rng.integers(0, top + 1, shape)
            fraction = np.clip(one + self.rng.integers(-8, 9, shape), 0, top)
            kind = self.rng.integers(0, 6, (self.size, 1))
            bits = np.where(kind < 2, one, np.where(kind < 4, near, np.where(kind == 4, fraction, wide)))
            chosen.append(np.clip(bits, 0, top).astype(scale.container))
        return DotBatch(self.a, self.b, self.c, *chosen)
