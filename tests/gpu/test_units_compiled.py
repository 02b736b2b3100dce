"""Kernels of units compiled here, for each target that the machine runs: bits at every edge, and what SASS counts."""

import dataclasses

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.families.base import SumAlgorithm
from tensorcore_models.gpu import costs, tensors
from tensorcore_models.kernels import lowered
from tensorcore_models.kernels.common import generic_promoted
from tensorcore_models.kernels.generic import generic_bits
from tensorcore_models.probing.edges import EDGES, draw
from tensorcore_models.probing.random_operands import DrawnOperands

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import unit_machine  # noqa: E402

from tensorcore_models.gpu.compiling import compile_function, unit_kernel  # noqa: E402
from tensorcore_models.gpu.conversions import converted  # noqa: E402
from tensorcore_models.gpu.counting import loop_count  # noqa: E402
from tensorcore_models.gpu.products import unit_on  # noqa: E402
from tensorcore_models.gpu.targets import get_target  # noqa: E402

pytestmark = pytest.mark.full

UNITS = (
    "volta:mma.m8n8k4.f32.f16.f16.f32", "ampere:mma.m16n8k16.f32.f16.f16.f32", "ampere:mma.m16n8k16.f32.bf16.bf16.f32",
    "hopper:mma.m16n8k8.f32.tf32.tf32.f32", "ada:mma.m16n8k32.f32.e4m3.e5m2.f32", "hopper:mma.m16n8k16.f32.f16.f16.f32",
    "hopper:mma.m16n8k16.f16.f16.f16.f16", "hopper:mma.m16n8k16.f32.bf16.bf16.f32", "hopper:mma.m16n8k32.f32.e5m2.e4m3.f32",
    "hopper:mma.m16n8k32.f16.e4m3.e4m3.f16", "hopper:wgmma.m64n128k32.f32.e4m3.e4m3", "hopper:wgmma.m64n128k32.f16.e5m2.e4m3",
    "cdna3:v_mfma_f32_32x32x8_f16", "cdna3:v_mfma_f32_32x32x8_bf16", "cdna3:v_mfma_f32_16x16x8_xf32",
    "cdna3:v_mfma_f32_16x16x32_bf8_fp8", "blackwell:tcgen05.mma.m128n8k32.block32.f32.e5m2.e5m2.ue8m0",
    "rtx_blackwell:mma.m16n8k32.block32.f32.e2m1.e3m2.f32.ue8m0", "ampere:mma.m8n8k4.f32.f16.f16.f32",
    "cdna1:v_mfma_f32_32x32x8f16", "cdna1:v_mfma_f32_32x32x4bf16", "cdna2:v_mfma_f32_32x32x8f16",
    "cdna2:v_mfma_f32_16x16x8bf16",
    "blackwell:tcgen05.mma.m128n8k64.block16.f32.e2m1.e2m1.ue4m3",
    "rtx_blackwell:mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0",
    "gaudi2:mme.k8.f32.bf16.bf16.f32", "gaudi2:mme.k4.f32.tf32.tf32.f32", "gaudi2:mme.k2.f32.f32.f32.f32",
    "gaudi2:mme.k16.f32.e4m3.e4m3.f32", "gaudi3:mme.k2.f32.f16.ufp16.f32", "gaudi3:mme.k1.f32.f32.f32.f32",
    "riscv:vfwbdot.k8.f32.bf16.bf16.f32", "riscv:vfqbdot.k64.f32.e5m2.e4m3.f32",
    "ascend950:cube.m16n16k32.f32.hif8.hif8.f32",
    "cdna1:v_mfma_f32_32x32x2f32", "turing:mma.m8n8k16.s32.s8.s8.s32.satfinite", "turing:mma.m8n8k32.s32.s4.u4.s32",
)  # fmt: skip


def engine_of(unit: str):
    return tcm.get_instruction(*unit.split(":", 1))


#: Units that AMD's kernels hold.
ON_AMD = [
    u
    for u in UNITS
    if u.startswith(("volta", "turing", "ampere", "ada", "hopper", "cdna1:v_mfma_f32_32x32x2f32", "cdna2", "ascend"))
    and "f16.f16.f16.f16" not in u
]
ON_AMD = [u for u in ON_AMD if not u.endswith(("f16", "f16.e5m2.e4m3"))]


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("unit", UNITS)
def test_no_bit_differs(unit, target):
    if target == "gfx942" and unit not in ON_AMD:
        pytest.skip("AMD has no mode for it")
    if target == "sm_100" and unit.startswith("cdna2"):
        pytest.skip("its text packs halves that were never written")
    engine, machine = engine_of(unit), unit_machine.compiling(target)
    low, rng = lowered(engine), np.random.default_rng(11)
    for turn, edge in enumerate(EDGES):
        m, n, k = (int(x) for x in (rng.integers(1, 40), rng.integers(1, 40), rng.integers(1, 100)))
        p = draw(rng, low, edge, turn, (m, n, k))
        _, found = unit_machine.run(engine, machine, p)
        assert np.array_equal(found, generic_bits(low, *p)), edge


def test_bounds_that_round_apart_are_done_again():
    """Operands of one scale never are; half a unit of c and a bit that FP64 loses is."""
    engine, machine = engine_of("cdna1:v_mfma_f32_32x32x8f16"), unit_machine.compiling("sm_90")
    low, rng = lowered(engine), np.random.default_rng(15)
    a, b = (tcm.encode(rng.standard_normal(s), "fp16", "rne") for s in ((9, 64), (64, 8)))
    p = DrawnOperands(a, b, rng.standard_normal((9, 8)).astype(np.float32).view(np.uint32), None, None)
    done, found = unit_machine.run(engine, machine, p)
    assert done.again == () and np.array_equal(found, generic_bits(low, *p))
    a[:, :], b[:, :] = 0, 0
    a[0, :2], b[:2, 0] = (0x0001, 0x2C00), (0x0001, 0x3C00)  # 2^-48 and 2^-4, half a unit of 2^20
    p.c[:] = np.float32(2**20).view(np.uint32)
    done, found = unit_machine.run(engine, machine, p)
    assert done.again == ((0, 0, 0),) and np.array_equal(found, generic_bits(low, *p))
    assert found[0, 0] == p.c[0, 0] + 1


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("lost", [None, "operands", "results", "c"])
def test_trees_flush_what_is_small(target, lost):
    """bf16 products and sums about 2^-126, subnormal operands and c; `lost`: a flush that is left out, which is noticed."""
    engine, machine = engine_of("cdna2:v_mfma_f32_16x16x16bf16_1k"), unit_machine.compiling(target)
    low, rng = lowered(engine), np.random.default_rng(14)
    a, b = (
        rng.integers(0, 2, s) << 15 | rng.integers(62, 66, s) << 7 | rng.integers(0, 128, s) for s in ((9, 32), (32, 8))
    )
    a[:3] &= 0x807F  # subnormal
    b[:, :3] |= 0x3F80
    c = rng.integers(0, 2, (9, 8)) << 31 | rng.integers(0, 1 << 24, (9, 8))
    p = [unit_machine.tensor_of(x.astype(t)) for x, t in ((a, np.uint16), (b, np.uint16), (c, np.uint32))]
    unit = unit_on(low, machine.target, machine, each=(2, 1), warps=(1, 1))
    group, of_c, results = unit.plan.constants["TREE"]
    tree = group, of_c and lost != "c", results and lost != "results"
    plan = dataclasses.replace(unit.plan, constants={**unit.plan.constants, "TREE": tree})
    if lost == "operands":
        spec = dataclasses.replace(low.form.spec, flush_input="none")
        plan = dataclasses.replace(plan, low=lowered(dataclasses.replace(engine, accumulator=spec)))
    found = dataclasses.replace(unit, plan=plan).run(*p).bits[0].numpy().view(np.uint32)
    expected = generic_bits(low, a.astype(np.uint16), b.astype(np.uint16), c.astype(np.uint32))
    assert np.array_equal(found, expected) == (lost is None)


@pytest.mark.parametrize(
    "unit",
    [u for u in UNITS if "f32.f16" in u or "e4m3.e4m3" in u or "block32" in u or u.startswith(("cdna1", "cdna2"))],
)
def test_chains_are_added_outside(unit):
    engine, machine = engine_of(unit), unit_machine.compiling("sm_90")
    low, rng = lowered(engine), np.random.default_rng(12)
    if low.d_format.name != "fp32" or low.form.algorithm is SumAlgorithm.INTERLEAVED:
        pytest.skip("the host adds these")
    every = 2 * max(engine.k, low.block_size or 1)
    for turn, edge in enumerate(EDGES):
        p = draw(rng, low, edge, turn, (9, 7, 2 * every))
        _, found = unit_machine.run(engine, machine, p, every=every)
        assert np.array_equal(found, generic_promoted(low, *p, every)), edge


@pytest.mark.parametrize(
    ("target", "each"),
    [("sm_90", (4, 4)), ("sm_90", (1, 2)), ("gfx942", (1, 1)), ("gfx942", (2, 2)), ("gfx942", (4, 2))],
)
def test_tiles_of_other_sizes_have_the_same_bits(target, each):
    engine, machine = engine_of("hopper:mma.m16n8k16.f32.f16.f16.f32"), unit_machine.compiling(target)
    p = draw(np.random.default_rng(13), lowered(engine), "cancelling", 0, (40, 70, 48))
    _, found = unit_machine.run(engine, machine, p, each=each, warps=(2, 2))
    assert np.array_equal(found, generic_bits(lowered(engine), *p))


@pytest.mark.parametrize(("unit", "target"), costs.COUNTED)
def test_counted_instructions(unit, target):
    engine, made = engine_of(unit), []
    low, row = lowered(engine), get_target(target)

    def launch(what):
        if not what.function.startswith("pack"):
            made.append(
                (compile_function(unit_kernel(what.function), what, row, aligned=True).binary, what.constants["TERMS"])
            )

    types = {1: torch.int8, 2: torch.int16, 4: torch.int32}
    device = unit_on(low, row, launch, unit)
    a, b = (torch.zeros((1, 64, 256), dtype=types[f.container.itemsize]) for f in (low.a_format, low.b_format))
    scales = (None, None)
    if low.scale_format is not None:
        scales = (torch.zeros((1, 64, 256 // low.block_size), dtype=torch.int8),) * 2
    if device.plan.given is not None:
        a, b = (converted(device.plan.given, codes, side) for side, codes in enumerate((a, b)))
    device.chain(a, b, None, None, scales)
    binary, terms = made[0]
    found = loop_count(binary, terms * device.each[0] * device.each[1])
    assert found.each == pytest.approx(costs.COUNTED[unit, target], abs=0.005)
    assert found.spills == 0


@pytest.fixture
def as_gpu(monkeypatch):
    """Tensors on the CPU count as a GPU's."""
    machine = unit_machine.compiling("sm_90")
    gpu = tensors.GPU(machine.target, machine, unit_machine.WARPS, unit_machine.EACH)
    monkeypatch.setattr(tensors, "gpu_of", lambda tensor: gpu)
    is_gpu = lambda *operands: tensors.is_tensor(operands[0])  # noqa: E731
    monkeypatch.setattr(tensors, "on_gpu", is_gpu)
    monkeypatch.setattr(tensors, "WORTH_DEVICE", 0)
    return is_gpu


def test_the_torch_mode_multiplies_there(as_gpu, monkeypatch):
    from mpgemm.frameworks import torch_mode
    from mpgemm.torch import emulate

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 24), torch.nn.ReLU(), torch.nn.Linear(24, 9)).half()
    x = torch.randn(5, 40, dtype=torch.float16)
    with torch.no_grad(), emulate("h100"):
        expected = model(x)
    ran = []
    monkeypatch.setattr(torch_mode, "on_gpu", lambda *operands: ran.append(1) or True)
    with torch.no_grad(), emulate("h100"):
        found = model(x)
    assert ran and torch.equal(found.view(torch.int16), expected.view(torch.int16))


def test_promotion_and_sums_outside_on_tensors(as_gpu):
    rng, engine = np.random.default_rng(2), engine_of("hopper:wgmma.m64n128k32.f32.e4m3.e4m3")
    a, b = (torch.from_numpy(rng.standard_normal(s)).to(torch.float8_e4m3fn) for s in ((9, 128), (128, 10)))
    x, y = (tcm.encode(v.float().numpy(), "e4m3fn") for v in (a, b))
    for options in ({}, {"promote_every": 64}, {"k_order": "split_k:2"}):
        found = engine.gemm(a, b, **options)
        assert np.array_equal(found.numpy().view(np.uint32), engine.gemm_bits(x, y, **options))
