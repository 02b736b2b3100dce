"""Holds the queries of valpey-smt-formalization (Table 4) for any unit, and its witness (Table 5).

Each query asks for an input on which a unit and a rival model of it differ; the result of that input on real hardware shows
which model is right. The paper has Volta, Turing and Ampere; Hopper is new here. The fourth carry bit is new, too, because the
paper's model normalises products, which published units do not (khattak-mikaitis, IV-A1).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from ...accumulators import ParametricDotAdd
from ...arithmetic import numbers as n
from ...arithmetic.numbers import Number
from ...arithmetic.sums import exact_total
from ...bitvectors import integers as z
from ...bitvectors import terms as t
from ...bitvectors.terms import Term
from ...engines.matrix_engine import MatrixEngine
from .encoding import Inputs, finite_inputs, result, symbolic_inputs
from .limits import LimitOptions, SolverLimits
from .orders import order_invariance
from .queries import FormalVerdict, ask, carry_bits_needed, confirmed, distinguishing_input, without_witness
from .witnesses import Witness, witness_formats

#: Products in one operation and fraction bits of fp16 units (facts of xie-mma-sim and khattak-mikaitis).
UNITS: dict[str, tuple[int, int]] = {"Volta": (4, 23), "Turing": (4, 24), "Ampere": (8, 24), "Hopper": (16, 25)}


def unit(name: str, output: str = "fp32", **changes: Any) -> MatrixEngine:
    """Return an fp16 unit of :data:`UNITS`, with changed parameters of its :class:`ParametricDotAdd`."""
    terms, fraction_bits = UNITS[name]
    rounding = "rz" if output == "fp32" else "rne"
    spec = ParametricDotAdd(**{"terms": terms, "fraction_bits": fraction_bits, "output_rounding": rounding, **changes})
    return MatrixEngine(spec, a_format="fp16", b_format="fp16", c_format=output, d_format=output)


@dataclass(frozen=True)
class Query:
    """`Query` is a row of Table 4 under the paper's name, if it has one.

    ``ask(name of a unit, **limits)`` gives the verdict.
    """

    name: str
    ask: Callable[..., FormalVerdict]


def _rival(output: str = "fp32", **changes: Any) -> Callable[..., FormalVerdict]:
    """Return the verdict for a unit and the same unit with changed parameters."""

    def ask_rival(name: str, **limits: Unpack[LimitOptions]) -> FormalVerdict:
        return distinguishing_input(unit(name, output), unit(name, output, **changes), inputs="finite", **limits)

    return ask_rival


def _rounded(number: Number, engine: MatrixEngine, rounding: str) -> Term:
    """Return a finite number rounded to FP16."""
    fmt = engine.formats[0]
    exponent = z.minus(number.align, z.number(number.point))
    code, overflow = n.rounded_magnitude(number.negative, number.significand, exponent, fmt, rounding)
    magnitude = z.as_bits(code, fmt.exponent_bits + fmt.fraction_bits)
    limit = t.constant(fmt.exponent_mask, magnitude.width)
    return n.encoded(number.negative, t.choose(overflow, limit, magnitude), fmt)


def _is_number(number: Number, engine: MatrixEngine) -> Term:
    """Return whether FP16 holds a number exactly: rounding up and rounding down agree."""
    return t.equal(_rounded(number, engine, "ru"), _rounded(number, engine, "rd"))


def _search(
    engine: MatrixEngine, count: int, question: Callable[[Inputs, list[Number]], Term], limits: LimitOptions
) -> FormalVerdict:
    """Return a witness of `count` products with c = 0 for which a statement about the exact products holds."""
    allowed, formats = SolverLimits(**limits), witness_formats(engine)
    given = replace(symbolic_inputs(formats, engine.k, range(count)), c=t.constant(0, formats.c.bits))
    spec = engine.accumulator

    def about_products(inputs: Inputs, conditions: list[Term]) -> Term:
        pairs = zip(inputs.a[:count], inputs.b[:count], strict=True)
        return question(
            inputs, [n.multiply(n.decode(formats.a, x, spec), n.decode(formats.b, y, spec)) for x, y in pairs]
        )

    answer, found, _ = ask(about_products, [(given, True, finite_inputs(given, formats, spec))], allowed)
    if found is None:
        return without_witness(allowed, answer, ("finite operands",))
    values = {x.params[0]: answer.model.get(x.params[0], 0) for x in found.variables}
    witness = Witness.of(found, formats, values)
    results = (confirmed(witness, engine, found, values),)
    return FormalVerdict("witness", witness, None, results, (), answer.backend, allowed.seconds)


def exact_multiplication(name: str, **limits: Unpack[LimitOptions]) -> FormalVerdict:
    """Return a product that FP16 arithmetic rounds in every mode (Listing 1.1)."""
    engine = unit(name)

    def inexact(inputs: Inputs, products: list[Number]) -> Term:
        d = n.decode(engine.formats[3], result(engine, inputs, []), engine.accumulator)
        codes = [_rounded(products[0], engine, rounding) for rounding in ("rne", "rz", "ru", "rd")]
        rivals = [n.decode(engine.formats[0], code, engine.accumulator) for code in codes]
        return t.both(*(_different(x, d) for x in rivals))

    return _search(engine, 1, inexact, limits)


def exact_addition(name: str, **limits: Unpack[LimitOptions]) -> FormalVerdict:
    """Return products that FP16 lacks, whose sum FP16 has, while the sum of the rounded products differs (Property 1)."""
    engine = unit(name, "fp16")

    def inexact(inputs: Inputs, products: list[Number]) -> Term:
        rounded = [n.decode(engine.formats[0], _rounded(x, engine, "rz"), engine.accumulator) for x in products]
        total = _sum_of(products)
        outside = [t.negation(_is_number(x, engine)) for x in products]
        return t.both(*outside, _is_number(total, engine), _different(total, _sum_of(rounded)))

    return _search(engine, 2, inexact, limits)


def _sum_of(numbers: Sequence[Number]) -> Number:
    total, exponent = exact_total(numbers)
    return n.plain(z.less(total, z.number(0)), z.magnitude(total), exponent, 0)


def _different(x: Number, y: Number) -> Term:
    """Return whether two numbers that are not infinite have different values."""
    difference, _ = exact_total([x, y._replace(negative=t.negation(y.negative))])
    return t.negation(z.is_zero(difference))


def accumulation_order(name: str, **limits: Unpack[LimitOptions]) -> FormalVerdict:
    """Return two orders that matter to a unit which adds one by one and normalises, but not to the unit `name` (Property 3)."""
    verdict = order_invariance(unit(name, normalise_each_add=True, fraction_bits=23), **limits)
    if verdict.status == "witness" and verdict.witness and verdict.other:
        results = {witness.run(unit(name)) for witness in (verdict.witness, verdict.other)}
        if len(results) > 1:
            raise AssertionError(f"{name} depends on the order of\n{verdict.witness}")
    return verdict


def _carry(count_from_enough: int, normalised: bool) -> Callable[..., FormalVerdict]:
    """Return one of the last verdicts of `carry_bits_needed`: the proof (-1) or the last witness (-2)."""

    def ask_carries(name: str, **limits: Unpack[LimitOptions]) -> FormalVerdict:
        start = time.monotonic()
        try:
            return carry_bits_needed(unit(name, normalised_products=normalised), **limits)[1][count_from_enough]
        except TimeoutError as error:  # one width timed out, so that the last verdict is unknown
            return FormalVerdict("timeout", assumptions=(str(error),), seconds=time.monotonic() - start)

    return ask_carries


QUERIES: tuple[Query, ...] = (
    Query("Exact Multiplication", exact_multiplication),
    Query("Exact Addition in FP16", exact_addition),
    Query("Rounding of Final Result", _rival("fp16", output_rounding="rz")),
    Query("Rounding of Accumulator", _rival(fraction_bits=None)),
    Query("Accumulation Order", accumulation_order),
    Query("Normalization", _rival(normalise_each_add=True)),
    Query("Subnormal FP16 Inputs", _rival(flush_inputs=True)),
    Query("Subnormal FP16 Outputs", _rival("fp16", flush_outputs=True)),
    Query("Carry Bits, products normalised: last one needed", _carry(-2, True)),
    Query("Carry Bits, products normalised: enough", _carry(-1, True)),
    Query("Carry Bits, products as they are: last one needed", _carry(-2, False)),
    Query("Carry Bits, products as they are: enough", _carry(-1, False)),
)

#: Table 5: encodings of a, b and c on which Ootomo and Yokota's way is worse than Markidis et al.'s. The paper prints the first
#: b as 1.998046875 * 2^-7; its own explanation, step by step, needs 2^7.
TABLE_5_A = (0x1C01, 0x054E, 0x0C00, 0x0C00)
TABLE_5_B_PRINTED = (0x23FE, 0x21C7, 0x0C00, 0x0C00)
TABLE_5_B = (0x5BFE, *TABLE_5_B_PRINTED[1:])
TABLE_5_C = 0x33800000


def table_5(name: str = "Volta", printed: bool = False) -> Witness:
    """Return Table 5 as a witness for a unit, corrected or as printed."""
    engine = unit(name)
    padding = (0,) * (engine.k - len(TABLE_5_A))
    b = TABLE_5_B_PRINTED if printed else TABLE_5_B
    return Witness(TABLE_5_A + padding, b + padding, TABLE_5_C, witness_formats(engine))
