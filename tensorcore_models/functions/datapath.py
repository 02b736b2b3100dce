"""This module states NVIDIA's special-function unit once, over operations `z` on integers of known range.

:mod:`tensorcore_models.functions.on_integers` has the operations on Python's integers, which are the slow reference of every
function. :mod:`tensorcore_models.functions.on_terms` has the operations on bit-vectors for solvers.
``_kernels/functions/unit.h`` is the kernel.

An operand is reduced to an entry of the function's tables and 17 bits x. F = c0 + c1 x + c2 Q(x) is an exact integer, whose
leading bits are the result's significand; the remaining bits are truncated. Q(x) is x^2 in units of 2^19, from a multiplier
that leaves out its folded partial products below column 2^19.

Source: derived from recordings of an H100; all 2^32 results of each instruction agree (tools/check_functions.py).
"""

from typing import Any, NamedTuple

from .tables import UNITS, X_BITS, UnitFunction, tables

NAN = 0x7FFFFFFF
#: The unit's 1 / (2 pi): the FP32 number 0x3e22f983 is this integer times 2^-26.
_TURN = 0xA2F983
#: Binades in which tanh(x) is computed from tables; below them it is x, above them 1.
_TANH_BINADES = range(-8, 3)


class Reduced(NamedTuple):
    """`Reduced` is a reduced operand; the result is (F + whole 2^fraction_bits) 2^(scale - fraction_bits), with the sign.

    `table` is the index of one of the function's tables. `fixed` are pairs of a condition and the result where it holds; the
    first condition that holds decides.
    """

    table: Any
    segment: Any
    x: Any
    sign: Any
    scale: Any
    fixed: list
    whole: Any = None


class Steps(NamedTuple):
    """`Steps` holds the unit's intermediate integers for one result; `cut` is the truncated significand, `code` the result."""

    reduced: Reduced
    fraction_bits: int
    coefficients: tuple
    square: Any
    total: Any
    cut: Any
    code: Any


class Fields(NamedTuple):
    """`Fields` holds the sign, the exponent field and the 23-bit fraction of a code, and whether it is zero or special."""

    sign: Any
    field: Any
    fraction: Any
    zero: Any
    special: Any
    nan: Any


def fields(z, unit: UnitFunction, code) -> Fields:
    """Return the fields of a code; a number with exponent field 0 counts as zero."""
    field, fraction = z.bits(code, 30, unit.bits), z.bits(code, unit.bits - 1, 0)
    special = z.same(field, z.number(2 * unit.bias + 1))
    nan = z.both(special, z.negation(z.same(fraction, z.number(0))))
    return Fields(
        z.same(z.bits(code, 31, 31), z.number(1)), field, z.scaled(fraction, 23 - unit.bits),
        z.same(field, z.number(0)), special, nan,
    )  # fmt: skip


def split(z, unit: UnitFunction, fraction) -> tuple:
    """Return the segment that the leading bits of a 23-bit fraction select, and the remaining bits x as 17 bits."""
    rest = 23 - (len(tables()[unit.tables[0]].rows).bit_length() - 1)
    return z.cut(fraction, rest), z.scaled(z.low(fraction, rest), X_BITS - rest)


def signed(z, unit: UnitFunction, sign, magnitude: int):
    """Return the code of a magnitude with a sign."""
    return z.choose(sign, z.code(1 << 31 | magnitude, 32), z.code(magnitude, 32))


def square(z, x):
    """Return Q(x), the square of 17 bits without its folded partial products below column 19, in units of 2^19."""
    total = z.number(0)
    for i in range(10, X_BITS):
        product = z.plus(z.cut(z.low(x, i), 18 - i), z.number(1 << (2 * i - 19)))
        total = z.plus(total, z.select(z.same(z.low(z.cut(x, i), 1), z.number(1)), product, z.number(0)))
    return total


# -- reductions ----------------------------------------------------------------------------------------------------------
def reduce_ex2(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Reduce ex2: truncate |x| to 23 fraction bits; negate it by inverting its bits if the fraction is not zero."""
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
    """Reduce lg2: the exponent is the whole part, the fraction selects the table entry."""
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
    """Reduce rcp: the exponent changes its sign, the fraction selects an entry of a table with 128 segments."""
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
    """Reduce rsqrt: half the exponent changes its sign; the exponent's parity chooses the table."""
    return _root(z, unit, a, inverse=True)


def reduce_sqrt(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Reduce sqrt: the exponent is halved; its parity chooses one of two tables, which differ from those of rsqrt."""
    return _root(z, unit, a, inverse=False)


def _circle(z, unit: UnitFunction, a: Fields, cosine: bool) -> Reduced:
    """Reduce an angle: |x| / (2 pi) is truncated to 24 bits; 25 bits of its fraction are a quadrant and a place in it."""
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
    """Reduce sin to an angle of 25 bits; a zero keeps its sign."""
    return _circle(z, unit, a, cosine=False)


def reduce_cos(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Reduce cos to the sine of |x| plus a quarter turn."""
    return _circle(z, unit, a, cosine=True)


def reduce_tanh(z, unit: UnitFunction, a: Fields, code) -> Reduced:
    """Reduce tanh: each binade has a table; below the binades the result is x, above them 1."""
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
    """Return the intermediate values and the result of the unit for one operand.

    Parameters
    ----------
    z : module
        :mod:`~tensorcore_models.functions.on_integers` or :mod:`~tensorcore_models.functions.on_terms`.
    name : str
        Name of a function in :data:`~tensorcore_models.functions.tables.UNITS`.
    code : int or Term
        The 32 bits of the operand.
    """
    unit = UNITS[name]
    a = fields(z, unit, code)
    found = REDUCTIONS[name.removesuffix("_high")](z, unit, a, code)
    fraction_bits = tables()[unit.tables[0]].fraction_bits
    c0, c1, c2 = z.entry([tables()[table].rows for table in unit.tables], found.table, found.segment)
    q = square(z, found.x)
    total = z.plus(c0, z.plus(z.product(found.x, c1), z.product(q, c2)))
    sign, size, unit_bits = found.sign, total, fraction_bits
    if found.whole is not None:  # a logarithm: two bits fewer, rounded down; -1 - V stands for -V
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
