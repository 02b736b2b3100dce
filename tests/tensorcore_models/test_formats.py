"""The rows of the format table against their published facts, and what the table refuses."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm

# name: largest finite, smallest normal, smallest positive value
# (IEEE 754-2019; OCP FP8 and MX; ml_dtypes' documentation)
PUBLISHED = {
    "fp64": (np.finfo(np.float64).max, 2.0**-1022, 2.0**-1074),
    "fp32": (2.0**128 - 2.0**104, 2.0**-126, 2.0**-149),
    "tf32": (2.0**128 - 2.0**117, 2.0**-126, 2.0**-136),
    "hf32": (2.0**128 - 2.0**116, 2.0**-126, 2.0**-137),
    "hf32_950": (2.0**128 - 2.0**117, 2.0**-126, 2.0**-136),
    "bf16": (2.0**128 - 2.0**120, 2.0**-126, 2.0**-133),
    "fp16": (65504.0, 2.0**-14, 2.0**-24),
    "e5m2": (57344.0, 2.0**-14, 2.0**-16),
    "e4m3fn": (448.0, 2.0**-6, 2.0**-9),
    "e5m2fnuz": (57344.0, 2.0**-15, 2.0**-17),
    "e4m3fnuz": (240.0, 2.0**-7, 2.0**-10),
    "e4m3": (240.0, 2.0**-6, 2.0**-9),
    "e3m4": (15.5, 2.0**-2, 2.0**-6),
    "e3m2": (28.0, 0.25, 0.0625),
    "e2m3": (7.5, 1.0, 0.125),
    "e2m1": (6.0, 1.0, 0.5),
    "ue8m0": (2.0**127, 2.0**-127, 2.0**-127),
    "ue4m3": (448.0, 2.0**-6, 2.0**-9),
    "ufp16": (4292870144.0, 2.0**-30, 2.0**-40),
    "hifloat8": (2.0**15, 2.0**-15, 2.0**-22),
}


def test_the_table_holds_the_named_formats():
    assert set(tcm.FORMATS) == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_limits(name):
    fmt = tcm.get_format(name)
    assert (fmt.max_finite, fmt.min_normal, fmt.min_subnormal) == PUBLISHED[name]


@pytest.mark.parametrize("fmt", [f for f in tcm.FORMATS.values() if f.dtype is not None and f.bits <= 16])
def test_ml_dtypes_agrees_on_what_each_encoding_means(fmt):
    # as a container it is an oracle: widening to float64 does not round
    codes = np.arange(1 << fmt.bits, dtype=fmt.container)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        np.testing.assert_array_equal(tcm.decode(codes, fmt), codes.view(fmt.dtype).astype(np.float64))


@pytest.mark.parametrize(
    "arguments",
    [
        ("x", 0, 3, 1),
        ("x", 5, -1, 1),
        ("x", 31, 20, 1),
        ("x", 12, 52, 1),
        ("x", 8, 23, 1 << 40),
        ("x", 1, 3, 0, "ieee"),
        ("x", 5, 0, 1, "ieee"),
        ("x", 8, 0, 1, "scale", True),
        ("x", 4, 3, 1, "fnuz", False),
    ],
)
def test_impossible_formats_are_refused(arguments):
    with pytest.raises(ValueError, match="format 'x'"):
        tcm.Format(*arguments)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown format 'xyz'; known: fp64, fp32, .*ue4m3"):
        tcm.get_format("xyz")
    with pytest.raises(ValueError, match=r"unknown format 'fp9'; did you mean fp8.* Known: fp64, fp32, .*ue4m3"):
        tcm.get_format("fp9")
    with pytest.raises(TypeError, match="expected a format's name or a Format, got int"):
        tcm.get_format(16)


def test_formats_of_dtypes():
    assert tcm.format_of_dtype(np.float32).name == "fp32"
    assert tcm.format_of_dtype(">f8").name == "fp64"
    assert tcm.format_of_dtype(ml_dtypes.bfloat16).name == "bf16"
    assert tcm.format_of_dtype(ml_dtypes.float4_e2m1fn).name == "e2m1"
    assert tcm.format_of_dtype(np.int32) is None
    assert tcm.format_of_dtype(ml_dtypes.float8_e4m3b11fnuz) is None
