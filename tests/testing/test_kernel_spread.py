"""Errors of all elements together tell narrower sums that each element's bound lets pass; right kernels of any order pass."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import assert_gemm_close, gemm_tolerance
from mpgemm.testing.possible_results import LARGER, KernelSpread, spread_of

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
HOPPER = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3")


def draw(kind, shape, dtype, seed):
    """Gaussian; positive; or with rows of other sizes and outliers along k, as activations have them."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if kind == "positive":
        x = np.abs(x)
    if kind == "activations" and seed == 0:
        x *= np.exp(rng.standard_normal((shape[0], 1)))
        x[:, ::97] *= 10
    return x.astype(dtype)


def narrow_sums(a, b, dtype, step=16):
    """Sums that are rounded to a narrow type after every few products."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    total = np.zeros((len(a), b.shape[1]), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, a.shape[1], step):
            total = (total.astype(np.float64) + x[:, at : at + step] @ y[at : at + step]).astype(dtype)
    return total


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("dtype", "name"), [(np.float16, "fp16"), (BF16, "bf16")])
@pytest.mark.parametrize("kind", ["gaussian", "activations"])
def test_narrow_sums_inside_of_the_bound_fail(dtype, name, kind):
    a, b = draw(kind, (48, 1536), E4M3, 0), draw(kind, (1536, 48), E4M3, 1)
    out = narrow_sums(a, b, dtype).astype(np.float32)
    allowed = gemm_tolerance("h100", a, b)
    assert name == "bf16" or (np.abs(allowed.exact.error_of(out)) <= allowed.bound).all()
    with pytest.raises(AssertionError, match=f"{name} accumulation") as caught:
        assert_gemm_close(out, a, b, engine="h100")
    if name == "fp16":
        assert "taken together they are not: errors are" in str(caught.value)


def test_a_missing_promotion_inside_of_the_bound_fails():
    a, b = draw("gaussian", (32, 2048), E4M3, 0), draw("gaussian", (2048, 64), E4M3, 1)
    scales = {"scale_a": np.full((32, 1), 0.3), "scale_b": np.full((1, 64), 1.7)}
    right, out = (HOPPER.gemm(a, b, promote_every=every, **scales).astype(BF16) for every in (128, None))
    assert_gemm_close(right, a, b, engine="h100", promote_every=128, **scales)
    allowed = gemm_tolerance("h100", a, b, promote_every=128, out_format="bf16", **scales)
    assert (np.abs(allowed.exact.error_of(out)) <= allowed.bound).all()
    with pytest.raises(AssertionError, match="no promotion to FP32"):
        assert_gemm_close(out, a, b, engine="h100", promote_every=128, **scales)


def test_sums_that_overflow_in_fp16_are_named():
    a, b = draw("positive", (24, 512), E4M3, 0) * E4M3(16), draw("positive", (512, 32), E4M3, 1) * E4M3(16)
    out = narrow_sums(a, b, np.float16).astype(np.float32)
    assert np.isinf(out).any()
    with pytest.raises(AssertionError, match="fp16 accumulation: .* which overflow"):
        assert_gemm_close(out, a, b, engine="h100")


def right_kernels(unit, a, b):
    """The unit in other orders, its instruction of half the products, and FP32 on a CPU."""
    rng = np.random.default_rng(5)
    k = a.shape[1]
    steps = [np.arange(at, min(at + unit.k, k)) for at in range(0, k, unit.k)]
    orders = {"permuted": rng.permutation(len(steps)), "backwards": np.arange(len(steps))[::-1]}
    for name, order in orders.items():
        taken = np.concatenate([steps[i] for i in order])
        yield name, unit.gemm(np.ascontiguousarray(a[:, taken]), np.ascontiguousarray(b[taken]))
    for order in ("sequential", "split_k:2", "split_k:8", "sliced_k:4"):
        yield order, unit.gemm(a, b, k_order=order)
    for row in tcm.list_instructions(unit.arch):
        formats = row.a_format, row.b_format, row.d_format, row.scale_format
        if formats == (unit.a_format, unit.b_format, "fp32", None) and row.path == unit.path:
            yield row.name, row.gemm(a, b)
    yield "sgemm", a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("device", ["h100/mma", "b200/mma", "mi300", "a100"])
@pytest.mark.parametrize(("kind", "shape"), [("gaussian", (24, 48)), ("positive", (1, 512)), ("activations", (24, 48))])
@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_right_kernels_of_other_orders_pass(device, kind, shape, dtype):
    a, b = draw(kind, (shape[0], 768), dtype, 0), draw(kind, (768, shape[1]), dtype, 1)
    allowed = gemm_tolerance(device, a, b)
    for name, out in right_kernels(allowed.engine, a, b):
        assert spread_of(out.astype(np.float64), allowed).right, name


def test_a_named_order_leaves_less_room():
    """Promotion every 128 products, one chain in its place: errors are 1.2 times as large."""
    a, b = draw("gaussian", (96, 480), E4M3, 0), draw("gaussian", (480, 136), E4M3, 1)
    out = HOPPER.gemm(a, b).astype(BF16)
    assert spread_of(out.astype(np.float64), gemm_tolerance("h100", a, b, out_format="bf16")).right
    with pytest.raises(AssertionError, match="up to 1.15 times"):
        assert_gemm_close(out, a, b, engine="h100", promote_every=128)
    assert_gemm_close(HOPPER.gemm(a, b, promote_every=128).astype(BF16), a, b, engine="h100", promote_every=128)


def test_factors_of_blocks_one_after_the_other_pass():
    """Without a fused multiply-add each block of k is rounded once more: errors are 1.7 times as large where the unit loses
    nothing, and right."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((128, 1024)).astype(E4M3), rng.standard_normal((1024, 64)).astype(E4M3)
    a = np.where(np.arange(1024) % 128 == 0, a, 0).astype(E4M3)  # one product in each block
    scale_a, scale_b = (np.exp(rng.normal(0, 1, shape)).astype(np.float32) for shape in ((128, 8), (8, 1)))
    total = np.zeros((128, 64), np.float32)
    for at in range(8):
        part = HOPPER.gemm(a[:, at * 128 : at * 128 + 128], b[at * 128 : at * 128 + 128]).astype(np.float32)
        total = total + part * scale_a[:, at : at + 1] * scale_b[at]
    assert_gemm_close(total, a, b, engine="h100", scale_a=scale_a, scale_b=scale_b)


def test_growing_products_in_any_order_pass():
    """Along k the sums grow late, so that errors depend on the order most."""
    a = (draw("gaussian", (24, 1024), np.float32, 0) * np.linspace(0.01, 3, 1024) ** 2).astype(E4M3)
    b = draw("gaussian", (1024, 48), E4M3, 1)
    for options in ({}, {"k_order": "any"}):
        allowed = gemm_tolerance(HOPPER, a, b, **options)
        for name, out in right_kernels(HOPPER, a, b):
            assert spread_of(out.astype(np.float64), allowed).right, (options, name)


def test_few_elements_tell_nothing():
    assert KernelSpread(1.0, 100.0, 4, 4).right
    assert not KernelSpread(1.0, 100.0, 60, 64).right
    assert KernelSpread(1.0, LARGER, 10**6, 10**6).right
    a, b = draw("gaussian", (1, 64), np.float16, 0), draw("gaussian", (64, 1), np.float16, 1)
    assert_gemm_close(narrow_sums(a, b, np.float16), a, b, engine="h100", splits=2)


def test_gaudis_e4m3_is_found_by_the_devices_name():
    a, b = (draw("gaussian", shape, ml_dtypes.float8_e4m3, at) for at, shape in enumerate(((16, 64), (64, 16))))
    unit = tcm.get_instruction("gaudi2", "mme.k16.f32.e4m3.e4m3.f32")
    assert gemm_tolerance("gaudi2", a, b).engine == unit
    assert_gemm_close(unit.gemm(a, b), a, b, engine="gaudi2")
