"""Operands, scales and biases that a kernel reads from the wrong place, and roundings where none belongs, are named."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import check_gemm

E4M3, BF16, FP4 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, ml_dtypes.float4_e2m1fn
FP8 = tcm.default_instruction("h100", "e4m3fn", path="wgmma")
WIDE = tcm.default_instruction("h100", "bf16", path="wgmma")
rng = np.random.default_rng(45)
M, K, N = 96, 512, 256
A, B = rng.standard_normal((M, K)).astype(E4M3), rng.standard_normal((K, N)).astype(E4M3)
SCALE_A, SCALE_B = (np.exp(rng.normal(0, 0.7, s)).astype(np.float32) for s in ((M, K // 128), (K // 128, N // 128)))


def blocks(a=A, b=B, scale_a=SCALE_A, scale_b=None, between=lambda total: total):
    """DeepGEMM's loop over blocks of k; scale_b is one for each column."""
    scale_b = SCALE_B.repeat(128, 1) if scale_b is None else scale_b
    total = np.zeros((M, b.shape[1]), np.float32)
    for i in range(K // 128):
        at = slice(128 * i, 128 * i + 128)
        part = FP8.gemm(a[:, at], b[at]).astype(np.float32)
        total = between(total + scale_a[:, i : i + 1] * scale_b[i : i + 1] * part)
    return total


def said(out, a=A, b=B, **options):
    """What a failure says it looks like, all of it."""
    options = {"scale_a": SCALE_A, "scale_b": SCALE_B, **options} if a.dtype == E4M3 else options
    found = check_gemm(out, a, b, **{"engine": "h100", **options})
    assert not found.passes
    return "; ".join(found.suspects)


def held(x, line, old):
    """Blocks of 128 values of k: block `line` holds block `old`."""
    x = x.copy()
    x[:, 128 * line : 128 * line + 128] = x[:, 128 * old : 128 * old + 128]
    return x


COLUMNS = SCALE_B.repeat(128, 1)
CASES = {
    "scale_a and scale_b: each is that of the first block of k of every 2": lambda: blocks(
        scale_a=SCALE_A[:, [0, 0, 2, 2]], scale_b=COLUMNS[[0, 0, 2, 2]]
    ),
    "scale_a is that of the row at the same place of the first 32": lambda: blocks(scale_a=SCALE_A[np.arange(M) % 32]),
    "scale_a is read by columns of a table that is stored by rows": lambda: blocks(
        scale_a=SCALE_A.ravel().reshape(SCALE_A.shape, order="F")
    ),
    "B is misread: each column is the column at the same place of the first 128": lambda: blocks(b=B[:, np.arange(N) % 128]),
    "the sum outside of the unit is kept in bf16, rounded every 128 values of k": lambda: blocks(
        between=lambda total: total.astype(BF16).astype(np.float32)
    ),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("text", CASES)
def test_scales_and_operands_of_other_blocks(text):
    assert text in said(CASES[text]())


def test_a_stale_block_with_the_scales_of_its_place():
    text = "a stale block: at k 384:512 A still holds k 0:128, with the scales of its place"
    assert said(blocks(a=held(A, 3, 0))) == text


def test_scales_of_finer_blocks_than_there_are():
    a, b = A[:, :128], rng.standard_normal((128, 512)).astype(E4M3)
    scales = np.exp(rng.normal(0, 0.7, (1, 4))).astype(np.float32)
    out = FP8.gemm(a, b) * SCALE_A[:, :1] * scales[:, np.minimum(np.arange(512) // 64, 3)]
    assert "is taken for every 64 columns, not for 128" in said(out, a, b, scale_a=SCALE_A[:, :1], scale_b=scales)


def test_scales_that_are_both_rounded():
    out = blocks(scale_a=SCALE_A.astype(BF16).astype(np.float32), scale_b=COLUMNS.astype(BF16).astype(np.float32))
    assert said(out) == "scale_a and scale_b: each is rounded to bf16"


def test_scales_of_square_tables_read_transposed():
    a, b = A[:, :256], B[:256]
    total = np.zeros((M, N), np.float32)
    for i in range(2):
        at = slice(128 * i, 128 * i + 128)
        total += SCALE_A[:, i : i + 1] * SCALE_B[:2].T.repeat(128, 1)[i] * FP8.gemm(a[:, at], b[at])
    assert "scale_b is read transposed" in said(total, a, b, scale_a=SCALE_A[:, :2], scale_b=SCALE_B[:2])


def test_scale_factors_in_the_layout_of_the_unit():
    a, b = ((2 * rng.standard_normal(s)).astype(FP4) for s in ((128, 256), (256, 32)))
    scales = [np.exp(rng.normal(0, 0.8, s)).astype(E4M3) for s in ((128, 16), (16, 32))]
    at = np.arange(128)
    unit = tcm.get_instruction("blackwell:tcgen05.mma.m128n8k64.block16.f32.e2m1.e2m1.ue4m3")
    out = unit.gemm(a, b, scale_a=scales[0][at % 32 * 4 + at // 32], scale_b=scales[1])
    found = check_gemm(out, a, b, engine="b200", scale_a=scales[0], scale_b=scales[1])
    assert found.suspects == ("scale_a is that of the row converted back from the units' layout of 32 x 4",)


def tiles(x, size):
    """The matrix as blocks of size x size: a view."""
    return x.reshape(len(x) // size, size, x.shape[1] // size, size)


X, Y = rng.standard_normal((64, 256)).astype(BF16), rng.standard_normal((256, 64)).astype(BF16)


def test_blocks_of_an_operand():
    transposed = tiles(Y, 64).transpose(0, 3, 2, 1).reshape(Y.shape)
    assert said(WIDE.gemm(X, transposed), X, Y) == "B is misread: blocks of 64 x 64 are transposed"
    fragments = tiles(X, 8).reshape(4, 2, 8, 16, 2, 8).transpose(0, 4, 2, 3, 1, 5).reshape(X.shape)
    text = "A is misread: in blocks of 16 x 16 the 8 x 8 beside the diagonal are exchanged"
    assert said(WIDE.gemm(fragments, Y), X, Y) == text
    behind = np.concatenate([X.ravel(), rng.standard_normal(256).astype(BF16)])
    strided = np.stack([behind[257 * i : 257 * i + 256] for i in range(64)])
    assert said(WIDE.gemm(strided, Y), X, Y) == "A is misread: its leading dimension is taken as 257, not 256"


def test_a_bias_of_the_first_tile():
    bias = rng.standard_normal(64).astype(np.float32)
    out = WIDE.gemm(X, Y) + np.tile(bias[:32], 2)
    assert "C is taken from the column at the same place of the first 32" in said(out, X, Y, c=bias)


def test_roundings_where_none_belongs():
    bias = rng.standard_normal(64).astype(np.float32)
    total = WIDE.gemm(X, Y)
    cut = (total.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(BF16)
    assert said(cut, X, Y) == "results are cut to bf16, not rounded to nearest"
    early = total.astype(BF16).astype(np.float32) + bias
    assert said(early, X, Y, c=bias) == "the sum is rounded to bf16 before C is added"
    parts = sum(WIDE.gemm(X[:, i : i + 64], Y[i : i + 64]).astype(BF16).astype(np.float32) for i in range(0, 256, 64))
    text = "sums over 64 values of k are rounded to bf16 before they are added"
    assert said(parts, X, Y, splits=4) == text


def test_results_that_go_through_fp16():
    x = (64 * X.astype(np.float32)).astype(BF16)
    total = WIDE.gemm(x, (64 * Y.astype(np.float32)).astype(BF16))
    with np.errstate(over="ignore"):
        out = total.astype(np.float16).astype(BF16)
    text = "results that go through fp16, where those beyond 65504 are infinite"
    assert said(out, x, (64 * Y.astype(np.float32)).astype(BF16)) == text


def test_narrow_sums_behind_which_a_bias_is_added():
    total = np.zeros((64, 64), np.float32)
    for at in range(0, 256, 16):
        total = (total + X[:, at : at + 16].astype(np.float32) @ Y[at : at + 16].astype(np.float32)).astype(BF16)
        total = total.astype(np.float32)
    bias = rng.standard_normal(64).astype(np.float32)
    assert "bf16 accumulation" in said(total + bias, X, Y, c=bias)
