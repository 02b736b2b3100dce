"""Asks questions about specifications: an input that tells two apart, inputs where one is not monotone, carry bits.

Every question is first asked on restricted shapes of inputs (most products zero, all products equal), which a solver answers
fast; a witness found there is valid. Only the question on all inputs can prove that no witness exists.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Unpack

from ...accumulators import as_parametric
from ...bitvectors import integers as z
from ...bitvectors import terms as t
from ...bitvectors.integers import Int
from ...bitvectors.terms import Term
from ...engines.matrix_engine import MatrixEngine
from ...formats import Format
from ...results import Result
from .encoding import Formats, Inputs, Modelled, finite_inputs, result, symbolic_inputs
from .limits import LimitOptions, SolverLimits
from .solvers import Answer
from .witnesses import Contradiction, Witness, witness_formats

#: Share of the time that a question on a restricted shape of inputs may take.
SHAPE_SHARE = 0.1


@dataclass(frozen=True, repr=False)
class FormalVerdict(Result):
    """`FormalVerdict` holds the answer of SMT solvers to the question whether an input with a wanted property exists.

    Parameters
    ----------
    status : {"witness", "none", "timeout", "memory", "unknown"}
        "witness": an input was found, and running it on the kernels confirmed it. "none": a proof shows that no such input
        exists, under `assumptions`. Otherwise the solvers ran out of time or memory, or gave up.
    witness : Witness or None
        Input that was found.
    other : Witness or None
        Second input, if the property is about two inputs.
    results : tuple of int
        Encodings of d, on which kernels and reference agree: one for each specification, or for each input.
    assumptions : tuple of str
        Assumptions of the answer "none".
    backend : str
        Name of the solver that answered.
    seconds : float
        Wall time in seconds, including the time to build the terms.
    """

    status: Literal["witness", "none", "timeout", "memory", "unknown"]
    witness: Witness | None = None
    other: Witness | None = None
    results: tuple[int, ...] = ()
    assumptions: tuple[str, ...] = ()
    backend: str = ""
    seconds: float = 0.0

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [{
            "status": self.status, "witness": None if self.witness is None else str(self.witness),
            "other": None if self.other is None else str(self.other), "results": list(self.results),
            "assumptions": list(self.assumptions), "backend": self.backend, "seconds": self.seconds,
        }]  # fmt: skip

    def sentences(self) -> list[str]:
        """Return sentences on the status and the assumptions."""
        return [f"{self.status} ({self.backend or 'no solver'})", *(f"assuming {text}" for text in self.assumptions)]


def shapes(formats: Formats, k: int) -> Iterable[tuple[Inputs, bool]]:
    """Yield inputs, from restricted to free shapes, and whether the shape covers all inputs.

    The shapes are: few products; all products equal with a factor near 2 (which fills the sum); one factor of each product 1
    (no multiplication for the solver); all products equal; all inputs.
    """
    for count in (2, 4):
        if count < k:
            yield symbolic_inputs(formats, k, range(count)), False
    whole = symbolic_inputs(formats, k)
    if k > 2:
        one = formats.b.bias << (formats.b.fraction_bits + formats.b.padding_bits)
        ones = ((1 << formats.b.fraction_bits) - 1) << formats.b.padding_bits
        alike = replace(whole, a=(whole.a[0],) * k)
        yield replace(alike, b=(t.constant(one | ones, formats.b.bits),) * k), False
        yield replace(whole, b=(t.constant(one, formats.b.bits),) * k), False
        yield replace(alike, b=(whole.b[0],) * k), False
    yield whole, True


def without_witness(limits: SolverLimits, answer: Answer, assumptions: tuple[str, ...]) -> FormalVerdict:
    """Return the verdict for an answer without a model."""
    status = "none" if answer.status == "unsat" else answer.status
    return FormalVerdict(status, assumptions=assumptions, backend=answer.backend, seconds=limits.seconds)  # type: ignore[arg-type]


#: A question on one shape of inputs: the conditions, and the two dot products that it is about.
Question = Callable[[Inputs, list[Term]], Term]


def ask(
    question: Question,
    attempts: Iterable[tuple[Inputs, bool, list[Term]]],
    limits: SolverLimits,
    share: float = SHAPE_SHARE,
) -> tuple[Answer, Inputs | None, list[Term]]:
    """Return the first attempt with a model, else the answer to the last attempt.

    An attempt has inputs, whether they are all inputs, and further conditions. A restricted attempt gets `share` of the time.
    Building terms counts: if it exceeds the time, the question ends.
    """
    answer = Answer("unknown")
    conditions: list[Term] = []
    try:
        with t.built_before(limits.start + limits.timeout):
            for inputs, whole, restrictions in attempts:
                conditions = []
                goal = question(inputs, conditions)
                answer = limits.solve([*restrictions, *conditions, goal], inputs.variables, 1.0 if whole else share)
                if answer.status == "sat":
                    return answer, inputs, conditions
    except t.OutOfTime:
        answer = Answer("timeout")
    return answer, None, conditions


def distinguishing_input(
    spec_a: Modelled,
    spec_b: Modelled,
    *,
    k: int | None = None,
    inputs: Literal["all", "finite"] = "all",
    **options: Unpack[LimitOptions],
) -> FormalVerdict:
    """Search with solvers for an input on which two specifications give different results, or for a proof that none exists.

    Parameters
    ----------
    spec_a, spec_b : Modelled
        MatrixEngine or Instruction, both of the same formats, with accumulators that :mod:`.encoding` can encode.
    k : int, optional
        Number of products; by default the shortest length that consists of whole steps of both.
    inputs : {"all", "finite"}
        Whether operands may be infinities and NaN; finite witnesses are tried first.
    **options
        Limits: :class:`~.limits.LimitOptions`.

    Returns
    -------
    FormalVerdict
        "witness": `results` holds the results of `spec_a` and of `spec_b`, from the compiled kernels and the integer reference.
        "none": the two specifications agree on all inputs.

    Raises
    ------
    Unencodable
        If a specification has no encoding.
    ValueError
        If the formats differ.
    Contradiction
        If a kernel or the reference disagrees with the encoding.
    """
    limits = SolverLimits(**options)
    if inputs not in ("all", "finite"):
        raise ValueError(f"inputs is {inputs!r}, expected 'all' or 'finite'")
    formats = witness_formats(spec_a, spec_b)
    length = math.lcm(spec_a.k, spec_b.k) if k is None else k

    def question(given: Inputs, conditions: list[Term]) -> Term:
        return t.negation(t.equal(*(result(spec, given, conditions) for spec in (spec_a, spec_b))))

    def attempts():
        every = list(shapes(formats, length))
        for given, whole in every:
            if not whole or inputs == "finite":
                yield given, whole, finite_inputs(given, formats, spec_a.accumulator)
        if inputs == "all":
            yield symbolic_inputs(formats, length, range(min(2, length))), False, []
            yield every[-1][0], True, []

    answer, given, conditions = ask(question, attempts(), limits)
    if given is None:
        assumptions = ("finite operands",) * (inputs == "finite") + ("no product is zero",) * bool(conditions)
        return without_witness(limits, answer, assumptions)
    values = {x.params[0]: answer.model.get(x.params[0], 0) for x in given.variables}
    witness = Witness.of(given, formats, values)
    results = tuple(confirmed(witness, spec, given, values) for spec in (spec_a, spec_b))
    return FormalVerdict("witness", witness, None, results, (), answer.backend, limits.seconds)


def confirmed(witness: Witness, engine: Modelled, inputs: Inputs, values: Mapping[str, int]) -> int:
    """Return d of a witness from kernels and reference; raise Contradiction if the encoding gives another result."""
    (expected,) = t.evaluate([result(engine, inputs, [])], values)
    found = witness.run(engine)
    if found != expected:
        raise Contradiction(f"{engine.label} on\n{witness}\ngives {found:#x}, its encoding {expected:#x}")
    return found


# -- monotonicity ------------------------------------------------------------------------------------------------------------
def ordered(fmt: Format, code: Term) -> Int:
    """Return a number that orders finite encodings as their values (both zeros are 0)."""
    width = fmt.exponent_bits + fmt.fraction_bits
    magnitude = z.natural(t.extract(code, fmt.padding_bits + width - 1, fmt.padding_bits))
    return z.with_sign(t.bit(code, fmt.bits - 1), magnitude) if fmt.signed else magnitude


def next_above(fmt: Format, code: Term) -> Term:
    """Return the encoding of the next larger number of a finite number; for both zeros, the smallest positive number."""
    step = t.constant(1 << fmt.padding_bits, fmt.bits)
    if not fmt.signed:
        return t.added(code, step)
    sign = t.constant(fmt.sign_bit, fmt.bits)
    falling = t.both(t.bit(code, fmt.bits - 1), t.any_bit(t.bits_and(code, t.constant(fmt.magnitude_mask, fmt.bits))))
    positive = t.bits_and(code, t.inverted(sign))
    return t.choose(falling, t.added(code, t.negative(step)), t.added(positive, step))


def monotonicity_witness(engine: Modelled, *, k: int | None = None, **options: Unpack[LimitOptions]) -> FormalVerdict:
    """Search for two inputs that differ only in c, where the larger c gives the smaller d (Fasi et al. 2021, section 3.1.5).

    Parameters
    ----------
    engine : Modelled
        MatrixEngine or Instruction.
    k
        See :func:`distinguishing_input`.
    **options
        Limits: :class:`~.limits.LimitOptions`.

    Returns
    -------
    FormalVerdict
        `witness` has the smaller c, `other` the larger c; `results` holds the d of both.
    """
    limits, formats = SolverLimits(**options), witness_formats(engine)
    length = engine.k if k is None else k

    def grown(given: Inputs) -> Inputs:  # if no neighbouring c give such results, no other c do
        return replace(given, c=next_above(formats.c, given.c))

    def question(given: Inputs, conditions: list[Term]) -> Term:
        conditions.extend(finite_inputs(grown(given), formats, engine.accumulator))
        first, second = (ordered(formats.d, result(engine, x, conditions)) for x in (given, grown(given)))
        most = z.number(formats.d.max_bits >> formats.d.padding_bits)
        return t.both(z.less(second, first), *(z.at_most(z.magnitude(x), most) for x in (first, second)))

    def attempts():
        for given, whole in shapes(formats, length):
            yield given, whole, finite_inputs(given, formats, engine.accumulator)

    return two_inputs(engine, question, attempts(), limits, formats, grown)


def two_inputs(
    engine: Modelled,
    question: Question,
    attempts: Iterable[tuple[Inputs, bool, list[Term]]],
    limits: SolverLimits,
    formats: Formats,
    second: Callable[[Inputs], Inputs],
) -> FormalVerdict:
    """Return a verdict with two inputs of one engine, both run again."""
    answer, given, _ = ask(question, attempts, limits)
    if given is None:
        return without_witness(limits, answer, ("finite operands",))
    values = {x.params[0]: answer.model.get(x.params[0], 0) for x in given.variables}
    pair = (given, second(given))
    first, other = (Witness.of(x, formats, values) for x in pair)
    results = tuple(confirmed(w, engine, x, values) for w, x in zip((first, other), pair, strict=True))
    return FormalVerdict("witness", first, other, results, (), answer.backend, limits.seconds)


def carry_bits_needed(engine: Modelled, **options: Unpack[LimitOptions]) -> tuple[int, list[FormalVerdict]]:
    """Return the number of carry bits (integer bits after the first) that a sum of the accumulator needs.

    Fasi et al. (2021), section 3.1.4, test such bits on GPUs.

    Parameters
    ----------
    engine : MatrixEngine
        Engine with a ParametricDotAdd, whose `integer_bits` is varied.
    **options
        Limits: :class:`~.limits.LimitOptions`.

    Returns
    -------
    needed : int
        The smallest number of carry bits with which no input wraps.
    verdicts : list of FormalVerdict
        One verdict for each number of carry bits from 1 on: a witness that the number is too small. The last verdict proves
        that its number suffices.

    Raises
    ------
    TimeoutError
        If the solvers do not decide one of the widths.
    """
    wide = with_integer_bits(engine, None)
    verdicts: list[FormalVerdict] = []
    for carries in range(1, 60):
        narrow = with_integer_bits(engine, carries + 1)
        verdict = distinguishing_input(narrow, wide, inputs="finite", **options)
        verdicts.append(verdict)
        if verdict.status == "none":
            return carries, verdicts
        if verdict.status != "witness":
            raise TimeoutError(
                f"{carries} carry bits of {engine.label}: {verdict.status} after {verdict.seconds:.1f} s; "
                "give a larger timeout or memory"
            )
    raise ValueError(
        f"{engine.label} needs more than 59 carry bits, the largest number that is tried: take another engine"
    )


def with_integer_bits(engine: Modelled, integer_bits: int | None) -> MatrixEngine:
    """Return the engine with another number of integer bits of its sum."""
    names = ("a_format", "b_format", "c_format", "d_format", "scale_format", "block_size")
    spec = replace(as_parametric(engine.accumulator), integer_bits=integer_bits)
    return MatrixEngine(spec, **{name: getattr(engine, name) for name in names})
