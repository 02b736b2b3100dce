"""This module tests attention kernels, softmax(scale Q K^T) V, against certified and statistical bounds.

:mod:`mpgemm.testing.attention_case` derives the bounds, :mod:`mpgemm.testing.attention_layouts` reads layouts, and
:mod:`mpgemm.testing.attention_faults` explains wrong results.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np

import tensorcore_models as tcm
from mpgemm.experiments.attention import AttentionProgram, visible
from mpgemm.testing.attention_case import EXPONENTIAL, QUANTILE, AttentionCase, draw_results, limit_of
from mpgemm.testing.attention_casts import explain_weight
from mpgemm.testing.attention_faults import explain
from mpgemm.testing.attention_layouts import AttentionHead, heads_of
from mpgemm.testing.attention_weights import held_weight
from mpgemm.testing.call import format_of_result, kernel_engine, sampled_rows
from mpgemm.testing.check import KernelCheck, failed, looked_at, right_elements_in_words, with_narrower_format
from mpgemm.testing.diagnosis.places import place_of
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format

#: Keys of the smallest tile of a kernel, if a test does not state it.
SMALLEST_TILE = 16
#: Factor of P for operands of 8 bits, if a test does not state it: P keeps all bits of its weights with it.
FACTOR_OF_8_BITS = 256.0
#: Largest share of elements for which zeros may pass.
VACUOUS = 0.9


class AttentionOptions(TypedDict, total=False):
    """`AttentionOptions` holds a test's statements on an attention kernel, the parameters of :func:`assert_attention_close`."""

    causal: bool
    window: tuple[int, int] | None
    scale: float | None
    kv_tile: int | None
    p_scale: float | None
    exp_ulps: float
    softcap: float | None
    sinks: Any
    rows: int | None
    cu_seqlens_q: Any
    cu_seqlens_k: Any
    block_table: Any
    cache_seqlens: Any


def assert_attention_close(out, q, k, v, *, engine: Engine | str, **options: Unpack[AttentionOptions]) -> None:
    """Fail unless an attention kernel's result is right.

    Parameters
    ----------
    out : array_like, shape (..., heads, queries, dv)
        The kernel's result; its type is the output format. Without batch and heads: (queries, dv).
    q, k, v : array_like, shapes (..., heads, queries, d), (..., kv heads, keys, d) and (..., kv heads, keys, dv)
        The operands, in the unit's format. Query head h reads head h // (heads / kv heads) of K and V.
    engine : Engine or str
        Modelled unit: a device ("h100": its unit for the operands' type), "arch:name" or an engine.
    causal : bool
        Whether the mask is causal: the last query sees all keys, each earlier query one key fewer (FlashAttention 2.1 and
        newer).
    window : (left, right), optional
        Numbers of keys before and after its own position that a query sees; -1 for all.
    scale : float, optional
        Factor of the scores; 1 / sqrt(d) by default.
    kv_tile : int, optional
        Number of keys of a tile; by default any number from 16 on.
    p_scale : float, optional
        Factor of P before P is rounded to the operands' format. The default is 256 for 8-bit formats, as in
        FlashAttention 3 (without the factor P loses small weights, which counts as a fault), and 1 for other formats.
    exp_ulps : float
        Largest error of the kernel's exponential in units in the last place. The default 2.06 is the largest error of
        MUFU.EX2 for arguments up to 0 (docs/special_functions.md); expf has a smaller one.
    softcap : float, optional
        Soft cap: scaled scores x become softcap tanh(x / softcap), where the kernel's tanh has an error of at most 2^-11.
    sinks : array_like, shape (heads,), optional
        One score for each query head; its exponential is added to the row sums, without a value vector.
    rows : int, optional
        Check only this many queries of each head, evenly spread; all by default.
    cu_seqlens_q, cu_seqlens_k : array_like of int, shape (sequences + 1,), optional
        First row of each packed sequence, and the end; q and out are then (all queries, heads, d), k and v (all keys, kv
        heads, d).
    block_table, cache_seqlens : array_like of int, shapes (sequences, pages) and (sequences,), optional
        Pages of each sequence and its number of keys; K and V are then (pages, rows of a page, kv heads, d), and q and
        out (sequences, queries, heads, d), or packed with cu_seqlens_q.

    Raises
    ------
    AssertionError
        If an element exceeds the certified or the statistical bound (the message gives its place and an explanation), or
        if both bounds are vacuous.
    ValueError, TypeError
        If shapes, types or numbers do not fit.
    """
    __tracebackhide__ = True
    found = check_attention(out, q, k, v, engine=engine, **options)
    if not found.passes:
        raise AssertionError(str(found))


@dataclass(frozen=True)
class AttentionCall:
    """`AttentionCall` is a call of an attention kernel, head by head."""

    heads: list[AttentionHead]
    cases: list[AttentionCase]  #: cases with all queries of each head
    lines: list[np.ndarray]  #: indices of the queries of each head that are checked
    what: str

    @property
    def looked_at(self) -> list[AttentionCase]:
        """Return the cases of the checked queries."""
        return [
            case if len(rows) == len(case.q) else case.rows(rows)
            for case, rows in zip(self.cases, self.lines, strict=True)
        ]


def check_attention(out, q, k, v, *, engine: Engine | str, **options: Unpack[AttentionOptions]) -> KernelCheck:
    """Return a report on whether an attention kernel's result is right.

    Parameters and errors are those of :func:`assert_attention_close`.
    """
    computed = tcm.as_array(out, "out")
    call = call_of(computed, q, k, v, engine, format_of_result(computed).name, options)
    with np.errstate(all="ignore"):
        found = _judged(computed.astype(np.float64), call)
    return with_narrower_format(
        found, computed, lambda narrow: check_attention(narrow, q, k, v, engine=engine, **options)
    )


def call_of(out: np.ndarray, q, k, v, engine, out_format: str, options: AttentionOptions) -> AttentionCall:
    """Return the call that a test describes. Raises ValueError or TypeError if it does not fit."""
    if unknown := sorted(options.keys() - AttentionOptions.__annotations__.keys()):
        raise TypeError(
            f"unknown option {', '.join(unknown)}: use one of {', '.join(AttentionOptions.__annotations__)}"
        )
    arrays = [tcm.as_array(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v"))]
    packed = {name: options.get(name) for name in ("cu_seqlens_q", "cu_seqlens_k", "block_table", "cache_seqlens")}
    heads = heads_of(out, *arrays, **packed)
    unit = kernel_engine(engine, arrays[0], arrays[1])
    scale, kv_tile, softcap = options.get("scale"), options.get("kv_tile"), options.get("softcap")
    p_scale, exp_ulps, window = options.get("p_scale"), options.get("exp_ulps", EXPONENTIAL), options.get("window")
    if p_scale is None:
        p_scale = FACTOR_OF_8_BITS if unit.formats[0].bits <= 8 else 1.0
    _check_numbers(scale, kv_tile, p_scale, exp_ulps, unit)
    if softcap is not None and not (math.isfinite(softcap) and softcap > 0):
        raise ValueError(f"softcap must be a number above 0, got {softcap!r}")
    _check_window(window)
    causal = options.get("causal", False)
    sinks = _sinks_of(options.get("sinks"), 1 + max(head.head for head in heads))
    program = AttentionProgram(
        unit, kv_tile or SMALLEST_TILE, heads[0].q.shape[1] ** -0.5 if scale is None else float(scale),
        get_float_format(out_format), float(p_scale), None if softcap is None else float(softcap),
    )  # fmt: skip
    cases, lines = [], []
    for head in heads:
        own = program if sinks is None else replace(program, sink=float(sinks[head.head]))
        shape = len(head.q), len(head.k)
        mask = np.broadcast_to(visible(*shape, causal, window), shape)
        cases.append(AttentionCase(head.q, head.k, head.v, own, mask, float(exp_ulps)))
        taken = sampled_rows(len(head.q), options.get("rows"))
        lines.append(np.arange(len(head.q)) if taken is None else taken)
    return AttentionCall(heads, cases, lines, f"{'causal ' if causal else ''}attention on {unit.label}")


def _sinks_of(given: Any, heads: int) -> np.ndarray | None:
    if given is None:
        return None
    sinks = tcm.as_array(given, "sinks").astype(np.float64)
    if sinks.shape != (heads,) or not np.isfinite(sinks).all():
        raise ValueError(
            f"sinks must have the shape ({heads},), one finite score for each query head, got {sinks.shape}"
        )
    return sinks


def _check_numbers(scale, kv_tile, p_scale, exp_ulps, unit: Engine) -> None:
    if scale is not None and not (math.isfinite(scale) and scale != 0):
        raise ValueError(f"scale must be a number other than 0, got {scale!r}")
    if kv_tile is not None and (isinstance(kv_tile, bool) or not hasattr(kv_tile, "__index__")):
        raise TypeError(f"kv_tile must be an integer, the number of keys of a tile, got {kv_tile!r}")
    if kv_tile is not None and kv_tile < 1:
        raise ValueError(f"kv_tile must be at least 1 key, got {kv_tile}")
    if not (math.isfinite(p_scale) and p_scale > 0 and math.frexp(p_scale)[0] == 0.5):
        raise ValueError(f"p_scale must be a power of two, got {p_scale!r}")
    if not (math.isfinite(exp_ulps) and exp_ulps >= 0.5):
        raise ValueError(f"exp_ulps must be a number of at least 0.5, got {exp_ulps!r}")
    a, b, c, d = unit.formats
    if a != b or c != d or d.name != "fp32" or unit.scale_format is not None or not isinstance(a, Format):
        raise ValueError(
            f"{unit.label} multiplies {a.name} x {b.name} to {d.name}; attention needs a unit with FP32 sums and without "
            "block scales"
        )


def _check_window(window) -> None:
    numbers = window if isinstance(window, (tuple, list)) else ()
    whole = all(hasattr(x, "__index__") and not isinstance(x, bool) for x in numbers)
    if window is not None and not (len(numbers) == 2 and whole):
        raise TypeError(
            f"window must be a pair (keys before, keys after a query's position), with -1 for all, got {window!r}"
        )


def _judged(out: np.ndarray, call: AttentionCall) -> KernelCheck:
    cases = call.looked_at
    got = [out[head.at][rows] for head, rows in zip(call.heads, call.lines, strict=True)]
    size = sum(x.size for x in got)
    drawn = draw_results(cases)
    times = limit_of(drawn, size)
    lines = [case.line(times) for case in cases]
    allowed = [np.minimum(case.bound, line) for case, line in zip(cases, lines, strict=True)]
    zeros = sum(np.count_nonzero(np.abs(case.exact) <= most) for case, most in zip(cases, allowed, strict=True)) / size
    if zeros > VACUOUS:
        text = f"the tolerance is vacuous: zeros pass in {zeros:.0%} of the elements of {call.what}"
        return KernelCheck(False, f"{text}; use fewer keys, or larger values of V", 0, size)
    error = [np.abs(x - case.exact) for x, case in zip(got, cases, strict=True)]
    wrong = [~(x <= most) for x, most in zip(error, allowed, strict=True)]
    seen = looked_at(size, out.size)
    if not any(x.any() for x in wrong):
        held = held_weight(got, cases, drawn)
        if held is not None and not held.right:
            text = (
                f"each of the elements{seen} is within the tolerance of {call.what}, but taken together they are {held}"
            )
            said = explain_weight(held.share, held.error, cases) or ("weights whose sum differs from the row sum",)
            return KernelCheck(False, text, 0, size, suspects=said)
        largest = max(float(x.max()) for x in allowed)
        text = f"{right_elements_in_words(size, out.size)} for {call.what}, within {largest:.3g}"
        return KernelCheck(True, text, 0, size)
    outside = any((~(x <= case.bound)).any() for x, case in zip(error, cases, strict=True))
    kind = "certified" if outside else f"statistical ({QUANTILE:.2%} of right results pass, measured on the model)"
    count = int(sum(np.count_nonzero(x) for x in wrong))
    summary = f"{count} of {size} elements{seen} are outside of the {kind} tolerance of {call.what}"
    return _explained(out, call, cases, wrong, summary, _worst(call, cases, got, error, allowed, lines))


def _worst(call: AttentionCall, cases, got, error, allowed, lines) -> str:
    """Return the element with the largest error."""
    ratios = [np.where(np.isnan(x), np.inf, x / most) for x, most in zip(error, allowed, strict=True)]
    head = int(np.argmax([float(x.max()) for x in ratios]))
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(ratios[head])), ratios[head].shape))
    place = ", ".join(map(str, (*call.heads[head].name, int(call.lines[head][i]), j)))
    return (
        f"worst: out[{place}] = {float(got[head][i, j])!r}, exact {float(cases[head].exact[i, j])!r}: difference "
        f"{float(error[head][i, j]):.6g}, certified {float(cases[head].bound[i, j]):.6g}, "
        f"statistical {float(lines[head][i, j]):.6g}"
    )


def _explained(out: np.ndarray, call: AttentionCall, cases, wrong, summary: str, worst: str) -> KernelCheck:
    head = int(np.argmax([np.count_nonzero(x) for x in wrong]))
    chosen, rows = call.heads[head], call.lines[head]
    place = place_of(wrong[head], cases[head].exact, None if len(rows) == len(call.cases[head].q) else rows)
    several = [call.heads[i].name for i, x in enumerate(wrong) if x.any()]
    where = place.text
    if chosen.name:
        where = f"{_heads_in_words(several, len(call.heads))}; in head {_name(chosen.name)}: {where}"
    full = np.zeros(call.cases[head].q.shape[:1] + wrong[head].shape[1:], bool)
    full[rows] = wrong[head]
    some = np.zeros(len(full), bool)
    some[rows] = True
    sinks = [case.program.sink for case in call.cases]
    found = explain(out[chosen.at], call.cases[head], full, some, chosen, call.heads, sinks)
    check = failed(summary, [worst], wrong[head], place, found)
    outside = np.zeros(out.shape, bool)
    for each, lines, bad in zip(call.heads, call.lines, wrong, strict=True):
        outside[each.at][lines] = bad
    count = int(sum(np.count_nonzero(x) for x in wrong))
    return replace(check, wrong=count, elements=sum(x.size for x in wrong), place=where, outside=outside)


def _name(name: tuple[int, ...]) -> str:
    return ", ".join(map(str, name))


def _heads_in_words(several: list[tuple[int, ...]], total: int) -> str:
    if len(several) == total:
        return "all heads"
    return f"{len(several)} of {total} heads" if len(several) > 1 else f"head {_name(several[0])} only"
