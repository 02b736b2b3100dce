"""Integer recovery methods: exact products, exact Chinese remainders, slices that add up."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from mpgemm import recovered_gemm, recovered_gemm_report
from mpgemm.integer_recovery import (
    balanced,
    exact_product,
    integers_below,
    integers_to_float,
    mixed_radix,
    ordered_moduli,
    quantise,
    residue_bits,
    slice_operand,
    top_exponent,
)
from mpgemm.methods import MODULI, get_method

S8 = tcm.default_instruction("a100", "s8", "s32")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(2, 20), st.data())
def test_chinese_remainders_give_the_integer_back(count, data):
    moduli = ordered_moduli(MODULI[:count])
    product = math.prod(moduli)
    numbers = data.draw(st.lists(st.integers(-(product // 2), (product - 1) // 2), min_size=1, max_size=6))
    numbers += [-(product // 2), (product - 1) // 2, 0, 1, -1]
    for top in range(55, product.bit_length() - 2, 7):  # halfway between two doubles, and next to it
        tie = (1 << top) + (1 << (top - 53))
        numbers += [sign * (tie + off) for sign in (1, -1) for off in (-1, 0, 1)]
    residues = [np.array([balanced(np.int64(n % p), p) for n in numbers]) for p in moduli]
    limbs, radices = mixed_radix(residues, moduli)
    rebuilt = []
    for i in range(len(numbers)):
        value = 0
        for limb, radix in zip(limbs[::-1], radices[::-1], strict=True):
            value = value * radix + int(limb[i])
        rebuilt.append(value)
    assert rebuilt == numbers
    assert list(integers_to_float(limbs, radices)) == [float(n) for n in numbers]


@pytest.mark.parametrize("p", MODULI)
def test_balanced_residues_fit_int8(p):
    x = np.arange(-600, 600)
    r = balanced(x, p)
    assert ((x - r) % p == 0).all() and r.min() == -(p // 2) and r.max() == (p - 1) // 2


@pytest.mark.parametrize("k", (1, 2, 3, 1000, 2**17, 10**9))
@pytest.mark.parametrize("count", (2, 8, 20))
def test_residue_bits_are_the_most_that_fit(k, count):
    product = math.prod(MODULI[:count])
    try:
        bits = residue_bits(MODULI[:count], k)
    except ValueError:
        assert 2 * k * 4 >= product
        return
    assert 2 * k * 4**bits < product
    assert bits == 62 or 2 * k * 4 ** (bits + 1) >= product


def test_integers_are_multiplied_exactly_with_enough_moduli():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(2**20), 2**20, (4, 33)), rng.integers(-(2**20), 2**20, (33, 5))
    d = recovered_gemm(a.astype(np.float64), b.astype(np.float64), None, "ozaki2_int8", moduli=12)
    np.testing.assert_array_equal(d, a @ b)
    slices = recovered_gemm(a.astype(np.float64), b.astype(np.float64), None, "ozaki_int8", slices=8, products="all")
    np.testing.assert_array_equal(slices, a @ b)


def test_more_slices_and_more_moduli_reach_fp64():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(6, 50)), rng.normal(size=(50, 6))
    exact = [[float(sum(Fraction(x) * Fraction(y) for x, y in zip(r, s, strict=True))) for s in b.T] for r in a]
    size = np.abs(a) @ np.abs(b)
    for options, tolerance in (({"slices": 4}, 2.0**-20), ({"slices": 6}, 2.0**-34), ({"slices": 9}, 2.0**-51)):
        assert np.max(np.abs(recovered_gemm(a, b, None, "ozaki_int8", **options) - exact) / size) < tolerance
    # 2 k 4^beta < M: 16 moduli (126 bits) leave 59 bits at k = 50, below which a row's largest element hides nothing of FP64.
    assert np.max(np.abs(recovered_gemm(a, b, None, "ozaki2_int8", moduli=16) - exact) / size) < 2.0**-51


@pytest.mark.parametrize(("name", "options"), [("ozaki_int8", {}), ("ozaki_int8", {"slices": 8}), ("mixpert", {})])
@pytest.mark.parametrize("axis", (0, 1))
def test_slices_add_up(name, options, axis):
    row = get_method(name, **options)
    x = np.random.default_rng(2).normal(size=(7, 9)) * 10.0 ** np.arange(9)
    slices, exponents = slice_operand(x, axis, row)
    shift = exponents[:, None] if axis else exponents
    total = sum(
        np.ldexp(s.astype(np.float64), shift - top_exponent(row) - row.slice_bits * j) for j, s in enumerate(slices)
    )
    last = np.ldexp(1.0, shift - top_exponent(row) - row.slice_bits * (row.words - 1))
    assert (np.abs(x - total) <= (last if row.slice_bits == 7 else last / 2)).all()
    assert all(s.dtype == np.int8 for s in slices)


def test_extreme_segments_of_mixpert():
    x = np.array([[1 - 2.0**-24, -(1 - 2.0**-24), 2.0**-31, -1.0, 0.0]])
    slices, exponents = slice_operand(x, 1, get_method("mixpert"))
    total = sum(s.astype(np.float64) * 2.0 ** (int(exponents[0]) - 6 - 8 * j) for j, s in enumerate(slices))
    np.testing.assert_allclose(total, x, rtol=0, atol=2.0**-30)


def test_int32_never_overflows():
    """k beyond 2^31 / 127^2 products of the largest size would wrap: it is cut. Eight moduli leave 22 bits here."""
    k = 140_000
    a, b = np.full((1, k), 127, np.int8), np.full((k, 1), 127, np.int8)
    assert exact_product(S8, a, b)[0, 0] == 127 * 127 * k > 2**31
    assert S8.gemm(a, b)[0, 0] != 127 * 127 * k  # the engine by itself wraps
    wide = np.full((1, k), 1 - 2.0**-24, np.float32)
    for method in ("ozaki_int8", "ozaki2_int8", "mixpert"):
        assert abs(float(recovered_gemm(wide, wide.T, None, method)[0, 0]) / (k * (1 - 2.0**-23)) - 1) < 2.0**-21


def test_saturating_engine_gives_the_same():
    a = np.random.default_rng(3).normal(size=(3, 100)).astype(np.float32)
    plain, clamped = (
        recovered_gemm(a, a.T, None, "ozaki_int8", S8.arch + ":" + S8.name + tail) for tail in ("", ".satfinite")
    )
    np.testing.assert_array_equal(plain, clamped)


@pytest.mark.parametrize(("fmt", "each"), [("s8", 127), ("s4", 7), ("fp16", 2048)])
def test_quantensor_words_shrink_the_residual(fmt, each):
    """One word leaves half a unit of max / q_max of an element (half an ulp of fp16 numbers up to 1); FP32 adds its own."""
    x = np.random.default_rng(4).normal(size=(5, 6)).astype(np.float32)
    left, size = x.astype(np.float64), float(np.abs(x).max())
    for n, (word, scale) in enumerate(quantise(x, 3, tcm.get_format(fmt)), 1):
        left = left - np.float64(scale) * word
        assert (
            np.abs(left).max()
            <= size * ((0.5001 / each) ** n if fmt != "fp16" else (1.001 / each) ** n) + 2.0**-23 * size
        )


def test_quantensor_runs_on_int4_and_fp16():
    a = np.random.default_rng(5).uniform(-1, 1, (4, 30)).astype(np.float32)
    exact = a.astype(np.float64) @ a.T
    errors = [
        np.abs(recovered_gemm(a, a.T, None, "quantensor", engine, format=fmt) - exact).max()
        for engine, fmt in (("t4", "s4"), ("t4", "s8"), ("t4", "fp16"))
    ]
    assert errors[0] > 5 * errors[1] > 5 * errors[2]
    more = np.abs(recovered_gemm(a, a.T, None, "quantensor", "t4", passes=3) - exact).max()
    assert more < errors[1] / 5


def test_rows_that_are_not_finite():
    a = np.float32([[1, np.inf], [1, 2]])
    report = recovered_gemm_report(a, a.T, None, "ozaki_int8")
    assert np.isnan(report.d[0]).all() and np.isnan(report.d[:, 0]).all() and report.d[1, 1] == 5
    assert (report.a.overflow, report.b.overflow) == (1, 1)


def test_elements_lost_below_their_row():
    a = np.float32([[0.7, 0.45, 2.0**-40], [2.0**-40, 0, 0]])
    for method in ("ozaki_int8", "mixpert", "quantensor"):
        assert recovered_gemm_report(a, a.T, None, method).a.underflow == (2 if method == "quantensor" else 1)


def test_integers_below_keep_sign_and_size():
    x = np.array([[3.0, -1.5, 2.0**-70], [0.0, 0.0, 0.0]])
    whole, exponents = integers_below(x, 1, 10)
    assert whole.tolist() == [[768, -384, 0], [0, 0, 0]] and exponents.tolist() == [-8, -10]


def test_too_few_moduli():
    a = np.ones((1, 10**5), np.float32)
    with pytest.raises(ValueError, match="take more"):
        recovered_gemm(a, a.T, None, "ozaki2_int8", moduli=2)
