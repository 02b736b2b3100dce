"""Hardware engines on a software model in the place of a GPU, and what they say where there is none."""

import sys

import numpy as np
import pytest
from fake_gpu import FakeGpu
from fake_torch import fake_torch

import tensorcore_models as tcm
from tensorcore_models import hardware
from tensorcore_models.hardware import CudaEngine, CupyMatmulEngine, TorchMatmulEngine
from tensorcore_models.hardware.cuda import device as device_module
from tensorcore_models.probing.random_operands import KINDS, edge_encodings, operands

NAMES = [
    "hopper:mma.m16n8k16.f32.f16.f16.f32", "hopper:mma.m8n8k4.f64.f64.f64.f64", "hopper:wgmma.m64n24k32.f16.e4m3.e5m2",
    "hopper:mma.m16n8k32.s32.s8.u8.s32", "hopper:wmma.m16n16k8.f32.tf32.tf32.f32", "volta:mma.m8n8k4.f32.f16.f16.f32",
    "rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3", "rtx_blackwell:mma.m16n8k32.f32.e2m1.e3m2.f32",
]  # fmt: skip


def engine_of(name):
    row = tcm.get_instruction(name)
    return row, CudaEngine(row, FakeGpu(row.arch))


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_the_instruction_s(name):
    row, engine = engine_of(name)
    inputs = operands(row, "clustered", 3, np.random.default_rng(0))
    expected = row.mma_bits(*inputs)
    np.testing.assert_array_equal(engine.mma_bits(*inputs), expected)
    lead = [None if x is None else x.reshape(1, 3, *x.shape[1:]) for x in inputs]
    np.testing.assert_array_equal(engine.mma_bits(*lead), expected[None])


@pytest.mark.parametrize("name", NAMES)
def test_gemm_of_any_size_is_the_model_s(name):
    """Sizes that are no multiples of the tile, two and a half steps of k, operands in a strided view."""
    row, engine = engine_of(name)
    m, n, k = row.m + 3, row.n + 5, 2 * row.k + max(1, row.k // 2)
    big = tcm.Instruction(
        row.accumulator, arch=row.arch, name="big", m=2 * m, n=n, k=row.k * 3, a_format=row.a_format, b_format=row.b_format,
        c_format=row.c_format, d_format=row.d_format, source="test", scale_format=row.scale_format, block_size=row.block_size,
    )  # fmt: skip
    inputs = operands(big, "clustered", 1, np.random.default_rng(1))
    blocks = None if row.block_size is None else -(-k // row.block_size)
    scales = (
        {} if blocks is None else {"scale_a": inputs.scale_a[0, ::2, :blocks], "scale_b": inputs.scale_b[0, :blocks]}
    )
    arrays = inputs.a[0, ::2, :k], inputs.b[0, :k], inputs.c[0, ::2]
    np.testing.assert_array_equal(engine.gemm_bits(*arrays, **scales), row.gemm_bits(*arrays, **scales))


def test_a_chain_goes_on_with_the_instruction_that_takes_the_result_as_c():
    row, engine = engine_of("volta:mma.m8n8k4.f32.f16.f16.f16")
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((8, 16)).astype(np.float16), rng.standard_normal((16, 8)).astype(np.float16)
    c = rng.standard_normal((8, 8)).astype(np.float16)
    np.testing.assert_array_equal(engine.gemm(a, b, c), row.gemm(a, b, c))


def test_long_batches_run_in_parts(monkeypatch):
    from tensorcore_models.hardware.cuda import engines

    monkeypatch.setattr(engines, "TILES_PER_LAUNCH", 4)
    row, engine = engine_of(NAMES[0])
    inputs = operands(row, "random_bits", 10, np.random.default_rng(3))
    np.testing.assert_array_equal(engine.mma_bits(*inputs), row.mma_bits(*inputs))
    assert engine.device.launches == 3


def test_wrong_operands_are_refused():
    row, engine = engine_of(NAMES[0])
    a, b, c, _, _ = operands(row, "normals", 2, np.random.default_rng(4))
    with pytest.raises(ValueError, match="a has shape"):
        engine.mma_bits(a[:, :8], b, c)
    with pytest.raises(TypeError, match="fp16 are uint16"):
        engine.mma_bits(a.astype(np.uint8), b, c)
    with pytest.raises(ValueError, match="has no block scales"):
        engine.mma_bits(a, b, c, np.ones((2, 16, 1), np.uint8), np.ones((2, 1, 8), np.uint8))
    with pytest.raises(ValueError, match="not an NVIDIA instruction"):
        CudaEngine(tcm.get_instruction("cdna3:v_mfma_i32_16x16x32_i8"))


# -- by name -----------------------------------------------------------------------------------------------------------------
def test_lookup():
    gpu = FakeGpu()
    engine = hardware.engine("cuda:mma.m16n8k16.f32.f16.f16.f32", gpu)
    assert engine.label == "cuda:mma.m16n8k16.f32.f16.f16.f32" and engine.row.arch == "hopper"
    assert hardware.engine("cuda:ampere:mma.m16n8k16.f32.f16.f16.f32").row.arch == "ampere"
    torch = hardware.engine("torch:fp16.fp32@cpu")
    assert (torch.a_format, torch.d_format, torch.device) == ("fp16", "fp32", "cpu")
    assert hardware.engine("npu:fp16").device == "npu"
    assert hardware.engine("cupy:fp64").d_format == "fp64"
    for bad in ("cuda:", "torch:", "opencl:fp16", "cupy:fp16.fp32", ""):
        with pytest.raises(ValueError, match="does not name a hardware engine"):
            hardware.engine(bad)
    with pytest.raises(ValueError, match="nearest"):
        hardware.engine("cuda:mma.m16n8k16.f32.f16.f16", gpu)
    with pytest.raises(ValueError, match="torch does not multiply"):
        hardware.engine("torch:e2m1")
    with pytest.raises(ValueError, match="cupy does not multiply"):
        hardware.engine("cupy:bf16")


def test_without_a_driver_use_says_what_is_missing(monkeypatch):
    def no_library(name):
        raise OSError(name)

    monkeypatch.setattr(device_module.ctypes, "CDLL", no_library)
    device_module.default_device.cache_clear()
    row = tcm.get_instruction(NAMES[0])
    inputs = operands(row, "normals", 1, np.random.default_rng(0))
    with pytest.raises(OSError, match=r"libcuda.so.1 not found.*NVIDIA GPU and its driver"):
        CudaEngine(row).mma_bits(*inputs)
    with pytest.raises(OSError, match=r"libcuda.so.1 not found"):
        hardware.engine("cuda:mma.m16n8k16.f32.f16.f16.f32")


def test_without_the_library_use_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    one = np.ones((1, 1), np.float16)
    with pytest.raises(RuntimeError, match="needs the package torch"):
        TorchMatmulEngine("fp16").gemm(one, one)
    with pytest.raises(RuntimeError, match="needs the package cupy"):
        CupyMatmulEngine("fp16").gemm(one, one)
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    monkeypatch.setitem(sys.modules, "torch_npu", None)
    with pytest.raises(RuntimeError, match="needs the package torch_npu"):
        TorchMatmulEngine("fp16", device="npu").gemm(one, one)
    monkeypatch.setitem(sys.modules, "torch", fake_torch(cuda=False))
    with pytest.raises(RuntimeError, match="finds no device 'cuda'"):
        TorchMatmulEngine("fp16").gemm(one, one)


@pytest.mark.parametrize(
    ("fmt", "d_format", "device", "call"),
    [
        ("fp16", None, "cuda", ("matmul", "cuda", False)), ("bf16", None, "cuda", ("matmul", "cuda", False)),
        ("fp16", "fp32", "cuda", ("mm", "cuda", False)), ("tf32", None, "cuda", ("matmul", "cuda", True)),
        ("fp32", None, "cuda", ("matmul", "cuda", False)), ("e4m3fn", None, "cuda", ("_scaled_mm", "cuda", False)),
        ("fp16", None, "npu", ("matmul", "npu", False)), ("fp64", None, "cuda", ("matmul", "cuda", False)),
    ],
)  # fmt: skip
def test_torch_and_torch_npu(monkeypatch, fmt, d_format, device, call):
    """Small integers: every engine must give the exact product, through the call that users make."""
    torch = fake_torch(npu=True)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch_npu", type(sys)("torch_npu"))
    engine = TorchMatmulEngine(fmt, d_format, device)
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(-2, 3, (3, 4)), rng.integers(-2, 3, (4, 5)), rng.integers(-2, 3, (3, 5))
    values = [tcm.encode(x.astype(np.float64), fmt) for x in (a, b)]
    d = tcm.decode(engine.gemm_bits(*values), engine.d_format)
    np.testing.assert_array_equal(d, a @ b)
    with_c = engine.gemm_bits(*values, tcm.encode(c.astype(np.float64), engine.c_format))
    np.testing.assert_array_equal(tcm.decode(with_c, engine.d_format), a @ b + c)
    assert torch.calls[0] == call and not torch.backends.cuda.matmul.allow_tf32
    with pytest.raises(ValueError, match="the library chooses"):
        engine.gemm_bits(*values, k_order="split_k:2")


def test_cupy(monkeypatch):
    cupy = type(sys)("cupy")
    cupy.asarray, cupy.matmul, cupy.asnumpy = np.asarray, np.matmul, np.asarray
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(CupyMatmulEngine("fp32").gemm(a, a.T, np.ones((2, 2), np.float32)), a @ a.T + 1)


# -- operands ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_operands_of_every_kind_are_legal_encodings(name, kind):
    row = tcm.get_instruction(name)
    inputs = operands(row, kind, 2, np.random.default_rng(5))
    row.mma_bits(*inputs)  # checks containers, shapes and widths
    again = operands(row, kind, 2, np.random.default_rng(5))
    assert all(x is y is None or (x == y).all() for x, y in zip(inputs, again, strict=True))


def test_kinds_hold_what_they_say():
    row = tcm.get_instruction(NAMES[0])
    fp16 = tcm.get_format("fp16")

    def kind_of(kind):
        inputs = operands(row, kind, 40, np.random.default_rng(6))
        return inputs, inputs.a & fp16.magnitude_mask

    _, zeros = kind_of("zeros")
    assert 0.5 < (zeros == 0).mean() < 0.8
    _, subnormals = kind_of("subnormals")
    assert ((subnormals < 1 << 10) & (subnormals > 0)).mean() > 0.4
    inputs, _ = kind_of("cancellation")
    a, b = tcm.decode(inputs.a, "fp16"), tcm.decode(inputs.b, "fp16")
    opposite = a[:, 0, 0::2] * b[:, 0::2, 0] == -a[:, 0, 1::2] * b[:, 1::2, 0]
    assert opposite.mean() > 0.6
    _, edges = kind_of("edges")
    assert set(np.unique(edges)) <= set(edge_encodings(fp16) & fp16.magnitude_mask) and (edges == fp16.inf_bits).any()
    with pytest.raises(ValueError, match="unknown kind"):
        operands(row, "ones", 1, np.random.default_rng(0))


def test_what_is_missing_can_be_asked_before_use(monkeypatch):
    hardware.engine("cuda:mma.m16n8k16.f32.f16.f16.f32", FakeGpu()).require()
    ampere = CudaEngine(tcm.get_instruction("ampere:mma.m16n8k16.f32.f16.f16.f32"), FakeGpu("hopper"))
    with pytest.raises(RuntimeError, match="needs GPU architecture ampere"):
        ampere.require()
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    for name in ("torch:fp16", "cupy:fp16"):
        with pytest.raises(RuntimeError, match="needs the package"):
            hardware.engine(name).require()


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64", "tf32", "e4m3fn"])
def test_the_real_torch_on_the_cpu(name):
    """Small integers, so that every order of the sum gives the exact product."""
    pytest.importorskip("torch")
    engine = hardware.engine(f"torch:{name}@cpu")
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-3, 4, shape).astype(np.float64) for shape in ((16, 32), (32, 16), (16, 16)))
    bits = tcm.encode(a, engine.a_format), tcm.encode(b, engine.b_format)
    np.testing.assert_array_equal(tcm.decode(engine.gemm_bits(*bits), engine.d_format), a @ b)
    with_c = engine.gemm_bits(*bits, tcm.encode(c, engine.c_format))
    np.testing.assert_array_equal(tcm.decode(with_c, engine.d_format), a @ b + c)
