"""This module predicts the results of faulty attention kernels, and finds the faults that explain a result."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.bounds.sizes import multiply
from mpgemm.testing.attention_case import AttentionCase
from mpgemm.testing.attention_casts import TILES, TINY, Prediction, narrow_predictions
from mpgemm.testing.attention_layouts import AttentionHead
from mpgemm.testing.diagnosis import Diagnosis, fitting
from mpgemm.testing.diagnosis.failure import Finding, rated

#: Numbers of queries of the worst head that are explained: wrong ones, right ones, and those on which numbers are fitted.
EXPLAINED, FITTED = 24, 8
#: Approximate number of scores that are explained; with many keys fewer queries are explained.
SCORES = 1 << 16
#: Range of a fitted factor of the scale.
FACTORS = (2.0**-9, 2.0**9)
#: Ratio of root mean squares by which a statement with a fitted number must fit better than those without. It then
#: explains half of the rest, of which a fitted number explains 1/n by chance, for n wrong elements.
CLEARLY = 1.4
#: Range of a fitted factor of a sink's weight.
SINK_FACTORS = (math.exp(-30), math.exp(30))
#: Range of a slope with which scores fall with the distance.
SLOPES = (2.0**-12, 4.0)
#: Largest number of tiles that are tried singly.
SINGLE = 64


class Explained(NamedTuple):
    """`Explained` holds some queries of the worst head, with the data to predict their results."""

    case: AttentionCase
    rows: np.ndarray  #: indices of these queries in the head
    head: AttentionHead
    others: Sequence[AttentionHead]  #: all heads of the call
    whole: AttentionCase  #: all queries of the head
    sinks: Sequence[float | None]  #: sink of each of `others`


def explain(
    out: np.ndarray, whole: AttentionCase, wrong: np.ndarray, looked_at: np.ndarray, head: AttentionHead,
    others: Sequence[AttentionHead], sinks: Sequence[float | None],
) -> Diagnosis:  # fmt: skip
    """Return the faults that explain the kernel's outputs in a head.

    `looked_at` lists the checked queries of the head, `sinks` the sink of each of `others`.
    """
    bad, right = np.flatnonzero(wrong.any(1)), np.flatnonzero(~wrong.any(1) & looked_at)
    most = min(max(SCORES // len(whole.k), FITTED), EXPLAINED)
    rows = np.concatenate([bad[evenly(bad.size, most)], right[evenly(right.size, most)] if right.size else right])
    some = Explained(whole.rows(rows), rows, head, others, whole, sinks)
    case, got, failing = some.case, out[rows], wrong[rows]
    if not np.isfinite(got[failing]).any():
        values = "NaN" if np.isnan(got[failing]).all() else "NaN or an infinity"
        return Diagnosis((f"every wrong result is {values}, which says nothing about the cause",))
    unit = case.program.out.unit_roundoff
    usual = np.hypot(case.typical, unit / math.sqrt(3) * np.maximum(np.abs(case.exact), np.abs(got)))
    usual = np.hypot(usual, case.program.out.min_subnormal / math.sqrt(12))
    before = np.abs(got - case.exact) / usual
    found: list[Finding] = []
    kinds: dict[str, bool] = {}
    for made in _all(some, got, failing):
        own = usual * np.maximum(_rms_of_rows(made.out) / np.maximum(_rms_of_rows(case.exact), TINY), 1.0)
        rest = np.abs(got - made.out) / np.hypot(own, unit / 2 * np.abs(made.out))
        found.append(rated(made.text, rest, before, failing, 1.0, made.free))
        kinds[made.kind] = kinds.get(made.kind, False) or found[-1].fits
    named = _best(found)
    return Diagnosis(
        named, (), tuple(kind for kind, fits in kinds.items() if not fits), () if named else fitting(found)
    )


def _best(found: list[Finding]) -> tuple[str, ...]:
    """Return the statements that fit best; one with a fitted number must fit clearly better than all others."""
    good = [x for x in found if x.good]
    plain = min((x.fit for x in good if not x.free), default=math.inf)
    good = [x for x in good if not x.free or CLEARLY * x.fit < plain]
    best = min((x.fit for x in good), default=math.inf)
    return tuple(dict.fromkeys(x.text for x in sorted(good) if x.fit <= 1.03 * best))


def _rms_of_rows(x: np.ndarray) -> np.ndarray:
    """Return the root mean square of each row, because errors of larger rows are larger, too."""
    return np.sqrt(np.mean(np.square(x), 1, keepdims=True))


def _all(some: Explained, got: np.ndarray, failing: np.ndarray) -> Iterator[Prediction]:
    case = some.case
    yield from _rows(some)
    yield from _other_heads(some)
    yield from _scales(some, got, failing)
    yield from _masks(some)
    yield from _tiles(case)
    yield from _rescaling(case)
    yield from _ends(case, got, failing)
    yield from _sinks(some, got, failing)
    yield from narrow_predictions(case)
    yield from _distances(some, got, failing)
    if case.k.shape == case.v.shape:
        yield Prediction("K in place of V", "K is read in place of V", case.output_of(case.scores, case.k))


# -- rows and heads ------------------------------------------------------------------------------------------------------
def _rows(some: Explained) -> Iterator[Prediction]:
    size = len(some.whole.q)
    for by in (1, -1):
        moved = some.whole.rows((some.rows + by) % size).exact
        where = "i + 1" if by > 0 else "i - 1"
        yield Prediction("queries rolled by 1", f"queries are rolled: row i holds row {where}", moved)


def _other_heads(some: Explained) -> Iterator[Prediction]:
    """Yield another head's result, or this head's with another K or V, as if groups of query heads were counted wrongly."""
    case, own = some.case, some.head
    tried: set[int] = set()
    same = [x for x in some.others if x.sequence == own.sequence]
    heads, kv_heads = len(same), len({x.kv_head for x in same})
    for other in same:
        if other.head != own.head:
            text = f"wrong head: this head holds the result of head {other.head}"
            moved = type(case)(other.q[some.rows], other.k, other.v, case.program, case.mask, case.exp_ulps).exact
            yield Prediction("the result of another head", text, moved)
        if other.kv_head == own.kv_head or other.kv_head in tried:
            continue
        tried.add(other.kv_head)
        how = _group(own.head, other.kv_head, heads, kv_heads)
        scores = np.where(case.mask, case.scores_of(other.k), -np.inf)
        for text, value in (
            (f"K and V of KV head {other.kv_head}, not of {own.kv_head}{how}", case.output_of(scores, other.v)),
            (f"K of KV head {other.kv_head}, not of {own.kv_head}{how}", case.output_of(scores)),
            (f"V of KV head {other.kv_head}, not of {own.kv_head}{how}", case.output_of(case.scores, other.v)),
        ):
            yield Prediction("K or V of another KV head", f"the wrong head of K or V: {text}", value)


def _group(head: int, kv_head: int, heads: int, kv_heads: int) -> str:
    """Return the way of counting query heads with which a head reads the other K and V, in words."""
    if heads > kv_heads and kv_head == head % kv_heads:
        return f" (head modulo {kv_heads}, not head // {heads // kv_heads}: groups of query heads are dealt in turn)"
    return ""


# -- the scale -----------------------------------------------------------------------------------------------------------
def _scales(some: Explained, got: np.ndarray, failing: np.ndarray) -> Iterator[Prediction]:
    case, kind = some.case, "the scale left out, twice, 1 / d, without or with twice log2(e)"
    scale, d = case.program.scale, case.q.shape[1]
    known = [1.0]  # two names of one factor would be the same statement
    for factor, text in (
        (1 / scale, "the scale is left out"), (scale, "the scale is applied twice"),
        (math.log(2), "log2(e) is left out: 2^x in place of e^x"),
        (1 / math.log(2), "log2(e) is applied twice"), (1 / (d * scale), "the scale is 1 / d"),
        (math.sqrt(d) ** -1 / scale, "the scale is 1 / sqrt(d), not the given scale"),
    ):  # fmt: skip
        if not np.isclose(factor, known, rtol=1e-6, atol=0).any():
            known.append(factor)
            yield Prediction(kind, text, _scaled(case, factor))
    rows = np.flatnonzero(failing.any(1))
    rows = rows[evenly(rows.size, FITTED)]
    part, weight = case.rows(rows), failing[rows]

    def far(factor: float) -> float:
        return float(np.mean(np.square((_scaled(part, factor) - got[rows])[weight])))

    factor = _least(far, *FACTORS)
    number = scale * factor
    text = f"a wrong softmax scale: {number:.6g} in place of {scale:.6g}"
    root = number**-2
    if round(root) >= 2 and abs(root / round(root) - 1) < 1e-3:
        text += f", 1 / sqrt({round(root)})"
    yield Prediction(
        f"one softmax scale (fitted, {FACTORS[0]:.2g} to {FACTORS[1]:g} times)", text, _scaled(case, factor), 1
    )


def _scaled(case: AttentionCase, factor: float) -> np.ndarray:
    return case.output_of(np.where(case.mask, case.scores_of(case.k, factor), -np.inf))


def _least(far: Callable[[float], float], low: float, high: float, points: int = 37) -> float:
    """Return the positive number at which a function is least: the best point of a grid, refined by golden sections."""
    grid = np.geomspace(low, high, points)
    best = int(np.argmin([far(float(x)) for x in grid]))
    left, right = math.log(grid[max(best - 1, 0)]), math.log(grid[min(best + 1, points - 1)])
    golden = (math.sqrt(5) - 1) / 2
    x, y = right - golden * (right - left), left + golden * (right - left)
    at_x, at_y = far(math.exp(x)), far(math.exp(y))
    for _ in range(34):
        if at_x <= at_y:
            right, y, at_y = y, x, at_x
            x = right - golden * (right - left)
            at_x = far(math.exp(x))
        else:
            left, x, at_x = x, y, at_y
            y = left + golden * (right - left)
            at_y = far(math.exp(y))
    return math.exp((left + right) / 2)


# -- the mask ------------------------------------------------------------------------------------------------------------
def _masks(some: Explained) -> Iterator[Prediction]:
    case, whole = some.case, some.whole.mask
    queries, keys = whole.shape
    place = some.rows[:, None] + keys - queries
    at = np.arange(keys)[None]
    own = case.mask
    ahead = at - place  # distance of a key behind its query's position
    spread = (at - (np.arange(queries)[:, None] + keys - queries))[whole]
    first, last = (int(spread.min()), int(spread.max())) if spread.size else (0, 0)
    masks = {
        "the mask is left out": np.ones_like(own),
        "the mask is off by one: each query sees one key too many": own | (ahead == last + 1),
        "the mask is off by one: each query sees one key too few": own & (ahead < last),
        "each query sees one key too many before its position": own | (ahead == first - 1),
        "each query sees one key too few before its position": own & (ahead > first),
        "the mask is causal, although the test states none": own & (at <= place),
        "the causal mask is aligned to the first key, not to the last": at <= some.rows[:, None],
    }
    for text, mask in masks.items():
        if not np.array_equal(mask, own):
            scores = np.where(mask, case.plain, -np.inf)
            yield Prediction("the mask left out, one key off, causal or not", text, case.output_of(scores))


def _distances(some: Explained, got: np.ndarray, failing: np.ndarray) -> Iterator[Prediction]:
    """Yield scores with a number times the distance of key and query added, as ALiBi adds it."""
    case = some.case
    queries, keys = some.whole.mask.shape
    distance = np.abs(some.rows[:, None] + keys - queries - np.arange(keys)[None]).astype(np.float64)
    rows = np.flatnonzero(failing.any(1))
    rows = rows[evenly(rows.size, FITTED)]
    part, weight = case.rows(rows), failing[rows]

    def output(of: AttentionCase, away: np.ndarray, slope: float) -> np.ndarray:
        return of.output_of(np.where(of.mask, of.plain - slope * away, -np.inf))

    for sign in (1, -1):

        def far(size: float, sign: int = sign) -> float:
            return float(np.mean(np.square((output(part, distance[rows], sign * size) - got[rows])[weight])))

        slope = sign * _least(far, *SLOPES)
        text = f"scores have {-slope:.4g} times the distance of key and query added (ALiBi with a slope of {slope:.4g})"
        if slope < 0:
            text = f"scores have {-slope:.4g} times the distance of key and query added (or ALiBi's slope is left out)"
        yield Prediction("one slope of the distance (fitted)", text, output(case, distance, slope), 1)


# -- tiles of keys -------------------------------------------------------------------------------------------------------
def _tiles(case: AttentionCase) -> Iterator[Prediction]:
    """Yield results with lost or stale tiles of keys, or with keys after the end that count."""
    keys = case.plain.shape[1]
    w, total = case.weights
    numerator = multiply(w, case.v)
    for tile in TILES:
        padding = -keys % tile
        if tile < keys:
            yield from _single_tiles(case, tile, w, total, numerator)
        if padding and tile - padding < keys:
            top = np.maximum(case.scores.max(1, keepdims=True), 0.0)
            own = np.exp(case.scores - top)
            sums = own.sum(1, keepdims=True) + padding * np.exp(-top)
            yield Prediction(
                "keys after the end", f"{padding} keys after the end count in the row sum (tiles of {tile})",
                multiply(own, case.v) / sums,
            )  # fmt: skip


def _single_tiles(case: AttentionCase, tile: int, w, total, numerator) -> Iterator[Prediction]:
    """Yield results with one tile, or every tile, lost or with K or V of the tile before, from the parts of the sums."""
    keys = w.shape[1]
    starts = range(0, keys, tile)
    kind = f"one tile of {TILES[0]} to {TILES[-1]} keys lost, or its V 0, or K or V of the tile before"
    at = np.arange(keys)
    source = np.where(at >= tile, at - tile, at)
    top = case.scores.max(1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore"):
        stale = np.where(case.mask, np.exp(case.plain[:, source] - top), 0.0)
    for start in starts if len(starts) <= SINGLE else ():
        taken = slice(start, min(start + tile, keys))
        where = f"keys {taken.start}:{taken.stop}"
        own, sums = multiply(w[:, taken], case.v[taken]), w[:, taken].sum(1, keepdims=True)
        yield Prediction(kind, f"{where} are lost", (numerator - own) / np.maximum(total - sums, TINY))
        yield Prediction(kind, f"at {where} V is 0, but the row sum counts the keys", (numerator - own) / total)
        if start:
            text = f"at {where} V is that of the tile before"
            yield Prediction(kind, text, (numerator - own + multiply(w[:, taken], case.v[source[taken]])) / total)
            other = stale[:, taken]
            text = f"at {where} K is that of the tile before"
            yield Prediction(
                kind,
                text,
                (numerator - own + multiply(other, case.v[taken])) / (total - sums + other.sum(1, keepdims=True)),
            )
    every = f"in every tile of {tile} keys"
    yield Prediction(kind, f"{every} V is that of the tile before", multiply(w, case.v[source]) / total)
    rest = np.maximum(total - w.sum(1, keepdims=True), 0.0) if case.program.sink is not None else 0.0
    yield Prediction(
        kind, f"{every} K is that of the tile before", multiply(stale, case.v) / (stale.sum(1, keepdims=True) + rest)
    )


#: Ways in which the sums are carried over into a tile with another maximum, in words.
_RESCALED = {
    "not": "is not rescaled", "late": "is rescaled late (with the tile's own part added already)",
    "before": "is rescaled by the factor of the tile before", "inverse": "is rescaled by the inverted factor",
}  # fmt: skip


def _rescaling(case: AttentionCase) -> Iterator[Prediction]:
    kind = f"rescaling left out, late, by the tile before or inverted (tiles of {TILES[0]} to {TILES[-1]} keys)"
    for tile in (t for t in TILES if t < case.plain.shape[1]):
        right, wrong = _running_sums(case, tile)
        for how, (accumulator, row_sum) in wrong.items():
            text = _RESCALED[how] + f" between tiles of {tile} keys"
            both = (
                f"accumulator and row sum: each {text}"
                if how != "not"
                else (f"neither accumulator nor row sum is rescaled between tiles of {tile} keys")
            )
            for said, above, below in (
                (f"the accumulator {text}", accumulator, right[1]), (f"the row sum {text}", right[0], row_sum),
                (both, accumulator, row_sum),
            ):  # fmt: skip
                with np.errstate(all="ignore"):
                    yield Prediction(kind, said, above / np.where(below > 0, below, 1.0))


def _running_sums(case: AttentionCase, tile: int):
    """Return (accumulator and row sum of a right kernel, those of each wrong rescaling) of a running maximum."""
    scores, v, sink = case.scores, case.v, case.program.sink
    queries, keys = scores.shape
    largest = np.full((queries, 1), -np.inf if sink is None else sink)

    def new() -> list[np.ndarray]:
        return [np.zeros((queries, v.shape[1])), np.full((queries, 1), float(sink is not None))]

    right, wrong = new(), {how: new() for how in _RESCALED}
    previous = np.ones((queries, 1))
    with np.errstate(all="ignore"):
        for start in range(0, keys, tile):
            part = scores[:, start : start + tile]
            top = np.maximum(largest, part.max(1, keepdims=True))
            base = np.where(np.isfinite(top), top, 0.0)
            w, shrink = np.exp(part - base), np.where(np.isfinite(largest), np.exp(largest - base), 0.0)
            first = ~np.isfinite(largest)
            for at, each in enumerate((multiply(w, v[start : start + tile]), w.sum(1, keepdims=True))):
                right[at] = right[at] * shrink + each
                sums = {how: wrong[how][at] for how in _RESCALED}
                wrong["not"][at] = sums["not"] + each
                wrong["late"][at] = np.where(first, each, (sums["late"] + each) * shrink)
                wrong["before"][at] = sums["before"] * previous + each
                wrong["inverse"][at] = sums["inverse"] * np.where(shrink > 0, 1 / shrink, 0.0) + each
            previous, largest = np.where(first, 1.0, shrink), top
    return right, wrong


# -- the end -------------------------------------------------------------------------------------------------------------
def _ends(case: AttentionCase, got: np.ndarray, failing: np.ndarray) -> Iterator[Prediction]:
    kind = "the row sum left out, or of half of the keys"
    w, total = case.weights
    keys = w.shape[1]
    yield Prediction(kind, "the row sum is left out, so the weights are not normalised", multiply(w, case.v))
    half = np.maximum(w[:, : keys // 2].sum(1, keepdims=True), 1e-30)
    yield Prediction(kind, "the row sum covers only the first half of the keys", multiply(w, case.v) / half)
    exact, out = case.exact[failing], got[failing]
    squares = float(np.sum(np.square(exact)))
    factor = float(np.sum(exact * out)) / squares if squares else 0.0
    if math.isfinite(factor) and factor != 0:
        text = f"one factor: every wrong result is {factor:.6g} times the exact one"
        yield Prediction("one factor of the output (fitted)", text, factor * case.exact, 1)
    if case.program.softcap is not None:
        plain = case.program.scale * multiply(case.q, case.k.T)
        yield Prediction(
            "the soft cap left out, or applied before the scale", "the soft cap is left out",
            case.output_of(np.where(case.mask, plain, -np.inf)),
        )  # fmt: skip
        cap, scale = case.program.softcap, case.program.scale
        early = scale * cap * np.tanh(plain / scale / cap)
        yield Prediction(
            "the soft cap left out, or applied before the scale", "the soft cap is applied before the scale",
            case.output_of(np.where(case.mask, early, -np.inf)),
        )  # fmt: skip


def _sinks(some: Explained, got: np.ndarray, failing: np.ndarray) -> Iterator[Prediction]:
    """Yield results without the sink, with another head's sink, or with another number."""
    case, own = some.case, some.case.program.sink
    if own is None:
        return
    w = case.weights[0]
    numerator, seen = multiply(w, case.v), w.sum(1, keepdims=True)
    weight = np.exp(own - np.maximum(case.scores.max(1, keepdims=True), own))

    def output(factor: float) -> np.ndarray:
        return numerator / np.maximum(seen + factor * weight, TINY)

    def far(factor: float) -> float:
        return float(np.mean(np.square((output(factor) - got)[failing])))

    yield Prediction("the sink left out", "the sink is left out of the row sum", output(0.0))
    for other, sink in zip(some.others, some.sinks, strict=True):
        if sink is not None and sink != own and other.sequence == some.head.sequence:
            text = f"the sink is that of head {other.head}, not of head {some.head.head}"
            yield Prediction("the sink of another head", text, output(math.exp(min(sink - own, 700.0))))
    factor = _least(far, *SINK_FACTORS)
    text = f"a wrong sink: {own + math.log(factor):.4g} in place of {own:.4g}"
    yield Prediction("one sink (fitted)", text, output(factor), 1)
