"""Generic kernels against the plain-integer reference, bit for bit, for every accumulator family."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import Unit, assert_same, assert_twins, operands

from tensorcore_models import kernels
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
)
from tensorcore_models.formats import FORMATS, Format

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
        Unit(FusedDotAdd(5, 25, nan="quiet", zero_operand="skip", zero_c="skip"), "fp16", "bf16", "fp16"),
        Unit(FusedDotAdd(8, 24, zero_operand="format_minimum", zero_c="format_minimum"), "fp16", "fp16"),
        Unit(FusedDotAdd(8, 25, subnormal_c="normalised", output_rounding="rne"), "fp16", "fp16", **HALF),
        Unit(FusedDotAdd(16, 25, negative_underflow="negative", exponent_floor=-21), "fp16", "fp16", **HALF),
        Unit(FusedDotAdd(7, 25, normalised_products=True, exponent_floor=-133), "bf16", "bf16"),
        *(
            Unit(FusedDotAdd(6, 14, alignment_rounding=r, output_rounding=r), "fp16", "fp16")
            for r in ("rne", "rna", "ru", "rd", "ro")
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
        Unit(FusedDotAdd(32, 25, scaled_zero="skip"), "e3m2", "e2m3", scale_format="ue8m0", block_size=16),
        Unit(FusedDotAdd(16, 25, zero_operand="skip"), "e5m2", "e2m1", scale_format="ue4m3", block_size=5),
    ),
    "InterleavedDotAdd": (
        Unit(InterleavedDotAdd(FDA16), "e4m3fn", "e4m3fn"),
        Unit(InterleavedDotAdd(FusedDotAdd(16, 25, output_rounding="rne")), "e5m2", "e4m3fn", **HALF),
        Unit(InterleavedDotAdd(FusedDotAdd(4, 24, zero_c="skip"), run=1, groups=3, group_order=(2, 0, 1)), "e4m3", "e5m2"),
        Unit(InterleavedDotAdd(FusedDotAdd(3, 24), final_rounding="rd", nan="quiet"), "e5m2", "fp16", "fp32"),
    ),
    "GroupDotFusedSum": (
        Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue4m3", block_size=16),
        Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue8m0", block_size=32),
        Unit(GroupDotFusedSum(8, 24, scaled_zero="skip", zero_c="skip"), "e3m2", "e2m3", scale_format="ue4m3", block_size=8),
        Unit(GroupDotFusedSum(4, 16, 70), "e5m2", "e4m3", scale_format="ue4m3", block_size=4),
        Unit(GroupDotFusedSum(16, 32, zero_operand="skip"), "e2m1", "e2m1", scale_format="ue4m3", block_size=16),
        Unit(GroupDotFusedSum(16, 32, output_rounding="rne"), "e2m1", "e3m2"),
    ),
    "FusedDotRoundDownAdd": (
        Unit(FusedDotRoundDownAdd(8), "fp16", "fp16"),
        Unit(FusedDotRoundDownAdd(8), "bf16", "bf16"),
        Unit(FusedDotRoundDownAdd(4, nan="all_ones"), "tf32", "tf32"),
        Unit(FusedDotRoundDownAdd(8, c_inf_with_overflow="nan"), "bf16", "bf16"),
        Unit(FusedDotRoundDownAdd(5, add_rounding="rz", zero_operand="skip", zero_c="skip"), "fp16", "bf16"),
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
        Unit(SequentialFMA(), "fp32", "fp32"),
        *(Unit(SequentialFMA(r), "fp32", "fp16") for r in ("rna", "rz", "ru", "rd", "ro")),
        *(Unit(SequentialFMA(r), "fp64", "fp64", "fp64", "fp64") for r in ("rna", "rz", "ru", "rd", "ro")),
        *(Unit(SequentialFMA(r), "fp16", "fp16", **HALF) for r in ("rne", "rz", "rd", "ro")),
        Unit(SequentialFMA("rne", True, True, "odd_first"), "bf16", "bf16"),
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
    ),
    "GroupPairwiseSum": (
        Unit(GroupPairwiseSum(), "fp16", "fp16"),
        Unit(GroupPairwiseSum(), "bf16", "bf16"),
        Unit(GroupPairwiseSum(2), "bf16", "bf16"),
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
        Unit(ParametricDotAdd(9, 24, alignment="pairwise", zero_operand="skip", zero_c="skip", sticky=True), "bf16", "bf16"),
        Unit(ParametricDotAdd(8, 22, alignment="odd_even", alignment_rounding="rd"), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 24, normalise_each_add=True, alignment_rounding="rna"), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 24, normalise_each_add=True, sticky=True, integer_bits=3), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 10, integer_bits=2), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 23, integer_bits=4, alignment="pairwise", c_position="late"), "fp16", "fp16"),
        Unit(ParametricDotAdd(8, 24, c_position="late", late_rounding="ru", flush_outputs=True), "bf16", "bf16"),
        Unit(ParametricDotAdd(8, 24, flush_inputs=True, flush_outputs=True, subnormal_c="normalised"), "fp16", "fp16", **HALF),
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
LENGTHS = (1, 2, 3, 4, 7, 8, 16, 17, 33)


@pytest.fixture(autouse=True)
def generic_kernels():
    kernels.set_kernel("generic")
    yield
    kernels.set_kernel(None)


def cases():
    """One parameter for each unit, named by family and position."""
    return [
        pytest.param(unit, i, 20_000 / len(units), id=f"{family}-{i}")
        for family, units in FAMILIES.items()
        for i, unit in enumerate(units)
    ]


@pytest.mark.parametrize(("unit", "seed", "dots"), cases())
def test_kernel_is_the_reference(unit, seed, dots):
    """2e4 dot products for each family."""
    assert_twins(unit, np.random.default_rng(seed), int(dots), LENGTHS)


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
