"""Checks what every attention kernel keeps: weights sum to the row sum, and later keys change no bit of a causal row.

A kernel is called with other operands than a test's own, on which its result is known better than for any V.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

import tensorcore_models as tcm
from mpgemm.testing.attention import AttentionOptions, check_attention
from mpgemm.testing.check import KernelCheck
from tensorcore_models.engines.engine import Engine


def assert_attention_invariants(
    attention: Callable[[Any, Any, Any], Any], q, k, v, *, engine: Engine | str, **options: Unpack[AttentionOptions]
) -> None:
    """Fail unless a kernel keeps what every attention has.

    Parameters
    ----------
    attention : callable
        (q, k, v) to the kernel's result; called with arrays of the types and shapes of these.
    q, k, v, engine, **options
        As of :func:`assert_attention_close`.

    Raises
    ------
    AssertionError
        If with V = 1 an element is not 1 (less a sink's share) within its certified or its statistical line, as where P loses
        small weights; if, of a causal kernel, keys that no query of the first half sees change a bit of their rows.
    ValueError, TypeError
        As :func:`assert_attention_close`; for a causal kernel also for packed or paged operands.
    """
    __tracebackhide__ = True
    found = check_attention_invariants(attention, q, k, v, engine=engine, **options)
    if not found.passes:
        raise AssertionError(str(found))


def check_attention_invariants(
    attention: Callable[[Any, Any, Any], Any], q, k, v, *, engine: Engine | str, **options: Unpack[AttentionOptions]
) -> KernelCheck:
    """Return whether a kernel keeps what every attention has; parameters and errors as :func:`assert_attention_invariants`."""
    q, k, v = (tcm.as_array(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    packed = options.get("cu_seqlens_q") is not None or options.get("block_table") is not None
    if options.get("causal") and packed:
        raise ValueError(
            "keys behind a causal row are changed in (..., heads, rows, d): leave packed and paged operands out"
        )
    ones = np.ones_like(v)
    found = check_attention(attention(q, k, ones), q, k, ones, engine=engine, **options)
    if not found.passes:
        return replace(found, summary=f"with V = 1, which gives 1: {found.summary}")
    if not options.get("causal") or q.shape[-2] < 2:
        return replace(found, summary="with V = 1 the result is 1, within its line")
    return _later_keys(attention, q, k, v)


def _later_keys(attention: Callable[[Any, Any, Any], Any], q: np.ndarray, k: np.ndarray, v: np.ndarray) -> KernelCheck:
    """Rows of the first half beside those of a call whose keys behind them are others."""
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
            f"with V = 1 the result is 1, within its line; keys from {first} on change no bit of the first {half} rows"
        )
        return KernelCheck(True, text, 0, size)
    row = int(np.flatnonzero(wrong.reshape(-1, *wrong.shape[-2:]).any((0, 2)))[0])
    text = f"keys from {first} on, which none of the first {half} queries sees, change {count} of {size} elements of their rows"
    return KernelCheck(
        False, text, count, size, suspects=(f"a mask that lets a query see later keys, from row {row} on",)
    )
