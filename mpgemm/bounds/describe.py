"""The arithmetic of one recovered dot product, step by step: every value with its encoding."""

from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.attribution import Attribution, attribute, dot_run, exact_words, floor_log2, format_of
from mpgemm.recovery.arithmetic import EngineArithmetic, combine
from tensorcore_models.accumulators import FusedDotAdd
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format
from tensorcore_models.machine.fp_state import default_fp_state


@dataclass(frozen=True)
class Step:
    """One step: what happens, the value that comes out and its encoding (empty where the value has none of its own)."""

    stage: str
    text: str
    value: float | None = None
    bits: str = ""

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {self.value!r}"
        return f"[{self.stage}] {self.text}{shown}{f'  {self.bits}' if self.bits else ''}"


@dataclass(frozen=True)
class Description:
    """The steps of one dot product and where its error comes from."""

    method: str
    engine: str
    formula: str
    steps: tuple[Step, ...]
    attribution: Attribution

    def __str__(self) -> str:
        head = [f"{self.method} on {self.engine}", f"  {self.formula}"]
        return "\n".join([*head, *map(str, self.steps), str(self.attribution)])

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {
            "method": self.method,
            "engine": self.engine,
            "formula": self.formula,
            "steps": [asdict(step) for step in self.steps],
            "attribution": self.attribution.to_dict(),
        }


@default_fp_state
def describe(method, a, b, c=None, engine=None, *, overflow: str | None = None, **options) -> Description:
    """Follow one dot product ``sum a_k b_k + c`` through a method, step by step.

    Parameters
    ----------
    method, engine, overflow, **options
        As for :func:`mpgemm.recovered_gemm`.
    a, b : array_like, shape (k,)
        A row and a column.
    c : float, optional
        The addend.

    Returns
    -------
    Description
        ``print(describe(...))`` shows it: the words of every element, every k step of the core (for fused dot-add cores with
        the alignment exponent and what is left of each product), every operation outside, and the error taken apart.

    Raises
    ------
    ValueError
        If a and b are not vectors of one length, or a value or word is not finite.
    """
    run = dot_run(method, a, b, c, engine, overflow, options)
    attribution = attribute(method, a, b, c, engine, overflow=overflow, **options)
    steps = _operand_steps(run)
    if run.row.kind == "words":
        steps += _word_steps(run) + _core_steps(run)
    else:
        steps += _integer_steps(run)
    result = run.product()
    fmt = format_of(result)
    steps.append(Step("result", f"D in {fmt.name}", float(result[0, 0]), _hex(tcm.encode(result, fmt)[0, 0], fmt)))
    return Description(run.row.name, run.engine.label, run.row.formula, tuple(steps), attribution)


def _hex(bits, fmt: Format) -> str:
    return f"0x{int(bits):0{-(-fmt.bits // 4)}x}"


def _bits_of(value: float, dtype) -> str:
    array = np.array([value], dtype)
    fmt = format_of(array)
    return _hex(tcm.encode(array, fmt)[0], fmt)


def _operand_steps(run) -> list[Step]:
    steps = []
    for name, x in (("a", run.a), ("b", run.b)):
        steps += [Step("input", f"{name}[{k}]", float(v), _bits_of(v, x.dtype)) for k, v in enumerate(x.ravel())]
    if run.c is not None:
        steps.append(Step("input", "c", float(run.c[0, 0]), _bits_of(run.c[0, 0], run.c.dtype)))
    return steps


def _word_steps(run) -> list[Step]:
    """The words of every element and what they leave of it."""
    steps, fmt = [], run.word_format
    rows, columns = run.equilibrated()[2:]
    for name, exponents in (("a", rows), ("b", columns)):
        if exponents is not None:
            steps.append(Step("scale", f"{name} is multiplied by 2^{int(exponents[0])}"))
    for name, words, operand, axis in zip("ab", run.words(), (run.a, run.b), (1, 0), strict=True):
        lost = [
            Fraction(float(x)) - sum(w)
            for x, w in zip(operand.ravel(), zip(*exact_words(run, operand, axis), strict=True), strict=True)
        ]
        for k in range(operand.size):
            for j, word in enumerate(words):
                bits = word.ravel()[k]
                weight = f" (weight 2^-{j * run.scale})" if j * run.scale else ""
                value = float(tcm.decode(np.array([bits], fmt.container), fmt)[0])
                steps.append(Step("split", f"{name}[{k}] word {j} in {fmt.name}{weight}", value, _hex(bits, fmt)))
            steps.append(Step("split", f"{name}[{k}] minus its words", float(lost[k])))
    return steps


def _integer_steps(run) -> list[Step]:
    """Words in the operands' units, and the exact products of words."""
    words_a, words_b = exact_words(run, run.a, 1), exact_words(run, run.b, 0)
    steps = []
    for name, words in (("a", words_a), ("b", words_b)):
        steps += [
            Step("split", f"{name}[{k}] word {j}", float(value))
            for j, word in enumerate(words)
            for k, value in enumerate(word)
        ]
    for i, j in run.row.products:
        total = sum((x * y for x, y in zip(words_a[i], words_b[j], strict=True)), Fraction(0))
        steps.append(Step("core", f"sum of word {i} of a times word {j} of b", float(total)))
    return steps


def _core_steps(run) -> list[Step]:
    names: dict[int, str] = {}
    words = run.words()
    for name, members in zip("ab", words, strict=True):
        names |= {id(word): f"{name}_{j}" for j, word in enumerate(members)}
    tracer = _Tracer(run.engine, run.row.order, names)
    rows, columns = run.equilibrated()[2:]
    c = None if run.c is None else tracer.operand(run.c)
    if run.a.shape[1] == 0:
        return []
    value = combine(run.row, run.scale, words[0], words[1], c if rows is None else None, tracer)
    if rows is not None:
        value = tracer.scale(value, -int(rows[0] + columns[0]))
        if c is not None:
            tracer.add(value, c)
    return tracer.steps


class _Tracer(EngineArithmetic):
    """The hardware's arithmetic on one element, writing down every step."""

    def __init__(self, engine: Engine, order: str, names: dict[int, str]):
        super().__init__(engine, order, (1, 1))
        self.names = names
        self.steps: list[Step] = []

    def _note(self, stage: str, text: str, value: np.ndarray):
        self.steps.append(Step(stage, text, float(value[0, 0]), _bits_of(value[0, 0], self.dtype)))
        return value

    def _name(self, pair) -> str:
        return f"{self.names.get(id(pair[0]), 'a')} {self.names.get(id(pair[1]), 'b')}"

    def chain(self, pairs, seed):
        starts = f"from {float(seed[0, 0])!r}" if seed is not None else "from 0"
        self.steps.append(Step("core", f"chain of {', then '.join(map(self._name, pairs))}, {starts}"))
        if self.engine.formats[2] != self.engine.formats[3]:
            return self._note("core", "whole chain", super().chain(pairs, seed))
        value = seed
        for pair, start in self._schedule(pairs):
            value = self._one_step(pair, start, value)
        return value

    def _schedule(self, pairs):
        """(pair, first k) in the order of the chain."""
        starts = range(0, pairs[0][0].shape[1], self.engine.k)
        if self.order == "term":
            return [(pair, start) for pair in pairs for start in starts]
        return [(pair, start) for start in starts for pair in pairs]

    def _one_step(self, pair, start: int, seed):
        stop = min(start + self.engine.k, pair[0].shape[1])
        a, b = pair[0][:, start:stop], pair[1][start:stop]
        bits = None if seed is None else tcm.encode(seed, self.engine.formats[2])
        value = self._values(self.engine.gemm_bits(a, b, bits))
        accumulator = getattr(self.engine, "accumulator", None)
        if isinstance(accumulator, FusedDotAdd) and stop - start <= accumulator.terms:
            self._note_alignment(accumulator, a.ravel(), b.ravel(), seed)
        return self._note("core", f"{self._name(pair)}, k = {start} to {stop - 1}", value)

    def _note_alignment(self, spec: FusedDotAdd, a, b, seed) -> None:
        """What a fused dot-add cuts off each addend (zeros left out)."""
        formats = self.engine.formats
        addends = []
        for k in range(a.size):
            x, y = (f.decode_exact(int(v[k])) for f, v in ((formats[0], a), (formats[1], b)))
            if x.significand and y.significand:
                value = Fraction(x.significand * y.significand) * Fraction(2) ** (x.exponent + y.exponent)
                value = -value if x.negative != y.negative else value
                exponent = x.exponent + formats[0].fraction_bits + y.exponent + formats[1].fraction_bits
                addends.append((f"product {k}", value, exponent if not spec.normalised_products else floor_log2(value)))
        if seed is not None and seed[0, 0] != 0:
            value = Fraction(float(seed[0, 0]))
            addends.append(("c", value, max(floor_log2(value), formats[2].emin)))
        if not addends:
            return
        top = max(exponent for _, _, exponent in addends)
        top = top if spec.exponent_floor is None else max(top, spec.exponent_floor)
        quantum = Fraction(2) ** (top - spec.fraction_bits)
        text = f"aligned to exponent {top}, kept to multiples of 2^{top - spec.fraction_bits}:"
        for name, value, _ in addends:
            units = value / quantum
            cut = f" ({spec.alignment_rounding} of {float(units)!r})" if units.denominator != 1 else ""
            kept = int(units) if spec.alignment_rounding == "rz" else float(units)
            text += f" {name} {kept}{cut};"
        self.steps.append(Step("align", text.rstrip(";")))

    def promoted(self, pair):
        self.steps.append(Step("core", f"{self._name(pair)} from 0 at every k step, added outside"))
        return self.elementwise([(pair, 0)])

    def elementwise(self, weighted):
        total = self.nothing()
        for start in range(0, weighted[0][0][0].shape[1], self.engine.k):
            for pair, exponent in weighted:
                total = self.add(total, self.scale(self._one_step(pair, start, None), exponent))
        return total

    def scale(self, value, exponent):
        result = super().scale(value, exponent)
        return self._note("outside", f"times 2^{exponent}", result) if exponent else result

    def add(self, x, y):
        result = super().add(x, y)
        return self._note("outside", f"{float(x[0, 0])!r} + {float(y[0, 0])!r}", result)
