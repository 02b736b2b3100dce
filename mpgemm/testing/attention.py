"""Tests of attention kernels: softmax(scale Q K^T) V over any order of tiles, held to a certified and to a statistical line.

For a query with weights p (its softmax), output o and values v a kernel's result differs by at most, element by element,

- ``sum p (e^E - 1) (|v| + |o|)``: E is the error of an exponent: of Q K^T on the unit, of its scaling and the running maximum's
  subtraction in FP32, of the exponential (`exp_ulps` units in the last place), and of rescaling once for each tile;
- ``sum (u p + t) |v|``: P is rounded to the operands' format (u half a unit, t half its smallest number over `p_scale`);
- the unit's own error of P V, over any order of its steps; a rounding for each key in the row sum, and for each tile;
- the output's rounding.

The statistical line has the size of these errors where roundings are independent, measured on the exact model with tiles of
several sizes, and is carried to all elements by the tail (:mod:`mpgemm.bounds.tails`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypedDict, Unpack

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.populations import evenly
from mpgemm.bounds.tails import upper_limit
from mpgemm.experiments.attention import AttentionProgram, attend, visible
from mpgemm.testing.case import format_of_result, gemm_tolerance, kernel_engine
from mpgemm.testing.check import KernelCheck, failed
from mpgemm.testing.diagnosis import Diagnosis
from mpgemm.testing.diagnosis.failure import Finding, rated
from mpgemm.testing.diagnosis.places import place_of
from mpgemm.testing.sampled import ratio
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format

#: Half a unit of FP32.
UNIT = 2.0**-24
#: Keys of the smallest tile that kernels have, where a test does not say.
SMALLEST_TILE = 16
#: Right results of a whole test that pass the statistical line, with which confidence; rows and tiles that are drawn.
QUANTILE, CONFIDENCE, ROWS, DRAWN = 0.9999, 0.95, 48, (32, 64, 128, 1 << 30)
#: Largest share of elements that zeros may pass in.
VACUOUS = 0.9


@dataclass(frozen=True)
class AttentionCase:
    """One head of a kernel's call.

    Attributes
    ----------
    q, k, v : ndarray of float64, shapes (queries, d), (keys, d), (keys, dv)
    program : AttentionProgram
        The unit, scale and formats; its tile is the smallest that the kernel may have.
    mask : ndarray of bool, shape (queries, keys)
        Which keys each query sees.
    exp_ulps : float
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    program: AttentionProgram
    mask: np.ndarray
    exp_ulps: float

    @cached_property
    def scores(self) -> np.ndarray:
        """scale Q K^T, -infinity where nothing is seen."""
        return np.where(self.mask, self.program.scale * (self.q @ self.k.T), -np.inf)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """:func:`_weights` of the scores."""
        return _weights(self.scores)

    @cached_property
    def exact(self) -> np.ndarray:
        """The exact output, but for errors of FP64."""
        w, total = self.weights
        return (w / total) @ self.v

    @property
    def _format(self) -> Format:
        return get_float_format(self.program.engine.a_format)

    @property
    def _lost_p(self) -> np.ndarray:
        """What rounding P to the operands' format may lose below its normal numbers, over the row sum."""
        w, total = self.weights
        return np.minimum(self._format.min_subnormal / 2 / self.program.p_scale, w) / total

    @cached_property
    def bound(self) -> np.ndarray:
        """Certified: |out - exact| of a kernel over any order of tiles."""
        engine, scale = self.program.engine, abs(self.program.scale)
        keys, size = self.k.shape[0], np.abs(self.v)
        tiles = -(-keys // self.program.tile)
        w, total = self.weights
        p = w / total
        score_error = scale * gemm_tolerance(engine, self._given(self.q), self._given(self.k.T)).finite_bound
        largest = np.where(self.mask, np.abs(self.scores), 0.0).max(1, keepdims=True)
        one = (
            6 * UNIT * (largest + 1) + 2 * self.exp_ulps * UNIT
        )  # argument: factor, maximum, difference; the exponential
        exponent = np.expm1(np.minimum(score_error + (1 + tiles) * one, 50.0))
        weighted = p * exponent
        lost = weighted.sum(1, keepdims=True)
        error = (weighted @ size + lost * np.abs(self.exact)) / np.maximum(1 - lost, 0.1)
        error += (p * self._format.unit_roundoff + self._lost_p) @ size
        rounded = np.asarray(tcm.round_to(w * self.program.p_scale, self._format))
        sums = gemm_tolerance(engine, self._given(rounded), self._given(self.v), k_order="any").finite_bound
        error += 1.25 * sums / self.program.p_scale / total + tiles * 2 * UNIT * (p @ size)
        error += np.abs(self.exact) * UNIT * (2 * keys + 2 * tiles + 8)
        return self._with_output(error * 1.001 + 2.0**-40 * (p @ size))

    def _with_output(self, error: np.ndarray) -> np.ndarray:
        out = self.program.out
        return error + out.unit_roundoff * (np.abs(self.exact) + error) + out.min_subnormal / 2

    def _given(self, x: np.ndarray) -> np.ndarray:
        return x.astype(self._format.dtype)

    @cached_property
    def typical(self) -> np.ndarray:
        """Errors of right kernels without the output's rounding, about."""
        w, total = self.weights
        p = w / total
        own = np.square(self._format.unit_roundoff) / 3 * np.square(p) @ np.square(self.v)
        return np.sqrt(own) + self._lost_p @ np.abs(self.v) + 2.0**-18 * (p @ np.abs(self.v))

    def ratios(self, rows: np.ndarray) -> list[np.ndarray]:
        """Errors of right kernels with tiles of several sizes over :attr:`typical`, of some queries."""
        found = []
        for tile in DRAWN:
            if tile >= self.program.tile:
                program = replace(self.program, tile=min(tile, self.k.shape[0]))
                out = attend((self.q[rows], self.k, self.v), program, 6, self.mask[rows])
                found.append(ratio(np.abs(out - self.exact[rows]), self.typical[rows]))
        return found


class AttentionOptions(TypedDict, total=False):
    """What a test says of an attention kernel: parameters of :func:`assert_attention_close`."""

    causal: bool
    window: tuple[int, int] | None
    scale: float | None
    kv_tile: int | None
    p_scale: float
    exp_ulps: float


def assert_attention_close(out, q, k, v, *, engine: Engine | str, **options: Unpack[AttentionOptions]) -> None:
    """Fail unless an attention kernel's result is right.

    Parameters
    ----------
    out : array_like, shape (..., heads, queries, dv)
        The kernel's result; its type is the output format. Without batch and heads: (queries, dv).
    q, k, v : array_like, shapes (..., heads, queries, d), (..., kv heads, keys, d) and (..., kv heads, keys, dv)
        The operands, in the unit's format. Query head h reads head h // (heads / kv heads) of K and V.
    engine : Engine or str
        A device ("h100": its unit for the operands' type), "arch:name" or an engine.
    causal : bool
        The last query sees all keys, each one before it one key less (FlashAttention 2.1 and newer).
    window : (left, right), optional
        Keys before and behind a query's own place that it sees; -1 for all.
    scale : float, optional
        1 / sqrt(d) by default.
    kv_tile : int, optional
        Keys of a tile; any from 16 on by default.
    p_scale : float
        What P is multiplied with before it is rounded to the operands' format (256 in FlashAttention 3 with FP8).
    exp_ulps : float
        Units in the last place within which the kernel's exponential is.

    Raises
    ------
    AssertionError
        If an element is outside of the certified or of the statistical line: where, and what explains it. Also if both are
        vacuous.
    ValueError, TypeError
        If shapes, types or numbers do not fit.
    """
    __tracebackhide__ = True
    found = check_attention(out, q, k, v, engine=engine, **options)
    if not found.passes:
        raise AssertionError(str(found))


def check_attention(
    out, q, k, v, *, engine, causal=False, window=None, scale=None, kv_tile=None, p_scale=1.0, exp_ulps=4.0
) -> KernelCheck:
    """Whether an attention kernel's result is right; parameters and errors as :func:`assert_attention_close`."""
    arrays = [tcm.as_array(x, name) for x, name in ((out, "out"), (q, "q"), (k, "k"), (v, "v"))]
    computed, heads = _heads(*arrays)
    d = arrays[1].shape[-1]
    fmt = format_of_result(arrays[0])
    unit = kernel_engine(engine, arrays[1], arrays[2])
    _check_numbers(scale, kv_tile, p_scale, exp_ulps, unit)
    _check_window(window)
    queries, keys = arrays[1].shape[-2], arrays[2].shape[-2]
    program = AttentionProgram(
        unit,
        kv_tile or SMALLEST_TILE,
        d**-0.5 if scale is None else float(scale),
        get_float_format(fmt.name),
        float(p_scale),
    )
    mask = np.broadcast_to(visible(queries, keys, causal, window), (queries, keys))
    cases = [AttentionCase(x, y, z, program, mask, float(exp_ulps)) for x, y, z in heads]
    with np.errstate(all="ignore"):
        return _judged(computed.astype(np.float64), cases, arrays[1].shape[:-2], causal)


def _heads(out, q, k, v) -> tuple[np.ndarray, list[list[np.ndarray]]]:
    """(the result of each head, Q, K and V of each head in float64)."""
    shapes = f"out {out.shape}, q {q.shape}, k {k.shape} and v {v.shape}"
    expected = "expected (..., heads, queries, dv), (..., heads, queries, d)"
    expected = f"{expected}, (..., kv heads, keys, d) and (..., kv heads, keys, dv)"
    fits = q.ndim == k.ndim == v.ndim == out.ndim >= 2 and 0 not in (*q.shape, *k.shape, *v.shape)
    if (
        not fits
        or q.shape[-1] != k.shape[-1]
        or k.shape[:-1] != v.shape[:-1]
        or out.shape != (*q.shape[:-1], v.shape[-1])
    ):
        raise ValueError(f"{shapes}: {expected}")
    if q.ndim > 2 and (q.shape[:-3] != k.shape[:-3] or q.shape[-3] % k.shape[-3]):
        raise ValueError(f"{shapes}: {expected}, the same batch, and heads a multiple of kv heads")
    if q.dtype != k.dtype or k.dtype != v.dtype:
        raise TypeError(f"q, k and v are {q.dtype}, {k.dtype} and {v.dtype}, expected one type")
    for x, name in ((q, "q"), (k, "k"), (v, "v")):
        if not np.isfinite(x.astype(np.float64)).all():
            raise ValueError(f"{name} holds values that are not finite: their attention has no bound")
    if q.ndim > 2:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (out, q, k, v)]
    return flat[0], [[x.astype(np.float64) for x in head] for head in zip(*flat[1:], strict=True)]


def _check_numbers(scale, kv_tile, p_scale, exp_ulps, unit: Engine) -> None:
    if scale is not None and not (math.isfinite(scale) and scale != 0):
        raise ValueError(f"scale is {scale!r}, expected a number other than 0")
    if kv_tile is not None and (isinstance(kv_tile, bool) or not hasattr(kv_tile, "__index__")):
        raise TypeError(f"kv_tile is the number of keys of a tile, an integer, got {kv_tile!r}")
    if kv_tile is not None and kv_tile < 1:
        raise ValueError(f"a tile holds {kv_tile} keys, expected at least 1")
    if not (math.isfinite(p_scale) and p_scale > 0 and math.frexp(p_scale)[0] == 0.5):
        raise ValueError(f"p_scale is {p_scale!r}, expected a power of two")
    if not (math.isfinite(exp_ulps) and exp_ulps >= 0.5):
        raise ValueError(f"exp_ulps is {exp_ulps!r}, expected a number of at least 0.5")
    a, b, c, d = unit.formats
    if a != b or c != d or d.name != "fp32" or unit.scale_format is not None or not isinstance(a, Format):
        raise ValueError(
            f"{unit.label} multiplies {a.name} x {b.name} to {d.name}; attention takes FP32 sums and no block scales"
        )


def _check_window(window) -> None:
    numbers = window if isinstance(window, (tuple, list)) else ()
    whole = all(hasattr(x, "__index__") and not isinstance(x, bool) for x in numbers)
    if window is not None and not (len(numbers) == 2 and whole):
        raise TypeError(f"window is {window!r}, expected (keys before, keys behind) a query's place, -1 for all")


def _judged(out: np.ndarray, cases: list[AttentionCase], shape: tuple[int, ...], causal: bool) -> KernelCheck:
    exact = np.stack([case.exact for case in cases])
    bound = np.stack([case.bound for case in cases])
    error = np.abs(out - exact)
    times = _limit(cases)
    line = np.stack([case._with_output(times * case.typical) for case in cases])
    allowed = np.minimum(bound, line)
    unit = cases[0].program.engine.label
    zeros = float(np.mean(np.abs(exact) <= allowed))
    if zeros > VACUOUS:
        text = f"the tolerance is vacuous: zeros pass in {zeros:.0%} of the elements of attention on {unit}"
        return KernelCheck(False, f"{text}; use fewer keys, or larger values of V", 0, out.size)
    wrong = ~(error <= allowed)
    what = f"{'causal ' if causal else ''}attention on {unit}"
    if not wrong.any():
        return KernelCheck(True, f"every element of {what} is right, within {allowed.max():.3g}", 0, out.size)
    kind = "certified" if (~(error <= bound)).any() else f"statistical ({QUANTILE:.2%} of right results pass)"
    summary = f"{np.count_nonzero(wrong)} of {wrong.size} elements are outside of the {kind} tolerance of {what}"
    at = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error / allowed))), error.shape)
    worst = (
        f"worst: out[{', '.join(map(str, (*np.unravel_index(at[0], shape), *at[1:]) if shape else at[1:]))}] = "
        f"{float(out[at])!r}, exact {float(exact[at])!r}: difference {float(error[at]):.6g}, certified {float(bound[at]):.6g}, "
        f"statistical {float(line[at]):.6g}"
    )
    head = int(np.argmax(wrong.sum((1, 2))))
    place = place_of(wrong[head], exact[head])
    several = np.flatnonzero(wrong.any((1, 2)))
    where = (
        place.text if not shape else f"{_heads_in_words(several, shape)}; in head {_index(head, shape)}: {place.text}"
    )
    found = failed(summary, [worst], wrong[head], place, explain(out, cases, wrong, head))
    outside = wrong.reshape(*shape, *wrong.shape[1:])
    return replace(found, wrong=int(wrong.sum()), elements=out.size, place=where, outside=outside)


def _index(head: int, shape: tuple[int, ...]) -> str:
    return ", ".join(str(int(x)) for x in np.unravel_index(head, shape))


def _heads_in_words(several: np.ndarray, shape: tuple[int, ...]) -> str:
    total = math.prod(shape)
    if several.size == total:
        return "all heads"
    return f"{several.size} of {total} heads" if several.size > 1 else f"head {_index(int(several[0]), shape)} only"


def _limit(cases: list[AttentionCase]) -> float:
    """How many times as large as :attr:`AttentionCase.typical` errors of right kernels are."""
    draws: list[np.ndarray] = []
    for at in evenly(len(cases), 4):
        found = cases[at].ratios(evenly(len(cases[at].q), ROWS))
        draws += [part for ratios in found for part in np.array_split(ratios, 6) if part.size]
    elements = sum(case.exact.size for case in cases)
    return max(upper_limit(draws, -math.expm1(math.log(QUANTILE)) / elements, CONFIDENCE), 1.0)


#: Keys of tiles that kernels have.
TILES = (16, 32, 64, 128, 256)
#: In the place of a size of 0.
TINY = 1e-300


def explain(out: np.ndarray, cases: list[AttentionCase], wrong: np.ndarray, head: int) -> Diagnosis:
    """The faults whose outputs are the kernel's in the worst head."""
    case = cases[head]
    usual = np.hypot(
        case.typical, case.program.out.unit_roundoff / math.sqrt(3) * np.maximum(np.abs(case.exact), np.abs(out[head]))
    )
    before = np.abs(out[head] - case.exact) / usual
    failing = wrong[head]
    good: list[Finding] = []
    kinds: dict[str, bool] = {}
    for kind, text, prediction in _predictions(cases, head):
        kinds.setdefault(kind, False)
        own = usual * np.maximum(_rms_of_rows(prediction) / np.maximum(_rms_of_rows(case.exact), TINY), 1.0)
        rest = np.abs(out[head] - prediction) / np.hypot(own, case.program.out.unit_roundoff / 2 * np.abs(prediction))
        finding = rated(text, rest, before, failing)
        if finding.good:
            good.append(finding)
            kinds[kind] = True
    best = min((finding.fit for finding in good), default=math.inf)
    statements = tuple(dict.fromkeys(finding.text for finding in sorted(good) if finding.fit <= 1.03 * best))
    return Diagnosis(statements, (), tuple(kind for kind, named in kinds.items() if not named))


def _rms_of_rows(x: np.ndarray) -> np.ndarray:
    """The size of each row: errors of one that is larger are larger, too."""
    return np.sqrt(np.mean(np.square(x), 1, keepdims=True))


def _weights(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(e^(score - maximum), their sums), 0 and 1 where nothing is seen."""
    top = scores.max(1, keepdims=True)
    w = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = w.sum(1, keepdims=True)
    return w, np.where(total > 0, total, 1.0)


def _softmax(scores: np.ndarray, v: np.ndarray) -> np.ndarray:
    w, total = _weights(scores)
    return (w @ v) / total


def _predictions(cases: list[AttentionCase], head: int) -> Iterator[tuple[str, str, np.ndarray]]:
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


def _masks(case: AttentionCase, plain: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
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


def _tiles(case: AttentionCase, plain: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
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


def _stale(case: AttentionCase, plain: np.ndarray, tile: int) -> Iterator[tuple[str, str, np.ndarray]]:
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
