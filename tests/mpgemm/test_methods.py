"""The rows of the recovery methods: complete, self-validating, with options that are checked."""

import dataclasses
import math

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.recovery.method import MODULI, check_moduli, products_below
from mpgemm.recovery.methods import get_method, list_methods
from mpgemm.recovery.run import prepare

NAMES = {
    "fp16",
    "bf16",
    "tf32",
    "hf32",
    "fp8",
    "hifloat8",
    "fp32",
    "fp64",
    "markidis",
    "markidis_scaled",
    "egemm",
    "ootomo",
    "ootomo_tf32",
    "ootomo_inside",
    "ma",
    "sgemm_cube",
    "multiword",
    "bf16x3",
    "bf16x6",
    "bf16x9",
    "bf16xfp32x2",
    "bf16xfp32x3",
    "cutlass_bf16x9",
    "cutlass_3xtf32",
    "triton_tf32x3",
    "tf32x3",
    "mixpert",
    "quantensor",
    "ozaki_int8",
    "ozaki2_int8",
    "ozaki_fp8",
    "ozaki2_fp8",
}
PASSES = {
    "fp16": 1,
    "markidis": 4,
    "egemm": 4,
    "ootomo": 3,
    "sgemm_cube": 3,
    "bf16x3": 3,
    "bf16x6": 6,
    "bf16x9": 9,
    "cutlass_bf16x9": 9,
    "cutlass_3xtf32": 3,
    "triton_tf32x3": 3,
    "tf32x3": 3,
}


def test_every_method_of_the_field_is_there():
    assert {row.name for row in list_methods()} == NAMES


@pytest.mark.parametrize("row", list_methods(), ids=lambda row: row.name)
def test_every_row_says_what_it_does(row):
    assert row.formula and row.source and row.range_limits
    assert str(row.passes) in str(row) and row.certainty in str(row)
    assert all(text for text in row.options.values())
    assert row.passes == PASSES.get(row.name, row.passes)


def test_products_are_those_of_the_papers():
    assert products_below(2) == ((1, 1), (0, 1), (1, 0), (0, 0))
    for p in range(1, 7):
        assert get_method("multiword", words=p).passes == p * (p + 1) // 2
    assert get_method("bf16x6").products == products_below(3, 2)


def test_claims_of_table_2_are_recorded():
    claims = {
        name: get_method(name).claimed_loss
        for name in ("markidis", "egemm", "ootomo", "ma", "quantensor", "mixpert", "sgemm_cube")
    }
    assert list(claims.values()) == ["2", "2", "1", "1", "N/A", "3", "1-2"]


def test_options_reach_the_row():
    row = get_method("ootomo", terms=4, accumulate_outside="c_only", rounding="rz", scale_exponent=8)
    assert (row.passes, row.accumulation, row.rounding, row.scale_exponent) == (4, "outside", "rz", 8)
    assert get_method("ootomo:terms=4,accumulate_outside=c_only,rounding=rz,scale_exponent=8") == row
    assert get_method("multiword:format=e4m3fn").formats == ("e4m3fn", "e4m3fnuz")
    assert get_method("multiword", words=3, accumulation="core").scale_exponent == 0
    assert get_method("multiword:words=2,accumulation=core,product_order=largest_first").products[0] == (0, 0)
    assert get_method("ozaki2_int8", moduli=[251, 256, 255]).passes == 3
    assert get_method("markidis", dynamic_scaling=True).equilibrate == "rows"
    assert get_method(get_method("ma"), terms=4).passes == 4


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("otomo", {}, "did you mean 'ootomo'"),
        ("ootomo", {"term": 3}, "did you mean 'terms'"),
        ("ootomo", {"terms": 5}, "expected one of 3, 4"),
        ("ootomo", {"terms": True}, "expected one of 3, 4"),
        ("ootomo", {"rounding": "nearest"}, "rounding is 'nearest'"),
        ("ootomo", {"scale_exponent": -1}, "0 to 100"),
        ("markidis", {"dynamic_scaling": 1}, "expected one of True, False"),
        ("multiword", {"words": 0}, "from 1 to 8"),
        ("multiword", {"format": "e3m4"}, "expected one of 'fp16'"),
        ("multiword", {"accumulation": "core", "scale_exponent": 11}, "scale_exponent is 11, expected 0"),
        ("multiword", {"product_order": "largest_first"}, "highest level first"),
        ("ozaki_int8", {"slices": 17}, "from 1 to 16"),
        ("ozaki2_int8", {"moduli": 1}, "from 2 to 20"),
        ("ozaki2_int8", {"moduli": [6, 4]}, "share the factor 2"),
        ("fp32", {"words": 2}, "has no option 'words'"),
        ("bf16x6", {"restart_every": 0}, "from 1 to"),
        ("ootomo:terms", {}, "NAME=VALUE"),
    ],
)
def test_wrong_names_and_options_say_what_to_do(name, options, message):
    with pytest.raises(ValueError, match=message):
        get_method(name, **options)


def test_a_method_is_a_name_or_a_row():
    with pytest.raises(TypeError, match="int"):
        get_method(3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": 0}, "words"),
        ({"products": ((0, 2),)}, "expected word indices from 0 to 1"),
        ({"products": ()}, "at least one"),
        ({"products": ((0, 0), (0, 0))}, "different"),
        ({"kind": "magic"}, "kind"),
        ({"formats": ("fp17",)}, "fp17"),
        ({"source": ""}, "source"),
        ({"accumulation": "core"}, "expected 0 for accumulation 'core'"),
        ({"accumulation": "blocks"}, "expected 0 for accumulation 'blocks'"),
        ({"accumulation": "blocks", "scale_exponent": 0}, "restart_every is None"),
        ({"accumulation": "outside", "restart_every": 8}, "restart_every is 8"),
        ({"order": 0}, "order is 0"),
        ({"order": "tile"}, "order is .tile."),
        ({"repair": "fp16"}, "repair is .fp16."),
        ({"certainty": "sure"}, "certainty"),
    ],
)
def test_rows_prove_themselves(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(get_method("ootomo"), **changes)


def test_moduli_are_the_largest_pairwise_coprime_ones():
    chosen: list[int] = []
    for p in range(256, 1, -1):
        if all(math.gcd(p, q) == 1 for q in chosen):
            chosen.append(p)
    assert tuple(chosen[: len(MODULI)]) == MODULI
    assert check_moduli(MODULI) == MODULI


def test_sgemm_cube_computes_the_products_of_its_row():
    """The cube's own schedule has three or four products; other rows run word by word."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((16, 64)).astype(np.float32), rng.standard_normal((64, 16)).astype(np.float32)
    plain = dataclasses.replace(mpgemm.get_method("sgemm_cube"), products=((0, 0),))
    words = a.astype(np.float16), b.astype(np.float16)
    assert np.array_equal(
        mpgemm.recovered_gemm(a, b, method=plain), tcm.default_instruction("910a", "fp16").gemm(*words)
    )


def test_sgemm_cube_adds_as_its_row_says():
    """The cube's own schedule adds termwise or elementwise; a row with other sums outside runs word by word."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((16, 64)).astype(np.float32), rng.standard_normal((64, 16)).astype(np.float32)
    row = mpgemm.get_method("sgemm_cube:accumulation=k_step")
    runs = [prepare(a, b, None, each, None) for each in ("sgemm_cube", "sgemm_cube:accumulation=elementwise", row)]
    assert [type(run).__name__ for run in runs] == ["CubeRun", "CubeRun", "WordRun"]
