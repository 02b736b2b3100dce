"""Public objects shared by eight threads: the same bits as alone, and no crash."""

import threading

import numpy as np
import pytest

import ascend
import mpgemm
import tensorcore_models as tcm
from tensorcore_models.kernels import dispatch

THREADS = 8
RNG = np.random.default_rng(7)
A, B = RNG.standard_normal((200, 300)), RNG.standard_normal((300, 200))
A32, B32 = RNG.standard_normal((64, 96)).astype(np.float32), RNG.standard_normal((96, 64)).astype(np.float32)
HALF = A32.astype(np.float16), B32.astype(np.float16)
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
        lambda: (dispatch._cache.clear(), fresh_engine())[1], lambda e: digest(e.gemm(*HALF))),
    "Instruction.mma_bits": (
        lambda: tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32").with_rules(), lambda e: digest(e.mma_bits(*TILE))),
    "Format": (lambda: tcm.get_format("e4m3fn"), lambda f: digest(tcm.decode(tcm.encode(A32, f), f))),
    "recovered_gemm": (lambda: "ozaki_int8", lambda m: digest(mpgemm.recovered_gemm(A32, B32, method=m))),
    "errors": (lambda: A32 @ B32, lambda c: str(mpgemm.errors(c, A32, B32)).encode()),
    "cube_gemm": (lambda: ascend.get_chip("910A"), lambda chip: digest(ascend.cube_gemm(A32, B32, chip=chip))),
}  # fmt: skip


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
