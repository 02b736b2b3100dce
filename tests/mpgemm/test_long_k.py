"""Exact products of long k keep copies of their operands and blocks of fixed size, nothing else that grows with k."""

import numpy as np
import pytest

import ascend
import mpgemm
from mpgemm._kernels import exact as exact_kernel

K = 1 << 20
BLOCK = exact_kernel.BLOCK
#: A packed block of both operands with residues, its sums and what settles them: float64 and uint64, a few of each.
BLOCK_BYTES = 8 * 8 * BLOCK * 16 + (1 << 20)


@pytest.fixture(autouse=True, scope="module")
def imported():
    """What a first call imports is not what a product keeps."""
    one = np.ones((1, 1), np.float32)
    mpgemm.errors(ascend.cube_gemm(one, one), one, one)
    mpgemm.exact_gemm(one, one).rounded("fp64")


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("dtype", "copy"), [(np.float16, 4), (np.float32, 4), (np.float64, 8)])
@pytest.mark.parametrize("fmt", ["fp32", "fp64"])
def test_an_exact_product_keeps_one_copy(dtype, copy, fmt, peak):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, K)).astype(dtype), rng.standard_normal((K, 3)).astype(dtype)
    assert peak(lambda: mpgemm.exact_gemm(a, b).rounded(fmt)) < copy * 5 * K + BLOCK_BYTES


def test_columns_for_the_long_accumulator_are_transposed_a_few_at_a_time(peak):
    """Elements far apart in size are summed one by one: 64 columns of B beside the copy of B, not all of them."""
    k, n = 1 << 12, 512
    rng = np.random.default_rng(2)
    a = rng.standard_normal((2, k)) * 2.0 ** rng.integers(-200, 200, (2, k))
    b = rng.standard_normal((k, n)) * 2.0 ** rng.integers(-200, 200, (k, n))
    exact = mpgemm.exact_gemm(a, b)
    assert peak(lambda: exact.rounded("fp64")) < 8 * k * 64 + 8 * BLOCK * BLOCK // 2
    for i, j in ((0, 0), (1, 63), (0, 64), (1, n - 1)):
        numerator, exponent = mpgemm.exact_dot_integers(a[i], b[:, j])
        assert exact.rounded("fp64")[i, j] == tcm_rounded(numerator, exponent)


def tcm_rounded(numerator: int, exponent: int) -> float:
    """numerator 2^exponent to nearest even: Python divides integers with one rounding."""
    return numerator * 2**exponent if exponent >= 0 else numerator / 2**-exponent


def test_errors_keep_two_copies(peak):
    """The exact product's and its magnitudes' copies; norms are taken 2^20 elements at a time in three float64 arrays."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 2 * K)).astype(np.float32), rng.standard_normal((2 * K, 2)).astype(np.float32)
    wrong = np.zeros((2, 2), np.float32)
    assert peak(lambda: mpgemm.errors(wrong, a, b)) < 2 * (a.nbytes + b.nbytes) + 3 * 8 * (1 << 20) + BLOCK_BYTES


def test_cube_products_keep_nothing_of_k(peak):
    a = np.ones((2, K), np.float32)
    assert peak(lambda: ascend.cube_gemm(a, a.T)) < a.nbytes + BLOCK_BYTES  # B, given transposed, is laid out once


def test_magnitudes_of_integers_have_no_least_number():
    a = np.full((1, 2), -128, np.int8)
    assert mpgemm.errors(np.zeros((1, 1), np.float32), a, np.ones((2, 1), np.int8)).componentwise == 1.0
