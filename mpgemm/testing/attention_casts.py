"""This module predicts a head's result if an attention kernel casts P or its scores to a narrow format."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.sizes import multiply
from mpgemm.testing.attention_case import AttentionCase
from tensorcore_models.formats import get_float_format

#: Numbers of keys of tiles that kernels use.
TILES = (16, 32, 64, 128, 256)
#: Replacement for a size of 0.
TINY = 1e-300
#: Variants of 8-bit casts: exponents of a factor of P, and powers of two by which a running maximum may be stale.
P_FACTORS, STALE = range(13), (4.0, 8.0, math.inf)


class Prediction(NamedTuple):
    """`Prediction` is a head's result with a fault."""

    kind: str  #: kind of the fault, with its parameters
    text: str
    out: np.ndarray
    free: int = 0  #: number of fitted parameters


def narrow_predictions(case: AttentionCase) -> Iterator[Prediction]:
    """Yield results with P or scores in another format, or with P beyond the range of 8 bits."""
    w, total = case.weights
    fmt = case.format
    for name in ("bf16", "fp16", "e4m3fn", "e5m2"):
        narrow = get_float_format(name)
        if narrow.fraction_bits < fmt.fraction_bits or (narrow.name != fmt.name and fmt.bits > 8 >= narrow.bits):
            kind = "P or scores rounded to bf16, fp16, e4m3fn or e5m2"
            rounded = np.asarray(tcm.round_to(w, narrow, saturate=True)).astype(np.float64)
            yield Prediction(kind, f"P is rounded to {name}", multiply(rounded, case.v) / total)
            if narrow.bits > 8:
                scores = np.asarray(tcm.round_to(case.plain, narrow)).astype(np.float64)
                scores = np.where(case.mask, scores, -np.inf)
                yield Prediction(kind, f"scores are rounded to {name}", case.output_of(scores))
    if fmt.bits <= 8:
        yield from _cast_to_8_bits(case)


def _cast_to_8_bits(case: AttentionCase) -> Iterator[Prediction]:
    """Yield results with P times a factor clipped at the format's largest number, while the row sum is not clipped.

    The running maximum may be stale.
    """
    fmt = case.format
    kind = (
        f"P in {fmt.name} times 1 to 2^{P_FACTORS[-1]}, clipped, with the row's maximum or a maximum that is stale by "
        "2^4 or more"
    )
    w, _ = case.weights
    for power in P_FACTORS:
        if 2.0**power != case.program.p_scale:
            yield Prediction(kind, *_with_factor(case, power), int(power > 0))
    for tile in (t for t in TILES[2:] if t < w.shape[1]):
        for stale in STALE:
            base = _stale_maximum(case, tile, stale)
            for power in (8, 6, 4, 0):
                with np.errstate(over="ignore"):
                    p = np.minimum(np.exp(case.scores - base) * 2.0**power, 2.0 * fmt.max_finite)
                low = np.asarray(tcm.round_to(p, fmt, saturate=True)).astype(np.float64) / 2.0**power
                low *= np.exp(base - base[:, -1:])  # accumulators are rescaled to the last maximum
                rest = np.exp(case.scores - base[:, -1:]).sum(1, keepdims=True)
                behind = "the first tile's" if math.isinf(stale) else f"stale by up to 2^{stale:g}"
                text = (
                    f"P = 2^(s - maximum + {power}) is clipped at {fmt.max_finite:g} if the maximum is {behind} (tiles of "
                    f"{tile} keys); the row sum is not clipped"
                )
                yield Prediction(kind, text, multiply(low, case.v) / np.maximum(rest, TINY), 1)


def _stale_maximum(case: AttentionCase, tile: int, stale: float) -> np.ndarray:
    """Return the maximum with which each key's weight is formed, shape (queries, keys).

    A new maximum is taken only if it is larger by more than 2^stale.
    """
    scores = case.scores
    shift, own = np.zeros_like(scores), np.full((len(scores), 1), -np.inf)
    for start in range(0, scores.shape[1], tile):
        top = scores[:, start : start + tile].max(1, keepdims=True)
        own = np.where(~np.isfinite(own) | (top - own > stale * math.log(2)), np.maximum(own, top), own)
        shift[:, start : start + tile] = np.where(np.isfinite(own), own, 0.0)
    return shift


def _with_factor(case: AttentionCase, power: int) -> tuple[str, np.ndarray]:
    """Return (description, output) of a head whose P is cast to the operands' format times 2^power."""
    fmt, (w, total) = case.format, case.weights
    p = np.asarray(tcm.round_to(w * 2.0**power, fmt, saturate=True)).astype(np.float64) / 2.0**power
    lost = (
        f"P is cast to {fmt.name} without a factor: weights below {fmt.min_subnormal / 2:g} times the largest are lost"
    )
    clipped = f"P times 2^{power} is clipped at {fmt.max_finite:g}, but its row sum is not"
    little = f"P is cast to {fmt.name} times 2^{power}, not 2^{math.log2(case.program.p_scale):g}"
    text = lost if power == 0 else clipped if 2.0**power > fmt.max_finite else little
    return text, multiply(p, case.v) / total


def _output_with_factor(power: int, case: AttentionCase) -> np.ndarray:
    """Return the output if P is cast to the operands' format times 2^power."""
    return _with_factor(case, power)[1]


def explain_weight(share: float, error: float, cases: Sequence[AttentionCase]) -> tuple[str, ...]:
    """Return the faults that explain the share of the exact results that the results of some queries hold, in words."""

    def predicted(make: Callable[[AttentionCase], np.ndarray]) -> float:
        pairs = [(make(case), case.exact) for case in cases]
        return sum(float(np.sum(x * y)) for x, y in pairs) / sum(float(np.sum(np.square(y))) for _, y in pairs)

    first, found = cases[0], list[tuple[float, str]]()
    if first.format.bits <= 8:
        for power in (0, 2, 4, 9, 10, 12):
            near = predicted(partial(_output_with_factor, power))
            found.append((near, _with_factor(first.rows(np.arange(1)), power)[0]))
    if first.program.sink is not None:

        def without(case: AttentionCase) -> np.ndarray:
            w = case.weights[0]
            return multiply(w, case.v) / np.maximum(w.sum(1, keepdims=True), TINY)

        found.append((predicted(without), "the sink is left out of the row sum"))
    return tuple(text for near, text in found if abs(near - share) <= 4 * error and abs(near - 1) > 4 * error)
