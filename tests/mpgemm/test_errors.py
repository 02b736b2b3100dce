"""Errors against slow exact fractions, the rule "0 if and only if exact", and what is not finite."""

import json
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpgemm.exact.errors import RELATIVE_METRICS, ErrorMeter, ErrorReport, errors, exact_sum

METRICS = [*RELATIVE_METRICS, "max_ulp", "mean_ulp"]


def exact_product(a, b, c=None):
    """The product as Fractions."""
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    return [
        [
            sum((Fraction(float(a[i, q])) * Fraction(float(b[q, j])) for q in range(k)), Fraction(0))
            + (0 if c is None else Fraction(float(c[i, j])))
            for j in range(n)
        ]
        for i in range(m)
    ]


def fraction_ulp(x: Fraction, precision: int, emin: int, emax: int) -> Fraction:
    """ulp(x) by its definition."""
    exponent = emin
    if x:
        exponent = math.frexp(float(x))[1] - 1
    return Fraction(2) ** (min(max(exponent, emin), emax) - precision + 1)


def slow_metrics(computed, a, b, c=None):
    """The metrics as floats from exact fractions."""
    exact = exact_product(a, b, c)
    sizes = exact_product(abs(a), abs(b), None if c is None else abs(c))
    m, n = computed.shape
    cells = [(i, j) for i in range(m) for j in range(n)]
    d = {(i, j): abs(Fraction(float(computed[i, j])) - exact[i][j]) for i, j in cells}
    info = {np.float32: (24, -126, 127), np.float16: (11, -14, 15), np.float64: (53, -1022, 1023)}[computed.dtype.type]
    ulps = [d[i, j] / fraction_ulp(exact[i][j], *info) for i, j in cells]

    def frobenius(values):
        return math.sqrt(sum(v * v for v in values))

    def inf_norm(x):
        return max(sum(abs(Fraction(float(v))) for v in row) for row in x)

    return {
        "relative_frobenius": frobenius(d.values()) / frobenius(v for row in exact for v in row),
        "relative_inf": float(
            max(sum(d[i, j] for j in range(n)) for i in range(m))
            / (inf_norm(a) * inf_norm(b) + (0 if c is None else inf_norm(c)))
        ),
        "normwise": frobenius(d.values()) / frobenius(v for row in sizes for v in row),
        "componentwise": float(max(d[i, j] / sizes[i][j] for i, j in cells)),
        "max_ulp": float(max(ulps)),
        "mean_ulp": float(sum(ulps) / len(ulps)),
    }


@pytest.mark.parametrize("reference", ["exact", "mpmath"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("with_c", [False, True])
@pytest.mark.parametrize("exponent", [-40, 0, 7])
def test_metrics_agree_with_fractions(reference, dtype, with_c, exponent):
    rng = np.random.default_rng(exponent + 100)
    a = np.ldexp(rng.standard_normal((4, 6)), exponent).astype(np.float32)
    b = rng.standard_normal((6, 3)).astype(np.float32)
    c = np.ldexp(rng.standard_normal((4, 3)), exponent).astype(np.float32) if with_c else None
    computed = (a @ b + (0 if c is None else c)).astype(dtype)
    report = errors(computed, a, b, c, reference)
    for name, expected in slow_metrics(computed, a, b, c).items():
        # Every term is one correctly rounded float64; sums of n terms and a square root add at most (n + 4) u.
        assert getattr(report, name) == pytest.approx(expected, rel=20 * 2.0**-53, abs=0), name
    assert (report.m, report.n, report.k) == (4, 3, 6)
    assert report.reference == reference


def test_the_two_references_give_the_same_report():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal((5, 4)).astype(np.float32)
    first, second = (errors(a @ b, a, b, reference=name).to_dict() for name in ("exact", "mpmath"))
    assert first.pop("reference") == "exact"
    assert second.pop("reference") == "mpmath"
    assert first == second


def test_an_exact_product_has_no_error():
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (5, 6)).astype(np.float32)
    b = rng.integers(-8, 9, (6, 4)).astype(np.float32)
    report = errors(a @ b, a, b)
    assert [getattr(report, name) for name in METRICS] == [0.0] * len(METRICS)
    assert report.bits_equal == 1.0
    assert report.effective_bits() == math.inf


@settings(max_examples=60)
@given(st.integers(0, 11), st.integers(-1000, 900), st.integers(-1070, 40), st.sampled_from([-1, 1]))
def test_one_inexact_element_shows_in_every_error(place, scale, tiny, sign):
    """However small the difference is beside the product: no metric rounds it away."""
    a = np.ldexp(np.arange(1, 13).reshape(12, 1), scale)
    b = np.ones((1, 1))
    computed = a.copy()
    computed[place] += sign * max(math.ldexp(1.0, tiny), math.ulp(float(computed[place, 0])))
    report = errors(computed, a, b)
    assert all(getattr(report, name) > 0 for name in METRICS)


@pytest.mark.parametrize("reference", ["exact", "mpmath"])
def test_subnormal_differences_of_wide_products_show(reference):
    """The exact value needs far more than 53 bits; the error is below float64's range and must not become 0."""
    a, b = np.array([[1.0, 2.0**-540]]), np.array([[2.0], [2.0**-540]])
    report = errors(np.array([[2.0]]), a, b, reference=reference)
    assert all(getattr(report, name) > 0 for name in METRICS)
    assert report.bits_equal == 1.0


def test_ulp_and_correct_rounding_at_a_tie():
    a, b = np.float32([[1, 2**-24]]), np.float32([[1], [1]])
    down, up = np.float32([[1]]), np.nextafter(np.float32([[1]]), np.float32(2))
    assert errors(down, a, b).max_ulp == errors(up, a, b).max_ulp == 0.5
    assert errors(down, a, b).bits_equal == 1.0
    assert errors(up, a, b).bits_equal == 0.0


def test_ulp_is_held_to_the_format_range():
    tiny = np.float32([[2.0**-149]])
    one = np.float32([[1]])
    assert errors(np.float32([[0]]), tiny, one).max_ulp == 1.0
    assert errors(np.float32([[2.0**-148]]), np.float32([[0]]), one).max_ulp == 2.0
    assert errors(np.float16([[0]]), np.float32([[2.0**-24]]), one).max_ulp == 1.0


def test_zeros_of_either_sign_are_equal():
    a, b = np.float32([[1, -1]]), np.float32([[1], [1]])
    report = errors(np.float32([[-0.0]]), a, b)
    assert report.bits_equal == 1.0
    assert report.relative_frobenius == 0.0


def test_a_wrong_value_where_the_product_is_zero():
    a, b = np.float32([[1, -1]]), np.float32([[1], [1]])
    report = errors(np.float32([[2.0**-20]]), a, b)
    assert report.relative_frobenius == math.inf
    assert report.effective_bits() == -math.inf
    assert report.normwise == 2.0**-21
    assert report.componentwise == 2.0**-21


@pytest.mark.parametrize("reference", ["exact", "mpmath"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_nonfinite_rule(reference, dtype):
    with np.errstate(invalid="ignore"):
        a = np.float32([[np.inf], [np.nan], [-np.inf], [3]])
        b = np.float32([[2]])
        right = np.array([[np.inf], [np.nan], [-np.inf], [6]]).astype(dtype)
    report = errors(right, a, b, reference=reference)
    assert [getattr(report, name) for name in METRICS] == [0.0] * len(METRICS)
    assert report.bits_equal == 1.0
    assert report.nonfinite == 3
    assert report.nonfinite_wrong == 0
    for place, value in ((0, np.nan), (0, -np.inf), (0, 1), (1, np.inf), (1, 0), (3, np.inf), (3, np.nan)):
        wrong = right.copy()
        wrong[place] = value
        report = errors(wrong, a, b, reference=reference)
        assert [getattr(report, name) for name in METRICS] == [math.inf] * len(METRICS), (place, value)
        assert report.bits_equal == 0.75
        assert report.nonfinite_wrong == 1


def test_overflow_of_the_format_is_an_infinite_error_but_correctly_rounded():
    a, b = np.float32([[1e4]]), np.float32([[1e4]])
    report = errors(np.float16([[np.inf]]), a, b)
    assert report.relative_frobenius == math.inf
    assert report.bits_equal == 1.0


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0)])
@pytest.mark.parametrize("with_c", [False, True])
def test_empty_dimensions(shape, with_c):
    m, k, n = shape
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    c = np.full((m, n), 2.5, np.float32) if with_c else None
    computed = np.zeros((m, n), np.float32) if c is None else c
    report = errors(computed, a, b, c)
    assert [getattr(report, name) for name in METRICS] == [0.0] * len(METRICS)
    assert report.bits_equal == 1.0
    if k == 0 and m and n:
        assert errors(computed + 1, a, b, c).max_ulp > 0


def test_views_are_read_right_and_left_alone():
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((6, 8)).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)
    expected = errors(a @ b, a, b).to_dict()
    swapped = a.astype(">f4")
    strided = np.zeros((12, 16), np.float32)[::2, ::2]
    strided[...] = a
    for view in (swapped, strided, np.asfortranarray(a)):
        view.setflags(write=False)
        before = view.tobytes()
        assert errors((a @ b).astype(">f4"), view, b).to_dict() == expected
        assert view.tobytes() == before
    zero_stride = np.broadcast_to(np.float32(2), (3, 4))
    assert errors(np.full((3, 3), 16, np.float32), zero_stride, zero_stride.T).max_ulp == 0


def test_bad_input():
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    good = a @ b
    with pytest.raises(ValueError, match=r"computed has shape \(2, 3\), expected \(2, 4\)"):
        errors(a, a, b)
    with pytest.raises(ValueError, match="unknown reference 'float'; known: exact, mpmath"):
        errors(good, a, b, reference="float")
    with pytest.raises(ValueError, match="unknown relative error 'max_ulp'; known: relative_frobenius"):
        errors(good, a, b).effective_bits("max_ulp")
    with pytest.raises(TypeError, match="int64"):
        errors(good.astype(int), a, b)
    with pytest.raises(ValueError, match="shape|dimension|columns"):
        errors(good, a, a)
    with pytest.raises(ValueError, match="shape|dimension"):
        errors(good, a[0], b)
    with pytest.raises(TypeError):
        errors(good, a.astype(complex), b)
    with pytest.raises(TypeError):
        errors(good, a.astype(object), b)
    with pytest.raises(TypeError, match="a is a masked array"):
        errors(good, np.ma.masked_array(a, a > 0), b)
    with pytest.raises(TypeError, match="computed is a masked array"):
        errors(np.ma.masked_array(good, good > 0), a, b)


def test_json_round_trip():
    a, b = np.float32([[1, 2]]), np.float32([[1], [1]])
    for computed in (np.float32([[3.5]]), np.float32([[np.inf]])):
        report = errors(computed, a, b)
        parsed = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert ErrorReport.from_dict(parsed) == report
        assert "relative_frobenius" in str(report)


def test_a_meter_measures_many_results_of_one_product():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((5, 7)).astype(np.float32), rng.standard_normal((7, 6)).astype(np.float32)
    meter = ErrorMeter(a, b)
    for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        computed = (a @ b).astype(dtype)
        assert meter.measure(computed) == errors(computed, a, b)


def test_exact_sums_are_those_of_fsum():
    """Rounded once, whatever the signs and exponents; a mean is finite where the sum of finite numbers is not."""
    rng = np.random.default_rng(7)
    for number in range(400):
        x = rng.standard_normal(int(rng.integers(0, 60)))
        x = (
            x * 2.0 ** rng.integers(-1060, 990, x.size).astype(float)
            if number % 2
            else x * 10.0 ** rng.integers(-10, 10)
        )
        assert exact_sum(x) == math.fsum(x)
    with pytest.raises(OverflowError):
        exact_sum(np.full(4, 1e308))
    computed, zero = np.full((2, 2), 1e-16), np.zeros((2, 2))  # 2^-53 of 2^-1074: 4 of them are beyond binary64
    report = errors(computed, zero, zero)
    assert report.mean_ulp == report.max_ulp and math.isfinite(report.max_ulp) and report.max_ulp > 1e307
