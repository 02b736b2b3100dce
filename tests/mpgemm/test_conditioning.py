"""The condition of a product, beside fractions, and what is said where it leaves nothing."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import mpgemm
from mpgemm.cli import main
from mpgemm.exact.conditioning import DIGIT, Conditioning, condition_of_product
from mpgemm.exact.errors import ErrorMeter
from mpgemm.experiments.slice_advice import slice_advice
from mpgemm.inputs import generate


@pytest.mark.parametrize("seed", range(6))
def test_it_is_that_of_fractions(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((3, 8)) * 2.0 ** rng.integers(-20, 20, (3, 8))
    a, b = np.hstack([a, -a]), rng.standard_normal((16, 2))
    b[8:] = b[:8] * (1 + 2.0**-30 * rng.standard_normal((8, 2)))
    x, y = (np.vectorize(Fraction, otypes=[object])(v) for v in (a, b))
    exact, sizes = x @ y, abs(x) @ abs(y)
    found = condition_of_product(a, b)
    each = sorted(float(s / abs(v)) for s, v in zip(sizes.ravel(), exact.ravel(), strict=True))
    assert found.largest == pytest.approx(each[-1], rel=1e-12) and found.elements == 6 and found.zeros == 0
    assert found.median == pytest.approx((each[2] + each[3]) / 2, rel=1e-12)
    norm = math.sqrt(float(sum(s * s for s in sizes.ravel()) / sum(v * v for v in exact.ravel())))
    assert found.norm == pytest.approx(norm, rel=1e-12) and found == ErrorMeter(a, b).conditioning()
    assert found.bits_left(53) == pytest.approx(53 - math.log2(norm)) and found.bits_left(10) >= 0


def test_zeros_empty_products_and_extremes():
    assert Conditioning.of(np.zeros((0, 3)), np.zeros((0, 3))).norm == 1
    zero = condition_of_product(np.float64([[1, -1]]), np.float64([[1], [1]]))
    assert (zero.norm, zero.zeros, zero.bits_left(53)) == (math.inf, 1, 0) and "1 of 1 results cancel to 0" in str(zero)
    huge = condition_of_product(np.full((2, 2), 1e300), np.full((2, 2), 1e5))
    tiny = condition_of_product(np.full((2, 2), 1e-160), np.full((2, 2), 1e-160))
    assert huge.norm == tiny.norm == 1
    assert condition_of_product(np.float64([[np.nan, 1]]), np.ones((2, 2))).elements == 0


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("condition", [1, 30, 1e9, 1e17, 1e40])
def test_drawn_products_have_the_condition_asked_for(condition, precision):
    a, b = generate("ill_conditioned", 12, 300, 12, 1, precision=precision, condition=condition)
    assert condition_of_product(a, b).norm == pytest.approx(condition, rel=0.15)


ILL = generate("ill_conditioned", 6, 48, 6, 0, precision="fp64", condition=1e17)


def test_nothing_is_called_safe_without_a_right_digit(tmp_path, capsys):
    """The error of DGEMM over |A||B| is small, and that of the result is as large as the result."""
    found = slice_advice(*ILL, methods=["ozaki_int8"], devices=["h100"])
    assert found.native_bits < DIGIT and found.condition.norm > 1e16
    text = str(found)
    assert "has 0.0 correct bits of the result, which is not one digit" in text
    least = next(entry for entry in found.counts if entry.count == found.measured["ozaki_int8"])
    assert least.reached and least.result_bits < DIGIT
    assert "safe to emulate" not in text and "not one digit of the result is right" in text and "takes" not in text
    for name, x in zip("ab", ILL, strict=True):
        np.save(tmp_path / f"{name}.npy", x)
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    assert main(["slices", *files, "--methods", "ozaki_int8", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["condition"]["norm"] > 1e16 and "result_bits" in data["counts"][0]
    assert main(["evaluate", *files, "--methods", "fp64", "ozaki_int8:slices=8"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Condition of the product" in out and "DGEMM itself has not one correct digit of the result" in out


@pytest.mark.parametrize("target", ["relative:20", "relative:44", "relative"])
def test_a_relative_target_asks_for_digits_of_the_result(target):
    """In fractions: with the advised count every element has them, with one fewer one element has not."""
    a, b = generate("ill_conditioned", 4, 30, 4, 3, precision="fp64", condition=1e9)
    found = slice_advice(a, b, target, ["ozaki_int8"], ())
    bits = int(target.partition(":")[2] or 53)
    x, y = (np.vectorize(Fraction, otypes=[object])(v) for v in (a, b))
    exact = x @ y
    allowed = (Fraction(2) ** -bits + Fraction(2) ** -53) * abs(exact)

    def reached(count):
        row = mpgemm.get_method("ozaki_int8", target="fp64").with_count(count)
        computed = np.vectorize(Fraction, otypes=[object])(mpgemm.recovered_gemm(a, b, None, row, "ieee"))
        return bool((abs(computed - exact) <= allowed).all())

    least = found.measured["ozaki_int8"]
    assert reached(least) and not reached(least - 1) and reached(found.proved["ozaki_int8"])
    assert found.wanted == bits and "safe to emulate" in str(found)


def test_a_relative_target_that_nothing_reaches():
    found = slice_advice(*ILL, target="relative", methods=["ozaki2_int8"], devices=["h100"])
    assert found.measured == {"ozaki2_int8": None} and "needs longer words, or mpgemm.mp_gemm" in str(found)
    with pytest.raises(ValueError, match="expected fp64, fp32, relative, relative:BITS"):
        slice_advice(*ILL, target="relative:0")
    with pytest.raises(ValueError, match="the target is 60 bits, expected at most 53, the precision of FP64 output"):
        slice_advice(*ILL, target="relative:60")


def test_the_axis_of_conditions_shows_errors_of_the_result(capsys):
    words = "curve --over condition 1 1e8 --points 2 --precision fp64 --methods fp64 --shape 8 96 8 --repeats 1 --json"
    assert main(words.split()) == 0
    data = json.loads(capsys.readouterr().out)
    first, last = (point["error"] for point in data["points"])
    assert data["metric"] == "relative_frobenius" and last > 1e6 * first
