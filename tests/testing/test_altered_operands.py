"""Kernels that read other numbers than their operands: each is named, and so are two faults of attention and of groups."""

import ml_dtypes
import numpy as np
import pytest

from mpgemm.testing import check_attention, check_gemm, check_grouped

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
RNG = np.random.default_rng(5)
A, B = (RNG.standard_normal(shape).astype(BF16) for shape in ((96, 256), (256, 80)))
X, Y = A.astype(np.float64), B.astype(np.float64)


def named(out, a=A, b=B, **options):
    found = check_gemm(out, a, b, engine="h100", **options)
    assert not found.passes
    return found.suspects


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (np.abs(X), Y, "the magnitudes of A are multiplied"),
        (X, np.abs(Y), "the magnitudes of B are multiplied"),
        (np.abs(X), np.abs(Y), "the magnitudes of A and B are multiplied"),
        (np.tril(X), Y, "only the lower triangle of A is read"),
        (np.triu(X, 1), Y, "only the upper triangle of A is read, without its diagonal"),
        (X, np.triu(Y), "only the upper triangle of B is read"),
    ],
)  # fmt: skip
def test_magnitudes_and_triangles_are_named(x, y, text):
    assert named((x @ y).astype(np.float32)) == (text,)


def test_half_of_a_matrix_that_is_taken_for_a_symmetric_one_is_named():
    a = A[:80, :80]
    x = a.astype(np.float64)
    mirrored = np.tril(x) + np.tril(x, -1).T
    assert named((mirrored @ Y[:80]).astype(np.float32), a, B[:80]) == (
        "the lower triangle of A is read as that of a symmetric matrix",
    )


@pytest.mark.parametrize("together", [16, 64])
def test_the_scale_of_the_first_row_of_a_tile_is_named(together):
    rng = np.random.default_rng(together)
    a, b = ((rng.standard_normal(shape) * 30).astype(E4M3) for shape in ((128, 64), (64, 48)))
    scale = np.exp(rng.standard_normal((128, 1))).astype(np.float32)
    product = a.astype(np.float64) @ b.astype(np.float64)
    out = (product * scale[np.arange(128) // together * together]).astype(np.float32)
    said = named(out, a, b, scale_a=scale, scale_b=np.ones((1, 48), np.float32))
    assert said == (f"scale_a is that of the first row of every {together}",)


@pytest.mark.parametrize(("used", "where"), [(0, "7, 4, 9, 3 at column 0"), (8, "-1, -4, 1, -5 at column 0")])
def test_zero_points_of_groups_that_are_left_out_are_found(used, where):
    """Weights of 4 bits in groups of 64: every zero point is found, of each column and group."""
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 16, (256, 48))
    points = rng.integers(3, 12, (4, 48))
    points[:, 0] = 7, 4, 9, 3
    scales = rng.uniform(0.01, 0.02, (4, 48)).astype(np.float32)
    a = rng.standard_normal((96, 256)).astype(np.float16)
    spread = np.repeat(scales.astype(np.float64), 64, 0)
    b = (weights - np.repeat(points, 64, 0)).astype(np.int8)
    assert check_gemm(
        (a.astype(np.float64) @ (b * spread)).astype(np.float16), a, b, engine="h100", scale_b=scales
    ).passes
    out = (a.astype(np.float64) @ ((weights - used) * spread)).astype(np.float16)
    said = named(out, a, b, scale_b=scales)
    assert said == (f"each column and block of 64 k of B has an offset of its own (a zero point?): {where}",)


def test_one_offset_of_an_operand_is_found():
    assert named(((X + 0.25) @ Y).astype(np.float32)) == ("A has one offset: 0.25 is added to its elements",)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (np.s_[17], "all of row 17 is NaN, and nothing else: a NaN in this row of A, or in a scale of it, causes it"),
        (np.s_[:, 5:7], "all of columns 5, 6 is NaN, and nothing else: a NaN in these columns of B, or in a scale of them, "
         "causes it"),
        (np.s_[5, 7], "every wrong result is NaN, which says nothing about the cause"),
        (np.s_[:], "every wrong result is NaN, which says nothing about the cause"),
    ],
)  # fmt: skip
def test_whole_rows_of_nan_are_told_from_single_ones(at, text):
    out = (X @ Y).astype(np.float32)
    out[at] = np.nan
    assert named(out) == (text,)


# -- attention and groups --------------------------------------------------------------------------------------------------
Q, K, V = (x.astype(BF16) for x in np.random.default_rng(0).standard_normal((3, 2, 128, 32)))


def attention(slope=0.0, causal=False, empty=slice(0, 0)):
    q, k, v = (x.astype(np.float64) for x in (Q, K, V))
    at = np.arange(128)
    scores = q @ np.swapaxes(k, 1, 2) * 32**-0.5 - slope * np.abs(at[:, None] - at)
    scores = np.where((at[:, None] >= at) | (not causal), scores, -np.inf)
    p = np.exp(scores - scores.max(2, keepdims=True))
    total = p.sum(2, keepdims=True)
    p[:, :, empty] = 0
    return (p @ v / total).astype(BF16)


@pytest.mark.parametrize(("slope", "causal"), [(2.0**-4, False), (0.25, True), (-(2.0**-6), False)])
def test_a_slope_of_the_distance_is_fitted(slope, causal):
    found = check_attention(attention(slope, causal), Q, K, V, engine="h100", causal=causal)
    (said,) = found.suspects
    number = float(said.split()[2])
    assert "times the distance of key and query" in said and abs(number / -slope - 1) < 0.02


def test_a_tile_of_v_that_is_empty_is_named():
    found = check_attention(attention(empty=slice(64, 96)), Q, K, V, engine="h100")
    assert found.suspects == ("at keys 64:96 V is 0, but the row sum counts the keys",)


def test_offsets_of_groups_that_are_padded_are_named():
    rng = np.random.default_rng(0)
    a, b, ends = (
        rng.standard_normal((320, 64)).astype(BF16),
        rng.standard_normal((4, 64, 48)).astype(BF16),
        np.array([50, 121, 200, 260]),
    )
    out, start, read = np.zeros((320, 48), np.float32), 0, 0
    for expert, end in enumerate(ends):
        rows = a[read : read + end - start].astype(np.float64)
        out[start:end] = rows @ b[expert].astype(np.float64)
        read, start = read + -(-(end - start) // 16) * 16, end
    said = check_grouped(out, a, b, ends, engine="h100").suspects
    assert len(said) == 3 and all("read A at an offset padded to a multiple of 16" in text for text in said)


# -- functions of results --------------------------------------------------------------------------------------------------
@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: np.maximum(x, 0), "0 in place of negative results: a relu that the test does not state"),
        (np.abs, "results are magnitudes: the sign of negative ones is lost"),
        (np.rint, "results are rounded to whole numbers"),
        (lambda x: np.trunc(x * 8) / 8, "results are cut to multiples of 0.125"),
        (lambda x: np.where(np.arange(80) < 40, x, 0),
         "0 in all wrong elements: the kernel never wrote them, skipped a tile, or read zeros"),
    ],
)  # fmt: skip
def test_a_function_of_single_results_is_named(change, text):
    assert named(change(X @ Y).astype(np.float32)) == (text,)
