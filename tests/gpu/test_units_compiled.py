"""Kernels of units compiled here, for each target that the machine runs: bits at every edge, and what SASS counts."""

import dataclasses

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.families.base import SumAlgorithm
from tensorcore_models.families.fidelity import FidelityPhases
from tensorcore_models.families.scaled_dot import ScaledDotAdd
from tensorcore_models.gpu import costs, tensors
from tensorcore_models.kernels import lowered
from tensorcore_models.kernels.common import generic_promoted
from tensorcore_models.kernels.generic import generic_bits
from tensorcore_models.probing.edge_operands import EDGES, draw
from tensorcore_models.probing.random_operands import DrawnOperands

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import unit_machine  # noqa: E402
from unit_machine import normal  # noqa: E402

from tensorcore_models.gpu.compiling import compile_function, unit_kernel  # noqa: E402
from tensorcore_models.gpu.conversions import converted  # noqa: E402
from tensorcore_models.gpu.counting import loop_count  # noqa: E402
from tensorcore_models.gpu.modes import PROGRAMS, plan_of  # noqa: E402
from tensorcore_models.gpu.products import unit_on  # noqa: E402
from tensorcore_models.gpu.targets import get_target  # noqa: E402

pytestmark = pytest.mark.full

UNITS = (
    "volta:mma.m8n8k4.f32.f16.f16.f32", "ampere:mma.m16n8k16.f32.f16.f16.f32", "ampere:mma.m16n8k16.f32.bf16.bf16.f32",
    "hopper:mma.m16n8k8.f32.tf32.tf32.f32", "ada:mma.m16n8k32.f32.e4m3.e5m2.f32", "hopper:mma.m16n8k16.f32.f16.f16.f32",
    "hopper:mma.m16n8k16.f16.f16.f16.f16", "hopper:wmma.m16n16k16.f16.f16.f16.f32",
    "turing:wmma.m16n16k16.f16.f16.f16.f32", "ampere:wmma.m32n8k16.f32.f16.f16.f16",
    "hopper:mma.m16n8k16.f32.bf16.bf16.f32", "hopper:mma.m16n8k32.f32.e5m2.e4m3.f32",
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
    "arm:fmmla.m2n2k8.f32.e4m3.e5m2.f32", "arm:fdot.k2.f16.e5m2.e4m3.f16", "arm:fmopa.m8n8k1.f16.f16.f16.f16",
    "arm:bfmmla.m2n2k4.f32.bf16.bf16.f32",
    "arm:bfmopa.m8n8k1.bf16.bf16.bf16.bf16", "arm:bfmmla.m2n2k4.f32.bf16.bf16.f32.ebf", "x86:vdpbf16ps.k2.f32.bf16.bf16.f32",
    "x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32", "x86:tmmultf32ps.m16n16k16.f32.tf32.tf32.f32",
    "x86:tdphbf8ps.m16n16k64.f32.e4m3.e5m2.f32", "ascend:cube.m16n16k16.f32.f16.f16.f32",
    "ascend910b:cube.m16n16k8.f32.hf32.hf32.f32",
    "wormhole:matmul.m32n32k32.f32.f16.f16.f32.hifi4", "blackhole:matmul.m32n32k32.bf16.tf32.tf32.bf16.hifi2",
    "wormhole:mvmul.m8n16k16.f16.f16.f16.f16.phase3", "wormhole:matmul.m32n32k32.s32.s8.s8.s32.hifi3",
)  # fmt: skip


def engine_of(unit: str):
    return tcm.get_instruction(*unit.split(":", 1))


def has_mode(unit: str, target: str) -> bool:
    """Whether a mode holds a unit; how many there are of each target is a test of its own."""
    try:
        plan_of(lowered(engine_of(unit)), target)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120", "gfx942"])
@pytest.mark.parametrize("unit", UNITS)
def test_no_bit_differs(unit, target):
    if not has_mode(unit, target):
        pytest.skip("no mode")
    engine, machine = engine_of(unit), unit_machine.compiling(target)
    low, rng = lowered(engine), np.random.default_rng(11)
    plan = plan_of(low, target)
    for turn, edge in enumerate(EDGES):
        m, n, k = (int(x) for x in (rng.integers(1, 40), rng.integers(1, 40), rng.integers(1, 100)))
        if plan.mode.name == PROGRAMS.name:  # a last pass of another length is compiled anew
            k += (3 - k) % plan.step
        p = draw(rng, low, edge, turn, (m, n, k))
        _, found = unit_machine.run(engine, machine, p)
        assert np.array_equal(found, generic_bits(low, *p)), edge


def _small(low):
    """bf16 operands whose products lie about 2^-126, subnormal ones and c among them."""
    rng = np.random.default_rng(16)
    a, b = (
        (rng.integers(0, 2, s) << 15 | rng.integers(60, 66, s) << 7 | rng.integers(0, 128, s)).astype(np.uint16)
        for s in ((16, 40), (40, 16))
    )
    a[:3] &= 0x807F  # subnormal
    c = (rng.integers(0, 2, (16, 16)) << 31 | rng.integers(0, 1 << 24, (16, 16))).astype(np.uint32)
    p = DrawnOperands(a, b, c, None, None)
    return p, generic_bits(low, *p)


@pytest.mark.parametrize("unit", [
    "x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32", "x86:vdpbf16ps.k2.f32.bf16.bf16.f32", "arm:bfmmla.m2n2k4.f32.bf16.bf16.f32",
])  # fmt: skip
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_small_sums_are_zeros_of_their_sign(unit, target):
    engine, machine = engine_of(unit), unit_machine.compiling(target)
    p, expected = _small(lowered(engine))
    assert (expected == 0x80000000).any()
    _, found = unit_machine.run(engine, machine, p)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("unit", ["x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32", "x86:vdpbf16ps.k2.f32.bf16.bf16.f32"])
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_small_sums_that_are_rounded_up_are_done_again(unit, target):
    """x86: 2^-126 (1 + 2^-14), less 2^-140 and 9/16 of 2^-150, is 2^-126 in FP32, but below it with 24 bits, and so 0."""
    engine, machine = engine_of(unit), unit_machine.compiling(target)
    a, b = np.zeros((1, 32)), np.zeros((32, 1))
    a[0, [1, 3, 5]], b[[1, 3, 5], 0] = (
        (1 + 2.0**-7, -(2.0**-6), -169 * 2.0**-30),
        (129 * 2.0**-133, 2.0**-126, 97 * 2.0**-124),
    )
    p = operands_of(engine, a, b, [[0.0]])
    done, found = unit_machine.run(engine, machine, p)
    assert done.again == ((0, 0, 0),) and found.item() == generic_bits(lowered(engine), *p).item() == 0


def operands_of(engine, a, b, c) -> DrawnOperands:
    """Values, rows of A beside columns of B, as encodings."""
    low = lowered(engine)
    formats = low.a_format, low.b_format, low.c_format
    codes = [tcm.encode(np.array(x, np.float64), f.name, "rne") for x, f in zip((a, b, c), formats, strict=True)]
    return DrawnOperands(*codes, None, None)


@pytest.mark.parametrize("target", ["sm_89", "sm_90", "gfx942"])
def test_sums_of_cdna3_are_cut_down_before_they_are_rounded(target):
    """A bit below the 31st after a tie: of a negative sum it counts, of a positive one it does not."""
    engine, machine = engine_of("cdna3:v_mfma_f32_32x32x8_f16"), unit_machine.compiling(target)
    for sign, expected in ((-1, -2 - 2.0**-22), (1, 2.0)):
        p = operands_of(
            engine, [[2.0**-11, 2.0**-15]], [[sign * 2.0**-11], [sign * 2.0**-16]], [[sign * (2 - 2.0**-23)]]
        )
        done, found = unit_machine.run(engine, machine, p)
        assert done.again == () and found.view(np.float32).item() == expected
        assert np.array_equal(found, generic_bits(lowered(engine), *p))


@pytest.mark.parametrize(("unit", "expected"), [
    ("hopper:mma.m16n8k16.f16.f16.f16.f16", 2), ("hopper:wmma.m16n16k16.f16.f16.f16.f32", 3),
])  # fmt: skip
@pytest.mark.parametrize("target", ["sm_89", "sm_90", "gfx942"])
def test_small_results_in_fp16_have_the_exponent_of_their_sum(unit, expected, target):
    """A chain that goes on from 2^-23 and half of a unit: 2^-41 decides the tie where the sum is one of FP32, and is cut off
    below the last place of FP16's exponent.
    """
    engine, machine = engine_of(unit), unit_machine.compiling(target)
    a, b = np.zeros((1, 32)), np.zeros((32, 1))
    a[0, 16:18], b[16:18, 0] = (2.0**-12, 2.0**-20), (2.0**-13, 2.0**-21)
    p = operands_of(engine, a, b, [[2.0**-23]])
    done, found = unit_machine.run(engine, machine, p)
    assert done.again == () and found.item() == generic_bits(lowered(engine), *p).item() == expected


@pytest.mark.parametrize(("unit", "expected"), [
    ("cdna1:v_mfma_f32_32x32x8f16", 0), ("arm:fmopa.m4n4k2.f32.f16.f16.f32", 1 << 31),
    ("arm:fmopa.m8n8k1.f16.f16.f16.f16", 1 << 15), ("arm:fdot.k4.f32.e5m2.e5m2.f32", 1 << 31),
])  # fmt: skip
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_signs_of_sums_that_are_zero(unit, expected, target):
    """-0 beside products that are -0; the last of three fills no step, and zeros beside it are +0."""
    engine, machine = engine_of(unit), unit_machine.compiling(target)
    for count, sign in ((8, expected), (3, expected if engine.k == 1 else 0)):
        p = operands_of(engine, [[-0.0] * count], [[0.0]] * count, [[-0.0]])
        done, found = unit_machine.run(engine, machine, p)
        assert done.again == () and found.item() == generic_bits(lowered(engine), *p).item() == sign, count


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("bit", [2.0**-48, 0.0, -(2.0**-48)])
def test_what_fp64_loses_decides_a_tie(sign, bit):
    """2^20 and half of its unit, and a bit below the last place of FP64, whose sum of errors holds it on AMD's target."""
    engine, machine = engine_of("cdna1:v_mfma_f32_32x32x8f16"), unit_machine.compiling("gfx942")
    a = [[np.copysign(2.0**-24, sign * bit), sign * 2.0**-4]]
    p = operands_of(engine, a, [[abs(bit) * 2.0**24], [1.0]], [[sign * (2.0**20 + 0.125)]])
    done, found = unit_machine.run(engine, machine, p)
    expected = sign * (2.0**20 + (0.125 if bit < 0 else 0.25))
    assert done.again == () and found.view(np.float32).item() == expected
    assert np.array_equal(found, generic_bits(lowered(engine), *p))


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_exact_sums_in_bf16_see_what_fp32_does_not(target):
    spec = tcm.ParametricDotAdd(2, None, output_rounding="rne", nan="quiet", negative_underflow="negative")
    engine = tcm.MatrixEngine(spec, a_format="bf16", c_format="bf16", d_format="bf16")
    for bit, expected in ((2.0**-40, 0x3F81), (0.0, 0x3F80)):
        p = operands_of(engine, [[2.0**-4, bit]], [[2.0**-4], [1.0]], [[1.0]])
        done, found = unit_machine.run(engine, unit_machine.compiling(target), p)
        assert done.again == () and found.item() == generic_bits(lowered(engine), *p).item() == expected


@pytest.mark.parametrize("target", ["sm_89", "sm_90", "gfx942"])
@pytest.mark.parametrize("unit", [u for u in UNITS if "block32" in u])
def test_block_scales_of_one_range(unit, target):
    """No tile of operands and scales about 1 is done again; one scale that is NaN is seen in its row of tiles."""
    if not has_mode(unit, target):
        pytest.skip("no mode")
    low, machine = lowered(engine_of(unit)), unit_machine.compiling(target)
    p = normal(low, 18, (21, 18, 100))
    done, found = unit_machine.run(engine_of(unit), machine, p)
    assert done.again == () and np.array_equal(found, generic_bits(low, *p))
    p.scale_a[20, 3] = 255
    done, found = unit_machine.run(engine_of(unit), machine, p)
    assert np.array_equal(found, generic_bits(low, *p))
    if done.mode != PROGRAMS.name:  # which do NaN themselves
        assert done.again and min(row for _, row, _ in done.again) > 0


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("scale", [0, 5, 127])
def test_sums_are_scaled(scale, target):
    """Arm's LSCALE."""
    spec, machine = ScaledDotAdd(4, scale), unit_machine.compiling(target)
    engine = tcm.MatrixEngine(spec, a_format="e4m3fn", b_format="e5m2")
    for turn, edge in enumerate(EDGES):
        p = draw(np.random.default_rng(17), lowered(engine), edge, turn, (9, 7, 30))
        _, found = unit_machine.run(engine, machine, p)
        assert np.array_equal(found, generic_bits(lowered(engine), *p)), edge


@pytest.mark.parametrize("tile", [8, 16, 24])
def test_phases_take_turns_over_tiles_of_other_sizes(tile):
    """A last tile shorter than a step, steps shorter than 16 products, and chains added outside."""
    spec, machine = FidelityPhases((0, 1, 3), tile), unit_machine.compiling("sm_90")
    engine = tcm.MatrixEngine(spec, a_format="fp16", k=tile)
    for turn, length in enumerate((3, tile, 2 * tile + 1, 40, 72)):
        p = draw(np.random.default_rng(15), lowered(engine), EDGES[turn], turn, (9, 7, length))
        _, found = unit_machine.run(engine, machine, p)
        assert np.array_equal(found, generic_bits(lowered(engine), *p)), length
        _, found = unit_machine.run(engine, machine, p, every=2 * tile)
        assert np.array_equal(found, generic_promoted(lowered(engine), *p, 2 * tile)), length


def test_a_sum_of_minus_one_unit():
    """Wormhole's is 2^27 times as large."""
    for name, value in (("wormhole", -16.0), ("blackhole", -(2.0**-23))):
        engine = engine_of(f"{name}:mvmul.m8n16k16.f32.bf16.bf16.f32.phase0")
        one = np.full((1, 1), 0x3F80, np.uint16)
        p = DrawnOperands(one, one, np.array([[-1 - 2.0**-23]], np.float32).view(np.uint32), None, None)
        done, found = unit_machine.run(engine, unit_machine.compiling("sm_90"), p)
        assert found.view(np.float32).item() == value and np.array_equal(found, generic_bits(lowered(engine), *p))
        assert done.again == ()


@pytest.mark.parametrize("terms", ["volta", "ampere", "hopper"])
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_an_fp32_addend_of_fp16_results_keeps_its_exponent(terms, target):
    """Half of the smallest number and a bit: above the tie in the unit of c, on it (and 0) in that of FP16's numbers."""
    engine, machine = engine_of(f"{terms}:wmma.m16n16k16.f16.f16.f16.f32"), unit_machine.compiling(target)
    c = np.array([[2.0**-25 * (1 + 2.0**-14), -(2.0**-24) * 1.5, 2.0**-25, 3.0, 2.0**-14 * 1.0001]], np.float32)
    p = DrawnOperands(np.zeros((1, 48), np.uint16), np.zeros((48, 5), np.uint16), c.view(np.uint32), None, None)
    done, found = unit_machine.run(engine, machine, p)
    assert done.again == () and np.array_equal(found, generic_bits(lowered(engine), *p))
    assert found.tolist() == [[1, 0x8002, 0, 0x4200, 0x0400]]


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
        length = (1, 2)[turn % 2]  # one chain starts from 0, too
        p = draw(rng, low, edge, turn, (9, 7, length * every))
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


def _products() -> dict:
    """Products of torch that are no `mm`, each on its operands; sizes that long chains on a GPU would have are not needed."""
    rng = np.random.default_rng(19)
    fp8 = [torch.from_numpy(rng.standard_normal(s)).to(torch.float8_e4m3fn) for s in ((16, 96), (32, 96))]
    one, rows = torch.tensor(0.5), torch.from_numpy(rng.uniform(0.5, 2, 48)).float()
    wide = [torch.from_numpy(rng.standard_normal(s)).bfloat16() for s in ((24, 32), (2, 32, 16))]
    integers = [torch.from_numpy(rng.integers(-128, 128, s).astype(np.int8)) for s in ((24, 40), (40, 16))]
    ends = torch.tensor([8, 24], dtype=torch.int32)
    scales = rows[:16, None].contiguous(), rows[None, 16:].contiguous()
    return {
        "_scaled_mm, one scale": lambda: torch._scaled_mm(fp8[0], fp8[1].t(), one, one, out_dtype=torch.bfloat16),
        "_scaled_mm, rows": lambda: torch._scaled_mm(fp8[0], fp8[1].t(), *scales, out_dtype=torch.bfloat16),
        "_int_mm": lambda: torch._int_mm(*integers),
        "_grouped_mm": lambda: torch._grouped_mm(*wide, offs=ends),
    }


@pytest.mark.parametrize("name", _products())
def test_the_torch_mode_multiplies_with_scales_there(as_gpu, monkeypatch, name):
    from mpgemm.frameworks import torch_mode
    from mpgemm.torch import emulate

    with emulate("h100"):
        expected = _products()[name]()
    ran, run_bits = [], tensors.run_bits
    monkeypatch.setattr(tensors, "run_bits", lambda *a, **o: ran.append(1) or run_bits(*a, **o))
    monkeypatch.setattr(torch_mode, "on_gpu", tensors.is_tensor)
    with emulate("h100"):
        found = _products()[name]()
    assert ran and found.dtype == expected.dtype and found.device == expected.device
    assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


@pytest.mark.parametrize("m", [1, 9])
def test_block_scales_on_tensors(as_gpu, m):
    """Values with scales as numbers and in their type, encodings with theirs: a tensor with the bits of arrays."""
    engine = engine_of("blackwell:tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0")
    p = normal(lowered(engine), 20, (m, 8, 96))
    codes = [torch.from_numpy(np.ascontiguousarray(x)) for x in p]
    expected = engine.gemm_bits(*p)
    assert np.array_equal(engine.gemm_bits(*codes).numpy(), expected)
    a, b = (x.view(torch.float8_e4m3fn) for x in codes[:2])
    c = codes[2].view(torch.float32)
    for kind in (torch.float8_e8m0fnu, torch.float32):
        scales = [x.view(torch.float8_e8m0fnu).to(kind) for x in codes[3:]]
        found = engine.gemm(a, b, c, scale_a=scales[0], scale_b=scales[1])
        assert np.array_equal(found.numpy().view(np.uint32), expected), kind
