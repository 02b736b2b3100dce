"""HiFloat8: all 256 encodings by the paper's statements (arXiv 2409.16626), and rounding between all neighbours."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.formats.exact_rounding import ROUNDINGS, encode_exact

FMT = tcm.FORMATS["hifloat8"]
INFINITY, NAN = 0x6F, 0x80
CODES = np.arange(256, dtype=np.uint8)
VALUES = tcm.decode(CODES, FMT)


def test_the_encodings_are_those_of_the_paper():
    """7 exponents with 3 bits of fraction, 8 with 2, 16 with 1, 7 more powers of two; one zero, one NaN, two infinities."""
    positive = VALUES[1:128][np.isfinite(VALUES[1:128])]
    widths = Counter()
    for exponent, count in Counter(np.floor(np.log2(positive)).astype(int)).items():
        widths[count, exponent < -15] += 1
    # the binade of 2^15 has one number less: its last encoding is infinity
    assert widths == {(8, False): 7, (4, False): 8, (2, False): 15, (1, False): 1, (1, True): 7}
    assert positive.max() == 2.0**15 == FMT.max_finite and positive.min() == 2.0**-22 == FMT.min_subnormal
    assert len(set(positive)) == 126 and FMT.min_normal == 2.0**-15
    assert np.flatnonzero(VALUES == 0).tolist() == [0] and np.flatnonzero(np.isnan(VALUES)).tolist() == [NAN]
    assert np.flatnonzero(np.isinf(VALUES)).tolist() == [INFINITY, INFINITY | 0x80]
    assert np.array_equal(VALUES[0x81:], -VALUES[1:0x80])


@pytest.mark.parametrize(
    ("code", "value"),
    [(0x08, 1.0), (0x0F, 1.875), (0x10, 2.0), (0x18, 0.5), (0x20, 4.0), (0x2F, 15.0), (0x30, 0.25), (0x40, 16.0),
     (0x6E, 2.0**15), (0x60, 256.0), (0x7F, 1.5 * 2.0**-15), (0x01, 2.0**-22), (0x07, 2.0**-16)],
)  # fmt: skip
def test_examples(code, value):
    assert VALUES[code] == value and tcm.encode([value], FMT) == code


def test_every_number_comes_back_and_lies_in_fp16_and_bf16():
    finite = np.isfinite(VALUES)
    for rounding in ROUNDINGS:
        assert np.array_equal(tcm.encode(VALUES, FMT, rounding), CODES)
    for fmt in ("fp16", "bf16"):
        assert np.array_equal(tcm.decode(tcm.encode(VALUES[finite], fmt), fmt), VALUES[finite])


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("saturate", [False, True])
def test_between_all_neighbours(rounding, saturate):
    """Quarters between each two, and beyond the largest, where the next would be 1.5 x 2^15: as in exact integers."""
    numbers = sorted({*VALUES[:128][np.isfinite(VALUES[:128])], 1.5 * 2.0**15, 2.0**17})
    x = np.array([low + part * (high - low) for low, high in pairwise(numbers) for part in (0.25, 0.5, 0.75, 1)])
    x = np.append(x, -x)
    found = tcm.encode(x, FMT, rounding, saturate, seed=5)
    exact = [encode_exact(v, FMT, rounding, saturate=saturate, seed=5, index=i) for i, v in enumerate(x.tolist())]
    assert found.tolist() == exact


def test_ties_and_directions_between_numbers_with_different_fractions():
    """15 and 16 are 1 apart, 16 and 20 are 4; powers of two below 2^-15 have no fraction, the upper one is even."""
    ties = np.array([15.5, 18.0, 22.0, 1.5 * 2.0**-22, 0.5 * 2.0**-22])
    for rounding, expected in (
        ("rne", [16, 16, 24, 2.0**-21, 0]), ("rna", [16, 20, 24, 2.0**-21, 2.0**-22]), ("rnz", [15, 16, 20, 2.0**-22, 0]),
        ("ro", [15, 20, 20, 2.0**-22, 2.0**-22]),
    ):  # fmt: skip
        assert tcm.decode(tcm.encode(ties, FMT, rounding), FMT).tolist() == expected


def test_stochastic_rounding_goes_up_as_often_as_the_fraction_says():
    codes = tcm.encode(np.full(20000, 17.0), FMT, "sr", seed=1)
    assert abs((tcm.decode(codes, FMT) == 20).mean() - 0.25) < 0.02


def test_what_is_beyond_and_scaled():
    def values(x, *args, **options):
        return tcm.decode(tcm.encode(x, FMT, *args, **options), FMT).tolist()

    assert values([1e9, -1e9, np.inf, -np.inf]) == [np.inf, -np.inf, np.inf, -np.inf]
    assert values([1e9, -np.inf, 40000.0], saturate=True) == [2.0**15, -(2.0**15), 2.0**15]
    assert values([1e9, 1e-9], "rz") == [2.0**15, 0.0]
    assert tcm.encode([np.nan, -0.0], FMT).tolist() == [NAN, 0] and values([np.nan], nan=3) == [3]
    assert values([1.0, 1e-300], "ra", scale_exponent=-2000) == [2.0**-22] * 2
    assert values([5 * 2.0**-18, 1.0], "rne", subnormals="flush") == [0, 1]
    with pytest.raises(ValueError, match="unknown rounding 'up'"):
        tcm.encode([1.0], FMT, "up")
    with pytest.raises(ValueError, match="unknown subnormals"):
        tcm.encode([1.0], FMT, subnormals="no")


def test_products_of_the_950():
    """Its numbers are numbers of fp16: the unit's product is the fp16 unit's of the same values."""
    unit = tcm.get_instruction("ascend950", "cube.m16n16k32.f32.hif8.hif8.f32")
    half = tcm.get_instruction("ascend950", "cube.m16n16k16.f32.f16.f16.f32")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 256, s).astype(np.uint8) for s in ((9, 96), (96, 11)))
    x, y = (tcm.decode(v, FMT) for v in (a, b))
    wanted = half.gemm(x, y)
    assert np.array_equal(unit.gemm_bits(a, b).view(np.float32), wanted, equal_nan=True)
    tcm_reference = tcm.reference.mma_bits(unit, a, b, np.zeros((9, 11), np.uint32))
    assert np.array_equal(tcm_reference, unit.gemm_bits(a, b))
    assert Fraction(float(unit.gemm([[1.875, 15.0]], [[2.0], [0.25]])[0, 0])) == Fraction(15, 2)
