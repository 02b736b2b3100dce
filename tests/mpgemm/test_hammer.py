"""Public objects shared by eight threads: the same bits as alone, and no crash."""

import threading

import numpy as np
import pytest

import ascend
import mpgemm
import tensorcore_models as tcm
from mpgemm.experiments.cases import given_case
from mpgemm.experiments.evaluate import forget_inputs, measure
from mpgemm.experiments.methods import build_methods
from mpgemm.recovery import integer_joins
from tensorcore_models import libraries, probing
from tensorcore_models.kernels import dispatch

THREADS = 8
RNG = np.random.default_rng(7)
A, B = RNG.standard_normal((72, 96)), RNG.standard_normal((96, 72))
A32, B32 = RNG.standard_normal((64, 96)).astype(np.float32), RNG.standard_normal((96, 64)).astype(np.float32)
HALF = A32.astype(np.float16), B32.astype(np.float16)
SLICED = np.tile(HALF[0][:4], (1, 1500)), np.tile(HALF[1][:, :4], (1500, 1))  # longer than a slice of k
FP32 = build_methods(["fp32"])[0]
TILE = [
    tcm.encode(RNG.standard_normal(s), f)
    for s, f in (((64, 16, 16), "fp16"), ((64, 16, 8), "fp16"), ((64, 16, 8), "fp32"))
]


def digest(*arrays) -> bytes:
    return b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)


def fresh_engine():
    return tcm.MatrixEngine(tcm.FusedDotAdd(terms=8, fraction_bits=24), a_format="fp16")


#: What is shared, made anew for each round, and what each thread does with it.
SHARED = {
    "ExactResult.rounded": (lambda: mpgemm.exact_gemm(A, B), lambda e: digest(e.rounded("fp64"), e.rounded("fp32"))),
    "ExactResult fp32": (lambda: mpgemm.exact_gemm(A32, B32), lambda e: digest(e.rounded("fp32"), e.error_of(A32 @ B32))),
    "ExactResult.equals": (lambda: mpgemm.exact_gemm(A, B), lambda e: digest(e.equals(A @ B), e.error_of(A @ B))),
    "MatrixEngine": (fresh_engine, lambda e: digest(e.gemm(*HALF), e.gemm(*HALF, promote_every=8))),
    "MatrixEngine after the cache was emptied": (
        lambda: (dispatch.lowered.cache_clear(), fresh_engine())[1], lambda e: digest(e.gemm(*HALF))),
    "Instruction.mma_bits": (
        lambda: tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32").with_rules(), lambda e: digest(e.mma_bits(*TILE))),
    "Format": (lambda: tcm.get_format("e4m3fn"), lambda f: digest(tcm.decode(tcm.encode(A32, f), f))),
    "recovered_gemm": (lambda: "ozaki_int8", lambda m: digest(mpgemm.recovered_gemm(A32, B32, method=m))),
    "errors": (lambda: A32 @ B32, lambda c: str(mpgemm.errors(c, A32, B32)).encode()),
    "cube_gemm": (lambda: ascend.get_chip("910A"), lambda chip: digest(ascend.cube_gemm(A32, B32, chip=chip))),
    "ExactResult.magnitudes": (lambda: mpgemm.exact_gemm(A, B), lambda e: digest(e.magnitudes().rounded("fp64"))),
    "ErrorMeter": (lambda: mpgemm.ErrorMeter(A32, B32), lambda m: m.measure(A32 @ B32).to_json().encode()),
    "MatrixEngine whose chains change their format": (
        lambda: tcm.MatrixEngine(tcm.FusedDotAdd(8, 24), a_format="fp16", c_format="fp16"),
        lambda e: digest(e.gemm(*SLICED), e.gemm(*HALF))),
    "CallableEngine": (
        lambda: tcm.as_engine(lambda a, b, c: a @ b + c, a_format="fp32", d_format="fp32", k=8),
        lambda e: digest(e.gemm(A32, B32))),
    "Format of the user's": (
        lambda: tcm.Format("own", 4, 5, 7), lambda f: digest(tcm.encode(A32, f), tcm.decode(tcm.encode(A32, f), f))),
    "BlockScaled": (lambda: tcm.quantize_blocks(A, "mxfp8_e4m3", axis=1), lambda q: digest(q.values(), q.elements)),
    "Recipe": (
        lambda: libraries.cutlass("hopper:mma.m16n8k16.f32.f16.f16.f32", k=96, tile_k=32, split_k=2),
        lambda r: digest(r.gemm_bits(*(x.view(np.uint16) for x in HALF)))),
    "probe_set": (
        lambda: tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32").with_rules(),
        lambda row: repr(probing.probe_vectors(row)).encode()),
    "TileSchedule": (
        lambda: ascend.build_schedule(700, 300, 500, "910A", ascend.Blocking(64, 64, 64)),
        lambda s: repr((s.waves, s.tiles, s.used_cores, s.ub_slots, s.strip_rows, s.buffer_use(), s.visits(1))).encode()),
    "Timeline": (
        lambda: ascend.simulate(ascend.build_schedule(700, 300, 500, "910A", ascend.Blocking(64, 64, 64))),
        lambda t: repr((t.utilization, t.cube_efficiency, t.stalls, t.bytes, t.to_dict())).encode()),
    "Plan": (
        lambda: ascend.plan(64, 96, 80, "910A", rank="analytic", top=1)[0],
        lambda p: repr((p.to_dict(), p.bound, p.warnings)).encode()),
    "RecoveryMethod": (
        lambda: mpgemm.get_method("ozaki2_int8"), lambda m: digest(mpgemm.recovered_gemm(A32, B32, method=m))),
    "RecoveryMethod of other moduli": (
        lambda: (integer_joins.remainders.cache_clear(), mpgemm.get_method("ozaki2_int8"))[1],
        lambda m: digest(mpgemm.recovered_gemm(A32, B32, method=m, moduli=(256, 255, 253, 251, 247, 241, 239, 233)))),
    "method_bound": (lambda: "ootomo", lambda m: digest(mpgemm.method_bound(A32, B32, method=m).sums)),
    "measure": (
        lambda: forget_inputs() or given_case(A32, B32), lambda case: repr(measure(case, FP32)["errors"]).encode()),
}  # fmt: skip


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", SHARED)
def test_eight_threads_share_an_object(name):
    make, use = SHARED[name]
    expected = use(make())
    for _ in range(3):
        shared, found, start = make(), [b""] * THREADS, threading.Barrier(THREADS)

        def work(i, shared=shared, found=found, start=start):
            start.wait()
            found[i] = use(shared)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [i for i in range(THREADS) if found[i] != expected] == []
