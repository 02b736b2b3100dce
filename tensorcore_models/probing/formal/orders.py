"""Decides whether the order of a dot product's terms matters: by lemmas if one alignment holds all addends, otherwise by
search."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

from ...accumulators import as_parametric
from ...arithmetic import numbers as n
from ...arithmetic.numbers import Number
from ...arithmetic.sums import rounded_sum, sum_aligned
from ...bitvectors import integers as z
from ...bitvectors import terms as t
from ...bitvectors.integers import Int
from ...bitvectors.terms import Term
from .encoding import Formats, Inputs, Modelled, finite_inputs, result, symbolic_inputs
from .limits import LimitOptions, SolverLimits
from .queries import FormalVerdict, two_inputs, without_witness
from .witnesses import witness_formats

_Item = TypeVar("_Item")


def order_invariance(engine: Modelled, *, k: int | None = None, **options: Unpack[LimitOptions]) -> FormalVerdict:
    """Search with solvers for two orders of the same products with different results, or for a proof that none exist.

    Parameters
    ----------
    engine : Modelled
        MatrixEngine or Instruction.
    k : int, optional
        Number of products; by default the engine's k.
    **options
        Limits: :class:`~.limits.LimitOptions`.

    Returns
    -------
    FormalVerdict
        "witness": `other` holds the products of `witness` in another order. "none": no order changes a result. For a unit that
        aligns all addends at once, the solver proves two lemmas from which this follows (:func:`order_lemmas`). For other units
        it proves the statement itself.
    """
    limits, formats = SolverLimits(**options), witness_formats(engine)
    length = engine.k if k is None else k
    if length < 2:
        raise ValueError(f"{length} product(s) have only one order; k must be at least 2")
    if _one_alignment(engine, length):
        answer = limits.solve([t.either(*order_lemmas(engine, length))], [], 1.0)
        return without_witness(limits, answer, ("finite operands", "by lemmas on the maximum and on the sum"))
    last = FormalVerdict("unknown")
    for swap in _swaps(length):

        def swapped(given: Inputs, order: Sequence[int] = swap) -> Inputs:
            return replace(given, a=permuted(given.a, order), b=permuted(given.b, order))

        def question(given: Inputs, conditions: list[Term], swapped=swapped) -> Term:
            return t.negation(t.equal(*(result(engine, x, conditions) for x in (given, swapped(given)))))

        attempts = _attempts(engine, formats, length)
        last = two_inputs(engine, question, attempts, limits, formats, swapped)
        if last.status not in ("none", "timeout"):
            return last
    return last


def _attempts(engine: Modelled, formats: Formats, k: int) -> Iterable[tuple[Inputs, bool, list[Term]]]:
    few = symbolic_inputs(formats, k, sorted({0, 1, k // 2, k - 1}))
    for given, whole in ((few, False), (symbolic_inputs(formats, k), True)):
        yield given, whole, finite_inputs(given, formats, engine.accumulator)


def _swaps(k: int) -> Iterable[list[int]]:
    """Yield orders to try: swap the first and the last product, then neighbours (such swaps generate all orders)."""
    for i, j in ((0, k - 1), *((i, i + 1) for i in range(k - 1))):
        order = list(range(k))
        order[i], order[j] = j, i
        yield order


def permuted(items: Sequence[_Item], order: Sequence[int]) -> tuple[_Item, ...]:
    return tuple(items[i] for i in order)


def _one_alignment(engine: Modelled, k: int) -> bool:
    spec = engine.accumulator.parametric()
    if spec is None or engine.scale_format is not None:
        return False
    early = spec.c_position == "early" and spec.alignment == "global" and spec.fraction_bits is not None
    return early and not spec.normalise_each_add and k <= spec.terms


def order_lemmas(engine: Modelled, k: int) -> list[Term]:
    """Return lemmas that are unsatisfiable if, with one alignment of all addends, the order of k products and c changes
    nothing.

    1. The larger of two exponents depends on their order, or that of three on how they are paired. (Neither can be, so that
       the alignment exponent is a function of the set.)
    2. For some exponent, the same for both orders, exchanging two neighbouring addends changes the rounded sum. The addends
       are free: any sign, significand and exponent within the ranges of the products and of c.
    """
    spec, formats = as_parametric(engine.accumulator), witness_formats(engine)
    addends = [_free_product(formats, f"p{i}", spec.normalised_products) for i in range(k)]
    addends.append(_free_number("c", formats.c.precision, formats.c.emin, formats.c.emax, formats.c.fraction_bits))
    low, high = min(x.align.low for x in addends), max(x.align.high for x in addends)
    x, y, w = (_free_int(name, low, high) for name in ("x", "y", "w"))
    maximum = [
        t.negation(z.same(z.larger(x, y), z.larger(y, x))),
        t.negation(z.same(z.larger(z.larger(x, y), w), z.larger(x, z.larger(y, w)))),
    ]
    largest = _free_int("largest", low, high)

    def rounded(order: Sequence[int]) -> Term:
        total = sum_aligned(spec, permuted(addends, order), largest)
        return rounded_sum(spec, total, formats.d)

    plain = rounded(range(k + 1))
    exchanged = []
    for i, j in itertools.pairwise(range(k + 1)):
        order = list(range(k + 1))
        order[i], order[j] = j, i
        exchanged.append(t.negation(t.equal(plain, rounded(order))))
    return [*maximum, *exchanged]


def _free_int(name: str, low: int, high: int) -> Int:
    """Return a free integer; solvers may also take values outside of the range, which only makes a proof stronger."""
    return Int(t.variable(name, z.width_of(low, high)), low, high)


def _free_number(name: str, bits: int, low: int, high: int, point: int) -> Number:
    return n.plain(
        t.variable(f"{name}-", t.BOOL), z.natural(t.variable(name, bits)), _free_int(f"{name}e", low, high), point
    )


def _free_product(formats: Formats, name: str, is_normalised: bool) -> Number:
    a, b = formats.a, formats.b
    bits = a.precision + b.precision
    product = _free_number(name, bits, a.emin + b.emin, a.emax + b.emax, a.fraction_bits + b.fraction_bits)
    return n.normalised(product) if is_normalised else product
