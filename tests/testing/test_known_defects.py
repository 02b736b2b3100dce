"""Each defect of docs/known_defects.md that a tolerance shows, simulated: what is said of it stands on the page."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import check_attention, check_gemm

PAGE = (Path(__file__).parents[2] / "docs" / "known_defects.md").read_text(encoding="utf-8")
E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
TF32 = tcm.default_instruction("a100", "tf32")
rng = np.random.default_rng(13)


def on_the_page(text):
    return f"`{text}" in PAGE


def test_tensor_wide_scales_of_nvfp4_that_are_ignored():
    x, y = rng.standard_normal((64, 128)), rng.standard_normal((128, 48))
    a, b = tcm.quantize_blocks(x, "nvfp4", axis=1), tcm.quantize_blocks(y, "nvfp4", axis=0)
    engine = tcm.get_instruction("rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3")
    out = engine.gemm(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
    found = check_gemm(
        out,
        a.elements,
        b.elements,
        engine=engine,
        scale_a=(a.scales, np.float32(0.37)),
        scale_b=(b.scales, np.float32(1.9)),
    )
    assert found.suspects and on_the_page(found.suspects[0]), found.suspects


class TestAttention:
    q, k, v = (rng.standard_normal(shape).astype(E4M3) for shape in ((64, 64), (1024, 64), (1024, 64)))

    def scores(self, hot=0.0):
        q, k = self.q.copy(), self.k.copy()
        if hot:
            q[:, 0], k[:, 0], k[0], k[0, 0] = E4M3(4), E4M3(0), E4M3(0), E4M3(2 * hot)
        return q, k, (q.astype(np.float64) @ k.astype(np.float64).T) / 8

    def test_p_without_a_factor(self):
        q, k, s = self.scores(6.5)
        w = np.exp(s - s.max(1, keepdims=True))
        out = (w.astype(E4M3).astype(np.float64) @ self.v.astype(np.float64)) / w.sum(1, keepdims=True)
        found = check_attention(out.astype(BF16), q, k, self.v, engine="h100")
        assert not found.passes and on_the_page(found.suspects[0]), found.suspects
        right = (w * 256).astype(E4M3).astype(np.float64) @ self.v.astype(np.float64) / 256 / w.sum(1, keepdims=True)
        assert check_attention(right.astype(BF16), q, k, self.v, engine="h100").passes

    def test_p_beside_a_stale_maximum(self):
        q, k, s = self.scores()
        v, scaled = self.v.astype(np.float64), s * np.log2(np.e)
        top, total, row = np.full((len(q), 1), -np.inf), 0.0, 0.0
        for start in range(0, len(k), 128):
            part = scaled[:, start : start + 128]
            largest = part.max(1, keepdims=True)
            new = np.where(np.isinf(top) | (largest - top > 4), np.maximum(largest, top), top)
            p, shrink = np.exp2(part - new + 8), np.exp2(top - new)
            total = total * shrink + np.minimum(p, 448).astype(E4M3).astype(np.float64) @ v[start : start + 128]
            row, top = row * shrink + p.sum(1, keepdims=True), new
        found = check_attention((total / row).astype(BF16), q, k, self.v, engine="h100")
        assert not found.passes
        assert any(on_the_page(text.partition(" (tiles")[0]) for text in found.suspects), found.suspects


def test_alpha_and_beta_that_are_dropped_past_the_first_tile():
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((128, 64), (64, 128)))
    c = rng.standard_normal((128, 128)).astype(np.float32)
    sums = tcm.default_instruction("h100", "fp16").gemm(a, b)
    right = np.float32(1.2) * sums + np.float32(0.5) * c
    for dropped in (sums, sums + c):
        out = dropped.copy()
        out[:64, :64] = right[:64, :64]
        found = check_gemm(out, a, b, c, engine="h100", alpha=1.2, beta=0.5)
        assert all(on_the_page(text.partition(", ")[0]) for text in found.suspects), found.suspects


def test_an_infinity_that_becomes_nan():
    a, b = rng.standard_normal((32, 16)).astype(np.float32), rng.standard_normal((16, 8)).astype(np.float32)
    a, b = (np.asarray(tcm.round_to(x, "tf32"), np.float32) for x in (a, b))
    a[5, 3], b[3] = np.inf, 1
    out = TF32.gemm(a, b)
    out[5] = np.nan
    found = check_gemm(out, a, b, engine=TF32)
    assert not found.passes and "0 infinite, 8 NaN" in str(found) and on_the_page("0 infinite, 8 NaN")


def test_ties_away_and_operands_of_11_bits():
    x = (rng.integers(-(2**12), 2**12, (64, 64)) + 0.5).astype(np.float32)
    y = (rng.integers(-(2**12), 2**12, (64, 48)) + 0.5).astype(np.float32)
    away = [np.asarray(tcm.round_to(v, "tf32", "rna"), np.float32) for v in (x, y)]
    found = check_gemm(TF32.gemm(*away), x, y, engine=TF32, input_rounding="rne")
    assert any(on_the_page(text) for text in found.suspects) and all("ties away" in text for text in found.suspects)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 64), (64, 48)))
    narrow = [np.asarray(tcm.round_to(v, "tf32"), np.float32) for v in (x, y)]
    found = check_gemm((narrow[0] @ narrow[1]).astype(np.float32), x, y, engine="ieee")
    assert any(on_the_page(text) for text in found.suspects), found.suspects


@pytest.mark.parametrize("step", [1, 16])
def test_sums_in_fp16(step):
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    total = np.zeros((64, 64), np.float16)
    for start in range(0, 256, step):
        part = a[:, start : start + step].astype(np.float64) @ b[start : start + step].astype(np.float64)
        total = (total.astype(np.float64) + part).astype(np.float16)
    found = check_gemm(total.astype(np.float32), a, b, engine="h100")
    assert any(on_the_page(text) for text in found.suspects), found.suspects
