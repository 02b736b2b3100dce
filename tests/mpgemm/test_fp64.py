"""FP64 at full precision: drawn inputs, grades, and what is said of emulated FP64."""

import json

import numpy as np
import pytest

import mpgemm
from mpgemm.cli import main
from mpgemm.exact.errors import GRADES, errors
from mpgemm.inputs.matrices import generate

RNG = np.random.default_rng(8)
A, B = RNG.standard_normal((12, 40)), RNG.standard_normal((40, 10))


def test_numbers_are_drawn_with_all_their_bits():
    wide, narrow = generate("normal", 3, 4, 5, 7, precision="fp64"), generate("normal", 3, 4, 5, 7)
    for x, y in zip(wide, narrow, strict=True):
        assert x.dtype == np.float64 and np.array_equal(x.astype(np.float32), y) and (x != y).any()
    with pytest.raises(ValueError, match="precision is 'fp16', expected fp32 or fp64"):
        generate("normal", 2, 2, 2, precision="fp16")


# -- grades ----------------------------------------------------------------------------------------------------------------
def limit(k):
    return (k + 1) * 2.0**-53


def test_the_conditions_are_those_stated():
    """One element is moved by a known amount: which condition it breaks is worked out here."""
    a, b = np.float64([[1.0, 2.0**-20], [1.0, 1.0]]), np.float64([[2.0**-20, 1.0], [1.0, 1.0]])
    exact = a @ b
    sizes, k = np.abs(a) @ np.abs(b), 2
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
    whole = np.abs(a).sum(1).max() * np.abs(b).sum(1).max()
    for factor, scale, grade in (
        (0.9, sizes, "A"), (1.5, sizes, "B"), (0.9, norms, "B"), (1.5, norms, "C"), (0.9, np.full((2, 2), whole), "C"),
        (1.5, np.full((2, 2), whole), "-"),
    ):  # fmt: skip
        moved = exact.copy()
        moved[0, 0] += factor * limit(k) * scale[0, 0]
        report = errors(moved, a, b)
        assert report.grade == grade, (factor, grade)
        assert report.rowwise == pytest.approx((moved - exact)[0, 0] / norms[0, 0], rel=1e-12)
    assert list(GRADES) == ["A", "B", "C"] and errors(exact, a, b).grade == "A"


def test_row_norms_neither_overflow_nor_vanish():
    for scale in (2.0**1000, 2.0**-1000):
        a, b = A * scale, B / scale
        report = errors(a @ b, a, b)
        assert report.rowwise == pytest.approx(errors(A @ B, A, B).rowwise, rel=0.5) and report.grade == "A"


def test_dgemm_has_grade_a_and_one_step_of_strassen_grade_c():
    """Strassen's products mix blocks, so a small block beside large ones loses its bits: that is what grade A is about."""
    scale = np.repeat([1.0, 2.0**-40], 8)
    a, b = RNG.standard_normal((16, 16)) * scale[:, None], RNG.standard_normal((16, 16)) * scale
    assert errors(a @ b, a, b).grade == "A"
    (a11, a12), (a21, a22) = (np.split(rows, 2, axis=1) for rows in np.split(a, 2))
    (b11, b12), (b21, b22) = (np.split(rows, 2, axis=1) for rows in np.split(b, 2))
    m = [
        (a11 + a22) @ (b11 + b22), (a21 + a22) @ b11, a11 @ (b12 - b22), a22 @ (b21 - b11), (a11 + a12) @ b22,
        (a21 - a11) @ (b11 + b12), (a12 - a22) @ (b21 + b22),
    ]  # fmt: skip
    fast = np.block([[m[0] + m[3] - m[4] + m[6], m[2] + m[4]], [m[1] + m[3], m[0] - m[1] + m[2] + m[5]]])
    assert errors(fast, a, b).grade == "C"


def test_rows_with_a_wide_span_cost_too_few_slices_grade_a():
    """A row's small elements, against a column's large ones, are cut off: the norms of row and column do not see it."""
    a = A * np.where(np.arange(40) < 20, 1.0, 2.0**-40)
    b = B * np.where(np.arange(40) < 20, 2.0**-40, 1.0)[:, None]
    few = errors(mpgemm.recovered_gemm(a, b, None, "ozaki_int8", slices=9), a, b)
    auto = errors(mpgemm.recovered_gemm(a, b, None, "ozaki_int8:slices=auto"), a, b)
    assert few.grade == "B" and auto.grade == "A" and auto.effective_bits("componentwise") > 52


DECADES = "--distribution decades --precision fp64 --shape 6 48 6"


# -- the commands ----------------------------------------------------------------------------------------------------------
def test_evaluate_says_what_is_as_accurate_as_dgemm(capsys):
    words = f"evaluate {DECADES} --json --methods fp64"
    assert main([*words.split(), "ozaki_int8:slices=auto", "ozaki_int8:slices=8"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["inputs"]
    good, bad, condition = entry["fp64"]
    assert condition.startswith("Condition of the product")
    assert good.startswith("As accurate as DGEMM here: ozaki_int8:slices=auto") and "(grade A)" in good
    assert bad.startswith("Less accurate than DGEMM: ozaki_int8:slices=8") and "grade B (DGEMM here: A)" in bad
    assert entry["verdict"] is None and entry["identity"]["precision"] == "fp64"


def test_compare_tells_the_worst_element_where_the_norm_hides_it(capsys):
    words = f"compare {DECADES} --engines b300 --bits 48 --methods"
    assert main([*words.split(), "ozaki_int8:slices=8", "ozaki_int8:slices=auto"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "in the norm," in text and "in the worst element over |A||B| (grade B)" in text
    assert "slices keep" in text and " 53 are wanted" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare --shipped digits --precision fp64", "--precision goes with matrices that are generated"),
        ("slices --shipped digits --precision fp64", "--precision goes with matrices that are drawn"),
        ("evaluate --precision fp64", "--precision goes with --distribution"),
    ],
)
def test_precision_is_obeyed_or_refused(words, message, capsys):
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err
