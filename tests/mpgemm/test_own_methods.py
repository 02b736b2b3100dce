"""A row of a user's own: its split, its products with exponents, its join, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm import RecoveryMethod, recovered_gemm, recovered_gemm_report

UNIT = tcm.default_instruction("h100", "fp16", path="mma")
RNG = np.random.default_rng(4)
A, B = RNG.standard_normal((5, 32)), RNG.standard_normal((32, 6))


def slices(x, axis):
    """Integers of 8 bits below the largest element of each row or column, three of them."""
    left, words = x.astype(np.float64), []
    exponents = np.frexp(np.abs(left).max(axis=axis))[1]
    for unit in (exponents - 8, exponents - 16, exponents - 24):
        scale = unit[:, None] if axis else unit
        word = np.trunc(np.ldexp(left, -scale))
        left = left - np.ldexp(word, scale)
        words.append((word, unit))
    return words


ROW = RecoveryMethod(
    name="mine", title="slices of 8 bits", formula="D = sum of W_i W_j", source="a test", kind="own", words=3,
    products=((0, 2), (1, 1), (2, 0), (0, 1), (1, 0), (0, 0)), target="fp64", split=slices,
)  # fmt: skip


def test_it_is_its_functions_in_plain_loops():
    x, y = slices(A, 1), slices(B, 0)
    expected = np.zeros((5, 6))
    for i, j in ROW.products:
        part = np.zeros((5, 6), np.float32)
        for start in range(0, 32, UNIT.k):
            ks = slice(start, start + UNIT.k)
            part = UNIT.gemm(x[i][0][:, ks].astype(np.float16), y[j][0][ks].astype(np.float16), part)
        expected = expected + np.ldexp(part.astype(np.float64), x[i][1][:, None] + y[j][1])
    found = recovered_gemm_report(A, B, None, ROW, UNIT)
    assert np.array_equal(found.d, expected) and found.passes == 6
    assert mpgemm.errors(found.d, A, B).effective_bits("componentwise") > 18
    c = RNG.standard_normal((5, 6))
    assert np.array_equal(recovered_gemm(A, B, c, ROW, UNIT), expected + c)


def sloppy(x, axis):
    """Words that lose much, of the operand itself: leading bits of FP16, and of what is left."""
    words, left = [], x.astype(np.float64)
    for _ in range(3):
        word = (np.clip(left, -60000, 60000).astype(np.float16).view(np.uint16) & 0xFFE0).view(np.float16)
        words.append((word, np.int64(0)))
        left = left - word
    return words


@pytest.mark.parametrize("split", [slices, sloppy])
@pytest.mark.parametrize("target", ["fp64", "fp32", "engine", "input"])
@pytest.mark.parametrize(
    "unit", [UNIT, tcm.default_instruction("v100", "fp16"), tcm.default_instruction("mi300x", "fp16")]
)
def test_its_products_are_within_their_bounds(split, target, unit):
    """By sizes and by norms; and an error as large as a term that is left out is seen."""
    row = replace(ROW, split=split, target=target, products=((0, 0), (0, 1), (1, 0)))
    rng = np.random.default_rng(1)
    for spread, c in ((0, None), (12, None), (3, rng.standard_normal((5, 6)).astype(np.float32)), (40, None)):
        a, b = (x * 2.0 ** rng.integers(-spread, spread + 1, x.shape) for x in (A, B))
        with np.errstate(all="ignore"):
            found = recovered_gemm(a, b, c, row, unit, verify=True)
        bound = mpgemm.method_bound(a, b, c, row, unit)
        exact = mpgemm.exact_gemm(a, b, c)
        known = np.isfinite(bound.total)
        assert known.any()
        assert (np.abs(exact.error_of(found))[known] <= bound.total[known]).all()
        assert (np.abs(exact.error_of(found * np.float32(1.5)))[known] > bound.total[known]).any() or spread == 40
    missing = replace(row, products=((0, 0),))
    assert mpgemm.method_bound(A, B, None, missing, unit).total.min() > bound_of(row, unit).min()


def bound_of(row, unit):
    return mpgemm.method_bound(A, B, None, row, unit).total


def test_a_join_of_ones_own_puts_the_terms_together():
    seen = []

    def join(terms):
        seen.extend(exponents.shape for _, exponents in terms)
        return terms[-1][0] * 2.0 ** terms[-1][1]

    only = recovered_gemm(A, B, None, replace(ROW, join=join), UNIT)
    (high, rows), (low, columns) = slices(A, 1)[0], slices(B, 0)[0]
    assert seen == [(5, 6)] * 6 and np.array_equal(only, high @ low * 2.0 ** (rows[:, None] + columns))


def test_it_is_compared_and_its_costs_are_stated_by_the_owner():
    def fast(a, b, c):
        return (a.astype(np.float64) @ b.astype(np.float64) + c).astype(np.float32)

    unit = tcm.as_engine(fast, a_format="fp16", d_format="fp32", k=8, tflops=60)
    mine, other = mpgemm.compare([ROW, "ootomo"], [unit], A, B)
    assert (mine.passes, mine.cost, mine.rate_source) == (6, 100, "stated by the engine's owner") and other.cost == 50
    with pytest.raises(ValueError, match="tflops is 0, expected a finite rate above 0"):
        tcm.as_engine(fast, a_format="fp16", d_format="fp32", k=8, tflops=0)


def test_no_operands_give_zeros_and_lost_elements_are_counted():
    empty = recovered_gemm(
        np.zeros((2, 0)), np.zeros((0, 3)), None, replace(ROW, split=lambda x, axis: [(x, 0)] * 3), UNIT
    )
    assert np.array_equal(empty, np.zeros((2, 3)))
    small = A.copy()
    small[0, 0], small[1, 1] = small[0].max() * 2.0**-40, 0
    report = recovered_gemm_report(small, B, None, ROW, UNIT)
    assert (report.a.overflow, report.a.underflow, report.b.underflow) == (0, 1, 0)


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [
        (lambda x, axis: slices(x, axis)[:2], ValueError, "split returned 2 words of A, expected 3"),
        (lambda x, axis: [(x.T, 0)] * 3, ValueError, r"word 0 of A is \(32, 5\) with exponents \(\), expected \(5, 32\)"),
        (lambda x, axis: [(x, np.zeros(x.shape[1 - axis]))] * 3, TypeError, "exponents of word 0 of A are float64"),
        (lambda x, axis: [(x, 0)] * 3, ValueError, "word 0 of A"),
    ],
)  # fmt: skip
def test_a_split_that_is_none_is_refused(split, error, message):
    with pytest.raises(error, match=message):
        recovered_gemm(A, B, None, replace(ROW, split=split), UNIT)


def test_rows_that_contradict_themselves_are_refused():
    for changes in ({"split": None}, {"kind": "words"}):
        with pytest.raises(ValueError, match="the kind 'own' needs a split function"):
            replace(ROW, **changes)
    with pytest.raises(ValueError, match=r"join returned shape \(1,\), expected \(5, 6\)"):
        recovered_gemm(A, B, None, replace(ROW, join=lambda terms: np.zeros(1)), UNIT)
    with pytest.raises(ValueError, match="joins its terms by a function of its own, so no bound is derived"):
        mpgemm.method_bound(A, B, None, replace(ROW, join=lambda terms: terms[0][0]), UNIT)
    with pytest.raises(ValueError, match="so its steps are unknown"):
        mpgemm.explain(ROW, A[0], B[:, 0], None, UNIT)
