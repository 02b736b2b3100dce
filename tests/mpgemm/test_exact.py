"""exact_gemm against Python integers, fractions and mpmath: every value correctly rounded, every difference exact."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from mpgemm import exact_dot_integers, exact_gemm, mp_gemm, mp_gemm_entries
from tensorcore_models.formats.exact_rounding import round_to_bits

pytestmark = pytest.mark.smoke

ISAS = tcm.available_isas()
FORMATS = ("fp64", "fp32", "fp16", "bf16", "e4m3fn")
TINY = 2.0**-1074


@pytest.fixture(autouse=True)
def _defaults():
    yield
    tcm.set_isa(None)
    tcm.set_num_threads(None)


def rounded(value, fmt):
    """A fraction with a power of two below, rounded once by the integer reference; encoding as an int."""
    exponent = 1 - value.denominator.bit_length()
    return round_to_bits(value < 0, abs(value.numerator), exponent, tcm.get_format(fmt))


def truth(a, b, c):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    values = np.empty((a.shape[0], b.shape[1]), object)
    for i, j in np.ndindex(values.shape):
        numerator, exponent = exact_dot_integers(a[i], b[:, j], 0.0 if c is None else float(c[i, j]))
        values[i, j] = Fraction(numerator) * Fraction(2) ** exponent
    return values


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def check(a, b, c=None, formats=FORMATS):
    """All formats in both ways of computing them, and differences, in every variant."""
    exact = truth(a, b, c)
    correct = {f: np.vectorize(lambda v, f=f: rounded(v, f), otypes=[object])(exact) for f in formats}
    for isa in ISAS:
        tcm.set_isa(isa)
        first, result = exact_gemm(a, b, c), exact_gemm(a, b, c)
        assert (bits(first.rounded("fp32")) == correct["fp32"]).all(), (isa, "certified")
        result.error_of(np.zeros(result.shape))  # from here on results come from the expansion
        for fmt in formats:
            got = result.rounded(fmt)
            assert got.dtype == tcm.get_format(fmt).dtype
            assert (bits(got) == correct[fmt]).all(), (isa, fmt)
        for computed in (first.rounded("fp32"), result.rounded("fp64"), np.full(result.shape, 1.5, np.float16)):
            errors = result.error_of(computed)
            assert (result.equals(computed) == (errors == 0)).all()
            for place, value in np.ndenumerate(exact):
                if np.isfinite(computed[place]):
                    difference = Fraction(float(computed[place])) - value
                    want = np.array([rounded(difference, "fp64")], np.uint64).view(np.float64)[0]
                    if want == 0 and difference != 0:
                        want = -TINY if difference < 0 else TINY
                    assert errors[place] == want, (isa, place)
                    assert (errors[place] == 0) == (difference == 0)
                else:
                    assert errors[place] == computed[place]


def normal(rng, *shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def spread(rng, low, high, *shape, dtype=np.float64):
    """Decimal exponents uniform between low and high."""
    with np.errstate(under="ignore", over="ignore"):
        return (rng.normal(size=shape) * 10.0 ** rng.uniform(low, high, shape)).astype(dtype)


def cancelling(rng, m, k, n, dtype=np.float32):
    a, b = normal(rng, m, k, dtype=dtype), normal(rng, k, n, dtype=dtype)
    return np.hstack([a, a]), np.vstack([b, -b])


@pytest.mark.parametrize("dtypes", list(itertools.product(("f2", "f4", "f8"), repeat=2)))
def test_random(dtypes):
    rng = np.random.default_rng(1)
    a, b = normal(rng, 4, 33, dtype=dtypes[0]), normal(rng, 33, 7, dtype=dtypes[1])
    formats = [f for f in FORMATS if f != "e4m3fn"]
    check(a, b, formats=formats)
    check(a, b, normal(rng, 4, 7, dtype=dtypes[1]), formats=formats)


def test_bfloat16_and_fp8_inputs():
    rng = np.random.default_rng(2)
    a = normal(rng, 3, 20).astype(tcm.get_format("bf16").dtype)
    b = (normal(rng, 20, 4) / 8).astype(tcm.get_format("e4m3fn").dtype)
    check(a, b)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_cancellation(dtype):
    rng = np.random.default_rng(3)
    a, b = cancelling(rng, 3, 40, 5, dtype)
    check(a, b)  # every element is 0
    a[:, 7] *= dtype == "f4" and np.float32(1 + 2**-23) or 1 + 2.0**-52
    check(a, b)
    check(a, b, np.full((3, 5), 1e-300 if dtype == "f8" else 1e-40, dtype))


@pytest.mark.parametrize(
    "low, high, dtype",
    [(-300, 300, "f8"), (-323, -290, "f8"), (140, 154, "f8"), (-160, -140, "f8"), (-40, 30, "f4"), (-45, -38, "f4")],
)
def test_wide_exponents_subnormals_and_overflow(low, high, dtype):
    rng = np.random.default_rng(4)
    formats = ("fp64", "fp32", "fp16", "bf16")
    a, b = spread(rng, low, high, 3, 25, dtype=dtype), spread(rng, low, high, 25, 4, dtype=dtype)
    a[1, 3] = b[7, 2] = 0.0
    check(a, b, formats=formats)
    check(a, b, spread(rng, low, high, 3, 4, dtype=dtype), formats=formats)
    check(spread(rng, -2, 2, 3, 25, dtype=dtype), b, formats=formats)


@pytest.mark.parametrize("reach", [36, 38, 39, 41])
def test_sums_around_the_largest_that_two_chains_hold(reach):
    """Integers of 53 bits by larger and larger ones, of one sign in the first half of k, turned around in the second."""
    rng = np.random.default_rng(reach)
    a, b = rng.integers(2**52, 2**53, (5, 128)), rng.integers(2 ** (reach - 1), 2**reach, (128, 9))
    b[0] = 1  # columns keep their scale
    a[:, 64:], b[64:] = a[:, 63::-1], -b[63::-1] + rng.integers(-1, 2, (64, 9))
    check(a.astype(np.float64), b.astype(np.float64), formats=("fp64", "fp32"))
    check(abs(a).astype(np.float64), abs(b).astype(np.float64), formats=("fp64", "fp32"))


def test_sums_beyond_the_range_round_to_infinity():
    big = np.float32(3e38)
    exact = exact_gemm([[big, big]], [[1.0], [1.0]])
    assert exact.rounded("fp32")[0, 0] == np.inf and exact.rounded("fp64")[0, 0] == 2 * float(big)
    assert exact.error_of(np.float32([[np.inf]]))[0, 0] == np.inf
    huge = exact_gemm([[1e308, 1e308, -1e308]], [[10.0], [1.0], [10.0]])
    assert huge.rounded("fp64")[0, 0] == 1e308  # partial sums overflow, the exact one does not
    assert exact_gemm([[-1e308, -1e308]], [[1.0], [1.0]]).rounded("fp64")[0, 0] == -np.inf


def test_differences_below_the_range_keep_their_sign():
    exact = exact_gemm([[2.0**-800]], [[2.0**-800]])
    assert exact.rounded("fp64")[0, 0] == 0
    assert exact.error_of([[0.0]])[0, 0] == -TINY
    assert not exact.equals([[0.0]])[0, 0]
    one = exact_gemm([[1.0, 2.0**-800]], [[1.0], [2.0**-800]])
    assert one.error_of([[1.0]])[0, 0] == -TINY and one.rounded("fp64")[0, 0] == 1
    tie = exact_gemm([[1.0, 2.0**-24, 2.0**-800]], [[1.0], [1.0], [2.0**-800]])
    assert tie.rounded("fp32")[0, 0] == np.float32(1 + 2.0**-23)  # just above the midpoint
    assert exact_gemm([[1.0, 2.0**-24]], [[1.0], [1.0]]).rounded("fp32")[0, 0] == 1


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(ISAS), st.booleans())
def test_any_bits(seed, k, isa, with_c):
    """Uniform encodings of float32 and float64, specials left out: against mpmath and the integers."""
    rng = np.random.default_rng(seed)
    narrow, wide = rng.integers(0, 2**32, (2, k), np.uint32), rng.integers(0, 2**63, (k, 2), np.uint64)
    raw = narrow.view(np.float32), wide.view(np.float64)
    a, b = (np.where(np.isfinite(x), x, x.dtype.type(1)) for x in raw)
    b[rng.integers(k)] = 1.0
    c = rng.integers(0, 2**63, (2, 2), np.uint64).view(float) if with_c else None
    c = None if c is None else np.where(np.isfinite(c), c, 0.0)
    tcm.set_isa(isa)
    result = exact_gemm(a, b, c)
    reference, values = mp_gemm(a, b, c), truth(a, b, c)
    for place, value in np.ndenumerate(values):
        assert Fraction(*mpf_ratio(reference[place])) == value
        assert int(bits(result.rounded("fp64"))[place]) == rounded(value, "fp64")
        assert int(bits(exact_gemm(a, b, c).rounded("fp32"))[place]) == rounded(value, "fp32")


def mpf_ratio(x):
    sign, magnitude, exponent, _ = x._mpf_
    magnitude = -int(magnitude) if sign else int(magnitude)
    return (magnitude << exponent, 1) if exponent >= 0 else (magnitude, 1 << -exponent)


@pytest.mark.parametrize("kind", ["benign", "cancelling", "sparse", "wide rows"])
@pytest.mark.parametrize("shape", [(70, 700, 60), (1, 3000, 1), (1030, 40, 3), (2, 130, 1040)])
def test_blocks_variants_and_threads(kind, shape):
    """Sizes across all block borders; samples against mpmath, all variants against each other."""
    rng = np.random.default_rng(5)
    m, k, n = shape
    a, b = normal(rng, m, k), normal(rng, k, n)
    if kind == "cancelling":
        half = k // 2
        a[:, half : 2 * half], b[half : 2 * half] = a[:, :half], -b[:half]
        if k % 2:
            a[:, -1] *= np.float32(2**-40)
    elif kind == "sparse":
        a *= rng.random((m, k)) < 0.02
        b *= rng.random((k, n)) < 0.02
    elif kind == "wide rows":
        a[::3] *= (2.0 ** rng.integers(-60, 60, (len(a[::3]), k))).astype(np.float32)
    computed = a @ b
    results = []
    for isa, threads in itertools.product(ISAS, (1, 3)):
        tcm.set_isa(isa)
        tcm.set_num_threads(threads)
        result = exact_gemm(a, b)
        certified, errors = exact_gemm(a, b).rounded("fp32"), result.error_of(computed)
        results.append(tuple(bits(x) for x in (certified, errors, result.rounded("fp32"))))
    for other in results[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(results[0], other, strict=True))
    assert np.array_equal(results[0][0], results[0][2])
    places = [(int(rng.integers(m)), int(rng.integers(n))) for _ in range(6)]
    fp32, errors = results[0][0].view(np.float32), results[0][1].view(np.float64)
    for place, value in zip(places, mp_gemm_entries(a, b, None, places), strict=True):
        value = Fraction(*mpf_ratio(value))
        assert int(bits(fp32)[place]) == rounded(value, "fp32")
        assert int(bits(errors)[place]) == rounded(Fraction(float(computed[place])) - value, "fp64")


def test_specials_follow_ieee():
    inf, nan = np.inf, np.nan
    a = np.array([[inf, 1, 0], [inf, -inf, 1], [0, nan, 1], [1, 2, 3]])
    b = np.array([[1.0, 0], [1, 1], [1, inf]])
    with np.errstate(invalid="ignore"):
        want = np.einsum("ik,kj->ij", a, b)
    for isa in ISAS:
        tcm.set_isa(isa)
        exact = exact_gemm(a, b)
        for fmt in ("fp32", "fp64", "bf16"):
            assert np.array_equal(exact.rounded(fmt).astype(float), want, equal_nan=True), (isa, fmt)
        assert exact.equals(want).all()
        errors = exact.error_of(np.where(np.isfinite(want), want, 1.0))
        assert errors[3, 0] == 0 and errors[0, 0] == -inf and np.isnan(errors[2, 0])
    assert exact_gemm([[1.0]], [[1.0]], [[inf]]).rounded()[0, 0] == inf
    assert np.isnan(exact_gemm([[inf]], [[1.0]], [[-inf]]).rounded()[0, 0])
    assert exact_gemm([[1.0]], [[1.0]]).error_of([[nan]])[0, 0] != 0


def test_views_and_copies():
    rng = np.random.default_rng(6)
    a, b = normal(rng, 5, 30), normal(rng, 30, 6)
    expected = exact_gemm(a, b).rounded("fp64")
    frozen = b.copy()
    frozen.flags.writeable = False
    strided = np.zeros((10, 60), np.float32)
    strided[::2, ::2] = a
    for x, y in ((strided[::2, ::2], frozen), (np.asfortranarray(a), b.astype(">f4")), (a.astype(">f8"), b)):
        assert np.array_equal(exact_gemm(x, y).rounded("fp64"), expected)
    row = np.broadcast_to(a[0], (4, 30))
    assert np.array_equal(exact_gemm(row, b).rounded("fp64"), np.repeat(expected[:1], 4, axis=0))
    source, c = a.copy(), np.zeros((5, 6))
    result = exact_gemm(source, b, c)
    source[:], c[:] = 0, 1
    assert np.array_equal(result.rounded("fp64"), expected)
    with pytest.raises(ValueError, match="read-only"):
        result.rounded("fp64")[0, 0] = 1


def test_empty_dimensions():
    c = np.float32([[1, -0.0], [3, 1e-45]])
    exact = exact_gemm(np.zeros((2, 0)), np.zeros((0, 2)), c)
    assert np.array_equal(exact.rounded("fp32"), c) and np.array_equal(exact.error_of(c), np.zeros((2, 2)))
    assert np.array_equal(exact_gemm(np.zeros((2, 0)), np.zeros((0, 2))).rounded(), np.zeros((2, 2), np.float32))
    for m, n in ((0, 2), (2, 0), (0, 0)):
        exact = exact_gemm(np.zeros((m, 3)), np.zeros((3, n)))
        assert exact.rounded().shape == exact.error_of(np.zeros((m, n))).shape == (m, n)


@pytest.mark.parametrize(
    "a, b, c, error, words",
    [
        (np.ones(3), np.ones((3, 2)), None, ValueError, "2 dimensions"),
        (np.ones((2, 4)), np.ones((3, 2)), None, ValueError, "columns of a"),
        (np.ones((2, 3)), np.ones((3, 2)), np.ones((3, 2)), ValueError, "c is"),
        (np.ones((2, 3), object), np.ones((3, 2)), None, TypeError, "real numbers"),
        (np.ones((2, 3)), np.ones((3, 2), complex), None, TypeError, "real numbers"),
        (np.full((2, 3), 2**60 + 1), np.ones((3, 2)), None, ValueError, "2\\*\\*53"),
    ],
)
def test_bad_input(a, b, c, error, words):
    with pytest.raises(error, match=words):
        exact_gemm(a, b, c)


def test_bad_requests():
    exact = exact_gemm(np.ones((2, 3)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="unknown format"):
        exact.rounded("fp31")
    with pytest.raises(ValueError, match="computed has shape"):
        exact.error_of(np.ones((2, 3)))
    with pytest.raises(ValueError, match="two vectors of the same length"):
        exact_dot_integers([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        exact_dot_integers([np.inf], [1.0])


def test_mp_gemm():
    product = mp_gemm([[1.0, 1e-300]], [[1.0], [1e-300]])[0, 0]
    assert Fraction(*mpf_ratio(product)) == 1 + Fraction(1e-300) ** 2
    assert mp_gemm([[1.0, 2.0**-60]], [[1.0], [1.0]], prec=53)[0, 0] == 1
    assert mp_gemm([[0.1]], [[0.1]], [[1e300]])[0, 0] > mpmath.mpf(1e300)
    assert mp_gemm(np.zeros((2, 0)), np.zeros((0, 1))).rows == 2
    assert [float(x) for x in mp_gemm_entries(np.eye(3), np.eye(3), None, [(0, 0), (1, 2)])] == [1.0, 0.0]
    with pytest.raises(IndexError, match="outside"):
        mp_gemm_entries(np.eye(2), np.eye(2), None, [(2, 0)])
    with pytest.raises(ValueError, match="columns of a"):
        mp_gemm(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="prec"):
        mp_gemm(np.eye(2), np.eye(2), prec=0)


def nearest_double(x: Fraction) -> float:
    """To nearest with ties to even, the subnormal numbers too; never 0 for what is not."""
    if not x:
        return 0.0
    exponent = abs(x).numerator.bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - 52, -1074)
    return float(round(x / unit) * unit) or math.copysign(TINY, x)


@pytest.mark.parametrize("seed", range(4))
def test_differences_below_the_normal_numbers_are_rounded_once(seed):
    rng = np.random.default_rng([seed, 1022])
    for _ in range(100):
        k, low = int(rng.integers(1, 6)), int(rng.integers(-560, -440))
        a = np.ldexp(rng.uniform(-1, 1, (1, k)), low + rng.integers(-3, 3, (1, k)))
        b = np.ldexp(rng.uniform(-1, 1, (k, 1)), int(rng.integers(-1134, -1010)) - low + rng.integers(-3, 3, (k, 1)))
        exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[0], b[:, 0], strict=True))
        near = float(exact_gemm(a, b).rounded("fp64")[0, 0])
        for c in (0.0, near, np.nextafter(near, 1), -near, 2.0**-1060):
            assert exact_gemm(a, b).error_of([[c]])[0, 0] == nearest_double(Fraction(float(c)) - exact)
