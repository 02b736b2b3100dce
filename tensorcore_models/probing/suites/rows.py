"""Published tests of matrix units as data: the addends of each, and what its results are taken to mean.

All are generalised from fp16 operands and fp32 results to any formats: P is the precision of the result, R = P - 1 its fraction
bits, p the smaller precision of the operands; all addends may be scaled by one power of two, so that 8-bit formats have them.

Sources: Fasi, Higham, Mikaitis and Pranesh 2021, section 3 (`fasi`); Khattak and Mikaitis 2025, section IV, with the vectors
of their GNFT (`gnft`); Li et al. 2024, FTTN, as its released program has them (`fttn`); Valpey et al. 2025, tables 1, 3 and 5
(`valpey`). Where a published test misreads units, `valid` says for which units it does not; the sources claim more.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from ..dots import Product, power
from .model import Input, PublishedTest, Results, Setting

ONE = Fraction(1)
THREE_QUARTERS = Fraction(3, 4)
#: GNFT's ladder asks for one, two and three extra bits.
MOST_EXTRA_BITS = 3


def places(*products: Product) -> dict[int, Product]:
    """Products at the first positions."""
    return dict(enumerate(products))


def choose(**meanings: Fraction | int) -> Callable[[Results], str]:
    """The meaning of one result; underscores are spaces."""
    named = {Fraction(value): name.replace("_", " ") for name, value in meanings.items()}
    return lambda results: "not finite" if results[0] is None else named.get(results[0], "neither")


def both_ways(product_sets: Sequence[Input]) -> list[Input]:
    """Inputs with all signs changed, after the inputs themselves."""

    def negative(product: Product) -> Product:
        return -product if isinstance(product, Fraction) else (-product[0], product[1])

    flipped = [Input({k: negative(v) for k, v in x.products.items()}, -x.c, x.scaled) for x in product_sets]
    return [*product_sets, *flipped]


def rounding_by_signs(base: Fraction, unit: Fraction) -> Callable[[Results], str]:
    """Which rounding takes base + 3/4 unit, and its negative, up or down; nearest modes look alike."""
    names: dict[tuple[Fraction | int, Fraction | int], str] = {
        (0, 0): "rz",
        (1, 1): "nearest",
        (1, 0): "ru",
        (0, 1): "rd",
    }

    def verdict(results: Results) -> str:
        if any(r is None for r in results):
            return "not finite"
        up, down = ((abs(r) - base) / unit for r in results if r is not None)
        return names.get((up, down), "neither")

    return verdict


def rounding_name(rounding: str) -> str:
    """A rounding as tests with three quarters see it."""
    return "nearest" if rounding in ("rne", "rna") else rounding


# -- Fasi et al. ---------------------------------------------------------------------------------------------------------------
def _largest_first(s: Setting) -> list[Input]:
    h = power(-s.precision)
    products = places(*[h] * 4)
    return [Input(products, ONE), *(Input({**products, i: ONE}, h) for i in range(4))]


def _carry_orders(s: Setting) -> list[Input]:
    small = power(1 - s.precision)
    c = 1 + power(2 - s.precision) + small
    return [Input({**places(*[ONE] * 4), i: small}, c) for i in range(4)]


FASI = (
    PublishedTest(
        "products",
        "products are exact",
        "fasi, 3.1.2",
        lambda s: [Input(places(*[(1 - power(-s.operand_precision),) * 2] * 4))],
        lambda s, r: choose(exact=4 * (1 - power(-s.operand_precision)) ** 2)(r).replace("neither", "rounded"),
        lambda s, t: "exact",
        lambda s, t: 2 * s.operand_precision <= s.fraction_bits + min(0, t.extra) and t.terms >= 4,
        4,
    ),
    PublishedTest(
        "largest first",
        "addends are aligned before any are added",
        "fasi, 3.1.2",
        _largest_first,
        lambda s, r: "aligned first" if all(x == 1 for x in r) else "partial sums or more bits",
        lambda s, t: "aligned first",
        lambda s, t: t.extra == 0 and t.alignment == "rz" and t.terms >= 4,
        4,
    ),
    PublishedTest(
        "final rounding",
        "rounding of the result",
        "fasi, 3.1.3",
        lambda s: both_ways([Input(places(Fraction(2), THREE_QUARTERS * power(1 - s.fraction_bits)))]),
        lambda s, r: rounding_by_signs(Fraction(2), power(1 - s.fraction_bits))(r),
        lambda s, t: rounding_name(t.rounding),
        lambda s, t: t.extra >= 2 and t.terms >= 2,
        2,
    ),
    PublishedTest(
        "extra bit",
        "bits beyond the result's at the alignment",
        "fasi, 3.1.4",
        lambda s: [Input(places(ONE), power(-s.precision) - 1)],
        lambda s, r: choose(none=power(1 - s.precision), at_least_one=power(-s.precision))(r),
        lambda s, t: "none" if t.extra == 0 else "at least one",
        lambda s, t: t.extra >= 0 and t.alignment == "rz",
    ),
    PublishedTest(
        "normalisation in addition",
        "partial sums are normalised",
        "fasi, 3.1.4",
        lambda s: [Input(places(*[power(-s.precision)] * 4), 1 - power(-s.precision))],
        lambda s, r: choose(at_the_end=1 + power(1 - s.precision), each_time=1)(r),
        lambda s, t: "at the end",
        lambda s, t: t.extra >= 0 and t.rounding == "rz" and t.alignment == "rz" and t.terms >= 4,
        4,
    ),
    PublishedTest(
        "normalisation in subtraction",
        "partial differences are normalised",
        "fasi, 3.1.4",
        lambda s: [Input(places(ONE, -power(-s.precision)), power(-s.precision) - 1)],
        lambda s, r: choose(not_normalised=power(1 - s.precision), normalised_or_more_bits=0)(r),
        lambda s, t: "not normalised",
        lambda s, t: t.extra == 0 and t.alignment == "rz" and t.terms >= 2,
        2,
    ),
    PublishedTest(
        "two carry bits",
        "integer bits of the sum",
        "fasi, 3.1.4",
        _carry_orders,
        lambda s, r: "at least two" if all(x == 4 + power(3 - s.precision) for x in r) else "fewer",
        lambda s, t: "at least two",
        lambda s, t: t.extra >= 0 and t.terms >= 4,
        4,
    ),
    PublishedTest(
        "third carry bit",
        "integer bits of the sum",
        "fasi, 3.1.4",
        lambda s: [Input(places(ONE, Fraction(3, 2), Fraction(7, 4), Fraction(15, 8)), Fraction(15, 8))],
        lambda s, r: choose(three=8, two=0)(r),
        lambda s, t: "three",
        lambda s, t: t.terms >= 4 and t.extra >= -18,
        4,
    ),
    PublishedTest(
        "monotonicity",
        "a larger addend never makes the sum smaller",
        "fasi, 3.1.4",
        lambda s: [Input(places(*[power(-s.precision)] * 4), c) for c in (1 - power(-s.precision), ONE)],
        lambda s, r: "not finite" if None in r else "not monotonic" if r[0] > r[1] else "no violation seen",  # type: ignore
        lambda s, t: "not monotonic",
        lambda s, t: t.extra == 0 and t.rounding == "rz" and t.alignment == "rz" and t.terms >= 4,
        4,
    ),
)


# -- Khattak and Mikaitis ------------------------------------------------------------------------------------------------------
def _ladder(s: Setting) -> list[Input]:
    """n = 1, 2, 3: n products 2^-P, 2^-(P+1), ... and the last once more."""
    found = []
    for n in range(1, min(MOST_EXTRA_BITS, s.length - 1) + 1):
        steps = [power(-s.precision - i) for i in range(n)]
        found.append(Input(places(*steps, steps[-1]), ONE))
    return found


def _leading(results: Results, wanted: Fraction) -> int:
    """How many of the first results are as wanted."""
    count = 0
    for value in results:
        if value != wanted:
            break
        count += 1
    return count


def _same_block(s: Setting) -> list[Input]:
    small = power(-s.fraction_bits)
    return [Input({0: ONE, k: small}, 1 + small) for k in range(1, s.length)]


def _final(s: Setting) -> list[Input]:
    return both_ways([Input(places(ONE, ONE, ONE), 1 + THREE_QUARTERS * power(2 - s.fraction_bits))])


def _extra(s: Setting) -> int:
    """Extra bits, as the suite's own test found them."""
    return int(s.found.get("extra bits", "0"))


def _unnormalised(s: Setting) -> list[Input]:
    extra = _extra(s)
    copies = 2 ** (extra + 1)
    small = power(-s.fraction_bits - extra)
    products: list[Product] = [(Fraction(3, 2), Fraction(3, 2)), *[small] * copies]
    return [Input(places(*products))] if len(products) <= s.length else []


GNFT = (
    PublishedTest(
        "extra bits", "bits beyond the result's at the alignment (neab)", "khattak-mikaitis, III-A (GNFT)", _ladder,
        lambda s, r: str(_leading(r, 1 + power(1 - s.precision))), lambda s, t: str(t.extra),
        lambda s, t: 0 <= t.extra <= MOST_EXTRA_BITS and t.rounding == t.alignment == "rz" and t.terms >= t.extra + 2, 2,
    ),
    PublishedTest(
        "FMA size", "products of one fused operation", "khattak-mikaitis, III-A (GNFT)", _same_block,
        lambda s, r: str(1 + _leading(r, 2 + power(1 - s.fraction_bits))), lambda s, t: str(t.terms),
        lambda s, t: t.extra >= 0 and t.rounding in ("rz", "rd", "rne"), 2,
    ),
    PublishedTest(
        "alignment rounding", "rounding at the alignment", "khattak-mikaitis, III-A (GNFT)",
        lambda s: [Input(places(*[THREE_QUARTERS * power(-s.fraction_bits - _extra(s))] * 2), ONE)],
        lambda s, r: "rz" if r[0] == 1 else "nearest or up",
        lambda s, t: "rz" if t.alignment in ("rz", "rd") else "nearest or up",
        lambda s, t: 0 <= t.extra < 2 and t.rounding == "rz" and t.alignment in ("rz", "rne"), 2,
    ),
    PublishedTest(
        "final rounding", "rounding of the result", "khattak-mikaitis, III-A (GNFT)", _final,
        lambda s, r: rounding_by_signs(Fraction(4), power(2 - s.fraction_bits))(r), lambda s, t: rounding_name(t.rounding),
        lambda s, t: t.extra >= 0 and t.terms >= 3, 3,
    ),
    PublishedTest(
        "unnormalised products", "products are aligned as they are", "khattak-mikaitis, IV-A1 and IV-A2", _unnormalised,
        lambda s, r: "does not fit" if not r else choose(
            unnormalised=Fraction(9, 4) + power(1 - s.fraction_bits), normalised=Fraction(9, 4))(r),
        lambda s, t: "normalised" if t.normalised else "unnormalised",
        lambda s, t: t.extra in (0, 1, 2) and t.rounding == "rz" and t.alignment == "rz" and t.terms > 2 ** (t.extra + 1), 3,
    ),
)  # fmt: skip


# -- Li et al. -----------------------------------------------------------------------------------------------------------------
def _width(s: Setting, results: Results) -> str:
    """The first position at which nothing of the two small products is left."""
    for k, value in enumerate(results, 1):
        if value == 1:
            return str(k)
    return f">={len(results) + 1}"


FTTN = (
    PublishedTest(
        "one extra bit", "bits beyond the result's at the alignment", "FTTN (released program)",
        FASI[3].inputs, FASI[3].verdict, FASI[3].expected, FASI[3].valid,
    ),
    PublishedTest(
        "two extra bits", "bits beyond the result's at the alignment", "FTTN (released program)",
        lambda s: [Input(places(Fraction(5, 4)), -(power(-3) + power(-s.precision - 1)))],
        lambda s, r: choose(at_least_two=Fraction(9, 8) - power(-s.fraction_bits), at_most_one=Fraction(9, 8))(r),
        lambda s, t: "at least two" if t.extra >= 2 else "at most one",
        lambda s, t: t.extra >= 0 and t.alignment == "rz" and t.rounding == "rz",
    ),
    PublishedTest(
        "final rounding", "rounding of the result", "FTTN (released program)", FASI[2].inputs, FASI[2].verdict,
        FASI[2].expected, FASI[2].valid, 2,
    ),
    PublishedTest(
        "accumulation width", "products of one fused operation", "FTTN (released program)",
        lambda s: [Input({0: power(-s.precision), k: power(-s.precision)}, ONE) for k in range(1, s.length)], _width,
        lambda s, t: str(t.terms), lambda s, t: t.extra >= 1 and t.rounding == "rz", 2,
    ),
)  # fmt: skip


# -- Valpey et al. -------------------------------------------------------------------------------------------------------------
def _table_5(s: Setting) -> list[Input]:
    """Markidis' sum with c inside, Ootomo and Yokota's without; the printed b_1 = 1.998046875 * 2^-7 reads 2^7."""
    tiny = power(-12)
    products = places(
        (Fraction(1025, 1024) * power(-8), Fraction(1023, 512) * power(7)),
        (Fraction(679, 512) * power(-14), Fraction(1479, 1024) * power(-7)),
        (tiny, tiny), (tiny, tiny),
    )  # fmt: skip
    return [Input(products, power(-24), False), Input(products, Fraction(0), False)]


VALPEY = (
    PublishedTest(
        "exact product", "products are formed exactly", "valpey-smt, table 1",
        lambda s: [Input(places((Fraction(265, 1024) * power(-14), Fraction(1401, 1024) * power(-1))), scaled=False)],
        lambda s, r: choose(exact=Fraction(265, 1024) * Fraction(1401, 1024) * power(-15))(r).replace("neither", "rounded"),
        lambda s, t: "exact", lambda s, t: s.precision >= 20 and t.extra >= -2 and s.operand_precision >= 11,
    ),
    PublishedTest(
        "truncation", "bits that the alignment cuts off still count (sticky)", "valpey-smt, table 3",
        lambda s: [Input(places(Fraction(2)), -power(-40))],
        lambda s, r: choose(truncated=2, round_to_zero=2 - power(-s.fraction_bits))(r),
        lambda s, t: "truncated", lambda s, t: t.alignment == "rz" and s.fraction_bits + t.extra < 38,
    ),
    PublishedTest(
        "Ootomo-Yokota worse than Markidis", "a sum that is better with c inside", "valpey-smt, table 5 (b_1 corrected)",
        _table_5,
        lambda s, r: "as printed" if r[0] == 1 + power(-23) and r[1] == 1 else "otherwise", lambda s, t: "as printed",
        lambda s, t: s.precision == 24 and t.rounding == "rz" and t.alignment == "rz" and t.extra in (0, 1, 2)
        and t.terms >= 4 and s.operand_precision >= 11, 4,
    ),
)  # fmt: skip

SUITES: dict[str, tuple[PublishedTest, ...]] = {"fasi": FASI, "gnft": GNFT, "fttn": FTTN, "valpey": VALPEY}
