"""Holds the tests of Li et al. 2024, FTTN, as in its released program."""

from fractions import Fraction

from ...aspects.values import ONE, power
from .fasi import EXTRA_BIT, FINAL_ROUNDING
from .model import Input, PublishedTest, Results, Setting, choose, monotonic, places, truncates

SOURCE = "FTTN (released program)"


def _width(s: Setting, results: Results) -> str:
    """Return the first position at which the two small products are lost."""
    for k, value in enumerate(results, 1):
        if value == 1:
            return str(k)
    return f">={len(results) + 1}"


def _neighbours(s: Setting) -> list[Input]:
    """Return inputs of eight products of 1, with c the largest number below a power of two, and c that power."""
    top = power(s.precision + 1)
    return [Input(places(*[ONE] * 8), c) for c in (top - 2, top)]


FTTN = (
    PublishedTest(
        "one extra bit", EXTRA_BIT.feature, SOURCE, EXTRA_BIT.inputs, EXTRA_BIT.verdict, EXTRA_BIT.expected,
        EXTRA_BIT.valid,
    ),
    PublishedTest(
        "two extra bits", EXTRA_BIT.feature, SOURCE,
        lambda s: [Input(places(Fraction(5, 4)), -(power(-3) + power(-s.precision - 1)))],
        lambda s, r: choose(at_least_two=Fraction(9, 8) - power(-s.fraction_bits), at_most_one=Fraction(9, 8))(r),
        lambda s, t: "at least two" if t.extra >= 2 else "at most one",
        lambda s, t: t.extra >= 0 and truncates(t),
    ),
    PublishedTest(
        "final rounding", FINAL_ROUNDING.feature, SOURCE, FINAL_ROUNDING.inputs, FINAL_ROUNDING.verdict,
        FINAL_ROUNDING.expected, FINAL_ROUNDING.valid, 2,
    ),
    PublishedTest(
        "accumulation width", "products of one fused operation", SOURCE,
        lambda s: [Input({0: power(-s.precision), k: power(-s.precision)}, ONE) for k in range(1, s.length)], _width,
        lambda s, t: str(t.terms), lambda s, t: t.extra >= 1 and t.rounding == "rz", 2,
    ),
    PublishedTest(
        "three extra bits or sticky", "bits that decide a tie of rounding to nearest", SOURCE,
        lambda s: [Input(places(ONE), power(-s.precision) + power(-s.precision - 3))],
        lambda s, r: choose(decides=1 + power(1 - s.precision), lost=1)(r),
        lambda s, t: "decides" if t.rounding == "rne" and t.extra >= 4 else "lost",
        lambda s, t: t.rounding in ("rz", "rd", "rne") and t.alignment == "rz",
    ),
    PublishedTest(
        "monotonicity", "a larger addend never makes the sum smaller", SOURCE, _neighbours,
        monotonic,
        lambda s, t: "not monotonic",
        lambda s, t: t.extra == 1 and truncates(t) and t.terms >= 8, 8,
    ),
)  # fmt: skip
