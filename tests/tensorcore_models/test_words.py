"""Splitting into words: eq. 7 of SGEMM-cube, exact residuals, specials, and putting the words together again."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from tensorcore_models.formats.exact_rounding import encode_exact
from tensorcore_models.formats.words import word_scale_exponents

FP16 = tcm.FORMATS["fp16"]
SCALES = (0, 6, 11, 12, -5, -60, 60, 130, 250, 10**6, -(10**6))


def float32_bits(count, seed):
    """Random encodings, numbers around the float16 range, and the edges of overflow and underflow."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    near = np.ldexp(rng.standard_normal(count), rng.integers(-30, 18, count)).astype(np.float32)
    tiny = np.ldexp(rng.standard_normal(count), rng.integers(-150, -20, count)).astype(np.float32)
    edges = [0, -0.0, np.inf, -np.inf, np.nan, 65503, 65504, 65519.996, 65520, -65520, 2**-24, 2**-25, -(2**-25), 3e38]
    nan = np.array([0x7F812345, 0xFFC54321, 0xFF800001], np.uint32).view(np.float32)
    return np.concatenate([x, near, tiny, np.array(edges, np.float32), nan])


def exact_pair(x, scale, saturate):
    """Eq. 7 for one finite float32 in rationals; the subtraction rounded to float32 as the vector unit does."""
    high = encode_exact(x, FP16, saturate=saturate)
    kind, negative, significand, exponent = FP16.decode_exact(high)
    if kind == "inf":
        return high, encode_exact(np.inf if negative else -np.inf, FP16, saturate=saturate)
    value = (-1) ** negative * significand * Fraction(2) ** exponent
    residual = np.float32(float(Fraction(x) - value))  # exact in float64: see the assertion
    assert Fraction(float(Fraction(x) - value)) == Fraction(x) - value or abs(x) > 2**40
    return high, encode_exact(float(residual), FP16, saturate=saturate, scale_exponent=scale)


@pytest.mark.parametrize("overflow", ["inf", "saturate"])
@pytest.mark.parametrize("scale", SCALES)
def test_float16_pair_equals_rationals(scale, overflow):
    x = float32_bits(150, seed=7)
    x = x[np.isfinite(x)]
    high, low = tcm.split_fp16(x, scale, overflow, bits=True)
    bounded = max(-2000, min(2000, scale))
    expected = [exact_pair(float(v), bounded, overflow == "saturate") for v in x]
    assert high.tolist() == [h for h, _ in expected]
    assert low.tolist() == [w for _, w in expected]


def test_fused_kernel_equals_the_general_split(isa):
    x = float32_bits(2_000, seed=9)
    for scale in SCALES:
        for overflow in ("inf", "saturate"):
            for nan in (None, 0.0):
                fused = tcm.split(x, "fp16", 2, scale, overflow=overflow, nan=nan, bits=True)
                # three words take the general path; the first two are the same
                scales = (*word_scale_exponents(scale, 2), 0)
                general = tcm.split(x, "fp16", 3, scales, overflow=overflow, nan=nan, bits=True)
                for a, b in zip(fused, general, strict=False):
                    np.testing.assert_array_equal(a, b, err_msg=f"{scale} {overflow} {nan}")


def test_threads_do_not_change_the_words():
    x = float32_bits(50_000, seed=3)
    try:
        results = []
        for n in (1, 2, 3):
            tcm.set_num_threads(n)
            results.append(tcm.split_fp16(x, 12, bits=True))
    finally:
        tcm.set_num_threads(None)
    for high, low in results[1:]:
        np.testing.assert_array_equal(high, results[0][0])
        np.testing.assert_array_equal(low, results[0][1])


def test_specials_follow_the_formula():
    x = np.array([1e5, -1e5, np.inf, np.nan, -0.0], np.float32)
    high, low = tcm.split_fp16(x, 12)
    np.testing.assert_array_equal(high, np.float16([np.inf, -np.inf, np.inf, np.nan, -0.0]))
    np.testing.assert_array_equal(low, np.float16([-np.inf, np.inf, np.nan, np.nan, 0.0]))
    assert np.signbit(high[4]) and not np.signbit(low[4]) and low.view(np.uint16)[2] == 0x7E00
    high, low = tcm.split_fp16(x, 12, "saturate", nan=0.0)  # Ascend 910A
    assert high.tolist() == [65504, -65504, 65504, 0, 0]
    assert low.tolist() == [65504, -65504, 65504, 0, 0]
    high, low = tcm.split(np.array([1e5], np.float32), "e4m3fn", 2)
    assert np.isnan(high.astype(float)) and np.isnan(low.astype(float))


def test_known_words():
    # 1/3 in float32 is 11184811 / 2^25 = 1365 / 2^12 + 2731 / 2^25; 2731 has 12 bits and lies on a tie
    high, low = tcm.split_fp16(np.float32(1 / 3), 12)
    assert (float(high), float(low)) == (1365 / 4096, 1366 / 4096)


@settings(max_examples=200)
@given(
    st.floats(width=32, min_value=0.5, max_value=2.0**14),
    st.sampled_from(["rne", "rna", "rz"]),
    st.sampled_from([(3, 0), (3, 11), (3, 12)]),
)
def test_three_float16_words_are_exact(x, mode, shape):
    words, scale = shape
    parts = tcm.split(np.float32(x), "fp16", words, scale, mode)
    assert tcm.join(parts, scale) == np.float32(x)


@settings(max_examples=200)
@given(st.floats(width=64, min_value=-(2.0**60), max_value=2.0**60).filter(lambda x: x == 0 or abs(x) > 2.0**-60))
def test_float64_in_bfloat16_words_and_back(x):
    words = tcm.split(x, "bf16", 7)
    assert all(word.dtype == ml_dtypes.bfloat16 for word in words)
    assert tcm.join(words) == x


@pytest.mark.parametrize("fmt", ["tf32", "bf16", "e5m2", "e4m3fn", "e2m1", "fp32"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_general_words_equal_rationals(fmt, dtype):
    fmt = tcm.get_format(fmt)
    rng = np.random.default_rng(2)
    x = np.ldexp(rng.standard_normal(60), rng.integers(-3, 3, 60)).astype(dtype)
    words = tcm.split(x, fmt, 3, 4, overflow="saturate", bits=True)
    for i, value in enumerate(x.tolist()):
        residual = Fraction(value)
        for j, word in enumerate(words):
            code = encode_exact(residual, fmt, saturate=True, scale_exponent=4 * j)
            magnitude = int(word[i]) & ~fmt.sign_bit  # a Fraction has no -0
            assert magnitude == code & ~fmt.sign_bit
            _, negative, significand, exponent = fmt.decode_exact(int(word[i]))
            residual -= (-1) ** negative * significand * Fraction(2) ** (exponent - 4 * j)


def test_bits_are_the_same_words():
    x = np.linspace(-2, 2, 11, dtype=np.float32).reshape(11, 1)
    for fmt in ("fp16", "bf16", "tf32", "e4m3fn"):
        values, bits = tcm.split(x, fmt, 2, 3), tcm.split(x, fmt, 2, 3, bits=True)
        for v, b in zip(values, bits, strict=True):
            assert v.shape == b.shape == x.shape
            np.testing.assert_array_equal(v.view(b.dtype), b)
        np.testing.assert_array_equal(tcm.join(values, 3), tcm.join(bits, 3, fmt))


def test_bits_kept():
    x = np.float32([1.0, 1 + 2.0**-23, 1 + 2.0**-12 + 2.0**-23, 2.0**-14 * (1 + 2.0**-11), 0.0, np.inf, 1e6])
    kept = tcm.bits_kept(x, tcm.split_fp16(x, 0), 0)
    assert kept[:2].tolist() == [23, 23]  # exact: the low word is subnormal
    assert kept[2] == 22  # residual 2^-12 + 2^-23 has 12 bits; 2^-23 is lost, half a unit of bit 22
    assert kept[3] == 10  # residual 2^-25, lost to a tie: half a unit of bit 10
    assert kept[4] == 23 and np.isnan(kept[5]) and kept[6] == 0


def test_join_refuses_inexact_sums():
    with pytest.raises(ValueError, match="no exact float64 sum"):
        tcm.join((np.float64([1.0]), np.float64([1.0])), (0, 60))
    with pytest.raises(ValueError, match="empty sequence of words"):
        tcm.join(())
    np.testing.assert_array_equal(tcm.join((np.float16([np.inf, np.nan]), np.float16([1, 1])), 12), [np.inf, np.nan])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tcm.split([1.0], "fp16", 0), ValueError, "words must be at least 1"),
        (lambda: tcm.split([1.0], "fp16", 1.5), TypeError, "words must be an integer"),
        (lambda: tcm.split([1.0], "fp16", 2, 1.5), TypeError, "scale_exponent must be an integer"),
        (lambda: tcm.split([1.0], "fp16", 2, (0, 1, 2)), ValueError, "3 entries, expected one for each of 2 words"),
        (
            lambda: tcm.split([1.0], "fp16", overflow="wrap"),
            ValueError,
            "unknown overflow 'wrap', expected one of inf, saturate",
        ),
        (lambda: tcm.split([1.0], "ue4m3"), ValueError, "no numpy or ml_dtypes type"),
        (lambda: tcm.split([1j], "fp16"), TypeError, "must hold real numbers"),
        (lambda: tcm.split_fp16([1.0]), TypeError, "splits float32 values, got float64"),
        (lambda: tcm.split_fp16(np.float32([1]), "12"), TypeError, "scale_exponent must be an integer"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_views_are_split_right_and_stay_untouched():
    base = np.linspace(-9, 9, 24, dtype=np.float32).reshape(4, 6)
    expected = tcm.split_fp16(base, 12, bits=True)
    read_only = base.copy()
    read_only.flags.writeable = False
    for x, pick in (
        (base.T, np.s_[...]),
        (base.astype(">f4"), None),
        (read_only, None),
        (base[::-1, ::2], None),
        (base[:0], None),
        (base[2, 3], None),
    ):
        before = np.asarray(x).tobytes()
        high, low = tcm.split_fp16(x, 12, bits=True)
        np.testing.assert_array_equal(high, tcm.encode(np.ascontiguousarray(x), "fp16").reshape(np.shape(x)))
        assert low.shape == np.shape(x) and np.asarray(x).tobytes() == before
        if pick is not None:
            np.testing.assert_array_equal(low, expected[1].T)
