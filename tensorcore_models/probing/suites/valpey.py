"""Holds the inputs that Valpey et al. 2025 found by solvers (tables 1, 3 and 5; page of supporting data), and what each
decides.

All are fp16 operands. Numbers are as printed, in decimals of a significand and an exponent; printed fp32 numbers are rounded,
so that the nearest fp32 number is meant. Some are misprints: subnormal fp16 numbers have a hidden bit, which such numbers lack;
one exponent lacks a digit, and one a sign. Such a test is here twice, corrected and as printed; the printed versions decide
nothing.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ...aspects.values import Product, Unreachable, decode_value, power
from ...formats.exact_rounding import round_to_bits
from .model import Input, PublishedTest, Results, Setting, Truth, choose, meaning, places, truncates

TABLE_1, TABLE_3, TABLE_5 = (f"valpey-smt, table {n}" for n in (1, 3, 5))
PAGE = "valpey-smt, page of data"
_IEEE = ("rne", "rz", "ru", "rd")


def number(significand: str, exponent: int) -> Fraction:
    """Return a printed number, rounded to fp32's 23 fraction bits."""
    return Fraction(round(Fraction(significand) * 2**23), 2**23) * power(exponent)


def subnormal(significand: str, exponent: int) -> Fraction:
    """Return a subnormal fp16 number that is printed with a hidden bit, one exponent too low: 1.f 2^e for 0.f 2^(e + 1)."""
    sign = -1 if significand.startswith("-") else 1
    return (number(significand, 0) - sign) * power(exponent + 1)


def _vector(
    name: str,
    feature: str,
    source: str,
    products: Sequence[Product],
    c: Fraction | int,
    meanings: Mapping[str, Fraction | int],
    *,
    extra: Sequence[int] = (0, 1, 2),
    printed: bool = False,
    result: str = "fp32",
) -> PublishedTest:
    """Return the test of one dot product; units with `extra` bits deserve the first of `meanings`; with `printed`, no unit
    deserves any.
    """

    def inputs(s: Setting) -> list[Input]:
        if s.formats[3].name != result:
            raise Unreachable(f"results are in {s.formats[3].name}, not in {result}")
        return [Input(places(*products), Fraction(c), scaled=False)]

    def valid(s: Setting, t: Truth) -> bool:
        fits = t.alignment == "rz" and not t.normalised and not printed
        rounding = "rne" if result == "fp16" else "rz"
        return fits and t.rounding == rounding and t.terms >= len(products) and t.extra in extra

    read = meaning(meanings)
    deserved = next(iter(meanings))
    return PublishedTest(name + (", as printed" if printed else ""), feature, source, inputs, lambda s, r: read(r),
                         lambda s, t: deserved, valid, len(products))  # fmt: skip


# -- rounding of intermediate sums -------------------------------------------------------------------------------------------
#: One product and c, and the two roundings that it tells apart, Volta's first.
_SUMS: tuple[tuple[tuple[Fraction, Fraction], Fraction, dict[str, Fraction]], ...] = (
    ((number("1.5", 15), number("1.5", 14)), number("-1.0029296875", 15),
     {"rne": number("1.1249693632125854", 30), "ru": number("1.124969482421875", 30)}),
    ((number("1.0302734375", 15), number("1.748046875", 15)), number("1.5009765625", 8),
     {"rne": number("1.8009666204452515", 30), "ru": number("1.800966739654541", 30)}),
    ((number("1.767578125", 15), number("-1.1142578125", 15)), number("1.643554687", 2),
     {"rne": number("-1.9695377349853516", 30), "rz": number("-1.969537615776062", 30)}),
    ((number("1.7822265625", -3), subnormal("1.0048828125", -15)), number("1.9951171875", -8),
     {"rz": number("1.9951341152191162", -8), "rne": number("1.9951342344284058", -8)}),
    ((number("1.7060546875", 15), number("-1.7646484375", 13)), number("1.9970703125", 8),
     {"rne": number("-1.5052924156188965", 29), "rd": number("-1.505292534828186", 29)}),
)  # fmt: skip
#: The same with misprints: 2^-4 for 2^14, and a subnormal number's hidden bit.
_SUMS_PRINTED = {
    0: ((number("1.5", 15), number("1.5", -4)), *_SUMS[0][1:]),
    3: ((number("1.7822265625", -3), number("1.0048828125", -15)), *_SUMS[3][1:]),
}
_SUM = "rounding of a sum"


def _sum(i: int, printed: bool = False) -> PublishedTest:
    product, c, meanings = _SUMS_PRINTED[i] if printed else _SUMS[i]
    return _vector(f"sum {i + 1}", _SUM, PAGE, [product], c, meanings, printed=printed)


def _all_sums(s: Setting) -> list[Input]:
    if s.formats[3].name != "fp32":
        raise Unreachable("results are not in fp32")
    return [Input(places(product), c, scaled=False) for product, c, _ in _SUMS]


def _rounded(value: Fraction, s: Setting, rounding: str) -> Fraction | None:
    exponent = -(value.denominator.bit_length() - 1)
    bits = round_to_bits(value < 0, abs(value.numerator), exponent, s.formats[3], rounding)
    return decode_value(bits, s.formats[3])


def _one_mode(s: Setting, results: Results) -> str:
    """Return the IEEE 754 rounding that all sums have."""
    exact = [x * y + c for (x, y), c, _ in _SUMS]
    fitting = [mode for mode in _IEEE if [_rounded(value, s, mode) for value in exact] == list(results)]
    return fitting[0] if fitting else "none of IEEE 754's"


# -- table 5 -----------------------------------------------------------------------------------------------------------------
_TINY = (power(-12), power(-12))
_TABLE_5 = ((number("1.326171875", -14), number("1.4443359375", -7)), _TINY, _TINY)


def _table_5(printed: bool) -> PublishedTest:
    """Return the input of table 5: Markidis' sum with c inside, Ootomo and Yokota's without."""
    first = (number("1.0009765625", -8), number("1.998046875", -7 if printed else 7))
    products = places(first, *_TABLE_5)

    def inputs(s: Setting) -> list[Input]:
        return [Input(products, power(-24), scaled=False), Input(products, Fraction(0), scaled=False)]

    return PublishedTest(
        "Ootomo-Yokota worse than Markidis" + (", as printed" if printed else ""), "a sum that is better with c inside",
        TABLE_5, inputs, lambda s, r: "as the table has it" if list(r) == [1 + power(-23), 1] else "neither",
        lambda s, t: "as the table has it",
        lambda s, t: s.precision == 24 and truncates(t) and t.extra in (0, 1, 2) and t.terms >= 4 and not printed
        and not t.normalised, 4,
    )  # fmt: skip


# -- the other inputs --------------------------------------------------------------------------------------------------------
_X, _Y = number("1.9990234375", -1), number("1.4990234375", -1)
_FACTOR = number("1.3681640625", -1)
_PRODUCT = {"exact": number("1.4162635803222656", -17), "half": subnormal("1.1767578125", -15)}
_ORDER = (
    [(number("1.9990234375", -9), number("1.9990234375", -1)), (_X, _X)], number("1.0021368265151978", 15),
    {"c first": number("1.0021672248840332", 15), "products first": number("1.0021673440933228", 15)},
)  # fmt: skip
_NORMALISED = {"at the end": number("1.8124666213989258", -2), "each time": number("1.8124667406082153", -2)}
_NARROW = "rounding of the result (fp16)"

VALPEY = (
    _vector("exact product", "products are formed exactly", TABLE_1, [(subnormal("1.2587890625", -15), _FACTOR)], 0,
            _PRODUCT, extra=range(-2, 3)),
    _vector("exact product", "products are formed exactly", TABLE_1, [(number("1.2587890625", -15), _FACTOR)], 0,
            _PRODUCT, printed=True),
    _vector("exact sum", "products are not rounded to fp16 before they are added", PAGE, [(-_X, -_X), (-_X, _Y)], 0,
            {"exact": number("1.9990234375", -3), "half": power(-2)}),
    _vector("exact sum, fp16", "products are not rounded to fp16 before they are added", PAGE, [(-_X, -_X), (-_X, _Y)],
            0, {"exact": number("1.9990234375", -3), "half": power(-2)}, extra=range(13, 16), result="fp16"),
    _vector("fp16 result 1", _NARROW, PAGE, [(number("1.3330078125", -13), number("-1.5", -1))], 0,
            {"rne": -power(-13), "ru": number("-1.9990234375", -14)}, extra=range(3, 16), result="fp16"),
    _vector("fp16 result 2", _NARROW, PAGE, [(number("1.3330078125", -9), number("1.5", -1))], 0,
            {"rne": power(-9), "rz": number("1.9990234375", -10)}, extra=range(3, 16), result="fp16"),
    _vector("fp16 result 3", _NARROW, PAGE, [(subnormal("1.9619140625", -15), number("-1.7744140625", -9))], 0,
            {"rne": subnormal("-1.0029296875", -15), "rd": subnormal("-1.00390625", -15)}, extra=range(3, 16),
            result="fp16"),
    PublishedTest(
        "truncation", "bits that the alignment cuts off still count (sticky)", TABLE_3,
        lambda s: [Input(places(Fraction(2)), -power(-40))],
        lambda s, r: choose(truncated=2, round_to_zero=2 - power(-s.fraction_bits))(r),
        lambda s, t: "truncated", lambda s, t: t.alignment == "rz" and s.fraction_bits + t.extra < 38, narrow=True,
    ),
    *(_sum(i) for i in range(len(_SUMS))),
    *(_sum(i, printed=True) for i in _SUMS_PRINTED),
    _vector("sum 6", _SUM, PAGE, [(number("1", 1), number("1.9990234375", -9))], -power(13),
            {"rz": number("-1.9999980926513672", 12), "rd": number("-1.9999982118606567", 12)}, extra=(2,)),
    PublishedTest(
        "all sums", _SUM, PAGE, _all_sums, _one_mode, lambda s, t: "none of IEEE 754's",
        lambda s, t: truncates(t) and t.extra in (0, 1, 2) and not t.normalised,
    ),
    _vector("accumulation order", "products are added before c", PAGE, *_ORDER, extra=(0,)),
    _vector("normalisation", "partial sums are normalised", PAGE,
            [(subnormal("1.5302734375", -15), number("1.8857421875", -11)),
             (power(-14), subnormal("1.0009765625", -15))], _NORMALISED["at the end"], _NORMALISED),
    _vector("normalisation", "partial sums are normalised", PAGE,
            [(number("1.5302734375", -15), number("1.8857421875", -11)),
             (power(-14), number("1.0009765625", -15))], _NORMALISED["at the end"], _NORMALISED, printed=True),
    _vector("carry bits", "integer bits of the sum", PAGE,
            [(number("1.6484375", -5), number("1.0615234375", 9)), (number("1.765625", -3), number("1.9833984375", 6)),
             (number("1.5", 15), number("1.3330078125", -11)), (power(10), power(-7))], number("1.999664306640625", 4),
            {"three": power(7), "two": 0}),
    _table_5(printed=False),
    _table_5(printed=True),
)  # fmt: skip
