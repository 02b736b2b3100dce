"""Tolerances for tests of kernels, and checks that could not fail."""

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import check_tolerance, method_bound, tolerance
from mpgemm.bounds.bounds import gemm_bound, multiword_bound
from mpgemm.recovery.word_run import scaling_target

A100 = tcm.default_instruction("a100", "fp16")


def data(k=64, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1, (4, k)).astype(np.float16), rng.uniform(0.5, 1, (k, 4)).astype(np.float16)


def test_tolerance_holds_and_shows_its_derivation():
    a, b = data()
    found = tolerance(A100, 64, (a, b))
    error = np.abs(np.asarray(A100.gemm(a, b)).astype(np.float64) - a.astype(np.float64) @ b)
    assert (error <= found.bound).all()
    np.testing.assert_array_equal(found.bound, gemm_bound(A100, a, b))
    # 8 steps of 8 products and c: nine addends below 2^-24 each, RZ to 23 fraction bits.
    assert found.relative == pytest.approx(8 * (9 * 2.0**-24 + 2.0**-23), rel=0.01)
    text = str(found)
    for part in (
        "8 steps of 8 products",
        "8 + 1 addends cut at F = 24",
        "published, block FMA, deterministic",
        "can fail",
    ):
        assert part in text


def test_tolerance_without_data_holds_for_any():
    found = tolerance(A100, 64)
    rng = np.random.default_rng(1)
    for scale in (1.0, 2.0**-14, 2.0**12):
        a, b = (x * np.float16(scale) for x in data(seed=int(rng.integers(99))))
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        error = np.abs(np.asarray(A100.gemm(a, b)).astype(np.float64) - a.astype(np.float64) @ b)
        assert (error <= found.relative * size + found.absolute).all()


def test_thirteen_bits_and_long_sums_are_vacuous():
    engine = tcm.default_instruction("h100", "e5m2", path="wgmma")
    assert "VACUOUS" in str(tolerance(engine, 10**6))
    assert "VACUOUS" not in str(tolerance(engine, 32))


def test_vacuous_checks_are_found():
    a, b = data(4)
    tight, loose, useless = (check_tolerance(a, b, rtol=rtol) for rtol in (1e-6, 0.5, 1.0))
    assert not tight.vacuous and tight.lost_product_passes == 0
    assert not loose.vacuous and loose.lost_product_passes == loose.elements == 16
    assert useless.vacuous and "VACUOUS" in str(useless)
    cancelling = np.array([[1.0, -1.0]]), np.array([[1.0], [1.0]])
    assert check_tolerance(*cancelling, atol=1e-9).vacuous  # the exact result is 0: writing 0 is right
    assert check_tolerance(a, b, np.ones((4, 4)), bound=np.full((4, 4), 1e3)).zero_passes == 16


def test_wrong_arguments():
    a, b = data()
    with pytest.raises(ValueError, match="the data have 64"):
        tolerance(A100, 32, (a, b))
    with pytest.raises(ValueError, match="at least 0"):
        tolerance(A100, -1)
    with pytest.raises(ValueError, match="takes no block scales"):
        tolerance(A100, 64, (a, b), scale_a=np.ones((4, 2)), scale_b=np.ones((2, 4)))


def test_parts_of_a_method_bound():
    a, b = (x.astype(np.float32) + np.float32(1e-4) for x in data())
    one, three, four = (
        method_bound(a, b, None, "ootomo", A100, terms=t) if t else method_bound(a, b, None, "fp16", A100)
        for t in (0, 3, 4)
    )
    size = np.abs(a) @ np.abs(b)
    assert (one.split > 100 * three.split).all() and not one.dropped.any()
    assert (three.dropped > 0).all() and not four.dropped.any()
    assert (three.dropped <= 2.0**-22 * size).all()  # u^2 |A||B|, u = 2^-11
    assert "block FMA, deterministic" in three.published


def test_multiword_bound_is_the_published_formula():
    """Values of the published data file for fp16, one word (its bound at n = 10 and n = 1000000)."""
    fp16, fp32 = tcm.get_format("fp16"), tcm.get_format("fp32")
    for n, published in ((10, 9.775313e-04), (1_000_000, 3.727171e03)):
        assert multiword_bound(n, 1, fp16, fp32, scaling_target(fp16, fp32, n)) == pytest.approx(published, rel=1e-6)


def test_an_engine_by_name_and_a_bad_k():
    name = "hopper:mma.m16n8k16.f32.f16.f16.f32"
    assert tolerance(name, 64).relative == tolerance(tcm.get_instruction(name), 64).relative
    with pytest.raises(TypeError, match="an integer, got float"):
        tolerance(name, 64.0)
    with pytest.raises(TypeError, match="an integer, got ndarray"):
        tolerance(name, np.zeros((2, 2), int))
