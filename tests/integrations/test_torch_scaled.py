"""Torch's products with scales of rows and blocks, of groups and of integers have the bits of sums and their end."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")

from mpgemm.integrations.torch_scaled import unswizzled  # noqa: E402
from mpgemm.integrations.torch_tensors import to_array  # noqa: E402
from mpgemm.torch import emulate  # noqa: E402

F = torch.nn.functional
HOPPER = tcm.get_instruction("h100", "wgmma.m64n8k32.f32.e4m3.e4m3")


def fp8(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(torch.float8_e4m3fn)


def factors(*shape, seed):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) + 0.1


def bits_of(tensor):
    return tensor.contiguous().view(torch.uint8).numpy()


@pytest.mark.parametrize("fast", [False, True])
def test_factors_of_rows_and_columns(fast):
    a, b = fp8(24, 272, seed=0), fp8(32, 272, seed=1).t()
    scale_a, scale_b, bias = factors(24, 1, seed=2), factors(1, 32, seed=3), factors(32, seed=4).bfloat16()
    with emulate("h100") as run:
        plain = torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)
        added = torch._scaled_mm(a, b, scale_a, scale_b, bias=bias, out_dtype=torch.bfloat16, use_fast_accum=fast)
    sums = HOPPER.gemm(to_array(a, "a"), to_array(b, "b"), promote_every=None if fast else 128)
    scaled = (sums * scale_a.numpy()) * scale_b.numpy()
    assert np.array_equal(bits_of(plain), scaled.astype(ml_dtypes.bfloat16).view(np.uint8))
    ended = (scaled + bias.float().numpy()).astype(ml_dtypes.bfloat16)
    assert np.array_equal(bits_of(added), ended.view(np.uint8))
    assert "RN32(scale_b RN32(scale_a sum))" in run.report().rows[0].site.formats


def test_blocks_of_128_through_both_functions():
    a, b = fp8(16, 300, seed=0), fp8(140, 300, seed=1).t()
    scale_a, scale_b = factors(16, 3, seed=2), factors(3, 2, seed=3)
    with emulate("h100"):
        found = torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32)
        kind = F.ScalingType
        same = F.scaled_mm(
            a, b, scale_a, kind.BlockWise1x128, scale_b, kind.BlockWise128x128, output_dtype=torch.float32
        )
    expected = np.zeros((16, 140), np.float64)
    for at in range(3):
        chain = HOPPER.gemm(to_array(a, "a")[:, at * 128 : at * 128 + 128], to_array(b, "b")[at * 128 : at * 128 + 128])
        factor = (scale_a[:, at, None] * scale_b[at].repeat_interleave(128)[:140]).numpy()
        expected = (expected + chain.astype(np.float64) * factor).astype(np.float32).astype(np.float64)
    # one fused rounding: that of the float64 sum differs in rare ties only
    assert np.mean(found.numpy() == expected) > 0.999
    assert torch.equal(found, same)


def test_mx_scales_plain_and_swizzled():
    rng = np.random.default_rng(0)
    x, y = (
        tcm.quantize_blocks(rng.standard_normal(s), "mxfp8_e4m3", axis=axis)
        for s, axis in (((160, 160), 1), ((160, 48), 0))
    )
    a, b = (torch.from_numpy(np.ascontiguousarray(v.bits)).view(torch.float8_e4m3fn) for v in (x, y))

    def swizzled(scales):
        rows, columns = -(-scales.shape[0] // 128) * 128, -(-scales.shape[1] // 4) * 4
        out = np.zeros(rows * columns, np.uint8)
        for i, j in np.ndindex(scales.shape):  # cuBLAS: tile of 128 x 4, then 32 rows of 4 times 4
            tile = (i // 128) * (columns // 4) + j // 4
            out[tile * 512 + (i % 32) * 16 + (i % 128) // 32 * 4 + j % 4] = scales[i, j]
        return torch.from_numpy(out).view(torch.float8_e8m0fnu)

    with emulate("b200"):
        plain = torch._scaled_mm(a, b, *(torch.from_numpy(v.scales).view(torch.float8_e8m0fnu) for v in (x, y)),
                                 out_dtype=torch.float32)  # fmt: skip
        packed = torch._scaled_mm(a, b, swizzled(x.scales), swizzled(y.scales.T), out_dtype=torch.float32)
    unit = tcm.get_instruction("b200", "tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0")
    expected = unit.gemm(x.elements, y.elements, scale_a=x.scales, scale_b=y.scales)
    assert np.array_equal(plain.numpy(), expected)
    assert np.array_equal(packed.numpy(), expected)
    with pytest.raises(ValueError, match="padded to tiles"):
        unswizzled(np.zeros(5, np.uint8), 160, 5)


def test_grouped_products():
    a, b = torch.randn(24, 64).bfloat16(), torch.randn(3, 64, 16).bfloat16()
    offs = torch.tensor([8, 8, 24], dtype=torch.int32)
    with emulate("h100"):
        found = torch._grouped_mm(a, b, offs)
        each = torch.cat([a[:8] @ b[0], a[8:8] @ b[1], a[8:] @ b[2]])
    assert torch.equal(found, each)
    x, y = fp8(16, 64, seed=1), fp8(2, 16, 64, seed=2).transpose(1, 2)
    scale_a, scale_b = factors(16, seed=3), factors(2, 16, seed=4)
    ends = torch.tensor([4, 16], dtype=torch.int32)
    with emulate("h100"):
        found = torch._scaled_grouped_mm(x, y, scale_a, scale_b, offs=ends, out_dtype=torch.bfloat16)
        parts = [
            torch._scaled_mm(x[s], y[g], scale_a[s, None], scale_b[g][None], out_dtype=torch.bfloat16)
            for g, s in enumerate((slice(0, 4), slice(4, 16)))
        ]
    assert torch.equal(found, torch.cat(parts))


def test_integer_products():
    a = torch.randint(-128, 128, (24, 64), dtype=torch.int8)
    b = torch.randint(-128, 128, (64, 16), dtype=torch.int8)
    with emulate(["h100", "a100"]) as run:
        found = torch._int_mm(a, b)
    assert torch.equal(found, (a.long() @ b.long()).int())
    assert run.report().rows[0].site.formats == "s8 x s8 to s32"
    assert run.report().rows[0].differing == (0,)
