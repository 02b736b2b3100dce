"""What an attention kernel of 8 bits loses of small weights, and what a right one may lose, over many queries."""

import ml_dtypes
import numpy as np
import pytest

from mpgemm.experiments.attention import AttentionProgram, attend, visible
from mpgemm.testing import check_attention
from mpgemm.testing.attention_invariants import check_attention_invariants
from mpgemm.testing.case import kernel_engine
from tensorcore_models.formats import get_float_format

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


def heads(size, seed=0, rows=192, d=32):
    rng = np.random.default_rng(seed)
    q, k, v = rng.standard_normal((3, 2, rows, d))
    return (q * size).astype(E4M3), k.astype(E4M3), v.astype(E4M3)


def kernel(power, tile=64, causal=False, cut=False):
    """Attention in tiles of keys whose P is cast to e4m3 times 2^power (all else in FP64)."""

    def run(q, k, v):
        q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
        scores = q @ np.swapaxes(k, 1, 2) * q.shape[2] ** -0.5
        scores = np.where(visible(q.shape[1], k.shape[1], causal), scores, -np.inf)
        top, total, out = np.full((*q.shape[:2], 1), -np.inf), 0.0, 0.0
        for start in range(0, k.shape[1], tile):
            part = scores[..., start : start + tile]
            new = np.maximum(top, part.max(2, keepdims=True))
            p, shrink = np.exp(part - new), np.exp(top - new)
            cast = (p * 2.0**power).astype(E4M3).astype(np.float64) / 2.0**power
            out, total, top = (
                out * shrink + cast @ v[:, start : start + tile],
                total * shrink + p.sum(2, keepdims=True),
                new,
            )
        return (out / total).astype(BF16)

    return run


def on_the_unit(q, k, v):
    """The exact model of a right kernel on Hopper's unit, which cuts its sums."""
    program = AttentionProgram(kernel_engine("h100", q, k), 64, q.shape[2] ** -0.5, get_float_format("bf16"), 256.0)
    mask = np.ones((q.shape[1], k.shape[1]), bool)
    return np.stack(
        [attend([x.astype(np.float64) for x in each], program, 7, mask) for each in zip(q, k, v, strict=True)]
    ).astype(BF16)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("size", [0.5, 2.0])
@pytest.mark.parametrize("causal", [False, True])
def test_p_without_a_factor_is_seen_at_scores_of_any_size(size, causal):
    q, k, v = heads(size)
    lost = check_attention_invariants(kernel(0, causal=causal), q, k, v, engine="h100", causal=causal)
    assert not lost.passes and lost.suspects[0].startswith("P is cast to e4m3fn without a factor")
    for tile in (32, 192):
        assert check_attention_invariants(kernel(8, tile, causal), q, k, v, engine="h100", causal=causal).passes


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_a_right_kernel_on_a_unit_that_cuts_keeps_the_invariants(size):
    q, k, v = heads(size, rows=96)
    assert check_attention_invariants(on_the_unit, q, k, v, engine="h100").passes


def test_weights_of_all_queries_tell_what_no_element_shows():
    """A row sum that is 0.2 % too large changes each element by less than roundings of P do."""
    rng = np.random.default_rng(0)
    q, k, v = (x.astype(BF16) for x in rng.standard_normal((3, 4, 256, 64)))
    x, y, z = (each.astype(np.float64) for each in (q, k, v))
    scores = x @ np.swapaxes(y, 1, 2) / 8
    p = np.exp(scores - scores.max(2, keepdims=True))
    right = p.astype(BF16).astype(np.float64) @ z / p.sum(2, keepdims=True)
    assert check_attention(right.astype(np.float32), q, k, v, engine="h100").passes
    found = check_attention((right / 1.002).astype(np.float32), q, k, v, engine="h100")
    assert not found.passes and "taken together they are 0.99" in found.summary
