"""What published tests share: addends at positions, signs, and how few results become a verdict."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from ...aspects.values import Product
from .model import Input, Results, Setting, Truth

THREE_QUARTERS = Fraction(3, 4)


def places(*products: Product) -> dict[int, Product]:
    """Products at the first positions."""
    return dict(enumerate(products))


def meaning(meanings: Mapping[str, Fraction | int]) -> Callable[[Results], str]:
    """What the one result means, each meaning given with its value."""
    named = {Fraction(value): name for name, value in meanings.items()}
    return lambda results: "not finite" if results[0] is None else named.get(results[0], "neither")


def choose(**meanings: Fraction | int) -> Callable[[Results], str]:
    """As :func:`meaning`; underscores are spaces."""
    return meaning({name.replace("_", " "): value for name, value in meanings.items()})


def both_ways(product_sets: Sequence[Input]) -> list[Input]:
    """Inputs with all signs changed, after the inputs themselves."""

    def negative(product: Product) -> Product:
        return -product if isinstance(product, Fraction) else (-product[0], product[1])

    flipped = [Input({k: negative(v) for k, v in x.products.items()}, -x.c, x.scaled) for x in product_sets]
    return [*product_sets, *flipped]


def rounding_by_signs(base: Fraction | int, unit: Fraction) -> Callable[[Results], str]:
    """Which rounding takes base + 3/4 unit, and its negative, up or down; nearest modes look alike."""
    names: dict[tuple, str] = {(0, 0): "rz", (1, 1): "nearest", (1, 0): "ru", (0, 1): "rd"}

    def verdict(results: Results) -> str:
        if any(r is None for r in results):
            return "not finite"
        up, down = ((abs(r) - base) / unit for r in results if r is not None)
        return names.get((up, down), "neither")

    return verdict


def rounding_name(rounding: str) -> str:
    """A rounding as tests with three quarters see it."""
    return "nearest" if rounding in ("rne", "rna") else rounding


def leading(results: Results, wanted: Sequence[Fraction | int] | Fraction | int) -> int:
    """How many of the first results are as wanted."""
    expected = wanted if isinstance(wanted, Sequence) else [wanted] * len(results)
    count = 0
    for value, right in zip(results, expected, strict=False):
        if value != right:
            break
        count += 1
    return count


def monotonic(s: Setting, results: Results) -> str:
    """Whether the first of two results, of the smaller c, is the larger one."""
    first, second = results
    if first is None or second is None:
        return "not finite"
    return "not monotonic" if first > second else "no violation seen"


def truncates(t: Truth) -> bool:
    """Whether alignment and result are rounded to zero."""
    return t.rounding == t.alignment == "rz"
