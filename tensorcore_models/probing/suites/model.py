"""Defines a published test of matrix units (its addends and the meaning of its results), and parts that such tests share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...aspects.values import SCALES, Product, Unreachable, power, reaches
from ...formats import Format
from ...formats.exact_rounding import NEAREST


class Setting(NamedTuple):
    """`Setting` holds the facts of a unit that a test uses: formats of a, b, c and result, products of a dot product, verdicts
    so far.
    """

    formats: tuple[Format, Format, Format, Format]
    length: int
    found: Mapping[str, str]

    @property
    def precision(self) -> int:
        """Return P, the precision of the result."""
        return self.formats[3].precision

    @property
    def operand_precision(self) -> int:
        """Return p, the smaller precision of the operands."""
        return min(fmt.precision for fmt in self.formats[:2])

    @property
    def fraction_bits(self) -> int:
        """Return R, the number of fraction bits of the result."""
        return self.precision - 1

    def number(self, name: str) -> int:
        """Return the number that an earlier test found; raise Unreachable if it found none."""
        text = self.found.get(name, "")
        if not text.isdecimal():
            raise Unreachable(f"{name} is not known: {text or 'no verdict'}")
        return int(text)

    def reaches(self, value: Fraction) -> bool:
        """Return whether the operand formats can make a product of the given value."""
        return reaches(value, *self.formats[:2])

    def spans(self, binades: int) -> bool:
        """Return whether 2^j and 2^(j - binades) are products for some j, and the smaller one is a number of the result."""
        quantum = self.formats[3].quantum_exponent
        return any(
            j - binades >= quantum and self.reaches(power(j)) and self.reaches(power(j - binades)) for j in SCALES
        )


class Input(NamedTuple):
    """`Input` is one dot product: products by position, and c; with `scaled`, all may be multiplied by one power of two."""

    products: Mapping[int, Product]
    c: Fraction = Fraction(0)
    scaled: bool = True


class Truth(NamedTuple):
    """`Truth` holds the parameters of a fused unit, from its specification, with which a verdict is compared."""

    extra: int  # neab, fraction bits kept at the alignment beyond those of the result
    terms: int
    rounding: str  # rounding of the result
    alignment: str  # rounding at the alignment
    normalised: bool  # whether products are normalised
    result_bits: int  # fraction bits of the result, those of its format or fewer
    floor: int | None  # the alignment exponent never goes below this
    product_overflow: int | None  # products at or beyond 2 to this power are infinite


Results = Sequence[Fraction | None]


@dataclass(frozen=True)
class PublishedTest:
    """`PublishedTest` is a published test: its name, feature and source, and functions of a setting.

    `valid` tells whether the test gives a unit the verdict that the unit deserves. With `narrow`, it also covers units with
    fewer fraction bits than their result's format; otherwise the test does not apply to such units.
    """

    name: str
    feature: str
    source: str
    inputs: Callable[[Setting], Sequence[Input]]  # dot products; Unreachable: the test does not apply to these formats
    verdict: Callable[[Setting, Results], str]  # verdict from the results
    expected: Callable[[Setting, Truth], str]  # verdict that a unit deserves
    valid: Callable[[Setting, Truth], bool] = lambda s, t: True
    needs: int = 1  # number of products that the test takes
    narrow: bool = False
    ladder: bool = False  # whether dot products end where the formats end; otherwise the formats must have all of them

    def holds(self, setting: Setting, truth: Truth) -> bool:
        """Return whether the test gives a unit the verdict that it deserves."""
        fused = self.needs == 1 or truth.terms > 1
        return fused and (self.narrow or truth.result_bits == setting.fraction_bits) and self.valid(setting, truth)


# -- addends at positions, signs, and how few results become a verdict ---------------------------------------------------------
THREE_QUARTERS = Fraction(3, 4)


def places(*products: Product) -> dict[int, Product]:
    """Return products at the first positions."""
    return dict(enumerate(products))


def meaning(meanings: Mapping[str, Fraction | int]) -> Callable[[Results], str]:
    """Return a function from the result to its name in `meanings`, "neither" or "not finite"."""
    named = {Fraction(value): name for name, value in meanings.items()}
    return lambda results: "not finite" if results[0] is None else named.get(results[0], "neither")


def choose(**meanings: Fraction | int) -> Callable[[Results], str]:
    """Return a function as :func:`meaning` does; underscores in the names become spaces."""
    return meaning({name.replace("_", " "): value for name, value in meanings.items()})


def both_ways(product_sets: Sequence[Input]) -> list[Input]:
    """Return the inputs, followed by the same inputs with all signs flipped."""

    def negative(product: Product) -> Product:
        return -product if isinstance(product, Fraction) else (-product[0], product[1])

    flipped = [Input({k: negative(v) for k, v in x.products.items()}, -x.c, x.scaled) for x in product_sets]
    return [*product_sets, *flipped]


def rounding_by_signs(base: Fraction | int, unit: Fraction) -> Callable[[Results], str]:
    """Return a function that names the rounding of base + 3/4 unit and of its negative; the nearest modes give one name."""
    names: dict[tuple, str] = {(0, 0): "rz", (1, 1): "nearest", (1, 0): "ru", (0, 1): "rd"}

    def verdict(results: Results) -> str:
        if any(r is None for r in results):
            return "not finite"
        up, down = ((abs(r) - base) / unit for r in results if r is not None)
        return names.get((up, down), "neither")

    return verdict


def rounding_name(rounding: str) -> str:
    """Return a rounding's name in tests with three quarters, which cannot tell the nearest modes apart."""
    return "nearest" if rounding in NEAREST else rounding


def leading(results: Results, wanted: Sequence[Fraction | int] | Fraction | int) -> int:
    """Return the number of results, from the first on, that have the wanted values."""
    expected = wanted if isinstance(wanted, Sequence) else [wanted] * len(results)
    count = 0
    for value, right in zip(results, expected, strict=False):
        if value != right:
            break
        count += 1
    return count


def monotonic(s: Setting, results: Results) -> str:
    """Return the verdict on monotonicity of two results, the first of the smaller c."""
    first, second = results
    if first is None or second is None:
        return "not finite"
    return "not monotonic" if first > second else "no violation seen"


def truncates(t: Truth) -> bool:
    """Return whether alignment and result are rounded toward zero."""
    return t.rounding == t.alignment == "rz"
