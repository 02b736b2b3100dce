"""This module bounds the results of one head of an attention kernel: a certified bound, and a statistical one of right kernels.

For a query with weights p (its softmax), output o and values v, a kernel's result differs, element by element, by at
most the sum of

- ``sum p (e^E - 1) (|v| + |o|)``: E is the error of an exponent: of Q K^T on the unit, of its scaling and the running maximum's
  subtraction in FP32, of a soft cap's tanh (2^-11 of it, published: PTX ISA, tanh.approx.f32), of the exponential (`exp_ulps`
  units in the last place), and of rescaling once for each tile; a sink has no Q K^T;
- ``sum (u p + t) |v|``: P is rounded to the operands' format (u half a unit, t half its smallest number over `p_scale`);
- the unit's own error of P V, over any order of its steps; a rounding for each key in the row sum, and for each tile;
- the output's rounding.

The statistical bound has the size of these errors for independent roundings, measured on the exact model with tiles of several
sizes, and is extended to all elements by the tail (:mod:`mpgemm.bounds.tails`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.operand_facts import facts_of
from mpgemm.bounds.populations import evenly
from mpgemm.bounds.sizes import multiply
from mpgemm.bounds.tails import upper_limit
from mpgemm.experiments.attention import AttentionProgram, attend
from mpgemm.testing.sampled import ratio
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format

#: Unit roundoff of FP32.
UNIT = 2.0**-24
#: Largest error in ulp of an exponential of arguments up to 0: that of MUFU.EX2 (measured, all operands on an
#: H100: 2.06), which exceeds expf's 1.94.
EXPONENTIAL = 2.06
#: Relative error of a soft cap's tanh (published: PTX ISA, tanh.approx.f32).
TANH = 2.0**-11
#: Share of right results of a whole test below the statistical bound, with its confidence; drawn rows, tiles and heads.
QUANTILE, CONFIDENCE, ROWS, DRAWN, HEADS = 0.9999, 0.95, 48, (32, 64, 128, 256, 1 << 30), 4
#: Largest number of tiles of a drawn call.
TILES = 32


def weights_of(scores: np.ndarray, sink: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return (e^(score - maximum), their sums including the sink's); 0 and 1 for a query that sees no key."""
    top = scores.max(1, keepdims=True)
    top = top if sink is None else np.maximum(top, sink)
    top = np.where(np.isfinite(top), top, 0.0)
    w = np.exp(scores - top)
    total = w.sum(1, keepdims=True) + (0.0 if sink is None else np.exp(sink - top))
    return w, np.where(total > 0, total, 1.0)


@dataclass(frozen=True)
class AttentionCase:
    """`AttentionCase` is one head of a kernel's call.

    Attributes
    ----------
    q, k, v : ndarray of float64, shapes (queries, d), (keys, d), (keys, dv)
    program : AttentionProgram
        Model of the kernel: unit, scale, formats, soft cap and sink, with the smallest tile that the kernel may have.
    mask : ndarray of bool, shape (queries, keys)
        Mask of the keys that each query sees.
    exp_ulps : float
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    program: AttentionProgram
    mask: np.ndarray
    exp_ulps: float

    def rows(self, rows: np.ndarray) -> "AttentionCase":
        """Return the case of some queries."""
        return replace(self, q=self.q[rows], mask=self.mask[rows])

    def scores_of(self, k: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """Return the scores of given keys, with the scale times a factor and without a mask."""
        plain = self.program.scale * factor * multiply(self.q, k.T)
        cap = self.program.softcap
        return plain if cap is None else cap * np.tanh(plain / cap)

    def output_of(self, scores: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
        """Return the output of given scores under a given mask."""
        w, total = weights_of(scores, self.program.sink)
        return multiply(w, self.v if v is None else v) / total

    @cached_property
    def plain(self) -> np.ndarray:
        """Return the scores of all keys without the mask."""
        return self.scores_of(self.k)

    @cached_property
    def scores(self) -> np.ndarray:
        """Return the scores, -infinity for keys that a query does not see."""
        return np.where(self.mask, self.plain, -np.inf)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return :func:`weights_of` the scores."""
        return weights_of(self.scores, self.program.sink)

    @cached_property
    def exact(self) -> np.ndarray:
        """Return the exact output, up to errors of FP64."""
        w, total = self.weights
        return multiply(w, self.v) / total

    @property
    def format(self) -> Format:
        """Return the format of the operands."""
        return get_float_format(self.program.engine.a_format)

    @property
    def _half(self) -> float:
        """Return the largest loss of a weight below the operands' normal numbers when it is rounded to their format."""
        return self.format.min_subnormal / 2 / self.program.p_scale

    def _of_values(self, x: np.ndarray) -> np.ndarray:
        """Return x |V|."""
        return multiply(x, np.abs(self.v))

    # -- certified bound -------------------------------------------------------------------------------------------------
    @cached_property
    def bound(self) -> np.ndarray:
        """Return the certified bound of |out - exact| for a kernel with any order of tiles."""
        engine, scale = self.program.engine, abs(self.program.scale)
        keys, tiles = self.k.shape[0], -(-self.k.shape[0] // self.program.tile)
        w, total = self.weights
        p = w / total
        score_error = scale * chain_bound(engine, self.q, self.k.T, self.format)
        seen = np.where(self.mask, np.abs(self.plain), 0.0)
        if self.program.softcap is not None:
            score_error = score_error + TANH * (seen + score_error)
        largest = seen.max(1, keepdims=True)
        largest = largest if self.program.sink is None else np.maximum(largest, abs(self.program.sink))
        # argument: factor, maximum, difference; then the exponential
        one = 6 * UNIT * (largest + 1) + 2 * self.exp_ulps * UNIT
        exponent = np.expm1(np.minimum(score_error + (1 + tiles) * one, 50.0))
        weighted = p * exponent
        lost = weighted.sum(1, keepdims=True)
        if self.program.sink is not None:
            lost = lost + (1 - p.sum(1, keepdims=True)) * np.expm1(np.minimum((1 + tiles) * one, 50.0))
        sizes = self._of_values(p)
        error = (self._of_values(weighted) + lost * np.abs(self.exact)) / np.maximum(1 - lost, 0.1)
        error += self._of_values(p * self.format.unit_roundoff + np.minimum(self._half, w) / total)
        rounded = np.asarray(tcm.round_to(w * self.program.p_scale, self.format))
        sums = chain_bound(engine, rounded, self.v, self.format, any_order=True)
        error += 1.25 * sums / self.program.p_scale / total + tiles * 2 * UNIT * sizes
        error += np.abs(self.exact) * UNIT * (2 * keys + 2 * tiles + 8)
        return self.with_output(error * 1.001 + 2.0**-40 * sizes)

    def with_output(self, error: np.ndarray) -> np.ndarray:
        """Return a bound with the rounding to the output's format added."""
        out = self.program.out
        return error + out.unit_roundoff * (np.abs(self.exact) + error) + out.min_subnormal / 2

    def kept_without_factor(self) -> float:
        """Return the worst row's result for V = 1 if P is cast without a factor; 1 for formats of more than 8 bits."""
        if self.format.bits > 8:
            return 1.0
        w = self.weights[0]
        cast = np.asarray(tcm.round_to(w, self.format)).astype(np.float64)
        sums = w.sum(1)
        return float(np.min(np.where(sums > 0, cast.sum(1) / np.where(sums > 0, sums, 1.0), 1.0)))

    # -- right kernels ---------------------------------------------------------------------------------------------------
    @cached_property
    def typical(self) -> np.ndarray:
        """Return an estimate of the errors of right kernels without the output's rounding.

        Roundings of P are taken as independent; parts that are rounded to zero are lost.
        """
        w, total = self.weights
        gone = w <= self._half
        own = np.where(gone, 0.0, np.maximum(self.format.unit_roundoff * w, self._half)) / total
        random = np.sqrt(multiply(np.square(own), np.square(self.v)) / 3)
        lost = np.abs(multiply(np.where(gone, w, 0.0) / total, self.v)) if gone.any() else 0.0
        return random + lost + 2.0**-18 * self._of_values(w / total)

    @cached_property
    def cap_error(self) -> np.ndarray | float:
        """Return the largest change by an approximate tanh of a soft cap."""
        if self.program.softcap is None:
            return 0.0
        w, total = self.weights
        changed = w / total * np.where(self.mask, TANH * np.abs(self.plain), 0.0)
        return self._of_values(changed) + changed.sum(1, keepdims=True) * np.abs(self.exact)

    def line(self, times: float) -> np.ndarray:
        """Return the statistical bound: a multiple of :attr:`typical`."""
        return self.with_output(times * self.typical + self.cap_error)

    def of_model(self, tile: int) -> np.ndarray:
        """Return the output of the exact model for a tile size, without rounding to the output's format."""
        return attend((self.q, self.k, self.v), replace(self.program, tile=tile), 6, self.mask)


def chain_bound(engine: Engine, x: np.ndarray, y: np.ndarray, fmt: Format, any_order: bool = False) -> np.ndarray:
    """Return a certified bound, by sizes, of the error of X Y on the engine.

    The engine runs one chain over k, or its steps in any order with a sum outside of each.
    """
    facts = facts_of(engine, x.astype(fmt.dtype).astype(np.float64), y.astype(fmt.dtype).astype(np.float64))
    step = bounds.step_error(engine, facts)
    k = x.shape[1]
    steps = bounds.steps_of(engine, k, step.terms)
    additions = max(-(-k // engine.k) - 1, 0) if any_order else 0
    relative, absolute = bounds.chain_error(step, steps)
    sizes = multiply(np.abs(x), np.abs(y)) * bounds.MARGIN
    error = relative * sizes + absolute
    error = error + bounds.growth(2.0**-24, additions) * (sizes + error) + additions * 2.0**-149
    return error * bounds.MARGIN


class DrawnResults(NamedTuple):
    """`DrawnResults` holds some queries of a head, with the results of the exact model for several tile sizes."""

    case: AttentionCase
    results: dict[int, np.ndarray]  #: results by the number of keys of a tile


def draw_results(cases: Sequence[AttentionCase]) -> list[DrawnResults]:
    """Return right results of some queries in some heads."""
    heads = evenly(len(cases), HEADS)
    found = []
    for at in heads:
        part, keys = cases[at].rows(evenly(len(cases[at].q), max(ROWS // len(heads), 8))), len(cases[at].k)
        least = max(part.program.tile, keys // TILES)
        tiles = dict.fromkeys(min(tile, keys) for tile in DRAWN if tile >= least)
        found.append(DrawnResults(part, {tile: part.of_model(tile) for tile in tiles}))
    return found


def limit_of(drawn: Sequence[DrawnResults], elements: int) -> float:
    """Return the factor of :attr:`AttentionCase.typical` that the errors of right kernels stay below, for so many elements."""
    ratios = [
        ratio(np.abs(out - each.case.exact), each.case.typical) for each in drawn for out in each.results.values()
    ]
    draws = [part for each in ratios for part in np.array_split(each, 6) if part.size]
    return max(upper_limit(draws, -math.expm1(math.log(QUANTILE)) / elements, CONFIDENCE), 1.0)
