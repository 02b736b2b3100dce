"""This module reads calls of attention kernels head by head: batches, packed sequences, K and V in pages.

Layouts are those of the flash_attn package: ``(..., heads, rows, d)`` for one call of equal lengths. With
`cu_seqlens_q` and `cu_seqlens_k` they are ``(all rows, heads, d)``, with sequence i in rows cu_seqlens[i] to
cu_seqlens[i + 1]. With `block_table` K and V are pages ``(pages, rows of a page, kv heads, d)``, and sequence i has
`cache_seqlens[i]` keys in the pages block_table[i].
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class AttentionHead:
    """`AttentionHead` is one head of one sequence.

    Attributes
    ----------
    name : tuple of int
        Index in the batch's dimensions (a sequence), then the head.
    at : tuple
        Index of the head's rows in the kernel's result.
    q, k, v : ndarray, shapes (queries, d), (keys, d), (keys, dv)
    sequence, head, kv_head : int
        Numbers of the sequence, the query head, and the head of K and V.
    """

    name: tuple[int, ...]
    at: tuple[Any, ...]
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    sequence: int
    head: int
    kv_head: int


def heads_of(
    out, q, k, v, cu_seqlens_q=None, cu_seqlens_k=None, block_table=None, cache_seqlens=None
) -> list[AttentionHead]:
    """Return the heads of a call.

    Raises ValueError or TypeError if shapes, types or lengths do not fit, or values are not finite.
    """
    if q.dtype != k.dtype or k.dtype != v.dtype:
        raise TypeError(f"q, k and v must have one type, got {q.dtype}, {k.dtype} and {v.dtype}")
    packed = {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "block_table": block_table,
              "cache_seqlens": cache_seqlens}  # fmt: skip
    given = {name for name, value in packed.items() if value is not None}
    known: tuple[set[str], ...] = (set(), {"cu_seqlens_q", "cu_seqlens_k"}, {"block_table", "cache_seqlens"},
             {"block_table", "cache_seqlens", "cu_seqlens_q"})  # fmt: skip
    if given not in known:
        raise ValueError(
            f"got only {', '.join(sorted(given))}, expected cu_seqlens_q and cu_seqlens_k for packed sequences, or block_table "
            "and cache_seqlens for a paged cache (with cu_seqlens_q if the queries are packed)"
        )
    if not given:
        heads = list(_batched(out, q, k, v))
    else:
        queries = _packed_rows(q, "q", cu_seqlens_q) if cu_seqlens_q is not None else _rows_of_batch(q)
        if block_table is None:
            keys = _packed_rows(k, "k", cu_seqlens_k)
            parts = [(k[part[0]], v[part[0]]) for part in keys]
        else:
            parts = list(_pages(k, v, np.asarray(block_table), np.asarray(cache_seqlens)))
        heads = list(_sequences(out, q, queries, parts, v))
    for name, x in (("q", "q"), ("k", "k"), ("v", "v")):
        for head in heads:
            if not np.isfinite(getattr(head, x)).all():
                raise ValueError(
                    f"{name} holds infinities or NaN, expected finite values, because no error bound exists for others: give "
                    f"finite {name}"
                )
    return heads


def _batched(out, q, k, v) -> Iterator[AttentionHead]:
    shapes = f"out {out.shape}, q {q.shape}, k {k.shape} and v {v.shape}"
    expected = "expected out (..., heads, queries, dv), q (..., heads, queries, d)"
    expected = f"{expected}, k (..., kv heads, keys, d) and v (..., kv heads, keys, dv)"
    fits = q.ndim == k.ndim == v.ndim == out.ndim >= 2 and 0 not in (*q.shape, *k.shape, *v.shape)
    if (
        not fits
        or q.shape[-1] != k.shape[-1]
        or k.shape[:-1] != v.shape[:-1]
        or out.shape != (*q.shape[:-1], v.shape[-1])
    ):
        raise ValueError(f"{shapes}: {expected}")
    if q.ndim > 2 and (q.shape[:-3] != k.shape[:-3] or q.shape[-3] % k.shape[-3]):
        raise ValueError(
            f"{shapes}: {expected}, the same batch, and a number of heads that is a multiple of the kv heads"
        )
    group = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    sequences: dict[tuple[int, ...], int] = {}
    for name in itertools.product(*(range(size) for size in q.shape[:-2])):
        head = name[-1] if name else 0
        source = (*name[:-1], head // group) if name else ()
        number = sequences.setdefault(name[:-1], len(sequences))
        yield AttentionHead(name, name, _wide(q[name]), _wide(k[source]), _wide(v[source]), number, head, head // group)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def _packed_rows(x: np.ndarray, name: str, ends) -> list[tuple[slice]]:
    """Return the range of rows of each sequence in a packed array."""
    ends = np.asarray(ends)
    if ends.dtype.kind not in "iu" or ends.ndim != 1 or ends.size < 2:
        raise TypeError(
            f"cu_seqlens_{name} is {ends!r}, expected a list of integers: the first row of each sequence, then the number of "
            "all rows"
        )
    if x.ndim != 3 or ends[0] != 0 or (np.diff(ends) < 1).any() or ends[-1] != len(x):
        raise ValueError(
            f"{name} is {x.shape} and cu_seqlens_{name} {ends.tolist()}, expected shape (all rows, heads, d) and "
            f"numbers that ascend from 0 to {len(x)}"
        )
    return [(slice(int(start), int(stop)),) for start, stop in itertools.pairwise(ends)]


def _rows_of_batch(q: np.ndarray) -> list[tuple[int, slice]]:
    if q.ndim != 4:
        raise ValueError(f"q is {q.shape}, expected (batch, queries, heads, d) with paged K and V")
    return [(i, slice(None)) for i in range(len(q))]


def _pages(
    k: np.ndarray, v: np.ndarray, table: np.ndarray, lengths: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return K and V of each sequence, gathered from pages."""
    if k.ndim != 4 or v.ndim != 4 or k.shape[:3] != v.shape[:3]:
        raise ValueError(
            f"k is {k.shape} and v {v.shape}, expected (pages, rows of a page, kv heads, d) with block_table"
        )
    if (
        table.dtype.kind not in "iu"
        or lengths.dtype.kind not in "iu"
        or table.ndim != 2
        or lengths.shape != table.shape[:1]
    ):
        raise TypeError(
            f"block_table is {table.dtype} {table.shape} and cache_seqlens {lengths.dtype} {lengths.shape}, expected integers "
            "(sequences, pages) and (sequences,)"
        )
    page = k.shape[1]
    for row, length in zip(table, lengths.tolist(), strict=True):
        used = row[: -(-length // page)]
        if not 1 <= length <= len(row) * page or (used < 0).any() or (used >= len(k)).any():
            raise ValueError(
                f"got a sequence of {length} keys in the pages {row.tolist()} of {page} rows each, expected 1 to "
                f"{len(row) * page} keys and page numbers from 0 to {len(k) - 1}"
            )
        yield tuple(x[used].reshape(-1, *x.shape[2:])[:length] for x in (k, v))  # type: ignore[misc]


def _sequences(out, q, queries, parts, v) -> Iterator[AttentionHead]:
    if len(queries) != len(parts) or out.shape != (*q.shape[:-1], v.shape[-1]):
        raise ValueError(
            f"out has shape {out.shape}, with {len(queries)} sequences of queries and {len(parts)} of keys; expected shape "
            f"{(*q.shape[:-1], v.shape[-1])} and equal numbers of sequences"
        )
    for number, (rows, (k, value)) in enumerate(zip(queries, parts, strict=True)):
        heads, kv_heads = q.shape[-2], k.shape[1]
        if heads % kv_heads or q.shape[-1] != k.shape[-1]:
            raise ValueError(
                f"q is {q.shape} and k {k.shape}: expected a number of heads that is a multiple of the "
                f"kv heads, and the same d"
            )
        for head in range(heads):
            source = head // (heads // kv_heads)
            at = (*rows, head)
            yield AttentionHead(
                (number, head), at, _wide(q[at]), _wide(k[:, source]), _wide(value[:, source]), number, head, source
            )
