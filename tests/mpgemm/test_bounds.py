"""The measured error never exceeds the deterministic bound, whatever the accumulator and the data."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from mpgemm.bounds import bounds, published_bounds
from mpgemm.bounds.method_bounds import method_bound
from mpgemm.recovered import recovered_gemm
from mpgemm.recovery.engines import ieee_engine, resolve_engine
from mpgemm.recovery.methods import get_method, list_methods


def exact(a, b, c=None) -> list[list[Fraction]]:
    """The product in rational numbers."""
    rows = [[Fraction(float(x)) for x in row] for row in a]
    columns = [[Fraction(float(x)) for x in column] for column in np.asarray(b).T]
    start = np.zeros((len(rows), len(columns))) if c is None else c
    return [
        [sum((x * y for x, y in zip(r, s, strict=True)), Fraction(float(start[i][j]))) for j, s in enumerate(columns)]
        for i, r in enumerate(rows)
    ]


def assert_within(computed, truth, bound):
    """|computed - exact| <= bound, compared exactly; results that are not finite need an infinite bound."""
    for i, row in enumerate(truth):
        for j, value in enumerate(row):
            if not np.isfinite(float(computed[i, j])):
                assert bound[i, j] == np.inf
            elif np.isfinite(bound[i, j]):
                assert abs(Fraction(float(computed[i, j])) - value) <= Fraction(float(bound[i, j])), (i, j)


def some_values(draw, shape, fmt):
    """Values of a format: over its whole range, or near each other so that sums cancel and exponents compete."""
    fmt = tcm.get_format(fmt)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from(("near", "wide", "bits", "ones")))
    if kind == "bits":
        bits = rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64).astype(fmt.container)
        values = tcm.decode(bits, fmt)
        return np.where(np.isfinite(values), values, 1.0)
    spread = {"near": 2, "wide": 12, "ones": 0}[kind]
    values = rng.choice([-1.0, 1.0], shape) * np.ldexp(1 + rng.random(shape), rng.integers(-spread, spread + 1, shape))
    values = np.where(rng.random(shape) < 0.1, 0.0, values)
    return tcm.round_to(values, fmt, saturate=True) if kind != "ones" else tcm.round_to(np.sign(values), fmt)


roundings = st.sampled_from(("rne", "rz", "ru", "rd", "rna", "ro"))
fused = st.builds(
    tcm.FusedDotAdd,
    st.integers(1, 9),
    st.integers(6, 35),
    roundings,
    st.sampled_from((None, None, 5, 13)),
    roundings,
    st.booleans(),
    zero_operand=st.sampled_from(("minus126", "format_minimum", "skip")),
    zero_c=st.sampled_from(("minus126", "format_minimum", "skip")),
    subnormal_c=st.sampled_from(("raw", "normalised")),
)
parametric = st.builds(
    tcm.ParametricDotAdd,
    st.integers(1, 8),
    st.one_of(st.none(), st.integers(6, 35)),
    roundings,
    normalised_products=st.booleans(),
    c_position=st.sampled_from(("early", "late")),
    alignment=st.sampled_from(("global", "pairwise", "odd_even")),
    output_rounding=roundings,
    late_rounding=roundings,
    flush_inputs=st.booleans(),
    flush_outputs=st.booleans(),
)
others = st.sampled_from(
    (
        tcm.SequentialFMA(),
        tcm.SequentialFMA("rz"),
        tcm.SequentialFMA(flush_inputs=True, flush_outputs=True),
        tcm.LanedFMA(terms=8),
        tcm.GroupPairwiseSum(4),
        tcm.GroupPairwiseSum(2, flush_input="none", flush_results=False),
        tcm.PairRoundOddSum(),
        tcm.FusedDotRoundDownAdd(),
        tcm.FusedDotRoundDownAdd(4, sum_fraction_bits=None),
        tcm.FusedDotRoundDownAdd(8, sum_fraction_bits=20),
        tcm.GroupFusedDotRoundDownAdd(),
        tcm.InterleavedDotAdd(tcm.FusedDotAdd(4, 25)),
        tcm.accumulators.WidenedDotAdd(tcm.FusedDotAdd(4, 24), 8),
    )
)


@st.composite
def cases(draw):
    spec = draw(st.one_of(fused, parametric, others))
    formats = ("e5m2", "e4m3fn") if isinstance(spec, tcm.InterleavedDotAdd) else ("fp16", "bf16", "e5m2", "tf32")
    fmt = draw(st.sampled_from(formats))
    result = (
        draw(st.sampled_from(("fp32", "fp32", "fp16")))
        if isinstance(spec, tcm.FusedDotAdd | tcm.accumulators.WidenedDotAdd)
        else "fp32"
    )
    engine = tcm.MatrixEngine(spec, a_format=fmt, c_format=result, d_format=result)
    k = draw(st.integers(0, 40))
    a, b = some_values(draw, (2, k), fmt), some_values(draw, (k, 2), fmt)
    c = some_values(draw, (2, 2), result) if draw(st.booleans()) else None
    return engine, a, b, c


@settings(max_examples=250, derandomize=True)
@given(cases())
def test_no_error_beyond_the_bound_of_an_accumulator(case):
    engine, a, b, c = case
    computed = np.asarray(engine.gemm(a, b, c)).astype(np.float64)
    assert_within(computed, exact(a, b, c), bounds.gemm_bound(engine, a, b, c))


@settings(max_examples=60, derandomize=True)
@given(
    st.sampled_from([row.name for row in list_methods()]),
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(0, 12),
    st.booleans(),
    st.booleans(),
)
@example("sgemm_cube", 1, 17, 3, True, False)
def test_no_error_beyond_the_bound_of_a_method(name, seed, k, spread, with_c, scaled):
    rng = np.random.default_rng(seed)
    a = np.ldexp(rng.uniform(-1, 1, (2, k)), rng.integers(-spread, spread + 1, (2, k))).astype(np.float32)
    b = np.ldexp(rng.uniform(-1, 1, (k, 2)), rng.integers(-spread, spread + 1, (k, 2))).astype(np.float32)
    c = rng.normal(size=(2, 2)).astype(np.float32) if with_c else None
    options = {"dynamic_scaling": True} if scaled and "dynamic_scaling" in get_method(name).options else {}
    computed = recovered_gemm(a, b, c, name, **options)
    bound = method_bound(a, b, c, name, **options)
    assert_within(computed, exact(a, b, c), bound.total)


@pytest.mark.parametrize("accumulation", ("core", "nested", "outside", "k_step", "termwise"))
@pytest.mark.parametrize("engine", ("v100", "a100", "h100", "mi250", "mi300x"))
def test_bounds_of_every_accumulation_hold_and_are_not_idle(engine, accumulation):
    """On benign data the bound of the sums is within a factor of what k roundings of each step could do."""
    rng = np.random.default_rng(5)
    a, b = rng.uniform(0, 1, (3, 48)).astype(np.float32), rng.uniform(0, 1, (48, 3)).astype(np.float32)
    options = {"words": 2, "accumulation": accumulation, "format": "fp16"}
    bound = method_bound(a, b, None, "multiword", engine, **options)
    computed = recovered_gemm(a, b, None, "multiword", engine, **options)
    truth = exact(a, b)
    assert_within(computed, truth, bound.total)
    # 48 products in steps of at least 4 with at most 17 addends at F = 23: below 12 * 18 * 2^-23 per product of words.
    assert bound.total.max() < 3 * 12 * 20 * 2.0**-23 * 48


def test_larger_alignment_and_finer_rounding_give_smaller_bounds():
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 1, shape).astype(np.float16) for shape in ((2, 32), (32, 2)))
    coarse, fine = (tcm.MatrixEngine(tcm.FusedDotAdd(8, f)) for f in (13, 25))
    nearest = tcm.MatrixEngine(tcm.FusedDotAdd(8, 25, "rne"))
    limits = [bounds.gemm_bound(e, a, b).max() for e in (coarse, fine, nearest)]
    assert limits[0] > 100 * limits[1] > 100 * limits[2] * 1.1


def test_bound_is_infinite_where_a_sum_may_overflow():
    engine = tcm.get_instruction("ampere:mma.m16n8k16.f16.f16.f16.f16")
    a = np.full((1, 16), 100.0, np.float16)
    assert bounds.gemm_bound(engine, a, a.T * 40)[0, 0] == np.inf
    assert np.isfinite(bounds.gemm_bound(engine, a, a.T * 0.1)[0, 0])


def test_a_zero_beside_a_large_number_costs_what_the_bound_grants():
    """0 * 2^127 has exponent 1 under minus126: a product of 2^-40 lies below what F = 25 keeps."""
    engine = tcm.MatrixEngine(tcm.FusedDotAdd(2, 25, zero_operand="minus126"), a_format="bf16")
    a, b = np.array([[0.0, 2.0**-40]]), np.array([[2.0**127], [1.0]])
    assert engine.gemm(a, b)[0, 0] == 0
    assert 2.0**-40 <= bounds.gemm_bound(engine, a, b)[0, 0] < 4 * 2.0 ** (1 - 25)
    skipping = engine.with_rules(zero_operand="skip")
    assert skipping.gemm(a, b)[0, 0] == 2.0**-40 > 1e6 * bounds.gemm_bound(skipping, a, b)[0, 0]


def test_wrapping_accumulator_has_no_bound():
    engine = tcm.MatrixEngine(tcm.ParametricDotAdd(8, 24, integer_bits=3))
    a = np.ones((1, 8), np.float16)
    assert bounds.gemm_bound(engine, a, a.T)[0, 0] == np.inf


def test_cores_of_which_nothing_is_known_are_refused():
    engine = tcm.as_engine(lambda a, b, c: c, a_format="fp16", d_format="fp32", k=4)
    with pytest.raises(ValueError, match="no bound"):
        bounds.gemm_bound(engine, np.ones((1, 4), np.float16), np.ones((4, 1), np.float16))


def test_published_block_fma_bound_misses_alignment_on_thirteen_bits():
    """fp8 on Hopper: a published bound with u = 2^-24 is exceeded, the one from the specification is not."""
    engine = tcm.default_instruction("h100", "e5m2", path="wgmma")
    rng = np.random.default_rng(3)
    a = tcm.round_to(2.0 ** rng.uniform(-6, 0, (2, 64)), "e5m2")
    b = tcm.round_to(2.0 ** rng.uniform(-6, 0, (64, 2)), "e5m2")
    computed = np.asarray(engine.gemm(a, b)).astype(np.float64)
    error = np.abs(computed - a @ b)  # products of 3-bit significands: the FP64 product is exact
    published = published_bounds.block_fma_bounds(64, 32, 0.0, 2.0**-24)["deterministic"] * (a @ b)
    assert (error > published).any()
    assert (error <= bounds.gemm_bound(engine, a, b)).all()


def test_gamma_and_probabilistic_bound():
    assert published_bounds.gamma(8, 2.0**-3) == np.inf
    found = published_bounds.block_fma_bounds(4096, 8, 2.0**-11, 2.0**-24)
    assert 2.0**-10 < found["probabilistic"] < found["deterministic"]


def test_ieee_chain_agrees_with_the_textbook_bound():
    """n roundings: gamma_n from above, n u from below."""
    a = np.ones((1, 100), np.float32)
    bound = bounds.gemm_bound(ieee_engine("fp32"), a, a.T)[0, 0] / 100
    assert 100 * 2.0**-24 < bound < published_bounds.gamma(100, 2.0**-24) * 1.01


def test_every_catalogued_plain_instruction_has_a_bound():
    """Of every accumulator, on one of its rows."""
    rows = {row.accumulator: row for row in tcm.list_instructions() if row.published and row.scale_format is None}
    for spec, row in rows.items():
        assert bounds.step_error(row).terms == spec.terms_per_step


def test_a_seeded_fault_breaks_the_bound():
    """The bound is tight enough to see a unit that keeps four bits fewer."""
    rng = np.random.default_rng(9)
    engine = tcm.default_instruction("a100", "fp16")
    worse = dataclasses.replace(engine, accumulator=dataclasses.replace(engine.accumulator, fraction_bits=14))
    a, b = rng.uniform(0.5, 1, (4, 64)).astype(np.float16), rng.uniform(0.5, 1, (64, 4)).astype(np.float16)
    error = np.abs(np.asarray(worse.gemm(a, b)).astype(np.float64) - a.astype(np.float64) @ b.astype(np.float64))
    assert (error > bounds.gemm_bound(engine, a, b)).any()


def test_resolved_default_engines_have_bounds():
    for row in list_methods():
        assert bounds.step_error(resolve_engine(None, row)).terms >= 1
