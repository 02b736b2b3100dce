"""How many slices or moduli: the choice before the product, its bound, and the advice beside exact products."""

import itertools
import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from integer_reference import truncated_slices

import mpgemm
from mpgemm import get_method, recovered_gemm, recovered_gemm_report
from mpgemm.cli import main
from mpgemm.experiments.slice_advice import _Goal, slice_advice
from mpgemm.recovery.counts import ScaledOperands, choose, kept_bits, scaled_words, truncation
from mpgemm.recovery.integer_words import common_exponents
from mpgemm.recovery.method import MODULI

# -- sixty pairs of matrices -----------------------------------------------------------------------------------------------


def _exponents(rng, shape, low, high):
    return np.ldexp(rng.standard_normal(shape), rng.integers(low, high + 1, shape))


def _graded(rng, m, k, n):
    """Columns of A fall as rows of B rise, so that all products matter."""
    steps = np.arange(k) - k // 2
    return np.ldexp(rng.standard_normal((m, k)), -steps), np.ldexp(rng.standard_normal((k, n)), steps[:, None])


def _hilbert(rng, m, k, n):
    i, j, c = (np.arange(1, size + 1) for size in (m, k, n))
    shift = int(rng.integers(0, 5))
    return 1.0 / (i[:, None] + j - 1 + shift), 1.0 / (j[:, None] + c - 1 + shift)


def _sparse(rng, m, k, n):
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    return a * (rng.random(a.shape) < 0.15), b * (rng.random(b.shape) < 0.15)


def _cancelling(rng, m, k, n):
    half = rng.standard_normal((m, k // 2)), rng.standard_normal((k // 2, n))
    return np.concatenate([half[0], -half[0]], 1), np.concatenate([half[1], half[1] * (1 + 2.0**-30)], 0)


def _both(draw):
    return lambda rng, m, k, n: (draw(rng, (m, k)), draw(rng, (k, n)))


FAMILIES = {
    "normal": _both(lambda rng, shape: rng.standard_normal(shape)),
    "positive": _both(lambda rng, shape: rng.uniform(0, 1, shape)),
    "wide": _both(lambda rng, shape: _exponents(rng, shape, -20, 20)),
    "very wide": _both(lambda rng, shape: _exponents(rng, shape, -80, 80)),
    "graded": _graded,
    "hilbert": _hilbert,
    "sparse": _sparse,
    "subnormal": lambda rng, m, k, n: (rng.standard_normal((m, k)) * 2.0**-1060, rng.standard_normal((k, n)) * 2.0**40),
    "huge": lambda rng, m, k, n: (rng.standard_normal((m, k)) * 1e300, rng.standard_normal((k, n)) * 1e-290),
    "cancelling": _cancelling,
}
PAIRS = list(itertools.product(FAMILIES, range(6)))
TARGETS = ("fp64", 44, "fp32")
INT8 = ("ozaki_int8", "ozaki2_int8")


def pair(family, seed):
    rng = np.random.default_rng([seed, *map(ord, family)])
    m, n = (int(x) for x in rng.integers(3, 12, 2))
    return FAMILIES[family](rng, m, int(rng.integers(1, 40)) * 2, n)


def words_alone_reach(goal, method, count, operands):
    """Whether what a method's words leave, exactly and not by its bound, is within the target."""
    row = get_method(method).with_count(count)
    words_a, words_b = scaled_words(row, operands.a, 1), scaled_words(row, operands.b, 0)
    minus = np.hstack([operands.a, *(-words_a[i] for i, _ in row.products)])
    left = np.abs(
        mpgemm.exact_gemm(minus, np.vstack([operands.b, *(words_b[j] for _, j in row.products)])).rounded("fp64")
    )
    return goal.proved(np.where(left > 0, left / np.where(operands.sizes > 0, operands.sizes, 1), 0))


def advised(cases, targets):
    """(cases where the bound is not the reason for the last word, of those the ones that miss without it)."""
    needed, missed = 0, 0
    for (family, seed), target in itertools.product(cases, targets):
        a, b = pair(family, seed)
        found, operands = slice_advice(a, b, target, INT8, devices=()), ScaledOperands.of(a, b)
        for method, count in found.proved.items():
            if count is None:
                continue
            entries = {entry.count: entry for entry in found.counts if entry.method == method}
            least = found.measured[method]
            assert entries[count].reached and least <= count, (family, seed, target, method)
            assert least - 1 not in entries or not entries[least - 1].reached
            goal = _Goal(a, b, target, found.output, found.wanted)
            if count - 1 in entries and not words_alone_reach(goal, method, count - 1, operands):
                needed += 1
                missed += not entries[count - 1].reached
    return needed, missed


@pytest.mark.parametrize("target", TARGETS)
def test_advised_counts_reach_the_target_and_one_fewer_mostly_does_not(target):
    needed, missed = advised(PAIRS[::20], [target])
    assert needed >= 2 and missed >= 0.8 * needed


@pytest.mark.full
def test_advised_counts_of_all_pairs():
    """60 pairs, three targets, two methods."""
    needed, missed = advised(PAIRS, TARGETS)
    assert needed > 200 and missed >= 0.8 * needed


# -- the bound -------------------------------------------------------------------------------------------------------------
def exact_left(row, a, b):
    """The exact product less the products of words that a method forms, in fractions."""
    words_a, words_b = scaled_words(row, a, 1), scaled_words(row, b, 0)

    def fractions(x):
        return np.vectorize(Fraction, otypes=[object])(x)

    formed = sum(fractions(words_a[i]) @ fractions(words_b[j]) for i, j in row.products)
    return np.abs(fractions(a) @ fractions(b) - formed)


@pytest.mark.parametrize("method", ("ozaki_int8:slices=2", "ozaki_int8:slices=3,products=all", "ozaki2_int8:moduli=3"))
@pytest.mark.parametrize("family", ("normal", "wide", "sparse"))
def test_no_truncation_is_beyond_its_bound_and_the_bound_is_near(method, family):
    row = get_method(method)
    a, b = pair(family, 1)
    operands = ScaledOperands.of(a, b)
    left, bound = exact_left(row, operands.a, operands.b), truncation(row, operands)
    assert all(x <= Fraction(float(y)) for x, y in zip(left.ravel(), bound.ravel(), strict=True))
    assert float(left.max()) * 2**6 > bound.max()
    bits, (i, j) = kept_bits(row, operands)
    assert bits == pytest.approx(-math.log2(bound[i, j] / operands.sizes[i, j]))


def test_words_that_hold_everything_lose_nothing():
    whole = np.random.default_rng(3).integers(-100, 101, (5, 9)).astype(float)
    found = recovered_gemm_report(whole, whole.T, None, "ozaki_int8:slices=auto")
    assert found.count.count == 1 and math.isinf(found.count.bits) and np.array_equal(found.d, whole @ whole.T)


def test_bits_of_the_moduli_are_those_published():
    """GEMMul8 (RIKEN-RCCS, README at 08e83eb8) prints the effective bits of 2 to 20 moduli on INT8 units: half of log2 M."""
    published = (8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 47, 51, 55, 59, 63, 66, 70, 74, 78)
    assert tuple(round(math.log2(math.prod(MODULI[:n])) / 2) for n in range(2, 21)) == published


# -- the choice ------------------------------------------------------------------------------------------------------------
def test_auto_is_the_method_with_the_count_that_it_names():
    a, b = pair("normal", 0)
    for method, option in (("ozaki_int8", "slices"), ("ozaki2_int8", "moduli")):
        found = recovered_gemm_report(a, b, None, f"{method}:{option}=auto")
        assert np.array_equal(found.d, recovered_gemm(a, b, None, method, **{option: found.count.count}))
        assert found.passes == found.method.passes and str(found.count.count) in str(found)
        fewer = get_method(method).with_count(found.count.count - 1)
        assert kept_bits(fewer, ScaledOperands.of(a, b))[0] < 53 <= found.count.bits
        more = choose(get_method(f"{method}:{option}=auto,bit_offset=9"), a, b)
        assert more.wanted == 62 and more.count > found.count.count


def test_the_result_of_fp32_operands_asks_for_24_bits():
    a, b = (x.astype(np.float32) for x in pair("normal", 2))
    found = recovered_gemm_report(a, b, None, "ozaki_int8:slices=auto")
    assert found.d.dtype == np.float32 and found.count.wanted == 24 and found.count.count <= 5
    wide = recovered_gemm_report(a, b, None, "ozaki_int8:slices=auto,target=fp64")
    assert wide.d.dtype == np.float64 and wide.count.wanted == 53


@pytest.mark.parametrize("change", ("inf", "nan", "span", "most"))
def test_the_native_product_is_taken_where_words_would_not_do(change):
    a, b = pair("normal", 3)
    method = "ozaki_int8:slices=auto,most=4" if change == "most" else "ozaki_int8:slices=auto"
    if change == "span":
        a[0], b[:, 0] = (
            np.ldexp(a[0], np.arange(a.shape[1]) * 30 - 500),
            np.ldexp(b[:, 0], 500 - np.arange(len(b)) * 30),
        )
    elif change != "most":
        a[1, 1] = float(change)
    found = recovered_gemm_report(a, b, None, method)
    reason = {"inf": "holds Inf or NaN", "nan": "holds Inf or NaN", "span": "slices would be needed"}.get(
        change, "4 may be taken"
    )
    assert found.method.name == "fp64" and found.count.count is None and reason in found.count.reason
    assert np.array_equal(found.d, recovered_gemm(a, b, None, "fp64", "ieee"), equal_nan=True)


def test_the_slices_that_would_do_beyond_those_there_are_would_do():
    rng = np.random.default_rng(12)
    a, b = _exponents(rng, (2, 5), -200, 200), _exponents(rng, (5, 2), -200, 200)
    reason = choose(get_method("ozaki_int8:slices=auto"), a, b).reason
    count = int(re.search(r"(\d+) slices would be needed for row \d of A", reason)[1])
    assert count > 16 and "16 may be taken" in reason
    rows, columns = common_exponents(a, 1).tolist(), common_exponents(b, 0).tolist()
    for i, j in itertools.product(range(2), range(2)):
        ends = zip(a[i], b[:, j], strict=True)
        words = [(truncated_slices(x, rows[i], count, 7), truncated_slices(y, columns[j], count, 7)) for x, y in ends]
        unit = Fraction(2) ** (rows[i] + columns[j])
        formed = sum(
            Fraction(x[p] * y[q], 1 << (7 * (p + q + 2))) * unit
            for x, y in words
            for p in range(count)
            for q in range(count - p)
        )
        products = [Fraction(x) * Fraction(y) for x, y in zip(a[i], b[:, j], strict=True)]
        assert abs(sum(products) - formed) <= sum(map(abs, products)) / (1 << 53)
    more = choose(get_method("ozaki2_int8:moduli=auto"), a, b).reason
    assert "more bits would be needed for row" in more and "than the 62 that 20 moduli hold" in more


def test_a_fixed_count_holds_the_bits_whatever_the_matrices_are():
    for family in ("normal", "very wide"):
        a, b = pair(family, 0)
        slices = recovered_gemm_report(a, b, None, "ozaki_int8:mantissa_bits=55")
        assert slices.method.words == 8 and slices.count.wanted == 55
        moduli = recovered_gemm_report(a, b, None, "ozaki2_int8:mantissa_bits=55")
        assert moduli.count.count == len(moduli.method.moduli) and 13 <= moduli.count.count <= 16


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            "ozaki_int8:slices=auto,bits=53",
            "bits is 53, expected at most 24, the precision of FP32 output; use target=fp64, whose precision is 53 bits",
        ),
        ("ozaki_int8:slices=17", "slices is 17, expected an integer from 1 to 16"),
        ("ozaki_int8:slices=4,bits=20", "got bits without slices=auto"),
        ("ozaki2_int8:moduli=auto,mantissa_bits=40", "leave moduli out"),
        ("ozaki_int8:mantissa_bits=50,most=3", "50 bits need more than 3 slices; give most=8"),
        ("ozaki2_int8:mantissa_bits=100", "more than 20 moduli; the method has at most 20, so ask for fewer bits"),
        ("ozaki_int8:slices=auto,bits=54", "bits is 54, expected an integer from 1 to 53"),
    ],
)
def test_what_cannot_be_reached_is_refused_in_one_line(method, message):
    a, b = (x.astype(np.float32) for x in pair("normal", 4))
    with pytest.raises(ValueError, match=message) as error:
        recovered_gemm(a, b, None, method)
    assert "\n" not in str(error.value)


def test_a_comparison_tells_the_count_and_its_cost():
    a, b = pair("normal", 5)
    found = mpgemm.compare(["ozaki_int8:slices=auto", "ozaki2_int8:moduli=auto,most=3", "fp64"], ["h100"], a, b)
    slices, native, double = found
    assert slices.count.startswith("ozaki_int8: ") and slices.cost == pytest.approx(1000 * slices.passes / 1978.9)
    assert "native FP64 product" in native.count and native.cost == double.cost == pytest.approx(1000 / 66.9)
    assert sum("native FP64 product" in note for note in found.notes()) == 1


# -- the command -----------------------------------------------------------------------------------------------------------
def test_the_command_says_what_is_safe_and_what_one_fewer_loses(capsys):
    words = ["slices", "--shape", "8", "64", "8", "--engine", "b300", "h100", "--methods", "ozaki_int8"]
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "ozaki_int8: safe to emulate with 8 slices" in text and "; 7 lose " in text and " bits in row " in text
    assert (
        "b300: ozaki_int8 with 8 slices takes 36 passes, 240 ms" in text
        and "less than the 800 ms of FP64 itself" in text
    )
    assert "h100: ozaki_int8 with 8 slices takes 36 passes, 18.2 ms" in text and "more than the 14.9 ms" in text
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["measured"] == {"ozaki_int8": 8} and len(found["counts"]) == found["proved"]["ozaki_int8"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--target 53 --output fp32",
            "the target is 53 bits, expected at most 24, the precision of FP32 output; ask for fewer bits",
        ),
        ("--target 0", "target is '0', expected fp64, fp32, relative, relative:BITS or a number"),
        (
            "--methods ootomo",
            "does not use integer slices or residues, expected one of ozaki_int8, ozaki2_int8, ozaki_fp8, ozaki2_fp8",
        ),
        ("--engine h1000", "h1000"),
    ],
)
def test_the_command_refuses_what_it_cannot_answer(words, message, capsys):
    assert main(["slices", "--shape", "2", "8", "2", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_operands_that_are_not_finite_are_told_to_take_the_native_product():
    a, b = pair("normal", 1)
    a[0, 0] = np.nan
    assert str(slice_advice(a, b)) == "An operand holds Inf or NaN, so the native FP64 product is taken."
    for shape in ((3, 0, 2), (0, 4, 2)):
        empty = slice_advice(np.zeros(shape[:2]), np.zeros(shape[1:]))
        assert str(empty) == "The product has no multiplications, so there is nothing to emulate."


def test_one_slice_is_spoken_of_as_one_and_the_most_that_fail_are_named():
    whole = np.random.default_rng(4).integers(-60, 61, (3, 7)).astype(float)
    assert "ozaki_int8: safe to emulate with 1 slice, proved as well." in str(
        slice_advice(whole, whole.T, "fp64", INT8)
    )
    wide = np.ldexp(whole, np.arange(7) * 150 - 450)
    assert "not safe to emulate: 16 slices lose" in str(slice_advice(wide, wide[:, ::-1].T, "fp64", INT8))


def test_evaluate_says_what_was_chosen_and_what_is_not_finite(tmp_path, capsys):
    a, b = pair("normal", 3)
    for name, x in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", x)
    words = [
        "evaluate",
        str(tmp_path / "a.npy"),
        str(tmp_path / "b.npy"),
        "--methods",
        "fp64",
        "ozaki_int8:slices=auto",
    ]
    assert main(words) == 0
    assert re.search(r"ozaki_int8: \d slices keep", " ".join(capsys.readouterr().out.split()))
    a[0, 0] = np.inf
    np.save(tmp_path / "a.npy", a)
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "A holds 1 element that is not finite, A[0, 0] = inf, so " in text
        and "The next lines are about the other elements." in text
    )
    assert "ozaki_int8: the native FP64 product, since an operand holds Inf or NaN." in text
