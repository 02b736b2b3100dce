"""The bound with a probability: its theorem on random roundings, and what models of units compute beside it."""

import math

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.method_bounds import method_bound
from mpgemm.bounds.probabilistic import deviation, likely_bound
from mpgemm.inputs import generate

ENGINES = ("v100", "a100", "h100", "mi300x")
METHODS = ("fp16", "markidis", "sgemm_cube", "ootomo", "multiword", "bf16x9:restart_every=16")
SHARE = 0.01


@pytest.mark.parametrize("delta", [0.5, 0.1])
def test_the_theorem_on_random_roundings(delta):
    """Directed roundings with the largest mean that is allowed, others with mean 0, units that depend on the sum so far."""
    rng, trials = np.random.default_rng(3), 20_000
    total, drift, squares = np.zeros((3, trials))
    for _ in range(60):
        unit = np.where(total > 4, 0.5, 1.0)  # known before the rounding
        directed = rng.integers(0, 2, trials)
        total += unit * (
            rng.integers(0, 2, trials) - np.where(directed, 0.0, 0.5)
        )  # the widest distributions of their means
        drift += directed * unit / 2
        squares += unit**2
    beyond = np.mean(np.abs(total - drift) > deviation(squares, 1, 1 - delta))
    assert 0 < beyond <= delta


@pytest.mark.sweep(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("distribution", ["uniform_nonnegative", "normal"])
def test_no_unit_exceeds_it(engine, distribution):
    """All elements of a product are within it but for one product in a hundred; here one of 48 would be too many."""
    beyond = 0
    for method in METHODS:
        if method.startswith("bf16") and engine == "v100":
            continue
        for seed in range(8):
            a, b = generate(distribution, 6, 300, 6, seed)
            error = np.abs(mpgemm.exact_gemm(a, b).error_of(mpgemm.recovered_gemm(a, b, None, method, engine)))
            likely, certain = (f(a, b, None, method, engine) for f in (likely_bound, lambda *x: method_bound(*x).total))
            assert (likely <= certain).all() and (error <= certain).all()
            beyond += bool((error > likely).any())
    assert beyond <= SHARE * 48


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS[:4])
def test_seeds_in_numbers(engine, method):
    """500 products with a bound that one in two may exceed."""
    beyond = 0
    for seed in range(500):
        a, b = generate("uniform_nonnegative", 4, 512, 4, seed)
        error = np.abs(mpgemm.exact_gemm(a, b).error_of(mpgemm.recovered_gemm(a, b, None, method, engine)))
        beyond += bool((error > likely_bound(a, b, None, method, engine, probability=0.5)).any())
    assert beyond <= 250


def test_the_published_bound_is_exceeded_where_this_one_holds():
    """V100 truncates, so that errors of sums of one sign are one-sided and grow with k, not with its root."""
    a, b = generate("uniform_nonnegative", 16, 4096, 16)
    error = np.abs(mpgemm.exact_gemm(a, b).error_of(mpgemm.recovered_gemm(a, b, None, "sgemm_cube", "v100")))
    sizes = np.abs(a).astype(np.float64) @ np.abs(b)
    found = method_bound(a, b, None, "sgemm_cube", "v100")
    likely = likely_bound(a, b, None, "sgemm_cube", "v100")
    assert (error > 2 * found.published["block FMA, probabilistic"] * sizes).mean() > 0.9
    assert (error <= likely).all() and (likely < 3 * error).mean() > 0.9 and (3 * likely < found.total).all()


def test_roundings_to_nearest_cancel():
    a, b = generate("uniform_nonnegative", 8, 4096, 8)
    likely, certain = likely_bound(a, b, None, "fp32"), method_bound(a, b, None, "fp32").total
    error = np.abs(mpgemm.exact_gemm(a, b).error_of(mpgemm.recovered_gemm(a, b, None, "fp32")))
    assert (10 * likely < certain).all() and (error <= likely).all() and (likely < 400 * np.median(error)).all()
    truncating = likely_bound(a, b, None, "fp16", "v100")
    assert (truncating < method_bound(a, b, None, "fp16", "v100").total).all()


def test_an_addend_and_a_lower_probability():
    a, b = generate("normal", 5, 64, 5)
    c = np.full((5, 5), 100, np.float32)
    for method in ("markidis", "ootomo", "sgemm_cube", "multiword"):
        error = np.abs(mpgemm.exact_gemm(a, b, c).error_of(mpgemm.recovered_gemm(a, b, c, method, "a100")))
        assert (error <= likely_bound(a, b, c, method, "a100")).all()
    high, low = (likely_bound(a, b, None, "markidis", "a100", probability=p) for p in (0.999, 0.5))
    assert (low < high).all()


def test_what_has_no_such_bound():
    a, b = generate("normal", 4, 16, 4)
    for probability in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="expected a number between 0 and 1"):
            likely_bound(a, b, probability=probability)
    with pytest.raises(ValueError, match="only its deterministic bound is known"):
        likely_bound(a, b, None, "ozaki_int8", "a100")
    with pytest.raises(ValueError, match="has no model of each single rounding"):
        likely_bound(a, b, None, "bf16", "wormhole")


def test_stated_roundings_add_up_to_the_certain_error():
    """Of every accumulator, on one row: sum of number * unit (half of it to nearest) <= alpha <= the same compounded."""
    stated = 0
    for row in {row.accumulator: row for row in tcm.list_instructions()}.values():
        try:
            step = bounds.step_error(row)
        except ValueError:
            continue
        if not step.roundings:
            continue
        stated += 1
        parts = [r.number * r.unit * (1 if r.directed else 0.5) for r in step.roundings]
        assert sum(parts) <= step.relative * (1 + 1e-12), row.label
        assert step.relative <= math.expm1(sum(map(math.log1p, parts))) * (1 + 1e-6), row.label
    assert stated > 50
