"""Computes a bound that holds with a stated probability and includes the bias of directed roundings.

docs/probabilistic.md has the theorem and its proof. The error of a product is the sum of its rounding errors, each times a
power of two. The error of a rounding to a unit q lies in an interval of length q. The assumption is that, given all roundings
before it, the mean error of a directed rounding is at most q / 2 in magnitude, and that of a rounding to nearest is 0. Then,
with probability 1 - delta,

    |error| <= sum of the directed q / 2 + sqrt(ln(2 / delta) / 2 * sum of all q^2).

The first term is the drift; the second is a deviation by the inequality of Azuma and Hoeffding. The units q are those of a
core's `StepError` times the largest magnitudes that sums can have with certainty (:mod:`mpgemm.bounds.bounds`). The
remainders that words do not hold, and the products of words that are left out, are known numbers and enter with their signs.
Delta is divided by the number of elements, so that all elements are within the bound together.
"""

import math
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.method_bounds import BoundArithmetic, method_bound, stacked, word_values
from mpgemm.bounds.operand_facts import facts_of, facts_of_formats
from mpgemm.recovery.arithmetic import combine, turn
from mpgemm.recovery.run import prepare
from mpgemm.recovery.word_run import CubeRun
from tensorcore_models.aspects.errors import Roundings
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.machine.fp_state import default_fp_state

PROBABILITY = 0.99


class Part(NamedTuple):
    """`Part` holds a partial sum's size, a certain bound of its error, the drift of its roundings, and the sum of their q^2."""

    size: np.ndarray
    error: np.ndarray
    drift: np.ndarray
    squares: np.ndarray


def deviation(squares, elements: int, probability: float):
    """Return the deviation that bounds all elements together, sqrt(ln(2 elements / delta) / 2 * squares)."""
    return np.sqrt(math.log(2 * max(1, elements) / (1 - probability)) / 2 * squares)


def step_sums(roundings: tuple[Roundings, ...]) -> tuple[float, float]:
    """Return (drift, sum of q^2) of one step whose sum has size 1."""
    drift = sum(r.number * r.unit / 2 for r in roundings if r.directed)
    return drift, sum(r.number * r.unit**2 for r in roundings)


@default_fp_state
def likely_bound(
    a,
    b,
    c=None,
    method="ootomo",
    engine=None,
    *,
    probability: float = PROBABILITY,
    overflow: str | None = None,
    **options,
) -> np.ndarray:
    """Return bounds of ``|computed - exact|`` that hold for all elements of a recovered product with a given probability.

    Parameters
    ----------
    a, b, c, method, engine, overflow, **options
        Arguments of :func:`mpgemm.recovered_gemm`.
    probability : float
        Probability that all elements are within the bound, under the assumption on roundings above.

    Returns
    -------
    ndarray of float64, shape (m, n)
        At most the certain bound (:func:`mpgemm.bounds.method_bounds.method_bound`); infinite where a sum may overflow.

    Raises
    ------
    ValueError
        In the cases of :func:`mpgemm.bounds.method_bounds.method_bound`, and if the core does not state its roundings one by
        one, the method does not split into floating-point words, or the probability is not between 0 and 1.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability is {probability}, expected a number between 0 and 1, such as 0.99")
    run = prepare(a, b, c, method, engine, overflow, options)
    certain = method_bound(a, b, c, method, engine, overflow=overflow, **options).total
    if run.row.kind != "words" or isinstance(run.engine.formats[0], IntegerFormat):
        raise ValueError(
            f"method {run.row.name!r} does not sum floating-point words, so only its deterministic bound is known; call "
            "method_bound"
        )
    if not run.a.shape[1]:
        return certain
    words_a, words_b, undo = word_values(run)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _cube_sums(run, words_a, words_b) if isinstance(run, CubeRun) else _sums(run, undo)
        known = _known_error(run, words_a, words_b)
        found = known + sums.drift + deviation(sums.squares, certain.size, probability)
    return np.minimum(certain, np.where(np.isnan(found), np.inf, found * bounds.MARGIN))


def _sums(run, undo: np.ndarray | None) -> Part:
    """Return the method's sums; `undo` holds the exponents by which equilibrated operands were scaled."""
    raw_a, raw_b = ([tcm.decode(w, run.word_format).astype(np.float64) for w in words] for words in run.words())
    arithmetic = LikelyArithmetic(run.engine, facts_of(run.engine, stacked(raw_a, 1), stacked(raw_b, 0)), run.row.order)
    shape = run.a.shape[0], run.b.shape[1]
    c = None if run.c is None else Part(np.abs(run.c.astype(np.float64)), *(np.zeros(shape) for _ in range(3)))
    sums = combine(run.row, run.scale, raw_a, raw_b, None if undo is not None else c, arithmetic)
    if undo is None:
        return sums
    size, error, drift = (np.ldexp(x, -undo) for x in sums[:3])
    sums = Part(size, error + arithmetic.tiny, drift + arithmetic.tiny, np.ldexp(sums.squares, -2 * undo))
    return sums if c is None else arithmetic.add(sums, c)


def _cube_sums(run, words_a, words_b) -> Part:
    """Return the cube's sums in any order, counted as one chain over all products and four more operations."""
    kept = sum(np.abs(words_a[i]) @ np.abs(words_b[j]) for i, j in run.row.products)
    kept = kept if run.c is None else kept + np.abs(run.c.astype(np.float64))
    zeros = np.zeros(kept.shape)
    arithmetic = LikelyArithmetic(run.engine, facts_of_formats(run.engine, (0, 0)))
    return arithmetic.summed(
        kept, run.a.shape[1] * len(run.row.products) + 3 + int(run.row.parts), kept, Part(zeros, zeros, zeros, zeros)
    )


def _known_error(run, words_a, words_b) -> np.ndarray:
    """Return the magnitude of the error by remainders and left-out products, with a bound of its FP64 rounding errors added."""
    a, b = run.a.astype(np.float64), run.b.astype(np.float64)
    left_a, left_b = a - sum(words_a), b - sum(words_b)
    kept = set(run.row.products)
    pairs = [(left_a, b), (a - left_a, left_b)]
    pairs += [(words_a[i], words_b[j]) for i in range(len(words_a)) for j in range(len(words_b)) if (i, j) not in kept]
    slack = sum(np.abs(x) @ np.abs(y) for x, y in pairs) * (a.shape[1] + 4) * 2.0**-51
    return np.abs(sum(x @ y for x, y in pairs)) + slack


class LikelyArithmetic(BoundArithmetic):
    """`LikelyArithmetic` carries a :class:`Part` through a method.

    order: order of several products in one chain, as in :class:`mpgemm.RecoveryMethod`.
    Raises ValueError if the core does not state its roundings.
    """

    def __init__(self, engine: Engine, facts, order: str | int = "term"):
        super().__init__(engine, facts)
        self.order = order
        if (self.step.relative or self.step.products) and not self.step.roundings:
            raise ValueError(
                f"{engine.label} has no model of each single rounding, which a probabilistic bound needs; call method_bound "
                "for the deterministic bound"
            )
        self.drift, self.squares = step_sums(self.step.roundings)

    def summed(self, size: np.ndarray, steps: int, mean: np.ndarray, seed: Part) -> Part:
        """Return the result of a chain of `steps` steps whose sums have the mean size `mean`; `seed` is its first addend."""
        error = seed.error + bounds.accumulation_bound(self.engine, size + seed.error, steps, self.facts)
        factor, absolute = bounds.chain_error(self.step, steps)
        most, usual = ((x + error) * (1 + self.step.relative) for x in (size, mean))
        drift = seed.drift + steps * self.drift * usual + absolute
        return Part(size, error, drift, seed.squares + steps * self.squares * most * usual)

    def chain(self, pairs, seed):
        before, zeros = seed, np.zeros((pairs[0][0].shape[0], pairs[0][1].shape[1]))
        if before is None:
            before = Part(zeros, zeros, zeros, zeros)
        else:
            rounding = self._seed_rounding(before[:2])
            before = before._replace(error=before.error + rounding, drift=before.drift + rounding)
        steps_of_k = bounds.steps_of(self.engine, pairs[0][0].shape[1], self.step.terms)
        return self.summed(
            before.size + self._size(pairs), len(pairs) * steps_of_k, self._mean(pairs, before.size), before
        )

    def _mean(self, pairs, seed: np.ndarray) -> np.ndarray:
        """Return the mean size of sums over the steps; they grow with k if every k step takes all pairs before the next."""
        step = turn(self.order, self.engine)
        if step is None:
            return self._size(pairs) + seed
        k = pairs[0][0].shape[1]
        count = -(-k // step)
        weights = (count - np.arange(k) // step) / count
        return self._size([(np.abs(a) * weights, b) for a, b in pairs]) + seed

    def elementwise(self, weighted):
        """Return the sum of chains from zero, one for each k step, added outside with rounding to nearest."""
        (a, b), _ = weighted[0]
        count = -(-a.shape[1] // self.engine.k)
        steps = bounds.steps_of(self.engine, self.engine.k, self.step.terms)
        size, error = super().elementwise(weighted)
        drift, squares = count * len(weighted) * self.tiny, 0.0
        for (x, y), exponent in weighted:
            part = self._size([(x, y)])
            largest = np.abs(x).max(axis=1, initial=0.0)[:, None] * np.abs(y).max(axis=0, initial=0.0) * self.engine.k
            grown = 1 + self.step.relative + bounds.chain_error(self.step, steps)[0]
            drift = drift + np.ldexp(steps * (self.drift * part * grown + 2 * count * self.step.absolute), exponent)
            each = part * np.minimum(part, largest) * grown**2
            squares = squares + np.ldexp(steps * self.squares * each, 2 * exponent)
        additions = count * len(weighted)
        return Part(size, error, drift, squares + additions * (2 * self.unit * (size + error)) ** 2)

    def scale(self, value, exponent):
        if not exponent:
            return value
        tiny = self.tiny if exponent < 0 else 0.0
        size, error, drift = (np.ldexp(x, exponent) for x in value[:3])
        return Part(size, error + tiny, drift + tiny, np.ldexp(value.squares, 2 * exponent))

    def add(self, x, y):
        size, error = super().add(x[:2], y[:2])
        largest = 2 * self.unit * (size + error)
        return Part(size, error, x.drift + y.drift + self.tiny, x.squares + y.squares + largest**2)
