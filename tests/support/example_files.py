"""Files of the names that the examples of the commands have: operands, results, recordings, kernels, a profile."""

import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
from own_kernel import RACING

import mpgemm
import tensorcore_models as tcm
from mpgemm.bounds.watching import JudgedProduct, OutsideBound
from mpgemm.experiments.outside import write_outside
from mpgemm.traces.recording import TraceRecorder

#: A kernel of an fp16 product that Triton compiled.
PTX = Path(__file__).parents[1] / "vectors" / "ptx" / "sm_80-fp16-masked.ptx"
AMDGCN = Path(__file__).parents[1] / "vectors" / "amdgcn" / "fp16-kpack2.s"
#: Two products as msprof writes them, and a row that is none.
PROFILE = """Op Name,OP Type,Task Duration(us),Input Shapes,Input Data Types,Output Shapes,aic_mac_ratio,aic_mte2_ratio
mm_1,MatMulV2,40,"256,1024;1024,512",FLOAT16;FLOAT16,"256,512",0.3,0.6
mm_2,MatMulV2,95,"1024,1024;1024,1024",FLOAT16;FLOAT16,"1024,1024",0.4,0.7
add,Add,3.5,,,,,
"""


def write_all(folder: Path) -> None:
    """Write every file into a folder."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((8, 64), (64, 8)))
    np.save(folder / "A.npy", a)
    np.save(folder / "B.npy", b)
    np.save(folder / "X.npy", a.astype(np.float32))
    np.save(folder / "W.npy", b.T.astype(np.float32))
    np.save(folder / "Y.npy", b.astype(np.float32))
    for name, device in (("C", "h100"), ("C1", "a100"), ("C2", "h100")):
        np.save(folder / f"{name}.npy", tcm.default_instruction(device, "fp16").gemm(a, b))
    unit = tcm.default_instruction("h100", "fp16")
    np.save(folder / "out.npy", unit.gemm(a, b))
    dy, w8 = a.astype(ml_dtypes.float8_e5m2), b.astype(ml_dtypes.float8_e4m3fn)
    dx = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e5m2.e4m3").gemm(dy, w8).astype(ml_dtypes.bfloat16)
    for name, x in (("DY", dy), ("W8", w8), ("dx", dx)):
        np.save(folder / f"{name}.npy", x)
    cube = mpgemm.recovered_gemm(a.astype(np.float32), b.astype(np.float32), method="sgemm_cube")
    np.save(folder / "recovered.npy", cube)
    experts = np.stack([b, -b, b[::-1]])
    np.save(folder / "experts.npy", experts)
    np.save(
        folder / "grouped.npy",
        np.concatenate([unit.gemm(a[i:j], x) for i, j, x in zip((0, 3, 5), (3, 5, 8), experts, strict=True)]),
    )
    q, k, v = (rng.standard_normal((1, 16, 16)).astype(np.float16) for _ in range(3))
    scores = np.where(np.tri(16, dtype=bool), q[0].astype(np.float64) @ k[0].T.astype(np.float64) / 4, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    attended = (weights / weights.sum(1, keepdims=True) @ v[0].astype(np.float64)).astype(np.float16)[None]
    for name, x in zip(("Q", "K", "V", "attended"), (q, k, v, attended), strict=True):
        np.save(folder / f"{name}.npy", x)
    scales = np.linspace(0.5, 1, 8, dtype=np.float32)[:, None], np.linspace(1, 2, 8, dtype=np.float32)[None]
    for name, scale in zip(("SA", "SB"), scales, strict=True):
        np.save(folder / f"{name}.npy", scale)
    np.save(folder / "scaled.npy", unit.gemm(a, b, scale_a=scales[0], scale_b=scales[1]))
    x, y = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((8, 64), (64, 8)))
    np.save(folder / "QA.npy", x)
    np.save(folder / "QB.npy", y)
    sums = (x.astype(np.float64) - 3) @ y.astype(np.float64)
    np.save(folder / "q.npy", np.clip(np.rint(sums * 0.1 * 0.2 / 8), -128, 127).astype(np.int8))
    for name, device in (("training", "a100"), ("rollout", "h100"), ("a100", "a100"), ("h100", "h100")):
        with TraceRecorder(folder / name) as trace:
            out = tcm.default_instruction(device, "fp16").gemm(a, b)
            trace.record("model.lm_head", input=a, weight=np.ascontiguousarray(b.T), output=out)
    found = (a @ b).astype(np.float32)
    judged = JudgedProduct("fp16", {"method": "recovery:fp16@a100"}, a.astype(np.float32), b.astype(np.float32))
    write_outside(OutsideBound(judged, found, (0, 0), 1.0, 0.5, 1), folder).rename(folder / "outside.npz")
    for name in ("gemm", "other"):
        shutil.copy(PTX, folder / f"{name}.ptx")
    shutil.copy(AMDGCN, folder / "gemm.s")
    (folder / "own.cpp").write_text(RACING)
    (folder / "gemm.sass").write_text("/*0900*/ HMMA.16816.F32 R24, R20, R24, RZ ;\n" * 4)
    (folder / "profile.csv").write_text(PROFILE)
