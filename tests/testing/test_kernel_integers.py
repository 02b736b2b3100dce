"""Integer kernels: equality, where a difference lies, zero points, requantised outputs."""

import ml_dtypes
import numpy as np
import pytest

from mpgemm.testing import assert_gemm_close, check_gemm


def operands(seed=0, m=40, k=300, n=24, dtype=np.int8, low=-128, high=128):
    rng = np.random.default_rng(seed)
    return rng.integers(low, high, (m, k)).astype(dtype), rng.integers(low, high, (k, n)).astype(dtype)


def product(a, b):
    return a.astype(np.int64) @ b.astype(np.int64)


@pytest.mark.parametrize("m", [1, 40])
def test_right_sums_pass(m):
    a, b = operands(m=m)
    assert_gemm_close(product(a, b).astype(np.int32), a, b, engine="h100")
    c = np.arange(m * 24, dtype=np.int32).reshape(m, 24)
    assert_gemm_close((product(a, b) + c).astype(np.int32), a, b, c, engine="a100")
    small = operands(m=m, dtype=ml_dtypes.int4, low=-8, high=8)
    assert_gemm_close(product(*small).astype(np.int32), *small, engine="a100")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda a, b, d: d - a[:, 64:96] @ b[64:96], "k 64:96 is missing"),
        (lambda a, b, d: d + a[:, 64:96] @ b[64:96], "k 64:96 is there twice"),
        (lambda a, b, d: np.clip(d, -32768, 32767), "clamped to 16 bits"),
        (lambda a, b, d: a[:, :256] @ b[:256], "the sum ends at k = 256 of 300"),
        (lambda a, b, d: 2 * d, "a stale C"),
    ],
)
def test_a_difference_is_located_and_named(fault, said):
    a, b = operands(3)
    with pytest.raises(AssertionError, match=said) as error:
        assert_gemm_close(
            fault(a.astype(np.int64), b.astype(np.int64), product(a, b)).astype(np.int32), a, b, engine="h100"
        )
    assert "first: out[" in str(error.value)


def test_one_wrong_element_has_its_place():
    a, b = operands(4)
    d = product(a, b).astype(np.int32)
    d[7, 5] += 1
    with pytest.raises(AssertionError, match=r"1 of 960 .*\n.*out\[7, 5\].*\n  where: row 7, column 5"):
        assert_gemm_close(d, a, b, engine="h100")
    found = check_gemm(d, a, b, engine="h100")
    assert found.wrong == 1 and found.place == "row 7, column 5" and np.argwhere(found.outside).tolist() == [[7, 5]]


def test_zero_points():
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 256, (16, 100)).astype(np.uint8), rng.integers(-128, 128, (100, 12)).astype(np.int8)
    zero_b = rng.integers(-10, 10, (1, 12))
    d = ((a.astype(np.int64) - 128) @ (b.astype(np.int64) - zero_b)).astype(np.int32)
    assert_gemm_close(d, a, b, engine="a100", zero_a=128, zero_b=zero_b)
    with pytest.raises(AssertionError, match="zero_b is left out"):
        assert_gemm_close(((a.astype(np.int64) - 128) @ b.astype(np.int64)).astype(np.int32), a, b, engine="a100",
                          zero_a=128, zero_b=zero_b)  # fmt: skip


def requantised(a, b, scale_a, scale_b, scale_out, zero_out, dtype=np.int8):
    """FP32 steps, as kernels have them."""
    values = product(a, b).astype(np.float32) * np.float32(scale_a) * scale_b.astype(np.float32) / np.float32(scale_out)
    info = np.iinfo(dtype)
    return np.clip(np.rint(values) + zero_out, info.min, info.max).astype(dtype)


def test_requantised_outputs():
    a, b = operands(6)
    scale_b = np.random.default_rng(6).uniform(0.5, 2, (1, 24))
    end = {"scale_a": 0.01, "scale_b": scale_b, "scale_out": 40.0, "zero_out": 3}
    for seed in range(5):
        a, b = operands(seed)
        assert_gemm_close(requantised(a, b, 0.01, scale_b, 40.0, 3), a, b, engine="h100", **end)
    for fault, said in (
        (requantised(a, b, 0.01, scale_b, 40.0, 0), "zero_out is left out"),
        (requantised(a, b, 0.01, scale_b, 40.0, 6), "zero_out is added twice"),
        (
            np.clip(np.trunc(product(a, b) * 0.01 * scale_b / 40 + 3), -128, 127).astype(np.int8),
            "truncated, not rounded",
        ),
    ):
        with pytest.raises(AssertionError, match=said):
            assert_gemm_close(fault, a, b, engine="h100", **end)


def test_integer_sums_with_scales_and_a_float_output():
    a, b = operands(7)
    scales = np.random.default_rng(7).uniform(0.001, 0.1, (40, 1)), np.random.default_rng(8).uniform(0.1, 1, (1, 24))
    d = (product(a, b).astype(np.float32) * scales[1].astype(np.float32) * scales[0].astype(np.float32)).astype(
        ml_dtypes.bfloat16
    )
    assert_gemm_close(d, a, b, engine="h100", scale_a=scales[0], scale_b=scales[1])
    d[12] *= scales[0][12].astype(np.float32)
    with pytest.raises(AssertionError, match="scale_a of row 12 was applied twice"):
        assert_gemm_close(d, a, b, engine="h100", scale_a=scales[0], scale_b=scales[1])


def test_bad_input():
    a, b = operands()
    d = product(a, b).astype(np.int32)
    big = np.full((2, 1 << 18), 127, np.int8)
    for call, message in (
        (
            lambda: assert_gemm_close(np.zeros((2, 2), np.int32), big, big.T, engine="h100"),
            "exact sums are beyond int32",
        ),
        (lambda: assert_gemm_close(d, a, b, engine="h100", splits=2), "got splits with out of type int32"),
        (lambda: assert_gemm_close(d, a, b, engine="h100", scale_out=2.0), "got scales or zero_out with an int32 out"),
        (lambda: assert_gemm_close(d.astype(np.int8), a, b, engine="h100"), "give scale_out"),
        (lambda: assert_gemm_close(d, a, b, engine="h100", zero_a=[1, 2]), "one number or"),
        (lambda: assert_gemm_close(d.astype(np.float32), a, b, engine="h100", zero_a=1), "need an output of int32"),
        (lambda: assert_gemm_close(d[1:], a, b, engine="h100"), r"must have the shape \(40, 24\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="give integer operands, or a floating-point out"):
        assert_gemm_close(d, a.astype(np.float16), b.astype(np.float16), engine="h100")
