"""Finds inputs on which one way to compute d = c + a b is nearer to the exact sum than another (valpey-smt-formalization,
section 6).

A :class:`Way` is a term to ask about and a function to run. For operands that FP16 holds, the two methods of that section
differ only in where c is added (:func:`inside`, :func:`outside`). Ways for FP32 operands, which a recovery method splits into
words, use :func:`rounded_words`; mpgemm states its methods as such ways.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, Unpack

from ...arithmetic import numbers as n
from ...arithmetic.numbers import Number
from ...arithmetic.operations import high as high_of
from ...arithmetic.operations import low as low_of
from ...arithmetic.sums import exact_total, ieee_sum
from ...bitvectors import integers as z
from ...bitvectors import terms as t
from ...bitvectors.integers import Int
from ...bitvectors.terms import Term
from ...formats import Format
from ...formats.exact_rounding import round_to_bits
from .encoding import Formats, Inputs, Modelled, finite_inputs, formats_of, result, symbolic_inputs
from .limits import LimitOptions, SolverLimits
from .queries import SHAPE_SHARE, FormalVerdict, ask, shapes, without_witness
from .witnesses import Contradiction, Witness, exact_value


class Given(NamedTuple):
    """`Given` holds operands of a way: encodings, and the same operands as numbers with exponents known to lie in the asked
    range."""

    inputs: Inputs
    a: tuple[Number, ...]
    b: tuple[Number, ...]
    c: Number


@dataclass(frozen=True)
class Way:
    """`Way` is a way to compute a dot product, stated as a term for solvers and as a function.

    Parameters
    ----------
    name : str
        Name of the way.
    engine : Modelled
        Unit that the way uses.
    formats : Formats
        Formats of the way's operands and result, which may differ from the unit's.
    term : callable
        Function (given, conditions) that returns the encoding of the result as a term for solvers, as
        :func:`.encoding.result` does; `given` is a :class:`Given`.
    run : callable
        Function (witness) that returns the encoding of the result, computed by the kernels and checked by the reference.
    """

    name: str
    engine: Modelled
    formats: Formats
    term: Callable[[Given, list[Term]], Term]
    run: Callable[[Witness], int]


def inside(engine: Modelled) -> Way:
    """Return the way to compute a dot product plus c in which the unit adds c, as in Markidis's method."""
    return Way("inside", engine, formats_of(engine), lambda given, conditions: result(engine, given.inputs, conditions),
               lambda w: w.run(engine))  # fmt: skip


def outside(engine: Modelled) -> Way:
    """Return the way to compute a dot product plus c in which c is added outside the unit, as in Ootomo's method.

    The unit's sum starts at zero; c is added to its result, and the sum is rounded to nearest even.
    """
    formats = formats_of(engine)
    c, d = formats.c, formats.d

    def term(given: Given, conditions: list[Term]) -> Term:
        dot = result(engine, replace(given.inputs, c=t.constant(0, c.bits)), conditions)
        pair = [n.decode(d, dot, engine.accumulator), n.decode(c, given.inputs.c, engine.accumulator)]
        return ieee_sum(pair, d, engine.accumulator, "rne")

    def run(witness: Witness) -> int:
        total = exact_value(replace(witness, c=0).run(engine), d) + exact_value(witness.c, c)
        exponent = -(total.denominator.bit_length() - 1)
        return round_to_bits(total < 0, abs(total.numerator), exponent, d)

    return Way("outside", engine, formats, term, run)


def rounded_words(
    x: Number, fmt: Format, count: int, scale: int, rounding: str, engine: Modelled, conditions: list[Term]
) -> list[Term]:
    """Return encodings of a number's words, each the remainder times 2^(j scale), rounded.

    `conditions` receives "no word overflows".
    """
    words = []
    rest = x
    for j in range(count):
        exponent = z.minus(rest.align, z.number(rest.point - j * scale))
        code, overflow = n.rounded_magnitude(rest.negative, rest.significand, exponent, fmt, rounding)
        conditions.append(t.negation(overflow))
        words.append(n.encoded(rest.negative, z.as_bits(code, fmt.exponent_bits + fmt.fraction_bits), fmt))
        if j + 1 < count:
            word = n.decode(fmt, words[-1], engine.accumulator)
            taken = word._replace(align=z.minus(word.align, z.number(j * scale)), negative=t.negation(word.negative))
            total, lowest = exact_total([rest, taken])
            rest = n.plain(z.less(total, z.number(0)), z.magnitude(total), lowest, 0)
    return words


def beating_input(
    better: Way,
    worse: Way,
    *,
    exponents: tuple[int, int] = (-15, 14),
    c_exponents: tuple[int, int] = (-30, 14),
    k: int | None = None,
    **options: Unpack[LimitOptions],
) -> FormalVerdict:
    """Search with solvers for operands for which `better` has a smaller absolute error than `worse`.

    Parameters
    ----------
    better, worse : Way
        Ways to compute the dot product, with the same operand formats.
    exponents, c_exponents : tuple of int
        Smallest and largest exponent of nonzero operands, and of nonzero c. The default range of operands is that of Ootomo and
        Yokota's test data "type 1".
    k : int, optional
        Number of products; by default the k step of the unit of `better`.
    **options
        Limits: :class:`~.limits.LimitOptions`.

    Returns
    -------
    FormalVerdict
        `results` holds the results of `better` and of `worse`; their errors are compared in exact rationals.

    Raises
    ------
    ValueError
        If the formats of the ways differ, or no exponent of a format lies in the given range.
    Contradiction
        If the run of a way gives another result than its term, or `better` has no smaller error.
    """
    limits, formats, ways = SolverLimits(**options), better.formats, (better, worse)
    if worse.formats != formats:
        raise ValueError(f"both ways must have the same operand and result formats, got {formats} and {worse.formats}")
    length = better.engine.k if k is None else k
    for name, asked, fmt in (("exponents", exponents, formats.a), ("c_exponents", c_exponents, formats.c)):
        if max(asked[0], fmt.emin) > min(asked[1], fmt.emax):
            raise ValueError(
                f"{name} are {asked}, but the exponents of {fmt.name} lie between {fmt.emin} and {fmt.emax}: give a range that "
                "contains some of them"
            )
    reach = (c_exponents[0], 2 * exponents[1] + 2 + length.bit_length())

    def question(inputs: Inputs, conditions: list[Term]) -> Term:
        given = given_operands(inputs, formats, better.engine, exponents, c_exponents, conditions)
        addends = [*(n.multiply(x, y) for x, y in zip(given.a, given.b, strict=True)), given.c]
        errors = [_error(way, given, addends, reach, conditions) for way in ways]
        return z.less(*_same_unit(*errors))

    # One product suffices if operands are split into words; otherwise several products are needed.
    split = formats.a != formats_of(better.engine).a and length > 1

    def attempts():
        one = symbolic_inputs(formats, length, [0])
        simple = [(replace(one, b=(_factor_of_two_bits(formats.b), *one.b[1:])), False), (one, False)] if split else []
        for inputs, whole in [*simple, *shapes(formats, length)]:
            yield inputs, whole, finite_inputs(inputs, formats, better.engine.accumulator)

    answer, found, _ = ask(question, attempts(), limits, share=_SPLIT_SHARE if split else SHAPE_SHARE)
    if found is None:
        assumed = f"exponents {exponents}, of c {c_exponents}", f"results of exponents {reach} or 0, no word infinite"
        return without_witness(limits, answer, assumed)
    values = {x.params[0]: answer.model.get(x.params[0], 0) for x in found.variables}
    witness = Witness.of(found, formats, values)
    terms = [way.term(given_operands(found, formats, better.engine, exponents, c_exponents, []), []) for way in ways]
    results = tuple(_run(way, witness, bits) for way, bits in zip(ways, t.evaluate(terms, values), strict=True))
    mine, theirs = (abs(exact_value(d, formats.d) - exact_dot(witness)) for d in results)
    if mine >= theirs:
        raise Contradiction(f"{better.name} has the error {mine}, {worse.name} {theirs} on\n{witness}")
    return FormalVerdict("witness", witness, None, results, (), answer.backend, limits.seconds)


def _factor_of_two_bits(fmt: Format) -> Term:
    """Return 1 + 2^-j, j beyond the middle of the fraction: nearly no multiplication for a solver, but the number has several
    words.
    """
    bits = 1 << (fmt.fraction_bits - fmt.fraction_bits // 2 - 1) if fmt.fraction_bits else 0
    return t.constant(((fmt.bias << fmt.fraction_bits) + bits) << fmt.padding_bits, fmt.bits)


#: Share of the time for split operands of one shape; their multiplications make these questions hard.
_SPLIT_SHARE = 0.3


def _run(way: Way, witness: Witness, expected: int) -> int:
    found = way.run(witness)
    if found != expected:
        raise Contradiction(f"{way.name} on\n{witness}\ngives {found:#x}, its encoding {expected:#x}")
    return found


def exact_dot(witness: Witness) -> Fraction:
    """Return c + a b as a rational number."""
    f = witness.formats
    products = (exact_value(x, f.a) * exact_value(y, f.b) for x, y in zip(witness.a, witness.b, strict=True))
    return exact_value(witness.c, f.c) + sum(products)


def given_operands(
    inputs: Inputs,
    formats: Formats,
    engine: Modelled,
    exponents: tuple[int, int],
    c_exponents: tuple[int, int],
    conditions: list[Term],
) -> Given:
    """Return encodings as operands of ways; `conditions` receives that the exponents of nonzero numbers lie in their ranges."""

    def numbers(codes: Sequence[Term], fmt: Format, within: tuple[int, int]) -> tuple[Number, ...]:
        return tuple(_within(n.decode(fmt, x, engine.accumulator), within, conditions) for x in codes)

    a, b = numbers(inputs.a, formats.a, exponents), numbers(inputs.b, formats.b, exponents)
    return Given(inputs, a, b, numbers([inputs.c], formats.c, c_exponents)[0])


def _within(number: Number, exponents: tuple[int, int], conditions: list[Term]) -> Number:
    """Return a number whose exponent is asked to lie in a range, unless the number is zero.

    `align` is then known to lie in it.
    """
    low, high = max(exponents[0], low_of(number.align)), min(exponents[1], high_of(number.align))
    if low > high:  # no exponent is allowed, so the number is zero, whose exponent is arbitrary
        conditions.append(z.is_zero(number.significand))
        return number._replace(align=z.number(exponents[0]))
    fits = t.both(z.at_most(z.number(low), number.align), z.at_most(number.align, z.number(high)))
    conditions.append(t.either(fits, z.is_zero(number.significand)))
    return number._replace(align=z.ranged(z.whole(number.align).term, low, high))


def _error(
    way: Way, given: Given, addends: list[Number], reach: tuple[int, int], conditions: list[Term]
) -> tuple[Int, int]:
    """Return |d - exact sum| and its exponent."""
    d = n.decode(way.formats.d, way.term(given, conditions), way.engine.accumulator)
    conditions.append(t.negation(t.either(d.nan, d.inf)))
    d = _within(d, reach, conditions)
    total, exponent = exact_total([*addends, d._replace(negative=t.negation(d.negative))])
    return z.magnitude(total), exponent


def _same_unit(x: tuple[Int, int], y: tuple[Int, int]) -> tuple[Int, Int]:
    unit = min(x[1], y[1])
    return z.scaled(x[0], x[1] - unit), z.scaled(y[0], y[1] - unit)
