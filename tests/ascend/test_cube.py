"""SGEMM-cube: the kernel against the scalar reference, worked examples, invariants, special values, bad input."""

import dataclasses
import itertools

import numpy as np
import pytest
from cube_reference import cube_gemm_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from isas import ISAS, default_isa_and_threads  # noqa: F401 (a fixture of every test)

import ascend
import tensorcore_models as tcm
from ascend.blocking import Blocking
from ascend.numeric.arguments import ORDERS, OVERFLOWS, STEP_ORDERS
from ascend.tile_schedule import TileSchedule

MODES = {"termwise": "termwise", "termwise_inplace": "termwise_inplace", "elementwise": "elementwise"}


def schedule(m, k, n, blocks_in_group, mode="termwise", terms=3, reseed=False):
    """Blocks of 16 with that many of them in a k group, no chip."""
    return TileSchedule(
        m=m, k=k, n=n, chip=None, blocking=Blocking(16, 16, 16), terms=terms, mode=mode, reseed_l0c=reseed,
        n_fused=blocks_in_group,
    )  # fmt: skip


def wide(rng, *shape, low=-12, high=12):
    """Normal numbers times powers of two: fp16 subnormals and large numbers among them."""
    return (rng.normal(size=shape) * 2.0 ** rng.integers(low, high, shape)).astype(np.float32)


def same_bits(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x.view(np.uint8), y.view(np.uint8))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("step_order", STEP_ORDERS)
@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_twin(order, step_order, overflow):
    rng = np.random.default_rng(ORDERS.index(order) * 10 + STEP_ORDERS.index(step_order))
    for low_low, reseed, blocks in itertools.product((False, True), (False, True), (1, 2, 9)):
        m, n, k, terms = 1, 2, 37, 4 if low_low else 3
        a, b = wide(rng, m, k), wide(rng, k, n)
        c = wide(rng, m, n) if rng.integers(2) else None
        scales = tuple(int(s) for s in rng.integers(0, 14, 2))
        group = int(rng.integers(1, 17))
        walk = schedule(m, k, n, blocks, MODES[order], terms, reseed)
        options = {"order": order, "step_order": step_order, "overflow": overflow, "group": group}
        expected = cube_gemm_reference(a, b, c, walk, scales=scales, terms=terms, **options)
        for isa in ISAS:
            tcm.set_isa(isa)
            got = ascend.cube_gemm(a, b, c, schedule=walk, scale_exponent=scales, low_low=low_low, **options)
            assert same_bits(got, expected), (isa, options, scales, reseed, blocks)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("step_order", STEP_ORDERS)
@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_twin_special_values(order, step_order, overflow):
    rng = np.random.default_rng(5)
    special = np.float32([np.inf, -np.inf, np.nan, 65504, 65520, -70000, 3.4e38, 1e-40, 0.0, -0.0])
    top = np.float32([3.4028235e38, -3.4028235e38, np.inf, np.nan])
    for trial in range(4):
        a, b, c = wide(rng, 3, 20, high=16), wide(rng, 20, 4, high=16), wide(rng, 3, 4)
        a[rng.integers(3, size=2), rng.integers(20, size=2)] = rng.choice(special, 2)
        b[rng.integers(20, size=2), rng.integers(4, size=2)] = rng.choice(special, 2)
        c[rng.integers(3, size=2), rng.integers(4, size=2)] = rng.choice(top, 2)
        walk = schedule(3, 20, 4, 1, MODES[order], 3, bool(trial % 2))
        options = {"order": order, "step_order": step_order, "overflow": overflow}
        expected = cube_gemm_reference(a, b, c, walk, **options)
        for isa in ISAS:
            tcm.set_isa(isa)
            assert same_bits(ascend.cube_gemm(a, b, c, schedule=walk, **options), expected), (isa, trial)


@pytest.mark.parametrize("accumulate", ["fp32", "fp16"])
@pytest.mark.parametrize("step_order", STEP_ORDERS)
@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_native_twin(accumulate, step_order, overflow):
    rng = np.random.default_rng(7)
    for trial, high in enumerate((4, 4, 14)):
        a, b = wide(rng, 2, 40, high=high), wide(rng, 40, 3, high=high)
        c = wide(rng, 2, 3, high=14) if trial else None
        if trial == 2:
            a[0, 3], b[4, 1], c[1, 1] = np.inf, np.nan, -np.inf
        walk = schedule(2, 40, 3, 1 + trial, terms=1, reseed=trial == 1)
        expected = cube_gemm_reference(
            a, b, c, walk, terms=1, scales=(0, 0), step_order=step_order, overflow=overflow, accumulate=accumulate
        )
        for isa in ISAS:
            tcm.set_isa(isa)
            got = ascend.cube_hgemm(
                a, b, c, accumulate=accumulate, schedule=walk, step_order=step_order, overflow=overflow
            )
            assert got.dtype == (np.float16 if accumulate == "fp16" else np.float32)
            assert same_bits(got.astype(np.float32), expected), (isa, trial)


def test_half_sums_round_once():
    # 2049 + 2^-20 in FP16: the exact sum lies just above the midpoint of 2048 and 2050, its FP32 rounding upon it.
    a = np.float32([[1, 2.0**-10]])
    b = np.float32([[1], [2.0**-10]])
    c = np.float32([[2048]])
    for step_order in STEP_ORDERS:
        got = ascend.cube_hgemm(a, b, c, accumulate="fp16", step_order=step_order)[0, 0]
        # sequential: 2048 + 1 is a tie and stays 2048; in a tree 1 + 2^-20 rounds to 1 first
        assert got == (2050 if step_order == "exact" else 2048)


def test_worked_split_and_terms():
    # 1 + 2^-12 splits into 1 and 2^-12 * 2^12 = 1 (eq. 7): hh = 1, lh = hl = 1, ll = 1.
    x = np.float32([[1 + 2.0**-12]])
    assert ascend.cube_gemm(x, x)[0, 0] == np.float32(1 + 2.0**-11)
    # 2^-24 more is half a unit: a tie, to even
    assert ascend.cube_gemm(x, x, low_low=True)[0, 0] == np.float32(1 + 2.0**-11)
    c = np.float32([[2.0**-23]])
    assert ascend.cube_gemm(x, x, c)[0, 0] == np.float32(1 + 2.0**-11 + 2.0**-23)


def test_worked_orders():
    # 2^13, then 64 times 1 + 2^-12: each correction is below half a unit of the sum and lost elementwise; termwise
    # they meet in a chain of their own first (section 4.4).
    a = np.full((1, 65), np.float32(1 + 2.0**-12), np.float32)
    a[0, 0] = 2.0**13
    b = np.ones((65, 1), np.float32)
    assert ascend.cube_gemm(a, b)[0, 0] == 2.0**13 + 64 + 2.0**-6
    assert ascend.cube_gemm(a, b, order="elementwise")[0, 0] == 2.0**13 + 64
    assert ascend.cube_gemm(a, b, order="elementwise", step_order="exact")[0, 0] == 2.0**13 + 64 + 2.0**-6


def test_worked_steps():
    # One step of 1, 2^-24 (15 times): sequential loses each, a tree keeps pairs, exact keeps all.
    a = np.full((1, 16), np.float32(2.0**-12), np.float32)
    b = np.full((16, 1), np.float32(2.0**-12), np.float32)
    a[0, 0] = b[0, 0] = 1.0
    assert ascend.cube_hgemm(a, b)[0, 0] == 1.0
    # 1 + 2^-24 is a tie (1); then 1 + 2^-23, 1 + 2^-23 + 2^-22, and so on
    assert ascend.cube_hgemm(a, b, step_order="pairwise")[0, 0] == np.float32(1 + 14 * 2.0**-24)
    assert ascend.cube_hgemm(a, b, step_order="exact")[0, 0] == np.float32(1 + 16 * 2.0**-24)  # 15 is a tie: to even


def test_k_groups_change_bits_only_through_their_length():
    rng = np.random.default_rng(2)
    m, k, n = 70, 400, 50
    a, b, c = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    whole = ascend.cube_gemm(a, b, c)
    grouped = {}
    for block, in_group in ((Blocking(16, 16, 16), 4), (Blocking(32, 64, 48), 1), (Blocking(64, 32, 16), 2)):
        walk = TileSchedule(m=m, k=k, n=n, chip=None, blocking=block, n_fused=in_group)
        grouped[block] = ascend.cube_gemm(a, b, c, schedule=walk)
        reseeded = dataclasses.replace(walk, mode="fused", reseed_l0c=True)
        assert same_bits(ascend.cube_gemm(a, b, c, schedule=reseeded), whole)
    first, *others = grouped.values()
    assert all(same_bits(first, other) for other in others)
    assert not same_bits(first, whole)


def test_row_and_column_blocks_change_nothing():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(60, 130)).astype(np.float32), rng.normal(size=(130, 70)).astype(np.float32)
    walk = schedule(60, 130, 70, 2)
    whole = ascend.cube_gemm(a, b, schedule=walk)
    for (r0, r1), (c0, c1) in itertools.product(walk.row_blocks, walk.column_blocks):
        part = ascend.cube_gemm(a[r0:r1], b[:, c0:c1], schedule=schedule(r1 - r0, 130, c1 - c0, 2))
        assert same_bits(part, np.ascontiguousarray(whole[r0:r1, c0:c1]))


@pytest.mark.parametrize("options", [{}, {"order": "elementwise"}, {"step_order": "pairwise"}, {"low_low": True}])
def test_variants_threads_and_large_shapes(options):
    rng = np.random.default_rng(4)
    for m, k, n in ((1, 1100, 1), (3, 700, 1030), (1030, 60, 7), (97, 129, 65)):
        a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
        c = rng.normal(size=(m, n)).astype(np.float32)
        results = []
        for isa, threads in itertools.product(ISAS, (1, 3)):
            tcm.set_isa(isa)
            tcm.set_num_threads(threads)
            results.append(ascend.cube_gemm(a, b, c, **options))
        assert all(same_bits(results[0], r) for r in results[1:]), (m, k, n)
        if not options:  # the plain chains, in numpy's float32 arithmetic
            high_a, low_a = (w.astype(np.float32) for w in tcm.split_fp16(a, 12))
            high_b, low_b = (w.astype(np.float32) for w in tcm.split_fp16(b, 12))
            hh, lh, hl = c.copy(), np.zeros_like(c), np.zeros_like(c)
            for p in range(k):
                hh += high_a[:, p : p + 1] * high_b[p]
                lh += low_a[:, p : p + 1] * high_b[p]
                hl += high_a[:, p : p + 1] * low_b[p]
            assert same_bits(results[0], hh + (lh + hl) / np.float32(4096))
            assert same_bits(results[0], ascend.reconstruct(hh, hl, lh, 12))


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 80), st.integers(1, 70), st.sampled_from(ORDERS), st.integers(0, 2**32 - 1))
def test_any_shape_gives_the_same_bits_in_every_variant(m, k, n, order, seed):
    rng = np.random.default_rng(seed)
    a, b = wide(rng, m, k), wide(rng, k, n)
    walk = schedule(m, k, n, int(rng.integers(1, 4)), MODES[order], 3, bool(rng.integers(2)))
    results = []
    for isa in ISAS:
        tcm.set_isa(isa)
        results.append(ascend.cube_gemm(a, b, schedule=walk, order=order))
    tcm.set_isa(None)
    assert all(same_bits(results[0], r) for r in results[1:])


def test_reconstruct_with_two_scales_and_low_low():
    rng = np.random.default_rng(6)
    hh, hl, lh, ll = (rng.normal(size=(3, 4)).astype(np.float32) for _ in range(4))
    f = np.float32
    assert same_bits(ascend.reconstruct(hh, hl, lh, 12), hh + (lh + hl) / f(4096))
    assert same_bits(ascend.reconstruct(hh, hl, lh, (12, 9)), hh + (lh + hl * f(8)) / f(4096))
    low = (lh + hl * f(8)) + ll / f(512)
    assert same_bits(ascend.reconstruct(hh, hl, lh, (12, 9), ll), hh + low / f(4096))
    big = np.full((1,), 3e38, np.float32)
    assert ascend.reconstruct(big, big, big, 0)[0] == np.inf
    assert ascend.reconstruct(big, big, big, 0, overflow="saturate")[0] == np.finfo(np.float32).max


def test_overflow_loses_everything_beyond_65504():
    a, b = np.float32([[1e6, 1.0]]), np.float32([[1.0], [1.0]])
    assert np.isnan(ascend.cube_gemm(a, b, overflow="inf")[0, 0])  # inf in the high word, -inf in the low one
    saturated = ascend.cube_gemm(a, b, scale_exponent=12)[0, 0]
    assert saturated == np.float32(65505 + 65504 / 4096)
    for s in (0, 6, 12):  # whatever s_b
        assert abs(float(ascend.cube_gemm(a, b, scale_exponent=s)[0, 0]) - 1000001) > 8e5
    scaled = ascend.cube_gemm(a, b, row_scaling=True)[0, 0]
    assert scaled == np.float32(1000001)
    assert ascend.cube_hgemm(a, b)[0, 0] == 65505


def test_row_scaling_reaches_all_of_fp32():
    rng = np.random.default_rng(8)
    a = wide(rng, 6, 50, low=-3, high=3) * np.float32(2.0) ** rng.integers(-100, 100, (6, 1)).astype(np.float32)
    b = wide(rng, 50, 6, low=-3, high=3) * np.float32(2.0) ** rng.integers(-20, 20, (1, 6)).astype(np.float32)
    got = ascend.cube_gemm(a, b, row_scaling=True)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    # two words of 22 bits each, terms summed in FP32: 2^-21 from the split, 50 roundings of the chains
    assert np.all(np.abs(got - exact) <= size * (2.0**-21 + 54 * 2.0**-24))
    unscaled = ascend.cube_gemm(np.ldexp(a[:1], 0), b)
    assert got[:1].shape == unscaled.shape
    # exact undoing: scaling a row and a column by powers of two scales the result
    twice = ascend.cube_gemm(np.ldexp(a, 3), np.ldexp(b, -7), row_scaling=True)
    normal = np.abs(got) > 2.0**-120
    assert np.array_equal(twice[normal], np.ldexp(got, -4)[normal])


def test_automatic_scale():
    rng = np.random.default_rng(9)
    a, b = wide(rng, 4, 30, low=-9, high=-6), wide(rng, 30, 4, low=3, high=5)
    pair = tuple(tcm.automatic_scale_exponent(x).scale_exponent for x in (a, b))
    assert same_bits(ascend.cube_gemm(a, b, scale_exponent="auto"), ascend.cube_gemm(a, b, scale_exponent=pair))


def test_blocking_on_a_chip():
    rng = np.random.default_rng(10)
    a, b = (rng.normal(size=(300, 300)).astype(np.float32) for _ in range(2))
    block = ascend.Blocking(96, 64, 96)
    walk = ascend.build_schedule(300, 300, 300, "910A", block, n_fused=2)
    assert same_bits(ascend.cube_gemm(a, b, blocking=block), ascend.cube_gemm(a, b))  # k fits one group
    assert not same_bits(ascend.cube_gemm(a, b, schedule=walk), ascend.cube_gemm(a, b))


def test_views_and_read_only_arrays():
    rng = np.random.default_rng(11)
    a, b = wide(rng, 7, 40), wide(rng, 40, 9)
    expected = ascend.cube_gemm(a, b)
    strided = np.zeros((14, 80), np.float32)
    strided[::2, ::2] = a
    frozen = b.copy()
    frozen.flags.writeable = False
    assert same_bits(ascend.cube_gemm(strided[::2, ::2], frozen), expected)
    assert same_bits(ascend.cube_gemm(np.asfortranarray(a), b.astype(">f4")), expected)
    assert same_bits(ascend.cube_gemm(a.astype(np.float64), b), expected)
    row = np.broadcast_to(a[:1], (5, 40))
    assert same_bits(ascend.cube_gemm(row, b), np.repeat(expected[:1], 5, axis=0))
    c = wide(rng, 7, 9)
    kept = c.copy()
    ascend.cube_gemm(a, b, c)
    assert same_bits(c, kept)


def test_empty_dimensions():
    c = np.float32([[1, np.inf], [-0.0, 3]])
    for call in (ascend.cube_gemm, ascend.cube_hgemm):
        assert call(np.zeros((0, 3)), np.zeros((3, 2))).shape == (0, 2)
        assert call(np.zeros((2, 3)), np.zeros((3, 0))).shape == (2, 0)
        assert same_bits(call(np.zeros((2, 0)), np.zeros((0, 2))), np.zeros((2, 2), np.float32))
        assert same_bits(call(np.zeros((2, 0)), np.zeros((0, 2)), c), c)
    assert ascend.cube_hgemm(np.zeros((2, 0)), np.zeros((0, 2)), accumulate="fp16").dtype == np.float16


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"order": "random"}, ValueError, "termwise_inplace"),
        ({"step_order": "tree"}, ValueError, "pairwise"),
        ({"overflow": "wrap"}, ValueError, "saturate"),
        ({"group": 0}, ValueError, "cube step"),
        ({"group": 17}, ValueError, "cube step"),
        ({"group": 2.0}, TypeError, "integer"),
        ({"scale_exponent": "best"}, ValueError, "auto"),
        ({"scale_exponent": 1.5}, TypeError, "integer"),
        ({"scale_exponent": (1, 2, 3)}, TypeError, "pair"),
        ({"scale_exponent": 200}, ValueError, "126"),
        ({"scale_exponent": 60, "order": "elementwise"}, ValueError, "termwise"),
        ({"blocking": (16, 16, 16)}, TypeError, "Blocking"),
        ({"blocking": Blocking(16, 16, 16), "chip": "911"}, ValueError, "910A"),
        ({"schedule": schedule(9, 9, 9, 1)}, ValueError, "schedule is for"),
        ({"schedule": schedule(2, 3, 2, 1), "low_low": True}, ValueError, "terms"),
        ({"schedule": schedule(2, 3, 2, 1), "order": "elementwise"}, ValueError, "mode"),
        (
            {"schedule": schedule(2, 3, 2, 1), "blocking": Blocking(16, 16, 16)},
            ValueError,
            "both a schedule and a blocking",
        ),
        ({"blocking": schedule(2, 3, 2, 1)}, TypeError, "schedule="),
        ({"schedule": Blocking(16, 16, 16)}, TypeError, "TileSchedule"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        ascend.cube_gemm(np.ones((2, 3)), np.ones((3, 2)), **options)


@pytest.mark.parametrize(
    "a, b, c, error, words",
    [
        (np.ones(3), np.ones((3, 2)), None, ValueError, "2 dimensions"),
        (np.ones((2, 4)), np.ones((3, 2)), None, ValueError, "4 columns"),
        (np.ones((2, 3)), np.ones((3, 2)), np.ones((2, 3)), ValueError, "c must have the product's shape"),
        (np.full((2, 3), 0.1), np.ones((3, 2)), None, ValueError, "FP32"),
        (np.array([["x"]]), np.ones((1, 2)), None, TypeError, "real numbers"),
        (np.ones((2, 3), object), np.ones((3, 2)), None, TypeError, "real numbers"),
        (np.ones((2, 3), complex), np.ones((3, 2)), None, TypeError, "real numbers"),
    ],
)
def test_bad_matrices(a, b, c, error, words):
    with pytest.raises(error, match=words):
        ascend.cube_gemm(a, b, c)
