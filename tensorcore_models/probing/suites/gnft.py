"""Holds the tests of Khattak and Mikaitis 2025: their GNFT (vectors of its released code), and the tests of section IV on
single units.

Their method takes the number of extra bits, neab, from its own first test. The list of features on its page also names
subnormal numbers, but no version of the released program tests them (faiziktk/IEEE_HPEC2025_block_FMA_tests, 78 commits to
46136b5); the tests of Fasi et al. on which it is based are in `fasi`.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, log2

from ...aspects.values import ONE, Product, Unreachable, power
from .model import (
    THREE_QUARTERS,
    Input,
    PublishedTest,
    Results,
    Setting,
    Truth,
    both_ways,
    choose,
    leading,
    places,
    rounding_by_signs,
    rounding_name,
    truncates,
)

#: Largest number of extra bits that the ladder asks for.
MOST_EXTRA_BITS = 3
#: Point at which the test of normalisation crosses a power of two, in units of 2^-P.
_CROSSING = 3
_EXTRA, _SIZE, _KEPT = "extra bits", "FMA size", "fraction bits"


def _ladder(s: Setting) -> list[Input]:
    """Return inputs of 1 and n products 2^-P, 2^-(P+1), ... with the last one twice, for n = 1, 2, 3."""
    steps = [power(-s.precision - i) for i in range(min(MOST_EXTRA_BITS, s.length - 1))]
    return [Input(places(*steps[:n], steps[n - 1]), ONE) for n in range(1, len(steps) + 1)]


def _same_block(s: Setting) -> list[Input]:
    small = power(-s.fraction_bits)
    return [Input({0: ONE, k: small}, 1 + small) for k in range(1, s.length)]


def _two_tails(s: Setting) -> list[Input]:
    """Return 1 and twice 3/4 of the alignment's unit."""
    tail = THREE_QUARTERS * power(-s.fraction_bits - s.number(_EXTRA))
    return both_ways([Input(places(tail, tail), ONE)])


def _final(s: Setting) -> list[Input]:
    return both_ways([Input(places(ONE, ONE, ONE), 1 + THREE_QUARTERS * power(2 - s.fraction_bits))])


def _crossing(s: Setting) -> list[Input]:
    step, unit = power(_CROSSING - s.precision), power(-s.precision)
    return [Input(places(step + unit, step + unit), 1 - step)]


def _crossed(s: Setting, results: Results) -> str:
    base = 1 + power(_CROSSING - s.precision)
    return choose(at_the_end=base + power(1 - s.precision), each_time=base)(results)


def _full_products(s: Setting) -> Iterator[tuple[Input, Fraction, int]]:
    """Yield for k = 2 to N: k - 1 products and c near 2 whose last places carry, their exact sum, and its number of carries."""
    z, last = 2 - power(1 - s.operand_precision), power(1 - s.precision)
    for k in range(2, s.number(_SIZE) + 1):
        ones = sum((power(i - s.precision) for i in range(1, ceil(log2(k)) + 1)), Fraction(0))
        products: list[Product] = [z] * (k - 1)
        yield Input(places(*products, last), z + ones), k * z + ones + last, floor(log2(k * z))


def _carries(s: Setting, results: Results) -> str:
    rows = list(_full_products(s))
    right = leading(results, [exact for _, exact, _ in rows])
    return str(rows[right - 1][2]) if right else "none"


def _unnormalised(s: Setting) -> list[Input]:
    extra = s.number(_EXTRA)
    copies = 2 ** (extra + 1)
    small = power(-s.fraction_bits - extra)
    products: list[Product] = [(Fraction(3, 2), Fraction(3, 2)), *[small] * copies]
    if len(products) > s.length:
        raise Unreachable(f"the test needs {len(products)} products, more than the dot product's {s.length}")
    return [Input(places(*products))]


def _next_block(s: Setting) -> list[Input]:
    """Return a result of one operation that is odd in its last place, and 3/4 of that place in the next operation."""
    last, block = power(-s.fraction_bits), s.number(_SIZE)
    if block >= s.length:
        raise Unreachable("the dot product is one operation, but the test needs two")
    return both_ways([Input({block: THREE_QUARTERS * last}, 1 + last)])


def _first_kept(s: Setting, results: Results) -> str:
    for t, value in zip(range(s.precision, 0, -1), results, strict=False):
        if value == 1 + power(1 - t):
            return str(t)
    return "none"


def _early(s: Setting) -> list[Input]:
    h = power(-s.number(_KEPT) - 1)
    return [Input(places(h, h), ONE)]


def _partners(s: Setting) -> list[Input]:
    h = power(-s.precision)
    return [Input({0: ONE, 1: h, t: h}) for t in range(2, s.length)]


def _group(s: Setting, results: Results) -> str:
    members = [0, 1, *(t for t, value in enumerate(results, 2) if value == 1 + power(1 - s.precision))]
    if members == list(range(len(members))):
        return f"{len(members)} consecutive products"
    return "products " + ", ".join(map(str, members))


def _three_places(s: Setting) -> list[Input]:
    """Return 1 as c, as the first and as the second product, with half a last place as the two other addends."""
    h = power(-s.precision)
    return [Input(places(h, h), ONE), Input(places(ONE, h), h), Input(places(h, ONE), h)]


def _sum_order(s: Setting, results: Results) -> str:
    up = 1 + power(1 - s.precision)
    names = {(1, 1, 1): "at once", (1, 1, up): "one by one, c first", (up, up, up): "exact"}
    return names.get(tuple(results), "neither")  # type: ignore[arg-type]


def _finds_size(s: Setting, t: Truth) -> bool:
    return t.extra >= 0 and t.alignment == "rz" and t.rounding in ("rz", "rd", "rne")


def _finds_kept(s: Setting, t: Truth) -> bool:
    kept = s.fraction_bits + t.extra
    return t.extra <= 0 and kept <= t.result_bits + 1 and t.alignment == "rz" and t.terms >= 3


GNFT = (
    PublishedTest(
        _EXTRA, "bits beyond the result's at the alignment (neab)", "khattak-mikaitis, III-A (GNFT)", _ladder,
        lambda s, r: str(leading(r, 1 + power(1 - s.precision))), lambda s, t: str(t.extra),
        lambda s, t: 0 <= t.extra <= MOST_EXTRA_BITS and truncates(t) and t.terms >= t.extra + 2, 2,
    ),
    PublishedTest(
        _SIZE, "products of one fused operation", "khattak-mikaitis, III-A (GNFT)", _same_block,
        lambda s, r: str(1 + leading(r, 2 + power(1 - s.fraction_bits))), lambda s, t: str(t.terms),
        _finds_size, 2,
    ),
    PublishedTest(
        "alignment rounding", "rounding at the alignment", "khattak-mikaitis, III-A (GNFT)", _two_tails,
        lambda s, r: rounding_by_signs(1, power(1 - s.fraction_bits - s.number(_EXTRA)))(r),
        lambda s, t: rounding_name(t.alignment),
        lambda s, t: 0 <= t.extra < 2 and t.rounding == "rz" and t.alignment in ("rz", "rne"), 2,
    ),
    PublishedTest(
        "final rounding", "rounding of the result", "khattak-mikaitis, III-A (GNFT)", _final,
        lambda s, r: rounding_by_signs(4, power(2 - s.fraction_bits))(r), lambda s, t: rounding_name(t.rounding),
        lambda s, t: t.extra >= 0 and t.terms >= 3, 3,
    ),
    PublishedTest(
        "normalisation", "partial sums are normalised", "khattak-mikaitis, III-A (GNFT)", _crossing, _crossed,
        lambda s, t: "at the end", lambda s, t: t.extra >= 0 and t.terms >= 2, 2,
    ),
    PublishedTest(
        "carry bits", "integer bits of the sum, as the suite counts them", "khattak-mikaitis, III-A (GNFT)",
        lambda s: [row[0] for row in _full_products(s)], _carries,
        lambda s, t: str(floor(log2(t.terms * (2 - power(1 - s.operand_precision))))),
        lambda s, t: _finds_size(s, t) and t.terms >= 2 and s.precision > s.operand_precision + ceil(log2(t.terms)), 2,
    ),
    PublishedTest(
        "rounding between operations", "rounding of an operation's result that is the next one's c",
        "khattak-mikaitis, III-A (GNFT)", _next_block,
        lambda s, r: rounding_by_signs(1 + power(-s.fraction_bits), power(-s.fraction_bits))(r),
        lambda s, t: rounding_name(t.rounding), lambda s, t: t.extra >= 2 and _finds_size(s, t), 2,
    ),
    PublishedTest(
        "unnormalised products", "products are aligned as they are", "khattak-mikaitis, IV-A1 and IV-A2", _unnormalised,
        lambda s, r: choose(unnormalised=Fraction(9, 4) + power(1 - s.fraction_bits), normalised=Fraction(9, 4))(r),
        lambda s, t: "normalised" if t.normalised else "unnormalised",
        lambda s, t: t.extra in (0, 1, 2) and truncates(t) and t.terms > 2 ** (t.extra + 1), 3,
    ),
    PublishedTest(
        _KEPT, "fraction bits at the alignment, no more than the result's", "khattak-mikaitis, IV-A4",
        lambda s: [Input(places(ONE, power(-t), power(-t))) for t in range(s.precision, 0, -1)],
        _first_kept, lambda s, t: str(s.fraction_bits + t.extra), _finds_kept, 3, ladder=True, narrow=True,
    ),
    PublishedTest(
        "place of c", "c takes part in the first operation", "khattak-mikaitis, IV-A4", _early,
        lambda s, r: choose(early=1, late=1 + power(-s.number(_KEPT)))(r), lambda s, t: "early", _finds_kept,
        2, narrow=True,
    ),
    PublishedTest(
        "interleaving", "products of the first operation", "khattak-mikaitis, IV-A5", _partners, _group,
        lambda s, t: f"{t.terms} consecutive products",
        lambda s, t: t.extra >= 1 and t.rounding in ("rz", "rd", "rne") and t.terms >= 3, 3,
    ),
    PublishedTest(
        "order of the sum", "addends are added one by one (fp64 units)", "khattak-mikaitis, IV-A2", _three_places,
        _sum_order, lambda s, t: "at once",
        lambda s, t: t.extra <= 0 and t.rounding in ("rz", "rne") and t.alignment == "rz" and t.terms >= 2, 2,
    ),
)  # fmt: skip
