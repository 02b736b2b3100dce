"""This module tests whether an attention kernel keeps its queries' weights, by taking many results together.

A loss in every row alone stays below the bounds of its elements, because roundings of P are nearly as large. Over many
queries the roundings cancel, except for the losses of right kernels. These losses are computed for the same operands
with tiles of several sizes: by the cast of P beside a running maximum, and by the unit and FP32 functions on the exact
model. A kernel may lose less than the unit, which may round its sums outside. One rounding of the row sum for each key
is right, too.

A unit that truncates its sums loses as much of sums of one sign as a cast of P without a factor may. With V = 1 on such
a unit no bound tells the two apart; V that is 1 at small weights alone does
(:mod:`mpgemm.testing.attention_invariants`).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.sizes import multiply
from mpgemm.testing.attention_case import UNIT, AttentionCase, DrawnResults

#: Least number of queries for a verdict: with n queries a standard error is known within 1 / sqrt(2 (n - 1)), 18 % for 16.
TOGETHER = 16
#: Standard errors by which the share may differ from right kernels': by chance one test in 5e8 does (normal, both sides).
SURE = 6.0


class HeldWeight(NamedTuple):
    """`HeldWeight` says how much of the weights the results of many queries hold, compared with the exact results."""

    share: float  #: sum of out times exact over sum of exact squared
    error: float  #: standard error of the share, from query to query
    #: low, high: shares of right kernels
    low: float
    high: float

    @property
    def right(self) -> bool:
        """Return whether a right kernel can have this share."""
        return self.low - SURE * self.error <= self.share <= self.high + SURE * self.error

    def __str__(self) -> str:
        return (
            f"{self.share:.5g} times the exact ones (standard error {self.error:.2g} over queries); right kernels have "
            f"{self.low:.5g} to {self.high:.5g}, computed on the model"
        )


def held_weight(
    out: Sequence[np.ndarray], cases: Sequence[AttentionCase], drawn: Sequence[DrawnResults]
) -> HeldWeight | None:
    """Return the share of weights that some queries of several heads hold; None for too few or not finite results.

    `drawn` holds right results.
    """
    exact = [case.exact for case in cases]
    off, error = _off(out, exact)
    if sum(map(len, exact)) < TOGETHER or not math.isfinite(error):
        return None
    tiles = dict.fromkeys(tile for each in drawn for tile in each.results)
    cast = [_off([cast_weights(case, tile) for case in cases], exact)[0] for tile in (min(tiles), max(tiles))]
    unit = [_lost_by_unit([each for each in drawn if tile in each.results], tile) for tile in tiles]
    capped = sum(float(np.sum(case.cap_error * np.abs(case.exact))) for case in cases)
    capped /= sum(float(np.sum(np.square(x))) for x in exact)
    own = capped + UNIT * (len(cases[0].k) + 2 * cases[0].exp_ulps)
    low = min(*cast, 0.0) + min(0.0, *(x - SURE * y for x, y in unit)) - own
    high = max(*cast, 0.0) + max(0.0, *(x + SURE * y for x, y in unit)) + own
    return HeldWeight(1 + off, error, 1 + low, 1 + high)


def _off(out: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return (difference of the share from 1, its standard error from query to query); NaN if not finite or without queries."""
    moved = np.concatenate([((x - y) * y).sum(1) for x, y in zip(out, exact, strict=True)])
    squares = np.concatenate([np.square(y).sum(1) for y in exact])
    total = float(squares.sum())
    if not np.isfinite(moved).all() or total <= 0:
        return math.nan, math.nan
    off = float(moved.sum()) / total
    return off, math.sqrt(float(np.square(moved - off * squares).sum())) / total


def _lost_by_unit(drawn: Sequence[DrawnResults], tile: int) -> tuple[float, float]:
    """Return (share that the unit and FP32 functions add, negative for a loss; its standard error)."""
    exact = [each.case.exact for each in drawn]
    made = [each.results[tile] - cast_weights(each.case, tile) + each.case.exact for each in drawn]
    return _off(made, exact)


def cast_weights(case: AttentionCase, tile: int) -> np.ndarray:
    """Return the exact output with P cast to the operands' format relative to the maximum of the tiles so far."""
    scores, (_, total), factor = case.scores, case.weights, case.program.p_scale
    top = np.full((len(scores), 1), -np.inf if case.program.sink is None else case.program.sink)
    sums = np.zeros((len(scores), case.v.shape[1]))
    for start in range(0, scores.shape[1], tile):
        part, before = scores[:, start : start + tile], top
        top = np.maximum(before, part.max(1, keepdims=True))
        base = np.where(np.isfinite(top), top, 0.0)
        cast = np.asarray(tcm.round_to(np.exp(part - base) * factor, case.format, saturate=True)).astype(np.float64)
        shrink = np.where(np.isfinite(before), np.exp(before - base), 0.0)
        sums = sums * shrink + multiply(cast, case.v[start : start + tile]) / factor
    return sums / total
