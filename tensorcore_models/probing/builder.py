"""Puts probe vectors together: exact values of products, addend and result as encodings of a row's formats."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, TypeVar

from ..accumulators import Accumulator
from ..engines.instruction import Instruction
from ..formats import get_float_format
from .dots import SCALES, Product, Unreachable, encode_value, factors, power, product_bits

ONE = Fraction(1)

Spec = TypeVar("Spec", bound=Accumulator)


class ProbeVector(NamedTuple):
    """One dot product with its predicted result.

    Attributes
    ----------
    name : str
        What it shows.
    a, b : tuple of int
        Encodings, k of each; scales, where there are any, are 1.
    c : int
        Encoding of the addend.
    expected : int
        Encoding of the result.
    """

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    expected: int


@dataclass
class Builder:
    """Collects the vectors of a row; each is put at the scale nearest to 1 at which the formats have all its numbers."""

    row: Instruction
    vectors: list[ProbeVector] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)

    @property
    def spec(self) -> Accumulator:
        """The row's accumulator."""
        return self.row.accumulator

    def spec_of(self, family: type[Spec]) -> Spec:
        """The row's accumulator, which must be of that family.

        Raises
        ------
        TypeError
            If it is of another one.
        """
        if not isinstance(self.spec, family):
            raise TypeError(f"{self.row} is a {type(self.spec).__name__}, expected a {family.__name__}")
        return self.spec

    @property
    def fraction_bits(self) -> int:
        """Fraction bits that the result has room for."""
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
    ) -> bool:
        """Add a vector.

        Parameters
        ----------
        name : str
            What it shows.
        products : mapping of position to product
            The products that are not zero.
        c, expected : Fraction
            Addend and result.
        smallest : Fraction, optional
            What a wrong unit would return; the result's format must be able to show it.
        scales : tuple of int
            Powers of two to try; (0,) for vectors about the ends of the exponent range.

        Returns
        -------
        bool
            Whether the formats have the vector at some scale.
        """
        for scale in scales:
            try:
                vector = self._encoded(name, products, Fraction(c), Fraction(expected), smallest, scale)
            except Unreachable:
                continue
            self.vectors.append(vector)
            return True
        self.unreachable.append(name)
        return False

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
        """The exponent of the largest product decides the alignment: it must be that of its value."""
        for bits, fmt in zip((a, b), self.row.formats[:2], strict=True):
            _, _, significand, exponent = fmt.decode_exact(bits)
            if significand.bit_length() - 1 + exponent < fmt.emin:
                raise Unreachable("subnormal operand in the largest product")

    def reaches(self, value: Fraction) -> bool:
        """Whether the operand formats make a product of that value."""
        try:
            factors(value, *self.row.formats[:2])
        except Unreachable:
            return False
        return True

    @property
    def product_span(self) -> int:
        """Binades between the largest product that is a power of two and the smallest product."""
        a, b = self.row.formats[:2]
        top = a.emax + b.emax
        while not self.reaches(power(top)):
            top -= 1
        return top - (a.quantum_exponent + b.quantum_exponent)
