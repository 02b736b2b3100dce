"""What a published test of matrix units is: its addends, and what its results are taken to mean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...aspects.values import SCALES, Product, Unreachable, power, reaches
from ...formats import Format


class Setting(NamedTuple):
    """What a test knows of the unit: formats of a, b, c and the result, products of one dot product, verdicts so far."""

    formats: tuple[Format, Format, Format, Format]
    length: int
    found: Mapping[str, str]

    @property
    def precision(self) -> int:
        """P, of the result."""
        return self.formats[3].precision

    @property
    def operand_precision(self) -> int:
        """p, the smaller one of the operands."""
        return min(fmt.precision for fmt in self.formats[:2])

    @property
    def fraction_bits(self) -> int:
        """R."""
        return self.precision - 1

    def number(self, name: str) -> int:
        """The number that an earlier test found; raises Unreachable if it found none."""
        text = self.found.get(name, "")
        if not text.isdecimal():
            raise Unreachable(f"{name} is not known: {text or 'no verdict'}")
        return int(text)

    def reaches(self, value: Fraction) -> bool:
        """Whether the operand formats make a product of that value."""
        return reaches(value, *self.formats[:2])

    def spans(self, binades: int) -> bool:
        """Whether some 2^j and 2^(j - binades) are products, the smaller one a result."""
        quantum = self.formats[3].quantum_exponent
        return any(
            j - binades >= quantum and self.reaches(power(j)) and self.reaches(power(j - binades)) for j in SCALES
        )


class Input(NamedTuple):
    """One dot product: products by position, and c; `scaled`: all may be multiplied by one power of two."""

    products: Mapping[int, Product]
    c: Fraction = Fraction(0)
    scaled: bool = True


class Truth(NamedTuple):
    """Parameters of a fused unit, from its specification: what a verdict is compared with."""

    extra: int  # neab, fraction bits kept at the alignment beyond the result's
    terms: int
    rounding: str  # of the result
    alignment: str  # rounding at the alignment
    normalised: bool  # whether products are normalised
    result_bits: int  # fraction bits of the result, those of its format or fewer
    floor: int | None  # the alignment exponent never goes below this
    product_overflow: int | None  # products at or beyond 2 to this power are infinite


Results = Sequence[Fraction | None]


@dataclass(frozen=True)
class PublishedTest:
    """A published test: what it is called, what it asks, where it is published, and functions of a setting.

    `valid` says on which units it gives the verdict that they deserve; with `narrow` that is about units with fewer fraction
    bits than their result's format, too, otherwise the test is for others only.
    """

    name: str
    feature: str
    source: str
    inputs: Callable[[Setting], Sequence[Input]]  # the dot products; Unreachable: the test is not for these formats
    verdict: Callable[[Setting, Results], str]  # what the results mean
    expected: Callable[[Setting, Truth], str]  # what a unit deserves
    valid: Callable[[Setting, Truth], bool] = lambda s, t: True
    needs: int = 1  # products that it takes
    narrow: bool = False
    ladder: bool = False  # dot products go on as far as the formats reach; else they must have all

    def holds(self, setting: Setting, truth: Truth) -> bool:
        """Whether the test gives a unit the verdict that it deserves."""
        return (self.narrow or truth.result_bits == setting.fraction_bits) and self.valid(setting, truth)
