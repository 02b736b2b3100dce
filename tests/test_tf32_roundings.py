"""How FP32 becomes TF32 belongs to a library and a GPU: it is taken from there, or asked for, and named where it is used."""

import numpy as np
import pytest

import mpgemm
from mpgemm.cli import main
from tensorcore_models.formats.tf32_roundings import TF32_ROUNDINGS, tf32_rounding

#: What each owner makes of these numbers times 1 (recorded on an H100; published; the unit alone).
NUMBERS = [1024.5, 2049, 2050, 2051, 4098, 6147]
FOUND = {
    "rne": [1024, 2048, 2050, 2052, 4096, 6148],
    "rz": [1024, 2048, 2050, 2050, 4096, 6144],
    "rna": [1025, 2050, 2050, 2052, 4100, 6148],
}


def operands():
    return np.float32(NUMBERS)[:, None], np.ones((1, 1), np.float32)


@pytest.mark.parametrize("rounding", FOUND)
def test_each_rounding_gives_the_recorded_numbers(rounding):
    found = mpgemm.recovered_gemm(*operands(), method="tf32", engine="h100", rounding=rounding)
    assert found.ravel().tolist() == FOUND[rounding]


def test_a_rounding_is_known_for_a_library_on_a_gpu_or_not_at_all():
    known = {
        ("cublas", "h100"): "rne",
        ("cublas", "H100/mma"): "rne",
        ("cublas", "rtx3090"): "rna",
        ("triton", "a100"): "rz",
    }
    assert {key: tf32_rounding(*key).rounding for key in known} == known
    assert tf32_rounding("cublas", "a100") is tf32_rounding("cublas", None) is None
    assert all(row.evidence.startswith(("measured", "published")) for row in TF32_ROUNDINGS)


def test_the_name_of_a_library_takes_its_gpus_rounding(capsys):
    a, b = operands()
    found = {r.requested: r for r in mpgemm.compare(["allow_tf32"], ["h100", "rtx3090"], a, b)}
    assert found["h100"].method == "allow_tf32" and found["rtx3090"].method == "allow_tf32:rounding=rna"
    exact = np.asarray(mpgemm.exact_gemm(a, b).rounded("fp64")).ravel()
    for engine, rounding in (("h100", "rne"), ("rtx3090", "rna")):
        error = np.linalg.norm(np.array(FOUND[rounding]) - exact) / np.linalg.norm(exact)
        assert found[engine].errors.relative_frobenius == pytest.approx(error)
    named = {r.requested: r.method for r in mpgemm.compare(["allow_tf32:rounding=rz"], ["h100", "rtx3090"], a, b)}
    assert set(named.values()) == {"allow_tf32:rounding=rz"}


def test_whose_it_is_is_printed(capsys):
    given = ["--distribution", "normal", "--shape", "8", "16", "8"]
    assert main(["compare", "--methods", "tf32", "--engines", "h100", *given]) == 0
    assert main(["explain", "--operands", "tf32", "--engine", "h100", "--a", "1024.5", "--b", "1"]) == 0
    for shown in " ".join(capsys.readouterr().out.split()).split("Step")[:1]:
        assert "to nearest even (rne), as cuBLAS 13.0 (torch 2.11) does on h100 (measured" in shown
        assert "to nearest, ties away (rna), as cuBLAS of 2020 does on rtx3080, rtx3090 (published" in shown
        assert "truncated (rz), as tl.dot of Triton does (published" in shown


def test_torch_rounds_as_cublas_does_on_the_gpu_or_asks():
    torch = pytest.importorskip("torch")
    import mpgemm.torch

    a, b = (torch.from_numpy(x) for x in operands())
    a = a.repeat(1, 1)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        for device, rounding in (("h100", "rne"), ("rtx3090", "rna")):
            with mpgemm.torch.emulate(device) as run:
                assert (a @ b).ravel().tolist() == FOUND[rounding]
            assert f"FP32 operands are rounded to TF32 {tf32_rounding('cublas', device)}" in str(run.report())
        with mpgemm.torch.emulate("h100", input_rounding="rz"):
            assert (a @ b).ravel().tolist() == FOUND["rz"]
        with mpgemm.torch.emulate("a100"), pytest.raises(ValueError, match="'rne' .cuBLAS 13.0 on an H100, measured"):
            a @ b
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
