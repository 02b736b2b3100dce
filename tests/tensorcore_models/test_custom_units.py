"""Custom units: specifications are checked field by field, block scales are applied or refused, odd arguments are refused."""

import warnings

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.accumulators import (
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    ParametricDotAdd,
    WidenedDotAdd,
)
from tensorcore_models.families.fused.specification import BEYOND


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: tcm.FusedDotAdd(output_fraction_bits=-3), ValueError),
        (lambda: tcm.FusedDotAdd(fraction_bits=24.5), TypeError),
        (lambda: tcm.FusedDotAdd(terms=2.0), TypeError),
        (lambda: tcm.FusedDotAdd(terms=True), TypeError),
        (lambda: tcm.FusedDotAdd(exponent_floor=float("nan")), TypeError),
        (lambda: tcm.FusedDotAdd(exponent_floor=10**6), ValueError),
        (lambda: tcm.FusedDotAdd(normalised_products=1), TypeError),
        (lambda: tcm.FusedDotAdd(zero_c="skipped"), ValueError),
        (lambda: ParametricDotAdd(integer_bits=2.5), TypeError),
        (lambda: ParametricDotAdd(sticky="yes"), TypeError),
        (lambda: ParametricDotAdd(alignment="tree"), ValueError),
        (lambda: GroupDotFusedSum(terms=1 << 20), ValueError),
        (lambda: FusedDotRoundDownAdd(product_overflow_exponent=1.5), TypeError),
        (lambda: LanedFMA(lanes=0), ValueError),
        (lambda: InterleavedDotAdd(group_order=(0.0, 1)), TypeError),
        (lambda: InterleavedDotAdd(dot="fda"), TypeError),
        (lambda: WidenedDotAdd(tcm.FusedDotAdd(8, 24), 12), ValueError),
        (lambda: WidenedDotAdd(nan="quiet"), ValueError),
        (lambda: WidenedDotAdd(tcm.FusedDotAdd(output_rounding="sr")), ValueError),
        (lambda: WidenedDotAdd(via_format="fp33"), ValueError),
        (lambda: WidenedDotAdd().with_rules(zero_sign="ieee"), ValueError),
        (lambda: tcm.MatrixEngine(WidenedDotAdd(), c_format="fp64"), ValueError),
        (lambda: LanedFMA(nan="dmma"), ValueError),
        (lambda: tcm.MatrixEngine(tcm.FusedDotAdd(), k=16.0), TypeError),
        (lambda: tcm.MatrixEngine(tcm.FusedDotAdd(), scale_format="ue8m0", block_size=0), ValueError),
        (lambda: tcm.MatrixEngine(IntegerDotAdd(), a_format="fp16"), ValueError),
        (lambda: tcm.MatrixEngine(tcm.FusedDotAdd(), a_format="s8"), ValueError),
    ],
)
def test_a_specification_that_cannot_be_is_refused(make, error):
    with pytest.raises(error, match=r"\w"):
        make()


def test_numpy_integers_are_integers():
    ours = tcm.FusedDotAdd(
        terms=np.int64(8), fraction_bits=np.int32(24), exponent_floor=np.int16(-100), normalised_products=np.bool_(True)
    )
    assert ours == tcm.FusedDotAdd(terms=8, fraction_bits=24, exponent_floor=-100, normalised_products=True)
    assert type(ours.terms) is int and type(ours.normalised_products) is bool
    engine = tcm.MatrixEngine(ours, k=np.int64(8))
    assert type(engine.k) is int
    engine.gemm(np.ones((2, 8), np.float16), np.ones((8, 2), np.float16))


@pytest.mark.parametrize(
    "accumulator, a_format",
    [(tcm.SequentialFMA(), "e4m3fn"), (LanedFMA(), "bf16"), (GroupPairwiseSum(), "bf16"), (FusedDotRoundDownAdd(), "fp16"),
     (InterleavedDotAdd(), "e4m3fn"), (IntegerDotAdd(), "s8")],
)  # fmt: skip
def test_block_scales_that_would_be_ignored_are_refused(accumulator, a_format):
    formats = {"c_format": "s32", "d_format": "s32"} if a_format == "s8" else {}
    with pytest.raises(ValueError, match="takes no block scales"):
        tcm.MatrixEngine(accumulator, a_format=a_format, scale_format="ue8m0", block_size=16, **formats)


def scaled(k_step: int, block: int):
    return tcm.MatrixEngine(
        tcm.FusedDotAdd(terms=k_step, fraction_bits=25), a_format="e4m3fn", scale_format="ue8m0", block_size=block
    )


@pytest.mark.parametrize(
    "orders", [{"k_order": "split_k:2"}, {"k_order": "sliced_k:2"}, {"promote_every": 16}, {"promote_every": 48}]
)
def test_chains_that_start_inside_of_a_block_are_refused(orders):
    a, b = np.ones((1, 96)), np.ones((96, 1))
    scales = np.array([[1.0, 2.0, 4.0]]), np.ones((3, 1))
    engine = scaled(16, 32)
    whole = engine.gemm(a, b, scale_a=scales[0], scale_b=scales[1], input_rounding="rne")
    assert whole.tolist() == [[224.0]]
    with pytest.raises(ValueError, match="inside a block of 32"):
        engine.gemm(a, b, scale_a=scales[0], scale_b=scales[1], input_rounding="rne", **orders)


@pytest.mark.parametrize("orders", [{"k_order": "split_k:3"}, {"promote_every": 32}, {"k_order": [(0, 64), (64, 96)]}])
def test_chains_of_whole_blocks_apply_their_scales(orders):
    a, b = np.ones((1, 96)), np.ones((96, 1))
    d = scaled(16, 32).gemm(
        a, b, scale_a=np.array([[1.0, 2, 4]]), scale_b=np.ones((3, 1)), input_rounding="rne", **orders
    )
    assert d.tolist() == [[224.0]]


@pytest.mark.parametrize("value", [None, "2", np.ones(2), 1j])
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_scalars_are_real_numbers(name, value):
    engine = tcm.MatrixEngine(tcm.FusedDotAdd(), a_format="fp16")
    x = np.ones((16, 16), np.float16)
    with pytest.raises(TypeError, match=name):
        engine.gemm(x, x, **{name: value})
    for good in (np.float32(2), np.int64(2), 2):
        assert engine.gemm(x, x, alpha=good)[0, 0] == 32


@pytest.mark.parametrize("order", ["split_k:3", "sliced_k:3", "sequential"])
def test_no_products_in_any_order(order):
    engine = tcm.MatrixEngine(tcm.FusedDotAdd(), a_format="fp16")
    d = engine.gemm(
        np.ones((2, 0), np.float16), np.ones((0, 3), np.float16), np.full((2, 3), 5, np.float32), k_order=order
    )
    assert d.tolist() == [[5.0] * 3] * 2


def test_stochastic_rounding_beyond_the_range_says_what_is_wrong():
    x = np.full(200, 7.9)
    with pytest.raises(ValueError, match="saturate"):
        tcm.encode(x, "e2m1", "sr", seed=3, saturate=False)
    assert set(tcm.encode(x, "e2m1", "sr", seed=3, saturate=True).tolist()) == {7}


def test_values_beyond_the_range_of_fp8_are_counted_and_those_of_fp4_clamped():
    fp8 = tcm.MatrixEngine(tcm.FusedDotAdd(), a_format="e4m3fn")
    a = np.ones((2, 16), np.float32)
    a[1, 3:5] = 500, -np.inf
    b = np.ones((16, 1), np.float32)
    with pytest.raises(
        ValueError, match=r"a: 2 of 32 values are beyond the range of e4m3fn.*500.*\(1, 3\).*input_saturate"
    ):
        fp8.gemm(a, b, input_rounding="rne")
    assert fp8.gemm(a, b, input_rounding="rne", input_saturate=True).tolist() == [[16.0], [14.0]]
    fp4 = tcm.MatrixEngine(tcm.FusedDotAdd(), a_format="e2m1")
    assert fp4.gemm(a, b, input_rounding="rne").tolist() == [[16.0], [14.0]]
    a[0, 0] = np.nan
    with pytest.raises(ValueError, match="1 of 32 values are NaN"):
        fp4.gemm(a, b, input_rounding="rne")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(fp8.gemm(a, b, input_rounding="rne", input_saturate=True)[0, 0])


def test_a_fused_sum_is_a_point_of_the_parametric_space():
    """What FusedDotAdd fixes are the defaults of the other fields."""
    assert len(BEYOND) == 14 and {name: getattr(tcm.FusedDotAdd, name) for name in BEYOND} == BEYOND
    assert tcm.as_parametric(tcm.FusedDotAdd(8, 24)) == ParametricDotAdd(8, 24)
