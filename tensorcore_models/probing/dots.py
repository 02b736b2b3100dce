"""Dot products of chosen exact values: encodings for a probe's addends, and their result on an engine.

A product v is made of two operands, v = a b, with its exponent shared between them (fasi-numerical-behavior builds
products with
b = 1, which the 8-bit formats cannot do: 2^-24 does not exist in e4m3). All probes are free of scale: every addend may be
multiplied by the same power of two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ..engines.engine import Engine
from ..formats import Format, get_float_format
from ..formats.exact_rounding import round_to_bits

Factors = tuple[Fraction, Fraction]
Product = Fraction | Factors


class Unreachable(ValueError):
    """A value that the operand formats cannot make."""


def power(exponent: int) -> Fraction:
    """2 to an integer power."""
    return Fraction(2) ** exponent


def leading_exponent(value: Fraction) -> int:
    """Exponent of the leading bit of a nonzero dyadic number."""
    return abs(value.numerator).bit_length() - value.denominator.bit_length()


@cache
def encode_value(value: Fraction, fmt: Format) -> int:
    """Encoding of a value that `fmt` holds exactly.

    Raises
    ------
    Unreachable
        If it does not.
    """
    exponent = -(value.denominator.bit_length() - 1)
    if value == 0:
        return 0
    try:
        bits = round_to_bits(value < 0, abs(value.numerator), exponent, fmt, "rz")
    except (OverflowError, ValueError) as error:
        raise Unreachable(f"{value} in {fmt.name}: {error}") from None
    if decode_value(bits, fmt) != value:
        raise Unreachable(f"{value} is not a number of {fmt.name}")
    return bits


def decode_value(bits: int, fmt: Format) -> Fraction | None:
    """Value of an encoding, None for infinities and NaN; -0 is 0."""
    kind, negative, significand, exponent = fmt.decode_exact(bits)
    if kind != "finite":
        return None
    value = significand * power(exponent)
    return -value if negative else value


@cache
def factors(value: Fraction, a_format: Format, b_format: Format) -> tuple[int, int]:
    """Encodings of two operands whose product is `value`: its significand in one, a power of two in the other.

    The exponent is shared evenly; normal operands are preferred, so that the product's exponent is that of its value.

    Raises
    ------
    Unreachable
        If no two numbers of the formats make it that way.
    """
    if value == 0:
        return 0, 0
    lead = leading_exponent(value)
    significand = value / power(lead)
    found = []
    for share in sorted(
        range(lead - b_format.emax, lead - b_format.quantum_exponent + 1), key=lambda i: abs(2 * i - lead)
    ):
        for swap in (False, True):
            a, b = (
                (power(share), significand * power(lead - share))
                if swap
                else (significand * power(share), power(lead - share))
            )
            try:
                pair = encode_value(a, a_format), encode_value(b, b_format)
            except Unreachable:
                continue
            if leading_exponent(a) >= a_format.emin and leading_exponent(b) >= b_format.emin:
                return pair
            found.append(pair)
    if not found:
        raise Unreachable(f"no product of {a_format.name} and {b_format.name} is {value}")
    return found[0]


def product_bits(product: Product, scale: int, a_format: Format, b_format: Format) -> tuple[int, int]:
    """Encodings of a product times 2**scale: a value, or two given factors (the power of two goes to either)."""
    if isinstance(product, Fraction):
        return factors(product * power(scale), a_format, b_format)
    x, y = product
    for share in sorted(range(-abs(scale), abs(scale) + 1), key=lambda i: abs(2 * i - scale)):
        try:
            return encode_value(x * power(share), a_format), encode_value(y * power(scale - share), b_format)
        except Unreachable:
            continue
    raise Unreachable(f"{x} * {y} * 2**{scale} in {a_format.name} and {b_format.name}")


@dataclass(frozen=True)
class Dots:
    """Runs dot products of `length` products on an engine.

    Parameters
    ----------
    engine : Engine
        The unit under test.
    length : int
        Products of a dot product; a multiple of the engine's k step.
    """

    engine: Engine
    length: int

    @property
    def formats(self) -> tuple[Format, Format, Format, Format]:
        """Formats of a, b, c, d."""
        return self.engine.formats

    def run_bits(self, a: Mapping[int, int], b: Mapping[int, int], c: int = 0) -> int:
        """Encoding of d for encodings at given positions; the rest is +0."""
        formats = self.formats
        x = np.zeros((1, self.length), formats[0].container)
        y = np.zeros((self.length, 1), formats[1].container)
        for place, bits in a.items():
            x[0, place] = bits
        for place, bits in b.items():
            y[place, 0] = bits
        z = np.full((1, 1), c, formats[2].container)
        scales: dict[str, Any] = {}
        if self.engine.scale_format is not None and self.engine.block_size is not None:
            fmt = get_float_format(self.engine.scale_format)
            blocks = -(-self.length // self.engine.block_size)
            one = encode_value(Fraction(1), fmt)
            scales = {
                "scale_a": np.full((1, blocks), one, fmt.container),
                "scale_b": np.full((blocks, 1), one, fmt.container),
            }
        with np.errstate(all="ignore"):  # a user's callable may be numpy, and specials are what is probed
            return int(self.engine.gemm_bits(x, y, z, **scales)[0, 0])

    def run(self, products: Mapping[int, Product], c: Fraction | int = 0, scale: int = 0) -> Fraction | None:
        """d / 2**scale for products at given positions and c, all times 2**scale; None if d is not finite.

        Raises
        ------
        Unreachable
            If the formats lack one of the addends.
        """
        a_format, b_format, c_format, d_format = self.formats
        pairs = {place: product_bits(p, scale, a_format, b_format) for place, p in products.items()}
        bits = self.run_bits(
            {place: pair[0] for place, pair in pairs.items()},
            {place: pair[1] for place, pair in pairs.items()},
            encode_value(Fraction(c) * power(scale), c_format),
        )
        value = decode_value(bits, d_format)
        return None if value is None else value / power(scale)

    def run_any_scale(
        self, products: Mapping[int, Product], c: Fraction | int = 0, smallest: Fraction | None = None
    ) -> Fraction | None:
        """As :meth:`run`, at the scale nearest to 1 at which the formats have all addends and d has `smallest`.

        Raises
        ------
        Unreachable
            If there is none.
        """
        last = Unreachable("no scale")
        for scale in SCALES:
            try:
                if smallest is not None:
                    encode_value(smallest * power(scale), self.formats[3])
                return self.run(products, c, scale)
            except Unreachable as error:
                last = error
        raise last


#: Scales that are tried, nearest to 1 first.
SCALES = tuple(sorted(range(-60, 61), key=lambda s: (abs(s), -s)))
