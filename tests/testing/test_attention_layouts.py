"""Attention kernels with soft caps, sinks, packed and paged K and V and groups of heads; some rows only; their invariants."""

import ml_dtypes
import numpy as np
import pytest

from mpgemm.cli import main
from mpgemm.testing import (
    assert_attention_invariants,
    attention_tolerance,
    check_attention,
    check_attention_invariants,
)  # fmt: skip

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
rng = np.random.default_rng(11)


def wide(x):
    return np.asarray(x).astype(np.float64)


def attend(q, k, v, *, cap=None, sink=None, mask=True, scale=None, factor=None):
    """Exact attention of one head, P cast to e4m3 with a factor where one is given."""
    s = wide(q) @ wide(k).T * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = s if cap is None else cap * np.tanh(s / cap)
    s = np.where(mask, s, -np.inf)
    top = s.max(1, keepdims=True) if sink is None else np.maximum(s.max(1, keepdims=True), sink)
    w = np.exp(s - top)
    total = w.sum(1, keepdims=True) + (0 if sink is None else np.exp(sink - top))
    if factor is not None:
        w = wide((w * factor).astype(E4M3)) / factor
    return w @ wide(v) / total


def drawn(*shape, dtype=BF16, size=1.0):
    return (rng.standard_normal(shape) * size).astype(dtype)


def test_a_soft_cap_and_sinks():
    q, k, v, sinks = drawn(4, 64, 32, size=3), drawn(2, 96, 32), drawn(2, 96, 32), np.array([0.5, 2.0, 3.0, 1.0])
    heads = [(q[h], k[h // 2], v[h // 2]) for h in range(4)]
    run = lambda cap, sunk: np.stack(  # noqa: E731
        [attend(*x, cap=cap, sink=s) for x, s in zip(heads, sunk, strict=True)]
    ).astype(BF16)
    options = {"engine": "h100", "softcap": 5.0, "sinks": sinks}
    assert check_attention(run(5.0, sinks), q, k, v, **options).passes
    assert check_attention(run(None, sinks), q, k, v, **options).suspects == ("the soft cap is left out",)
    assert check_attention(run(5.0, [None] * 4), q, k, v, **options).suspects == (
        "the sink is left out of the row sum",
    )
    with pytest.raises(ValueError, match=r"one finite score for each query head, shape \(4,\)"):
        check_attention(run(5.0, sinks), q, k, v, engine="h100", sinks=sinks[:2])
    with pytest.raises(ValueError, match="softcap must be a number above 0, got 0"):
        check_attention(run(5.0, sinks), q, k, v, engine="h100", softcap=0)


def test_packed_sequences_and_pages():
    lengths_q, lengths_k = [5, 30, 17], [70, 33, 128]
    ends_q, ends_k = (np.concatenate([[0], np.cumsum(x)]) for x in (lengths_q, lengths_k))
    q, k, v = drawn(sum(lengths_q), 4, 32), drawn(sum(lengths_k), 2, 32), drawn(sum(lengths_k), 2, 32)
    out = np.zeros((sum(lengths_q), 4, 32))
    for i in range(3):
        rows, keys = slice(ends_q[i], ends_q[i + 1]), slice(ends_k[i], ends_k[i + 1])
        mask = np.arange(lengths_k[i])[None] <= np.arange(lengths_q[i])[:, None] + lengths_k[i] - lengths_q[i]
        for h in range(4):
            out[rows, h] = attend(q[rows, h], k[keys, h // 2], v[keys, h // 2], mask=mask)
    packed = {"cu_seqlens_q": ends_q, "cu_seqlens_k": ends_k, "causal": True, "engine": "h100"}
    out = out.astype(BF16)
    assert check_attention(out, q, k, v, **packed).passes
    wrong = out.copy()
    wrong[ends_q[1] : ends_q[2], 3] = 0
    found = check_attention(wrong, q, k, v, **packed)
    assert found.place.startswith("head 1, 3 only") and found.outside[ends_q[1] : ends_q[2], 3].mean() > 0.9
    # the same keys in pages of 16 rows
    table = rng.permutation(30)[: 3 * 8].reshape(3, 8)
    pages = [np.zeros((30, 16, 2, 32), BF16) for _ in range(2)]
    for i, row in enumerate(table):
        for x, page in zip((k, v), pages, strict=True):
            own = x[ends_k[i] : ends_k[i + 1]]
            for number in range(-(-lengths_k[i] // 16)):
                part = own[16 * number : 16 * number + 16]
                page[row[number], : len(part)] = part
    paged = {"block_table": table, "cache_seqlens": np.array(lengths_k), "cu_seqlens_q": ends_q, "causal": True}
    assert check_attention(out, q, *pages, engine="h100", **paged).passes
    swapped = {**paged, "block_table": table[:, [1, 0, *range(2, 8)]]}
    assert not check_attention(out, q, *pages, engine="h100", **swapped).passes
    for change, words in (
        ({"cache_seqlens": np.array([70, 33, 129])}, "expected 1 to 128 keys"),
        ({"cache_seqlens": None}, "got only block_table, cu_seqlens_q, expected"),
        ({"cu_seqlens_q": ends_q[:-1]}, "ascend from 0 to 52"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            check_attention(out, q, *pages, engine="h100", **{**paged, **change})


def test_heads_that_are_dealt_in_turn_and_a_fitted_scale():
    q, k, v = drawn(6, 48, 96, size=2), drawn(3, 80, 96), drawn(3, 80, 96)
    dealt = np.stack([attend(q[h], k[h % 3], v[h % 3]) for h in range(6)]).astype(BF16)
    found = check_attention(dealt, q, k, v, engine="h100")
    assert all("head modulo 3, not head // 2" in text for text in found.suspects), found.suspects
    padded = np.stack([attend(q[h], k[h // 2], v[h // 2], scale=128**-0.5) for h in range(6)]).astype(BF16)
    (text,) = check_attention(padded, q, k, v, engine="h100").suspects
    assert text.startswith("a wrong softmax scale: 0.088") and text.endswith("1 / sqrt(128)")


def test_some_rows_are_looked_at():
    q, k, v = drawn(2, 96, 32), drawn(2, 128, 32), drawn(2, 128, 32)
    out = np.stack([attend(*x) for x in zip(q, k, v, strict=True)]).astype(BF16)
    found = check_attention(out, q, k, v, engine="h100", rows=8)
    assert found.passes and found.summary.startswith(
        "512 of 6144 elements were checked, and all are right for attention"
    )
    out[1, 48:] = 0
    found = check_attention(out, q, k, v, engine="h100", rows=8)
    assert (
        not found.passes
        and found.elements == 512
        and not found.outside[1, :48].any()
        and not found.outside[1, 50].any()
    )


def kernel(factor, leak=0):
    """An FP8 attention, causal from the end; `leak` keys behind a query's own are seen."""

    def run(q, k, v):
        at = np.arange(len(k))[None] <= np.arange(len(q))[:, None] + len(k) - len(q) + leak
        return attend(q, k, v, mask=at, factor=factor).astype(BF16)

    return run


@pytest.mark.full
def test_invariants():
    q, k, v = drawn(64, 64, dtype=E4M3), drawn(1024, 64, dtype=E4M3), drawn(1024, 64, dtype=E4M3)
    q[:, 0], k[:, 0], k[0] = E4M3(4), E4M3(0), E4M3(0)
    k[0, 0] = E4M3(13)
    options = {"engine": "h100", "causal": True}
    assert_attention_invariants(kernel(256.0), q, k, v, **options)
    with pytest.raises(
        AssertionError, match=r"(?s)with V = 1, for which the result must be 1.*P is cast to e4m3fn without a factor"
    ):
        assert_attention_invariants(kernel(1.0), q, k, v, **options)
    found = check_attention_invariants(kernel(256.0, leak=40), q, k, v, engine="h100", causal=True)
    assert not found.passes and found.suspects == ("the mask lets queries see later keys, from row 0 on",)
    with pytest.raises(ValueError, match="got packed or paged operands"):
        check_attention_invariants(kernel(1.0), q, k, v, engine="h100", causal=True, cu_seqlens_q=[0, 64])


def test_the_tolerance_of_an_attention(tmp_path, capsys):
    q, k, v = drawn(32, 64, dtype=E4M3), drawn(512, 64, dtype=E4M3), drawn(512, 64, dtype=E4M3)
    found = attention_tolerance(q, k, v, engine="h100")
    assert found.statistical < found.certified and found.p_scale == 256 and 0.9 < found.kept < 1
    wide_line = attention_tolerance(q, k, v, engine="h100", p_scale=1.0)
    assert wide_line.certified > found.certified
    files = []
    for name, x in (("q", q), ("k", k), ("v", v)):
        files.append(str(tmp_path / f"{name}.npy"))
        np.save(files[-1], x.view(np.uint8))
    assert main(["tolerance", "--engine", "h100", "--operands", "e4m3fn", "--attention", *files, "--rows", "8"]) == 0
    printed = capsys.readouterr().out
    assert (
        "a test may allow atol=" in printed and "sampled on the exact" in printed and "512 elements of 2048" in printed
    )
    assert main(["tolerance", "--attention", *files, "--operands", "e4m3fn", "--k", "4"]) == 2
    assert "--k" in capsys.readouterr().err
