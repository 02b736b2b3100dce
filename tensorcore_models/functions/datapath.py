"""States NVIDIA's special-function unit once, over operations `z` on integers of known range.

:mod:`tensorcore_models.functions.on_integers` has the operations on Python's integers, the slow truth of every function, and
:mod:`tensorcore_models.functions.on_terms` on bit-vectors for solvers; ``_kernels/functions/unit.h`` is the kernel.

An operand is reduced to an entry of the function's tables and 17 bits x. F = c0 + c1 x + c2 Q(x) is an exact integer, of which
the leading bits are the result's significand: nothing is rounded, the rest is cut off. Q(x) is x^2 as a multiplier
gives it that leaves out its folded partial products below the column 2^19, in units of 2^19.

Source: solved from recordings of an H100; all 2^32 results of each instruction are these (tools/check_functions.py).
"""

from typing import Any, NamedTuple

from .tables import UNITS, X_BITS, UnitFunction, tables

NAN = 0x7FFFFFFF
#: 1 / (2 pi) as the unit has it: 0x3e22f983, this times 2^-26.
_TURN = 0xA2F983
#: Binades in which tanh is no identity and not 1.
_TANH_BINADES = range(-8, 3)


class Reduced(NamedTuple):
    """An operand taken apart: the result is (F + whole 2^fraction_bits) 2^(scale - fraction_bits), with the sign.

    `table` counts the function's tables, `fixed` are conditions, each with the code that is the result where it holds; of
    several that hold the first decides.
    """

    table: Any
    segment: Any
    x: Any
    sign: Any
    scale: Any
    fixed: list
    whole: Any = None


class Steps(NamedTuple):
    """The unit's values on its way to one result, all integers; `cut` is the significand, `code` the result."""

    reduced: Reduced
    fraction_bits: int
    coefficients: tuple
    square: Any
    total: Any
    cut: Any
    code: Any


class Fields(NamedTuple):
    """Sign, exponent field and the fraction as 23 bits of a code, and what the exponent field says."""

    sign: Any
    field: Any
    fraction: Any
    zero: Any
    special: Any
    nan: Any


def fields(z, unit: UnitFunction, code) -> Fields:
    """Return a code taken apart; what has the exponent field 0 counts as zero."""
    field, fraction = z.bits(code, 30, unit.bits), z.bits(code, unit.bits - 1, 0)
    special = z.same(field, z.number(2 * unit.bias + 1))
    nan = z.both(special, z.negation(z.same(fraction, z.number(0))))
    return Fields(
        z.same(z.bits(code, 31, 31), z.number(1)), field, z.scaled(fraction, 23 - unit.bits),
        z.same(field, z.number(0)), special, nan,
    )  # fmt: skip


def split(z, unit: UnitFunction, fraction) -> tuple:
    """Return the segment of a fraction of 23 bits, and x: what the segment leaves, as 17 bits."""
    rest = 23 - (len(tables()[unit.tables[0]].rows).bit_length() - 1)
    return z.cut(fraction, rest), z.scaled(z.low(fraction, rest), X_BITS - rest)


def signed(z, unit: UnitFunction, sign, magnitude: int):
    """Return a code of that magnitude and a sign."""
    return z.choose(sign, z.code(1 << 31 | magnitude, 32), z.code(magnitude, 32))


def square(z, x):
    """Q(x): the square of 17 bits without its folded partial products below column 19, in units of 2^19."""
    total = z.number(0)
    for i in range(10, X_BITS):
        product = z.plus(z.cut(z.low(x, i), 18 - i), z.number(1 << (2 * i - 19)))
        total = z.plus(total, z.select(z.same(z.low(z.cut(x, i), 1), z.number(1)), product, z.number(0)))
    return total


# -- reductions ----------------------------------------------------------------------------------------------------------
def reduce_ex2(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """|x| cut to 23 fraction bits, negated by inverting its bits where some of its fraction are set."""
    wide = z.scaled(z.plus(a.fraction, z.number(1 << 23)), 7)
    size = z.shifted(wide, z.larger(z.minus(z.number(134), a.field), z.number(0)))
    size = z.select(z.less(z.number(134), a.field), z.number(0), size)
    fraction, whole = z.low(size, 23), z.cut(size, 23)
    inverted = z.both(a.sign, z.negation(z.same(fraction, z.number(0))))
    fraction = z.select(inverted, z.minus(z.number((1 << 23) - 1), fraction), fraction)
    negative = z.minus(z.select(inverted, z.number(-1), z.number(0)), whole)
    whole = z.select(a.sign, negative, whole)
    segment, x = split(z, unit, fraction)
    large = z.less(z.number(134), a.field)
    fixed = [
        (a.zero, z.code(0x3F800000, 32)),
        (large, z.choose(a.sign, z.code(0, 32), z.code(0x7F800000, 32))),
    ]
    return Reduced(z.number(0), segment, x, z.false, whole, fixed)


def reduce_lg2(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """The exponent is the whole part, the fraction the operand of the table."""
    segment, x = split(z, unit, a.fraction)
    one = z.both(z.same(a.field, z.number(127)), z.same(a.fraction, z.number(0)))
    fixed = [
        (a.zero, z.code(0xFF800000, 32)),
        (a.sign, z.code(NAN, 32)),
        (a.special, z.code(0x7F800000, 32)),
        (one, z.code(0, 32)),
    ]
    return Reduced(z.number(0), segment, x, z.false, z.number(0), fixed, z.minus(a.field, z.number(127)))


def reduce_rcp(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """The exponent changes its sign, the fraction is the operand of a table with 128 segments."""
    segment, x = split(z, unit, a.fraction)
    infinity = (2 * unit.bias + 1) << unit.bits
    fixed = [(a.zero, signed(z, unit, a.sign, infinity)), (a.special, signed(z, unit, a.sign, 0))]
    return Reduced(z.number(0), segment, x, a.sign, z.minus(z.number(unit.bias), a.field), fixed)


def _root(z, unit: UnitFunction, a: Fields, inverse: bool) -> Reduced:
    exponent = z.minus(a.field, z.number(unit.bias))
    half, odd = z.floored(exponent, 1), z.low(exponent, 1)
    segment, x = split(z, unit, a.fraction)
    infinity = (2 * unit.bias + 1) << unit.bits
    fixed = [
        (a.zero, signed(z, unit, a.sign, infinity if inverse else 0)),
        (a.sign, z.code(NAN, 32)),
        (a.special, z.code(0 if inverse else infinity, 32)),
    ]
    if inverse:  # powers of four are exact
        exact = z.both(z.same(odd, z.number(0)), z.same(a.fraction, z.number(0)))
        fixed.append((exact, z.as_code(z.scaled(z.minus(z.number(unit.bias), half), unit.bits), 32)))
        half = z.minus(z.number(0), half)
    return Reduced(odd, segment, x, z.false, half, fixed)


def reduce_rsqrt(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Return half of the exponent with the other sign; its parity chooses the table."""
    return _root(z, unit, a, inverse=True)


def reduce_sqrt(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Return half of the exponent; its parity chooses the table, and both tables are others than those of rsqrt."""
    return _root(z, unit, a, inverse=False)


def _circle(z, unit: UnitFunction, a: Fields, cosine: bool) -> Reduced:
    """|x| / (2 pi) cut to 24 bits, of whose fraction 25 bits are an angle: a quadrant and where in it."""
    product = z.times(z.plus(a.fraction, z.number(1 << 23)), z.number(_TURN))
    carry = z.cut(product, 47)
    turns = z.select(z.same(carry, z.number(1)), z.cut(product, 24), z.cut(product, 23))
    places = z.minus(z.number(153), z.plus(a.field, carry))
    angle = z.low(z.shifted(z.scaled(turns, 25), z.larger(places, z.number(0))), 25)
    angle = z.select(a.zero, z.number(0), angle)
    if cosine:
        angle = z.low(z.plus(angle, z.number(1 << 23)), 25)
    rest = z.low(angle, 23)
    quadrant = z.cut(angle, 23)
    odd = z.same(z.low(quadrant, 1), z.number(1))
    rest = z.select(odd, z.minus(z.number((1 << 23) - 1), rest), rest)
    turned = z.less(z.number(1), quadrant)
    sign = turned if cosine else z.exclusive(a.sign, turned)
    segment, x = split(z, unit, rest)
    return Reduced(z.number(0), segment, x, sign, z.number(0), [(a.special, z.code(NAN, 32))])


def reduce_sin(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Return an angle of 25 bits; zeros keep their sign."""
    return _circle(z, unit, a, cosine=False)


def reduce_cos(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Return the sine a quarter turn further, of |x|."""
    return _circle(z, unit, a, cosine=True)


def reduce_tanh(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Return a table for each binade; below them x itself, above them 1."""
    below = z.less(a.field, z.number(unit.bias + _TANH_BINADES[0]))
    above = z.less(z.number(unit.bias + _TANH_BINADES[-1]), a.field)
    fixed = [(below, code), (above, signed(z, unit, a.sign, 0x3F800000))]
    inside = z.negation(z.either(below, above))
    table, segment, x, scale = z.number(0), z.number(0), z.number(0), z.number(0)
    first = tables()[unit.tables[0]].fraction_bits
    for number, name in enumerate(unit.tables):
        rows, fraction_bits = tables()[name]
        segment_bits = len(rows).bit_length() - 1
        kept = z.cut(a.fraction, 23 - segment_bits - X_BITS)
        here = z.both(inside, z.same(a.field, z.number(unit.bias + _TANH_BINADES[number])))
        table = z.select(here, z.number(number), table)
        segment = z.select(here, z.cut(kept, X_BITS), segment)
        x = z.select(here, z.low(kept, X_BITS), x)
        scale = z.select(here, z.number(first - fraction_bits), scale)
    return Reduced(table, segment, x, a.sign, scale, fixed)


REDUCTIONS = {
    "ex2": reduce_ex2, "lg2": reduce_lg2, "rcp": reduce_rcp, "rsqrt": reduce_rsqrt, "sqrt": reduce_sqrt, "sin": reduce_sin,
    "cos": reduce_cos, "tanh": reduce_tanh,
}  # fmt: skip


# -- the datapath --------------------------------------------------------------------------------------------------------
def steps(z, name: str, code) -> Steps:
    """Return all that the unit computes of one operand.

    Parameters
    ----------
    z : module
        :mod:`~tensorcore_models.functions.on_integers` or :mod:`~tensorcore_models.functions.on_terms`.
    name : str
        One of :data:`~tensorcore_models.functions.tables.UNITS`.
    code : int or Term
        The operand's 32 bits.
    """
    unit = UNITS[name]
    a = fields(z, unit, code)
    found = REDUCTIONS[name.removesuffix("_high")](z, unit, a, code)
    fraction_bits = tables()[unit.tables[0]].fraction_bits
    c0, c1, c2 = z.entry([tables()[table].rows for table in unit.tables], found.table, found.segment)
    q = square(z, found.x)
    total = z.plus(c0, z.plus(z.product(found.x, c1), z.product(q, c2)))
    sign, size, unit_bits = found.sign, total, fraction_bits
    if found.whole is not None:  # a logarithm: two bits less, rounded down, and -1 - V in place of -V
        total = z.floored(z.plus(z.scaled(found.whole, fraction_bits), total), 2)
        unit_bits = fraction_bits - 2
        sign = z.less(total, z.number(0))
        size = z.select(sign, z.minus(z.number(-1), total), total)
    significand, leading = z.leading(size, unit.bits + 1)
    field = z.plus(z.plus(leading, found.scale), z.number(unit.bias - unit_bits))
    result = z.encoded(sign, field, significand, unit.bits)
    for condition, fixed in reversed([(a.nan, z.code(NAN, 32)), *found.fixed]):
        result = z.choose(condition, fixed, result)
    return Steps(found, unit_bits, (c0, c1, c2), q, total, significand, result)
