"""Checks of kernels that add up outside of the unit every few products, as FP8 kernels on Hopper must."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import assert_gemm_close, gemm_tolerance

HOPPER = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3")


def operands(seed, k=4096, m=16, n=24):
    rng = np.random.default_rng([seed, 128])
    return (rng.standard_normal(s).astype(ml_dtypes.float8_e4m3fn) for s in ((m, k), (k, n)))


def promoted(a, b, every=128):
    """Chains of the unit, added up with numpy in FP32."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(0, a.shape[1], every):
        total += HOPPER.gemm(np.ascontiguousarray(a[:, k : k + every]), np.ascontiguousarray(b[k : k + every]))
    return total


@pytest.mark.parametrize("every", [32, 128, 512])
@pytest.mark.parametrize("out", [np.float32, ml_dtypes.bfloat16])
def test_right_products_pass(every, out):
    for seed in range(2):
        a, b = operands(seed)
        assert_gemm_close(promoted(a, b, every).astype(out), a, b, engine=HOPPER, promote_every=every)


def test_a_long_fp8_product_has_a_bound_that_a_lost_tile_fails():
    a, b = (np.abs(x.astype(np.float32)).astype(ml_dtypes.float8_e4m3fn) for x in operands(0))
    assert_gemm_close(promoted(a, b), a, b, engine=HOPPER, promote_every=128)
    kept = np.r_[0:256, 384:4096]
    lost = promoted(np.ascontiguousarray(a[:, kept]), np.ascontiguousarray(b[kept]))
    assert_gemm_close(lost, a, b, engine=HOPPER)  # 0.7 |A||B| are certified without sums outside
    with pytest.raises(AssertionError, match="looks like lost terms: k 256:384 is missing"):
        assert_gemm_close(lost, a, b, engine=HOPPER, promote_every=128)


@pytest.mark.parametrize("every", [32, 96, 128])
def test_the_bound_holds_for_any_operands(every):
    rng = np.random.default_rng(every)
    for _ in range(6):
        k = int(rng.integers(1, 700))
        a, b = (np.ldexp(rng.uniform(1, 2, s), rng.integers(-8, 8, s)) for s in ((4, k), (k, 3)))
        a, b = (x.astype(ml_dtypes.float8_e4m3fn) for x in (a, b))
        c = rng.standard_normal((4, 3)).astype(np.float32)
        found = gemm_tolerance(HOPPER, a, b, c, promote_every=every)
        for d in (promoted(a, b, every) + c, HOPPER.gemm(a, b, c, promote_every=every)):
            assert (np.abs(found.exact.error_of(d)) <= found.bound).all()


def test_a_missing_promotion_is_named():
    rng = np.random.default_rng(0)
    a, b = (np.abs(rng.standard_normal(s)).astype(ml_dtypes.float8_e4m3fn) for s in ((24, 4096), (4096, 24)))
    with pytest.raises(AssertionError, match="no promotion to FP32"):
        assert_gemm_close(HOPPER.gemm(a, b), a, b, engine=HOPPER, promote_every=128)


def test_bad_intervals():
    a, b = operands(0, k=64)
    for every, options, message in (
        (48, {}, "multiple of 32"),
        (0, {}, "multiple"),
        (64, {"k_order": "split_k:2"}, "give splits instead of promote_every"),
    ):
        with pytest.raises(ValueError, match=message):
            gemm_tolerance(HOPPER, a, b, promote_every=every, **options)
    with pytest.raises(TypeError, match="an integer"):
        gemm_tolerance(HOPPER, a, b, promote_every=1.5)
