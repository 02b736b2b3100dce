"""Exact products of operands whose blocks of k have scales, against integers."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from mpgemm.exact.blocks import ExactBlocks, sums_are_exact
from mpgemm.testing.case import kernel_case
from tensorcore_models.formats import get_float_format

E4M3 = ml_dtypes.float8_e4m3fn


def operands(m, k, n, block, seed=0):
    rng = np.random.default_rng(seed)
    x, y = ((rng.standard_normal(shape) * 100).astype(E4M3).astype(np.float64) for shape in ((m, k), (k, n)))
    blocks = -(-k // block)
    a, b = (np.exp(rng.uniform(-30, 30, shape)).astype(np.float32) for shape in ((m, blocks), (blocks, n)))
    return x, y, (a, b)


def truth(x, y, factors, block, c=None):
    """Every element as a fraction."""
    a, b = factors
    found = np.empty((len(x), y.shape[1]), object)
    for i, j in np.ndindex(found.shape):
        terms = (
            Fraction(x[i, t])
            * Fraction(y[t, j])
            * Fraction(float(a[i, t // block]))
            * Fraction(float(b[t // block, j]))
            for t in range(x.shape[1])
        )
        found[i, j] = sum(terms, Fraction(0) if c is None else Fraction(c[i, j]))
    return found


@pytest.mark.parametrize(("k", "block", "added"), [(64, 64, False), (150, 64, True), (40, 16, True)])
def test_results_and_differences_are_rounded_once(k, block, added):
    x, y, factors = operands(2, k, 66, block)
    c = np.random.default_rng(1).standard_normal((2, 66)) if added else None
    exact, found = truth(x, y, factors, block, c), ExactBlocks(x, y, factors, block, c)
    assert found.rounded("fp64").tolist() == [[float(v) for v in row] for row in exact]
    single = found.rounded("fp32")
    assert found.error_of(single).tolist() == [
        [float(Fraction(float(s)) - v) for s, v in zip(*pair, strict=True)] for pair in zip(single, exact, strict=True)
    ]
    near = np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf))
    with np.errstate(all="ignore"):
        assert all((np.abs(found.error_of(single)) <= np.abs(found.error_of(other))).all() for other in near)
    sizes = truth(np.abs(x), np.abs(y), tuple(np.abs(f) for f in factors), block, None if c is None else np.abs(c))
    assert found.magnitudes().rounded("fp64").tolist() == [[float(v) for v in row] for row in sizes]


def test_formats_whose_sums_fp64_holds():
    e4m3, e5m2, fp16 = (get_float_format(name) for name in ("e4m3fn", "e5m2", "fp16"))
    assert sums_are_exact((e4m3, e4m3), 128) and not sums_are_exact((e5m2, e4m3), 128)
    assert not sums_are_exact((e4m3, e4m3), 1 << 18) and not sums_are_exact((fp16, e4m3), 16)


@pytest.mark.parametrize("seed", range(2))
def test_a_case_with_blocks_has_the_values_of_the_scaled_operands(seed):
    rng = np.random.default_rng(seed)
    a, b = ((rng.standard_normal(shape) * 20).astype(E4M3) for shape in ((130, 256), (256, 128)))
    scales = rng.uniform(1, 2, (130, 2)).astype(np.float32), rng.uniform(1, 2, (2, 1)).astype(np.float32)
    case = kernel_case("h100", a, b, scale_a=scales[0], scale_b=scales[1], rows=9)
    assert isinstance(case.exact, ExactBlocks)
    x, y = case.a, case.b
    values = [
        [float(sum(Fraction(p) * Fraction(q) for p, q in zip(x[i], y[:, j], strict=True))) for j in (0, 127)]
        for i in (0, 8)
    ]
    assert case.values[np.ix_([0, 8], [0, 127])].tolist() == values
    a[3] = np.nan  # what is not finite is left to the general way
    assert not isinstance(kernel_case("h100", a, b, scale_a=scales[0], scale_b=scales[1]).exact, ExactBlocks)
