"""Checks of kernels where sums or results overflow: kind and sign are asked, nothing passes for an infinite bound."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import assert_gemm_close, gemm_tolerance

H100 = tcm.default_instruction("h100", "fp16")


def operands(seed=0, shape=(24, 64, 20)):
    rng = np.random.default_rng(seed)
    m, k, n = shape
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)


def fails(out, a, b, *rest, text="outside", **options):
    with pytest.raises(AssertionError, match=text) as caught:
        assert_gemm_close(out, a, b, *rest, engine=options.pop("engine", "h100"), **options)
    return str(caught.value)


def test_an_infinite_result_must_be_that_infinity():
    a, b = operands()
    a[3, 5] = np.inf
    d = H100.gemm(a, b)
    assert_gemm_close(d, a, b, engine="h100")
    j = int(np.argmax(d[3]))
    assert d[3, j] == np.inf
    for value in (7.0, 65504.0, -np.inf, np.nan):
        wrong = d.copy()
        wrong[3, j] = value
        text = fails(wrong, a, b)
        assert text.startswith("1 of 480") and "the model inf" in text


def test_random_values_for_infinities_fail_everywhere():
    """134 random elements of 256 passed before."""
    a, b = operands(1, (16, 64, 16))
    a[::2, 0] = np.inf
    d = H100.gemm(a, b)
    assert_gemm_close(d, a, b, engine="h100")
    wrong = np.where(np.isfinite(d), d, np.random.default_rng(0).standard_normal(d.shape)).astype(np.float32)
    assert fails(wrong, a, b).startswith("128 of 256")


def overflowing(rows=2):
    """A few rows whose result is beyond FP16, one of them with a negative sum."""
    a, b = operands(2)
    b = np.abs(b)
    a[:rows] = np.float16(3000)
    a[0] *= -1
    return a, b


def test_an_output_that_overflows():
    a, b = overflowing()
    with np.errstate(over="ignore"):
        d = H100.gemm(a, b).astype(np.float16)
    assert np.isneginf(d[0]).all() and np.isposinf(d[1]).all()
    assert_gemm_close(d, a, b, engine="h100")
    for value in (7.0, 65504.0, np.nan, -np.inf):
        wrong = d.copy()
        wrong[1, 4] = value
        text = fails(wrong, a, b)
        assert "40 of 480 elements have no finite bound" in text and text.startswith("1 of 480")


def test_fp8_outputs_may_saturate_or_be_nan():
    a, b = overflowing()
    d = H100.gemm(a, b)
    a, b, d = (np.float16(0.25) * a).astype(np.float16), b, d / 4
    saturated = np.clip(d, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    assert_gemm_close(saturated, a, b, engine="h100")
    with np.errstate(invalid="ignore", over="ignore"):
        assert_gemm_close(d.astype(ml_dtypes.float8_e4m3fn), a, b, engine="h100")
    saturated[0, 0] = 448  # the sum is negative
    fails(saturated, a, b)


def test_more_than_a_tenth_without_a_bound_says_too_little():
    a, b = overflowing(3)
    with np.errstate(over="ignore"):
        d = H100.gemm(a, b).astype(np.float16)
    fails(d, a, b, text="60 of 480 elements have no finite bound.*more than 10%")


def test_parts_of_a_split_sum_that_overflow_give_nan():
    big = np.float32(2.0**127)
    a = np.ones((12, 8), np.float32)
    b = np.ones((8, 12), np.float32)
    a[0] = big
    b[:, 0] = [1, 1, 1, 1, -1, -1, -1, -1]
    b[:, 1:] *= np.float32(2.0**-10)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [sum(np.outer(a[:, k], b[k]) for k in ks) for ks in (range(4), range(4, 8))]
        d = (parts[0] + parts[1]).astype(np.float32)
    assert np.isnan(d[0, 0]) and np.isfinite(d).sum() == d.size - 1
    assert_gemm_close(d, a, b, engine="ieee", splits=2)
    one = d.copy()
    one[0, 0] = np.inf  # one chain: the running sum overflows and stays
    assert_gemm_close(one, a, b, engine="ieee", splits=2)
    fails(d, a, b, engine="ieee")
    one[0, 0] = 3.0  # finite: nothing overflowed, so the bound holds, which is far below 2^127
    b[0, 0] = 3
    fails(np.where(np.arange(12) == 0, np.float32(5), one).astype(np.float32), a, b, engine="ieee", splits=2)


def test_no_products_are_not_vacuous():
    a, b, c = np.zeros((4, 0), np.float16), np.zeros((0, 3), np.float16), np.ones((4, 3), np.float32)
    assert_gemm_close(np.zeros((4, 3), np.float32), a, b, engine="h100")
    assert not gemm_tolerance("h100", a, b).vacuity.vacuous
    assert_gemm_close(c, a, b, c, engine="h100")
    fails(c, a, b)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_returned_is_judged_in_words(seed):
    """Random operands with special values, random results: an assertion or nothing, never another error."""
    rng = np.random.default_rng([seed, 5])
    a, b = operands(seed, (9, 17, 7))
    for x in (a, b):
        for value in rng.choice([np.inf, -np.inf, np.nan, 65504, -65504, 0], 3):
            x[tuple(rng.integers(s) for s in x.shape)] = value
    with np.errstate(all="ignore"):
        out_type = [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2][seed % 4]
        d = H100.gemm(a, b).astype(out_type)
        model = np.where(np.isfinite(d.astype(np.float64)), 0, 1).sum()
        try:
            assert_gemm_close(d, a, b, engine="h100", splits=1 + seed % 3)
        except AssertionError as error:
            assert "no finite bound" in str(error)  # the only complaint about a right kernel
        for value in (np.nan, np.inf, -np.inf, 0.0, 1e4):
            wrong = d.copy()
            wrong[rng.random(d.shape) < 0.5] = value
            try:
                assert_gemm_close(wrong, a, b, engine="h100", splits=1 + seed % 3)
            except AssertionError as error:
                assert "elements" in str(error) or "vacuous" in str(error)
            else:
                changed = wrong.astype(np.float64) != d.astype(np.float64)
                assert not (changed & np.isfinite(d.astype(np.float64)) & ~np.isfinite(wrong.astype(np.float64))).any()
    assert model < d.size
