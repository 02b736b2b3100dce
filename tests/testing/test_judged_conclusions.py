"""Conclusions that were false when somebody who did not write the diagnosis judged it on kernels of their own.

Each kernel has one fault; its cause must be named, or at least not be listed among what "does not explain it".
"""

import math

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.bounds.running import _power_below
from mpgemm.bounds.sizes import sizes_of
from mpgemm.testing import check_attention, check_gemm, diagnosis
from mpgemm.testing.diagnosis.failure import Finding, rated
from tensorcore_models.engines.scaling import read_scales

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def operands(seed, m=128, k=256, n=128):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)


def heads(seed, queries=96, keys=96, d=64, fmt=BF16, size=1.0):
    rng = np.random.default_rng(seed)
    shapes = (4, queries, d), (4, keys, d), (4, keys, d)
    return [(rng.standard_normal(shape) * s).astype(fmt) for shape, s in zip(shapes, (size, size, 1.0), strict=True)]


def attention(q, k, v, mask=None, sinks=None, weights=lambda p: p):
    """softmax(Q K^T / sqrt(d)) V in float64; `weights`: what becomes of them before they meet V."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, 1, 2) / math.sqrt(q.shape[2])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    top = scores.max(2, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(2, keepdims=True)
    if sinks is not None:
        total = total + np.exp(np.asarray(sinks)[:, None, None] - top)
    return (weights(p) @ v / total).astype(BF16)


# -- products --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lost", [(64, 128), (128, 144)])
def test_a_block_that_few_scattered_elements_lack_is_named(lost):
    """A race: what is right beside the wrong elements says nothing against it."""
    a, b = operands(34)
    x, y = a.astype(np.float64), b.astype(np.float64)
    race = np.random.default_rng(0).random((128, 128)) < 0.01
    taken = slice(*lost)
    out = (x @ y - np.where(race, x[:, taken] @ y[taken], 0.0)).astype(np.float16)
    found = check_gemm(out, a, b, engine="h100")
    assert found.suspects == (f"lost terms: k {lost[0]}:{lost[1]} is missing, in these elements alone",)
    assert not any("lost or twice" in text for text in found.tried)


@pytest.mark.full
def test_scattered_noise_has_no_name():
    a, b = operands(35)
    rng = np.random.default_rng(1)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    noise = np.where(rng.random(exact.shape) < 0.01, 8 * rng.standard_normal(exact.shape), 0.0)
    found = check_gemm((exact + noise).astype(np.float16), a, b, engine="h100")
    assert found.suspects == ("no known fault",) and not found.fitting


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.5), (1.5, 0.25), (1.0, 3.0)])
def test_beta_that_is_left_out_is_named(alpha, beta):
    a, b = operands(7, 64, 128, 64)
    c = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    out = (alpha * (a.astype(np.float64) @ b.astype(np.float64)) + c).astype(np.float32)
    found = check_gemm(out, a, b, c, engine="h100", alpha=alpha, beta=beta)
    assert "the addend: beta is left out, so C is added whole" in found.suspects
    assert not any(text.startswith("C left out, twice") for text in found.tried)


@pytest.mark.parametrize("factor", [-2.0, -1.0, 3.0])
def test_one_factor_of_either_sign_is_not_ruled_out(factor):
    a, b = operands(8, 48, 64, 32)
    out = (factor * (a.astype(np.float64) @ b.astype(np.float64))).astype(np.float32)
    found = check_gemm(out, a, b, engine="h100")
    assert (
        "one factor for all wrong results" not in found.ruled_out
        and "one offset for all wrong results" in found.ruled_out
    )


def test_an_offset_that_the_output_rounds_is_not_ruled_out():
    """The output's rounding of what the fault makes is larger than the bound of what is right."""
    a, b = operands(9, 48, 64, 32)
    out = (a.astype(np.float64) @ b.astype(np.float64) + 1000).astype(BF16)
    found = check_gemm(out, a, b, engine="h100")
    assert (
        "one offset for all wrong results" not in found.ruled_out
        and "one factor for all wrong results" in found.ruled_out
    )


def test_a_kind_that_fits_by_chance_is_neither_named_nor_listed_as_tried(monkeypatch):
    perhaps, half = (Finding(1.0, 0.5, text, share, 0.0) for text, share in (("fits", 0.99), ("half", 0.9)))
    assert perhaps.fits and not perhaps.good and not half.fits
    kinds = [diagnosis.FaultKind(f"kind that {x.text}", lambda f, x=x: iter([x]), False) for x in (perhaps, half)]
    monkeypatch.setattr(diagnosis, "FAULT_KINDS", tuple(kinds))
    monkeypatch.setattr(diagnosis, "LAST_KINDS", ())
    a, b = operands(10, 48, 64, 32)
    out = a.astype(np.float64) @ b.astype(np.float64)
    out[:16] += np.random.default_rng(0).standard_normal((16, 32))
    found = check_gemm(out.astype(np.float32), a, b, engine="h100")
    assert found.suspects == ("no known fault",) and found.fitting == ("fits",)
    assert "kind that half" in found.tried and "kind that fits" not in found.tried


def test_each_number_that_is_chosen_takes_the_evidence_of_one_element():
    rest, before, wrong = np.full(6, 0.1), np.full(6, 1e6), np.ones(6, bool)
    chances = [rated("", rest, before, wrong, 0.0, free).chance for free in range(7)]
    assert chances == sorted(chances) and len(set(chances)) == 7 and chances[-1] == 0.0


# -- attention -------------------------------------------------------------------------------------------------------------
def test_the_sink_of_another_head_is_not_a_sink_left_out():
    q, k, v = heads(7011)
    sinks = np.float32([1, 4, 0.5, 3])
    found = check_attention(attention(q, k, v, sinks=np.roll(sinks, -1)), q, k, v, engine="h100", sinks=sinks)
    assert found.suspects == ("the sink is that of head 2, not of head 1",)
    found = check_attention(attention(q, k, v), q, k, v, engine="h100", sinks=sinks)
    assert found.suspects == ("the sink is left out of the row sum",)


def test_a_wrong_sink_is_fitted():
    q, k, v = heads(5)
    sinks = np.float32([3, 3, 3, 3])
    found = check_attention(attention(q, k, v, sinks=sinks + 1.5), q, k, v, engine="h100", sinks=sinks)
    (text,) = found.suspects
    assert text.startswith("a wrong sink: ") and abs(float(text.split()[3]) - 4.5) < 0.02


@pytest.mark.parametrize(
    ("left", "right", "by", "said"),
    [
        (16, 0, (-1, 0), "each query sees one key too few before its position"),
        (16, 0, (1, 0), "each query sees one key too many before its position"),
        (16, 16, (0, -1), "the mask is off by one: each query sees one key too few"),
        (16, 16, (0, 1), "the mask is off by one: each query sees one key too many"),
    ],
)
def test_each_edge_of_a_window_that_is_off_by_one_is_named(left, right, by, said):
    """Windows that the first or the last key cuts off are not a key shorter."""
    q, k, v = heads(2)
    apart = np.arange(96)[None] - np.arange(96)[:, None]
    mask = (apart >= -(left + by[0])) & (apart <= right + by[1])
    found = check_attention(attention(q, k, v, mask), q, k, v, engine="h100", window=(left, right))
    assert found.suspects == (said,)
    assert not any(text.startswith("the mask") for text in found.tried)


def test_what_fits_too_few_elements_to_be_named_is_not_excluded():
    """Weights cast to 8 bits without a factor: two elements fail, and the prediction meets every bit."""
    q, k, v = heads(7014, keys=512, fmt=E4M3, size=1.5)
    narrow = attention(q, k, v, weights=lambda p: p.astype(E4M3).astype(np.float64))
    found = check_attention(narrow, q, k, v, engine="h100")
    assert not found.passes and found.wrong < 8
    cast = [
        text for text in (*found.suspects, *found.fitting) if text.startswith("P is cast to e4m3fn without a factor")
    ]
    assert cast and not any(text.startswith("P in e4m3fn") for text in found.tried)
    assert cast[0] in str(found) and (cast[0] in found.suspects or "by chance" in str(found))


# -- what they rest on -----------------------------------------------------------------------------------------------------
def test_sizes_of_blocks_of_k_are_those_of_all():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (5, 700)).astype(np.float64), rng.integers(-9, 9, (700, 6)).astype(np.float64)
    assert np.array_equal(sizes_of(a, b), np.abs(a) @ np.abs(b)) and sizes_of(a[:, :0], b[:0]).shape == (5, 6)


def test_powers_of_two_below_are_those_of_frexp():
    numbers = np.array([0.0, 5e-324, 3e-310, 2.0**-1022, 0.75, 1.0, 3.9, 2.0**1023 * 1.5, np.inf])
    for part in (numbers, numbers[4:]):
        own = [x if x in (0.0, np.inf) else math.ldexp(0.5, math.frexp(x)[1]) for x in part]
        assert _power_below(part).tolist() == own


@pytest.mark.parametrize("shapes", [((), ()), ((6, 1), (1, 200)), ((6, 3), (3, 200)), ((6, 3), (3, 2))])
def test_factors_are_multiplied_in_as_if_they_were_spread(shapes):
    rng = np.random.default_rng(0)
    given = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes)
    scaling = read_scales(*given, 6, 300, 200, tcm.default_instruction("h100", "fp16"))
    a, b = rng.standard_normal((6, 300)), rng.standard_normal((300, 200))
    assert np.array_equal(scaling.times_a(a), a * scaling.spread_a())
    assert np.array_equal(scaling.times_b(b), b * scaling.spread_b())
