"""The verdict on SGEMM-cube: for data of every kind, what an expert would say."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend
import mpgemm
import tensorcore_models as tcm
from ascend.numeric.arguments import DEFAULT_STEP_ORDER
from ascend.tile_schedule import TileSchedule
from mpgemm.bounds.error_parts import CAUSES
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.cases import generated_cases, given_case, shipped_case
from mpgemm.experiments.error_sources import error_sources
from mpgemm.experiments.evaluate import evaluate
from mpgemm.experiments.judging import judge
from mpgemm.experiments.methods import CubeOptions, build_methods
from mpgemm.experiments.standing import bits_between, sampling_bits
from mpgemm.experiments.verdict import SHORT_CHAIN, CubeSetting
from mpgemm.inputs.files import read_matrix, write_matrix

METHODS = build_methods(
    ["fp32", "fp32_chain", "sgemm_cube", "sgemm_cube_scaled"],
    CubeOptions(orders=("termwise",), scale_exponents=(0, 12, "auto"), step_orders=("sequential", "exact")),
)


def verdict_on(case, methods=METHODS):
    return judge(case, methods, evaluate([case], methods))


def generated(name, shape, **parameters):
    return generated_cases(name, shape, [0], parameters)[0]


def matrices(a, b):
    return given_case(np.float32(a), np.float32(b))


RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((48, 48))
PLAIN, SCALED = CubeSetting("termwise", 12), CubeSetting("termwise", 12, True)
ONE_BIG, INFINITE, COLUMNS = SQUARE.copy(), SQUARE.copy(), 10.0 ** RNG.uniform(-8, 8, (1, 48))
ONE_BIG[3, 7], INFINITE[5, 1] = 7e4, np.inf
#: case, status, depends on the step order, recommended setting, cause without scaling ("" for none)
CASES = {
    "the paper's": (generated("uniform_symmetric", (256, 256, 256)), "as accurate", False, PLAIN, ""),
    "weights": (matrices(RNG.normal(0, 0.02, (64, 256)), RNG.standard_normal((256, 40))), "as accurate", False, PLAIN, ""),
    "digits": (shipped_case("digits"), "less accurate", True, PLAIN, "accumulation"),
    "diffusion": (shipped_case("diffusion"), "less accurate", False, PLAIN, "dropped term"),
    "gemv": (generated("normal", (1024, 2048, 1)), "less accurate", True, PLAIN, "accumulation"),
    "cancelling": (generated("cancelling", (64, 256, 64)), "as accurate", False, PLAIN, ""),
    "too big": (generated("uniform_symmetric", (32, 64, 32), exponent=17), "as accurate", False, SCALED, "overflow"),
    "too small": (generated("uniform_symmetric", (64, 128, 64), exponent=-20), "as accurate", False, SCALED, "range"),
    "vanishing": (generated("uniform_symmetric", (32, 128, 32), exponent=-45), "as accurate", False, SCALED, "range"),
    "one element too big": (matrices(ONE_BIG, SQUARE), "as accurate", False, SCALED, "overflow"),
    "small rows": (matrices(SQUARE * 10.0 ** RNG.integers(-8, 4, (48, 1)), SQUARE), "as accurate", False, SCALED, "range"),
    "columns of every size": (matrices(SQUARE * COLUMNS, SQUARE / COLUMNS.T), "lost", False, PLAIN, "overflow"),
    "an infinity": (matrices(INFINITE, SQUARE), "lost", False, PLAIN, None),
    "beyond FP32": (matrices(SQUARE * 1e25, SQUARE * 1e25), "lost", False, PLAIN, None),
    "integers": (matrices(np.rint(4 * SQUARE), np.rint(4 * SQUARE)), "as accurate", False, PLAIN, ""),
    "identity": (matrices(np.eye(48), SQUARE), "as accurate", False, PLAIN, ""),
    "empty": (matrices(np.zeros((3, 0)), np.zeros((0, 2))), "as accurate", False, PLAIN, ""),
    "zeros": (matrices(np.zeros((3, 4)), np.zeros((4, 2))), "as accurate", False, PLAIN, ""),
}  # fmt: skip


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", CASES)
def test_an_expert_agrees(name):
    case, status, depends, recommended, cause = CASES[name]
    found = verdict_on(case)
    assert (found.status, found.depends_on_step_order, found.recommended) == (status, depends, recommended), str(found)
    if cause is not None:
        assert found.judgements[0].cause == cause, found.judgements[0].sources
    assert str(found).startswith("Verdict: ")
    assert "nan" not in str(found)


def test_what_is_said_about_lost_elements():
    text = str(verdict_on(CASES["one element too big"][0]))
    assert "Elements of A beyond their first word: 1 beyond 65504, the first A[3, 7] = 70000." in text
    text = str(verdict_on(CASES["an infinity"][0]))
    assert "A: 1 infinite or NaN, the first A[5, 1] = inf" in text
    assert "Lost results: 48 of 2304" in text and "worst C[5, " in text


def test_the_digits_depend_on_the_step_and_the_text_says_so():
    found = verdict_on(CASES["digits"][0])
    text = str(found)
    assert text.startswith(
        "Verdict: less accurate than FP32 if rounding after every product, as PTO-ISA's ADR-0047 states and cube_gemm computes "
        "by default; as accurate as FP32 if rounding once a step, which the SGEMM-cube paper's figure 9 fits."
    )
    assert text.endswith(
        "Use termwise order, s_b = 12; s_b = 0, auto give the same. Chains of 256 products where those bits matter."
    )
    assert "FP32 with all of k in one chain has" in text
    sequential, exact = sorted(found.judgements, key=lambda j: j.step_order == "exact")
    assert sequential.differences["relative_frobenius"] < -1 < 1 < exact.differences["relative_frobenius"]


def test_single_rows_count_though_the_norm_hides_them():
    found = verdict_on(CASES["small rows"][0])
    assert abs(found.judgements[0].differences["relative_frobenius"]) < 0.5
    assert found.judgements[0].differences["componentwise"] < -4


def test_results_that_plain_fp16_would_have_are_lost():
    """Elements below 2^-22 keep fewer bits in two words than FP16 keeps in range: their results count one by one."""
    case = generated("uniform_symmetric", (16, 16, 16), exponent=-22)
    judgement = verdict_on(case).judgements[0]
    a, b = case.load()
    product = ascend.cube_gemm(a, b, scale_exponent=judgement.setting.scale_exponent)
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b)
    share = np.abs(exact_gemm(a, b).error_of(product)) / sizes
    assert judgement.status == "lost"
    assert 0 < judgement.lost_results == np.count_nonzero(share > 2**-10) < 256
    assert judgement.worst == np.unravel_index(np.argmax(share), share.shape)


@pytest.mark.parametrize("seed", range(3))
def test_one_result_decides_nothing(seed):
    """Whatever the one element says, and what would decide stands beside it."""
    found = verdict_on(generated_cases("normal", (1, 4096, 1), [seed])[0])
    assert found.status == "undecided" and str(found).startswith(
        "Verdict: undecided, as there are too few results to tell"
    )
    assert "With 1 result, differences of up to 4.7 bits may be chance; " in str(found)
    assert "results would decide (larger m or n, or --repeats)." in str(found)


def test_the_verdict_goes_by_what_cube_gemm_computes():
    """One default, in one place: the status is that of the bits that a call without options returns."""
    case = CASES["digits"][0]
    found = verdict_on(case)
    a, b = case.load()
    norm = np.linalg.norm(exact_gemm(a, b).rounded("fp64"))
    bits = -np.log2(np.linalg.norm(exact_gemm(a, b).error_of(ascend.cube_gemm(a, b))) / norm)
    (mine,) = [j for j in found.judgements if abs(j.effective_bits - bits) < 1e-9]
    assert mine.step_order == DEFAULT_STEP_ORDER == "sequential" and mine.status == found.status
    engine = tcm.get_instruction("ascend:cube.m16n16k16.f32.f16.f16.f32")
    one = np.float16([[1] + [2.0**-11] * 15]), np.float16([[1]] + [[2.0**-13]] * 15)
    assert ascend.cube_hgemm(*one)[0, 0] == engine.gemm(*one)[0, 0] == 1.0
    assert ascend.cube_hgemm(*one, step_order="exact")[0, 0] > 1.0


def test_a_copy_is_no_second_seed():
    """Three copies of a case have no interval, and the same verdict as one."""
    case = generated("uniform_symmetric", (16, 64, 16))
    records = evaluate([case], METHODS)
    alone, copies = judge(case, METHODS, records), judge(case, METHODS, records * 3)
    assert copies.seeds == 1 and not any(j.intervals for j in copies.judgements)
    assert str(copies) == str(alone) and len(evaluate([case] * 3, METHODS)) == len(METHODS)


def test_a_seed_that_loses_results_is_not_averaged_away():
    """One of forty seeds has a component beyond fp16's range: the mean of the differences does not show it."""
    cases = generated_cases("uniform_symmetric", (16, 16, 16), range(40))
    a, b = cases[23].load()
    a = a.copy()
    a[3, 4] = 3e5
    cases[23] = dataclasses.replace(cases[23], load=lambda: (a, b), identity={**cases[23].identity, "changed": True})
    methods = build_methods(["fp32", "sgemm_cube"], CubeOptions(("termwise",), (12,), ("sequential",)))
    assert judge(cases[0], methods, evaluate(cases, methods)).status == "lost"


def test_of_ill_conditioned_products_the_condition_is_told():
    found = verdict_on(generated("ill_conditioned", (24, 64, 24), condition=1e4))
    assert found.condition is not None and found.condition.norm > 1e3
    bits = found.judgements[0].fp32_bits
    assert "in norm; by element" in str(found) and f"FP32 itself reaches {bits:.1f} bits of it." in str(found)
    assert "Condition" not in str(verdict_on(CASES["integers"][0]))


@pytest.mark.parametrize("wide", [np.array([[2**60 + 1, -(2**60)]]), np.longdouble([[1, 2.0**-60]])], ids=str)
def test_numbers_that_float64_lacks_are_refused(wide, tmp_path):
    """[[2^60 + 1, -2^60]] times ones is 1; rounded to float64 first it would be 0."""
    ones = np.ones((2, 1))
    for call in (mpgemm.verdict, lambda a, b: mpgemm.compare(["fp64"], [None], a, b),
                 mpgemm.slice_advice, mpgemm.exact_gemm, lambda a, b: mpgemm.advise_promotion(a, b, "h100")):  # fmt: skip
        with pytest.raises(
            (ValueError, TypeError), match=r"beyond 2\*\*53 that float64 cannot represent|wider than float64"
        ):
            call(wide, ones)


def test_integers_of_files_are_exact_or_refused(tmp_path):
    (tmp_path / "a.csv").write_text(f"{2**60 + 1},{-(2**60)}\n")
    (tmp_path / "even.csv").write_text(f"{2**60},{-(2**60)}\n")
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix array integer general\n1 2\n{2**60 + 1}\n{-(2**60)}\n")
    cell = f"line 1, cell 1 is {2**60 + 1}, an integer that float64 cannot hold: save it as .npy"
    for name, message in (("a.csv", cell), ("a.mtx", r"beyond 2\*\*53 that float64 cannot represent")):
        with pytest.raises(ValueError, match=message):
            read_matrix(tmp_path / name)
    assert read_matrix(tmp_path / "even.csv").tolist() == [[2.0**60, -(2.0**60)]]
    with pytest.raises(ValueError, match=r"beyond 2\*\*53"):
        write_matrix(tmp_path / "b.mtx", np.array([[2**60 + 1]]))


def test_the_low_low_product_is_measured_where_it_is_missing():
    (first, _) = verdict_on(CASES["diffusion"][0]).judgements
    assert first.effective_bits + 0.3 < first.low_low_bits < first.fp32_bits


def test_short_chains_are_measured_and_advised_where_sums_are_the_cause():
    """What the schedule's own block computes, and enough where FP32 is reached with it."""
    case = generated("normal", (16, 4096, 32))
    found = verdict_on(case)
    (first, exact) = found.judgements
    assert first.cause == "accumulation" and exact.status == "as accurate" and exact.short_chain_bits is None
    a, b = case.load()
    blocking = ascend.Blocking(16, 256, 32)
    schedule = dataclasses.replace(TileSchedule.unblocked(m=16, k=4096, n=32), blocking=blocking)
    assert schedule.chain == SHORT_CHAIN
    error = exact_gemm(a, b).error_of(ascend.cube_gemm(a, b, schedule=schedule))
    bits = -np.log2(np.linalg.norm(error) / np.linalg.norm(exact_gemm(a, b).rounded("fp64")))
    assert abs(first.short_chain_bits - bits) < 1e-6 and bits > first.effective_bits + 1
    assert str(found).endswith("Chains of 256 products where those bits matter.")
    assert verdict_on(generated("uniform_nonnegative", (4, 200, 4))).judgements[0].short_chain_bits is None


def test_no_verdict_without_its_methods():
    case = generated("normal", (4, 4, 4))
    assert verdict_on(case, build_methods(["fp32"])) is None
    assert verdict_on(case, build_methods(["sgemm_cube"])) is None
    assert verdict_on(case, build_methods(["fp32", "sgemm_cube_scaled"])) is None
    assert verdict_on(case, build_methods(["fp32", "sgemm_cube"])).scaled == ()


def test_the_usual_scale_where_another_gives_the_same():
    found = verdict_on(CASES["the paper's"][0])
    assert found.recommended.scale_exponent == 12 and CubeSetting("termwise", "auto") in found.same
    small = verdict_on(generated("uniform_symmetric", (64, 128, 64), exponent=-10))
    assert small.recommended.scale_exponent == 12 and CubeSetting("termwise", 0) not in small.same


def test_bits_between():
    assert bits_between(2.0**-20, 2.0**-18) == 2
    assert bits_between(0.0, 2.0**-20) == 4  # nothing counts below FP32's unit roundoff
    assert bits_between(0.0, 2.0**-30) == bits_between(math.inf, math.inf) == 0
    assert bits_between(math.inf, 1e-7) == -math.inf and bits_between(1e-7, math.inf) == math.inf


@pytest.mark.parametrize("results", [2, 8, 64])
def test_noise_covers_two_equal_methods(results):
    """The ratio of the norms of two independent normal errors lies within the stated bits in about 95 % of the trials."""
    draws = np.random.default_rng(results).standard_normal((2, 4000, results))
    norms = np.sqrt((draws**2).sum(axis=2))
    within = np.mean(np.abs(np.log2(norms[0] / norms[1])) <= sampling_bits(results))
    assert within >= 0.94


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 5), st.integers(1, 9), st.integers(1, 5), st.integers(-30, 20), st.sampled_from([0, 6, 12, 20]),
    st.integers(0, 99),
)  # fmt: skip
def test_the_parts_add_up(m, k, n, exponent, scale, seed):
    """With one source alone in weights of one element, the parts' signed sum is the error: |error| <= sum of the norms, and
    without sums (k = 1) nothing is left for the accumulation but its last roundings."""
    rng = np.random.default_rng(seed)
    a = np.ldexp(rng.standard_normal((m, k)), exponent).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    error = exact_gemm(a, b).error_of(ascend.cube_gemm(a, b, scale_exponent=scale))
    parts = error_sources(a, b, error, (scale, scale))
    assert tuple(parts) == CAUSES
    assert np.linalg.norm(error) <= sum(parts.values()) * (1 + 1e-9)
    if k == 1:
        size = np.linalg.norm(np.abs(a.astype(np.float64)) @ np.abs(b)) + 1e-300
        assert parts["accumulation"] <= 2**-22 * size


def test_the_words_of_a_product_beyond_fp32():
    """Overflow of FP32 itself is said in words, not as infinitely many bits; bits beyond FP32's own are not counted."""
    rng = np.random.default_rng(0)
    a, b = (np.ldexp(rng.standard_normal(s), 85).astype(np.float32) for s in ((8, 16), (16, 8)))
    text = str(mpgemm.verdict(a, b))
    assert "no bits, FP32 no bits: FP32 leaves its range" in text and "inf bits" not in text
    k1 = str(mpgemm.verdict(a[:, :1] / 2**85, b[:1] / 2**85))
    assert "FP32 24 bits or more" in k1


def test_where_no_setting_is_best_in_each_order_the_worst_case_beside_fp32_decides():
    """Of constant matrices s_b = 12 is best where the cube rounds once a step and s_b = 0 where it does not."""
    case = given_case(np.full((8, 128), 0.1), np.full((128, 8), 0.1))
    methods = build_methods(["fp32", "sgemm_cube"], CubeOptions(step_orders=("sequential", "exact")))
    found = verdict_on(case, methods)
    assert found.recommended == CubeSetting("termwise", 0) and found.same == ()
    assert found.status == "as accurate" and not found.depends_on_step_order


def test_what_scaling_gains_is_told_for_each_rounding():
    """Scaling that makes one rounding as accurate as FP32 and another worse does not gain nothing."""
    plain = dataclasses.replace(
        verdict_on(matrices(SQUARE, SQUARE)), status="less accurate", depends_on_step_order=True
    )
    one, two = plain.judgements
    before = (
        dataclasses.replace(one, effective_bits=20.1),
        dataclasses.replace(two, status="less accurate", effective_bits=20.0),
    )
    after = (
        dataclasses.replace(one, status="less accurate", effective_bits=19.0),
        dataclasses.replace(two, effective_bits=20.4),
    )
    text = str(dataclasses.replace(plain, judgements=before, scaled=after))
    assert "gains nothing" not in text
    assert (
        "(sgemm_cube_scaled) is not enough: 19.0 bits with rounding after every product (less accurate than FP32); "
        "20.4 bits with rounding once a step (as accurate as FP32)." in text
    )
