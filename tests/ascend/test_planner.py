"""The planner: what it ranks, what it rejects, what it says."""

import time

import numpy as np
import pytest

import ascend
from ascend.blocking import feasible_sizes
from ascend.closed_forms import paper_seconds
from ascend.kernels.paper import PaperKernel
from ascend.pipes.simulate import simulate
from ascend.planner.accuracy import data_error
from ascend.request import Request
from ascend.schedule import build_schedule

A = ascend.get_chip("910A")
M, K, N = 5632, 2816, 5632


def test_finds_the_published_block_at_the_assumed_size():
    """It does by itself among all feasible blocks, nominal or calibrated: 5632 = 32 * 176 is what decides."""
    for chip in (A, A.with_calibration()):
        best = ascend.plan(M, K, N, chip, kernel="paper", simulated=15, top=3)
        assert best[0].blocking == ascend.Blocking(176, 64, 176) and best[0].n_fused == 44


def test_traffic_alone_chooses_96():
    """Section 5.1.1: the optimum of eq. 9 rounds to bm = 96."""
    assert {p.blocking.bm for p in ascend.plan(M, K, N, A, kernel="paper", rank="traffic", top=5)} <= {80, 96}
    square = [
        p
        for p in ascend.plan(M, K, N, A, kernel="paper", rank="traffic", top=600, error_of=lambda s: 0.0)
        if p.blocking.bm == p.blocking.bn
    ]
    assert min(square, key=lambda p: p.traffic.elements).blocking.bm in (80, 96)
    assert [p.traffic.elements for p in square] == sorted(p.traffic.elements for p in square)


def test_another_size_prefers_other_blocks():
    """Documented: without the lucky size (176, 64, 176) is not what the model finds."""
    best = ascend.plan(16384, 8192, 16384, A, kernel="paper", simulated=20, top=1)[0]
    assert best.blocking != ascend.Blocking(176, 64, 176)


@pytest.mark.parametrize("options", [{}, {"buffering": "single"}, {"mode": "elementwise"}, {"terms": 1}])
def test_closed_forms_follow_the_simulation(options):
    """The closed forms choose what is simulated: over the space they are within 30 % and keep the order (Spearman)."""
    sizes = feasible_sizes(A, options.get("buffering", "double"), 2 if "mode" in options else 1)[::41]
    closed = paper_seconds(sizes, Request(3000, 2000, 2500, A, **options))
    simulated = np.array(
        [
            simulate(build_schedule(3000, 2000, 2500, A, ascend.Blocking(*row), **options)).seconds
            for row in sizes.tolist()
        ]
    )
    assert np.abs(closed / simulated - 1).max() < 0.3
    ranks = [np.argsort(np.argsort(x)) for x in (closed, simulated)]
    assert np.corrcoef(*ranks)[0, 1] > 0.98


def test_ranking_is_sorted_and_complete():
    plans = ascend.plan(1000, 1000, 1000, A, kernel="paper", simulated=30, top=30)
    assert len(plans) == 30 == len({p.blocking for p in plans})
    assert [p.seconds for p in plans] == sorted(p.seconds for p in plans)
    assert all(p.timeline is not None and p.tflops == pytest.approx(p.timeline.tflops) for p in plans)
    analytic = ascend.plan(1000, 1000, 1000, A, kernel="paper", rank="analytic", top=7)
    assert [p.analytic_seconds for p in analytic] == sorted(p.analytic_seconds for p in analytic)
    assert all(p.timeline is None for p in analytic)


def test_fused_kernels_only_where_three_accumulators_fit():
    plans = ascend.plan(2000, 2000, 2000, A, mode="fused", simulated=10)
    assert plans and all(12 * p.blocking.bm * p.blocking.bn <= A.l0c_bytes for p in plans)


# ---------------------------------------------------------------- accuracy


def matrices(m=64, k=4096, n=48):
    rng = np.random.default_rng(7)
    return rng.random((m, k), dtype=np.float32), rng.random((k, n), dtype=np.float32)


def test_errors_are_those_of_the_schedules_own_product():
    a, b = matrices()
    plans = ascend.plan(64, 4096, 48, A, data=(a, b), kernel="paper", simulated=12, top=12)
    exact = a.astype(float) @ b.astype(float)
    for plan in plans[:4]:
        product = ascend.cube_gemm(a, b, schedule=plan.schedule)
        error = np.linalg.norm(product - exact) / np.linalg.norm(exact)
        assert plan.error == pytest.approx(error, rel=1e-12)


def test_limit_leaves_out_what_is_less_accurate():
    errors = {16: 1e-6, 32: 2e-6, 48: 3e-6}

    def error_of(schedule):
        return errors.get(schedule.blocking.bk, 1e-3)

    plans = ascend.plan(512, 512, 512, A, kernel="paper", max_error=2.5e-6, error_of=error_of, simulated=20)
    assert {p.blocking.bk for p in plans} <= {16, 32}
    with pytest.raises(ValueError, match=r"no block keeps the error below 1e-09, the best reaches 1e-06"):
        ascend.plan(512, 512, 512, A, max_error=1e-9, error_of=error_of, simulated=20)


def test_error_is_computed_once_for_each_accumulation_length(monkeypatch):
    a, b = matrices(32, 512, 32)
    calls = []
    real = PaperKernel.product
    monkeypatch.setattr(PaperKernel, "product", lambda *x, **y: calls.append(1) or real(*x, **y))
    error = data_error(a, b)
    for block in ((64, 64, 64), (96, 64, 96), (32, 32, 32)):  # all of k in one group each time
        error(ascend.build_schedule(32, 512, 32, A, ascend.Blocking(*block)))
    assert len(calls) == 1


# ---------------------------------------------------------------- tiling, sentences


def test_tiling_fields():
    plan = ascend.plan_of(ascend.build_schedule(M, K, N, A, ascend.Blocking(176, 64, 176)))
    assert ascend.tiling_fields(plan.schedule) == {
        "usedCoreNum": 32, "M": M, "N": N, "Ka": K, "Kb": K, "singleCoreM": 176, "singleCoreN": N, "singleCoreK": 2816,
        "baseM": 176, "baseN": 176, "baseK": 64, "depthA1": 44, "depthB1": 2, "stepM": 1, "stepN": 1, "stepKa": 44,
        "stepKb": 1, "dbL0A": 2, "dbL0B": 2, "dbL0C": 2, "iterateOrder": 1,
    }  # fmt: skip


def test_tiling_of_a_fused_kernel_and_of_a_short_k():
    fused = ascend.tiling_fields(ascend.build_schedule(M, K, N, A, ascend.Blocking(96, 64, 96), mode="fused"))
    assert (fused["depthA1"], fused["stepKa"], fused["depthB1"]) == (40, 40, 2)  # floor(40.67), of one word
    short = ascend.tiling_fields(ascend.build_schedule(100, 200, 100, A, ascend.Blocking(96, 64, 96)))
    assert (short["depthA1"], short["singleCoreK"], short["usedCoreNum"], short["baseN"]) == (
        4,
        208,
        2,
        96,
    )  # NZ words: k in whole fractals


def test_chip_by_name():
    assert ascend.plan(300, 300, 300, "910A", rank="analytic")[0].schedule.chip is A
    assert ascend.simulate(ascend.build_schedule(64, 64, 64, "910A", ascend.Blocking(64, 64, 64))).chip is A


def test_explanation_keeps_standings_apart():
    schedule = ascend.build_schedule(M, K, N, A, ascend.Blocking(176, 64, 176))
    sentences = ascend.explain(schedule)
    assert {s.split(":")[0] for s in sentences} == {"published", "computed", "inferred", "simulated"}
    text = " ".join(sentences)
    assert "(96, 64, 96)" in text and "(192, 64, 192)" in text and "46.5 B/cycle" in text and "85.3 B/cycle" in text
    other = " ".join(ascend.explain(ascend.build_schedule(M, K, N, "910B1", ascend.Blocking(96, 64, 96))))
    assert "published" not in other  # the paper says nothing about this chip's blocks


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 1, 1), {}, "m must be at least 1, got 0"),
        ((2**30, 2**30, 2**30), {}, "exceeds any chip's memory"),
        ((16, 16, 16), {"rank": "luck"}, "rank must be one of time, traffic, analytic"),
        ((16, 16, 16), {"max_error": -1.0, "error_of": lambda s: 0.0}, "above 0"),
        ((16, 16, 16), {"data": (np.zeros((16, 8)), np.zeros((8, 16)))}, r"shapes \(16, 16\) and \(16, 16\)"),
        ((16, 16, 16), {"top": 0}, "at least 1"),
        ((16, 16, 16), {"operand": "fp32", "terms": 1}, "multiplies fp16, int8, got fp32"),
    ],
)
def test_bad_requests(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        ascend.plan(*arguments, A, **options)


@pytest.mark.unsanitized
def test_one_ranking_is_quick():
    """Not a benchmark (bench/bench_ascend.py is): a ranking that took ten times what it takes is broken."""
    ascend.plan(M, K, N, A, rank="analytic", error_of=lambda s: 0.0)
    start = time.process_time()
    ascend.plan(M, K, N, A, rank="analytic", error_of=lambda s: 0.0)
    assert time.process_time() - start < 0.5
