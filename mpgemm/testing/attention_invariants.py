"""This module checks invariants of attention kernels: the weights sum to 1, and later keys do not change causal rows.

A kernel is called with other operands than a test's own, for which its result is known more exactly than for any V.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

import tensorcore_models as tcm
from mpgemm.testing.attention import FACTOR_OF_8_BITS, AttentionOptions, call_of, check_attention
from mpgemm.testing.check import KernelCheck
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import get_float_format

#: Power of two that is the target for the scores' standard deviation; a third of normal scores then have small weights.
SPREAD = 3.0


def assert_attention_invariants(
    attention: Callable[[Any, Any, Any], Any], q, k, v, *, engine: Engine | str, **options: Unpack[AttentionOptions]
) -> None:
    """Fail unless a kernel has the invariants of every attention.

    There are three invariants: the weights P of a query sum to 1, small weights are not lost, and in a causal kernel a
    query's result does not depend on later keys.

    Parameters
    ----------
    attention : callable
        Function of (q, k, v) that returns the kernel's result; it is called with arrays of the types and shapes of `q`, `k`,
        `v`.
    q, k, v, engine, **options
        See :func:`assert_attention_close`.

    Raises
    ------
    AssertionError
        In one of three cases. (1) With V = 1, an element differs from 1 by more than its certified or statistical bound; with
        sinks, from 1 less the weight of the sink. (2) With operands of 8 bits, small weights are lost because P is cast
        without a factor. (V = 1 does not show this fault on units that truncate their sums, because the truncation loses as
        much.) (3) In a causal kernel, a bit of the results of the first half of the queries changes if only keys change that
        none of these queries sees.
    ValueError, TypeError
        See :func:`assert_attention_close`; also for packed or paged operands of a causal kernel.
    """
    __tracebackhide__ = True
    found = check_attention_invariants(attention, q, k, v, engine=engine, **options)
    if not found.passes:
        raise AssertionError(str(found))


def check_attention_invariants(
    attention: Callable[[Any, Any, Any], Any], q, k, v, *, engine: Engine | str, **options: Unpack[AttentionOptions]
) -> KernelCheck:
    """Return a report on whether a kernel has the invariants of every attention.

    Parameters and errors are those of :func:`assert_attention_invariants`.
    """
    q, k, v = (tcm.as_array(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    packed = options.get("cu_seqlens_q") is not None or options.get("block_table") is not None
    if options.get("causal") and packed:
        raise ValueError(
            "the check of later keys needs the layout (..., heads, rows, d), got packed or paged operands: give operands of "
            "this layout"
        )
    ones = np.ones_like(v)
    found = check_attention(attention(q, k, ones), q, k, ones, engine=engine, **options)
    if not found.passes:
        return replace(found, summary=f"with V = 1, for which the result must be 1: {found.summary}")
    if q.dtype.itemsize == 1 and not packed:
        lost = _lost_small_weights(attention, q, k, v, engine, options)
        if lost is not None:
            return lost
    if not options.get("causal") or q.shape[-2] < 2:
        return replace(found, summary="with V = 1 the result is 1 within its bound")
    return _later_keys(attention, q, k, v)


def _lost_small_weights(attention, q, k, v, engine, options: AttentionOptions) -> KernelCheck | None:
    """Return a failed check if a kernel's results lose small weights, which alone have V = 1; else None."""
    factor = options.get("p_scale") or FACTOR_OF_8_BITS
    rows, ones = _small_weights(q, k, v, options.get("scale"), factor)
    out = tcm.as_array(attention(rows, k, ones), "out").astype(np.float64)
    call = call_of(out, rows, k, ones, engine, "fp32", options)
    exact = np.zeros(out.shape)
    for head, case in zip(call.heads, call.cases, strict=True):
        largest = int(np.argmax(case.plain[-1]))  # with the same scores in all rows
        exact[head.at] = np.where(case.mask[:, largest, None], case.exact, 0.0)  # other formats keep small weights
    size = float(np.sum(np.square(exact)))
    share = float(np.sum(out * exact)) / size if size > 0 else 1.0
    fmt = call.cases[0].format
    # Casts of normal numbers lose at most half of this of each. Measured on a right kernel of Hopper's FP8 unit, in all: 0.04 %
    # with 1,024 keys, 0.8 % with 8,192, 8 % with 131,072 (e4m3: 12.5 %).
    kept = 2 * fmt.unit_roundoff
    if abs(share - 1) <= kept:
        return None
    few = fmt.min_subnormal / 2
    text = (
        f"with V = 1 at keys with weights below {few:g} times the largest, and 0 at others, results are {share:.3g} times the "
        f"exact ones, but must be within {kept:g} of 1"
    )
    said = f"P is cast to {fmt.name} without a factor: weights below {few:g} times the largest are lost"
    return KernelCheck(False, text, 0, out.size, suspects=(said,) if share < 1 else ("small weights are too large",))


def _small_weights(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float | None, factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and V for which a result consists of small weights alone.

    Q has one row in the heads that share K. V is 1 at keys whose weights a cast of P loses without a factor but keeps
    as normal numbers with it, and 0 at other keys.
    """
    group = (q.shape[-3] // k.shape[-3]) if q.ndim > 2 else 1
    first = (q[..., ::group, :1, :] if q.ndim > 2 else q[:1]).astype(np.float64)
    fmt = get_float_format(tcm.format_of_dtype(q.dtype) or "e4m3fn")
    scores = first @ np.swapaxes(k.astype(np.float64), -1, -2) * (q.shape[-1] ** -0.5 if scale is None else abs(scale))
    size, room = float(scores.std()), fmt.max_finite / max(float(np.abs(first).max()), fmt.min_subnormal)
    power = math.floor(min(math.log2(SPREAD / size) + 0.5, math.log2(room))) if size > 0 else 0
    first, scores = first * 2.0**power, scores * 2.0**power
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    small = (weights < fmt.min_subnormal / 2) & (weights * factor >= fmt.min_normal)
    rows = np.repeat(first, group, -3) if q.ndim > 2 else first
    ones = np.broadcast_to(np.swapaxes(small, -1, -2), v.shape)
    return np.broadcast_to(rows, q.shape).astype(q.dtype), ones.astype(np.float32).astype(v.dtype)


def _later_keys(attention: Callable[[Any, Any, Any], Any], q: np.ndarray, k: np.ndarray, v: np.ndarray) -> KernelCheck:
    """Return a check of the first half's rows against a call with other keys after them."""
    half, offset = q.shape[-2] // 2, k.shape[-2] - q.shape[-2]
    first = max(half + offset, 0)
    others = [x.copy() for x in (k, v)]
    for x in others:
        x[..., first:, :] = -x[..., first:, :][..., ::-1, :]
    results = [tcm.as_array(attention(q, *pair), "out")[..., :half, :] for pair in ((k, v), tuple(others))]
    bits = [np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}") for x in results]
    wrong = bits[0] != bits[1]
    count, size = int(np.count_nonzero(wrong)), wrong.size
    if not count:
        text = (
            f"with V = 1 the result is 1 within its bound; keys from {first} on change no bit of the first {half} rows"
        )
        return KernelCheck(True, text, 0, size)
    row = int(np.flatnonzero(wrong.reshape(-1, *wrong.shape[-2:]).any((0, 2)))[0])
    text = f"keys from {first} on, which none of the first {half} queries sees, change {count} of {size} elements of their rows"
    return KernelCheck(False, text, count, size, suspects=(f"the mask lets queries see later keys, from row {row} on",))
