"""Torch's products with scales of rows and blocks, of groups and of integers have the bits of sums and their end."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")

from mpgemm.frameworks.torch_scales import FP4_PAIRS, unswizzled  # noqa: E402
from mpgemm.frameworks.torch_tensors import to_array  # noqa: E402
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
    scaled = (sums * scale_b.numpy()) * scale_a.numpy()
    assert np.array_equal(bits_of(plain), scaled.astype(ml_dtypes.bfloat16).view(np.uint8))
    ended = (scaled + bias.float().numpy()).astype(ml_dtypes.bfloat16)
    assert np.array_equal(bits_of(added), ended.view(np.uint8))
    assert "on Hopper RN32(scale_a RN32(scale_b sum))" in run.report().rows[0].site.formats


def test_blocks_of_128_through_both_functions():
    a, b = fp8(16, 300, seed=0), fp8(140, 300, seed=1).t()
    scale_a, scale_b = factors(16, 3, seed=2), factors(3, 2, seed=3)
    with emulate("h100"):
        found = torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32)
        kind = F.ScalingType
        padded = torch.cat([scale_b, torch.full((1, 2), torch.nan)])  # torch pads blocks of k to a multiple of four
        same = F.scaled_mm(
            a, b, scale_a, kind.BlockWise1x128, padded, kind.BlockWise128x128, output_dtype=torch.float32
        )
        rows = F.scaled_mm(
            a, b, scale_a, kind.BlockWise1x128, scale_b.repeat_interleave(128, 1)[:, :140].t(), kind.BlockWise1x128,
            output_dtype=torch.float32,
        )  # fmt: skip
        with pytest.raises(ValueError, match=r"has shape \(3, 2\), expected \(4, 2\)"):
            F.scaled_mm(a, b, scale_a, kind.BlockWise1x128, scale_b, kind.BlockWise128x128)
        with pytest.raises(ValueError, match="SWIZZLE_32_4_4\\) for block scales that the unit applies"):
            F.scaled_mm(a, b, scale_a, kind.BlockWise1x128, padded, kind.BlockWise128x128, F.SwizzleType.SWIZZLE_32_4_4)
    expected = np.zeros((16, 140), np.float64)
    for at in range(3):
        chain = HOPPER.gemm(to_array(a, "a")[:, at * 128 : at * 128 + 128], to_array(b, "b")[at * 128 : at * 128 + 128])
        factor = (scale_a[:, at, None] * scale_b[at].repeat_interleave(128)[:140]).numpy()
        expected = (expected + chain.astype(np.float64) * factor).astype(np.float32).astype(np.float64)
    # one fused rounding: that of the float64 sum differs in rare ties only
    assert np.mean(found.numpy() == expected) > 0.999
    assert torch.equal(found, same)
    assert torch.equal(found, rows)


def test_a_recipe_names_the_rule_where_shapes_fit_two():
    a, b = fp8(16, 96, seed=0), fp8(24, 96, seed=1).t()
    scale_a, scale_b = factors(16, 1, seed=2), factors(24, 1, seed=3)
    kind = F.ScalingType
    with emulate("h100") as run:
        for each in (kind.RowWise, kind.BlockWise1x128):
            F.scaled_mm(a, b, scale_a, each, scale_b, each, output_dtype=torch.float32)
    assert ["at the end" in row.site.formats for row in run.report().rows] == [True, False]


def swizzled(scales):
    """cuBLAS: tiles of 128 x 4, in them 32 rows of 4 times 4."""
    rows, columns = -(-scales.shape[0] // 128) * 128, -(-scales.shape[1] // 4) * 4
    out = np.zeros(rows * columns, scales.dtype)
    for i, j in np.ndindex(scales.shape):
        tile = (i // 128) * (columns // 4) + j // 4
        out[tile * 512 + (i % 32) * 16 + (i % 128) // 32 * 4 + j % 4] = scales[i, j]
    return torch.from_numpy(out)


def quantized(fmt, rng, m, k, n):
    return (tcm.quantize_blocks(rng.standard_normal(s), fmt, axis=x) for s, x in (((m, k), 1), ((k, n), 0)))


def pairs(elements):
    """FP4 as torch packs it: two values of k in a byte, the first in the low half."""
    bits = np.ascontiguousarray(elements).view(np.uint8) & 15
    return torch.from_numpy(bits[:, ::2] | bits[:, 1::2] << 4).view(FP4_PAIRS)


@pytest.mark.skipif(FP4_PAIRS is None, reason="this torch has no float4_e2m1fn_x2")
@pytest.mark.parametrize(("fmt", "unit", "scale"), [
    ("nvfp4", "tcgen05.mma.m128n8k64.block16.f32.e2m1.e2m1.ue4m3", "float8_e4m3fn"),
    ("mxfp4", "tcgen05.mma.m128n8k64.block32.f32.e2m1.e2m1.ue8m0", "float8_e8m0fnu"),
])  # fmt: skip
def test_fp4_packed_with_scales_plain_swizzled_and_of_the_whole(fmt, unit, scale):
    m, k, n = 136, 144 if fmt == "nvfp4" else 160, 24
    x, y = quantized(fmt, np.random.default_rng(0), m, k, n)
    kind = F.ScalingType.BlockWise1x16 if fmt == "nvfp4" else F.ScalingType.BlockWise1x32
    a, b = pairs(x.elements.astype(ml_dtypes.float4_e2m1fn)), pairs(y.elements.astype(ml_dtypes.float4_e2m1fn).T).t()
    plain = [torch.from_numpy(np.ascontiguousarray(s)).view(getattr(torch, scale)) for s in (x.scales, y.scales.T)]
    tiles = [swizzled(s).view(getattr(torch, scale)) for s in (x.scales, y.scales.T)]
    no, yes = F.SwizzleType.NO_SWIZZLE, F.SwizzleType.SWIZZLE_32_4_4
    whole = torch.tensor(0.3), torch.tensor([7.1])
    with emulate("b200") as run:
        first = torch._scaled_mm(a, b, *tiles, out_dtype=torch.bfloat16)
        second = F.scaled_mm(a, b, plain[0], kind, tiles[1], kind, no, yes)
        if fmt == "nvfp4":
            kinds = [kind, F.ScalingType.TensorWise]
            third = F.scaled_mm(a, b, [tiles[0], whole[0]], kinds, [tiles[1], whole[1]], kinds, yes, yes)
        with pytest.raises(ValueError, match="swizzle the scales, or call .*NO_SWIZZLE"):
            torch._scaled_mm(a, b, *plain, out_dtype=torch.bfloat16)
    expected = tcm.get_instruction("b200", unit).gemm(x.elements, y.elements, scale_a=x.scales, scale_b=y.scales)
    assert np.array_equal(bits_of(first), expected.astype(ml_dtypes.bfloat16).view(np.uint8))
    assert torch.equal(first, second)
    assert run.report().rows[0].site.k == k
    if fmt == "nvfp4":
        ended = expected * (np.float32(0.3) * np.float32(7.1))
        assert np.array_equal(bits_of(third), ended.astype(ml_dtypes.bfloat16).view(np.uint8))


def test_scales_that_fill_tiles_are_read_as_tiles():
    """A matrix of 128 rows has as many plain scales as tiled ones: torch reads them as tiles."""
    x, y = quantized("mxfp8_e4m3", np.random.default_rng(1), 128, 128, 128)
    a, b = (torch.from_numpy(np.ascontiguousarray(v)).view(torch.float8_e4m3fn) for v in (x.bits, y.bits.T))
    tiles = [swizzled(s).view(torch.float8_e8m0fnu).reshape(128, 4) for s in (x.scales, y.scales.T)]
    with emulate("b200"):
        found = torch._scaled_mm(a, b.t(), *tiles, out_dtype=torch.float32)
    unit = tcm.get_instruction("b200", "tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0")
    assert np.array_equal(found.numpy(), unit.gemm(x.elements, y.elements, scale_a=x.scales, scale_b=y.scales))


def test_mx_scales_plain_and_swizzled():
    rng = np.random.default_rng(0)
    x, y = (
        tcm.quantize_blocks(rng.standard_normal(s), "mxfp8_e4m3", axis=axis)
        for s, axis in (((160, 160), 1), ((160, 48), 0))
    )
    a, b = (torch.from_numpy(np.ascontiguousarray(v.bits)).view(torch.float8_e4m3fn) for v in (x, y))

    with emulate("b200"):
        kind = F.ScalingType.BlockWise1x32
        scales = [torch.from_numpy(s).view(torch.float8_e8m0fnu) for s in (x.scales, y.scales.T)]
        plain = F.scaled_mm(a, b, scales[0], kind, scales[1], kind, output_dtype=torch.float32)
        tiles = [swizzled(s).view(torch.float8_e8m0fnu) for s in (x.scales, y.scales.T)]
        packed = torch._scaled_mm(a, b, *tiles, out_dtype=torch.float32)
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


def test_scaled_groups_along_k():
    """The gradient of the weights: both operands have two dimensions, groups are slices of k with factors of their own."""
    a, b = fp8(16, 96, seed=1), fp8(24, 96, seed=2).t()
    scale_a, scale_b = factors(48, seed=3), factors(72, seed=4)
    ends = torch.tensor([32, 32, 80], dtype=torch.int32)
    with emulate("h100"):
        found = torch._scaled_grouped_mm(a, b, scale_a, scale_b, offs=ends)
        kind = F.ScalingType.RowWise
        same = F.scaled_grouped_mm(a, b, scale_a, kind, scale_b, kind, offs=ends)
        parts = [
            torch._scaled_mm(
                a[:, s], b[s], scale_a[16 * g : 16 * g + 16, None], scale_b[None, 24 * g : 24 * g + 24],
                out_dtype=torch.bfloat16,
            )
            for g, s in ((0, slice(0, 32)), (2, slice(32, 80)))
        ]  # fmt: skip
    assert found.shape == (3, 16, 24)
    assert torch.equal(found[[0, 2]], torch.stack(parts))
    assert not found[1].any()
    assert torch.equal(found, same)


@pytest.mark.parametrize("ragged", ["rows", "k"])
def test_mx_scales_of_groups(ragged):
    rng = np.random.default_rng(3)
    sizes = [(40, 64, 24), (136, 64, 24)] if ragged == "rows" else [(40, 160, 24), (40, 32, 24)]
    x, y = zip(*(quantized("mxfp8_e4m3", rng, *size) for size in sizes), strict=True)
    axis = 0 if ragged == "rows" else 1
    a = torch.from_numpy(np.concatenate([v.bits for v in x], axis)).view(torch.float8_e4m3fn)
    columns = [torch.from_numpy(np.ascontiguousarray(v.bits.T)).view(torch.float8_e4m3fn) for v in y]
    b = torch.stack(columns).transpose(1, 2) if ragged == "rows" else torch.cat(columns, 1).t()
    scale_a, scale_b = ([swizzled(s).view(torch.float8_e8m0fnu) for s in v]
                        for v in ([v.scales for v in x], [v.scales.T for v in y]))  # fmt: skip
    ends = torch.from_numpy(np.cumsum([size[axis] for size in sizes], dtype=np.int32))
    with emulate("b200"):
        joined = torch.cat(scale_a).reshape(-1, 4), torch.stack(scale_b) if ragged == "rows" else torch.cat(scale_b)
        found = torch._scaled_grouped_mm(a, b, *joined, offs=ends)
        with pytest.raises(ValueError, match="expected scales for groups of"):
            torch._scaled_grouped_mm(a, b, joined[0][1:], joined[1], offs=ends)
    unit = tcm.get_instruction("b200", "tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0")
    each = [unit.gemm(v.elements, w.elements, scale_a=v.scales, scale_b=w.scales) for v, w in zip(x, y, strict=True)]
    expected = np.concatenate(each) if ragged == "rows" else np.stack(each)
    assert np.array_equal(bits_of(found), expected.astype(ml_dtypes.bfloat16).view(np.uint8))


@pytest.mark.parametrize(("offs", "text"), [
    (None, "but offs is None"), ([8, 4], "from 0 to at most 24"), ([8, 32], "from 0 to at most 24"), ([8, 16, 24], "2 ends"),
    (8, "of one dimension"), ([8.0, 24.0], "expected int32"),
])  # fmt: skip
def test_offsets_that_do_not_fit(offs, text):
    a, b = torch.ones(24, 16).bfloat16(), torch.ones(2, 16, 8).bfloat16()
    given = None if offs is None else torch.tensor(offs)
    given = given.int() if given is not None and given.dtype == torch.int64 else given
    with emulate("h100"), pytest.raises(ValueError, match=text):
        torch._grouped_mm(a, b, given)


def test_rows_behind_the_last_group_are_zero():
    a, b = torch.ones(24, 16).bfloat16(), torch.ones(2, 16, 8).bfloat16()
    with emulate("h100"):
        found = torch._grouped_mm(a, b, torch.tensor([8, 16], dtype=torch.int32))
    assert found.shape == (24, 8)
    assert torch.equal(found[16:], torch.zeros(8, 8).bfloat16())
    assert (found[:16] == 16).all()


def test_integer_products():
    a = torch.randint(-128, 128, (24, 64), dtype=torch.int8)
    b = torch.randint(-128, 128, (64, 16), dtype=torch.int8)
    with emulate(["h100", "a100"]) as run:
        found = torch._int_mm(a, b)
    assert torch.equal(found, (a.long() @ b.long()).int())
    assert run.report().rows[0].site.formats == "s8 x s8 to s32"
    assert run.report().rows[0].differing == (0,)
