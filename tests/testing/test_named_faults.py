"""Additions, chains, epilogues and results that a kernel forms or writes wrongly are named, of long k with fewer elements."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import check_gemm
from mpgemm.testing.diagnosis.failure import CONFIRMED, SCREENED, failure_of

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
UNIT, FP8 = (tcm.default_instruction("h100", fmt, path="wgmma") for fmt in ("bf16", "e4m3fn"))
rng = np.random.default_rng(9)
M, K, N = 48, 256, 64
A, B = (rng.standard_normal(shape).astype(BF16) for shape in ((M, K), (K, N)))
SMALL = (A.astype(np.float32) / 16).astype(BF16)
A8, B8 = A.astype(E4M3), B.astype(E4M3)
BIAS = (rng.standard_normal(N) * 8).astype(np.float32)
RESIDUAL = (rng.standard_normal((M, N)) * 8).astype(np.float32)


def product(a=A, b=B, unit=UNIT, **options):
    return unit.gemm(a, b, **options).astype(np.float32)


def said(out, a=A, b=B, c=None, engine=UNIT, **options):
    found = check_gemm(out, a, b, c, engine=engine, **options)
    assert not found.passes
    return "; ".join(found.suspects)


def test_additions_of_a_bias_and_a_residual():
    split = product(k_order="split_k:4")
    assert said(split + 4 * BIAS, c=BIAS, splits=4) == "the addend: C is added 4 times, by each part of k"
    assert said(product() + BIAS.astype(BF16).astype(np.float32), c=BIAS) == "the addend: C is rounded to bf16 first"
    moved = product() + np.roll(RESIDUAL, -1, 0)
    assert (
        said(moved, epilogue="residual", residual=RESIDUAL)
        == "the residual is taken from the row behind, around the end"
    )


def test_other_epilogues():
    x = product(SMALL)
    assert said(np.where(x > 0, x, np.float32(0.1) * x), SMALL, epilogue="leaky_relu:0.01") == (
        "the epilogue is leaky_relu:0.1, not leaky_relu:0.01"
    )
    quick = x / (1 + np.exp(-1.702 * x))
    assert said(quick, SMALL, epilogue="gelu_erf") == "the epilogue is x / (1 + exp(-1.702 x)), not gelu_erf"


@pytest.mark.parametrize("scaled", [False, True])
def test_a_chain_that_is_not_cleared(scaled):
    scales, options = np.ones((M, 2), np.float32), {"promote_every": 128}
    if scaled:
        scales = rng.uniform(0.5, 2, (M, 2)).astype(np.float32)
        options = {"scale_a": scales, "scale_b": np.ones((2, 1), np.float32)}
    parts = (product(A8[:, :stop], B8[:stop], FP8) for stop in (128, 256))
    total = sum(part * scales[:, i : i + 1] for i, part in enumerate(parts))
    assert said(total, A8, B8, engine=FP8, **options) == (
        "lost terms: the chain is not cleared every 128 values of k, so that its sums are added again"
    )


def test_scales_of_twice_as_many_columns():
    b = rng.standard_normal((128, 512)).astype(E4M3)
    a, scale_a, scale_b = A8[:16, :128], np.ones((16, 1), np.float32), np.float32([[1, 3, 0.5, 2]])
    out = product(a, b, FP8, scale_a=scale_a, scale_b=scale_b[:, [0, 0, 1, 1]])
    text = "scale_b is taken for every 256 columns, not for 128"
    assert said(out, a, b, engine=FP8, scale_a=scale_a, scale_b=scale_b) == text


def test_a_result_with_another_leading_dimension():
    memory = np.zeros((M, N + 8), np.float32)
    memory[:, :N] = product()
    assert said(memory.ravel()[: M * N].reshape(M, N)) == "the result is written with the leading dimension 72, not 64"


def test_subnormal_operands_taken_as_zeros():
    a = (rng.standard_normal((M, K)) * 2.0**-14).astype(np.float16)
    b = np.abs(B.astype(np.float16)) + np.float16(0.5)
    flushed = np.where(np.abs(a) < 2.0**-14, np.float16(0), a)
    unit = tcm.default_instruction("h100", "fp16")
    assert said(product(flushed, b, unit), a, b, engine=unit) == "A was taken with 0 for subnormal numbers"


def test_scattered_zeros_are_not_everywhere():
    out = product()
    out[rng.random(out.shape) < 0.05] = 0
    found = check_gemm(out, A, B, engine=UNIT)
    assert found.place == f"all over the result, {found.wrong} of {M * N} elements"
    assert found.suspects == ("0 in all wrong elements: the kernel never wrote them, skipped a tile, or read zeros",)


@pytest.mark.full
def test_long_k_is_looked_at_with_fewer_elements():
    k = 4096
    a, b = (rng.standard_normal(shape).astype(BF16) for shape in ((32, k), (k, 32)))
    stale = a.copy()
    stale[:16, 2048:2112] = a[:16, 1984:2048]
    out = product(stale, b)
    found = check_gemm(out, a, b, engine=UNIT)
    assert found.place == "rows 0 to 15, all columns"
    assert found.suspects == ("a stale block: at k 2048:2112 A still holds k 1984:2048",)
    failure = failure_of(out.astype(np.float64), found.case, found.outside)
    few, more = failure.few(), failure.few(CONFIRMED)
    sizes = [int(np.count_nonzero(each.wrong[each.rows, each.columns])) for each in (few, more, failure)]
    assert sizes[2] > sizes[1] == CONFIRMED * sizes[0] == CONFIRMED * SCREENED // k
    assert set(zip(few.rows, few.columns, strict=True)) <= set(zip(failure.rows, failure.columns, strict=True))


def test_what_every_sum_loses_is_no_fault_behind_an_epilogue():
    a, b = np.abs(A), np.abs(B)
    right = tcm.default_instruction("a100", "bf16").gemm(a, b).astype(np.float32)
    out = right.copy()
    out[16:32, 32:48] = right[16:32, 32:48].T
    found = check_gemm(out, a, b, engine="a100", epilogue="relu")
    assert found.place == "the tile rows 16 to 31, columns 32 to 47"
    assert found.suspects == ("blocks of 16 x 16 are transposed",)
