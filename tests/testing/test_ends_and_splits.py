"""alpha and beta, the rounding of operands that TF32 lacks, and split-k kernels whose parts have sums outside of their own."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import check_gemm

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
UNIT, FP8 = (tcm.default_instruction("h100", fmt, path="wgmma") for fmt in ("bf16", "e4m3fn"))
TF32 = tcm.default_instruction("a100", "tf32")
rng = np.random.default_rng(2)
A, B = rng.standard_normal((48, 128)).astype(BF16), rng.standard_normal((128, 64)).astype(BF16)
C = rng.standard_normal((48, 64)).astype(np.float32)
SUMS = UNIT.gemm(A, B).astype(np.float32)
ENDS = {"alpha": 1.3, "beta": -0.7}
ALPHA, BETA = (np.float32(x) for x in ENDS.values())


@pytest.mark.parametrize("out", [np.float32, BF16])
def test_alpha_and_beta(out):
    check = lambda d, **ends: check_gemm(d.astype(out), A, B, C, engine=UNIT, **ends)  # noqa: E731
    right = ALPHA * SUMS + BETA * C
    assert check(right, **ENDS).passes
    fused = (np.float64(ALPHA) * SUMS + (BETA * C).astype(np.float64)).astype(np.float32)
    assert check(fused, **ENDS).passes
    assert any("alpha left out" in text.replace("was ", "") for text in check(SUMS + BETA * C, **ENDS).suspects)
    assert check(ALPHA * SUMS, **ENDS).suspects == ("the addend: C is left out",)
    # alpha 1 and beta 1 in the place of both, as hipBLASLt past the first tile
    assert check(SUMS + C, **ENDS).suspects == (
        "wrong factors of product and C: 0.769 times the right product, -1.43 times the right addend",
    )
    assert check(ALPHA * SUMS + C, **ENDS).suspects == ("the addend: beta is left out, so C is added whole",)
    assert check(right, alpha=1.3).suspects == ("a wrong factor of C: -0.7 times the right addend",)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"beta": 2.0}, ValueError, "got beta without c"),
        ({"alpha": 2.0, "scale_a": 1.0, "scale_b": 1.0}, ValueError, "got alpha together with scales"),
        ({"alpha": np.inf}, ValueError, "finite FP32 number"),
        ({"alpha": "2"}, TypeError, "must be one number"),
        ({"c": C.astype(np.float64) * (1 + 2.0**-40), "beta": 2.0}, ValueError, "values that FP32 cannot represent"),
    ],
)
def test_ends_that_do_not_fit(options, error, words):
    with pytest.raises(error, match=words):
        check_gemm(SUMS, A, B, **options, engine=UNIT)


def test_the_rounding_of_tf32_operands_has_an_owner():
    x, y = (v.astype(np.float32) + np.float32(2.0**-15) for v in (A, B))
    with pytest.raises(
        ValueError, match=r"\(rne\), as cuBLAS 13.0 .*\(rna\), as cuBLAS of 2020 .*\(rz\), as tl.dot of Triton"
    ):
        check_gemm(SUMS, x, y, engine=TF32)
    for rounding in ("rne", "rna", "rz"):
        used = [np.asarray(tcm.round_to(v, "tf32", rounding), np.float32) for v in (x, y)]
        assert check_gemm(TF32.gemm(*used), x, y, engine=TF32, input_rounding=rounding).passes


class TestSplits:
    a, b = rng.standard_normal((48, 1024)).astype(E4M3), rng.standard_normal((1024, 64)).astype(E4M3)
    scales = {
        "scale_a": rng.uniform(0.5, 2, (48, 8)).astype(np.float32), "scale_b": rng.uniform(0.5, 2, (8, 1)).astype(np.float32),
    }  # fmt: skip

    def test_parts_with_sums_outside(self):
        parts = [FP8.gemm(self.a[:, s : s + 256], self.b[s : s + 256], promote_every=128) for s in range(0, 1024, 256)]
        out = np.add.reduce([part.astype(np.float32) for part in parts])
        assert check_gemm(out, self.a, self.b, engine=FP8, splits=4, promote_every=128).passes
        assert check_gemm(out.astype(BF16), self.a, self.b, engine=FP8, splits=4, promote_every=(64, 256)).passes
        lost = out - parts[2].astype(np.float32)
        found = check_gemm(lost, self.a, self.b, engine=FP8, splits=4, promote_every=128)
        assert found.suspects == ("lost terms: k 512:768 is missing",)

    def test_parts_with_scales_of_blocks(self):
        out = FP8.gemm(self.a, self.b, k_order="split_k:4", **self.scales)
        assert check_gemm(out, self.a, self.b, engine=FP8, splits=4, **self.scales).passes
        assert check_gemm(out, self.a, self.b, engine=FP8, splits=3, promote_every=(32, 128), **self.scales).passes

    def test_one_chain_in_the_place_of_promoted_parts_is_seen(self):
        a, b = (x.repeat(2, axis) for x, axis in ((self.a, 1), (self.b, 0)))
        assert not check_gemm(FP8.gemm(a, b), a, b, engine=FP8, splits=2, promote_every=128).passes


def test_c_is_not_read_where_beta_is_0():
    """NaN in C is no NaN of the result (BLAS), and a kernel that multiplies it with 0 is wrong."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 64), (64, 24)))
    c = np.full((32, 24), np.nan, np.float32)
    product = 2.5 * (a.astype(np.float64) @ b.astype(np.float64))
    assert check_gemm(product.astype(np.float32), a, b, c, engine="h100", alpha=2.5, beta=0).passes
    assert not check_gemm((product + 0 * c).astype(np.float32), a, b, c, engine="h100", alpha=2.5, beta=0).passes
    with pytest.raises(ValueError, match="c"):
        check_gemm(product.astype(np.float32), a, b, c[:3], engine="h100", alpha=2.5, beta=0)


@pytest.mark.parametrize("other", ["rna", "rz"])
def test_roundings_of_tf32_have_one_name_where_fp16_has_the_same_numbers(other):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((48, 64), (64, 40)))
    a[::3] = (np.round(a[::3] * 1024) + 0.5) / 1024  # ties of numbers from 1 on
    used = [tcm.round_to(x, "tf32", other).astype(np.float64) for x in (a, b)]
    out = (used[0] @ used[1]).astype(np.float32)
    assert check_gemm(out, a, b, engine=tcm.default_instruction("h100", "tf32"), input_rounding=other).passes
    found = check_gemm(out, a, b, engine=tcm.default_instruction("h100", "tf32"), input_rounding="rne")
    assert len(found.suspects) == 1 and "tf32" in found.suspects[0]
