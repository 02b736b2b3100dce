"""How sharp the certified lines of Hopper's 13-bit FP8 unit are, and that right kernels of any order pass their lines."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import gemm_bound, tolerance
from mpgemm.testing import assert_gemm_close, gemm_tolerance

E4M3 = ml_dtypes.float8_e4m3fn
HOPPER = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3")


def draw(kind, shape, seed):
    """Gaussian, heavy-tailed, positive, and activations (positive) of an A with Gaussian weights as B."""
    rng = np.random.default_rng([seed, *shape])
    x = np.clip(rng.standard_t(3, shape), -200, 200) if kind == "heavy" else rng.standard_normal(shape)
    positive = kind == "positive" or (kind == "activations" and seed == 0)
    return (np.abs(x) if positive else x).astype(E4M3)


def adversary(k):
    """One product of 2^16, then products of 7.875: just below the 2^3 that the alignment keeps, so that each is lost whole."""
    a, b = np.full((1, k), 1.75), np.full((k, 1), 4.5)
    a[0, 0] = b[0, 0] = 256
    return a.astype(E4M3), b.astype(E4M3)


@pytest.mark.parametrize("k", [512, 4096])
def test_an_adversary_reaches_the_certified_lines(k):
    a, b = adversary(k)
    lost = abs(float(HOPPER.gemm(a, b)[0, 0]) - float((a.astype(np.float64) @ b.astype(np.float64))[0, 0]))
    size = float((np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)))[0, 0])
    assert lost >= 0.9 * gemm_bound(HOPPER, a, b)[0, 0]
    assert lost >= 0.9 * gemm_tolerance(HOPPER, a, b, k_order="any").bound[0, 0]
    assert lost >= 0.6 * gemm_tolerance(HOPPER, a, b).bound[0, 0]
    found = tolerance(HOPPER, k)
    assert lost <= found.relative * size + found.absolute
    assert lost >= 0.9 * found.relative * size


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", ["gaussian", "heavy", "activations", "positive"])
@pytest.mark.parametrize("m", [1, 24])
def test_a_dropped_block_of_a_long_product_fails_in_the_unit_with_sums_outside(kind, m):
    a, b = draw(kind, (m, 4096), 0), draw(kind, (4096, 96 if m == 1 else 10), 1)
    every = {"promote_every": 128}
    assert_gemm_close(HOPPER.gemm(a, b, **every), a, b, engine="h100", **every)
    lost = a.copy()
    lost[:, 1024:1056] = 0
    with pytest.raises(AssertionError, match="k 1024:1056 is missing"):
        assert_gemm_close(HOPPER.gemm(lost, b, **every), a, b, engine="h100", **every)


@pytest.mark.parametrize("kind", ["gaussian", "heavy", "activations"])
def test_one_chain_of_4096_has_a_line_that_a_dropped_block_fails(kind):
    a, b = draw(kind, (24, 4096), 0), draw(kind, (4096, 32), 1)
    allowed = gemm_tolerance("h100", a, b)
    assert (np.abs(allowed.exact.error_of(HOPPER.gemm(a, b))) <= allowed.bound).all()
    assert allowed.vacuity.unseen_blocks == 0
    assert allowed.statistics is None


def test_bounds_of_known_orders_hold_on_random_exponents():
    rng = np.random.default_rng(3)
    for _ in range(12):
        k = int(rng.integers(1, 600))
        a, b = (np.ldexp(rng.uniform(-2, 2, s), rng.integers(-7, 7, s)).astype(E4M3) for s in ((4, k), (k, 3)))
        c = rng.standard_normal((4, 3)).astype(np.float32) if rng.random() < 0.5 else None
        for order in ({}, {"promote_every": 64}, {"k_order": "split_k:3"}, {"k_order": "sliced_k:2"}):
            allowed = gemm_tolerance(HOPPER, a, b, c, **order)
            error = np.abs(allowed.exact.error_of(HOPPER.gemm(a, b, c, **order)))
            assert (error <= allowed.bound).all()


#: What is said of a kernel of which little is known.
UNKNOWN = ({"k_order": "any"}, {"k_order": "any", "promote_every": (64, 512)}, {"splits": 8})


def some_right_kernel(a, b, options, rng):
    """A kernel of an order that the options allow."""
    steps = rng.permutation(a.shape[1] // 32)
    order = (steps[:, None] * 32 + np.arange(32)).ravel() if "k_order" in options else np.arange(a.shape[1])
    every = int(rng.choice([64, 256, 512])) if "promote_every" in options else None
    split = "sequential" if every else f"split_k:{rng.choice([1, 2, 8])}"
    return HOPPER.gemm(
        np.ascontiguousarray(a[:, order]), np.ascontiguousarray(b[order]), promote_every=every, k_order=split
    )


@pytest.mark.full
@pytest.mark.parametrize("options", UNKNOWN)
def test_right_kernels_of_unknown_orders_pass_a_statistical_line_with_power(options):
    a, b = draw("gaussian", (16, 2048), 0), draw("gaussian", (2048, 24), 1)
    assert gemm_tolerance("h100", a, b, **options).statistics.power.unseen_blocks == 0
    d = some_right_kernel(a, b, options, np.random.default_rng(5))
    assert_gemm_close(d, a, b, engine="h100", **options)
    lost = a.copy()
    lost[:, 64:96] = 0
    with pytest.raises(AssertionError, match=r"(?s)statistical.*power.*a certified bound needs.*k 64:96 is missing"):
        assert_gemm_close(HOPPER.gemm(lost, b), a, b, engine="h100", **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "heavy", "activations", "positive"])
def test_fresh_right_kernels_of_unknown_orders_pass(kind):
    """99.9 % of them are said to: of these 40 x 3 none may fail."""
    rng = np.random.default_rng(7)
    for seed in range(40):
        m, k, n = (1, 2048, 96) if seed % 2 else (24, 1024, 32)
        x, y = (np.random.default_rng([seed, i]).permutation(draw(kind, s, i)) for i, s in enumerate(((m, k), (k, n))))
        for options in UNKNOWN:
            assert_gemm_close(some_right_kernel(x, y, options, rng), x, y, engine="h100", **options)


def test_bad_orders_are_refused():
    a, b = draw("gaussian", (2, 64), 0), draw("gaussian", (64, 2), 1)
    for options, message in (
        ({"k_order": "any", "splits": 2}, "leave splits out"),
        ({"k_order": "split_k:2", "promote_every": 32}, "expected k_order 'sequential' or 'any'"),
        ({"promote_every": (64, 32)}, "expected .least, most."),
        ({"k_order": "backwards"}, "unknown k_order"),
    ):
        with pytest.raises(ValueError, match=message):
            gemm_tolerance(HOPPER, a, b, **options)
