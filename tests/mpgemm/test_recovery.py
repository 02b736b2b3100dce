"""Recovery methods on engines: bits against independent formulas, exactness, passes, ranges and bad input."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend
import tensorcore_models as tcm
from mpgemm import (
    UnsuitableEngine,
    get_method,
    ieee_engine,
    list_methods,
    method_bound,
    recovered_gemm,
    recovered_gemm_report,
)
from mpgemm.explanations.example import VALPEY_A, VALPEY_B, VALPEY_C
from mpgemm.reproductions.valpey_table5 import MARKIDIS, OOTOMO

A100 = tcm.default_instruction("a100", "fp16")
#: Nothing is cut off and sums are FP64: with few enough terms every result is exact.
EXACT = tcm.MatrixEngine(
    tcm.ParametricDotAdd(terms=8, fraction_bits=None, output_rounding="rne"),
    a_format="fp16",
    c_format="fp64",
    d_format="fp64",
)


def pair(seed=0, m=3, k=40, n=2, low=-1.0, high=1.0):
    rng = np.random.default_rng(seed)
    return rng.uniform(low, high, (m, k)).astype(np.float32), rng.uniform(low, high, (k, n)).astype(np.float32)


def exact(a, b, c=None):
    start = np.zeros((len(a), b.shape[1])) if c is None else c
    return np.array(
        [
            [
                sum(
                    (Fraction(float(x)) * Fraction(float(y)) for x, y in zip(r, s, strict=True)),
                    Fraction(float(start[i][j])),
                )
                for j, s in enumerate(np.asarray(b).T)
            ]
            for i, r in enumerate(a)
        ],
        dtype=object,
    )


# -- against formulas written out here -----------------------------------------------------------------------------------
def halves(x, scale, rounding="rne"):
    """High and low fp16 words as float32."""
    high = tcm.round_to(x, "fp16", rounding)
    return high, tcm.round_to((x - high) * np.float32(2.0**scale), "fp16", rounding)


def test_ootomo_is_its_formula():
    a, b = pair(1)
    c = np.float32([[1.5, -3], [0.25, 0.5], [7, 1e-3]])
    (ah, al), (bh, bl) = halves(a, 11), halves(b, 11)
    total = np.zeros(c.shape, np.float32)
    for k in range(0, 40, 16):
        total = total + A100.gemm(ah[:, k : k + 16], bh[k : k + 16])
    correction = np.zeros(c.shape, np.float32)
    for k in range(0, 40, 16):
        part = slice(k, k + 16)
        correction = A100.gemm(ah[:, part], bl[part], correction)
        correction = A100.gemm(al[:, part], bh[part], correction)
    expected = (total + correction * np.float32(2.0**-11)) + c
    np.testing.assert_array_equal(recovered_gemm(a, b, c, "ootomo", A100), expected)


def test_markidis_is_its_formula_in_both_orders():
    a, b = pair(2)
    c = np.float32([[1.5, -3], [0.25, 0.5], [7, 1e-3]])
    (ah, al), (bh, bl) = halves(a, 0, "rz"), halves(b, 0, "rz")
    by_term = c
    for x, y in ((al, bl), (ah, bl), (al, bh), (ah, bh)):
        by_term = A100.gemm(x, y, by_term)
    np.testing.assert_array_equal(recovered_gemm(a, b, c, "markidis", A100, order="term"), by_term)
    by_step = c
    for k in range(0, 40, 16):
        part = slice(k, k + 16)
        for x, y in ((al, bl), (ah, bl), (al, bh), (ah, bh)):
            by_step = A100.gemm(x[:, part], y[part], by_step)
    np.testing.assert_array_equal(recovered_gemm(a, b, c, "markidis", A100), by_step)


def test_nested_sums_stay_in_the_core():
    a, b = pair(3)
    c = np.float32(np.ones((3, 2)))
    (ah, al), (bh, bl) = halves(a, 11), halves(b, 11)
    correction = A100.gemm(al, bh, A100.gemm(ah, bl, c * np.float32(2.0**11)))
    expected = A100.gemm(ah, bh, correction * np.float32(2.0**-11))
    np.testing.assert_array_equal(recovered_gemm(a, b, c, "ootomo_inside", A100, order="term"), expected)


def test_sgemm_cube_on_an_fp16_fma_unit_is_the_ascend_cube():
    a, b = pair(4, 17, 100, 19)
    for terms in (3, 4):
        ours = recovered_gemm(a, b, None, "sgemm_cube", ieee_engine("fp16"), terms=terms)
        np.testing.assert_array_equal(ours, ascend.cube_gemm(a, b, low_low=terms == 4))
    cube = recovered_gemm(a, b, None, "sgemm_cube", accumulation="elementwise")
    np.testing.assert_array_equal(cube, ascend.cube_gemm(a, b, order="elementwise"))


def test_elementwise_adds_each_step_outside():
    a, b = pair(5, 2, 32, 2)
    (ah, al), (bh, bl) = halves(a, 12), halves(b, 12)
    total = np.zeros((2, 2), np.float32)
    for k in (0, 16):
        part = slice(k, k + 16)
        for x, y, s in ((ah, bh, 0), (al, bh, 12), (ah, bl, 12)):
            total = total + A100.gemm(x[:, part], y[part]) * np.float32(2.0**-s)
    np.testing.assert_array_equal(recovered_gemm(a, b, None, "sgemm_cube", A100, accumulation="elementwise"), total)


@pytest.mark.parametrize("order", ["term", "step"])
@pytest.mark.parametrize("every", [40, 64, 1000])
def test_restarted_chains_are_added_outside(order, every):
    """Each block is the method's own chain over its k; the blocks are added in order, c first."""
    rng = np.random.default_rng(7)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 150), (150, 11), (9, 11)))
    core = {"method": "bf16x6", "engine": "x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32", "order": order}
    for total in (c, None):
        expected = total
        for start in range(0, 150, every):
            ks = slice(start, start + every)
            part = recovered_gemm(a[:, ks], b[ks], **core)
            expected = part if expected is None else expected + part
        assert np.array_equal(recovered_gemm(a, b, total, **core, restart_every=every), expected)
    assert np.array_equal(recovered_gemm(a, b, **core, restart_every=1000), recovered_gemm(a, b, **core))
    assert not np.array_equal(recovered_gemm(a, b, **core, restart_every=40), recovered_gemm(a, b, **core))
    error = exact(a, b, c) - recovered_gemm(a, b, c, **core, restart_every=every).astype(object)
    bound = method_bound(a, b, c, **core, restart_every=every).total
    assert all(abs(Fraction(e)) <= x for e, x in zip(error.ravel(), bound.ravel(), strict=True))


def test_products_take_turns_every_so_many_k():
    """One chain: the low products over 32 of k, then the high one over the same, then the next 32."""
    a, b = pair(8, 5, 90, 6)
    (ah, al), (bh, bl) = (halves(x, 0) for x in (a, b))
    total = np.zeros((5, 6), np.float32)
    for start in range(0, 90, 32):
        ks = slice(start, start + 32)
        for x, y in ((ah, bl), (al, bh), (ah, bh)):
            total = A100.gemm(x[:, ks], y[ks], total)
    found = recovered_gemm(a, b, None, "markidis", A100, terms=3, rounding="rne", order=32)
    np.testing.assert_array_equal(found, total)
    assert not np.array_equal(found, recovered_gemm(a, b, None, "markidis", A100, terms=3, rounding="rne"))
    with pytest.raises(ValueError, match="order is 24 products of k, expected a multiple of 16, the k step"):
        recovered_gemm(a, b, None, "markidis", A100, order=24)


@pytest.mark.parametrize("every", [32, 40, 1000])
def test_the_high_product_restarts_every_so_many_k(every):
    a, b = pair(9, 5, 90, 6)
    c = pair(10, 5, 6, 1)[0]
    (ah, al), (bh, bl) = (halves(x, 11) for x in (a, b))
    total = np.zeros((5, 6), np.float32)
    for start in range(0, 90, every):
        total = total + A100.gemm(ah[:, start : start + every], bh[start : start + every])
    low = A100.gemm(al, bh, A100.gemm(ah, bl))
    expected = (low * np.float32(2.0**-11) + total) + c
    options = {"method": "ootomo", "engine": A100, "order": "term", "restart_every": every}
    np.testing.assert_array_equal(recovered_gemm(a, b, c, **options), expected)
    error = exact(a, b, c) - expected.astype(object)
    bound = method_bound(a, b, c, **options).total
    assert all(abs(Fraction(e)) <= x for e, x in zip(error.ravel(), bound.ravel(), strict=True))


@pytest.mark.parametrize("method", ["ootomo", "sgemm_cube", "bf16x6:restart_every=32", "fp16"])
def test_a_repair_gives_what_fp32_gives_where_words_fail(method):
    a, b = pair(12, 6, 40, 7)
    a[1, 3], a[2, 4], a[3, 5], b[6, 2], b[7, 4] = np.inf, np.nan, 1e6, -np.inf, 3e38
    a[4, 0], b[0, 6] = -np.inf, 0.0
    c = np.float32(pair(13, 6, 7, 1)[0])
    plain = recovered_gemm(a, b, c, method, "a100")
    found = recovered_gemm(a, b, c, method, "a100", repair="fp32")
    chain = recovered_gemm(a, b, None, "fp32") + c
    lost = ~np.isfinite(plain)
    assert 10 < lost.sum() < lost.size
    np.testing.assert_array_equal(found[~lost], plain[~lost])
    np.testing.assert_array_equal(found[lost], chain[lost])
    assert np.isfinite(found[3]).any() and np.isneginf(chain[:, 2]).any()


def test_long_chains_are_cut_without_changing_bits(monkeypatch):
    a, b = pair(6, 3, 200, 3)
    whole = recovered_gemm(a, b, None, "markidis", A100)
    monkeypatch.setattr("mpgemm.recovery.arithmetic.CHAIN_BYTES", 1000)
    np.testing.assert_array_equal(recovered_gemm(a, b, None, "markidis", A100), whole)


# -- valpey, table 5 -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("device", ("v100", "t4", "a100", "h100"))
def test_valpey_table_5(device):
    a, b, c = VALPEY_A[None], VALPEY_B[:, None], VALPEY_C.reshape(1, 1)
    assert recovered_gemm(a, b, c, MARKIDIS, device)[0, 0] == np.float32(1 + 2.0**-23)
    assert recovered_gemm(a, b, c, OOTOMO, device)[0, 0] == np.float32(1.0)


def test_valpey_table_5_needs_the_corrected_exponent():
    """With b_1 * 2^-14 as printed, the first product is 2^-14 of that, and both methods agree."""
    b = VALPEY_B * np.float32([2.0**-14, 1, 1, 1])
    results = {
        float(recovered_gemm(VALPEY_A[None], b[:, None], VALPEY_C.reshape(1, 1), m, "v100")[0, 0])
        for m in (MARKIDIS, OOTOMO)
    }
    assert len(results) == 1


# -- exactness -----------------------------------------------------------------------------------------------------------
def words_of_22_bits(seed, shape):
    """FP32 numbers whose high and low fp16 words hold them exactly."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-(2**21), 2**21, shape) * 2.0**-21).astype(np.float32)


@pytest.mark.parametrize("method", ("egemm", "markidis_scaled"))
def test_four_products_of_exact_words_are_exact_on_an_exact_engine(method):
    a, b = words_of_22_bits(1, (3, 8)), words_of_22_bits(2, (8, 2))
    d = recovered_gemm(a, b, None, method, EXACT, **({"rounding": "rne"} if method != "egemm" else {}))
    assert d.dtype == np.float64
    assert (np.vectorize(Fraction, otypes=[object])(d) == exact(a, b)).all()


def test_three_products_leave_out_exactly_the_low_low_term():
    a, b = words_of_22_bits(3, (3, 8)), words_of_22_bits(4, (8, 2))
    low_a, low_b = (x - tcm.round_to(x, "fp16") for x in (a, b))
    d = recovered_gemm(a, b, None, "ma", EXACT)
    assert (np.vectorize(Fraction, otypes=[object])(d) + exact(low_a, low_b) == exact(a, b)).all()
    scaled = recovered_gemm(a, b, None, "ootomo", EXACT)
    np.testing.assert_array_equal(scaled, d)


@pytest.mark.parametrize("fmt", ("fp16", "bf16", "tf32", "e5m2", "e4m3fn"))
def test_enough_words_hold_fp32_exactly(fmt):
    """p words of t bits hold 24 bits when p t >= 24; all products on an exact engine then give the exact result."""
    engine = tcm.MatrixEngine(EXACT.accumulator, a_format=fmt, c_format="fp64", d_format="fp64")
    words = -(-24 // tcm.get_format(fmt).precision)
    a, b = pair(7, 2, 1, 2, 0.5, 1.0)
    row = get_method("multiword", format=fmt, words=words)
    full = [(i, j) for i in range(words) for j in range(words)]
    row = dataclasses.replace(row, products=tuple(sorted(full, key=lambda p: -sum(p))))
    d = recovered_gemm(a, b, None, row, engine)
    assert (np.vectorize(Fraction, otypes=[object])(d) == exact(a, b)).all()


@settings(max_examples=40, derandomize=True)
@given(
    st.sampled_from(("multiword", "ozaki_int8", "ozaki2_int8", "ozaki2_fp8", "mixpert")),
    st.integers(0, 2**32 - 1),
    st.integers(-40, 40),
)
def test_equilibrated_methods_commute_with_powers_of_two(method, seed, shift):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 9)).astype(np.float32), rng.normal(size=(9, 3)).astype(np.float32)
    scale = np.float32(2.0**shift)
    np.testing.assert_array_equal(
        recovered_gemm(a * scale, b, None, method), recovered_gemm(a, b, None, method) * scale
    )


# -- what each method claims, on benign data -----------------------------------------------------------------------------
#: Bits of one product (k = 1), operands in [1, 2): relative error at most 2^-bits. With u = 2^-11 (RN, fp16): words leave
#: u^2 of an
#: operand, so 2 u^2; three products drop another u^2 at most: 3 u^2 < 2^-20. RZ doubles each u: 4 (2u)^2/... < 2^-18. The
#: core's
#: roundings add at most a few 2^-23. bf16: u = 2^-8, p words leave u^p twice, the dropped products of p words at most 2 u^p.
#: bf16xfp32: A holds BF16 numbers, B loses u^p.
#: Integer methods: four 7-bit slices (28 bits) on one exponent.
CLAIMED_BITS = {
    "fp16": 10,
    "bf16": 7,
    "tf32": 10,
    "hf32": 11,
    "fp8": 2,
    "hifloat8": 2,
    "fp32": 24,
    "fp64": 53,
    "markidis": 18,
    "markidis_scaled": 18,
    "egemm": 20,
    "ootomo": 20,
    "ootomo_tf32": 20,
    "ootomo_inside": 20,
    "ma": 20,
    "sgemm_cube": 20,
    "multiword": 20,
    "bf16x3": 14,
    "bf16x6": 21,
    "bf16x9": 21,
    "bf16xfp32x2": 15,
    "bf16xfp32x3": 22,
    "cutlass_bf16x9": 22,
    "cutlass_3xtf32": 20,
    "triton_tf32x3": 20,
    "tf32x3": 20,
    "mixpert": 23,
    "quantensor": 11,
    "ozaki_int8": 23,
    "ozaki2_int8": 23,
    "ozaki_fp8": 23,
    "ozaki2_fp8": 23,
}


@pytest.mark.parametrize("method", [row.name for row in list_methods()])
def test_one_product_has_the_bits_that_the_words_promise(method):
    rng = np.random.default_rng(11)
    a, b = rng.uniform(1, 2, (40, 1)).astype(np.float32), rng.uniform(1, 2, (1, 40)).astype(np.float32)
    if method.startswith("bf16xfp32"):
        a = tcm.round_to(a, "bf16")
    product = a.astype(np.float64) * b
    error = np.abs(recovered_gemm(a, b, None, method).astype(np.float64) - product) / product
    bits = CLAIMED_BITS[method]
    assert error.max() <= 2.0**-bits
    assert bits >= 23 or error.max() > 2.0 ** -(bits + 6)  # the claim is not idle


@pytest.mark.parametrize("engine", ("v100", "t4", "a100", "h100", "b200", "l40s", "mi100", "mi250", "mi300x"))
@pytest.mark.parametrize("method", ("markidis", "egemm", "ootomo", "ootomo_inside", "ma", "sgemm_cube", "multiword"))
def test_every_fp16_method_runs_on_every_core(engine, method):
    a, b = pair(12, 4, 70, 5)
    reference = a.astype(np.float64) @ b
    error = np.linalg.norm(recovered_gemm(a, b, None, method, engine) - reference) / np.linalg.norm(
        np.abs(a) @ np.abs(b)
    )
    # CDNA2 flushes fp16 subnormals: unscaled low words below 2^-14 are lost, which leaves 2^-14 of an operand.
    assert error < (2.0**-13 if engine == "mi250" else 2.0**-17)


# -- accounting ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [row.name for row in list_methods()])
def test_passes_are_what_the_engine_multiplies(method):
    row = get_method(method)
    count = 0

    def multiply(a, b, c):
        nonlocal count
        count += a.shape[0] * a.shape[1] * b.shape[1]
        if row.integer:
            return (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32)
        return (a.astype(np.float64) @ b.astype(np.float64) + c).astype(result)

    result = np.float64 if method == "fp64" else np.float32
    d_format = "s32" if row.integer else "fp64" if method == "fp64" else "fp32"
    scaled = row.word_scale(tcm.get_format(row.formats[0])) if row.scaled_input else 0
    engine = tcm.as_engine(multiply, a_format=row.formats[0], d_format=d_format, k=8, largest_input_scale=scaled)
    a, b = pair(13, 3, 24, 5)
    report = recovered_gemm_report(a, b, None, method, engine)
    assert count == row.passes * 3 * 24 * 5 == report.passes * 360
    assert np.abs(report.d - a.astype(np.float64) @ b).max() < 0.5


def test_result_types():
    a, b = pair(14)
    wide = a.astype(np.float64)
    assert recovered_gemm(a, b, None, "ootomo").dtype == np.float32
    assert recovered_gemm(a, b, None, "fp64").dtype == np.float64
    assert recovered_gemm(wide, b, None, "ozaki_int8").dtype == np.float64
    assert recovered_gemm(wide, b, None, "ozaki_int8", target="fp32").dtype == np.float32
    assert recovered_gemm(a, b, None, "fp16", "ampere:mma.m16n8k16.f16.f16.f16.f16").dtype == np.float16


def test_no_products_give_c_or_zeros():
    a, b = np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)
    c = np.float32([[1, 2, 3], [4, 5, 6]])
    for row in list_methods():
        np.testing.assert_array_equal(recovered_gemm(a, b, c, row.name), c)
        np.testing.assert_array_equal(recovered_gemm(a, b, None, row.name), np.zeros((2, 3)))


# -- range ---------------------------------------------------------------------------------------------------------------
def test_counts_of_elements_beyond_the_range():
    a = np.float32([[1e6, 1.0, 2.0**-26, 1 / 3]])
    b = np.float32([[1], [1], [1], [0.5]])
    report = recovered_gemm_report(a, b, None, "fp16")
    assert (report.a.overflow, report.a.underflow, report.b.overflow, report.b.underflow) == (1, 1, 0, 0)
    assert report.nonfinite == 1 and "overflow 1 of A" in str(report)
    saturated = recovered_gemm_report(a, b, None, "fp16", overflow="saturate")
    assert saturated.a.overflow == 1 and saturated.nonfinite == 0 and saturated.d[0, 0] > 65504
    scaled = recovered_gemm_report(a, b, None, "multiword")
    assert scaled.a.overflow == 0 and abs(scaled.d[0, 0] - (1e6 + 1 + 1 / 6)) < 1


def test_low_words_underflow_without_scaling():
    a = np.float32([[1 / 3 * 2.0**-8]])
    assert recovered_gemm_report(a, a.T, None, "egemm").a.underflow == 1
    assert recovered_gemm_report(a, a.T, None, "ootomo").a.underflow == 0


@pytest.mark.parametrize("method", ("fp16", "ootomo", "ozaki_int8"))
def test_strict_raises_with_the_counts(method):
    a = np.float32([[1e6, np.inf]])
    with pytest.raises(ValueError, match="of 2 elements of A, 1 overflow and [01] underflow"):
        recovered_gemm(a, a.T, None, method, strict=True)
    assert not np.isfinite(recovered_gemm(a, a.T, None, method)).any()


def test_special_values_go_as_on_hardware():
    a = np.float32([[np.nan, 1], [np.inf, 1], [1, 1]])
    b = np.float32([[1, 0], [2, 3]])
    d = recovered_gemm(a, b, None, "fp16")
    assert np.isnan(d[0]).all() and d[1, 0] == np.inf and np.isnan(d[1, 1]) and (d[2] == [3, 3]).all()
    low_words_of_infinity = recovered_gemm(a, b, None, "ootomo")
    assert np.isnan(low_words_of_infinity[:2]).all() and (low_words_of_infinity[2] == [3, 3]).all()


# -- arguments -----------------------------------------------------------------------------------------------------------
def test_engines_that_do_not_take_the_words_name_those_that_would():
    a, b = pair()
    with pytest.raises(
        UnsuitableEngine, match=r"needs words of bf16, v100 takes fp16; .*; engines that run it: ampere:mma"
    ):
        recovered_gemm(a, b, None, "bf16x3", "v100")
    with pytest.raises(UnsuitableEngine, match="needs words of s8"):
        recovered_gemm(a, b, None, "ozaki_int8", A100)
    with pytest.raises(UnsuitableEngine, match="block scales"):
        recovered_gemm(a, b, None, "fp8", "blackwell:tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0")
    with pytest.raises(UnsuitableEngine, match="e5m2 and e4m3fn words"):
        recovered_gemm(a, b, None, "fp8", "ada:mma.m16n8k32.f32.e5m2.e4m3.f32")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"b": np.zeros((3, 2), np.float32)}, ValueError, "columns of a"),
        ({"a": np.zeros(3, np.float32)}, ValueError, "2 dimensions"),
        ({"c": np.zeros((2, 2), np.float32)}, ValueError, "c is"),
        ({"c": np.full((3, 2), 1 / 3)}, ValueError, "not representable in float32"),
        ({"a": np.array([["x"]])}, TypeError, "number"),
        ({"engine": 3}, TypeError, "expected an engine"),
        ({"engine": "a101"}, ValueError, "did you mean"),
        ({"overflow": "wrap"}, ValueError, "'inf' or 'saturate'"),
        ({"method": "ozaki_int8", "c": np.full((3, 2), 1 / 3)}, ValueError, "round c first"),
    ],
)
def test_bad_arguments(changes, error, message):
    a, b = pair()
    arguments = {"a": a, "b": b, "c": None, "method": "ootomo", "engine": A100} | changes
    if arguments["method"] != "ootomo":
        arguments["engine"] = None
    with pytest.raises(error, match=message):
        recovered_gemm(**arguments)


def test_any_layout_gives_the_same_bits_and_nothing_is_modified():
    a, b = pair(15)
    expected = recovered_gemm(a, b, None, "ootomo", A100)
    strided = np.repeat(a, 2, axis=1)[:, ::2]
    swapped = b.astype(b.dtype.newbyteorder())
    fortran = np.asfortranarray(a)
    for x in (a, b, swapped):
        x.setflags(write=False)
    for x, y in ((strided, b), (a, swapped), (fortran, b), (a.tolist(), b)):
        y = np.asarray(y)
        x = np.asarray(x, np.float32)
        np.testing.assert_array_equal(recovered_gemm(x, y, None, "ootomo", A100), expected)


def test_hardware_by_name(monkeypatch):
    """The emulated CPU unit gives its model's bits; one that is not there is named in one line."""
    a, b = pair()
    model = recovered_gemm(a, b, method="bf16x6", engine="x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32")
    assert np.array_equal(recovered_gemm(a, b, method="bf16x6", engine="cpu-emulated:tdpbf16ps"), model)
    monkeypatch.setenv("MPGEMM_AMX", "refused")
    with pytest.raises(ValueError, match="cpu:tdpbf16ps: .* cannot run on this machine"):
        recovered_gemm(a, b, method="bf16x6", engine="cpu:tdpbf16ps")


def test_engines_by_name():
    a, b = pair(16)
    by_device = recovered_gemm(a, b, None, "ootomo", "a100")
    np.testing.assert_array_equal(by_device, recovered_gemm(a, b, None, "ootomo", A100))
    np.testing.assert_array_equal(
        by_device, recovered_gemm(a, b, None, "ootomo", "ampere:mma.m16n8k16.f32.f16.f16.f32")
    )
    sync, group = (recovered_gemm(a, b, None, "fp8", path) for path in ("h100/mma", "h100/wgmma"))
    assert (sync != group).any()
    np.testing.assert_array_equal(recovered_gemm(a, b, None, "fp8", "h100"), group)


def test_a_store_of_words_changes_no_bits():
    from mpgemm.recovery.run import prepare
    from mpgemm.recovery.word_run import WordStore

    store = WordStore()
    pairs = [pair(seed) for seed in (20, 21, 22)]
    for a, b in (*pairs, *pairs):
        for method in ("ootomo", "multiword", "egemm"):
            for engine in ("a100", "h100"):
                row = get_method(method)
                shared = prepare(a, b, None, row, engine, store=store).product()
                np.testing.assert_array_equal(shared, recovered_gemm(a, b, None, method, engine))


def test_steps_in_batches_are_the_steps_one_by_one(monkeypatch):
    a, b = pair(23, 5, 150, 4)
    for method in ("ootomo", "sgemm_cube"):
        options = {"accumulation": "elementwise"} if method == "sgemm_cube" else {}
        whole = recovered_gemm(a, b, None, method, "v100", **options)
        with monkeypatch.context() as patch:
            patch.setattr("mpgemm.recovery.arithmetic.CHAIN_BYTES", 1000)
            np.testing.assert_array_equal(recovered_gemm(a, b, None, method, "v100", **options), whole)
    high_a, high_b = (tcm.round_to(x, "fp16").astype(np.float16) for x in (a, b))
    promoted = A100.gemm(high_a, high_b, promote_every=A100.k)
    plain = recovered_gemm(high_a, high_b, None, "ootomo", A100)
    np.testing.assert_array_equal(plain, promoted)  # fp16 operands have no low words


def test_overflow_is_the_engines_own_by_default():
    a = np.float32([[1e6, 1.0]])
    np.testing.assert_array_equal(
        recovered_gemm(a, a.T, None, "sgemm_cube"), ascend.cube_gemm(a, a.T)
    )  # 910A: saturates
    assert np.isnan(recovered_gemm(a, a.T, None, "sgemm_cube", "a100")).all()
    report = recovered_gemm_report(a, a.T, None, "sgemm_cube")
    assert report.a.overflow == 1 and report.nonfinite == 0
