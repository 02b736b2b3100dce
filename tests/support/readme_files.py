"""Files that the README's commands read: a kernel's wrong result, and two recorded runs of a quantised model."""

from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np

import mpgemm
import tensorcore_models as tcm
from mpgemm.traces.recording import TraceRecorder

E4M3 = ml_dtypes.float8_e4m3fn


def write_all(folder: Path) -> None:
    """Everything into a folder."""
    rng = np.random.default_rng(0)
    wrong_result(folder, rng)
    wrong_cube(folder)
    weights = {name: (rng.standard_normal((320, 320)) / 18).astype(np.float32) for name in ("up", "down", "lm_head")}
    tokens = rng.standard_normal((16, 320)).astype(np.float32)
    run(folder / "training", weights, tokens, promote_every=128)
    run(folder / "rollout", weights, tokens, promote_every=None)


def wrong_result(folder: Path, rng: np.random.Generator) -> None:
    """A product on H100 of which the products 64 to 95 are missing."""
    a, b = rng.standard_normal((64, 512)).astype(np.float16), rng.standard_normal((512, 48)).astype(np.float16)
    lost = a.copy()
    lost[:, 64:96] = 0
    out = tcm.default_instruction("h100", "fp16").gemm(lost, b).astype(np.float16)
    for name, array in (("A", a), ("B", b), ("out", out)):
        np.save(folder / f"{name}.npy", array)


def wrong_cube(folder: Path) -> None:
    """SGEMM-cube without the product of A's low words in one tile."""
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((64, 512)).astype(np.float32), rng.standard_normal((512, 48)).astype(np.float32)
    out = mpgemm.recovered_gemm(x, w, method="sgemm_cube")
    row = mpgemm.get_method("sgemm_cube")
    lost = replace(row, products=tuple(pair for pair in row.products if pair != (1, 0)))
    out[16:32, 16:32] = mpgemm.recovered_gemm(x[16:32], w[:, 16:32], method=lost)
    for name, array in (("X", x), ("W", w), ("cube_out", out)):
        np.save(folder / f"{name}.npy", array)


def run(folder: Path, weights: dict[str, np.ndarray], x: np.ndarray, promote_every: int | None) -> None:
    """Three layers in FP8 with a factor for each row of activations and weights."""
    unit = tcm.get_instruction("h100", "wgmma.m64n8k32.f32.e4m3.e4m3")
    with TraceRecorder(folder) as trace:
        for name, weight in weights.items():
            scales = [np.abs(each).max(1, keepdims=True) / 448 for each in (x, weight)]
            pair = [(each / scale).astype(E4M3) for each, scale in zip((x, weight), scales, strict=True)]
            sums = unit.gemm(
                pair[0],
                np.ascontiguousarray(pair[1].T),
                promote_every=promote_every,
                scale_a=scales[0],
                scale_b=scales[1].T,
            )
            out = sums.astype(ml_dtypes.bfloat16)
            trace.record(name, input=pair[0], weight=pair[1], output=out, input_scale=scales[0], weight_scale=scales[1])
            x = np.maximum(out.astype(np.float32), 0)
