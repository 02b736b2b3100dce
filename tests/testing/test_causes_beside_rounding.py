"""Causes are named although a kernel's rounding differs from the model's: more exact sums, a narrow output, narrow parts."""

import ml_dtypes
import numpy as np
import pytest

from mpgemm.testing import check_gemm, diagnosis
from mpgemm.testing.diagnosis import narrow
from mpgemm.testing.diagnosis.failure import Finding

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


def parts(dtype, seed, k=1024):
    """Return (a, b, sums of four parts of k, each rounded to the type), before the output's rounding."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((64, k)).astype(dtype), (rng.standard_normal((k, 96)) * 0.05).astype(dtype)
    x, y = a.astype(np.float64), b.astype(np.float64)
    sums = (x[:, s : s + k // 4] @ y[s : s + k // 4] for s in range(0, k, k // 4))
    return a, b, sum(part.astype(np.float32).astype(dtype).astype(np.float32) for part in sums)


@pytest.mark.parametrize("options", [{}, {"promote_every": 128}], ids=["one chain", "promoted"])
def test_a_lost_block_of_exact_sums_on_a_unit_that_truncates(options):
    rng = np.random.default_rng(1)
    a, b = (np.abs(rng.standard_normal(shape)).astype(E4M3) for shape in ((64, 1024), (1024, 64)))
    kept = a.astype(np.float32)
    kept[:, 576:608] = 0
    found = check_gemm(kept @ b.astype(np.float32), a, b, engine="h100", **options)
    assert found.suspects == ("lost terms: k 576:608 is missing",)
    assert any("--promote-every" in line for line in found.details) == (not options)


def test_no_fit_of_many_numbers_is_named_beside_a_better_one_of_fewer():
    many, few = (Finding(fit, 0.5, "", 0.99, -99.0, 0.0, free) for fit, free in ((2.0, 8), (1.0, 1)))
    assert diagnosis._better(many, [(few, "")]) and not diagnosis._better(few, [(many, "")])


@pytest.mark.parametrize("dtype", [BF16, np.float16])
def test_narrow_parts_are_named_behind_an_output_of_the_same_format(dtype):
    a, b, sums = parts(dtype, 0, 2048)
    found = check_gemm(sums.astype(dtype), a, b, engine="h100", splits=4)
    name = "bf16" if dtype is BF16 else "fp16"
    assert found.suspects == (f"sums over 512 values of k are rounded to {name} before they are added",)
    assert not any(text.startswith("sums in") for text in found.tried)


def test_a_number_for_each_line_says_nothing_if_the_elements_do_not_determine_it(monkeypatch):
    monkeypatch.setattr(narrow, "_rounded_between", lambda f: None)
    a, b, sums = parts(BF16, 0)
    found = check_gemm(sums.astype(BF16), a, b, engine="h100", splits=4)
    assert found.fitting == ()


@pytest.mark.full
@pytest.mark.parametrize("seed", [1])
def test_no_fp16_sums_are_named_for_a_kernel_of_bf16(monkeypatch, seed):
    monkeypatch.setattr(narrow, "_rounded_between", lambda f: None)
    a, b, sums = parts(BF16, seed, 2048)
    found = check_gemm(sums.astype(BF16), a, b, engine="h100", splits=4)
    assert not found.passes and not any("fp16 accumulation" in text for text in found.suspects)
