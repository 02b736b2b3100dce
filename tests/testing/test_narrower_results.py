"""A result in FP32 that holds only numbers of bf16 or FP16 is noticed, of products, groups and attention."""

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.testing import check_attention, check_gemm, check_grouped

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((32, 256)).astype(np.float16), RNG.standard_normal((256, 32)).astype(np.float16)
OUT = tcm.default_instruction("h100", "fp16").gemm(A, B)
ENDS, EXPERTS = [12, 32], np.stack([B, B])


@pytest.mark.sweep(1)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_a_rounded_result_is_named_and_passes_as_its_format(dtype, wide):
    name = tcm.format_of_dtype(np.dtype(dtype)).name
    rounded = OUT.astype(dtype).astype(wide)
    hint = f"every element is a number of {name}, and in this format the result passes: say --out-format {name}"
    for found in (check_gemm(rounded, A, B, engine="h100"), check_grouped(rounded, A, EXPERTS, ENDS, engine="h100")):
        assert not found.passes and hint in str(found)
    assert check_gemm(OUT.astype(dtype), A, B, engine="h100").passes


def test_attention_says_so_too():
    q, k, v = (RNG.standard_normal((24, 32)).astype(np.float16) for _ in range(3))
    scores = q.astype(float) @ k.T.astype(float) / np.sqrt(32)
    weights = np.exp(scores)
    right = weights / weights.sum(1, keepdims=True) @ v
    found = check_attention(right.astype(ml_dtypes.bfloat16).astype(np.float32), q, k, v, engine="h100")
    assert not found.passes and "every element is a number of bf16, and in this format the result passes" in str(found)


def test_a_result_that_is_wrong_in_its_format_is_said_to_fail_there_too():
    wrong = (2 * OUT).astype(ml_dtypes.bfloat16).astype(np.float32)
    assert "number of bf16, but in this format the result fails, too" in str(check_gemm(wrong, A, B, engine="h100"))


@pytest.mark.parametrize("wrong", [OUT * np.float32(1.01), np.zeros_like(OUT)])
def test_nothing_is_said_of_other_results(wrong):
    found = check_gemm(wrong, A, B, engine="h100")
    assert not found.passes and "every element is a number" not in str(found)


def test_the_command_says_which_option_it_takes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, array in (("A", A), ("B", B), ("out", OUT.astype(ml_dtypes.bfloat16).astype(np.float32))):
        np.save(f"{name}.npy", array)
    assert main(["check", "out.npy", "A.npy", "B.npy"]) == 1
    assert "--out-format bf16" in capsys.readouterr().out
    assert main(["check", "out.npy", "A.npy", "B.npy", "--out-format", "bf16"]) == 0


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ["e4m3fn", "bf16"])
def test_operands_that_float32_holds_for_a_narrower_format_are_named(name, tmp_path, monkeypatch, capsys):
    """A right kernel of FP8 is not called wrong without a word because its operands were saved as float32."""
    dtype = tcm.get_format(name).dtype
    x, y = (m.astype(dtype) for m in (A, B))
    out = tcm.default_instruction("h100", name, path="wgmma").gemm(x, y)
    wide = x.astype(np.float32), y.astype(np.float32)
    found = check_gemm(out, *wide, engine="h100")
    (said,) = found.suspects
    assert (
        not found.passes
        and f"every element is a number of {name}, and in this format out passes: say --operands {name}" in said
    )
    wrong = out.copy()
    wrong[3] *= 2
    assert f"number of {name}, but in this format out fails, too" in str(check_gemm(wrong, *wide, engine="h100"))
    for file, array in (("A", wide[0]), ("B", wide[1]), ("out", out)):
        np.save(tmp_path / f"{file}.npy", array)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "out.npy", "A.npy", "B.npy"]) == 1 and f"--operands {name}" in capsys.readouterr().out
    assert main(["check", "out.npy", "A.npy", "B.npy", "--operands", name]) == 0


def test_nothing_is_said_of_operands_of_fp32():
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((32, 256), (256, 32)))
    found = check_gemm(2 * (a @ b), a, b, engine="h100")
    assert not found.passes and "--operands" not in str(found)


def test_a_transposed_result_is_named():
    with pytest.raises(ValueError, match=r"out.T has that shape"):
        check_gemm(OUT[:20].T, A[:20], B, engine="h100")
    with pytest.raises(ValueError, match=r"of the product of a and b, got \(20, 32\)$"):
        check_gemm(OUT[:20], A, B, engine="h100")
