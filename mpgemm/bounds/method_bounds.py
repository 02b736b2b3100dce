"""Computes deterministic bounds of whole recovery methods, with published bounds to compare.

The sizes |X||Y| of products of words are formed in FP64 (:func:`method_bound`), or replaced by products of the norms of rows
of X and columns of Y (:func:`run_bound` with `lines`). By Cauchy and Schwarz these are at least as large, and they cost
little compared to the product itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.norms import Lines, norms, split_norms
from mpgemm.bounds.operand_facts import (
    accumulator_of,
    facts_of,
    facts_of_formats,
)
from mpgemm.bounds.published_bounds import block_fma_bounds, multiword_bound
from mpgemm.recovery.arithmetic import Arithmetic, combine
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.run import prepare
from mpgemm.recovery.word_run import CubeRun, equilibrating_exponents, scaling_target
from tensorcore_models.aspects.errors import OperandFacts
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat, get_float_format
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result


@dataclass(frozen=True, repr=False)
class MethodBound(Result):
    """`MethodBound` holds the deterministic bound of ``|computed - exact|`` of a recovery method, element by element.

    Attributes
    ----------
    split, dropped, sums : numpy.ndarray, shape (m, n)
        Bounds of the three parts of the error. `split` bounds the error from rounding the operands to words, `dropped` the
        products of words that the method leaves out, and `sums` the roundings of all additions, inside and outside the
        engine. `split` and `dropped` are computed from the words; `sums` follows from their magnitudes alone.
    published : dict of str to float
        Published bounds of the relative error, by name, for comparison; empty if none apply.
    """

    split: np.ndarray
    dropped: np.ndarray
    sums: np.ndarray
    published: dict[str, float]

    @property
    def total(self) -> np.ndarray:
        """Return the bound of the whole error, the sum of its parts."""
        return (self.split + self.dropped + self.sums) * bounds.MARGIN

    def to_rows(self) -> list[dict]:
        """Return one row for each part of the bound and one for the total, with the largest and mean element."""
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
        """Return sentences on the shape and the published bounds."""
        shape = " x ".join(map(str, self.total.shape))
        published = [f"published, {name}: {value:.3g} relative" for name, value in self.published.items()]
        return [f"certified bounds of |computed - exact| for {shape} results", *published]


@default_fp_state
def method_bound(a, b, c=None, method="ootomo", engine=None, *, overflow: str | None = None, **options) -> MethodBound:
    """Return the deterministic bound of :func:`mpgemm.recovered_gemm` with the same arguments.

    Parameters
    ----------
    a, b, c, method, engine, overflow, **options
        Arguments of :func:`mpgemm.recovered_gemm`.

    Raises
    ------
    ValueError
        In the cases of :func:`mpgemm.recovered_gemm`, and if no bound is known for the engine.
    """
    return run_bound(prepare(a, b, c, method, engine, overflow, options))


#: Function of an operand's values and its axis of k (1 for A, 0 for B) that gives its factor of a size: |X|, or norms.
Side = Callable[[np.ndarray, int], np.ndarray]


def whole(x: np.ndarray, axis: int) -> np.ndarray:
    """Return |X|, for sizes |X||Y|."""
    return np.abs(x)


def run_bound(run, lines: tuple[Lines, Lines] | None = None) -> MethodBound:
    """Return the deterministic bound of a prepared run; with `lines` of its operands, sizes are products of norms.

    Raises ValueError like :func:`method_bound`.
    """
    if run.row.join is not None:
        raise ValueError(
            f"method {run.row.name!r} joins its terms by a function of its own, so no bound is derived; take a method of "
            "mpgemm.list_methods()"
        )
    side = whole if lines is None else norms
    words = (None if lines is None else _words_of_norms(run, lines)) or _formed_words(run, side, lines)
    magnitude_c = 0.0 if run.c is None else np.abs(run.c.astype(np.float64))
    a, b = words.a, words.b
    with np.errstate(over="ignore", invalid="ignore"):
        split = _sizes([(a.left, b.whole), (a.kept, b.left)])
        kept = set(run.row.products)
        pairs = [(i, j) for i in range(len(a.values)) for j in range(len(b.values)) if (i, j) not in kept]
        dropped = _sizes([(a.values[i], b.values[j]) for i, j in pairs]) if pairs else np.zeros(split.shape)
        sums = _sums_bound(run, words, magnitude_c, side)
    split, dropped, sums = (np.where(np.isnan(x), np.inf, x) for x in (split, dropped, sums))
    return MethodBound(split, dropped, sums, {} if side is norms else published_bounds(run))


def _sizes(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the sum of the products x y of the pairs; norms are summed in one pass."""
    if pairs[0][0].shape[1] != 1:
        return sum((x @ y for x, y in pairs[1:]), pairs[0][0] @ pairs[0][1])
    return np.einsum("ir,rj->ij", np.hstack([x for x, _ in pairs]), np.vstack([y for _, y in pairs]))


class _Operand(NamedTuple):
    """`_Operand` holds an operand's factors of sizes: absolute values, or norms."""

    values: Sequence[np.ndarray]  #: Factors of its words in the operand's units.
    raw: Sequence[np.ndarray]  #: Factors of its words in the engine's units; without norms, the words with their signs.
    #: whole, kept, left: factors of the operand, of the sum of its words, and of the remainder that words do not hold.
    whole: np.ndarray
    kept: np.ndarray
    left: np.ndarray


class _Words(NamedTuple):
    """`_Words` holds both operands, the exponents that undo the equilibration, and the words' exponents for alignments."""

    a: _Operand
    b: _Operand
    undo: np.ndarray | None
    facts: OperandFacts | None


def word_values(run):
    """Return (words of A, words of B) as float64 in the operands' units, and the exponents that undo the equilibration."""
    if run.row.kind == "own":
        return *([np.ldexp(*word) for word in words] for words in _own_words(run)), None
    if run.row.kind != "words":
        return run.word_values(1), run.word_values(0), None
    rows, columns = run.equilibrated()[2:]
    values = []
    for words, exponents, axis in zip(run.words(), (rows, columns), (1, 0), strict=True):
        shift = 0 if exponents is None else (exponents[:, None] if axis else exponents)
        values.append([np.ldexp(tcm.decode(w, run.word_format), -j * run.scale - shift) for j, w in enumerate(words)])
    return *values, None if rows is None else rows[:, None] + columns


def _own_words(run) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Return the words of a user's split in float64, with the exponents of their rows (columns) as a column (row)."""
    return [
        [(word.astype(np.float64), (exponents[:, None] if axis else exponents).astype(np.int32)) for word, exponents in words]
        for words, axis in zip(run.words, (1, 0), strict=True)
    ]  # fmt: skip


def _formed_words(run, side: Side, lines: tuple[Lines, Lines] | None) -> _Words:
    """Return factors from the words themselves; norms of integer words are computed once for all runs on the same lines."""
    if lines is not None and run.row.kind not in ("words", "own"):
        a, b = (x.of(_norms_of_words, replace(run.row, options={}), run.word_format) for x in lines)
        return _Words(a, b, None, None)
    *values, undo = word_values(run)
    raw: list[list[np.ndarray]] = [[], []]
    facts = None
    if run.row.kind == "words" and not isinstance(run, CubeRun):
        raw = [[tcm.decode(w, run.word_format) for w in words] for words in run.words()]
    elif run.row.kind == "own":
        raw = [[word for word, _ in words] for words in _own_words(run)]
    if any(raw):
        facts = facts_of(run.engine, stacked(raw[0], 1), stacked(raw[1], 0))
    a, b = (
        _formed_operand(x, axis, words, own, side)
        for x, axis, words, own in zip((run.a, run.b), (1, 0), values, raw, strict=True)
    )
    return _Words(a, b, undo, facts)


def _formed_operand(x: np.ndarray, axis: int, words, raw, side: Side) -> _Operand:
    x = left = x.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for word in words:
            left = left - word
        sides = [side(w, axis) for w in words], raw if side is whole else [side(w, axis) for w in raw]
        return _Operand(*sides, side(x, axis), side(x - left, axis), side(left, axis))


def _norms_of_words(x: np.ndarray, axis: int, row: RecoveryMethod, fmt: Format | IntegerFormat) -> _Operand:
    finite = np.isfinite(x)
    from mpgemm.recovery.integer_run import word_values_of

    words = word_values_of(x if finite.all() else np.where(finite, x, 0), axis, row, fmt)
    return _formed_operand(x, axis, words, [], norms)


def _words_of_norms(run, lines: tuple[Lines, Lines]) -> _Words | None:
    """Return factors from norms and largest elements of rows and columns, for which no words are formed.

    Returns None for integer words, and where a word might leave its range.
    """
    fmt = run.word_format
    if (
        run.row.kind != "words"
        or not isinstance(fmt, Format)
        or not all(isinstance(f, Format) for f in run.engine.formats)
    ):
        return None
    theta = scaling_target(fmt, run.engine.formats[3], run.a.shape[1])
    operands, exponents, tops = [], [], []
    for line in lines if run.row.equilibrate == "none" else [x.whole for x in lines]:
        size, largest, axis = line.norms, line.largest, line.axis
        shift = np.zeros(size.shape, np.int32)
        if run.row.equilibrate != "none":
            shift = equilibrating_exponents(largest, axis, theta).reshape(size.shape)
        near = run.row.rounding in ("rne", "rna")
        found = split_norms(
            np.ldexp(size, shift), np.ldexp(largest, shift), run.a.shape[1], run.row.words, run.scale, fmt, near
        )
        if found is None:
            return None
        words, left, top = found
        raw = [np.ldexp(w, j * run.scale) for j, w in enumerate(words)]
        left = np.ldexp(left, -shift)
        operands.append(_Operand([np.ldexp(w, -shift) for w in words], raw, size, size + left, left))
        exponents.append(shift)
        tops.append(top)
    facts = facts_of_formats(run.engine, (tops[0], tops[1]))
    return _Words(
        operands[0], operands[1], None if run.row.equilibrate == "none" else exponents[0] + exponents[1], facts
    )


def _sums_bound(run, words: _Words, magnitude_c, side: Side) -> np.ndarray:
    row, shape = run.row, (run.a.shape[0], run.b.shape[1])
    if row.kind == "own":
        return _own_sums(run, words, magnitude_c, side)
    if row.kind != "words" or isinstance(run, CubeRun):
        kept = _sizes([(words.a.values[i], words.b.values[j]) for i, j in row.products])
        if row.kind != "words":
            return _integer_sums(run, kept, magnitude_c, side)
        # One chain has at most all products; at most four operations and one addition for each part of k follow.
        steps = run.a.shape[1] * len(row.products) + 3 + int(row.parts)
        return bounds.accumulation_bound(run.engine, kept + magnitude_c, steps, facts_of_formats(run.engine, (0, 0)))
    if run.a.shape[1] == 0:
        return np.zeros(shape)
    undo = words.undo
    arithmetic = _arithmetic_of(run, words, side)
    c = None if run.c is None else (magnitude_c, np.zeros(shape))
    size, error = combine(row, run.scale, words.a.raw, words.b.raw, None if undo is not None else c, arithmetic)
    if undo is not None:
        size, error = np.ldexp(size, -undo), np.ldexp(error, -undo) + arithmetic.tiny
        size, error = (size, error) if c is None else arithmetic.add((size, error), c)
    limit = np.finfo(np.float64 if arithmetic.wide else np.float32).max
    return np.where((size + error) * bounds.MARGIN < limit, error, np.inf)


def _own_sums(run, words: _Words, magnitude_c, side: Side) -> np.ndarray:
    """Return the bound of sums if each term is a chain from zero that is converted, scaled and added in the result's format."""
    fmt = get_float_format("fp64" if run.dtype == np.float64 else "fp32")
    arithmetic = _arithmetic_of(run, words, side)
    unit, tiny = max(fmt.unit_roundoff, arithmetic.unit), max(fmt.min_subnormal, arithmetic.tiny)
    size = error = np.zeros((run.a.shape[0], run.b.shape[1]))
    for (i, j), exponents in zip(run.row.products, run.exponents(), strict=True):
        part, lost = arithmetic.chain([(words.a.raw[i], words.b.raw[j])], None) if run.a.shape[1] else (size, error)
        part, lost = (np.ldexp(x, exponents.astype(np.int32)) for x in (part, lost))
        size, error = size + part, error + lost
        error = error + (unit * (2 * size + 2 * error + part) + 2 * tiny) * bounds.MARGIN
    size = size + magnitude_c
    error = error + (unit * (size + error) + tiny) * bounds.MARGIN
    return np.where((size + error) * bounds.MARGIN < fmt.max_finite, error, np.inf)


def _arithmetic_of(run, words: _Words, side: Side) -> "BoundArithmetic":
    if side is whole:
        return BoundArithmetic(run.engine, words.facts)
    return _NormArithmetic(run.engine, words.facts, run.a.shape[1])


def stacked(words, axis: int) -> np.ndarray:
    """Return the words concatenated along k."""
    return np.concatenate(words, axis=1 - axis) if words else np.zeros((1, 1))


def _integer_sums(run, kept, magnitude_c, side: Side) -> np.ndarray:
    """Return the bound of sums of integer words.

    Products are exact; slices and residues are joined in FP64, quantised words in FP32; then the result is rounded and c added.
    """
    target = 2.0**-53 if run.dtype == np.float64 else 2.0**-24
    tiny = np.finfo(run.dtype).smallest_subnormal
    inner = 2.0**-53 * (2 * len(run.row.products) + 4)
    bound, largest = np.zeros(kept.shape), float(np.finfo(run.dtype).max)
    if run.row.kind == "quantised":
        factors, lost = _quantised_underflow(run, side)
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


def _quantised_underflow(run, side: Side) -> tuple[list[float], np.ndarray]:
    """Return the products of the FP32 scales and a bound of the loss by underflow.

    The products of scales, and each result times such a product, are rounded to multiples of 2^-149.
    """
    from mpgemm.recovery.integer_words import quantise

    words_a, words_b = (quantise(x, run.row.words, run.word_format) for x in (run.clean_a, run.clean_b))
    tiny, factors, lost = 2.0**-149, [0.0], np.zeros((run.a.shape[0], run.b.shape[1]))
    for i, j in run.row.products:
        (word_a, scale_a), (word_b, scale_b) = words_a[i], words_b[j]
        factors.append(float(scale_a) * float(scale_b))
        size = side(word_a.astype(np.float64), 1) @ side(word_b.astype(np.float64), 0)
        lost = lost + tiny * (2.0 + size if factors[-1] < 2.0**-125 else 2.0)
    return factors, lost


class BoundArithmetic(Arithmetic):
    """`BoundArithmetic` carries (size, error) through a method; words are values of the operand format.

    facts: exponents of the operands, for alignments.
    """

    def __init__(self, engine: Engine, facts: OperandFacts | None):
        self.engine = engine
        self.facts = facts
        self.wide = engine.formats[3].name == "fp64"
        self.unit = 2.0**-53 if self.wide else 2.0**-24
        self.tiny = 2.0**-1074 if self.wide else 2.0**-149
        self.step = bounds.step_error(engine, facts)

    def _size(self, pairs) -> np.ndarray:
        return sum(np.abs(a) @ np.abs(b) for a, b in pairs)

    def _length(self, pair) -> int:
        """Return k, the products of a pair of words for each element."""
        return pair[0].shape[1]

    def chain(self, pairs, seed):
        size, error = self._size(pairs), 0.0
        if seed is not None:
            size, error = size + seed[0], seed[1]
            error = error + self._seed_rounding(seed)
        steps = len(pairs) * bounds.steps_of(self.engine, self._length(pairs[0]), self.step.terms)
        return size, error + bounds.accumulation_bound(self.engine, size + error, steps, self.facts)

    def _seed_rounding(self, seed):
        fmt = self.engine.formats[2]
        return 0.0 if fmt.name in ("fp32", "fp64") else fmt.unit_roundoff * (seed[0] + seed[1]) + fmt.min_subnormal

    def elementwise(self, weighted):
        """Return the sum of chains from zero, one for each k step; sizes add up, and errors with them."""
        count = -(-self._length(weighted[0][0]) // self.engine.k)
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


class _NormArithmetic(BoundArithmetic):
    """`_NormArithmetic` is a `BoundArithmetic` on norms of words over all of k; errors of blocks of k add up like their
    sizes."""

    def __init__(self, engine: Engine, facts: OperandFacts | None, k: int):
        super().__init__(engine, facts)
        self.k = k

    def _length(self, pair) -> int:
        return self.k

    def _size(self, pairs) -> np.ndarray:
        return _sizes(pairs)

    def in_parts(self, parts, words_a, words_b, one):
        """Return the sum of parts of k: errors relative to sizes add up to that of all k, each part has the absolute error."""
        size, error = one(words_a, words_b)
        nothing = one([0 * x for x in words_a], [0 * x for x in words_b])[1]
        return self._added((size, error + (parts - 1) * nothing), None, parts)

    def blocks(self, every, pairs, c):
        steps = len(pairs) * bounds.steps_of(self.engine, min(every, self.k), self.step.terms)
        size, error = self._size(pairs), self._chains(self._size(pairs), steps, -(-self.k // every))
        return self._added((size, error), c, -(-self.k // every))

    def banded(self, words_a, words_b, bands, scale):
        count = -(-self.k // self.engine.k)
        size, error = 0.0, 0.0
        for number, band in enumerate(bands):
            if number:
                size, error = np.ldexp(size, -scale), np.ldexp(error, -scale) + count * self.tiny
                error = error + count * self._seed_rounding((size, error))
            size = size + self._size([(words_a[i], words_b[j]) for i, j in band])
            steps = len(band) * bounds.steps_of(self.engine, self.engine.k, self.step.terms)
            error = error + self._chains(size + error, steps, count)
        return self._added((size, error), None, count)

    def _chains(self, size, steps: int, count: int):
        """Return a bound of the error of `count` chains of `steps` steps whose sizes add up to `size`."""
        whole = bounds.accumulation_bound(self.engine, size, steps, self.facts)  # infinite where one may overflow
        return whole + (count - 1) * steps * self.step.absolute * 2 * (1 + bounds.growth(self.step.relative, steps))

    def _added(self, value, c, count: int):
        """Return the sum of `count` parts, and of c, outside of the unit."""
        size, error = value if c is None else (value[0] + c[0], value[1] + c[1])
        return size, error + (size + error) * bounds.growth(self.unit, count + 1) + (count + 1) * self.tiny


def published_bounds(run) -> dict[str, float]:
    """Return published bounds for a run: block FMA, relative to |A||B|, and multiword, relative to ||A||_inf ||B||_inf."""
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
