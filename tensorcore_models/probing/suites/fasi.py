"""Holds the tests of Fasi, Higham, Mikaitis and Pranesh 2021, section 3, in the order of the paper.

P is the precision of the result, R = P - 1 its fraction bits, p the smaller precision of the operands. The paper has fp16,
bf16, tf32 and fp64 operands; here the formats determine the addends.
"""

from collections.abc import Callable
from fractions import Fraction

from ...aspects.values import ONE, Unreachable, encode_value, leading_exponent, power
from ...formats import Format
from .model import (
    THREE_QUARTERS,
    Input,
    PublishedTest,
    Results,
    Setting,
    Truth,
    both_ways,
    choose,
    monotonic,
    places,
    rounding_by_signs,
    rounding_name,
    truncates,
)


# -- 3.1.1, subnormal numbers ------------------------------------------------------------------------------------------------
def smallest(fmt: Format) -> Fraction:
    """Return the smallest number of a format; raise Unreachable if it has no subnormal numbers."""
    if not fmt.has_subnormals:
        raise Unreachable(f"{fmt.name} has no subnormal numbers")
    return power(fmt.quantum_exponent)


def _subnormal_operands(s: Setting) -> list[Input]:
    """Return the smallest number times 4, or times a larger power if the result lacks that number; in A, then in B."""
    a, b, _, d = s.formats
    found = []
    for left, tiny in ((True, smallest(a)), (False, smallest(b))):
        factor = max(Fraction(4), power(d.quantum_exponent) / tiny)
        found.append(Input(places((tiny, factor) if left else (factor, tiny)), scaled=False))
    return found


def _kept(s: Setting, results: Results) -> str:
    """Return the verdict that compares the results with the exact sums."""
    if all(r == _exact(x) for r, x in zip(results, _subnormal_operands(s), strict=True)):
        return "supported"
    return "flushed" if not any(results) else "neither"


def _exact(x: Input) -> Fraction:
    return x.c + sum((p if isinstance(p, Fraction) else p[0] * p[1] for p in x.products.values()), Fraction(0))


def _below_normal(s: Setting, difference: bool) -> list[Input]:
    """Return half of the result's smallest normal number, as a product of normal operands, or as that number minus its half."""
    a, b, _, d = s.formats
    normal = power(d.emin)
    product = normal if difference else normal / 2
    if leading_exponent(product) < a.emin + b.emin:
        raise Unreachable("normal operands make no product that small")
    return [Input(places(product), -normal / 2 if difference else Fraction(0), scaled=False)]


def _addend(s: Setting) -> list[Input]:
    """Return the smallest number of c, which must also be a number of the result."""
    tiny = smallest(s.formats[2])
    encode_value(tiny, s.formats[3])
    return [Input({}, tiny, scaled=False)]


def _half_of_normal(s: Setting, results: Results) -> str:
    return choose(supported=power(s.formats[3].emin - 1), flushed=0)(results)


def _native(s: Setting) -> list[Input]:
    """Return a subnormal operand that is 3/4 of a unit in the last place of the other addend in the result."""
    tiny = 3 * smallest(s.formats[0])
    encode_value(_partner(s) + _last_place(s), s.formats[3])
    return [Input(places((tiny, ONE), _partner(s)), scaled=False)]


def _partner(s: Setting) -> Fraction:
    return 4 * smallest(s.formats[0]) * power(s.fraction_bits)


def _last_place(s: Setting) -> Fraction:
    return power(leading_exponent(_partner(s)) - s.fraction_bits)


# -- 3.1.2 and 3.1.3 ---------------------------------------------------------------------------------------------------------
def _products_of_two(s: Setting) -> list[Input]:
    """Return (1 - 2^-p)^2 and (1 - 2^-p) 2^-p, which are no operands, while their sum 1 - 2^-p is."""
    x = 1 - power(-s.operand_precision)
    return [Input(places((x, x), (x, 1 - x)))]


def _largest_first(extra: int):
    """Return inputs of 1 and four numbers that the alignment loses with `extra` extra bits; 1 is c, then each product."""

    def inputs(s: Setting) -> list[Input]:
        h = power(-s.precision - extra)
        products = places(*[h] * 4)
        return [Input(products, ONE), *(Input({**products, i: ONE}, h) for i in range(4))]

    return inputs


def _aligned_first(s: Setting, results: Results) -> str:
    return "aligned first" if all(x == 1 for x in results) else "partial sums or more bits"


def _least_result(s: Setting) -> list[Input]:
    """Return 3/4 of the smallest number of the result."""
    last = smallest(s.formats[3])
    return both_ways([Input(places(last / 2, last / 4), scaled=False)])


def _sees_least_result(s: Setting, t: Truth) -> bool:
    """Return whether the alignment keeps a quarter of the smallest number of the result."""
    d = s.formats[3]
    top = d.quantum_exponent - 1 if t.floor is None else max(d.quantum_exponent - 1, t.floor)
    return top - (t.extra + s.fraction_bits) <= d.quantum_exponent - 2


# -- 3.1.4 -------------------------------------------------------------------------------------------------------------------
def _carry_orders(s: Setting) -> list[Input]:
    small = power(1 - s.precision)
    c = 1 + power(2 - s.precision) + small
    return [Input({**places(*[ONE] * 4), i: small}, c) for i in range(4)]


#: Verdict for a chain of multiply-adds, which has no carry bits.
NO_CARRIES = "none: one product at a time"


def fused(text: str, chain: str) -> Callable[[Setting, Truth], str]:
    """Return the verdict expected of a unit: `text` if its operations take several products, `chain` if they take one."""
    return lambda s, t: text if t.terms > 1 else chain


#: Addends of the next tests; FTTN's program asks the first two, too.
FINAL_ROUNDING = PublishedTest(
    "final rounding", "rounding of the result", "fasi, 3.1.3",
    lambda s: both_ways([Input(places(Fraction(2), THREE_QUARTERS * power(1 - s.fraction_bits)))]),
    lambda s, r: rounding_by_signs(2, power(1 - s.fraction_bits))(r), lambda s, t: rounding_name(t.rounding),
    lambda s, t: t.extra >= 2 and t.terms >= 2, 2,
)  # fmt: skip
EXTRA_BIT = PublishedTest(
    "extra bit", "bits beyond the result's at the alignment", "fasi, 3.1.4",
    lambda s: [Input(places(ONE), power(-s.precision) - 1)],
    lambda s, r: choose(none=power(1 - s.precision), at_least_one=power(-s.precision))(r),
    lambda s, t: "none" if t.extra == 0 else "at least one", lambda s, t: t.extra >= 0 and t.alignment == "rz",
)  # fmt: skip

FASI = (
    PublishedTest(
        "subnormal operands", "subnormal A and B are not flushed", "fasi, 3.1.1", _subnormal_operands, _kept,
        lambda s, t: "supported", narrow=True,
    ),
    PublishedTest(
        "subnormal addend", "a subnormal c is not flushed", "fasi, 3.1.1", _addend,
        lambda s, r: choose(supported=smallest(s.formats[2]), flushed=0)(r), lambda s, t: "supported",
        lambda s, t: t.extra >= 0,
    ),
    PublishedTest(
        "subnormal result, product", "a subnormal product is not flushed", "fasi, 3.1.1 and 3.3",
        lambda s: _below_normal(s, False), _half_of_normal, lambda s, t: "supported", narrow=True,
    ),
    PublishedTest(
        "subnormal result, difference", "a subnormal sum is not flushed", "fasi, 3.1.1",
        lambda s: _below_normal(s, True), _half_of_normal, lambda s, t: "supported", narrow=True,
    ),
    PublishedTest(
        "subnormal numbers in hardware", "sums with subnormal operands are rounded as others", "fasi, 3.1.1", _native,
        lambda s, r: choose(in_the_unit=_partner(s), rounded_to_nearest=_partner(s) + _last_place(s))(r),
        lambda s, t: "in the unit", lambda s, t: truncates(t) and t.terms >= 2, 2, narrow=True,
    ),
    PublishedTest(
        "products", "products are exact", "fasi, 3.1.2",
        lambda s: [Input(places(*[(1 - power(-s.operand_precision),) * 2] * 4))],
        lambda s, r: choose(exact=4 * (1 - power(-s.operand_precision)) ** 2)(r).replace("neither", "rounded"),
        lambda s, t: "exact",
        lambda s, t: 2 * s.operand_precision <= t.result_bits + min(0, t.extra) and t.terms >= 4, 4, narrow=True,
    ),
    PublishedTest(
        "products of a narrow result", "products are exact where only their sum is a result", "fasi, 3.1.2",
        _products_of_two,
        lambda s, r: choose(exact=1 - power(-s.operand_precision))(r).replace("neither", "rounded"),
        lambda s, t: "exact",
        lambda s, t: 2 * s.operand_precision <= s.fraction_bits + t.extra + 1 and t.result_bits >= s.operand_precision
        and t.terms >= 2, 2, narrow=True,
    ),
    PublishedTest(
        "largest first", "addends are aligned before any are added", "fasi, 3.1.2", _largest_first(0), _aligned_first,
        fused("aligned first", "partial sums or more bits"),
        lambda s, t: t.extra == 0 and t.alignment == "rz" and t.terms >= 4, 4,
    ),
    PublishedTest(
        "largest first, one extra bit", "addends are aligned before any are added", "fasi, 3.2", _largest_first(1),
        _aligned_first, fused("aligned first", "partial sums or more bits"),
        lambda s, t: t.extra == 1 and t.alignment == "rz" and t.terms >= 4, 4,
    ),
    FINAL_ROUNDING,
    PublishedTest(
        "rounding to the smallest number", "rounding of the result (fp16 results)", "fasi, 3.1.3", _least_result,
        lambda s, r: rounding_by_signs(0, smallest(s.formats[3]))(r), lambda s, t: rounding_name(t.rounding),
        lambda s, t: _sees_least_result(s, t) and t.extra >= 0 and t.terms >= 2, 2,
    ),
    EXTRA_BIT,
    PublishedTest(
        "normalisation in addition", "partial sums are normalised", "fasi, 3.1.4",
        lambda s: [Input(places(*[power(-s.precision)] * 4), 1 - power(-s.precision))],
        lambda s, r: choose(at_the_end=1 + power(1 - s.precision), each_time=1)(r), fused("at the end", "each time"),
        lambda s, t: t.extra >= 0 and truncates(t) and t.terms >= 4, 4,
    ),
    PublishedTest(
        "normalisation in subtraction", "partial differences are normalised", "fasi, 3.1.4",
        lambda s: [Input(places(ONE, -power(-s.precision)), power(-s.precision) - 1)],
        lambda s, r: choose(not_normalised=power(1 - s.precision), normalised_or_more_bits=0)(r),
        fused("not normalised", "normalised or more bits"),
        lambda s, t: t.extra == 0 and t.alignment == "rz" and t.terms >= 2, 2,
    ),
    PublishedTest(
        "two carry bits", "integer bits of the sum", "fasi, 3.1.4", _carry_orders,
        lambda s, r: "at least two" if all(x == 4 + power(3 - s.precision) for x in r) else "fewer",
        fused("at least two", NO_CARRIES), lambda s, t: t.extra >= 0 and t.terms >= 4, 4,
    ),
    PublishedTest(
        "third carry bit", "integer bits of the sum", "fasi, 3.1.4",
        lambda s: [Input(places(ONE, Fraction(3, 2), Fraction(7, 4), Fraction(15, 8)), Fraction(15, 8))],
        lambda s, r: choose(three=8, two=0)(r), fused("three", NO_CARRIES),
        lambda s, t: t.terms >= 4 and t.extra >= -18, 4, narrow=True,
    ),
    PublishedTest(
        "rounding after carries", "rounding of the result", "fasi, 3.1.4",
        # as _carry_orders with the small product replaced by 1: 5 and 3/4 unit
        lambda s: both_ways([Input(places(*[ONE] * 4), 1 + power(2 - s.precision) + power(1 - s.precision))]),
        lambda s, r: rounding_by_signs(5, power(2 - s.fraction_bits))(r), lambda s, t: rounding_name(t.rounding),
        lambda s, t: t.extra >= 0 and t.terms >= 4, 4,
    ),
    PublishedTest(
        "monotonicity", "a larger addend never makes the sum smaller", "fasi, 3.1.4",
        lambda s: [Input(places(*[power(-s.precision)] * 4), c) for c in (1 - power(-s.precision), ONE)],
        monotonic, fused("not monotonic", "no violation seen"),
        lambda s, t: t.extra == 0 and truncates(t) and t.terms >= 4, 4,
    ),
    PublishedTest(
        # Finding 6 holds on T4 and A100, whose one extra bit hides it from four products; eight halves of a place show it.
        "monotonicity, one extra bit", "a larger addend never makes the sum smaller", "fasi, 3.1.4 and 3.2",
        lambda s: [Input(places(*[power(-s.precision - 1)] * 8), c) for c in (1 - power(-s.precision), ONE)],
        monotonic, fused("not monotonic", "no violation seen"),
        lambda s, t: t.extra == 1 and truncates(t) and t.terms >= 8, 8,
    ),
)  # fmt: skip
