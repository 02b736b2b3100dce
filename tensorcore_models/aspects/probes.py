"""Builds probe vectors: exact values of products, addend and result, encoded in the formats of a row.

The functions add vectors that several families share. In their names q is the quantum of the alignment, which is 2^-F if the
largest exponent is 0. With R fraction bits of the result, u = 2^(2-R) is the unit in the last place of a result in [4, 8).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from ..formats import get_float_format
from .outcomes import OUTCOMES, TAILS
from .values import ONE, SCALES, Product, Unreachable, encode_value, power, product_bits, reaches


class ProbeVector(NamedTuple):
    """`ProbeVector` is a dot product with its predicted result, as encodings; all block scales are 1."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    expected: int


@dataclass
class Builder:
    """`Builder` collects the vectors of a row, each at the scale nearest to 1 at which the formats have all its numbers."""

    row: Any
    vectors: list[ProbeVector] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)

    @property
    def spec(self) -> Any:
        """Return the accumulator of the row."""
        return self.row.accumulator

    @property
    def fraction_bits(self) -> int:
        """Return the number of fraction bits of a result."""
        limit = getattr(self.spec, "output_fraction_bits", None)
        bits = get_float_format(self.row.d_format).fraction_bits
        return bits if limit is None else min(bits, limit)

    def add(
        self,
        name: str,
        products: Mapping[int, Product],
        c: Fraction | int,
        expected: Fraction | int,
        smallest: Fraction | None = None,
        scales: tuple[int, ...] = SCALES,
    ) -> None:
        """Add a vector at the first of the `scales` (exponents of two) at which the formats have all its numbers.

        If there is no such scale, the name is added to `unreachable`. A wrong unit would return `smallest`, so the result
        format must have this number, too.
        """
        for scale in scales:
            try:
                vector = self._encoded(name, products, Fraction(c), Fraction(expected), smallest, scale)
            except Unreachable:
                continue
            self.vectors.append(vector)
            return
        self.unreachable.append(name)

    def _encoded(self, name, products, c, expected, smallest, scale) -> ProbeVector:
        a_format, b_format, c_format, d_format = self.row.formats
        if smallest is not None:
            encode_value(smallest * power(scale), d_format)
        a, b = [0] * self.row.k, [0] * self.row.k
        largest = max((abs(v) for v in products.values() if isinstance(v, Fraction)), default=Fraction(0))
        for place, product in products.items():
            a[place], b[place] = product_bits(product, scale, a_format, b_format)
            if product == largest and abs(largest) >= abs(c):
                self._require_normal(a[place], b[place])
        result = encode_value(expected * power(scale), d_format)
        return ProbeVector(name, tuple(a), tuple(b), encode_value(c * power(scale), c_format), result)

    def _require_normal(self, a: int, b: int) -> None:
        """Raise Unreachable for a subnormal operand, because the largest product must be aligned by its value's exponent."""
        for bits, fmt in zip((a, b), self.row.formats[:2], strict=True):
            _, _, significand, exponent = fmt.decode_exact(bits)
            if significand.bit_length() - 1 + exponent < fmt.emin:
                raise Unreachable("subnormal operand in the largest product")

    @property
    def product_span(self) -> int:
        """Return the number of binades between the largest product that is a power of two and the smallest product."""
        a, b = self.row.formats[:2]
        top = a.emax + b.emax
        while not reaches(power(top), a, b):
            top -= 1
        return top - (a.quantum_exponent + b.quantum_exponent)


def kept_bits(build: Builder, pair: tuple[int, ...], fraction_bits: int, tiny: int | None) -> None:
    """Add P4, cancellation: in 1 - 1 + x, x = 2^-F is kept and x = 2^-(F+1) is lost; `tiny` is the place of x, None for c."""
    what = "c" if tiny is None else "product"
    for distance, kept in ((fraction_bits, True), (fraction_bits + 1, False)):
        small = power(-distance)
        products = {pair[0]: ONE, pair[1]: -ONE, **({} if tiny is None else {tiny: small})}
        build.add(
            f"1 - 1 + 2^-{distance} as {what}: {'kept' if kept else 'lost'}",
            products, small if tiny is None else Fraction(0), small if kept else Fraction(0), smallest=small,
        )  # fmt: skip


def alignment_rounding(
    build: Builder, pair: tuple[int, ...], rounding: str, fraction_bits: int, tiny: int | None
) -> None:
    """Add P5, 1 - 1 + t q for fractions t of the quantum q."""
    q = power(-fraction_bits)
    for t in TAILS:
        products = {pair[0]: ONE, pair[1]: -ONE, **({} if tiny is None else {tiny: t * q})}
        build.add(
            f"1 - 1 + {t} q at the alignment",
            products, t * q if tiny is None else Fraction(0), OUTCOMES[rounding][t] * q, smallest=q / 2,
        )  # fmt: skip


def output_rounding(build: Builder, places: tuple[int, ...], rounding: str, *, use_c: bool = True) -> None:
    """Add P8, 3 + (1 + t u) = 4 + t u, where 1 + t u is c if its format has it, else a fourth product 1 and a fifth t u."""
    u = power(2 - build.fraction_bits)
    fits = build.row.formats[2].fraction_bits >= build.fraction_bits
    for t in TAILS:
        sign = -1 if t < 0 else 1
        expected = sign * 4 + OUTCOMES[rounding][t] * u
        products = {place: Fraction(sign) for place in places[:3]}
        name = f"{sign * 4} + {t} u in the output"
        if use_c and fits:
            build.add(name, products, sign + t * u, expected, smallest=u)
        elif use_c:
            build.add(name, {**products, places[3]: t * u}, Fraction(sign), expected, smallest=u)
        else:
            products[places[3]] = Fraction(sign)
            build.add(name, {**products, places[4]: t * u}, Fraction(0), expected, smallest=u)


def single_rounding(build: Builder, place: int, rounding: str) -> None:
    """Add sums of c = 1 and a product t u, which show the rounding; u is the unit in the last place of 1."""
    u = power(-build.fraction_bits)
    for t in TAILS:
        sign = -1 if t < 0 else 1
        expected = sign + OUTCOMES[rounding][t] * u
        build.add(f"{sign} + {t} u in the output", {place: t * u}, Fraction(sign), expected, smallest=u)


def terms_by_cancellation(build: Builder, terms: int, fraction_bits: int, partners: tuple[int, ...]) -> None:
    """Add P3: X at 0, -X at j, and y elsewhere, which survives only in the steps after that in which X and -X meet."""
    k = build.row.k
    gap = fraction_bits + k.bit_length() + 2
    for j in (p for p in partners if p < k):
        survivors = k - (j // terms + 1) * terms
        products = {i: power(-gap) for i in range(k)} | {0: ONE, j: -ONE}
        build.add(
            f"X at 0, -X at {j}: {survivors} of {k} small addends survive",
            products, power(-gap), survivors * power(-gap), smallest=power(-gap),
        )  # fmt: skip


def terms_by_rounding(build: Builder, terms: int, rounding: str) -> None:
    """Add P11, two products of half a unit of c: they change the result in one operation, but not in two."""
    half = power(-build.fraction_bits - 1)
    up = 2 * half
    build.add(
        f"c = 1 and half a unit at 0 and at {terms // 2}: one operation of {terms} sees a whole unit",
        {0: half, terms // 2: half}, ONE, ONE + up, smallest=up,
    )  # fmt: skip
    if terms < build.row.k and rounding in ("rz", "rne"):
        name = f"c = 1 and half a unit at 0 and at {terms}: two operations lose both"
        build.add(name, {0: half, terms: half}, ONE, ONE, smallest=up)


def products_as_they_are(build: Builder, places: tuple[int, ...], fraction_bits: int, *, use_c: bool) -> None:
    """Add P6, 1.5^2 - 1.5^2 + q, which is q if products are not normalised, because 2.25 then has exponent 0."""
    q, square = power(-fraction_bits), (Fraction(3, 2), Fraction(3, 2))
    products: dict[int, Product] = {places[0]: square, places[1]: (-square[0], square[1])}
    if not use_c:
        products[places[2]] = q
    build.add("1.5^2 - 1.5^2 + q: products are not normalised", products, q if use_c else Fraction(0), q, smallest=q)
