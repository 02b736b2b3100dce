"""Generic kernels against the plain-integer reference, bit for bit, for every accumulator family."""

import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_encodings import STYLES
from twins import Unit, assert_same, assert_twins, on_isa, operands

from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
    WidenedDotAdd,
)
from tensorcore_models.arithmetic.recorder import Unrecordable
from tensorcore_models.formats import Format
from tensorcore_models.kernels.programs import TooWide
from tensorcore_models.kernels.recorded import RecordedKernel
from tensorcore_models.machine import instruction_sets as isa
from tensorcore_models.machine import threads

pytestmark = pytest.mark.usefixtures("generic_kernels")

WIDE = Format("wide40", 11, 40, 1023)  # products of 82 bits
ODD = Format("odd13", 6, 6, 20, "fn")

FDA16 = FusedDotAdd(16, 25)
HALF = {"c_format": "fp16", "d_format": "fp16"}
FAMILIES: dict[str, tuple[Unit, ...]] = {
    "FusedDotAdd": (
        Unit(FusedDotAdd(4, 23), "fp16", "fp16"),
        Unit(FusedDotAdd(8, 24, output_rounding="rne"), "fp16", "fp16", **HALF),
        Unit(FusedDotAdd(8, 24), "bf16", "bf16"),
        Unit(FusedDotAdd(4, 25, tf32_nan="kept"), "tf32", "tf32"),
        Unit(FusedDotAdd(4, 24), "tf32", "tf32"),
        Unit(FusedDotAdd(32, 13, output_fraction_bits=13), "e4m3fn", "e5m2"),
        Unit(FusedDotAdd(16, 13, output_rounding="rne"), "e5m2", "e4m3fn", **HALF),
        Unit(FusedDotAdd(5, 25, nan="quiet", zero_operand="minus126", zero_c="minus126"), "fp16", "bf16", "fp16"),
        Unit(FusedDotAdd(8, 24, zero_operand="format_minimum", zero_c="format_minimum"), "fp16", "fp16"),
        Unit(FusedDotAdd(8, 25, subnormal_c="normalised", output_rounding="rne"), "fp16", "fp16", **HALF),
        Unit(FusedDotAdd(16, 25, negative_underflow="negative", exponent_floor=-21), "fp16", "fp16", **HALF),
        Unit(FusedDotAdd(7, 25, normalised_products=True, exponent_floor=-133), "bf16", "bf16"),
        Unit(FusedDotAdd(6, 12, exponent_floor=2), "fp16", "fp16"),
        *(
            Unit(FusedDotAdd(6, 14, alignment_rounding=r, output_rounding=r), "fp16", "fp16")
            for r in ("rne", "rna", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
        ),
        Unit(FusedDotAdd(12, 100, output_rounding="rne"), "fp16", "fp16"),
        Unit(FusedDotAdd(3, 60, output_rounding="rd", alignment_rounding="rna"), "fp64", "fp32", "fp64", "fp64"),
        Unit(FusedDotAdd(3, 110), WIDE, WIDE, "fp64", "fp64"),
        Unit(FusedDotAdd(8, 25, output_rounding="rne"), ODD, "e4m3", ODD, ODD),
        Unit(FusedDotAdd(8, 25, output_rounding="rd"), "e3m4", "e2m3", "e4m3fnuz", "e4m3fnuz"),
        Unit(FusedDotAdd(1, 24), "fp16", "fp16"),
    ),
    "block-scaled FusedDotAdd": (
        Unit(FusedDotAdd(32, 25), "e4m3fn", "e2m1", scale_format="ue8m0", block_size=32),
        Unit(
            FusedDotAdd(32, 25, zero_operand="minus126", scaled_zero="keeps_scale"),
            "e3m2",
            "e2m3",
            scale_format="ue8m0",
            block_size=16,
        ),
        Unit(FusedDotAdd(16, 25, zero_operand="format_minimum"), "e5m2", "e2m1", scale_format="ue4m3", block_size=5),
    ),
    "InterleavedDotAdd": (
        Unit(InterleavedDotAdd(FDA16), "e4m3fn", "e4m3fn"),
        Unit(InterleavedDotAdd(FusedDotAdd(16, 25, output_rounding="rne")), "e5m2", "e4m3fn", **HALF),
        Unit(
            InterleavedDotAdd(FusedDotAdd(4, 24, zero_c="minus126"), run=1, groups=3, group_order=(2, 0, 1)),
            "e4m3",
            "e5m2",
        ),
        Unit(InterleavedDotAdd(FusedDotAdd(3, 24), final_rounding="rd", nan="quiet"), "e5m2", "fp16", "fp32"),
    ),
    "WidenedDotAdd": (
        Unit(WidenedDotAdd(FDA16), "fp16", "fp16", "fp32", "fp16"),
        Unit(WidenedDotAdd(FusedDotAdd(8, 24, exponent_floor=-132)), "fp16", "fp16", "fp16", "fp32"),
        Unit(WidenedDotAdd(FusedDotAdd(4, 23, nan="quiet"), 12, nan="quiet"), "bf16", "fp16", "fp16", "e5m2"),
        Unit(WidenedDotAdd(FusedDotAdd(3, 24), 6), "e4m3fn", "e5m2", **HALF),
        Unit(WidenedDotAdd(GroupPairwiseSum(), 8, nan="quiet"), "fp16", "fp16", "fp16", "bf16"),
    ),
    "GroupDotFusedSum": (
        Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue4m3", block_size=16),
        Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue8m0", block_size=32),
        Unit(GroupDotFusedSum(8, 24, scaled_zero="skip"), "e3m2", "e2m3", scale_format="ue4m3", block_size=8),
        Unit(GroupDotFusedSum(4, 16, 70, zero_c="minus126"), "e5m2", "e4m3", scale_format="ue4m3", block_size=4),
        Unit(
            GroupDotFusedSum(16, 32, zero_operand="minus126", scaled_zero="keeps_scale"),
            "e2m1",
            "e2m1",
            scale_format="ue4m3",
            block_size=16,
        ),
        Unit(GroupDotFusedSum(16, 32, output_rounding="rne"), "e2m1", "e3m2"),
    ),
    "FusedDotRoundDownAdd": (
        Unit(FusedDotRoundDownAdd(8), "fp16", "fp16"),
        Unit(FusedDotRoundDownAdd(8), "bf16", "bf16"),
        Unit(FusedDotRoundDownAdd(4, nan="all_ones"), "tf32", "tf32"),
        Unit(FusedDotRoundDownAdd(8, c_inf_with_overflow="c", sum_fraction_bits=None), "bf16", "bf16"),
        Unit(FusedDotRoundDownAdd(5, add_rounding="rz", zero_operand="minus126", zero_c="skip"), "fp16", "bf16"),
        Unit(FusedDotRoundDownAdd(8, 24, 40, 40, sum_fraction_bits=26), "fp16", "fp16"),
        Unit(FusedDotRoundDownAdd(8, 20, 18, 30, product_overflow_exponent=None), "fp16", "fp16", **HALF),
        Unit(FusedDotRoundDownAdd(8, 50, 60, 45), "fp16", "fp32", "fp64", "fp64"),
    ),
    "GroupFusedDotRoundDownAdd": (
        Unit(GroupFusedDotRoundDownAdd(16), "e4m3fnuz", "e5m2fnuz"),
        Unit(GroupFusedDotRoundDownAdd(16), "e5m2fnuz", "e5m2fnuz"),
        Unit(GroupFusedDotRoundDownAdd(6, c_zero_below=3, exponent_floor=-5), "e4m3fnuz", "e5m2"),
        Unit(GroupFusedDotRoundDownAdd(8), "bf16", "bf16"),
    ),
    "SequentialFMA": (
        Unit(SequentialFMA(), "fp64", "fp64", "fp64", "fp64"),
        *(Unit(SequentialFMA(r, nan="dmma"), "fp64", "fp64", "fp64", "fp64") for r in ("rne", "rz", "rd", "ru")),
        Unit(SequentialFMA(nan="dmma"), "fp16", "bf16"),
        Unit(SequentialFMA(), "fp32", "fp32"),
        *(
            Unit(SequentialFMA(r), "fp32", "fp16")
            for r in ("rna", "rz", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
        ),
        *(
            Unit(SequentialFMA(r), "fp64", "fp64", "fp64", "fp64")
            for r in ("rna", "rz", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
        ),
        *(
            Unit(SequentialFMA(r), "fp16", "fp16", **HALF)
            for r in ("rne", "rz", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
        ),
        Unit(SequentialFMA("rne", True, True, "odd_first"), "bf16", "bf16"),
        Unit(SequentialFMA("rne", True, True, "odd_first", nan="x86"), "bf16", "bf16"),
        Unit(SequentialFMA("ru", True, True, nan="x86"), "fp16", "e4m3fn", "fp16", "fp16"),
        Unit(SequentialFMA("rd", False, True, nan="x86"), "fp64", "fp64", "fp64", "fp64"),
        Unit(SequentialFMA(nan="x86"), "fp64", "tf32", "fp64", "fp64"),
        Unit(SequentialFMA("rne", False, True, nan="x86"), ODD, ODD, ODD, ODD),
        Unit(SequentialFMA("rz", True, True), WIDE, WIDE, WIDE, WIDE),
        Unit(SequentialFMA("rne", True, True, nan="all_ones"), "fp64", "fp64", "fp64", "fp64"),
        Unit(SequentialFMA("rz", True, True), "fp64", "fp32", "fp64", "fp64"),
        Unit(SequentialFMA("ru", True, False), "fp32", "fp32"),
        Unit(SequentialFMA("rne", True, False), "fp16", "fp16", "fp32", "fp16"),
        Unit(SequentialFMA(saturate=True), "fp16", "fp16"),
        Unit(SequentialFMA(saturate=True, rounding="rz"), "fp16", "fp16", **HALF),
        Unit(SequentialFMA(saturate=True), "fp64", "fp64", "fp32", "fp64"),
        Unit(SequentialFMA("rne"), ODD, ODD, ODD, ODD),
        Unit(SequentialFMA("rd"), "e4m3fnuz", "e5m2fnuz", "e5m2fnuz", "e5m2fnuz"),
        Unit(SequentialFMA("rne"), WIDE, WIDE, WIDE, WIDE),
        Unit(SequentialFMA("rne"), "bf16", "bf16", "bf16", "bf16"),
        Unit(SequentialFMA("rna"), "fp16", "fp16", "fp32", "tf32"),
    ),
    "LanedFMA": (
        Unit(LanedFMA(), "bf16", "bf16"),
        Unit(LanedFMA(flush_inputs=False), "fp16", "fp16"),
        Unit(LanedFMA(3, 6, nan="all_ones"), "bf16", "fp16"),
        Unit(LanedFMA(4, 8), "bf16", "e5m2fnuz", "fp16", "tf32"),
    ),
    "GroupPairwiseSum": (
        Unit(GroupPairwiseSum(), "fp16", "fp16"),
        Unit(GroupPairwiseSum(), "bf16", "bf16"),
        Unit(GroupPairwiseSum(2, terms=8), "bf16", "bf16"),
        Unit(GroupPairwiseSum(flush_input="fp32"), "fp16", "bf16"),
        Unit(GroupPairwiseSum(flush_input="none", flush_results=False), "bf16", "bf16"),
        Unit(GroupPairwiseSum(8), "bf16", "fp16"),
    ),
    "PairRoundOddSum": (Unit(PairRoundOddSum(), "bf16", "bf16"), Unit(PairRoundOddSum(nan="all_ones"), "fp16", "bf16")),
    "IntegerDotAdd": (
        Unit(IntegerDotAdd(), "s8", "s8", "s32", "s32"),
        Unit(IntegerDotAdd(True, 4), "u8", "s8", "s32", "s32"),
        Unit(IntegerDotAdd(True), "s4", "u4", "s32", "s32"),
        Unit(IntegerDotAdd(True), "u8", "u8", "s32", "s8"),
    ),
    "ParametricDotAdd": (
        Unit(ParametricDotAdd(8, 24, sticky=True), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 24, alignment="pairwise", alignment_rounding="rne"), "fp16", "fp16"),
        Unit(
            ParametricDotAdd(9, 24, alignment="pairwise", zero_operand="skip", zero_c="skip", sticky=True),
            "bf16",
            "bf16",
        ),
        Unit(ParametricDotAdd(8, 22, alignment="odd_even", alignment_rounding="rd"), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 24, normalise_each_add=True, alignment_rounding="rna"), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 24, normalise_each_add=True, sticky=True, integer_bits=3), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 10, integer_bits=2), "fp16", "fp16"),
        Unit(ParametricDotAdd(2, 26, significand_parts=(4,) * 6), "fp32", "fp32"),  # 36 products of parts
        Unit(ParametricDotAdd(8, 23, integer_bits=4, alignment="pairwise", c_position="late"), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 24, c_position="late", late_rounding="ru", flush_outputs=True), "bf16", "bf16"),
        Unit(
            ParametricDotAdd(8, 24, flush_inputs=True, flush_outputs=True, subnormal_c="normalised"),
            "fp16",
            "fp16",
            **HALF,
        ),
        Unit(ParametricDotAdd(8, 24, product_overflow_exponent=100), "bf16", "bf16"),
        Unit(ParametricDotAdd(8, 1, output_rounding="rne"), "fp16", "fp16"),
        Unit(ParametricDotAdd(4, 80, alignment="odd_even", sticky=True), "fp16", "fp16"),
        Unit(ParametricDotAdd(4, 30), "e4m3fn", "e5m2", scale_format="ue8m0", block_size=8),
    ),
    "exact ParametricDotAdd": (
        Unit(ParametricDotAdd(8, None, output_rounding="rne"), "fp16", "fp16"),
        Unit(ParametricDotAdd(16, None, output_rounding="rd", c_position="late"), "bf16", "bf16"),
        Unit(ParametricDotAdd(4, None, output_rounding="rne", alignment="pairwise"), "fp64", "fp64", "fp64", "fp64"),
        Unit(ParametricDotAdd(5, None, output_rounding="ro", product_overflow_exponent=120), "fp32", "tf32", **HALF),
        Unit(ParametricDotAdd(8, None, output_rounding="rna"), "e4m3fn", "e2m1", scale_format="ue8m0", block_size=4),
    ),
}
LENGTHS = (1, 2, 3, 4, 7, 8, 9, 16, 17)


def cases():
    """One parameter for each unit, named by family and position."""
    return [
        pytest.param(unit, i, 20_000 / len(units), id=f"{family}-{i}")
        for family, units in FAMILIES.items()
        for i, unit in enumerate(units)
    ]


@pytest.mark.sweep(35)
@pytest.mark.parametrize("share", (0.1, pytest.param(1, marks=pytest.mark.full)))
@pytest.mark.parametrize(("unit", "seed", "dots"), cases())
def test_kernel_is_the_reference(unit, seed, dots, share):
    """2,000 dot products for each family, 20,000 in `make test-all`."""
    assert_twins(unit, np.random.default_rng(seed), int(dots * share), LENGTHS)


@pytest.mark.parametrize(("unit", "seed", "dots"), cases())
def test_every_unit_here_has_a_kernel(unit, seed, dots):
    """Otherwise the comparison above would be the reference with itself."""
    assert kernels.kernel_name(unit).startswith("generic ")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize(("unit", "index", "dots"), cases())
def test_kernel_is_the_reference_campaign(unit, index, dots, seed):
    """1e6 dot products for each family."""
    assert_twins(unit, np.random.default_rng((index, seed)), int(5 * dots), LENGTHS)


# -- random points of the parametric space -----------------------------------------------------------------------------------
NAMES = ("fp16", "bf16", "tf32", "e5m2", "e4m3fn", "e4m3fnuz", "e2m1", "e3m2", "fp32")
ROUNDINGS = ("rne", "rna", "rz", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
ZEROS = ("minus126", "format_minimum", "skip")


@st.composite
def parametric_specs(draw):
    """A specification that the class accepts: options that exclude each other are drawn in order."""
    exact = draw(st.booleans()) and draw(st.booleans())
    sticky = not exact and draw(st.booleans())
    alignment = draw(st.sampled_from(("global", "pairwise", "odd_even")))
    return ParametricDotAdd(
        terms=draw(st.integers(1, 20)),
        fraction_bits=None if exact else draw(st.integers(1, 40) | st.integers(1, 100)),
        alignment_rounding="rz" if sticky else draw(st.sampled_from(ROUNDINGS)),
        sticky=sticky,
        normalised_products=draw(st.booleans()),
        c_position=draw(st.sampled_from(("early", "late"))),
        alignment=alignment,
        integer_bits=None if exact else draw(st.none() | st.integers(2, 12)),
        normalise_each_add=not exact and alignment == "global" and draw(st.booleans()),
        output_rounding=draw(st.sampled_from(ROUNDINGS)),
        output_fraction_bits=draw(st.none() | st.integers(1, 24)),
        late_rounding=draw(st.sampled_from(ROUNDINGS)),
        product_overflow_exponent=draw(st.none() | st.integers(-10, 128)),
        flush_inputs=draw(st.booleans()),
        flush_outputs=draw(st.booleans()),
        flushed=draw(st.sampled_from(("aligned", "as_zero"))),
        scaled_zero=draw(st.sampled_from(("keeps_scale", "skip"))),
        zero_operand=draw(st.sampled_from(ZEROS)),
        zero_c=draw(st.sampled_from(ZEROS)),
        subnormal_c=draw(st.sampled_from(("raw", "normalised"))),
        negative_underflow=draw(st.sampled_from(("positive", "negative"))),
        exponent_floor=draw(st.none() | st.integers(-140, 10)),
        nan=draw(st.sampled_from(("all_ones", "quiet"))),
        tf32_nan=draw(st.sampled_from(("truncated", "kept"))),
    )


@st.composite
def parametric_units(draw):
    scaled = draw(st.booleans())
    c_and_d = st.sampled_from(("fp32", "fp16", "bf16", "tf32", "e5m2", "e4m3fn", "e5m2fnuz"))
    return Unit(
        draw(parametric_specs()),
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from(NAMES)),
        draw(c_and_d),
        draw(c_and_d),
        draw(st.sampled_from(("ue8m0", "ue4m3"))) if scaled else None,
        draw(st.integers(1, 9)) if scaled else None,
    )


@given(parametric_units(), st.integers(0, 2**32))
@settings(max_examples=80)
def test_random_parametric_units(unit, seed):
    assert_twins(unit, np.random.default_rng(seed), 40, (1, 3, unit.accumulator.terms, 2 * unit.accumulator.terms + 1))


@pytest.mark.full
@given(parametric_units(), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_parametric_units_as_programs(unit, seed):
    rng, step = np.random.default_rng(seed), unit.accumulator.terms_per_step
    try:
        kernel = RecordedKernel(kernels.lowered(unit))
        for style in rng.choice(STYLES, 2):
            args = operands(rng, unit, 2, int(rng.choice([1, step, 2 * step + 1])), int(rng.integers(1, 6)), str(style))
            expected = reference.mma_bits(unit, *args)
            for level in isa.available_isas():
                isa.set_isa(level)
                assert_same(unit, kernel.run(*args), expected, args, f"{style} on {level}")
    except (Unrecordable, TooWide):
        pass
    finally:
        isa.set_isa(None)


@pytest.mark.parametrize("rounding", ["rne", "rna", "rnu", "rnd", "rnz", "rno"])
@pytest.mark.parametrize("sign", [0, 0x80000000])
def test_almost_the_smallest_number_is_rounded_to_it(rounding, sign):
    """c = 2^-16 less 2^-140: what is cut off below e5m2's last place has all 64 bits, and a bit more."""
    unit = Unit(ParametricDotAdd(4, 64, c_position="late", late_rounding=rounding), "fp16", "fp16", d_format="e5m2")
    a, b = np.zeros((1, 4), np.uint16), np.zeros((4, 1), np.uint16)
    a[0, 0], b[0, 0] = 0x1C00 | sign >> 16, 0x1C00  # 2^-8 each
    c = np.full((1, 1), 0x00000200 | (sign ^ 0x80000000), np.uint32)  # 2^-140 of the other sign
    expected = [[1 | sign >> 24]]
    assert reference.mma_bits(unit, a, b, c).tolist() == expected
    for level in isa.available_isas():
        assert on_isa(level, unit, (a, b, c, None, None)).tolist() == expected


# -- what is wider than the kernels ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        (Unit(FusedDotAdd(16, 120), "fp64", "fp64", "fp64", "fp64"), "exceed 63 and 126"),
        (Unit(GroupPairwiseSum(128, terms=256), "fp16", "fp16"), "groups of more than"),
        (Unit(GroupPairwiseSum(), "fp64", "fp64", "fp64", "fp64"), "exact in double"),
        (Unit(FusedDotAdd(4, 20), "fp16", "fp16", "fp32", "e2m3"), "no NaN"),
        (Unit(InterleavedDotAdd(FDA16, via_format="fp64"), "fp32", "fp32"), "table"),
    ],
)
def test_what_no_kernel_holds_goes_to_the_reference_and_says_so(unit, reason):
    name = kernels.kernel_name(unit)
    assert name.startswith("reference (") and reason in name
    rng = np.random.default_rng(0)
    args = operands(rng, replace(unit, d_format="fp32") if unit.d_format == "e2m3" else unit, 2, 5, 3, "clustered")
    if unit.d_format != "e2m3":
        assert kernels.matrix_bits(unit, *args).shape == (2, 3)


def test_exact_accumulator_of_fp64_is_exact():
    """A sum that cancels over the whole range of FP64."""
    unit = Unit(ParametricDotAdd(5, None, output_rounding="rne"), "fp64", "fp64", "fp64", "fp64")
    a = np.array([[2.0**1000, 1.0, 2.0**-1070, -(2.0**1000), -1.0]]).view(np.uint64)
    b = np.array([[2.0**20, 1.0, 2.0**-4, 2.0**20, 1.0]]).T.copy().view(np.uint64)
    c = np.full((1, 1), 2.0**-1074).view(np.uint64)
    assert kernels.matrix_bits(unit, a, b, c).view(np.float64)[0, 0] == 2.0**-1073


# -- shapes, strides, threads ------------------------------------------------------------------------------------------------
SHAPES = ((1, 1, 1), (1, 5, 130), (9, 33, 65), (17, 100, 16), (130, 3, 7), (8, 1100, 20), (40, 70, 1))


@pytest.mark.parametrize(
    "family", ["FusedDotAdd", "LanedFMA", "GroupDotFusedSum", "IntegerDotAdd", "InterleavedDotAdd"]
)
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_elements_do_not_depend_on_the_shape(family, m, k, n):
    """Every element is the one of its row and column alone; tiles, panels, blocks of k and remainders do not show."""
    unit = FAMILIES[family][0]
    rng = np.random.default_rng(m * k + n)
    args = operands(rng, unit, m, k, n, "bits" if family == "IntegerDotAdd" else "clustered")
    d = kernels.matrix_bits(unit, *args)
    a, b, c, sa, sb = args
    for i, j in rng.integers(0, (m, n), (12, 2)):
        part = slice(i, i + 1), slice(j, j + 1)
        scales = (None, None) if sa is None else (sa[part[0]], sb[:, part[1]])
        one = kernels.matrix_bits(unit, a[part[0]], b[:, part[1]], c[part], *scales)
        assert one[0, 0] == d[i, j]


@pytest.mark.parametrize("family", list(FAMILIES))
def test_threads_do_not_change_bits(family):
    unit = FAMILIES[family][0]
    rng = np.random.default_rng(1)
    args = operands(rng, unit, 70, 40, 75, "clustered")
    try:
        threads.set_num_threads(1)
        expected = kernels.matrix_bits(unit, *args)
        for count in (2, 3):
            threads.set_num_threads(count)
            assert_same(unit, kernels.matrix_bits(unit, *args), expected, args)
    finally:
        threads.set_num_threads(None)


@pytest.mark.parametrize("level", isa.available_isas()[1:])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_instruction_sets_do_not_change_bits(family, level):
    """Products over several panels, columns that fill none, and chains over several blocks of k."""
    rng = np.random.default_rng(2)
    for unit in FAMILIES[family]:
        for (m, k, n), style in zip(((2, 300, 9), (3, 70, 85), (2, 17, 4)), rng.choice(STYLES, 3), strict=True):
            args = operands(rng, unit, m, k, n, str(style))
            expected = on_isa("baseline", unit, args)
            assert_same(unit, on_isa(level, unit, args), expected, args, f"{style} on {level}")


@pytest.mark.parametrize("family", list(FAMILIES))
def test_batches_are_matrices_one_after_the_other(family):
    unit = FAMILIES[family][0]
    rng = np.random.default_rng(3)
    products = [operands(rng, unit, 5, 19, 18, str(rng.choice(STYLES))) for _ in range(40)]
    batch = [None if x[0] is None else np.stack(x) for x in zip(*products, strict=True)]
    try:
        for count in (1, 3):
            threads.set_num_threads(count)
            d = kernels.batch_bits(unit, *batch)
            for i, args in enumerate(products):
                assert_same(unit, d[i], kernels.matrix_bits(unit, *args), args)
    finally:
        threads.set_num_threads(None)


@pytest.mark.parametrize("family", ["FusedDotAdd", "SequentialFMA", "GroupDotFusedSum"])
def test_strides_byte_order_and_read_only_views(family):
    unit = FAMILIES[family][0]
    a, b, c, sa, sb = operands(np.random.default_rng(4), unit, 7, 20, 9, "clustered")
    expected = kernels.matrix_bits(unit, a, b, c, sa, sb)
    wide = np.zeros((14, 40), a.dtype)
    wide[::2, ::-2] = a
    view, swapped = wide[::2, ::-2], b.astype(b.dtype.newbyteorder())
    raw = bytearray(c.nbytes + 1)
    unaligned = np.frombuffer(raw, c.dtype, c.size, 1).reshape(c.shape)
    unaligned[:] = c
    for x in (view, swapped, unaligned):
        x.flags.writeable = False
    before = view.copy(), swapped.copy(), unaligned.copy()
    assert np.array_equal(kernels.matrix_bits(unit, view, swapped, unaligned, sa, sb), expected)
    assert all(np.array_equal(x, y) for x, y in zip(before, (view, swapped, unaligned), strict=True))


def test_wrong_types_shapes_and_missing_scales_raise():
    unit = FAMILIES["FusedDotAdd"][0]
    a, b, c, _, _ = operands(np.random.default_rng(5), unit, 4, 8, 4, "normal")
    with pytest.raises(TypeError, match="a holds uint32, expected encodings in uint16"):
        kernels.matrix_bits(unit, a.astype(np.uint32), b, c)
    with pytest.raises(ValueError, match="shapes do not fit"):
        kernels.matrix_bits(unit, a, b[:-1], c)
    with pytest.raises(ValueError, match="scale_a or scale_b is missing"):
        scaled, bytes_ = FAMILIES["GroupDotFusedSum"][0], np.zeros((16, 16), np.uint8)
        kernels.matrix_bits(scaled, bytes_, bytes_, np.zeros((16, 16), np.uint32))


def test_empty_products():
    unit = FAMILIES["FusedDotAdd"][0]
    c = np.arange(6, dtype=np.uint32).reshape(2, 3)
    half = np.uint16
    assert np.array_equal(kernels.matrix_bits(unit, np.zeros((2, 0), half), np.zeros((0, 3), half), c), c)
    assert kernels.matrix_bits(unit, np.zeros((0, 4), half), np.zeros((4, 3), half), c[:0]).shape == (0, 3)


# -- which kernel runs -------------------------------------------------------------------------------------------------------
def test_kernels_by_name_and_environment(monkeypatch):
    unit = FAMILIES["FusedDotAdd"][0]
    monkeypatch.setenv("MPGEMM_KERNEL", "reference")
    kernels.set_kernel(None)
    assert kernels.kernel_name(unit) == "reference"
    monkeypatch.setenv("MPGEMM_KERNEL", "quick")
    assert kernels.get_kernel() == "reference"  # read once
    kernels.set_kernel(None)
    with pytest.raises(ValueError, match="MPGEMM_KERNEL is 'quick', expected one of auto, generic, reference"):
        kernels.get_kernel()
    with pytest.raises(ValueError, match="one of auto, generic, reference"):
        kernels.set_kernel("Generic")


def test_a_fast_path_takes_what_it_prepared_and_nothing_smaller(monkeypatch):
    unit, other = FAMILIES["FusedDotAdd"][:2]
    ran = []

    class Kernel:
        @classmethod
        def of(cls, low):
            return cls() if low.accumulator == unit.accumulator else None

        def run(self, low, a, b, c, scale_a, scale_b):
            ran.append("kernel")
            return kernels.generic_bits(low, a, b, c, scale_a, scale_b)

    monkeypatch.setattr(kernels.generic, "Kernel", Kernel, raising=False)
    monkeypatch.setattr(kernels.dispatch, "FAST_PATHS", (kernels.FastPath("test", "generic.Kernel", smallest=64),))
    kernels.set_kernel("auto")
    rng = np.random.default_rng(6)
    for this, size, expected in ((unit, 4, ["kernel"]), (unit, 1, []), (other, 4, [])):
        ran.clear()
        args = operands(rng, this, size, 4, 4, "normal")
        d = kernels.matrix_bits(this, *args)
        assert ran == expected
        kernels.set_kernel("generic")
        assert np.array_equal(d, kernels.matrix_bits(this, *args))
        kernels.set_kernel("auto")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_an_interrupt_ends_a_long_call():
    """Signals are looked at between slices of at most 2^22 multiply-adds a thread."""

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    unit = FAMILIES["FusedDotAdd"][0]
    ones = np.full((3000, 3000), 0x3C00, np.uint16)  # a minute or more on two threads
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            kernels.matrix_bits(unit, ones, ones, np.zeros((3000, 3000), np.uint32))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - start < 10  # a loaded machine; the whole product takes far longer
