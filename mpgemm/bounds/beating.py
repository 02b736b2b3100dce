"""Finds FP32 operands on which one recovery method is nearer to the exact result than another (Valpey et al., section 6).

:func:`mpgemm.recovery.arithmetic.combine` states every method once. With :class:`TermArithmetic` it builds a term for SMT
solvers (extra `smt`), which includes the split of the operands into words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from mpgemm.recovery.arithmetic import Arithmetic, Pair, combine, turn
from mpgemm.recovery.methods import RecoveryMethod
from mpgemm.recovery.run import prepare
from mpgemm.recovery.word_run import WordRun
from tensorcore_models import reference
from tensorcore_models.arithmetic import numbers as n
from tensorcore_models.arithmetic.sums import ieee_sum
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.terms import Term
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.formats import get_float_format
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal import methods as ways
from tensorcore_models.probing.formal.encoding import Formats, Inputs, Modelled, result
from tensorcore_models.probing.formal.limits import LimitOptions
from tensorcore_models.probing.formal.witnesses import Witness

FP32 = get_float_format("fp32")
OPERANDS = Formats(FP32, FP32, FP32, FP32)
#: Rows and columns of the product that runs a witness on the fast kernels.
_TILE = 64


def beating_operands(
    better: str | RecoveryMethod,
    worse: str | RecoveryMethod,
    engine: Engine | str | None = None,
    *,
    exponents: tuple[int, int] = (-14, 14),
    c_exponents: tuple[int, int] = (-30, 14),
    k: int | None = None,
    **options: Unpack[LimitOptions],
) -> formal.FormalVerdict:
    """Return FP32 operands of a dot product on which `better` has the smaller absolute error.

    Parameters
    ----------
    better, worse : str or RecoveryMethod
        Methods on words, with their options, such as "ootomo" or "ootomo:accumulate_outside=c_only,terms=4".
    engine : Engine, str or None
        Engine as in :func:`mpgemm.recovered_gemm`; by default the default engine of `better`.
    exponents, c_exponents : tuple of int
        The least and the greatest exponent that the nonzero operands, and c, may have.
    k : int, optional
        Number of products, by default the engine's k step.
    **options
        Solvers and limits of time and memory (:class:`tensorcore_models.probing.formal.limits.LimitOptions`).

    Returns
    -------
    Verdict
        "witness" if an input was found: `witness.a`, `.b` and `.c` are its FP32 encodings, and `results` are the encodings of
        both methods' results, on which the compiled kernels (one element and a tile) and the integer reference agree. "none"
        if no input within these exponents exists. Any other status means that the solvers did not finish.

    Raises
    ------
    Unencodable
        If a method or its engine has no encoding, as methods with integer words, equilibrated rows or restarted chains.
    ValueError
        If the engine does not take the words, or FP32 has no such exponents.
    Contradiction
        If the kernels, the reference and the encoding do not agree.
    """
    first = recovery_way(better, engine)
    second = recovery_way(worse, first.engine)
    return formal.beating_input(first, second, exponents=exponents, c_exponents=c_exponents, k=k, **options)


def recovery_way(method: str | RecoveryMethod, engine: Engine | str | None = None) -> formal.Way:
    """Return a recovery method on an engine as a way to compute a dot product of FP32 operands.

    Raises Unencodable and ValueError like :func:`beating_operands`.
    """
    one = np.ones((1, 1), np.float32)
    run = prepare(one, one, one, method, engine)
    row, unit = run.row, run.engine
    encoded = (row.equilibrate, row.repair, row.restart_every) == ("none", "none", None)
    if not isinstance(run, WordRun) or not encoded or row.accumulation == "bands":
        what = "scaled rows, restarted chains, scaled accumulators and repairs"
        raise formal.Unencodable(f"{row.name} has no encoding for solvers; take a method on words without {what}")
    if not isinstance(unit, MatrixEngine):
        raise formal.Unencodable(f"{unit.label} has no accumulator, so no encoding; take an engine with an accumulator")
    if {fmt.name for fmt in unit.formats[2:]} != {"fp32"}:
        raise formal.Unencodable(
            f"{unit.label} takes c or gives results that are not fp32; take an engine with fp32 c and d"
        )

    def term(given: ways.Given, conditions: list[Term]) -> Term:
        a, b = (_words(numbers, row, unit, conditions) for numbers in (given.a, given.b))
        arithmetic = TermArithmetic(unit, row.order, conditions)
        return combine(row, row.word_scale(unit.formats[0]), a, b, given.inputs.c, arithmetic)

    return formal.Way(row.name, unit, OPERANDS, term, lambda witness: _run(witness, row, unit))


def _words(
    numbers: Sequence[n.Number], row: RecoveryMethod, unit: Modelled, conditions: list[Term]
) -> list[tuple[Term, ...]]:
    """Return the words of an operand's numbers, highest word first, padded with zeros to whole k steps."""
    fmt, padding = unit.formats[0], (-len(numbers)) % unit.k
    scale, zero = row.word_scale(fmt), t.constant(0, fmt.bits)
    split = [ways.rounded_words(x, fmt, row.words, scale, row.rounding, unit, conditions) for x in numbers]
    return [(*words, *[zero] * padding) for words in zip(*split, strict=True)]


@dataclass(frozen=True)
class TermArithmetic(Arithmetic):
    """`TermArithmetic` builds terms for the sums that :class:`mpgemm.recovery.arithmetic.EngineArithmetic` computes.

    A word is a tuple of encodings, one for each k; a value is an FP32 encoding.
    """

    engine: Modelled
    order: str | int  #: Order of several products in one chain: "step", "term", or a number of k.
    #: List to which :func:`tensorcore_models.probing.formal.encoding.result` appends its conditions.
    conditions: list[Term]

    def chain(self, pairs: Sequence[Pair], seed: Term | None) -> Term:
        length = len(pairs[0][0])
        step = turn(self.order, self.engine) or length
        parts = [(a[i : i + step], b[i : i + step]) for i in range(0, length, step) for a, b in pairs]
        a, b = (tuple(code for part in side for code in part) for side in zip(*parts, strict=True))
        return self._unit(a, b, seed)

    def elementwise(self, weighted: Sequence[tuple[Pair, int]]) -> Term:
        total, step = _zero(), self.engine.k
        for start in range(0, len(weighted[0][0][0]), step):
            for (a, b), exponent in weighted:
                part = self._unit(a[start : start + step], b[start : start + step], None)
                total = self.add(total, self.scale(part, exponent))
        return total

    def scale(self, value: Term, exponent: int) -> Term:
        if exponent == 0:
            return value
        x = self._number(value)
        moved = x._replace(align=z.plus(x.align, z.number(exponent)))
        nothing = n.plain(t.TRUE, z.number(0), z.number(0), 0, t.FALSE)  # -0 leaves every sign
        return ieee_sum([moved, nothing], FP32, self.engine.accumulator, "rne")

    def add(self, x: Term, y: Term) -> Term:
        return ieee_sum([self._number(x), self._number(y)], FP32, self.engine.accumulator, "rne")

    def _number(self, value: Term) -> n.Number:
        return n.decode(FP32, value, self.engine.accumulator)

    def _unit(self, a: Sequence[Term], b: Sequence[Term], c: Term | None) -> Term:
        return result(self.engine, Inputs(tuple(a), tuple(b), _zero() if c is None else c), self.conditions)


def _zero() -> Term:
    return t.constant(0, FP32.bits)


# -- running -------------------------------------------------------------------------------------------------------------------
@dataclass(eq=False)
class _OnReference(Engine):
    """`_OnReference` computes a modelled engine's products by the integer reference."""

    model: MatrixEngine

    def __post_init__(self):
        for name in ("a_format", "b_format", "c_format", "d_format", "k", "scale_format", "block_size"):
            setattr(self, name, getattr(self.model, name))

    @property
    def label(self) -> str:
        """Return the engine's name in messages."""
        return f"the reference of {self.model.label}"

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        return reference.mma_bits(self.model, a, b, c, scale_a, scale_b)


@default_fp_state
def _run(witness: Witness, row: RecoveryMethod, unit: MatrixEngine) -> int:
    """Return a method's result on a witness.

    Raises Contradiction if the compiled kernels (one element, or any element of a tile) and the reference do not agree.
    """
    a, b, c = (np.array(codes, np.uint32).view(np.float32) for codes in (witness.a, witness.b, [witness.c]))
    results = {}
    for name, engine, size in (
        ("one element", unit, 1), (f"a {_TILE} x {_TILE} tile", unit, _TILE), ("reference", _OnReference(unit), 1),
    ):  # fmt: skip
        x, y = np.tile(a, (size, 1)), np.tile(b, (size, 1)).T
        d = prepare(x, y, np.full((size, size), c[0]), row, engine).product()
        results[name] = np.unique(d.view(np.uint32)).tolist()
    if len(set(map(str, results.values()))) > 1 or len(results["reference"]) != 1:
        raise formal.Contradiction(f"{row.name} on {unit.label} on\n{witness}\nresults differ: {results}")
    return results["reference"][0]
