"""Block scaling: the OCP rule, the bound it gives, and block-scaled GEMM against exact arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from tensorcore_models.formats.blocks import BLOCK_FORMATS, quantize_blocks


def test_ocp_scale_rule():
    """OCP Microscaling v1.0, section 6.3: the scale is 2^(floor(log2 max) - emax)."""
    x = np.array([[1.0, -448.0, 0.5, 3.0]])
    q = quantize_blocks(x, ("e4m3fn", "ue8m0", 2), axis=1)
    assert tcm.decode(q.scales, "ue8m0").tolist() == [[2.0 ** (8 - 8), 2.0 ** (1 - 8)]]
    assert q.values().tolist() == x.tolist()


@pytest.mark.parametrize("kind", BLOCK_FORMATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_relative_error_of_the_largest_element(kind, axis):
    """With "ceil" no element overflows, so the largest of a block is off by at most half its own unit in the last place.

    Its quotient is at least max_finite / 2 (ue8m0; the power is at most twice the ratio) or max_finite (1 - 2^-3)
    (ue4m3, rounded up by at most one unit of 2^-3), a normal number, hence a relative error of at most u.
    """
    element = tcm.get_format(BLOCK_FORMATS[kind][0])
    rng = np.random.default_rng(7)
    x = rng.standard_normal((96, 80)) * 8.0
    q = quantize_blocks(x, kind, axis=axis, scale_rounding="ceil")
    error = np.abs(q.values() - x)
    size = q.block_size
    for start in range(0, x.shape[axis], size):
        block = (slice(None), slice(start, start + size)) if axis == 1 else (slice(start, start + size), slice(None))
        largest = np.abs(x[block]).max(axis=axis)
        at = np.abs(x[block]).argmax(axis=axis)
        worst = np.take_along_axis(error[block], np.expand_dims(at, axis), axis).squeeze(axis)
        assert (worst <= element.unit_roundoff * largest).all()


@given(st.integers(-100, 100), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_powers_of_two_scale_through(power, seed):
    """Scaling by a power of two changes the scales only, as long as they stay in range."""
    x = np.random.default_rng(seed).standard_normal((3, 40))
    plain, scaled = quantize_blocks(x, "mxfp4", axis=1), quantize_blocks(np.ldexp(x, power), "mxfp4", axis=1)
    assert (plain.bits == scaled.bits).all()
    assert (scaled.scales.astype(int) - plain.scales == power).all()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mma.m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0", "mxfp8_e4m3"),
        ("mma.m16n8k32.block32.f32.e3m2.e3m2.f32.ue8m0", "mxfp6_e3m2"),
        ("mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0", "mxfp4"),
        ("mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3", "nvfp4"),
    ],
)
def test_block_scaled_gemm(name, kind):
    """Against exact arithmetic, with the error that the steps of the specification admit.

    Of at most 33 addends of a step each loses less than one unit 2^(e_max - F), F >= 25. e_max is the exponent of an addend as
    encoded: a product of two subnormal e4m3 operands lies up to 2^6 below it, no other addend of this data further. Rounding
    toward zero loses less than 2^-23. Both are relative to the sum of magnitudes, once a step.
    """
    ins = tcm.get_instruction("rtx_blackwell", name)
    rng = np.random.default_rng(3)
    m, k, n = 5, 150, 4
    a = quantize_blocks(rng.standard_normal((m, k)), kind, axis=1)
    b = quantize_blocks(rng.standard_normal((k, n)), kind, axis=0)
    d = ins.gemm(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
    exact = a.values() @ b.values()
    magnitude = np.abs(a.values()) @ np.abs(b.values())
    steps = -(-k // ins.k)
    assert (np.abs(d - exact) <= steps * (33 * 2.0 ** (6 - 25) + 2.0**-23) * magnitude).all()


@pytest.mark.parametrize("k", [20, 32, 40, 96])
def test_padding_does_not_lift_the_alignment(k):
    """Products of 1, both scales 2^-60; the blocks that fill the k step of 64 must not hide them."""
    unit = tcm.get_instruction("rtx_blackwell", "mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0")
    scales = np.full((1, -(-k // 32)), 2.0**-60)
    d = unit.gemm(np.ones((1, k)), np.ones((k, 1)), scale_a=scales, scale_b=scales.T)
    assert d[0, 0] == k * 2.0**-120


def test_scales_are_required_and_unwanted_ones_refused():
    ins = tcm.get_instruction("rtx_blackwell", "mma.m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0")
    q = quantize_blocks(np.ones((2, 32)), "mxfp8_e4m3", axis=1)
    with pytest.raises(ValueError, match="needs scale_a and scale_b"):
        ins.gemm(q.elements, q.elements.T)
    with pytest.raises(ValueError, match=r"fits no rule for A of 2 x 32.*\(2, 1\)"):
        ins.gemm(q.elements, q.elements.T, scale_a=np.ones((2, 2)), scale_b=np.ones((1, 2)))
    plain = tcm.get_instruction("rtx_blackwell", "mma.m16n8k32.f32.e4m3.e4m3.f32")
    with pytest.raises(ValueError, match="type uint8, which fits no rule"):
        plain.gemm(q.elements, q.elements.T, scale_a=q.scales, scale_b=q.scales.T)


def test_bad_input():
    with pytest.raises(ValueError, match="unknown block format"):
        quantize_blocks(np.ones((2, 2)), "mxfp5", axis=0)
    with pytest.raises(ValueError, match="1 NaN or infinite"):
        quantize_blocks(np.array([[np.inf, 1.0]]), axis=1)
    with pytest.raises(ValueError, match="expected a matrix and axis"):
        quantize_blocks(np.ones(4), axis=0)
    assert quantize_blocks(np.zeros((2, 3)), "nvfp4", axis=1).values().tolist() == [[0.0] * 3] * 2
