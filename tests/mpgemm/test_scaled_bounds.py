"""Bounds of block-scaled engines: the measured error never exceeds them, and they are not absurd."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from mpgemm import exact_gemm, gemm_bound, tolerance
from mpgemm.bounds.bounds import step_error

MXFP8 = "rtx_blackwell:mma.m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0"
NVFP4 = "rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
SCALED = [row for row in tcm.list_instructions() if row.scale_format is not None]


def spread(scales, block_size, k, axis):
    return np.repeat(scales, block_size, axis=axis).take(range(k), axis=axis)


def scaled_error(engine, a, b, c, scale_a, scale_b):
    """(computed, |computed - exact|) with the exact product of the scaled operands in rational numbers."""
    d = np.asarray(engine.gemm(a, b, c, scale_a=scale_a, scale_b=scale_b)).astype(np.float64)
    k = a.shape[1]
    x, y = a * spread(scale_a, engine.block_size, k, 1), b * spread(scale_b, engine.block_size, k, 0)
    errors = np.empty(d.shape, object)
    for i, j in np.ndindex(d.shape):
        exact = sum((Fraction(u) * Fraction(v) for u, v in zip(x[i], y[:, j], strict=True)), Fraction(0))
        exact += 0 if c is None else Fraction(float(c[i, j]))
        errors[i, j] = abs(Fraction(d[i, j]) - exact) if np.isfinite(d[i, j]) else None
    return d, errors


def some_scales(draw, shape, fmt):
    """Scales of a format: all of it with zeros and subnormals, near each other, or ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("bits", "near", "near", "ones")))
    if kind == "bits":
        values = tcm.decode(rng.integers(0, 1 << fmt.bits, shape).astype(np.uint8), fmt)
        return np.where(np.isfinite(values), values, 1.0)
    values = np.ldexp(1 + rng.random(shape), rng.integers(-6, 7, shape)) if kind == "near" else np.ones(shape)
    return tcm.round_to(values, fmt, "rz", saturate=True)


def some_elements(draw, shape, fmt):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = tcm.decode(rng.integers(0, 1 << fmt.bits, shape).astype(fmt.container), fmt)
    values = np.where(np.isfinite(values), values, 1.0)
    return np.where(rng.random(shape) < draw(st.sampled_from((0.0, 0.1, 0.9))), 0.0, values)


zero_rules = st.sampled_from(("minus126", "format_minimum", "skip"))
scaled_zero = st.sampled_from(("keeps_scale", "skip"))
roundings = st.sampled_from(("rne", "rz", "ru", "rd"))
accumulators = st.one_of(
    st.builds(
        tcm.FusedDotAdd,
        st.sampled_from((4, 8, 32)),
        st.integers(6, 35),
        roundings,
        alignment_rounding=roundings,
        zero_operand=zero_rules,
        zero_c=zero_rules,
        scaled_zero=scaled_zero,
    ),
    st.builds(
        tcm.ParametricDotAdd,
        st.sampled_from((4, 8)),
        st.one_of(st.none(), st.integers(6, 35)),
        roundings,
        alignment=st.sampled_from(("global", "pairwise", "odd_even")),
        c_position=st.sampled_from(("early", "late")),
        normalised_products=st.booleans(),
        flush_inputs=st.booleans(),
        flush_outputs=st.booleans(),
        scaled_zero=scaled_zero,
    ),
    st.builds(
        tcm.GroupDotFusedSum,
        st.sampled_from((4, 8)),
        st.sampled_from((8, 16, 32)),
        st.integers(6, 35),
        roundings,
        zero_operand=zero_rules,
        zero_c=zero_rules,
        scaled_zero=st.sampled_from(("skip_zero_products", "skip", "keeps_scale")),
    ),
)


@st.composite
def cases(draw):
    spec = draw(accumulators)
    a_format, b_format = (draw(st.sampled_from(("e2m1", "e4m3fn", "e3m2", "e5m2"))) for _ in range(2))
    scale, block_size = draw(st.sampled_from((("ue8m0", 8), ("ue4m3", 8), ("ue4m3", 16))))
    engine = tcm.MatrixEngine(spec, a_format=a_format, b_format=b_format, scale_format=scale, block_size=block_size)
    k = draw(st.integers(0, 48))
    blocks = -(-k // block_size)
    a, b = some_elements(draw, (2, k), engine.formats[0]), some_elements(draw, (k, 2), engine.formats[1])
    scale_a, scale_b = (some_scales(draw, shape, tcm.get_format(scale)) for shape in ((2, blocks), (blocks, 2)))
    c = draw(st.sampled_from((None, 0.0, 1.0, 2.0**-30, 2.0**40)))
    return engine, a, b, None if c is None else np.full((2, 2), c, np.float32), scale_a, scale_b


@pytest.mark.full
@settings(max_examples=300, derandomize=True)
@given(cases())
def test_no_error_beyond_the_bound(case):
    engine, a, b, c, scale_a, scale_b = case
    _, errors = scaled_error(engine, a, b, c, scale_a, scale_b)
    bound = gemm_bound(engine, a, b, c, scale_a=scale_a, scale_b=scale_b)
    for error, limit in zip(errors.ravel(), bound.ravel(), strict=True):
        if error is None:
            assert limit == np.inf
        elif np.isfinite(limit):
            assert error <= Fraction(limit)


def test_every_catalogued_scaled_instruction_has_a_bound():
    assert SCALED
    for spec, row in {row.accumulator: row for row in SCALED}.items():
        assert step_error(row).terms == spec.terms_per_step


def quantised(row, m, k, n, seed=0, low=0.5):
    """Quantised operands of an instruction, all of one sign so that sums grow and truncation adds up."""
    rng = np.random.default_rng(seed)
    kinds = [(row.formats[i].name, row.scale_format, row.block_size) for i in (0, 1)]
    a = tcm.quantize_blocks(rng.uniform(low, 1, (m, k)), kinds[0], axis=1)
    return a, tcm.quantize_blocks(rng.uniform(low, 1, (k, n)), kinds[1], axis=0)


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("name", "factor"),
    ((NVFP4, 20), (NVFP4.replace("ue4m3", "ue8m0"), 20), (MXFP8, 200), (MXFP8.replace("e4m3", "e5m2"), 200)),
)
def test_tolerance_holds_on_quantised_data_and_is_not_absurd(name, factor):
    """Of what the bound grants, a sum of GDFS uses up the output rounding; few-bit products in an FDA are hardly cut."""
    row = tcm.get_instruction(name)
    a, b = quantised(row, 32, 256, 32)
    # c takes the low bits that a sum of few-bit products lacks, so that every rounding loses something.
    c = np.random.default_rng(1).uniform(0.5, 1, (32, 32)).astype(np.float32)
    found = tolerance(name, 256, (a.elements, b.elements, c), scale_a=a.scales, scale_b=b.scales)
    d = row.gemm(a.elements, b.elements, c, scale_a=a.scales, scale_b=b.scales)
    error = np.abs(exact_gemm(a.values(), b.values(), c).error_of(d))
    assert (error <= found.bound).all()
    assert found.bound.max() < factor * error.max()
    assert not found.vacuity.vacuous and found.vacuity.lost_product_passes == 0
    for part in ("multiplied exactly", "each step", "published, block FMA", "can fail"):
        assert part in str(found)


def test_worst_cases_come_close_to_the_bound():
    """One large product, and addends that lie just below what is kept: nearly a unit is lost of each."""
    row = tcm.get_instruction(MXFP8)
    a, b = np.full((1, 32), 1.875 * 2.0**-6), np.full((32, 1), 1.875 * 2.0**-5)
    a[0, 0] = b[0, 0] = 256.0  # 2^16: units of 2^-9, and the other products are 3.5 * 2^-11
    ones = np.ones((1, 1))
    error = scaled_error(row, a, b, None, ones, ones)[1][0, 0]
    assert error == 31 * Fraction(1.875**2) / 2**11
    assert Fraction(gemm_bound(row, a, b, scale_a=ones, scale_b=ones)[0, 0]) < Fraction(3, 2) * error
    group = tcm.get_instruction(NVFP4)
    a, b = np.zeros((1, 64)), np.zeros((64, 1))
    a[0, :32:16] = b[:32:16, 0] = 1.0
    scale_a = np.array([[1.0, 2.0**-9, 1.0, 1.0]])
    scale_b = np.array([1.0, 1.875 * 2.0**-6, 1.0, 1.0])[:, None]
    c = np.full((1, 1), 3 * 2.0**-25, np.float32)
    error = scaled_error(group, a, b, c, scale_a, scale_b)[1][0, 0]
    bound = gemm_bound(group, a, b, c, scale_a=scale_a, scale_b=scale_b)[0, 0]
    assert error == Fraction(3, 2**25)  # the output's RZ: 3/4 ulp of 1
    assert bound < 1.5 * error


def unit(spec, fmt="e2m1", scale="ue8m0"):
    return tcm.MatrixEngine(spec, a_format=fmt, scale_format=scale, block_size=16)


GROUPED = tcm.GroupDotFusedSum(16, 64, scaled_zero="keeps_scale")
FUSED = tcm.FusedDotAdd(16, 25, zero_operand="minus126", scaled_zero="keeps_scale")
NARROW, GROUP, ONE = tcm.FusedDotAdd(2, 10), tcm.GroupDotFusedSum(16, 16, 8), [1.0] + [0.0] * 15


#: What lifts an alignment beyond the size of the addends: (engine, a, b, scale of a, c, the unit of what is lost).
LIFTED = {
    "group of zeros below a large scale": (unit(GROUPED), [0.0] * 16, [1.0] * 16, 2.0**60, 1.0, 2.0 ** (60 - 35)),
    "zero below a large scale": (unit(FUSED), [0.0] * 16, [1.0] * 16, 2.0**127, 2.0**-60, 2.0 ** (1 - 25)),
    "subnormal element": (unit(NARROW, "e4m3fn"), [2.0**-9, 0.0], [1.0, 0.0], 1.0, 1.9 * 2.0**-17, 2.0 ** (-6 - 10)),
    "subnormal scale": (unit(NARROW, scale="ue4m3"), [1.0, 0.0], [1.0, 0.0], 2.0**-9, 1.9 * 2.0**-17, 2.0 ** (-6 - 10)),
    "subnormal group scale": (
        unit(GROUP, scale="ue4m3"), ONE, ONE, 2.0**-9, 1.9 * 2.0**-15, 2.0 ** (-6 - 8),
    ),
    "small sum of a group": (
        unit(GROUP), [x / 2 for x in ONE], [x / 2 for x in ONE], 1.0, 1.9 * 2.0**-9, 2.0**-8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LIFTED)
def test_what_lifts_the_alignment_is_lost_and_the_bound_says_so(what):
    engine, a, b, scale, c, lost = LIFTED[what]
    a, b = np.array([a]), np.array([b]).T
    blocks = -(-a.shape[1] // 16)
    scale_a, scale_b = np.full((1, blocks), scale), np.ones((blocks, 1))
    c = np.full((1, 1), c, np.float32)
    _, errors = scaled_error(engine, a, b, c, scale_a, scale_b)
    bound = gemm_bound(engine, a, b, c, scale_a=scale_a, scale_b=scale_b)[0, 0]
    assert 0 < errors[0, 0] <= bound
    assert bound < 40 * lost


@pytest.mark.parametrize("rule", ["skip", "skip_zero_products"])
def test_without_zeros_in_the_alignment_nothing_is_lifted(rule):
    engine = unit(GROUPED).with_rules(scaled_zero=rule)
    a, b, c = np.zeros((1, 64)), np.ones((64, 1)), np.ones((1, 1), np.float32)
    scales = {"scale_a": np.full((1, 4), 2.0**60), "scale_b": np.ones((4, 1))}
    assert engine.gemm(a, b, c, **scales)[0, 0] == 1
    assert gemm_bound(engine, a, b, c, **scales)[0, 0] < 2.0**-20


def test_scales_move_a_bound_by_their_exponents():
    """Relative parts do not depend on the scales; without zeros absolute ones stay at the format's underflow."""
    row = tcm.get_instruction(MXFP8)
    a, b = quantised(row, 4, 64, 4)
    plain = tolerance(row, 64, (a.elements, b.elements), scale_a=np.ones((4, 2)), scale_b=np.ones((2, 4)))
    moved = tolerance(row, 64, (a.elements, b.elements), scale_a=np.full((4, 2), 2.0**20), scale_b=np.ones((2, 4)))
    assert plain.relative == moved.relative
    np.testing.assert_allclose(moved.bound, plain.bound * 2.0**20, rtol=2.0**-40)


def test_a_seeded_fault_breaks_the_bound():
    row = tcm.get_instruction(MXFP8)
    worse = dataclasses.replace(row, accumulator=dataclasses.replace(row.accumulator, fraction_bits=13))
    a, b = quantised(row, 8, 256, 8)
    d = worse.gemm(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
    error = np.abs(exact_gemm(a.values(), b.values()).error_of(d))
    assert (error > gemm_bound(row, a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)).any()


def test_encodings_and_values_of_scales_are_the_same():
    row = tcm.get_instruction(NVFP4)
    a, b = quantised(row, 4, 96, 4)  # 96: the last step is padded
    bits = gemm_bound(row, a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
    values = (tcm.decode(x.scales, "ue4m3") for x in (a, b))
    np.testing.assert_array_equal(
        bits, gemm_bound(row, a.elements, b.elements, scale_a=next(values), scale_b=next(values))
    )


def test_without_data_a_tolerance_holds_for_any_scales():
    found = tolerance(NVFP4, 128)
    row = tcm.get_instruction(NVFP4)
    for seed in range(4):
        a, b = quantised(row, 4, 128, 4, seed, low=-1.0)
        size = np.abs(a.values()) @ np.abs(b.values())
        d = row.gemm(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
        error = np.abs(exact_gemm(a.values(), b.values()).error_of(d))
        assert (error <= found.relative * size + found.absolute).all()
    assert "give data" in str(found)


def test_wrong_scales_are_named():
    row = tcm.get_instruction(MXFP8)
    a, b = quantised(row, 4, 64, 4)
    with pytest.raises(ValueError, match="needs scale_a and scale_b"):
        tolerance(row, 64, (a.elements, b.elements))
    with pytest.raises(ValueError, match=r"scale_b has shape \(1, 4\), expected \(2, 4\)"):
        gemm_bound(row, a.elements, b.elements, scale_a=a.scales, scale_b=b.scales[:1])
    with pytest.raises(ValueError, match="got scale_a or scale_b without data"):
        tolerance(row, 64, scale_a=a.scales)
    with pytest.raises(ValueError, match="columns of a"):
        gemm_bound(row, a.elements, b.elements[:3], scale_a=a.scales, scale_b=b.scales)
    with pytest.raises(ValueError, match="so that a group has one scale"):
        tcm.MatrixEngine(tcm.GroupDotFusedSum(16, 64), a_format="e2m1", scale_format="ue4m3", block_size=8)
