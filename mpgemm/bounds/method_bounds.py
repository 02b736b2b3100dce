"""Deterministic bounds of whole recovery methods, and the published ones that go with them."""

from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.operand_facts import (
    accumulator_of,
    facts_of,
    facts_of_formats,
)
from mpgemm.bounds.published_bounds import block_fma_bounds, multiword_bound
from mpgemm.recovery import integer_words
from mpgemm.recovery.arithmetic import Arithmetic, combine
from mpgemm.recovery.run import prepare
from mpgemm.recovery.word_run import CubeRun, scaling_target
from tensorcore_models.aspects.errors import OperandFacts
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result


@dataclass(frozen=True, repr=False)
class MethodBound(Result):
    """Deterministic bound of ``|computed - exact|`` of a recovery method, element by element.

    Attributes
    ----------
    split, dropped, sums : numpy.ndarray, shape (m, n)
        What the words leave of the operands, the products left out, and every addition inside and outside the core. The
        first two come from the words themselves, the third is a priori.
    published : dict of str to float
        Published bounds of the relative error, where there are some, to compare with.
    """

    split: np.ndarray
    dropped: np.ndarray
    sums: np.ndarray
    published: dict[str, float]

    @property
    def total(self) -> np.ndarray:
        """The bound."""
        return (self.split + self.dropped + self.sums) * bounds.MARGIN

    def to_rows(self) -> list[dict]:
        """The largest and the mean of each part and of the bound."""
        parts = {"split": self.split, "dropped": self.dropped, "sums": self.sums, "total": self.total}
        return [
            {
                "part": name,
                "largest": float(np.max(part, initial=0.0)),
                "mean": float(part.mean()) if part.size else 0.0,
            }
            for name, part in parts.items()
        ]

    def sentences(self) -> list[str]:
        """The shape, and the published bounds."""
        shape = " x ".join(map(str, self.total.shape))
        published = [f"published, {name}: {value:.3g} relative" for name, value in self.published.items()]
        return [f"certified |computed - exact| of {shape} results", *published]


@default_fp_state
def method_bound(a, b, c=None, method="ootomo", engine=None, *, overflow: str | None = None, **options) -> MethodBound:
    """The deterministic bound of :func:`mpgemm.recovered_gemm` with the same arguments.

    Parameters
    ----------
    a, b, c, method, engine, overflow, **options
        As for :func:`mpgemm.recovered_gemm`.

    Raises
    ------
    ValueError
        As :func:`mpgemm.recovered_gemm`; or if no bound is known for the core.
    """
    run = prepare(a, b, c, method, engine, overflow, options)
    if run.row.kind == "own":
        raise ValueError(
            f"method {run.row.name!r} splits and joins by functions of its own: no bound is derived for it"
        )
    words_a, words_b, undo = word_values(run)
    magnitude_c = 0.0 if run.c is None else np.abs(run.c.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        split = _split_bound(run, words_a, words_b)
        kept = set(run.row.products)
        pairs = [(i, j) for i in range(len(words_a)) for j in range(len(words_b))]
        dropped = sum(
            (np.abs(words_a[i]) @ np.abs(words_b[j]) for i, j in pairs if (i, j) not in kept), np.zeros(split.shape)
        )
        sums = _sums_bound(run, words_a, words_b, undo, magnitude_c)
    split, dropped, sums = (np.where(np.isnan(x), np.inf, x) for x in (split, dropped, sums))
    return MethodBound(split, dropped, sums, published_bounds(run))


def word_values(run):
    """(words of A, words of B) as float64 in the operands' units, and the exponents that undo the equilibration."""
    if run.row.kind != "words":
        return run.word_values(1), run.word_values(0), None
    rows, columns = run.equilibrated()[2:]
    values = []
    for words, exponents, axis in zip(run.words(), (rows, columns), (1, 0), strict=True):
        shift = 0 if exponents is None else (exponents[:, None] if axis else exponents)
        values.append([np.ldexp(tcm.decode(w, run.word_format), -j * run.scale - shift) for j, w in enumerate(words)])
    return *values, None if rows is None else rows[:, None] + columns


def _split_bound(run, words_a, words_b) -> np.ndarray:
    a, b = run.a.astype(np.float64), run.b.astype(np.float64)
    left_a, left_b = a, b
    for w in words_a:
        left_a = left_a - w
    for w in words_b:
        left_b = left_b - w
    return np.abs(left_a) @ np.abs(b) + np.abs(a - left_a) @ np.abs(left_b)


def _sums_bound(run, words_a, words_b, undo, magnitude_c) -> np.ndarray:
    row = run.row
    kept = sum(np.abs(words_a[i]) @ np.abs(words_b[j]) for i, j in row.products)
    if row.kind != "words":
        return _integer_sums(run, kept, magnitude_c)
    if isinstance(run, CubeRun):  # one chain is at most as long as all products, and at most four operations follow
        steps = run.a.shape[1] * len(row.products) + 4
        return bounds.accumulation_bound(run.engine, kept + magnitude_c, steps, facts_of_formats(run.engine, (0, 0)))
    raw_a, raw_b = ([tcm.decode(w, run.word_format) for w in words] for words in run.words())
    arithmetic = BoundArithmetic(run.engine, facts_of(run.engine, stacked(raw_a, 1), stacked(raw_b, 0)))
    c = None if run.c is None else (magnitude_c, np.zeros(kept.shape))
    if run.a.shape[1] == 0:
        return np.zeros(kept.shape)
    size, error = combine(row, run.scale, raw_a, raw_b, None if undo is not None else c, arithmetic)
    if undo is not None:
        size, error = np.ldexp(size, -undo), np.ldexp(error, -undo) + arithmetic.tiny
        size, error = (size, error) if c is None else arithmetic.add((size, error), c)
    limit = np.finfo(np.float64 if arithmetic.wide else np.float32).max
    return np.where((size + error) * bounds.MARGIN < limit, error, np.inf)


def stacked(words, axis: int) -> np.ndarray:
    """Words beside each other along k."""
    return np.concatenate(words, axis=1 - axis) if words else np.zeros((1, 1))


def _integer_sums(run, kept, magnitude_c) -> np.ndarray:
    """Products are exact; FP64 joins slices and residues, FP32 quantised words, then the result is rounded and c added."""
    target = 2.0**-53 if run.dtype == np.float64 else 2.0**-24
    tiny = np.finfo(run.dtype).smallest_subnormal
    inner = 2.0**-53 * (2 * len(run.row.products) + 4)
    bound, largest = np.zeros(kept.shape), float(np.finfo(run.dtype).max)
    if run.row.kind == "quantised":
        factors, lost = _quantised_underflow(run)
        largest = min(largest, float(np.finfo(np.float32).max))
        if max(factors) * bounds.MARGIN >= largest:
            return np.full(kept.shape, np.inf)
        inner = 2.0**-24 * (3 * len(run.row.products) + 4)
        if isinstance(run.word_format, Format):
            step = bounds.step_error(run.engine, facts_of_formats(run.engine, (0, 0)))
            steps = bounds.steps_of(run.engine, run.a.shape[1], step.terms)
            bound = kept * bounds.grown(step, steps)
            bound = bound + step.absolute * steps * 2 * float(np.max(kept, initial=1.0))
        bound = bound + lost
    rounding = 2 * target if np.any(magnitude_c) else target
    bound = (bound + inner * kept + rounding * (kept + bound + magnitude_c)) * bounds.MARGIN + 3 * tiny
    return np.where((kept + magnitude_c + bound) * bounds.MARGIN < largest, bound, np.inf)


def _quantised_underflow(run) -> tuple[list[float], np.ndarray]:
    """What underflow of the FP32 scales' products can cost: they, and each product with them, are rounded to multiples
    of 2^-149."""
    words_a, words_b = (integer_words.quantise(x, run.row.words, run.word_format) for x in (run.clean_a, run.clean_b))
    tiny, factors, lost = 2.0**-149, [0.0], np.zeros((run.a.shape[0], run.b.shape[1]))
    for i, j in run.row.products:
        (word_a, scale_a), (word_b, scale_b) = words_a[i], words_b[j]
        factors.append(float(scale_a) * float(scale_b))
        size = np.abs(word_a.astype(np.float64)) @ np.abs(word_b.astype(np.float64))
        lost = lost + tiny * (2.0 + size if factors[-1] < 2.0**-125 else 2.0)
    return factors, lost


class BoundArithmetic(Arithmetic):
    """Carries (size, error) through a method; words are values of the operand format, `facts` those of the operands."""

    def __init__(self, engine: Engine, facts: OperandFacts | None):
        self.engine = engine
        self.facts = facts
        self.wide = engine.formats[3].name == "fp64"
        self.unit = 2.0**-53 if self.wide else 2.0**-24
        self.tiny = 2.0**-1074 if self.wide else 2.0**-149
        self.step = bounds.step_error(engine, facts)

    def _size(self, pairs) -> np.ndarray:
        return sum(np.abs(a) @ np.abs(b) for a, b in pairs)

    def chain(self, pairs, seed):
        size, error = self._size(pairs), 0.0
        if seed is not None:
            size, error = size + seed[0], seed[1]
            error = error + self._seed_rounding(seed)
        steps = len(pairs) * bounds.steps_of(self.engine, pairs[0][0].shape[1], self.step.terms)
        return size, error + bounds.accumulation_bound(self.engine, size + error, steps, self.facts)

    def _seed_rounding(self, seed):
        fmt = self.engine.formats[2]
        return 0.0 if fmt.name in ("fp32", "fp64") else fmt.unit_roundoff * (seed[0] + seed[1]) + fmt.min_subnormal

    def elementwise(self, weighted):
        """Every k step is one chain from zero; as the sizes of the steps add up, so do their errors."""
        count = -(-weighted[0][0][0].shape[1] // self.engine.k)
        steps = bounds.steps_of(self.engine, self.engine.k, self.step.terms)
        size, error = 0.0, 0.0
        for pair, exponent in weighted:
            part = self._size([pair])
            whole = bounds.accumulation_bound(self.engine, part, steps, self.facts)  # infinite where it may overflow
            whole = whole + (count - 1) * steps * self.step.absolute * 2
            size, error = size + np.ldexp(part, exponent), error + np.ldexp(whole, exponent) + count * self.tiny
        additions = count * len(weighted)
        growth = bounds.growth(self.unit, additions)
        return size, error + (size + error) * growth + additions * self.tiny

    def scale(self, value, exponent):
        if not exponent:
            return value
        size, error = value
        return np.ldexp(size, exponent), np.ldexp(error, exponent) + (self.tiny if exponent < 0 else 0.0)

    def add(self, x, y):
        size, error = x[0] + y[0], x[1] + y[1]
        return size, error + self.unit * (size + error) * bounds.MARGIN + self.tiny


def published_bounds(run) -> dict[str, float]:
    """Published relative bounds that go with a run: block FMA (of |A||B|) and multiword (of ||A||_inf ||B||_inf)."""
    engine, k = run.engine, max(run.a.shape[1], 1)
    word, result = engine.formats[0], engine.formats[3]
    accumulator = accumulator_of(engine)
    if isinstance(word, IntegerFormat) or accumulator is None:
        return {}
    words = run.row.words
    u = 2.0 ** -(word.precision * words)
    found = block_fma_bounds(k * len(run.row.products), accumulator.terms_per_step, u, result.unit_roundoff)
    published = {f"block FMA, {name}": value for name, value in found.items()}
    if run.row.name == "multiword":
        theta = scaling_target(word, result, k)
        published["multiword"] = multiword_bound(k, words, word, result, theta)
    return published
