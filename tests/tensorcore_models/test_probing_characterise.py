"""Characterisation of black boxes: it recovers the parameters of units over a grid, and the catalogue's."""

import itertools
import json

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.probing import characterise

#: The grid of the probing literature's corrections: 480 units.
GRID = list(
    itertools.product(
        (13, 23, 24, 25), (4, 8, 16), ("rz", "rne", "ru", "rd", "rna"), ("rz", "rne", "ru", "rd"), (False, True)
    )
)


def unit(fraction_bits, terms, output, alignment, normalised, **changes):
    spec = tcm.ParametricDotAdd(
        terms, fraction_bits, output_rounding=output, alignment_rounding=alignment, normalised_products=normalised,
        output_fraction_bits=13 if fraction_bits == 13 else None, **changes,
    )  # fmt: skip
    return tcm.MatrixEngine(spec)


def check(point):
    fraction_bits, terms, output, alignment, normalised = point
    found = characterise(unit(*point))
    assert (found.tree.order, found.terms, found.tree.c_position) == ("fused", terms, "early")
    assert (found.fraction_bits, found.c_fraction_bits) == (fraction_bits, fraction_bits)
    assert (found.alignment_rounding, found.c_alignment_rounding) == (alignment, alignment)
    assert (found.output_rounding, found.output_fraction_bits) == (output, 13 if fraction_bits == 13 else 23)
    assert found.normalised_products == normalised
    assert found.exact_products is (None if fraction_bits == 13 else True)
    assert found.wide_enough and found.rounds_between_steps
    assert found.sticky is (False if alignment == "rz" else None)
    assert found.normalises_once is (True if terms > 4 else None)


@pytest.mark.sweep(24)
@pytest.mark.parametrize("point", GRID[::7], ids=str)
def test_the_parameters_of_a_grid_of_units(point):
    check(point)


@pytest.mark.slow
@pytest.mark.parametrize("point", GRID, ids=str)
def test_the_parameters_of_the_whole_grid(point):
    check(point)


@pytest.mark.parametrize(
    ("name", "terms", "fraction_bits", "output", "rounding"),
    [
        ("volta:mma.m8n8k4.f32.f16.f16.f32", 4, 23, 23, "rz"), ("turing:mma.m16n8k8.f32.f16.f16.f32", 8, 24, 23, "rz"),
        ("ampere:mma.m16n8k16.f16.f16.f16.f16", 8, 24, 10, "rne"), ("ampere:mma.m16n8k8.f32.tf32.tf32.f32", 4, 24, 23, "rz"),
        ("ada:mma.m16n8k32.f32.e4m3.e4m3.f32", 16, 13, 13, "rz"), ("hopper:mma.m16n8k16.f32.bf16.bf16.f32", 16, 25, 23, "rz"),
        ("hopper:wgmma.m64n8k32.f32.e5m2.e5m2", 32, 13, 13, "rz"), ("hopper:wgmma.m64n8k32.f16.e4m3.e4m3", 32, 13, 10, "rne"),
        ("rtx_blackwell:mma.m16n8k32.f32.e4m3.e4m3.f32", 32, 25, 23, "rz"),
        ("hopper:wmma.m16n16k8.f32.tf32.tf32.f32", 4, 25, 23, "rz"),
    ],
)  # fmt: skip
def test_published_units(name, terms, fraction_bits, output, rounding):
    """Expected values: khattak-mikaitis, table II; xie-mma-sim, table III."""
    found = characterise(tcm.get_instruction(name))
    assert (found.tree.order, found.terms, found.tree.c_position) == ("fused", terms, "early")
    assert (found.fraction_bits, found.output_fraction_bits, found.output_rounding) == (fraction_bits, output, rounding)
    assert found.alignment_rounding == "rz" and found.normalised_products is False and found.sticky is False
    assert found.specials.subnormal_a and found.specials.subnormal_b and found.specials.negative_zero_c is False


@pytest.mark.parametrize("name", ["mma.m16n8k32.f32.e5m2.e5m2.f32", "mma.m16n8k32.f16.e4m3.e4m3.f16"])
def test_fp8_through_fp16_is_seen_as_interleaved(name):
    """khattak-mikaitis, section IV-A5: products 0, 1, 4, 5, ... belong together, c comes last."""
    found = characterise(tcm.get_instruction("hopper", name))
    assert (found.tree.order, found.terms, found.tree.c_position) == ("interleaved", 16, "late")
    assert found.tree.mates == tuple(k for k in range(32) if k // 2 % 2 == 0)
    assert found.fraction_bits == 25 and found.c_fraction_bits is None
    assert "interleaved" in str(found)


def test_cdna3_rounds_c_down():
    found = characterise(tcm.get_instruction("cdna3:v_mfma_f32_32x32x8_f16"))
    assert (found.terms, found.fraction_bits, found.c_fraction_bits) == (8, 24, 24)
    assert (found.alignment_rounding, found.c_alignment_rounding, found.output_rounding) == ("rz", "rd", "rne")


def test_chains_and_trees():
    chain = characterise(tcm.get_instruction("hopper:mma.m8n8k4.f64.f64.f64.f64"))
    assert (chain.tree.order, chain.fraction_bits, chain.output_rounding, chain.output_fraction_bits) == (
        "sequential",
        None,
        "rne",
        52,
    )
    tree = characterise(tcm.get_instruction("cdna2:v_mfma_f32_32x32x8f16"))
    assert (tree.tree.order, tree.terms) == ("tree", None)
    assert tree.specials.subnormal_a is False


def test_a_user_s_callable():
    """float32 numpy: products and sums in order, each rounded to nearest."""

    def multiply(a, b, c):
        total = c.copy()
        for k in range(a.shape[1]):
            total = total + a[:, k : k + 1].astype(np.float32) * b[k : k + 1].astype(np.float32)
        return total

    found = characterise(tcm.as_engine(multiply, a_format="bf16", c_format="fp32", d_format="fp32", k=4))
    assert (found.tree.order, found.output_rounding) == ("sequential", "rne")
    assert np.dtype(ml_dtypes.bfloat16).itemsize == 2 and found.label == "multiply"


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"c_position": "late"}, "c_position", "late"), ({"alignment": "pairwise"}, "one_alignment", False),
        ({"integer_bits": 3}, "wide_enough", False), ({"normalise_each_add": True}, "normalises_once", False),
        ({"flush_inputs": True, "flush_outputs": True}, "subnormal_a", False),
        ({"negative_underflow": "negative"}, "negative_underflow", True),
        ({"zero_operand": "minus126"}, "zero_operand_aligns", True),
        ({"nan": "quiet"}, "nan_bits", 0x7FC00000), ({}, "nan_bits", 0x7FFFFFFF), ({}, "zero_operand_aligns", False),
        ({}, "negative_underflow", False), ({}, "overflow", "inf"), ({}, "one_alignment", True),
    ],
    ids=str,
)  # fmt: skip
def test_single_features(change, field, value):
    engine = tcm.MatrixEngine(tcm.ParametricDotAdd(8, 25, **change), a_format="bf16")
    found = characterise(engine)
    holder = next(part for part in (found, found.tree, found.specials) if hasattr(part, field))
    assert getattr(holder, field) == value


def test_double_rounding_of_fp16_results():
    def through_fp32(a, b, c):
        engine = tcm.MatrixEngine(tcm.FusedDotAdd(8, 25))
        return engine.gemm(a, b, c.astype(np.float32)).astype(np.float16)

    twice = tcm.as_engine(through_fp32, a_format="fp16", d_format="fp16", k=8)
    assert characterise(twice).double_rounding is True
    once = tcm.MatrixEngine(tcm.FusedDotAdd(8, 25, "rne"), c_format="fp16", d_format="fp16")
    assert characterise(once).double_rounding is False


def test_results_are_plain_data():
    found = characterise(tcm.get_instruction("volta:mma.m8n8k4.f32.f16.f16.f32"))
    assert json.loads(json.dumps(found.to_dict()))["tree"]["terms"] == 4
    assert "fraction bits" in str(found)


def test_what_cannot_be_probed_is_refused():
    with pytest.raises(ValueError, match="integers"):
        characterise(tcm.get_instruction("hopper:mma.m16n8k32.s32.s8.s8.s32"))
    with pytest.raises(ValueError, match="too few binades"):
        characterise(tcm.get_instruction("rtx_blackwell:mma.m16n8k32.f32.e2m1.e2m1.f32"))
