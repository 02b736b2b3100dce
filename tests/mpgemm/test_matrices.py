"""Generated and shipped matrices."""

import hashlib

import numpy as np
import pytest

from mpgemm.inputs.matrices import DISTRIBUTIONS, SHIPPED, Distribution, generate, load_shipped


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 1, 1), (0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_shapes_types_and_seeds(name, shape):
    m, k, n = shape
    a, b = generate(name, m, k, n, seed=4)
    assert a.shape == (m, k)
    assert b.shape == (k, n)
    assert a.dtype == b.dtype == np.float32
    again = generate(name, m, k, n, seed=4)
    np.testing.assert_array_equal(a, again[0])
    np.testing.assert_array_equal(b, again[1])
    if a.size > 1:
        assert not np.array_equal(a, generate(name, m, k, n, seed=5)[0])


def test_a_does_not_depend_on_n():
    np.testing.assert_array_equal(generate("normal", 3, 4, 5, 1)[0], generate("normal", 3, 4, 9, 1)[0])


@pytest.mark.parametrize(("name", "low"), [("uniform_symmetric", -1.0), ("uniform_nonnegative", 0.0)])
@pytest.mark.parametrize("exponent", [-20, 0, 16])
def test_uniform_ranges_fill_their_interval(name, low, exponent):
    for x in generate(name, 40, 50, 60, exponent=exponent):
        scaled = np.ldexp(x.astype(float), -exponent)
        assert low <= scaled.min() < low + 0.01
        assert 0.99 < scaled.max() <= 1.0


def exponents(x):
    return np.frexp(x[x != 0])[1] - 1


@pytest.mark.parametrize(
    ("name", "a_range", "b_range"),
    [
        ("ootomo_type1", (-15, 14), (-15, 14)),
        ("ootomo_type2", (-15, 14), (-100, -35)),
        ("ootomo_type3", (-35, -15), (-35, -15)),
        ("ootomo_type4", (-100, -35), (-100, -35)),
    ],
)
def test_ootomo_types_cover_their_exponents(name, a_range, b_range):
    for x, (low, high) in zip(generate(name, 60, 60, 60), (a_range, b_range), strict=True):
        found = exponents(x)
        # rounding to float32 can carry a significand of almost 2 to the next exponent
        assert set(range(low, high + 1)) <= set(found.tolist()) <= set(range(low, high + 2))


def test_decades_lie_in_their_range_with_both_signs():
    a, _ = generate("decades", 50, 50, 1)
    assert 1e-10 <= np.abs(a).min() < 1e-9
    assert 1e9 < np.abs(a).max() <= 1.0001e10
    assert 0.4 < np.mean(a > 0) < 0.6


@pytest.mark.parametrize("condition", [1.0, 1e3])
def test_conditioned_has_the_condition_asked_for(condition):
    a, _ = generate("conditioned", 30, 40, 5, condition=condition)
    assert np.linalg.cond(a.astype(float)) == pytest.approx(condition, rel=1e-3)


@pytest.mark.parametrize("bits", [0, 8, 18])
@pytest.mark.parametrize("k", [64, 65])
def test_cancelling_cancels_as_much_as_asked(bits, k):
    a, b = generate("cancelling", 20, k, 20, bits=bits)
    a, b = a.astype(float), b.astype(float)
    ratio = np.linalg.norm(a @ b) / np.linalg.norm(np.abs(a) @ np.abs(b))
    # A B = -2^-bits X Z is a sum of k/2 products of variance 1/9; |A||B| one of k products of mean about 1/4.
    expected = 2.0**-bits * (1 / 3) * np.sqrt(k // 2) / (k * 0.25)
    assert expected / 2 < ratio < expected * 2


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("nonsense", {}, "unknown distribution 'nonsense', expected one of uniform_symmetric"),
        ("normal", {"exponent": 3}, "has no parameter 'exponent', expected one of: mean, deviation"),
        ("uniform_symmetric", {"exponent": 1.5}, "exponent must be a finite int"),
        ("uniform_symmetric", {"exponent": "x"}, "exponent must be int"),
        ("normal", {"mean": float("nan")}, "mean must be a finite float"),
        ("decades", {"low": 3, "high": 2}, r"low is 3.0 and high is 2.0, expected low <= high"),
        ("conditioned", {"condition": 0.5}, "condition must be at least 1"),
        ("cancelling", {"bits": 21}, "bits must be from 0 to 20"),
    ],
)
def test_bad_parameters(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        generate(name, 2, 2, 2, **parameters)


def test_bad_sizes():
    with pytest.raises(ValueError, match="must not be negative"):
        generate("normal", -1, 2, 2)
    with pytest.raises(ValueError, match="must not be negative"):
        generate("normal", 1, 2, 2, seed=-1)


def test_rows_check_themselves():
    with pytest.raises(ValueError, match="identifier"):
        Distribution("two words", "x", generate)


#: Digests of the shipped data: a change of the files is a change of every published number.
SHA256 = {
    "digits": "80080c46f526ae16dbf25ade8f5b419aa5ae19e73cba010a7359e7ad691d0dee",
    "diffusion": "b0fa1b7d7d1e57339f6f5702e87e39c2a0eb84b6e96e70c576c6a5399930d3e6",
}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_pairs(name):
    a, b = load_shipped(name)
    assert a.dtype == b.dtype == np.float32
    assert a.shape[1] == b.shape[0]
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()
    assert hashlib.sha256(a.tobytes() + b.tobytes()).hexdigest() == SHA256[name]
    assert SHIPPED[name].licence
    assert SHIPPED[name].source


def test_digits_is_a_gram_pair():
    a, b = load_shipped("digits")
    np.testing.assert_array_equal(a, b.T)
    # each element is rounded at 2^-24 of at most 43, which bounds the mean's error
    assert np.abs(b.astype(float).mean(axis=0)).max() < 43 * 2.0**-24


def test_unknown_shipped_pair():
    with pytest.raises(ValueError, match="unknown shipped pair 'x', expected one of digits, diffusion"):
        load_shipped("x")
