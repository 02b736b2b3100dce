"""Follows the arithmetic of one recovered dot product step by step, every value with its encoding."""

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.attribution import Attribution, attribute, dot_run, exact_words, floor_log2, format_of
from mpgemm.bounds.operand_facts import accumulator_of
from mpgemm.recovery.arithmetic import Arithmetic, EngineArithmetic, combine
from tensorcore_models.engines.engine import Engine
from tensorcore_models.families.base import SumAlgorithm
from tensorcore_models.formats import Format
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.reference import Pass
from tensorcore_models.results import Result

#: `folded` shows all steps of a stage with at most SHOWN steps; of longer stages it shows the first FIRST steps, the last
#: step and the MOST steps with the largest weights.
SHOWN, FIRST, MOST = 24, 2, 5


@dataclass(frozen=True)
class ExplainedStep:
    """`ExplainedStep` is one step of a dot product: a text, its value and the value's encoding (empty if it has none).

    `weight` ranks steps where there are too many to show: the magnitude of a product, or the error of the step. It is None for
    steps that are not ranked.
    """

    stage: str
    text: str
    value: float | None = None
    bits: str = ""
    weight: float | None = None

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {self.value!r}"
        return f"[{self.stage}] {self.text}{shown}{f'  {self.bits}' if self.bits else ''}"


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """`Explanation` holds the steps of one dot product, and the parts of its error by cause."""

    method: str
    engine: str
    formula: str
    steps: tuple[ExplainedStep, ...]
    attribution: Attribution

    def to_rows(self) -> list[dict]:
        """Return one row for each step."""
        return [asdict(step) for step in self.steps]

    def __str__(self) -> str:
        head = [f"{self.method} on {self.engine}", f"  {self.formula}"]
        return "\n".join([*head, *map(str, self.steps), str(self.attribution)])

    def folded(self) -> str:
        """Return the text with long stages shortened.

        Of a stage with more than 24 steps it shows the first two, the last, and the steps with the largest products or errors.
        """
        shown = _folded(self.steps)
        lines, left = [f"{self.method} on {self.engine}", f"  {self.formula}"], 0
        for index, step in enumerate(self.steps):
            if index not in shown:
                left += 1
                continue
            if left:
                lines.append(f"  ... {left} steps with smaller weights")
            lines.append(str(step))
            left = 0
        return "\n".join([*lines, str(self.attribution)])

    def to_dict(self) -> dict:
        """Return the steps and the parts of the error as JSON-compatible values."""
        return {
            "method": self.method,
            "engine": self.engine,
            "formula": self.formula,
            "steps": [asdict(step) for step in self.steps],
            "attribution": self.attribution.to_dict(),
        }


def _folded(steps: tuple[ExplainedStep, ...]) -> set[int]:
    """Return the indices of the steps to show."""
    shown: set[int] = set()
    for stage in dict.fromkeys(step.stage for step in steps):
        of_stage = [index for index, step in enumerate(steps) if step.stage == stage]
        if len(of_stage) > SHOWN:
            always = [index for index in of_stage if steps[index].weight is None]
            weights = {index: steps[index].weight or 0.0 for index in of_stage if index not in always}
            others = sorted(weights, key=lambda index: -weights[index])
            heaviest = {weights[index] for index in others[:MOST]} - {0.0}
            heavy = [index for index in others if weights[index] in heaviest][: 4 * MOST]
            of_stage = [*of_stage[:FIRST], of_stage[-1], *always[:FIRST], *always[-1:], *heavy]
        shown.update(of_stage)
    return shown


@default_fp_state
def explain(method, a, b, c=None, engine=None, *, overflow: str | None = None, **options) -> Explanation:
    """Follow one dot product ``sum a_k b_k + c`` through a recovery method, step by step.

    Parameters
    ----------
    method, engine, overflow, **options
        Arguments of :func:`mpgemm.recovered_gemm`.
    a, b : array_like, shape (k,)
        A row of A and a column of B.
    c : float, optional
        The addend.

    Returns
    -------
    Explanation
        The steps, which ``print(explain(...))`` shows: the words of every element, every k step of the engine, every operation
        outside the engine, and the parts of the error. The steps of a fused dot-add include the alignment exponent and the
        part of each product that is kept.

    Raises
    ------
    ValueError
        If a and b are not vectors of the same length, or a value or word is not finite.
    """
    run = dot_run(method, a, b, c, engine, overflow, options)
    attribution = attribute(method, a, b, c, engine, overflow=overflow, **options)
    steps = _operand_steps(run)
    if run.row.kind == "words":
        steps += _word_steps(run) + trace(run).steps
    else:
        steps += _integer_steps(run)
    result = run.product()
    fmt = format_of(result)
    steps.append(
        ExplainedStep("result", f"D in {fmt.name}", float(result[0, 0]), _hex(tcm.encode(result, fmt)[0, 0], fmt))
    )
    return Explanation(run.row.name, run.engine.label, run.row.formula, tuple(steps), attribution)


def _hex(bits, fmt: Format) -> str:
    return f"0x{int(bits):0{-(-fmt.bits // 4)}x}"


def _bits_of(value: float, dtype) -> str:
    array = np.array([value], dtype)
    fmt = format_of(array)
    return _hex(tcm.encode(array, fmt)[0], fmt)


def _operand_steps(run) -> list[ExplainedStep]:
    steps = []
    sizes = _sizes(run)
    for name, x in (("a", run.a), ("b", run.b)):
        steps += [
            ExplainedStep("input", f"{name}[{k}]", float(v), _bits_of(v, x.dtype), sizes[k])
            for k, v in enumerate(x.ravel())
        ]
    if run.c is not None:
        steps.append(ExplainedStep("input", "c", float(run.c[0, 0]), _bits_of(run.c[0, 0], run.c.dtype)))
    return steps


def _sizes(run) -> list[float]:
    """Return |a_k b_k| for every k."""
    with np.errstate(over="ignore"):
        return [float(x) for x in np.abs(run.a.ravel().astype(np.float64) * run.b.ravel())]


def _word_steps(run) -> list[ExplainedStep]:
    """Return the steps of the split: the words of every element, and the remainder that they do not hold."""
    steps, fmt = [], run.word_format
    rows, columns = run.equilibrated()[2:]
    for name, exponents in (("a", rows), ("b", columns)):
        if exponents is not None:
            steps.append(ExplainedStep("scale", f"{name} is multiplied by 2^{int(exponents[0])}"))
    for name, words, operand, axis in zip("ab", run.words(), (run.a, run.b), (1, 0), strict=True):
        lost = [
            Fraction(float(x)) - sum(w)
            for x, w in zip(operand.ravel(), zip(*exact_words(run, operand, axis), strict=True), strict=True)
        ]
        other = (run.b if axis else run.a).ravel()
        for k in range(operand.size):
            weight = abs(float(lost[k]) * float(other[k]))
            for j, word in enumerate(words):
                bits = word.ravel()[k]
                scaled = f" (weight 2^-{j * run.scale})" if j * run.scale else ""
                value = float(tcm.decode(np.array([bits], fmt.container), fmt)[0])
                text = f"{name}[{k}] word {j} in {fmt.name}{scaled}"
                steps.append(ExplainedStep("split", text, value, _hex(bits, fmt), weight))
            steps.append(ExplainedStep("split", f"{name}[{k}] minus its words", float(lost[k]), weight=weight))
    return steps


def _integer_steps(run) -> list[ExplainedStep]:
    """Return the steps of an integer method: words in the operands' units, and exact sums of products of words."""
    words_a, words_b = exact_words(run, run.a, 1), exact_words(run, run.b, 0)
    steps = []
    for name, words in (("a", words_a), ("b", words_b)):
        steps += [
            ExplainedStep("split", f"{name}[{k}] word {j}", float(value))
            for j, word in enumerate(words)
            for k, value in enumerate(word)
        ]
    for i, j in run.row.products:
        total = sum((x * y for x, y in zip(words_a[i], words_b[j], strict=True)), Fraction(0))
        steps.append(ExplainedStep("core", f"sum of word {i} of a times word {j} of b", float(total)))
    return steps


def trace(run) -> "Tracer":
    """Return a tracer that has run the hardware's arithmetic of one dot product and recorded every step."""
    names: dict[int, str] = {}
    words = run.words()
    for name, members in zip("ab", words, strict=True):
        names |= {id(word): f"{name}_{j}" for j, word in enumerate(members)}
    tracer = Tracer(run.engine, run.row.order, names)
    rows, columns = run.equilibrated()[2:]
    c = None if run.c is None else tracer.operand(run.c)
    if run.a.shape[1] == 0:
        return tracer
    value = combine(run.row, run.scale, words[0], words[1], c if rows is None else None, tracer)
    if rows is not None:
        value = tracer.scale(value, -int(rows[0] + columns[0]))
        if c is not None:
            tracer.add(value, c)
    return tracer


class Event(NamedTuple):
    """`Event` is a sum at a point that two engines may both reach.

    key: name of the point.
    pair: encodings whose products from k = `start` to `stop` were added last; None for an operation outside.
    seed: sum before these products.
    """

    key: tuple
    text: str
    value: float
    pair: tuple[np.ndarray, np.ndarray] | None = None
    start: int = 0
    stop: int = 0
    seed: float | None = None


class Tracer(EngineArithmetic):
    """`Tracer` runs the hardware's arithmetic on one element and records every step (to read) and every sum (to compare)."""

    def __init__(self, engine: Engine, order: str | int, names: dict[int, str]):
        super().__init__(engine, order, (1, 1))
        self.names = names
        self.steps: list[ExplainedStep] = []
        self.events: list[Event] = []
        self._chains = 0

    def _note(self, stage: str, text: str, value: np.ndarray, lost: float | None = None):
        self.steps.append(ExplainedStep(stage, text, float(value[0, 0]), _bits_of(value[0, 0], self.dtype), lost))
        return value

    def _event(self, key: tuple, text: str, value: np.ndarray, pair=None, start=0, stop=0, seed=None) -> None:
        before = None if seed is None else float(seed[0, 0])
        self.events.append(Event((self._chains, *key), text, float(value[0, 0]), pair, start, stop, before))

    def _name(self, pair) -> str:
        return f"{self.names.get(id(pair[0]), 'a')} {self.names.get(id(pair[1]), 'b')}"

    def chain(self, pairs, seed):
        self._chains += 1
        starts = f"from {float(seed[0, 0])!r}" if seed is not None else "from 0"
        self.steps.append(ExplainedStep("core", f"chain of {', then '.join(map(self._name, pairs))}, {starts}"))
        if self.engine.formats[2] != self.engine.formats[3]:
            value = self._note("core", "whole chain", super().chain(pairs, seed))
            self._event(("whole",), "whole chain", value)
            return value
        value = seed
        for pair, start in self._schedule(pairs):
            before, stop = value, min(start + self.engine.k, pair[0].shape[1])
            value = self._one_step(pair, start, value)
            self._event((self._name(pair), stop), self._name(pair), value, pair, start, stop, before)
        return value

    def _schedule(self, pairs):
        """Return (pair, first k) of every step, in the order of the chain."""
        k, step = pairs[0][0].shape[1], self.engine.k
        turn = max(1, k if self.turn is None else self.turn)
        return [
            (pair, start)
            for first in range(0, k, turn)
            for pair in pairs
            for start in range(first, min(first + turn, k), step)
        ]

    def _one_step(self, pair, start: int, seed):
        stop = min(start + self.engine.k, pair[0].shape[1])
        a, b = pair[0][:, start:stop], pair[1][start:stop]
        bits = None if seed is None else tcm.encode(seed, self.engine.formats[2])
        value = self._values(self.engine.gemm_bits(a, b, bits))
        accumulator = accumulator_of(self.engine)
        form = None if accumulator is None else accumulator.form()
        if form is not None and form.algorithm is SumAlgorithm.FUSED and stop - start <= form.spec.terms:
            self._note_alignment(form.spec, a.ravel(), b.ravel(), seed)
        if accumulator is not None and stop - start <= accumulator.terms_per_step:
            code = 0 if bits is None else int(bits[0, 0])
            inside = Pass(accumulator, a.ravel().tolist(), b.ravel().tolist(), code, self.engine.formats)
            self.steps += [ExplainedStep("inside", text, weight=lost) for text, lost in accumulator.inside(inside)]
        lost = self._step_error(a.ravel(), b.ravel(), seed, value)
        return self._note("core", f"{self._name(pair)}, k = {start} to {stop - 1}", value, lost)

    def _step_error(self, a, b, seed, value) -> float | None:
        """Return the error of one step against the exact sum of its addends."""
        if not np.isfinite(value).all() or (seed is not None and not np.isfinite(seed).all()):
            return None
        x, y = (tcm.decode(v, f) for v, f in zip((a, b), self.engine.formats, strict=False))
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return None
        exact = sum((Fraction(float(p)) * Fraction(float(q)) for p, q in zip(x, y, strict=True)), Fraction(0))
        exact += 0 if seed is None else Fraction(float(seed[0, 0]))
        return abs(float(Fraction(float(value[0, 0])) - exact))

    def _note_alignment(self, spec: Any, a, b, seed) -> None:
        """Record the multiples of the quantum to which a fused dot-add truncates or rounds each nonzero addend."""
        found = alignment(spec, self.engine.formats, a, b, None if seed is None else float(seed[0, 0]))
        if found is None:
            return
        text = f"aligned to exponent {found.top}, kept to multiples of 2^{found.top - spec.fraction_bits}:"
        for addend in found.addends:
            cut = f" ({spec.alignment_rounding} of {float(addend.units)!r})" if addend.units.denominator != 1 else ""
            kept = int(addend.units) if spec.alignment_rounding == "rz" else float(addend.units)
            text += f" {addend.name} {kept}{cut};"
        lost = sum(abs(float(x.units - int(x.units))) for x in found.addends) * float(found.quantum)
        self.steps.append(ExplainedStep("align", text.rstrip(";"), weight=lost))

    def promoted(self, pair, every):
        when = "at every k step" if every is None else f"every {every} products"
        self.steps.append(ExplainedStep("core", f"{self._name(pair)} from 0 {when}, added outside"))
        return self.elementwise([(pair, 0)]) if every is None else self.blocks(every, [pair], self.nothing())

    def elementwise(self, weighted):
        self._chains += 1
        total = self.nothing()
        for start in range(0, weighted[0][0][0].shape[1], self.engine.k):
            for pair, exponent in weighted:
                stop, name = min(start + self.engine.k, pair[0].shape[1]), self._name(pair)
                part = self._one_step(pair, start, None)
                self._event(("part", name, start, stop), f"{name} alone", part, pair, start, stop)
                total = self.add(total, self.scale(part, exponent))
                self._event(("total", name, stop), f"{name} added", total, None, start, stop)
        return total

    banded = Arithmetic.banded

    def scaled_input(self, value, scale):
        return self._note(
            "core", f"the unit takes its accumulator times 2^-{scale}", super().scaled_input(value, scale)
        )

    def scale(self, value, exponent):
        result = super().scale(value, exponent)
        return self._note("outside", f"times 2^{exponent}", result, 0.0) if exponent else result

    def add(self, x, y):
        result = super().add(x, y)
        first, second, found = (float(v[0, 0]) for v in (x, y, result))
        lost = None
        if all(map(math.isfinite, (first, second, found))):
            lost = abs(float(Fraction(found) - Fraction(first) - Fraction(second)))
        self._event(("outside", len(self.steps)), "sum outside", result)
        return self._note("outside", f"{first!r} + {second!r}", result, lost)


# -- alignment -----------------------------------------------------------------------------------------------------------
class AlignedAddend(NamedTuple):
    """`AlignedAddend` is one addend in units of the alignment's quantum."""

    name: str
    units: Fraction


class AlignedAddends(NamedTuple):
    """`AlignedAddends` holds the largest exponent of a fused dot-add, its quantum, and its nonzero addends."""

    top: int
    quantum: Fraction
    addends: tuple[AlignedAddend, ...]


def alignment(spec: Any, formats, a, b, seed: float | None) -> AlignedAddends | None:
    """Return the aligned addends of a fused dot-add for encodings a, b and the running sum, None if all are zero."""
    addends = []
    for k in range(a.size):
        x, y = (f.decode_exact(int(v[k])) for f, v in ((formats[0], a), (formats[1], b)))
        if x.significand and y.significand:
            value = Fraction(x.significand * y.significand) * Fraction(2) ** (x.exponent + y.exponent)
            value = -value if x.negative != y.negative else value
            exponent = x.exponent + formats[0].fraction_bits + y.exponent + formats[1].fraction_bits
            addends.append((f"product {k}", value, exponent if not spec.normalised_products else floor_log2(value)))
    if seed:
        value = Fraction(seed)
        addends.append(("c", value, max(floor_log2(value), formats[2].emin)))
    if not addends:
        return None
    top = max(exponent for _, _, exponent in addends)
    top = top if spec.exponent_floor is None else max(top, spec.exponent_floor)
    quantum = Fraction(2) ** (top - spec.fraction_bits)
    return AlignedAddends(top, quantum, tuple(AlignedAddend(name, value / quantum) for name, value, _ in addends))
