"""What a published test of matrix units is: its addends, and what its results are taken to mean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ..dots import Product


class Setting(NamedTuple):
    """What a test knows of the unit: formats and length, and what earlier tests of its suite found.

    Attributes
    ----------
    precision : int
        P, of the result.
    operand_precision : int
        p, the smaller one of the operands.
    length : int
        Products of one dot product.
    result : str
        Name of the result's format.
    found : dict of str to str
        Verdicts so far.
    """

    precision: int
    operand_precision: int
    length: int
    result: str
    found: Mapping[str, str]

    @property
    def fraction_bits(self) -> int:
        """R."""
        return self.precision - 1


class Input(NamedTuple):
    """One dot product: products by position, and c."""

    products: Mapping[int, Product]
    c: Fraction = Fraction(0)
    scaled: bool = True


class Truth(NamedTuple):
    """Parameters of a fused unit, from its specification: what a verdict is compared with.

    Attributes
    ----------
    extra : int
        neab, fraction bits kept at the alignment beyond the result's.
    terms : int
    rounding, alignment : str
        Of the result, and at the alignment.
    normalised : bool
        Whether products are normalised.
    """

    extra: int
    terms: int
    rounding: str
    alignment: str
    normalised: bool


Results = Sequence[Fraction | None]


@dataclass(frozen=True)
class PublishedTest:
    """A published test.

    Parameters
    ----------
    name, feature, source : str
        What it is called, what it asks, and where it is published.
    inputs : callable
        The dot products, for a setting.
    verdict : callable
        What the results mean, for a setting.
    expected : callable
        The verdict that a unit deserves.
    valid : callable
        The units on which the test gives that verdict.
    needs : int
        Products that it takes.
    """

    name: str
    feature: str
    source: str
    inputs: Callable[[Setting], Sequence[Input]]
    verdict: Callable[[Setting, Results], str]
    expected: Callable[[Setting, Truth], str]
    valid: Callable[[Setting, Truth], bool] = lambda s, t: True
    needs: int = 1
