"""HiFloat8: all 256 encodings by the paper's statements (arXiv 2409.16626), and rounding between all neighbours."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.formats.hifloat8 import INFINITY, NAN, decode_hifloat8, encode_hifloat8, value_of

CODES = np.arange(256, dtype=np.uint8)
VALUES = decode_hifloat8(CODES).astype(float)


def test_the_encodings_are_those_of_the_paper():
    """7 exponents with 3 bits of fraction, 8 with 2, 16 with 1, 7 more powers of two; one zero, one NaN, two infinities."""
    positive = VALUES[1:128][np.isfinite(VALUES[1:128])]
    widths = Counter()
    for exponent, count in Counter(np.floor(np.log2(positive)).astype(int)).items():
        widths[count, exponent < -15] += 1
    # the binade of 2^15 has one number less: its last encoding is infinity
    assert widths == {(8, False): 7, (4, False): 8, (2, False): 15, (1, False): 1, (1, True): 7}
    assert positive.max() == 2.0**15 and positive.min() == 2.0**-22 and len(set(positive)) == 126
    assert np.flatnonzero(VALUES == 0).tolist() == [0] and np.flatnonzero(np.isnan(VALUES)).tolist() == [NAN]
    assert np.flatnonzero(np.isinf(VALUES)).tolist() == [INFINITY, INFINITY | 0x80]
    assert np.array_equal(VALUES[0x81:], -VALUES[1:0x80])


@pytest.mark.parametrize(
    ("code", "value"),
    [(0x08, 1.0), (0x0F, 1.875), (0x10, 2.0), (0x18, 0.5), (0x20, 4.0), (0x2F, 15.0), (0x30, 0.25), (0x40, 16.0),
     (0x6E, 2.0**15), (0x60, 256.0), (0x7F, 1.5 * 2.0**-15), (0x01, 2.0**-22), (0x07, 2.0**-16)],
)  # fmt: skip
def test_examples(code, value):
    assert value_of(code) == value and encode_hifloat8(value) == code


def test_every_number_comes_back_and_lies_in_fp16_and_bf16():
    finite = np.isfinite(VALUES)
    for rounding in ("rna", "rz", "ru", "rd", "ra"):
        assert np.array_equal(encode_hifloat8(VALUES, rounding), CODES)
    for fmt in ("fp16", "bf16"):
        assert np.array_equal(tcm.decode(tcm.encode(VALUES[finite], fmt), fmt).astype(float), VALUES[finite])


@pytest.mark.parametrize("rounding", ["rna", "rz", "ru", "rd", "ra"])
@pytest.mark.parametrize("sign", [1, -1])
def test_between_all_neighbours(rounding, sign):
    """A quarter, a half and three quarters between each two, and beyond the largest, where the next would be 1.5 x 2^15."""
    numbers = sorted({*VALUES[:128][np.isfinite(VALUES[:128])], 1.5 * 2.0**15})
    for low, high in zip(numbers, numbers[1:], strict=False):
        for part in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            x = sign * float(Fraction(low) + part * (Fraction(high) - Fraction(low)))
            up = {"rna": part >= Fraction(1, 2), "rz": False, "ra": True, "ru": sign > 0, "rd": sign < 0}[rounding]
            expected = sign * (high if up else low)
            expected = expected if abs(expected) <= 2.0**15 else sign * np.inf
            assert decode_hifloat8(encode_hifloat8(np.array([x]), rounding))[0] == expected, x


def test_what_is_beyond_and_what_is_refused():
    assert decode_hifloat8(encode_hifloat8([1e9, -1e9, np.inf, -np.inf])).tolist() == [np.inf, -np.inf, np.inf, -np.inf]
    assert decode_hifloat8(encode_hifloat8([1e9, -np.inf, 40000.0], saturate=True)).tolist() == [
        2.0**15,
        -(2.0**15),
        2.0**15,
    ]
    assert decode_hifloat8(encode_hifloat8([1e9, 1e-9], "rz")).tolist() == [2.0**15, 0.0]
    assert encode_hifloat8([np.nan, -0.0]).tolist() == [NAN, 0]
    with pytest.raises(ValueError, match="rna, rz, ru, rd or ra, not rne"):
        encode_hifloat8([1.0], "rne")
    with pytest.raises(TypeError, match="encodings of HiFloat8 are uint8"):
        decode_hifloat8([1])
    with pytest.raises(ValueError, match="0 to 255, got 256"):
        value_of(256)
