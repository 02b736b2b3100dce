"""Bounds hold at the ends of the range: known violations, and a hill-climbing search for new ones."""

import warnings

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.bounds.bounds import gemm_bound
from mpgemm.bounds.method_bounds import method_bound
from tensorcore_models import accumulators as acc


def excess(found, bound, a, b, c=None) -> float:
    """Largest error beyond its bound, as a ratio; NaN and infinite results need an infinite bound."""
    error = np.abs(mpgemm.exact_gemm(a, b, c).error_of(found))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.where(np.isinf(bound), 0.0, np.where(error == 0, 0.0, error / bound))
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio), initial=0.0))


def method_excess(name: str, a, b, c=None) -> float:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = mpgemm.recovered_gemm(a, b, c, method=name)
        except ValueError:
            return 0.0
        return excess(found, method_bound(a, b, c, method=name).total, a, b, c)


SIZES = (
    (1e20, 1e20),
    (1e-22, 1e-21),
    (3e-20, 1e-24),
    (1e-30, 1e-30),
    (1e30, 1e-30),
    (1e37, 10),
    (6e-39, 1),
    (1e-3, 1e-43),
)
METHODS = [method.name for method in mpgemm.list_methods()]


@pytest.mark.parametrize("name", METHODS)
def test_constant_matrices_of_extreme_sizes(name):
    for x, y in SIZES:
        assert method_excess(name, np.full((1, 4), x, np.float32), np.full((4, 1), y, np.float32)) <= 1, (x, y)


@pytest.mark.parametrize(
    "accumulator, a_format, c_format",
    [(acc.SequentialFMA(flush_inputs=True), "fp16", "fp16"), (acc.LanedFMA(), "bf16", "fp16"),
     (acc.ParametricDotAdd(flush_inputs=True), "fp16", "fp16"), (acc.PairRoundOddSum(), "bf16", "fp16")],
)  # fmt: skip
def test_a_narrow_addend_that_is_flushed(accumulator, a_format, c_format):
    engine = tcm.MatrixEngine(accumulator, a_format=a_format, c_format=c_format, d_format="fp32")
    zero = np.zeros((1, 32), np.float32)
    c = np.full((1, 1), 2.0**-15, np.float16)  # subnormal in fp16, far from it in fp32
    found = engine.gemm(zero, zero.T, c)
    assert excess(found, gemm_bound(engine, zero, zero.T, c), zero, zero.T, c) <= 1


def test_operands_that_the_format_on_the_way_lacks_are_refused():
    with pytest.raises(ValueError, match="converts its operands to fp16 first, which lacks numbers of a_format bf16"):
        tcm.MatrixEngine(acc.InterleavedDotAdd(), a_format="bf16")
    tcm.MatrixEngine(acc.InterleavedDotAdd(), a_format="e5m2")


def climb(rng, evaluate, draw, move, steps: int) -> float:
    """The largest excess that `steps` random changes of a start find, each kept if it is no smaller."""
    at = draw(rng)
    best = evaluate(*at)
    for _ in range(steps):
        tried = move(rng, *at)
        value = evaluate(*tried)
        if value >= best:
            at, best = tried, value
    return best


def draw(rng, m=2, k=8, n=2):
    a, b = (rng.standard_normal(s) * 2.0 ** rng.integers(-148, 128) for s in ((m, k), (k, n)))
    with np.errstate(all="ignore"):
        return np.float32(np.clip(a, -3e38, 3e38)), np.float32(np.clip(b, -3e38, 3e38))


def move(rng, a, b):
    """One element, a row, or all of a matrix scaled, negated, replaced or moved by an ulp."""
    pair = [a.copy(), b.copy()]
    x = pair[int(rng.integers(2))]
    where = [
        (slice(None), slice(None)),
        (int(rng.integers(x.shape[0])),),
        tuple(int(rng.integers(s)) for s in x.shape),
    ][int(rng.integers(3))]
    kind = int(rng.integers(4))
    with np.errstate(all="ignore"):
        if kind == 0:
            x[where] = np.clip(x[where] * np.float32(2.0 ** rng.integers(-40, 41)), -3e38, 3e38)
        elif kind == 1:
            x[where] = -x[where]
        elif kind == 2:
            x[where] = np.float32(rng.choice([0.0, 1.0, 2.0**-149, 2.0**-126, 65504.0, 3e38]))
        else:
            x[where] = np.clip(np.nextafter(x[where], np.float32(rng.choice([-np.inf, np.inf]))), -3e38, 3e38)
    return pair[0], pair[1]


@pytest.mark.parametrize("name", METHODS)
def test_search_for_violations(name):
    rng = np.random.default_rng(11)
    assert climb(rng, lambda a, b: method_excess(name, a, b), draw, move, 12) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_long_search_for_violations(name):
    for seed in range(5):
        rng = np.random.default_rng([seed, 12])
        assert climb(rng, lambda a, b: method_excess(name, a, b), draw, move, 200) <= 1, seed


ENGINES = {
    "fda": tcm.FusedDotAdd(), "fda rne": tcm.FusedDotAdd(terms=8, fraction_bits=10, output_rounding="rne"),
    "fma": acc.SequentialFMA(), "fma flushed": acc.SequentialFMA(flush_inputs=True, flush_outputs=True),
    "lanes": acc.LanedFMA(),
    "gps": acc.GroupPairwiseSum(), "gps kept": acc.GroupPairwiseSum(flush_results=False, flush_input="none"),
    "fdrda": acc.FusedDotRoundDownAdd(), "bfmmla": acc.PairRoundOddSum(),
    "parametric": acc.ParametricDotAdd(alignment="pairwise", c_position="late", flush_inputs=True, flush_outputs=True),
}  # fmt: skip


def engine_excess(engine, a, b) -> float:
    with np.errstate(all="ignore"):
        a, b = (tcm.decode(tcm.encode(x, "bf16", saturate=True), "bf16", np.float32) for x in (a, b))
        return excess(engine.gemm(a, b), gemm_bound(engine, a, b), a, b)


@pytest.mark.parametrize("name", ENGINES)
def test_search_for_violations_of_engines(name):
    engine = tcm.MatrixEngine(ENGINES[name], a_format="bf16")
    rng = np.random.default_rng(13)
    assert climb(rng, lambda a, b: engine_excess(engine, a, b), draw, move, 60) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_long_search_for_violations_of_engines(name):
    engine = tcm.MatrixEngine(ENGINES[name], a_format="bf16")
    for seed in range(5):
        rng = np.random.default_rng([seed, 14])
        assert climb(rng, lambda a, b: engine_excess(engine, a, b), draw, move, 500) <= 1, seed
