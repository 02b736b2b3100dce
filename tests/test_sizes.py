"""Every public function that takes a size takes NumPy's integers for it, and refuses what is no integer in one line."""

import dataclasses

import numpy as np
import pytest

import ascend
import mpgemm
import tensorcore_models as tcm
from mpgemm import inputs
from tensorcore_models import libraries

CHIP = ascend.get_chip("910A")
B = ascend.Blocking(64, 64, 64)
SCHEDULE = ascend.build_schedule(100, 200, 300, CHIP, B)
A32 = np.float32([[1.5, 2.5], [3.5, 4.5]])
HALF = A32.astype(np.float16)
ENGINE = tcm.MatrixEngine(tcm.FusedDotAdd(terms=2, fraction_bits=24), a_format="fp16")


def build(m=100, k=200, n=300, **options):
    return ascend.build_schedule(m, k, n, CHIP, B, **options)


def traffic(m=100, k=200, n=300):
    return ascend.traffic(B, m, k, n, CHIP)


def planned(m=64, k=64, n=64, **options):
    return [(p.schedule, p.seconds) for p in ascend.plan(m, k, n, CHIP, rank="analytic", **{"top": 2} | options)]


def callable_engine(k):
    return tcm.as_engine(lambda a, b, c: a @ b + c, a_format="fp32", d_format="fp32", k=k).gemm(A32, A32)


def cutlass(**sizes):
    return libraries.cutlass("hopper:mma.m16n8k16.f32.f16.f16.f32", **{"k": 64} | sizes)


#: Name: (function of one size, a good value of it).
SIZES = {
    "Blocking.bm": (lambda x: ascend.Blocking(x, 64, 64), 64),
    "Blocking.bk": (lambda x: ascend.Blocking(64, x, 64), 64),
    "Blocking.bn": (lambda x: ascend.Blocking(64, 64, x), 64),
    "Blocking.n_fused words": (lambda x: B.n_fused(CHIP, words=x), 2),
    "Blocking.fusion_efficiency words": (lambda x: B.fusion_efficiency(CHIP, words=x), 2),
    "Blocking.rejections words": (lambda x: B.rejections(CHIP, words=x), 2),
    "Blocking.is_feasible words": (lambda x: B.is_feasible(CHIP, words=x), 2),
    "candidate_rejections bm": (lambda x: ascend.candidate_rejections(x, 64, 64, CHIP), 64),
    "candidate_rejections bk": (lambda x: ascend.candidate_rejections(64, x, 64, CHIP), 64),
    "candidate_rejections bn": (lambda x: ascend.candidate_rejections(64, 64, x, CHIP), 64),
    "candidate_rejections words": (lambda x: ascend.candidate_rejections(64, 64, 64, CHIP, words=x), 2),
    "feasible_blocks words": (lambda x: len(ascend.feasible_blocks(CHIP, words=x)), 2),
    "rejections words": (lambda x: ascend.rejections(CHIP, words=x), 2),
    "Grid.m": (lambda x: ascend.Grid(m=x), 2),
    "Grid.k": (lambda x: ascend.Grid(k=x), 2),
    "Grid.n": (lambda x: ascend.Grid(n=x), 2),
    "Swizzle.offset": (lambda x: ascend.Swizzle(offset=x), 3),
    "Swizzle.direction": (lambda x: ascend.Swizzle(direction=x), 1),
    "traffic m": (lambda x: traffic(m=x), 100),
    "traffic k": (lambda x: traffic(k=x), 100),
    "traffic n": (lambda x: traffic(n=x), 100),
    "Traffic.bytes": (lambda x: traffic().bytes(x), 2),
    "roofline m": (lambda x: ascend.roofline(B, x, 200, 300, CHIP), 100),
    "roofline element_bytes": (lambda x: ascend.roofline(B, 100, 200, 300, CHIP, element_bytes=x), 2),
    "operational_intensity k": (lambda x: ascend.operational_intensity(B, 100, x, 300, CHIP), 200),
    "build_schedule m": (lambda x: build(m=x), 100),
    "build_schedule k": (lambda x: build(k=x), 200),
    "build_schedule n": (lambda x: build(n=x), 300),
    "build_schedule terms": (lambda x: build(terms=x), 3),
    "build_schedule cores": (lambda x: build(cores=x), 4),
    "build_schedule split": (lambda x: build(kernel="grid", split=x), 2),
    "build_schedule grid": (lambda x: build(kernel="grid", grid=(x, 1, 1)), 2),
    "build_schedule n_fused": (lambda x: build(kernel="grid", n_fused=x), 2),
    "build_schedule depth": (lambda x: build(kernel="grid", depth=x), 2),
    "TileSchedule m": (lambda x: dataclasses.replace(SCHEDULE, m=x), 100),
    "TileSchedule terms": (lambda x: dataclasses.replace(SCHEDULE, terms=x), 3),
    "TileSchedule n_fused": (lambda x: dataclasses.replace(SCHEDULE, n_fused=x), 2),
    "TileSchedule.unblocked k": (lambda x: ascend.TileSchedule.unblocked(m=2, k=x, n=2), 20),
    "plan m": (lambda x: planned(m=x), 64),
    "plan k": (lambda x: planned(k=x), 64),
    "plan n": (lambda x: planned(n=x), 64),
    "plan terms": (lambda x: planned(terms=x), 3),
    "plan top": (lambda x: planned(top=x), 2),
    "plan split": (lambda x: planned(split=x), 2),
    "plan simulated": (lambda x: planned(simulated=x), 2),
    "pareto m": (lambda x: [p.label() for p in ascend.pareto(x, 32, 32, CHIP)], 32),
    "scaled_mm_recipe k": (lambda x: libraries.scaled_mm_recipe(x).name, 64),
    "scaled_mm_recipe split_k": (lambda x: libraries.scaled_mm_recipe(1024, split_k=x, scheme="pairwise").name, 2),
    "restart_every": (lambda x: mpgemm.recovered_gemm(A32, A32, method="bf16x3", restart_every=x).tolist(), 16),
    "Chip.cores": (lambda x: dataclasses.replace(CHIP, cores=x), 4),
    "Chip.replace": (lambda x: CHIP.replace(l1_bytes=x), 1 << 20),
    "cube_gemm group": (lambda x: ascend.cube_gemm(A32, A32, order="elementwise", group=x).tolist(), 2),
    "cube_gemm scale_exponent": (lambda x: ascend.cube_gemm(A32, A32, scale_exponent=x).tolist(), 12),
    "reconstruct scale": (lambda x: ascend.reconstruct(A32, A32, A32, x).tolist(), 12),
    "MatrixEngine k": (lambda x: tcm.MatrixEngine(tcm.FusedDotAdd(2, 24), k=x), 4),
    "MatrixEngine block_size": (
        lambda x: tcm.MatrixEngine(tcm.FusedDotAdd(2, 24), a_format="e4m3fn", scale_format="ue8m0", block_size=x), 32),
    "as_engine k": (lambda x: callable_engine(x).tolist(), 2),
    "gemm promote_every": (lambda x: ENGINE.gemm(HALF, HALF, promote_every=x).tolist(), 2),
    "with_shape m": (lambda x: tcm.get_instruction("hopper:wgmma.m64n8k16.f32.f16.f16").with_shape(x, 16), 64),
    "with_shape n": (lambda x: tcm.get_instruction("hopper:wgmma.m64n8k16.f32.f16.f16").with_shape(64, x), 16),
    "quantize_blocks block": (lambda x: tcm.quantize_blocks(np.ones((2, 32)), ("e4m3fn", "ue8m0", x), axis=1).block_size, 32),
    "quantize_blocks axis": (lambda x: tcm.quantize_blocks(np.ones((32, 32)), "mxfp8_e4m3", axis=x).axis, 0),
    "split words": (lambda x: [w.tolist() for w in tcm.split(A32, "fp16", x)], 2),
    "encode seed": (lambda x: tcm.encode(A32, "e2m1", "sr", seed=x).tolist(), 7),
    "encode scale_exponent": (lambda x: tcm.encode(A32, "fp16", scale_exponent=x).tolist(), 2),
    "set_num_threads": (lambda x: (tcm.set_num_threads(x), tcm.get_num_threads(), tcm.set_num_threads(None))[1], 2),
    "allowed_scale_exponents": (lambda x: tcm.allowed_scale_exponents(-3, x), 3),
    "cutlass k": (lambda x: cutlass(k=x), 64),
    "cutlass tile_k": (lambda x: cutlass(tile_k=x), 32),
    "cutlass split_k": (lambda x: cutlass(split_k=x), 2),
    "generate m": (lambda x: [v.tolist() for v in inputs.generate("normal", x, 3, 4)], 2),
    "generate k": (lambda x: [v.tolist() for v in inputs.generate("normal", 2, x, 4)], 3),
    "generate n": (lambda x: [v.tolist() for v in inputs.generate("normal", 2, 3, x)], 4),
    "generate seed": (lambda x: [v.tolist() for v in inputs.generate("normal", 2, 3, 4, seed=x)], 5),
    "mp_gemm prec": (lambda x: mpgemm.mp_gemm(A32, A32, prec=x), 100),
    "sgemm threads": (lambda x: mpgemm.sgemm(A32, A32, threads=x).tolist(), 2),
    "RecoveryMethod words": (lambda x: dataclasses.replace(mpgemm.get_method("ootomo"), words=x), 2),
    "RecoveryMethod slice_bits": (lambda x: dataclasses.replace(mpgemm.get_method("ozaki_int8"), slice_bits=x), 7),
}  # fmt: skip


@pytest.mark.sweep(21)
@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_an_integer(name):
    function, good = SIZES[name]
    assert function(np.int64(good)) == function(good)
    assert function(np.int32(good)) == function(good)
    for bad in (good + 0.5, True, np.True_, "2", np.float64(good) + 0.25):
        with pytest.raises((TypeError, ValueError)) as refused:
            function(bad)
        assert "\n" not in str(refused.value) and str(refused.value), bad


def test_large_numpy_sizes_do_not_overflow():
    """Sizes are taken as Python's integers: products of int32 ones would wrap."""
    size = np.int32(60000)
    assert ascend.traffic(B, size, size, size, CHIP) == ascend.traffic(B, 60000, 60000, 60000, CHIP)
