"""Integer recovery methods: exact products, exact Chinese remainders, slices that add up."""

import math
from fractions import Fraction

import integer_reference as truth
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import recovered_gemm, recovered_gemm_report
from mpgemm.recovery.integer_run import IntegerRun, exact_parts
from mpgemm.recovery.integer_words import integers_below, quantise, residue_bits, slice_operand, top_exponent
from mpgemm.recovery.method import MODULI
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.run import prepare

S8 = tcm.default_instruction("a100", "s8", "s32")


@pytest.mark.parametrize("k", (1, 2, 3, 1000, 2**17, 10**9))
@pytest.mark.parametrize("count", (2, 8, 20))
def test_residue_bits_are_the_most_that_fit(k, count):
    product = math.prod(MODULI[:count])
    try:
        bits = residue_bits(MODULI[:count], k)
    except ValueError:
        assert 2 * k * 4 >= product
        return
    assert 2 * k * 4**bits < product
    assert bits == 62 or 2 * k * 4 ** (bits + 1) >= product


def test_integers_are_multiplied_exactly_with_enough_moduli():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(2**20), 2**20, (4, 33)), rng.integers(-(2**20), 2**20, (33, 5))
    d = recovered_gemm(a.astype(np.float64), b.astype(np.float64), None, "ozaki2_int8", moduli=12)
    np.testing.assert_array_equal(d, a @ b)
    slices = recovered_gemm(a.astype(np.float64), b.astype(np.float64), None, "ozaki_int8", slices=8, products="all")
    np.testing.assert_array_equal(slices, a @ b)


def test_more_slices_and_more_moduli_reach_fp64():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(6, 50)), rng.normal(size=(50, 6))
    exact = [[float(sum(Fraction(x) * Fraction(y) for x, y in zip(r, s, strict=True))) for s in b.T] for r in a]
    size = np.abs(a) @ np.abs(b)
    for options, tolerance in (({"slices": 4}, 2.0**-20), ({"slices": 6}, 2.0**-34), ({"slices": 9}, 2.0**-51)):
        assert np.max(np.abs(recovered_gemm(a, b, None, "ozaki_int8", **options) - exact) / size) < tolerance
    # 2 k 4^beta < M: 16 moduli (126 bits) leave 59 bits at k = 50, below which a row's largest element hides nothing of FP64.
    assert np.max(np.abs(recovered_gemm(a, b, None, "ozaki2_int8", moduli=16) - exact) / size) < 2.0**-51


@pytest.mark.parametrize(("name", "options"), [("ozaki_int8", {}), ("ozaki_int8", {"slices": 8}), ("mixpert", {})])
@pytest.mark.parametrize("axis", (0, 1))
def test_slices_add_up(name, options, axis):
    row = get_method(name, **options)
    x = np.random.default_rng(2).normal(size=(7, 9)) * 10.0 ** np.arange(9)
    slices, exponents = slice_operand(x, axis, row)
    shift = exponents[:, None] if axis else exponents
    total = sum(
        np.ldexp(s.astype(np.float64), shift - top_exponent(row) - row.slice_bits * j) for j, s in enumerate(slices)
    )
    last = np.ldexp(1.0, shift - top_exponent(row) - row.slice_bits * (row.words - 1))
    assert (np.abs(x - total) <= (last if row.slice_bits == 7 else last / 2)).all()
    assert all(s.dtype == np.int8 for s in slices)


def test_extreme_segments_of_mixpert():
    x = np.array([[1 - 2.0**-24, -(1 - 2.0**-24), 2.0**-31, -1.0, 0.0]])
    slices, exponents = slice_operand(x, 1, get_method("mixpert"))
    total = sum(s.astype(np.float64) * 2.0 ** (int(exponents[0]) - 6 - 8 * j) for j, s in enumerate(slices))
    np.testing.assert_allclose(total, x, rtol=0, atol=2.0**-30)


def test_int32_never_overflows():
    """k beyond 2^31 / 127^2 products of the largest size would wrap: it is cut. Eight moduli leave 22 bits here."""
    k = 140_000
    a, b = np.full((1, k), 127, np.int8), np.full((k, 1), 127, np.int8)
    parts = exact_parts(S8, a.view(np.uint8), b.view(np.uint8), 127 * 127)
    assert sum(int(part[0, 0]) for part in parts) == 127 * 127 * k > 2**31
    assert S8.gemm(a, b)[0, 0] != 127 * 127 * k  # the engine by itself wraps
    wide = np.full((1, k), 1 - 2.0**-24, np.float32)
    for method in ("ozaki_int8", "ozaki2_int8", "mixpert"):
        assert abs(float(recovered_gemm(wide, wide.T, None, method)[0, 0]) / (k * (1 - 2.0**-23)) - 1) < 2.0**-21


def test_saturating_engine_gives_the_same():
    a = np.random.default_rng(3).normal(size=(3, 100)).astype(np.float32)
    plain, clamped = (
        recovered_gemm(a, a.T, None, "ozaki_int8", S8.arch + ":" + S8.name + tail) for tail in ("", ".satfinite")
    )
    np.testing.assert_array_equal(plain, clamped)


@pytest.mark.parametrize(("fmt", "each"), [("s8", 127), ("s4", 7), ("fp16", 2048)])
def test_quantensor_words_shrink_the_residual(fmt, each):
    """One word leaves half a unit of max / q_max of an element (half an ulp of fp16 numbers up to 1); FP32 adds its own."""
    x = np.random.default_rng(4).normal(size=(5, 6)).astype(np.float32)
    left, size = x.astype(np.float64), float(np.abs(x).max())
    for n, (word, scale) in enumerate(quantise(x, 3, tcm.get_format(fmt)), 1):
        left = left - np.float64(scale) * word
        assert (
            np.abs(left).max()
            <= size * ((0.5001 / each) ** n if fmt != "fp16" else (1.001 / each) ** n) + 2.0**-23 * size
        )


def test_quantensor_runs_on_int4_and_fp16():
    a = np.random.default_rng(5).uniform(-1, 1, (4, 30)).astype(np.float32)
    exact = a.astype(np.float64) @ a.T
    errors = [
        np.abs(recovered_gemm(a, a.T, None, "quantensor", engine, format=fmt) - exact).max()
        for engine, fmt in (("t4", "s4"), ("t4", "s8"), ("t4", "fp16"))
    ]
    assert errors[0] > 5 * errors[1] > 5 * errors[2]
    more = np.abs(recovered_gemm(a, a.T, None, "quantensor", "t4", passes=3) - exact).max()
    assert more < errors[1] / 5


def test_rows_that_are_not_finite():
    a = np.float32([[1, np.inf], [1, 2]])
    report = recovered_gemm_report(a, a.T, None, "ozaki_int8")
    assert np.isnan(report.d[0]).all() and np.isnan(report.d[:, 0]).all() and report.d[1, 1] == 5
    assert (report.a.overflow, report.b.overflow) == (1, 1)


def test_elements_lost_below_their_row():
    a = np.float32([[0.7, 0.45, 2.0**-40], [2.0**-40, 0, 0]])
    for method in ("ozaki_int8", "mixpert", "quantensor"):
        assert recovered_gemm_report(a, a.T, None, method).a.underflow == (2 if method == "quantensor" else 1)


def test_integers_below_keep_sign_and_size():
    x = np.array([[3.0, -1.5, 2.0**-70], [0.0, 0.0, 0.0]])
    whole, exponents = integers_below(x, 1, 10)
    assert whole.tolist() == [[768, -384, 0], [0, 0, 0]] and exponents.tolist() == [-8, -10]


def test_too_few_moduli():
    a = np.ones((1, 10**5), np.float32)
    with pytest.raises(ValueError, match="take more"):
        recovered_gemm(a, a.T, None, "ozaki2_int8", moduli=2)


# -- whole products against plain integers -------------------------------------------------------------------------------
def wide(shape, dtype, seed):
    """Numbers over some forty binades, zeros among them."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 2.0 ** rng.integers(-20, 20, shape) * (rng.random(shape) < 0.9)).astype(dtype)


def dots(words_a, words_b, i, j):
    """Exact products of word i of a row and word j of a column, both given as lists of words of each element."""
    return sum(x[i] * y[j] for x, y in zip(words_a, words_b, strict=True))


def from_slices(row, a, b):
    """One element in plain integers."""
    e, f = truth.common_exponent(a), truth.common_exponent(b)

    def words(x, exponent):
        if row.slice_bits == 8:
            return truth.balanced_slices(x, exponent, row.words)
        return truth.truncated_slices(x, exponent, row.words, row.slice_bits)

    words_a, words_b = [words(x, e) for x in a], [words(x, f) for x in b]
    products = [dots(words_a, words_b, i, j) for i, j in row.products]
    levels = [i + j for i, j in row.products]
    exponents = [row.slice_bits * (levels[-1] - level) for level in levels]
    below = 2 * top_exponent(row) + row.slice_bits * levels[-1]
    return truth.joined_slices(products, exponents, e + f - below)


def from_residues(row, a, b):
    bits = residue_bits(row.moduli, len(a))
    e, f = truth.common_exponent(a), truth.common_exponent(b)
    whole = sum(truth.integer_below(x, e, bits) * truth.integer_below(y, f, bits) for x, y in zip(a, b, strict=True))
    return truth.joined_residues([whole % p for p in row.moduli], row.moduli, e + f - 2 * bits)


@pytest.mark.parametrize("isa", tcm.available_isas())
@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize(
    ("method", "one"),
    [
        ("mixpert", from_slices),
        ("mixpert:products=all", from_slices),
        ("ozaki_int8", from_slices),
        ("ozaki_int8:slices=8", from_slices),  # FP64 sums round: products of a level stay apart
        ("ozaki2_int8", from_residues),
        ("ozaki2_int8:moduli=14", from_residues),
        ("ozaki2_int8:moduli=20", from_residues),
    ],
)
def test_products_of_slices_and_residues(method, one, dtype, isa, request):
    request.addfinalizer(lambda: tcm.set_isa(None))
    tcm.set_isa(isa)
    a, b = wide((3, 41), dtype, 1), wide((41, 4), dtype, 2)
    a[1] *= 2.0**-90
    found = recovered_gemm(a, b, None, method)
    row = get_method(method)
    for place, value in np.ndenumerate(found):
        exact = one(row, a[place[0]].tolist(), b[:, place[1]].tolist())
        assert value == (float(exact) if found.dtype == np.float64 else np.float32(float(exact))), place


@pytest.mark.parametrize(("fmt", "limit", "passes"), [("s8", 127, 2), ("s8", 127, 4), ("s4", 7, 3)])
def test_products_of_quantised_words(fmt, limit, passes):
    a, b = wide((3, 21), "f4", 3), wide((21, 4), "f4", 4)
    row = get_method("quantensor", format=fmt, passes=passes)
    found = recovered_gemm(a, b, None, row, "t4")
    words_a = truth.quantised_words(a.ravel().tolist(), passes, limit, "fp32")
    words_b = truth.quantised_words(b.ravel().tolist(), passes, limit, "fp32")
    for place, value in np.ndenumerate(found):
        products, factors = [], []
        for i, j in row.products:
            x = np.reshape(words_a[i][0], a.shape)[place[0]].tolist()
            y = np.reshape(words_b[j][0], b.shape)[:, place[1]].tolist()
            products.append(sum(p * q for p, q in zip(x, y, strict=True)))
            factors.append(Fraction(truth.rounded(words_a[i][1] * words_b[j][1], "fp32")))
        assert value == float(truth.joined_quantised(products, factors))


# -- what is done together, and where ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "method", ("mixpert", "mixpert:products=all", "ozaki_int8", "ozaki_int8:slices=5", "ozaki_int8:slices=8")
)
def test_chaining_a_level_changes_no_bit(method, monkeypatch):
    a, b = wide((20, 700), "f8", 5), wide((700, 9), "f8", 6)
    together = recovered_gemm(a, b, None, method)
    monkeypatch.setattr(IntegerRun, "_chains", lambda self, largest: [[pair] for pair in self.row.products])
    assert together.tobytes() == recovered_gemm(a, b, None, method).tobytes()


def test_levels_are_chained_only_where_nothing_can_round_or_overflow():
    def chains(method, k, largest):
        run = prepare(np.ones((1, k), np.float32), np.ones((k, 1), np.float32), None, method, None)
        return [len(pairs) for pairs in run._chains(largest)]

    assert chains("mixpert", 1024, 1 << 14) == [4, 3, 2, 1]
    assert chains("ozaki_int8", 1024, 127**2) == [4, 3, 2, 1]
    # k 2^14 (2^24 + 2 2^16 + 3 2^8 + 4) is the largest sum in units of level 3: 2^53 is passed from k = 32514 on
    total = (1 << 24) + 2 * (1 << 16) + 3 * (1 << 8) + 4
    k = (1 << 53) // ((1 << 14) * total)
    assert chains("mixpert", k, 1 << 14) == [4, 3, 2, 1] and chains("mixpert", k + 1, 1 << 14) == [1] * 10
    k = (2**31 - 1) // (4 * 127**2)  # here int32 is the limit
    assert chains("ozaki_int8", k, 127**2) == [4, 3, 2, 1] and chains("ozaki_int8", k + 1, 127**2) == [1] * 10


@pytest.mark.parametrize("method", ("mixpert", "ozaki_int8", "ozaki2_int8", "quantensor"))
def test_kept_memory_carries_nothing_over(method):
    """The same call before and after calls of other sizes, and results that nothing writes to later."""
    a, b = wide((30, 50), "f4", 7), wide((50, 20), "f4", 8)
    first = recovered_gemm(a, b, None, method)
    kept = first.copy()
    for m, k, n in ((3, 4, 5), (100, 90, 80), (1, 300, 1)):
        recovered_gemm(wide((m, k), "f4", m), wide((k, n), "f4", n), None, method)
    assert first.tobytes() == kept.tobytes() == recovered_gemm(a, b, None, method).tobytes()


@pytest.mark.parametrize("method", ("mixpert", "ozaki2_int8", "quantensor"))
def test_a_callable_may_keep_its_operands_and_call_again(method):
    seen = []

    def product(a, b, c):
        seen.append((a, a.copy(), b, b.copy()))
        recovered_gemm(a[:1].astype(np.float32), b.astype(np.float32), None, method)
        return a.astype(np.int32) @ b.astype(np.int32) + c

    engine = tcm.as_engine(product, a_format="s8", d_format="s32", k=16)
    a, b = wide((6, 40), "f4", 9), wide((40, 5), "f4", 10)
    assert recovered_gemm(a, b, None, method, engine).tobytes() == recovered_gemm(a, b, None, method).tobytes()
    recovered_gemm(b.T, a.T, None, method, engine)
    assert all((x == y).all() and (u == v).all() for x, y, u, v in seen)


@pytest.mark.parametrize("method", ("mixpert", "ozaki_int8", "ozaki2_int8", "quantensor"))
@pytest.mark.parametrize("shape", ((0, 3, 2), (2, 0, 3), (2, 3, 0), (1, 1, 1)))
def test_empty_and_single(method, shape):
    m, k, n = shape
    d = recovered_gemm(np.ones((m, k), np.float32), np.ones((k, n), np.float32), None, method)
    assert d.shape == (m, n) and d.dtype == np.float32 and (np.abs(d - k) < 1e-6).all()


@pytest.mark.parametrize("method", ("mixpert", "ozaki_int8", "ozaki2_int8", "quantensor"))
def test_operands_that_are_not_finite(method):
    """Their rows and columns are NaN, the positive one; the others are as if zeros stood in their place."""
    a, b = wide((8, 30), "f4", 11), wide((30, 7), "f4", 12)
    a[2, 3], a[7, 29], b[4, 1], b[29, 6] = np.inf, np.nan, -np.inf, np.nan
    d = recovered_gemm(a, b, None, method)
    clean = recovered_gemm(np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), b, 0), None, method)
    clean[[2, 7]] = np.nan
    clean[:, [1, 6]] = np.nan
    assert d.tobytes() == clean.tobytes()
    c = wide((8, 7), "f4", 13)
    assert recovered_gemm(a, b, c, method).tobytes() == (clean + c).tobytes()


def test_nan_of_scales_beyond_fp32_is_positive():
    """0 times an infinite scale: its sign would be the CPU's choice."""
    a = np.full((2, 3), 1e300)
    d = recovered_gemm(a, a.T, None, "quantensor")
    assert np.isnan(d).all() and not np.signbit(d).any()
