"""What is wrong with an attention kernel: its exact output with one step of the program done wrongly."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpgemm.testing.diagnosis.failure import CHANCE, EXPLAINED, GOOD, LUCK
from mpgemm.testing.diagnosis.suspects import Diagnosis

#: Keys of tiles that kernels have.
TILES = (16, 32, 64, 128, 256)
#: In the place of a size of 0.
TINY = 1e-300


def explain(out: np.ndarray, cases: list[Any], wrong: np.ndarray, head: int) -> Diagnosis:
    """The faults whose outputs are the kernel's in the worst head; `cases` has what :class:`AttentionCase` has."""
    case = cases[head]
    usual = np.hypot(
        case.typical, case.program.out.unit_roundoff / math.sqrt(3) * np.maximum(np.abs(case.exact), np.abs(out[head]))
    )
    before = np.abs(out[head] - case.exact) / usual
    failing = wrong[head]
    good: list[tuple[float, str]] = []
    kinds: dict[str, bool] = {}
    for kind, text, prediction in _predictions(cases, head):
        kinds.setdefault(kind, False)
        own = usual * np.maximum(_rms_of_rows(prediction) / np.maximum(_rms_of_rows(case.exact), TINY), 1.0)
        rest = np.abs(out[head] - prediction) / np.hypot(own, case.program.out.unit_roundoff / 2 * np.abs(prediction))
        if not np.isfinite(rest).all() or not failing.any():
            continue
        fit = max(float(np.sqrt(np.mean(np.square(x)))) for x in (rest[failing], rest[~failing]) if x.size)
        left = float(np.sum(np.square(rest[failing])) / np.sum(np.square(before[failing])))
        each = np.clip(1.5 * np.maximum(rest[failing], 0.5) / before[failing], LUCK, 1.0)
        if fit <= GOOD and left <= 1 - EXPLAINED and np.log(each).sum() <= math.log(CHANCE):
            good.append((fit, text))
            kinds[kind] = True
    best = min(good, default=(math.inf, ""))[0]
    statements = tuple(dict.fromkeys(text for fit, text in sorted(good) if fit <= 1.03 * best))
    return Diagnosis(statements, tuple(kind for kind, named in kinds.items() if not named))


def _rms_of_rows(x: np.ndarray) -> np.ndarray:
    """The size of each row: errors of one that is larger are larger, too."""
    return np.sqrt(np.mean(np.square(x), 1, keepdims=True))


def _softmax(scores: np.ndarray, v: np.ndarray) -> np.ndarray:
    top = scores.max(1, keepdims=True)
    w = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = w.sum(1, keepdims=True)
    return (w @ v) / np.where(total > 0, total, 1.0)


def _predictions(cases: list[Any], head: int) -> Iterator[tuple[str, str, np.ndarray]]:
    """(kind, statement, output) of each fault."""
    case = cases[head]
    scores, v, mask, scale = case.scores, case.v, case.mask, case.program.scale
    queries, keys = mask.shape
    plain = scale * (case.q @ case.k.T)
    for by in (1, -1):
        yield (
            "rolled rows",
            f"queries are rolled: row i holds row {'i + 1' if by > 0 else 'i - 1'}",
            np.roll(case.exact, -by, 0),
        )
    for other in range(len(cases)):
        if other != head and cases[other].exact.shape == case.exact.shape:
            yield "heads", f"another head: this one holds the result of head {other}", cases[other].exact
            mixed = np.where(mask, scale * (case.q @ cases[other].k.T), -np.inf)
            yield (
                "heads",
                f"the keys and values of head {other}, counted over all query heads",
                _softmax(mixed, cases[other].v),
            )
    d = case.q.shape[1]
    known = [1.0]  # two names of one factor say nothing twice
    for factor, text in (
        (1 / scale, "the scale is left out"), (scale, "the scale is applied twice"),
        (math.log(2), "log2(e) is left out: 2^x of x"),
        (1 / math.log(2), "log2(e) is applied twice"), (1 / (d * scale), "the scale is 1 / d"),
        (math.sqrt(d) ** -1 / scale, "the scale is 1 / sqrt(d), not the one asked for"),
    ):  # fmt: skip
        if not np.isclose(factor, known, rtol=1e-6, atol=0).any():
            known.append(factor)
            yield "a wrong scale", text, _softmax(np.where(mask, plain * factor, -np.inf), v)
    yield from _masks(case, plain)
    yield from _tiles(case, plain)
    top = scores.max(1, keepdims=True)
    yield "the normalisation", "the row sum is left out: weights are not normalised", np.exp(scores - top) @ v
    w = np.exp(scores - top)
    yield (
        "the normalisation",
        "the row sum is of the first half of the keys",
        (w @ v) / np.maximum(w[:, : keys // 2].sum(1, keepdims=True), 1e-30),
    )
    if case.k.shape == v.shape:
        yield "operands", "K is read in the place of V", _softmax(scores, case.k)


def _masks(case: Any, plain: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
    queries, keys = case.mask.shape
    place = np.arange(queries)[:, None] + keys - queries
    at = np.arange(keys)[None]
    masks = {
        "the mask is left out": np.ones_like(case.mask),
        "the mask is off by one: each query sees a key too many": np.pad(
            case.mask[:, :-1], ((0, 0), (1, 0)), mode="edge"
        )
        | case.mask,
        "the mask is off by one: each query sees a key too few": np.pad(case.mask[:, 1:], ((0, 0), (0, 1))) & case.mask,
        "each query sees a key too many before it": np.pad(case.mask[:, 1:], ((0, 0), (0, 1))) | case.mask,
        "each query sees a key too few before it": np.pad(case.mask[:, :-1], ((0, 0), (1, 0))) & case.mask,
        "a causal mask that was not asked for": case.mask & (at <= place),
        "a causal mask from the first key on, not to the last": at <= np.arange(queries)[:, None],
    }
    for text, mask in masks.items():
        if not np.array_equal(mask, case.mask):
            yield "the mask", text, _softmax(np.where(mask, plain, -np.inf), case.v)


def _tiles(case: Any, plain: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
    """Tiles of keys: rescaling that is left out, tiles that are lost, keys behind the end that count."""
    keys = plain.shape[1]
    scores, v = case.scores, case.v
    for tile in TILES:
        padding = -keys % tile
        if tile >= keys and not padding:
            continue
        if tile < keys:
            yield from _stale(case, plain, tile)
            both, sums, total = _without_rescaling(scores, v, tile)
            yield "rescaling", f"the accumulator is not rescaled between tiles of {tile} keys", sums
            yield "rescaling", f"the row sum is not rescaled between tiles of {tile} keys", total
            yield "rescaling", f"neither accumulator nor row sum is rescaled between tiles of {tile} keys", both
            for start in range(0, keys, tile):
                lost = scores.copy()
                lost[:, start : start + tile] = -np.inf
                if keys // tile <= 64:
                    yield "lost tiles", f"keys {start}:{min(start + tile, keys)} are lost", _softmax(lost, v)
        if padding:
            top = np.maximum(scores.max(1, keepdims=True), 0.0)
            w = np.exp(scores - top)
            total = w.sum(1, keepdims=True) + padding * np.exp(-top)
            yield "padding", f"{padding} keys behind the end count in the row sum (tiles of {tile})", (w @ v) / total


def _stale(case: Any, plain: np.ndarray, tile: int) -> Iterator[tuple[str, str, np.ndarray]]:
    """K or V of a tile, or of every tile, that still is that of the tile before."""
    keys = plain.shape[1]
    at = np.arange(keys)
    starts = range(tile, keys, tile)
    for start in (None, *(starts if len(starts) <= 64 else ())):
        late = (at >= tile) if start is None else (at >= start) & (at < start + tile)
        source = np.where(late, at - tile, at)
        where = f"in every tile of {tile} keys" if start is None else f"at keys {start}:{min(start + tile, keys)}"
        yield "stale tiles", f"{where} V is that of the tile before", _softmax(case.scores, case.v[source])
        moved = np.where(case.mask, plain[:, source], -np.inf)
        yield "stale tiles", f"{where} K is that of the tile before", _softmax(moved, case.v)


def _without_rescaling(scores: np.ndarray, v: np.ndarray, tile: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outputs where neither is rescaled, where the accumulator is not, and where the row sum is not."""
    queries, keys = scores.shape
    largest = np.full((queries, 1), -np.inf)
    right = [np.zeros((queries, v.shape[1])), np.zeros((queries, 1))]
    wrong = [np.zeros((queries, v.shape[1])), np.zeros((queries, 1))]
    for start in range(0, keys, tile):
        part = scores[:, start : start + tile]
        top = np.maximum(largest, part.max(1, keepdims=True))
        base = np.where(np.isfinite(top), top, 0.0)
        w, shrink = np.exp(part - base), np.where(np.isfinite(largest), np.exp(largest - base), 0.0)
        for at, each in enumerate((w @ v[start : start + tile], w.sum(1, keepdims=True))):
            right[at] = right[at] * shrink + each
            wrong[at] = wrong[at] + each
        largest = top
    safe = [np.where(x > 0, x, 1.0) for x in (right[1], wrong[1])]
    return wrong[0] / safe[1], wrong[0] / safe[0], right[0] / safe[1]
