"""Intervals over seeds: how often they hold what is true, what verdicts make of them, and FP32, which they are relative to."""

import dataclasses
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import ascend
import mpgemm
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments import methods as methods_module
from mpgemm.experiments.cases import generated_cases
from mpgemm.experiments.evaluate import evaluate
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.judging import judge
from mpgemm.experiments.methods import CubeOptions, build_methods, fp32_baseline
from mpgemm.experiments.spread import FEWEST, MeanInterval, SeedSpread, interval_of, student_quantile
from mpgemm.experiments.standing import (
    differences_of,
    results_for_all,
    results_that_decide,
    sampling_bits,
    standing,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 8, 29, 100, 1001])
def test_quantiles_are_students(freedom):
    t = mpmath.mpf(student_quantile(freedom))
    outside = mpmath.betainc(mpmath.mpf(freedom) / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True)
    assert abs(outside - 0.05) < 1e-9


@pytest.mark.parametrize("seeds", [3, 4, 8, 20])
def test_an_interval_holds_the_true_mean_as_often_as_it_says(seeds):
    """4,000 intervals: their share lies within four of its deviations, sqrt(0.95 * 0.05 / 4000), of 95 %."""
    draws = np.random.default_rng(seeds).normal(-0.3, 0.2, (4000, seeds))
    held = [interval_of(row).beside(-0.3) == 0 for row in draws]
    assert abs(np.mean(held) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / len(held))


def test_too_few_seeds_have_no_interval():
    assert interval_of([0.5] * (FEWEST - 1)) is None
    assert interval_of([0.5] * FEWEST).beside(0.4) == 1
    assert SeedSpread.of([3.0, 1.0]) == SeedSpread(2.0, 1.0, 3.0, 2)
    assert SeedSpread.of([math.inf, 1.0, math.inf]).median == math.inf
    assert interval_of([1.0, math.inf, 2.0]).beside(0.5) == 1


def test_seeds_that_decide():
    """With as many seeds the half-width is below the distance, with one fewer it is not."""
    found = MeanInterval(-0.70, -0.9, -0.5, 0.3, 8)
    seeds = found.seeds_to_decide(-0.75)
    half = [student_quantile(n - 1) * 0.3 / math.sqrt(n) for n in (seeds - 1, seeds)]
    assert half[1] < 0.05 <= half[0]
    assert found.seeds_to_decide(-0.70) is None
    assert MeanInterval(-0.5, -0.6, -0.4, 0.1, 8).seeds_to_decide(-0.75) == 8


def test_one_seed_decides_nothing_near_the_threshold():
    found = [standing(d, None, "relative_frobenius", 4096) for d in (-0.4, -0.6, -0.9, -1.1, math.inf, -math.inf)]
    assert found == ["as accurate", *["borderline"] * 2, "less accurate", "as accurate", "less accurate"]
    certain = interval_of([-0.74, -0.73, -0.74, -0.735])
    assert standing(-0.74, certain, "relative_frobenius", 4096) == "as accurate"


def test_few_results_decide_nothing():
    """One result is never enough for a method; of few, only what chance does not reach is said."""
    norm = "relative_frobenius"
    assert {standing(d, None, norm, 1) for d in (0.0, -3.5, 3.0, 20.0)} == {"undecided"}
    assert standing(-9.0, None, norm, 1) == "less accurate"
    assert (
        standing(0.0, None, norm, 1, exact=True) == "undecided"
        and standing(0.0, None, norm, 2, exact=True) == "as accurate"
    )
    assert [standing(0.0, None, norm, n) for n in (8, 15, 16, 4096)] == [
        "undecided",
        "undecided",
        "as accurate",
        "as accurate",
    ]
    needed = results_that_decide(-0.4)
    assert sampling_bits(needed) <= 0.35 < sampling_bits(needed - 1) and results_that_decide(-0.7500001) is None
    wide = interval_of([-4.0, 0.5, 3.0])
    assert standing(wide.mean, wide, norm, 3) == "undecided"


# -- known effects ------------------------------------------------------------------------------------------------------
def off_by(a, b, bits=20.0, spread=0.0, **options):
    """The exact product and an error of a known size, which differs from product to product by so many bits."""
    exact = np.asarray(exact_gemm(a, b).rounded("fp64"))
    rng = np.random.default_rng(abs(int(np.float64(a[0, 0]).view(np.int64))) + int(1000 * bits))
    noise = rng.standard_normal(exact.shape)
    size = 2.0 ** (-bits + spread * rng.standard_normal())
    return exact + noise * (size * np.linalg.norm(exact) / np.linalg.norm(noise))


def known(name, bits, spread=0.0):
    def multiply(a, b, **options):
        return off_by(a, b, bits, spread)

    facts = {"order": "termwise", "scale_exponent": 12} if name.startswith("sgemm_cube") else {}
    return GemmMethod(
        name, name, multiply, {**facts, "bits": bits, "spread": spread}, step_order="exact" if facts else ""
    )


@pytest.mark.parametrize(
    ("behind", "spread", "seeds", "status", "said"),
    [
        (0.5, 0.02, 8, "as accurate", "a small, certain difference: 0.5 bits less"),
        (0.0, 0.05, 8, "as accurate", "no difference ("),
        (2.0, 0.05, 8, "less accurate", "2.0 bits less ("),
        (0.75, 0.1, 8, "borderline", "The interval contains the threshold"),
        (0.75, 0.0, 1, "borderline", "1 seed gives no interval; --repeats 3 or more"),
        (0.75, 0.0, 2, "borderline", "2 seeds give no interval; --repeats 3 or more"),
        (0.3, 0.0, 1, "as accurate", "0.3 bits less (within 0.75)"),
    ],
)  # fmt: skip
def test_verdicts_on_known_effects(behind, spread, seeds, status, said):
    """The true difference in the norm is known; that of the largest result is alike for both."""
    cases = generated_cases("uniform_nonnegative", (40, 16, 40), range(seeds))
    methods = [known("fp32", 20.0), known("sgemm_cube", 20.0 - behind, spread)]
    found = judge(cases[0], methods, evaluate(cases, methods))
    assert found.status == status and said in str(found), str(found)
    assert bool(found.judgements[0].intervals) == (seeds >= FEWEST)


def test_differences_are_paired_by_seed():
    """Products whose errors lie six bits apart from seed to seed; half a bit between the methods on each is certain."""

    def method(name, bits):
        def multiply(a, b, **options):
            return off_by(a, b, bits + 6 * float(a[0, 0]))

        facts = {"order": "termwise", "scale_exponent": 12} if name != "fp32" else {}
        return GemmMethod(name, name, multiply, {**facts, "wandering": bits}, step_order="exact" if facts else "")

    cases = generated_cases("uniform_nonnegative", (40, 16, 40), range(6))
    methods = [method("fp32", 15.0), method("sgemm_cube", 14.5)]
    records = evaluate(cases, methods)
    bits = [record.errors.effective_bits() for record in records if record.method == "fp32"]
    assert max(bits) - min(bits) > 3
    (judgement,) = judge(cases[0], methods, records).judgements
    interval = judgement.intervals["relative_frobenius"]
    assert interval.mean == pytest.approx(-0.5, abs=1e-6) and interval.deviation < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), [("uniform_symmetric", (8, 300, 8)), ("digits-like", (4, 64, 4))])
def test_coverage_on_products(name, shape):
    """Paired differences of two real methods: 600 intervals of five seeds each hold the mean of all 3,000 seeds in 93 to
    97 % (the binomial deviation is 0.9 %; log-errors are not quite normal)."""
    distribution = "normal" if name == "digits-like" else name
    cases = generated_cases(distribution, shape, range(3000))
    methods = build_methods(["fp32_chain", "sgemm_cube"], CubeOptions(("termwise",), (12,), ("exact",)))
    records = evaluate(cases, methods)
    chain, cube = ([r for r in records if r.method == method.name] for method in methods)
    found = differences_of(cube, chain, "relative_frobenius")
    truth = float(np.mean(found))
    held = [interval_of(found[i : i + 5]).beside(truth) == 0 for i in range(0, len(found), 5)]
    assert 0.93 <= np.mean(held) <= 0.97


# -- the baseline -------------------------------------------------------------------------------------------------------
def nearest_fp32(x):
    """A fraction to nearest even in float32, in integers; normal numbers."""
    if not x:
        return Fraction(0)
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    unit = Fraction(2) ** (exponent - 23)
    return round(x / unit) * unit


def test_the_baseline_is_chains_of_256_in_order():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 600)).astype(np.float32), rng.standard_normal((600, 2)).astype(np.float32)
    expected = []
    for i, j in np.ndindex(2, 2):
        parts = []
        for start in range(0, 600, 256):
            total = Fraction(0)
            for k in range(start, min(start + 256, 600)):
                total = nearest_fp32(total + Fraction(float(a[i, k])) * Fraction(float(b[k, j])))
            parts.append(total)
        total = Fraction(0)
        for part in parts:
            total = nearest_fp32(total + part)
        expected.append(float(total))
    assert fp32_baseline(a, b).ravel().tolist() == expected


def test_a_verdict_does_not_depend_on_the_blas(monkeypatch):
    case = generated_cases("normal", (24, 600, 24), [0])[0]
    names = ["fp32", "fp32_numpy", "sgemm_cube"]

    def found():
        methods = build_methods(names, CubeOptions(("termwise",), (12,), ("sequential", "exact")))
        return judge(case, methods, evaluate([case], methods))

    first = found()
    backwards = methods_module.fp32_chain
    monkeypatch.setattr(methods_module, "native_fp32", lambda a, b: backwards(a[:, ::-1], b[::-1]))
    second = found()
    assert second.beside != first.beside
    assert (first.status, first.judgements) == (second.status, second.judgements)


def test_recommendations_on_known_effects():
    """Eight seeds of three methods whose distance from FP32 is known; one verdict, one table, one margin."""
    from mpgemm.experiments.comparison import Comparison, compare

    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 40, 40)).astype(np.float32)
    plain = compare(["fp16"], ["a100"], a, b)
    (record,), (fp32,) = plain, plain.fp32.values()
    behind = {"near": (0.5, 0.02), "edge": (0.75, 0.3), "far": (2.0, 0.1)}
    records, baseline = [], {}
    for seed, offset in enumerate(np.linspace(-1, 1, 8)):
        case = f"x seed {seed}"
        baseline[case] = dataclasses.replace(fp32, relative_frobenius=2.0**-20, componentwise=2.0**-19)
        for cost, (method, (bits, spread)) in enumerate(behind.items(), 1):
            error = 2.0 ** (-20 + bits + spread * offset)
            errors = dataclasses.replace(record.errors, relative_frobenius=error, componentwise=2.0**-19)
            new = {"case": case, "group": "x", "method": method, "cost": 10.0 - cost, "errors": errors}
            records.append(dataclasses.replace(record, **new))
    found = Comparison(records, (), baseline)
    (row,) = found.recommendations(18.9)[:1]
    assert (row.method, row.reached, set(row.borderline)) == ("near", ("near",), {"edge"})
    margin = row.borderline["edge"]
    assert abs(margin.bits) < 1e-9 and margin.seeds is None and margin.threshold == -0.75
    (bits,) = found.recommendations(18.9)[1:]
    assert bits.reached == ("near", "edge") and not bits.borderline
    text = str(found)
    assert text.count("Verdict, x:") == 1 and "x, 8 seeds: medians" in text and "19.50 (19.48 to 19.52)" in text
    assert "Decided by the 95% interval, Student's t over seeds (8)" in text
    few = Comparison([r for r in records if r.case in ("x seed 0", "x seed 7")], (), baseline)
    assert "2 seeds are too few for an interval, so medians decide." in str(few)


def test_fp32_is_one_thing_in_plans_and_verdicts():
    """The bits that a plan is to reach are the baseline's on the same data."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((16, 4096)).astype(np.float32), rng.standard_normal((4096, 16)).astype(np.float32)
    wanted = ascend.advise(16, 4096, 16, "910B3", data=(a, b), simulated=1).wanted
    bits = mpgemm.errors(fp32_baseline(a, b), a, b).effective_bits()
    assert wanted == pytest.approx(bits, abs=1e-6)
    chain = mpgemm.errors(methods_module.fp32_chain(a, b), a, b).effective_bits()
    assert chain < bits - 1


def test_one_metric_beyond_its_threshold_decides_alone():
    """21,395 results were asked for, as the largest result lay at its threshold; the norm needs 28."""
    near = {"relative_frobenius": -1.3, "componentwise": -1.5001}
    assert results_for_all(near) == results_that_decide(-1.3) == 28
    assert sampling_bits(28) <= 0.55 < sampling_bits(27)
    assert results_for_all({"relative_frobenius": -1.3, "componentwise": -1.52}) == 28  # the first that decides
    within = {"relative_frobenius": -0.4, "componentwise": -1.2}
    assert results_for_all(within) == max(results_that_decide(-0.4), results_that_decide(-1.2, "componentwise"))
    assert results_for_all({"relative_frobenius": -0.4, "componentwise": -1.4999}) is None
    assert results_for_all({"relative_frobenius": -0.7500001, "componentwise": -2.5}) == results_that_decide(
        -2.5, "componentwise"
    )
