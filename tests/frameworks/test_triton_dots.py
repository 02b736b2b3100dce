"""Dots of interpreted Triton kernels have the bits of the instruction: a tiled matmul, flash attention, scaled dots."""

import os

import numpy as np
import pytest
from ptx_cases import GEMM, text

import tensorcore_models as tcm
from tensorcore_models import compiled

os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are defined
torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[triton]'")
triton = pytest.importorskip("triton", reason="triton is not installed: pip install 'mpgemm[triton]'")
import triton.language as tl  # noqa: E402

from mpgemm.frameworks.torch_tensors import to_array  # noqa: E402
from mpgemm.triton import emulate  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, P: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """C = A B by tiles: row-major, k in blocks of BK, masked at the edges."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + inner
        x = tl.load(a + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        y = tl.load(b + at[:, None] * n + columns[None, :], mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(x, y, total, input_precision=P, max_num_imprecise_acc=ACC)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Softmax(Q K^T) V of one head with a running maximum and sum over tiles of keys."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + inner[None, :])
    largest = tl.full((BM,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, length, BN):
        keys = start + tl.arange(0, BN)
        y = tl.load(k + keys[:, None] * D + inner[None, :])
        scores = tl.dot(x, tl.trans(y)) * scale
        top = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - top[:, None])
        shrink = tl.exp(largest - top)
        weight = weight * shrink + tl.sum(p, 1)
        total = total * shrink[:, None]
        z = tl.load(v + keys[:, None] * D + inner[None, :])
        total = tl.dot(p.to(z.dtype), z, total)
        largest = top
    tl.store(out + rows[:, None] * D + inner[None, :], (total / weight[:, None]).to(out.dtype.element_ty))


@triton.jit
def scaled_kernel(
    a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr,
    FA: tl.constexpr, FB: tl.constexpr,
):  # fmt: skip
    """One block-scaled dot; K counts elements, PA and PB of them are packed in a byte."""
    i, j, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    ka, kb = tl.arange(0, K // PA), tl.arange(0, K // PB)
    x = tl.load(a + i[:, None] * (K // PA) + ka[None, :])
    y = tl.load(b + kb[:, None] * N + j[None, :])
    left, right = tl.load(sa + i[:, None] * (K // 32) + s[None, :]), tl.load(sb + j[:, None] * (K // 32) + s[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot_scaled(x, left, FA, y, right, FB))


@triton.jit
def batch_kernel(a, b, c, B: tl.constexpr, S: tl.constexpr, T: tl.constexpr):
    """A batch of square products, 3-D dots."""
    at = tl.arange(0, B)[:, None, None] * S * S + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), out_dtype=T))


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def matmul(a, b, precision="tf32", out=torch.float32, imprecise=None, bk=32):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=out)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    matmul_kernel[grid](a, b, c, m, n, k, BM=32, BN=32, BK=bk, P=precision, ACC=imprecise)
    return c


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("device", ["h100", "a100"])
def test_a_tiled_matmul_is_one_chain(name, device):
    a, b = (normal(*s, dtype=getattr(torch, name), seed=i) for i, s in enumerate([(40, 80), (80, 33)]))
    with emulate(device) as run:
        found = matmul(a, b)
    engine = tcm.default_instruction(device, {"float16": "fp16", "bfloat16": "bf16"}[name])
    assert np.array_equal(found.numpy().view("u4"), engine.gemm(to_array(a, "a"), to_array(b, "b")).view("u4"))
    (row,) = run.report().rows
    assert row.site.site.startswith("matmul_kernel, line") and row.site.engines == (engine.label,)
    assert row.calls == 2 * 2 * 3 and row.site.orders[0].startswith("one chain from the accumulator [")


def test_the_interpreters_own_bf16_is_wrong_and_comes_back():
    a, b = normal(32, 32, dtype=torch.bfloat16), normal(32, 32, dtype=torch.bfloat16, seed=1)
    exact = a.double() @ b.double()
    with emulate("h100"):
        assert (matmul(a, b).double() - exact).abs().max() < 1e-4
    before = matmul(a, b)
    with emulate("h100"):
        pass
    assert torch.equal(before, matmul(a, b))


def test_input_precision():
    a, b = normal(32, 64), normal(64, 32, seed=1)
    a, b = a * 2 ** (4 * normal(32, 64, seed=2)), b * 2 ** (4 * normal(64, 32, seed=3))  # the order of products shows
    x, y = a.numpy(), b.numpy()
    tf32 = tcm.default_instruction("a100", "tf32")
    with emulate("a100"):
        ieee, cut, three = (matmul(a, b, precision).numpy() for precision in ("ieee", "tf32", "tf32x3"))
    fma = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32")
    assert np.array_equal(ieee, fma.gemm(x, y))
    assert np.array_equal(cut, tf32.gemm(x, y, input_rounding="rz"))
    assert not np.array_equal(three, cut)
    exact = a.double().numpy() @ b.double().numpy()
    errors = [np.abs(z - exact).max() for z in (ieee, cut, three)]
    assert errors[1] > 100 * errors[2]


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3", "bf16x6"])
def test_words_are_those_of_the_compiled_kernel(precision):
    """Interpreted, and the PTX that Triton compiled of the same sum: every bit."""
    name = f"sm_80-{precision}"
    a, b = (torch.from_numpy(x.view(np.float32)) for x in GEMM[name].operands(32, 32, 64))
    with emulate("a100") as run:
        found = matmul(a, b, precision, bk=16).numpy()
    c = np.zeros((32, 32), np.float32)
    compiled.read(text(name)).run([a.numpy(), b.numpy(), c, 32, 32, 64])
    assert np.array_equal(found.view(np.uint32), c.view(np.uint32))
    assert precision in run.report().rows[0].site.orders[0]


@pytest.mark.parametrize(("imprecise", "every"), [(None, None), (32, 32), (40, 64), (128, 128)])
def test_imprecise_accumulation_on_hopper(imprecise, every):
    """By the rules: the compiler takes other instructions for tiles of 32 rows."""
    a, b = (normal(*s, seed=i).to(torch.float8_e4m3fn) for i, s in enumerate([(32, 256), (256, 32)]))
    with emulate("h100", compiler="rules") as run:
        found = matmul(a, b, imprecise=imprecise, bk=128).numpy()
    engine = tcm.get_instruction("h100", "wgmma.m64n8k32.f32.e4m3.e4m3")
    total = np.zeros((32, 32), np.float32)
    for start in (0, 128):
        x, y = to_array(a[:, start : start + 128], "a"), to_array(b[start : start + 128], "b")
        total = engine.gemm(x, y, total, promote_every=every)
    assert np.array_equal(found, total)
    assert ("promoted" in run.report().rows[0].site.orders[0]) == (every is not None)


def test_other_devices_ignore_imprecise_accumulation():
    a, b = (normal(*s, seed=i).to(torch.float8_e4m3fn) for i, s in enumerate([(32, 64), (64, 32)]))
    with emulate("l40s"):
        found = matmul(a, b, imprecise=32, bk=64).numpy()
    assert np.array_equal(found, tcm.default_instruction("l40s", "e4m3fn").gemm(to_array(a, "a"), to_array(b, "b")))


def test_flash_attention_runs_its_products_on_the_engine():
    q, k, v = (normal(64, 16, dtype=torch.bfloat16, seed=i) for i in range(3))
    out = torch.empty(64, 16)
    with emulate("h100") as run:
        attention_kernel[(2,)](q, k, v, out, 64, 0.25, D=16, BM=32, BN=16)
    engine = tcm.default_instruction("h100", "bf16")
    arrays = [to_array(t, "t") for t in (q, k, v)]
    largest, weight, total = np.full(64, -np.inf, np.float32), np.zeros(64, np.float32), np.zeros((64, 16), np.float32)
    for start in range(0, 64, 16):
        keys = slice(start, start + 16)
        scores = engine.gemm(arrays[0], arrays[1][keys].T) * np.float32(0.25)
        top = np.maximum(largest, scores.max(1))
        p, shrink = np.exp(scores - top[:, None]), np.exp(largest - top)
        weight = weight * shrink + np.stack([p[i].sum() for i in range(64)])
        total = engine.gemm(p.astype(arrays[0].dtype), arrays[2][keys], total * shrink[:, None])
        largest = top
    assert np.abs(out.numpy() - total / weight[:, None]).max() <= 2**-22 * np.abs(total).max()
    expected = torch.softmax(q.double() @ k.double().T / 4, -1) @ v.double()
    assert (out - expected).abs().max() < 0.02
    assert {row.site.engines[0] for row in run.report().rows} == {engine.label} and len(run.report().rows) == 2


@pytest.mark.parametrize("device", ["b200", "rtx_pro_6000", "h100"])
@pytest.mark.parametrize("formats", [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e4m3", "e2m1")])
def test_scaled_dots(device, formats):
    rng, k = np.random.default_rng(0), 128
    row = {"e4m3": "mxfp8_e4m3", "e5m2": "mxfp8_e5m2", "e2m1": "mxfp4"}
    left = tcm.quantize_blocks(rng.standard_normal((32, k)), row[formats[0]], axis=1)
    right = tcm.quantize_blocks(rng.standard_normal((k, 32)), row[formats[1]], axis=0)

    def packed(x, axis):
        codes = x.elements.view("u1")
        if x.elements.dtype.itemsize == 1 and "float4" in str(x.elements.dtype):
            low, high = (np.take(codes, np.arange(s, k, 2), axis) for s in (0, 1))
            codes = low | (high << 4)
        return torch.from_numpy(np.ascontiguousarray(codes))

    c = torch.empty(32, 32)
    per_byte = [2 if f == "e2m1" else 1 for f in formats]
    with emulate(device) as run:
        scaled_kernel[(1,)](
            packed(left, 1), torch.from_numpy(left.scales.view("u1").copy()), packed(right, 0),
            torch.from_numpy(np.ascontiguousarray(right.scales.view("u1").T)), c,
            M=32, N=32, K=k, PA=per_byte[0], PB=per_byte[1], FA=formats[0], FB=formats[1],
        )  # fmt: skip
    (found,) = run.report().rows
    if device == "h100":
        x, y = (z.values().astype(np.float32).astype(to_array(normal(1).bfloat16(), "z").dtype) for z in (left, right))
        expected = tcm.default_instruction("h100", "bf16").gemm(x, y)
        assert "rounded to bf16" in found.site.orders[0]
    else:
        engine = tcm.get_instruction(found.site.engines[0])
        assert engine.scale_format == "ue8m0" and engine.block_size == 32
        expected = engine.gemm(left.elements, right.elements, scale_a=left.scales, scale_b=right.scales)
    assert np.array_equal(c.numpy().view("u4"), expected.view("u4"))


@pytest.mark.parametrize("fmt", ["fp16", "fp16 sums", "s8", "fp64"])
def test_batches_integers_doubles_and_narrow_sums(fmt):
    types = {"fp16": torch.float16, "fp16 sums": torch.float16, "s8": torch.int8, "fp64": torch.float64}
    sums = {"fp16": "fp32", "fp16 sums": "fp16", "s8": "s32", "fp64": "fp64"}[fmt]
    a, b = ((4 * normal(2, 32, 32, seed=i)).to(types[fmt]) for i in range(2))
    out = {"fp32": torch.float32, "fp16": torch.float16, "s32": torch.int32, "fp64": torch.float64}[sums]
    c = torch.empty(2, 32, 32, dtype=out)
    kinds = {"fp32": tl.float32, "fp16": tl.float16, "s32": tl.int32, "fp64": tl.float64}
    with emulate("a100"):
        batch_kernel[(1,)](a, b, c, B=2, S=32, T=kinds[sums])
    engine = tcm.default_instruction("a100", fmt.split()[0], sums)
    assert np.array_equal(c.numpy(), np.stack([engine.gemm(a[i].numpy(), b[i].numpy()) for i in range(2)]))


def test_what_is_not_emulated_raises():
    a, b = normal(32, 32), normal(32, 32, seed=1)
    with emulate("v100"), pytest.raises(Exception, match="v100 has no instruction for bf16 x bf16"):
        matmul(a.bfloat16(), b.bfloat16())
    with pytest.raises(ValueError, match="unknown architecture"), emulate("h1000"):
        pass
    with pytest.raises(TypeError, match="engine is a list"), emulate(["h100", "a100"]):
        pass


def test_the_interpreter_must_be_on(monkeypatch):
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    with pytest.raises(ValueError, match="TRITON_INTERPRET=1"), emulate("h100"):
        pass
