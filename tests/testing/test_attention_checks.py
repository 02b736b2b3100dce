"""Attention kernels written as FlashAttention is: right ones pass, wrong ones are caught and called by their names."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import assert_attention_close

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
UNITS = {
    "fp16": tcm.default_instruction("h100", "fp16", path="wgmma"),
    "bf16": tcm.default_instruction("a100", "bf16"),
    "e4m3fn": tcm.default_instruction("h100", "e4m3fn", path="wgmma"),
}
TYPES = {"fp16": np.float16, "bf16": BF16, "e4m3fn": E4M3}
OUTPUTS = {"fp16": np.float16, "bf16": BF16, "e4m3fn": BF16}


def head(shape, fmt, seed):
    """(Q, K, V) of one head."""
    rng = np.random.default_rng([seed, 45])
    queries, keys, d = shape
    return tuple(rng.standard_normal(s).astype(TYPES[fmt]) for s in ((queries, d), (keys, d), (keys, d)))


def flash(q, k, v, fmt, *, tile=64, causal=False, fault="", p_scale=1.0):
    """FlashAttention 2: one tile of keys after the other, powers of two in FP32; P in the operands' format."""
    unit, dtype = UNITS[fmt], TYPES[fmt]
    (queries, d), keys = q.shape, k.shape[0]
    scale = d**-0.5 * (d**-0.5 if fault == "scale twice" else 1.0)
    factor = np.float32(scale * (1.0 if fault == "no log2(e)" else np.log2(np.e)))
    place = np.arange(queries)[:, None] + keys - queries + (fault == "a key too many") - (fault == "a key too few")
    top = np.full((queries, 1), -np.inf, np.float32)
    weight, total = np.zeros((queries, 1), np.float32), np.zeros((queries, v.shape[1]), np.float32)
    last = keys // tile * tile if fault == "tail lost" else keys
    for start in range(0, last, tile):
        part = slice(start, min(start + tile, keys))
        scores = unit.gemm(q, np.ascontiguousarray(k[part].T)).astype(np.float32)
        if causal and fault != "no mask":
            scores = np.where(np.arange(keys)[None, part] <= place, scores, np.float32(-np.inf))
        new = np.maximum(top, scores.max(1, keepdims=True))
        base = np.where(np.isfinite(new), new, np.float32(0))
        p = np.exp2(scores * factor - base * factor).astype(np.float32)
        shrink = np.where(np.isfinite(top), np.exp2((top - base) * factor), 0).astype(np.float32)
        weight = weight * (1 if fault == "row sum not rescaled" else shrink) + p.sum(1, keepdims=True, dtype=np.float32)
        seed = total * (1 if fault == "accumulator not rescaled" else shrink)
        low = (p * np.float32(p_scale)).astype(dtype)
        total = unit.gemm(low, np.ascontiguousarray(v[part]), (seed * np.float32(p_scale)).astype(np.float32))
        total = (total / np.float32(p_scale)).astype(np.float32)
        top = new
    if fault == "not normalised":
        weight = np.ones_like(weight)
    found = total / np.where(weight > 0, weight, 1)
    return (np.roll(found, 1, 0) if fault == "rows rolled" else found).astype(OUTPUTS[fmt])


FAULTS = {
    "rows rolled": "rolled", "scale twice": "scale is applied twice", "no log2.e.": r"log2\(e\) is left out",
    "accumulator not rescaled": "accumulator is not rescaled", "row sum not rescaled": "row sum is not rescaled",
    "tail lost": "keys 192:200 are lost", "not normalised": "row sum is left out", "a key too many": "one key too many",
    "a key too few": "one key too few", "no mask": "mask is left out",
}  # fmt: skip


@pytest.mark.sweep(7)
@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_and_named(fault, fmt):
    q, k, v = head((96, 200, 32), fmt, 1)
    q = (q.astype(np.float32) * 2).astype(q.dtype)
    causal = "key" in fault or fault == "no mask"
    name = "no log2(e)" if fault.startswith("no log2") else fault
    out = flash(q, k, v, fmt, causal=causal, fault=name)
    with pytest.raises(AssertionError, match=f"looks like .*{FAULTS[fault]}"):
        assert_attention_close(out, q, k, v, engine=UNITS[fmt], causal=causal)


@pytest.mark.parametrize("fmt", TYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_right_programs_pass(fmt, causal):
    q, k, v = head((64, 160, 32), fmt, 2)
    for tile in (32, 64):
        out = flash(q, k, v, fmt, tile=tile, causal=causal, p_scale=256.0 if fmt == "e4m3fn" else 1.0)
        assert_attention_close(
            out, q, k, v, engine=UNITS[fmt], causal=causal, p_scale=256.0 if fmt == "e4m3fn" else 1.0
        )


def test_heads_groups_and_batches():
    heads = [head((32, 48, 16), "bf16", seed) for seed in range(8)]
    q = np.stack([h[0] for h in heads]).reshape(2, 4, 32, 16)
    k, v = (np.stack([h[i] for h in heads[::2]]).reshape(2, 2, 48, 16) for i in (1, 2))
    out = np.stack([[flash(q[b, h], k[b, h // 2], v[b, h // 2], "bf16") for h in range(4)] for b in range(2)])
    assert_attention_close(out, q, k, v, engine="a100")
    mixed = np.stack([[flash(q[b, h], k[b, h % 2], v[b, h % 2], "bf16") for h in range(4)] for b in range(2)])
    with pytest.raises(AssertionError, match="4 of 8 heads"):
        assert_attention_close(mixed, q, k, v, engine="a100")


def test_windows():
    q, k, v = (x.astype(np.float64) for x in head((40, 40, 16), "bf16", 3))
    at = np.arange(40)
    mask = (at[None] <= at[:, None]) & (at[None] >= at[:, None] - 7)
    w = np.where(mask, np.exp(q @ k.T / 4), 0)
    out = (w / w.sum(1, keepdims=True)) @ v
    given = head((40, 40, 16), "bf16", 3)
    assert_attention_close(out.astype(BF16), *given, engine="a100", window=(7, 0))
    with pytest.raises(AssertionError, match="outside"):
        assert_attention_close(out.astype(BF16), *given, engine="a100", causal=True)
    with pytest.raises(AssertionError, match="looks like each query sees one key too many before its position"):
        assert_attention_close(out.astype(BF16), *given, engine="a100", window=(6, 0))


@pytest.mark.parametrize("operand", ["K", "V"])
def test_a_stale_tile_is_named(operand):
    q, k, v = head((48, 160, 32), "fp16", 4)
    late = np.concatenate([np.arange(64), np.arange(64), np.arange(128, 160)])
    out = flash(q, k[late] if operand == "K" else k, v[late] if operand == "V" else v, "fp16")
    with pytest.raises(AssertionError, match=f"looks like at keys 64:128 {operand} is that of the tile before"):
        assert_attention_close(out, q, k, v, engine=UNITS["fp16"])


def test_a_query_that_sees_one_key_of_zeros_leaves_the_statistical_line():
    """Nothing is lost there, which is no ratio of errors: the line of all other elements was infinite, and theirs NaN."""
    q, k, v = head((48, 48, 32), "e4m3fn", 5)
    v[0, ::7] = 0
    out = flash(q, k, v, "e4m3fn", causal=True, p_scale=256.0)
    options = {"engine": UNITS["e4m3fn"], "causal": True, "p_scale": 256.0}
    assert_attention_close(out, q, k, v, **options)
    out[20, 3] = out[20, 3] + BF16(0.09)  # within the certified bound
    with pytest.raises(AssertionError, match="1 of 1536 elements are outside of the statistical"):
        assert_attention_close(out, q, k, v, **options)


def test_bad_input():
    q, k, v = head((8, 24, 16), "bf16", 0)
    out = np.zeros((8, 16), BF16)
    for wrong, error, text in (
        ((out, q, k.T, v), ValueError, "expected"), ((out[:4], q, k, v), ValueError, "expected"),
        ((out, q.astype(np.float16), k, v), TypeError, "one type"),
        ((out, q, k * BF16(np.inf), v), ValueError, "k holds infinities or NaN"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            assert_attention_close(*wrong, engine="a100")
    for window in (8, (8,), (1.5, 0)):
        with pytest.raises(TypeError, match="keys before, keys after"):
            assert_attention_close(out, q, k, v, engine="a100", window=window)
    refused = (
        ({"scale": 0.0}, "scale"), ({"p_scale": 3.0}, "power of two"), ({"kv_tile": 0}, "at least 1"),
        ({"exp_ulps": 0}, "at least 0.5"),
    )  # fmt: skip
    for options, text in refused:
        with pytest.raises(ValueError, match=text):
            assert_attention_close(out, q, k, v, engine="a100", **options)


SHAPES = [(m, k, d) for m, k in ((32, 64), (64, 200), (1, 256), (48, 333)) for d in (16, 64, 128)]


@pytest.mark.slow
@pytest.mark.parametrize("fmt", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_right_programs_of_100_seeds_pass(shape, fmt):
    p_scale = 256.0 if fmt == "e4m3fn" else 1.0
    for seed in range(100):
        q, k, v = head(shape, fmt, 100 + seed)
        out = flash(q, k, v, fmt, tile=(32, 64, 128)[seed % 3], causal=bool(seed % 2), p_scale=p_scale)
        assert_attention_close(out, q, k, v, engine=UNITS[fmt], causal=bool(seed % 2), p_scale=p_scale)
