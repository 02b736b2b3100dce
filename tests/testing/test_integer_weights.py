"""Integer weights with scales of groups: kernels that scale before and behind the product are right, wrong groups are named."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import check_gemm

rng = np.random.default_rng(4)
M, K, N = 48, 512, 64


def operands(dtype, weights, group):
    a = rng.standard_normal((M, K)).astype(dtype)
    low, high = (-8, 8) if weights is ml_dtypes.int4 else (-128, 128)
    q = rng.integers(low, high, (K, N)).astype(weights)
    return a, q, rng.uniform(0.5, 2, (K // group, N)).astype(np.float32) / 8


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("weights", "group"), [(ml_dtypes.int4, 64), (ml_dtypes.int4, 128), (np.int8, 128)])
def test_scales_before_and_behind_the_product_are_right(dtype, weights, group):
    a, q, scale = operands(dtype, weights, group)
    unit = tcm.default_instruction("h100", tcm.format_of_dtype(np.dtype(dtype)).name)
    plain = q.astype(np.float32).astype(dtype)
    spread = np.repeat(scale, group, 0)
    early = unit.gemm(a, (plain.astype(np.float32) * spread).astype(dtype))
    late = sum(
        unit.gemm(np.ascontiguousarray(a[:, s : s + group]), plain[s : s + group]).astype(np.float32)
        * scale[s // group]
        for s in range(0, K, group)
    )
    for out in (early, late):
        assert check_gemm(out.astype(dtype), a, q, engine="h100", scale_b=scale).passes
        assert check_gemm(np.asarray(out, np.float32), a, q, engine="h100", scale_b=scale).passes
    wrong = unit.gemm(a, (plain.astype(np.float32) * np.repeat(np.roll(scale, -1, 0), group, 0)).astype(dtype))
    found = check_gemm(wrong.astype(dtype), a, q, engine="h100", scale_b=scale)
    assert found.suspects == ("scale_b is that of the block of k behind, around the end",)


def test_weights_without_scales_are_refused():
    a, q, scale = operands(np.float16, ml_dtypes.int4, 64)
    with pytest.raises(ValueError, match="group of 64 or 128"):
        check_gemm(np.zeros((M, N), np.float16), a, q, engine="h100")
    with pytest.raises(TypeError, match="must be int8, uint8, int4 or uint4"):
        check_gemm(np.zeros((M, N), np.float16), a, q.astype(np.int32), engine="h100", scale_b=scale)
