"""Holds the tests of Hawkeye (Badash, Boneh, Komargodski and Srivastava, MLSys 2026, arXiv:2603.20421), as in its released
programs: one for 16-bit operands, one for e4m3 on Hopper's wgmma.

Each test keeps the addends and the conclusions of its program. Two things are generalised: powers of two follow from the
formats, and a dot product has the products of two instructions instead of one. F is the number found by "internal precision", P
the precision of the result. If a program leaves several candidates, they are joined by "or", and later tests use the first.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from ...aspects.values import ONE, Product, Unreachable, encode_value, power
from .model import THREE_QUARTERS, Input, PublishedTest, Results, Setting, Truth, leading, places, truncates

SIXTEEN, EIGHT = "Hawkeye (program for 16-bit operands)", "Hawkeye (program for e4m3)"
#: Largest exponent of the programs' large numbers; the small numbers have its negative.
REACH = 20
#: Most addends of which every subset is tried; with more, runs of products with and without c (as in the program for e4m3).
EVERY_SUBSET = 9
#: Lowest exponent in the search for the floor of the alignment, and most carries in the output test.
LOWEST_EXPONENT, MOST_CARRIES = -200, 5
_PRECISION, _OUTPUT = "internal precision", "output precision"
_C = -1

_MODES = (
    "nearest, ties to zero", "nearest, ties away", "nearest, ties to even", "towards zero", "away from zero", "towards even",
)  # fmt: skip
#: Names, in Hawkeye's words, of this package's roundings; "to odd", "up" and "down" are not among Hawkeye's candidates.
_NAMES = {
    "rz": "towards zero",
    "rne": "nearest, ties to even",
    "rna": "nearest, ties away",
    "ro": "to odd",
    "ru": "up",
    "rd": "down",
}
#: Candidates that the search at the alignment cannot tell apart.
_EVEN = "nearest, ties to even or towards even"


def _left(candidates: Sequence[str]) -> str:
    return " or ".join(candidates) if candidates else "no candidate left"


def _without(candidates: Sequence[str], *words: str) -> list[str]:
    return [mode for mode in candidates if not any(word in mode for word in words)]


def _with(candidates: Sequence[str], word: str) -> list[str]:
    return [mode for mode in candidates if word in mode]


# -- neutral subgroups ---------------------------------------------------------------------------------------------------------
def _subsets(length: int) -> list[tuple[int, ...]]:
    """Return the sets of two or more addends to try, the small ones first; -1 is c."""
    if length + 1 <= EVERY_SUBSET:
        return [x for size in range(2, length + 2) for x in combinations(range(-1, length), size)]
    runs = [tuple(range(i, j)) for i in range(length) for j in range(i + 1, length + 1)]
    every = [(*c, *run) for run in runs for c in ((), (_C,)) if len(c) + len(run) > 1]
    return sorted(every, key=len)


def _large_and_small(s: Setting) -> tuple[Fraction, Fraction]:
    a, b, c, d = s.formats
    high = min(REACH, c.emax - 1, d.emax - 1)
    while not s.reaches(power(high + 1)):
        high -= 1
    low = max(-REACH, c.quantum_exponent, d.quantum_exponent)
    while not s.reaches(power(low)):
        low += 1
    return power(high), power(low)


def _neutral(s: Setting) -> list[Input]:
    """Return two dot products for each set: its addends large and cancelling, and its addends zero; all other addends are
    small."""
    large, small = _large_and_small(s)
    minus, twice = -large, 2 * large
    found = []
    for subset in _subsets(s.length):
        half = (len(subset) + 1) // 2
        values = dict.fromkeys(subset[:half], minus) | dict.fromkeys(subset[half:], large)
        if len(subset) % 2:
            values[subset[half]] = twice
        rest = dict.fromkeys((k for k in range(_C, s.length) if k not in values), small)
        cancelling = rest | values
        for addends in (cancelling, rest):
            c = addends.get(_C, Fraction(0))
            products: dict[int, Product] = {k: v for k, v in addends.items() if k != _C}
            found.append(Input(products, c, scaled=False))
    return found


def _group(s: Setting, results: Results) -> str:
    """Return the first of the smallest neutral sets."""
    for i, subset in enumerate(_subsets(s.length)):
        with_it, without = results[2 * i : 2 * i + 2]
        if with_it is not None and with_it == without:
            products = len(subset) - (_C in subset)
            return f"{products} products{' and c' if _C in subset else ', c at the end'}"
    return "no neutral group"


def _hides(s: Setting, t: Truth) -> bool:
    """Return whether the large number hides the small one from the alignment."""
    large, small = _large_and_small(s)
    return small < large * power(-s.fraction_bits - t.extra)


# -- precisions ----------------------------------------------------------------------------------------------------------------
def _pair(*others: Product) -> dict[int, Product]:
    """Return the products 1, -1 and others."""
    return places(ONE, -ONE, *others)


def _falling(s: Setting, in_c: bool) -> list[Input]:
    """Return inputs of 1 - 1 and 2^-t, as a product, or as c up to t = P."""
    if in_c:
        return [Input(_pair(), power(-t)) for t in range(1, s.precision + 1)]
    return [Input(_pair(power(-t))) for t in range(1, 2 * sum(fmt.emax + fmt.precision for fmt in s.formats[:2]))]


def _depth(s: Setting, results: Results) -> str:
    count = leading(results, [power(-t) for t in range(1, len(results) + 1)])
    return str(count) if count < len(results) else f"{count} or more"


def _carrying(s: Setting) -> list[Input]:
    """Return inputs of 2^-F and 2^n products of 1."""
    tiny = power(-s.number(_PRECISION))
    counts = [2**n for n in range(MOST_CARRIES + 1) if 2**n < s.length]
    return [Input(places(tiny, *[ONE] * n)) for n in counts]


def _output(s: Setting, results: Results) -> str:
    """Return F plus one bit for each carry that kept 2^-F."""
    f = s.number(_PRECISION)
    return str(f + leading(results, [2**n + power(-f) for n in range(len(results))]))


def _output_shows(s: Setting, t: Truth) -> bool:
    """Return whether at most one carry is needed, because later operations of a chain cut longer results to F bits again."""
    carries = t.result_bits - (s.fraction_bits + t.extra)
    return carries in (-1, 0) and s.length > 2 and t.terms >= 2


# -- roundings -----------------------------------------------------------------------------------------------------------------
def _shifted(s: Setting) -> list[Input]:
    """Return inputs of 1 - 1 and 1/2, -1/2, 3/2 and 3/4 of the alignment's unit."""
    unit = power(-s.number(_PRECISION))
    return [Input(_pair(t * unit)) for t in (Fraction(1, 2), -Fraction(1, 2), Fraction(3, 2), THREE_QUARTERS)]


def _shift(s: Setting, results: Results) -> str:
    """Return the roundings that the program's elimination leaves."""
    half, minus_half, three_halves, three_quarters = results
    left = list(_MODES)
    left = _without(left, "away") if half == 0 else ["nearest, ties away", "away from zero"]
    left = _without(left, "away") if minus_half == 0 else _with(left, "away")
    left = _without(left, "even") if three_halves == power(-s.number(_PRECISION)) else _with(left, "even")
    left = _with(left, "zero") if three_quarters == 0 else _without(left, "zero")
    if {"nearest, ties to zero", "towards zero"} <= set(left):  # 3/4 of a unit once more
        left = ["towards zero" if three_quarters == 0 else "nearest, ties to zero"]
    return _left(left)


def _three_and_one(precision: int, halves: int) -> list[Input]:
    """Return inputs of the reference 2.25 * 2^P, as one product or as two equal ones, with 3 and with -1."""
    up = (precision + 1 - halves) // 2
    factors = (Fraction(3, 2) * power(up), Fraction(3, 2) * power(precision + 1 - halves - up))
    return [Input(places(*[factors] * halves, value)) for value in (Fraction(3), -ONE)]


def _final(precision: int, results: Results) -> str:
    """Return the roundings that the program's elimination leaves."""
    first, second = results
    if first is None or second is None:
        return "not finite"
    reference, left = Fraction(9, 4) * power(precision), list(_MODES)  # the reference's last place is 4
    if first == reference:
        left = [mode for mode in _without(left, "nearest") if mode != "away from zero"]
    elif first == reference + 4:
        left.remove("towards zero")
    if first - second > 0:
        left = [mode for mode in _without(left, "nearest") if mode not in ("towards even", "away from zero")]
    elif first == second:
        left = [mode for mode in left if mode != "towards zero"]
    return _left(left)


# -- exponents -----------------------------------------------------------------------------------------------------------------
def _subnormal_pair(s: Setting) -> list[Input]:
    """Return half of A's smallest normal number times the inverse of that number, minus the same product, and 2^(-1-F)."""
    a, *_, d = s.formats
    if not a.has_subnormals:
        raise Unreachable(f"{a.name} has no subnormal numbers")
    half, inverse, rest = power(a.emin - 1), power(-a.emin), power(-1 - s.number(_PRECISION))
    encode_value(rest, d)
    return [Input(places((half, inverse), (-half, inverse), rest), scaled=False)]


def _beyond(s: Setting) -> list[Input]:
    """Return twice the largest power of two of the result, minus the same number, and that power."""
    top = power(s.formats[3].emax)
    return [Input(places(2 * top, -2 * top, top), scaled=False)]


def _exponents() -> Iterator[int]:
    return iter(range(0, LOWEST_EXPONENT, -1))


def _lowering(s: Setting) -> list[Input]:
    """Return inputs of 2^e minus the last bit that the alignment keeps, for falling e."""
    unit = power(-s.number(_PRECISION))
    return [Input(places(power(e), -power(e) * unit), scaled=False) for e in _exponents()]


def _floor(s: Setting, results: Results) -> str:
    for e, value in zip(_exponents(), results, strict=False):
        if value == power(e):
            return str(e + 1)
    return "not reached"


def _shows_floor(s: Setting, t: Truth) -> bool:
    """Return whether the formats reach below the floor, and a bit taken away shows in the result."""
    if t.floor is None or t.rounding not in ("rz", "rd") or t.alignment != "rz":
        return False
    below = t.floor - 1
    if below <= max(LOWEST_EXPONENT, s.formats[3].quantum_exponent):
        return False
    return all(s.reaches(power(e)) for e in (below, below - s.fraction_bits - t.extra))


HAWKEYE = (
    PublishedTest(
        "accumulation group", "the smallest set of addends that cancels without a trace", SIXTEEN, _neutral, _group,
        lambda s, t: f"{t.terms} products and c", _hides, narrow=True,
    ),
    PublishedTest(
        _PRECISION, "fraction bits at the alignment", SIXTEEN, lambda s: _falling(s, False), _depth,
        lambda s, t: str(s.fraction_bits + t.extra),
        lambda s, t: t.terms >= 3 and s.spans(s.fraction_bits + t.extra + 1), 3, ladder=True, narrow=True,
    ),
    PublishedTest(
        "accumulator precision", "fraction bits at the alignment, of c", EIGHT, lambda s: _falling(s, True), _depth,
        lambda s, t: str(s.fraction_bits + t.extra) if t.extra < 1 else f"{s.precision} or more",
        lambda s, t: t.terms >= 2, 2, ladder=True, narrow=True,
    ),
    PublishedTest(
        _OUTPUT, "precision of the result", EIGHT, _carrying, _output, lambda s, t: str(t.result_bits + 1),
        _output_shows, 2, narrow=True,
    ),
    PublishedTest(
        "shift rounding", "rounding at the alignment", SIXTEEN, _shifted, _shift,
        lambda s, t: _EVEN if t.alignment == "rne" else _NAMES[t.alignment],
        lambda s, t: t.alignment in ("rz", "rne") and t.terms >= 3, 3, narrow=True,
    ),
    PublishedTest(
        "normalization overflow", "products are normalised", SIXTEEN,
        lambda s: [Input(places(*[(x, Fraction(3, 2)) for x in (Fraction(3, 2), -Fraction(3, 2))],
                                power(-s.number(_PRECISION))))],
        lambda s, r: "no" if r[0] == power(-s.number(_PRECISION)) else "yes",
        lambda s, t: "yes" if t.normalised else "no", lambda s, t: t.terms >= 3, 3, narrow=True,
    ),
    PublishedTest(
        "final rounding", "rounding of the result", SIXTEEN, lambda s: _three_and_one(s.precision, 1),
        lambda s, r: _final(s.precision, r), lambda s, t: _NAMES[t.rounding],
        lambda s, t: t.extra >= 1 and truncates(t) and not t.normalised and t.terms >= 2, 2,
    ),
    PublishedTest(
        "final rounding, two halves", "rounding of the result", EIGHT, lambda s: _three_and_one(s.number(_OUTPUT), 2),
        lambda s, r: _final(s.number(_OUTPUT), r), lambda s, t: _NAMES[t.rounding],
        lambda s, t: _output_shows(s, t) and truncates(t) and not t.normalised and t.terms >= 3, 3, narrow=True,
    ),
    PublishedTest(
        "subnormal normalization", "subnormal operands are normalised", SIXTEEN, _subnormal_pair,
        lambda s, r: "yes" if r[0] == power(-1 - s.number(_PRECISION)) else "no",
        lambda s, t: "yes" if t.normalised else "no", lambda s, t: t.terms >= 3, 3, narrow=True,
    ),
    PublishedTest(
        "extended range", "a sum may pass through numbers beyond the result's", SIXTEEN, _beyond,
        lambda s, r: "supported" if r[0] == power(s.formats[3].emax) else "not supported",
        lambda s, t: "not supported" if t.product_overflow is not None and t.product_overflow <= s.formats[3].emax + 1
        else "supported", lambda s, t: t.terms >= 3, 3, narrow=True,
    ),
    PublishedTest(
        "minimal max exponent", "floor of the alignment exponent", SIXTEEN, _lowering, _floor,
        lambda s, t: "not reached" if t.floor is None else str(t.floor),
        lambda s, t: _shows_floor(s, t) and t.terms >= 3, 2, ladder=True, narrow=True,
    ),
    PublishedTest(
        "accumulator range", "c of the largest exponent passes", EIGHT,
        lambda s: [Input({}, power(s.formats[2].emax), scaled=False)],
        lambda s, r: "kept" if r[0] == power(s.formats[2].emax) else "lost", lambda s, t: "kept",
        lambda s, t: s.formats[2].emax <= s.formats[3].emax, narrow=True,
    ),
)  # fmt: skip
