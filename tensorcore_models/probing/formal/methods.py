"""Inputs on which one way to compute d = c + a b is nearer to the exact sum than another (valpey-smt-formalization, section 6).

With operands that FP16 holds, both methods of that section come down to where c is added: Markidis et al. give it to the unit,
Ootomo and Yokota add it to the unit's result outside, rounded to nearest. A :class:`Way` is a term to ask about and a function
to run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...formats.exact_rounding import round_to_bits
from . import integers as z
from . import numbers as n
from . import terms as t
from .encoding import Formats, Inputs, Modelled, exact_sum, finite_inputs, result
from .integers import Int
from .numbers import Number
from .queries import Verdict, ask, limits_of, shapes
from .solvers import DEFAULT_MEMORY, DEFAULT_TIMEOUT
from .terms import Term
from .witnesses import Contradiction, Witness, exact_value, witness_formats


@dataclass(frozen=True)
class Way:
    """A way to compute a dot product.

    Parameters
    ----------
    name : str
    engine : Modelled
        The unit it uses.
    term : callable
        (inputs, conditions) -> encoding of its result, as :func:`.encoding.result`.
    run : callable
        (witness) -> encoding of its result, from the kernels and the reference.
    """

    name: str
    engine: Modelled
    term: Callable[[Inputs, list[Term]], Term]
    run: Callable[[Witness], int]


def inside(engine: Modelled) -> Way:
    """c is added by the unit (Markidis et al.)."""
    return Way("inside", engine, lambda given, conditions: result(engine, given, conditions), lambda w: w.run(engine))


def outside(engine: Modelled) -> Way:
    """The unit starts from zero, c is added to its result, rounded to nearest even (Ootomo and Yokota)."""
    c, d = engine.formats[2], engine.formats[3]

    def term(given: Inputs, conditions: list[Term]) -> Term:
        dot = result(engine, replace(given, c=t.constant(0, c.bits)), conditions)
        pair = [n.decode(d, dot, engine.accumulator), n.decode(c, given.c, engine.accumulator)]
        return n.ieee_sum(pair, d, engine.accumulator, "rne")

    def run(witness: Witness) -> int:
        total = exact_value(replace(witness, c=0).run(engine), d) + exact_value(witness.c, c)
        exponent = -(total.denominator.bit_length() - 1)
        return round_to_bits(total < 0, abs(total.numerator), exponent, d)

    return Way("outside", engine, term, run)


def beating_input(
    better: Way,
    worse: Way,
    *,
    exponents: tuple[int, int] = (-15, 14),
    c_exponents: tuple[int, int] = (-30, 14),
    k: int | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    memory: int = DEFAULT_MEMORY,
    backends: Sequence[str] | None = None,
) -> Verdict:
    """Operands for which `better` has the smaller absolute error.

    Parameters
    ----------
    better, worse : Way
        Of one unit.
    exponents, c_exponents : tuple of int
        The least and the greatest exponent of operands and of c that are not zero: -15 to 14 is Ootomo and Yokota's type 1.
    k, timeout, memory, backends
        As for :func:`distinguishing_input`.

    Returns
    -------
    Verdict
        `results` are those of `better` and of `worse`; that their errors are in this order is checked in rationals.
    """
    limits, engine = limits_of(timeout, memory, backends), better.engine
    formats = witness_formats(engine, worse.engine)

    def question(given: Inputs, conditions: list[Term]) -> Term:
        spec = engine.accumulator
        rows = ((formats.a, given.a), (formats.b, given.b))
        a, b = ([_within(n.decode(fmt, x, spec), exponents, conditions) for x in codes] for fmt, codes in rows)
        addends = [n.multiply(x, y) for x, y in zip(a, b, strict=True)]
        addends.append(_within(n.decode(formats.c, given.c, spec), c_exponents, conditions))
        reach = (c_exponents[0], 2 * exponents[1] + 2 + len(a).bit_length())
        errors = [_error(way, given, addends, formats, reach, conditions) for way in (better, worse)]
        return z.less(*_same_unit(*errors))

    def attempts():
        for given, whole in shapes(formats, engine.k if k is None else k):
            yield given, whole, finite_inputs(given, formats, engine.accumulator)

    answer, found, _ = ask(question, attempts(), limits)
    if found is None:
        return limits.without_witness(answer, (f"exponents {exponents}, of c {c_exponents}",))
    witness = Witness.of(found, formats, {x.params[0]: answer.model.get(x.params[0], 0) for x in found.variables})
    results = tuple(way.run(witness) for way in (better, worse))
    mine, theirs = (abs(exact_value(d, formats.d) - exact_dot(witness)) for d in results)
    if mine >= theirs:
        raise Contradiction(f"{better.name} has the error {mine}, {worse.name} {theirs} on\n{witness}")
    return Verdict("witness", witness, None, results, (), answer.backend, limits.seconds)


def exact_dot(witness: Witness) -> Fraction:
    """c + a b as a rational number."""
    f = witness.formats
    products = (exact_value(x, f.a) * exact_value(y, f.b) for x, y in zip(witness.a, witness.b, strict=True))
    return exact_value(witness.c, f.c) + sum(products)


def _within(number: Number, exponents: tuple[int, int], conditions: list[Term]) -> Number:
    """A number whose exponent is asked to be in a range, unless it is zero; `align` is known to be in it then."""
    low, high = max(exponents[0], number.align.low), min(exponents[1], number.align.high)
    fits = t.both(z.at_most(z.number(low), number.align), z.at_most(number.align, z.number(high)))
    conditions.append(t.either(fits, z.is_zero(number.significand)))
    return number._replace(align=z.ranged(number.align.term, low, high))


def _error(
    way: Way, given: Inputs, addends: list[Number], formats: Formats, reach: tuple[int, int], conditions: list[Term]
) -> tuple[Int, Int]:
    """|d - exact sum| and its exponent."""
    d = n.decode(formats.d, way.term(given, conditions), way.engine.accumulator)
    conditions.append(t.negation(t.either(d.nan, d.inf)))
    d = _within(d, reach, conditions)
    total, exponent = exact_sum([*addends, d._replace(negative=t.negation(d.negative))])
    return z.magnitude(total), exponent


def _same_unit(x: tuple[Int, Int], y: tuple[Int, Int]) -> tuple[Int, Int]:
    unit = min(x[1].low, y[1].low)
    return z.scaled(x[0], x[1].low - unit), z.scaled(y[0], y[1].low - unit)
