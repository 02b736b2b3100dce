"""Scales on the command line, and `mpgemm check`."""

import json

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import tolerance, whodunit
from mpgemm.cli import main

E4M3 = ml_dtypes.float8_e4m3fn
HOPPER = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(E4M3) for s in ((24, 512), (512, 40)))
    scales = rng.uniform(0.1, 1, (24, 4)), rng.uniform(0.1, 1, (4, 1))
    np.save("A.npy", a.view(np.uint8))
    np.save("B.npy", b.view(np.uint8))
    np.save("SA.npy", scales[0].astype(np.float32))
    np.save("SB.npy", scales[1].astype(np.float32))
    d = HOPPER.gemm(a, b, scale_a=scales[0], scale_b=scales[1])
    np.save("right.npy", d)
    lost = a.copy()
    lost[:, 128:256] = 0
    np.save("lost.npy", HOPPER.gemm(lost, b, scale_a=scales[0], scale_b=scales[1]))
    return a, b, scales, d


COMMON = ["A.npy", "B.npy", "--operands", "e4m3fn", "--scale-a", "SA.npy", "--scale-b", "SB.npy"]


def test_check_passes_and_names(files, capsys):
    assert main(["check", "right.npy", *COMMON]) == 0
    text = capsys.readouterr().out
    assert text.startswith("passes")
    assert "after each block of 128 products" in " ".join(text.split())
    assert main(["check", "lost.npy", *COMMON, "--json"]) == 1
    assert "k 128:256 is missing" in json.loads(capsys.readouterr().out)["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scale-a", "0.5"], "only one of scale_a and scale_b is given"),
        (["--scale-a", "SA.npy", "--scale-b", "1"], "applied at different places"),
        (["--scale-a", "nan", "--scale-b", "1"], "NaN or infinite"),
        (["--scale-a", "right.npy", "--scale-b", "1"], "fits no rule for A of 24 x 512"),
        (["--promote-every", "x"], "expected a number of products"),
        (["--promote-every", "48"], "multiple of 32"),
        (["--k-order", "any", "--splits", "2"], "leave splits out"),
        (["--scale-a", "1", "2", "--scale-b", "1"], "a file of block scales and a number"),
    ],
)
def test_bad_input_is_one_line(files, capsys, words, message):
    assert main(["check", "right.npy", "A.npy", "B.npy", "--operands", "e4m3fn", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.full
def test_whodunit_finds_the_unit_under_the_scales(files):  # 2 s: a whole search
    a, b, scales, d = files
    found = whodunit(a[:8], b[:, :8], d[:8, :8], scale_a=scales[0][:8], scale_b=scales[1], methods=())
    assert any("hopper:wgmma" in s.who for s in found.exact)
    assert not any("blackwell" in s.who for s in found.exact)


def test_tolerance_with_scales_holds(files):
    a, b, scales, d = files
    found = tolerance(HOPPER, data=(a, b), scale_a=scales[0], scale_b=scales[1], quantile=0.5, confidence=0.6)
    s = tcm.read_scales(*scales, 24, 512, 40)
    x, y = a.astype(float) * s.spread_a(), b.astype(float) * s.spread_b()
    error = np.abs(d - x @ y)
    assert (error <= found.bound).all()
    assert (error <= found.relative * (np.abs(x) @ np.abs(y)) + found.absolute).all()
    assert (error <= found.statistical.atol + found.statistical.rtol * np.abs(x @ y)).all()
    assert "blocks of 1 x 128" in found.derivation


def test_predict_with_factors_of_rows(files, capsys):
    a, b, _, _ = files
    np.save("RA.npy", np.linspace(0.1, 1, 24, dtype=np.float32)[:, None])
    np.save("RB.npy", np.linspace(1, 2, 40, dtype=np.float32)[None])
    words = [
        "predict",
        "A.npy",
        "B.npy",
        "--operands",
        "e4m3fn",
        "--gpu",
        "h100",
        "--library",
        "scaled_mm",
        "--out-format",
        "fp32",
    ]
    scaled = ["--scale-a", "RA.npy", "--scale-b", "RB.npy", "--out", "D.npy"]
    assert main([*words, *scaled, "--config", "fast_accumulation=true"]) == 0
    assert "RN32(scale_a RN32(scale_b sum))" in " ".join(capsys.readouterr().out.split())
    assert (np.load("D.npy") == (HOPPER.gemm(a, b) * np.load("RB.npy")) * np.load("RA.npy")).all()
    assert main([*words, "--scale-a", "1", "--scale-b", "1", "--scale", "2"]) == 2


def test_explain_shows_where_factors_are_applied(files, capsys):
    a, b, scales, d = files
    np.save("FA.npy", a.astype(np.float32))
    np.save("FB.npy", b.astype(np.float32))
    words = ["explain", "--operands", "fp8", "--engine", "h100", "--files", "FA.npy", "FB.npy", "--element", "3", "5"]
    assert main([*words, "--scale-a", "SA.npy", "--scale-b", "SB.npy", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["result"] == found["steps"][-1]["total"] == float(d[3, 5])
    assert [(s["start"], s["stop"]) for s in found["steps"]] == [(0, 128), (128, 256), (256, 384), (384, 512)]
    assert main([*words, "--scale-a", "0.5", "--scale-b", "0.25"]) == 0
    assert "RN32(RN32(scale_a scale_b) sum)" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--scale-a", "0.5", "--scale-b", "0.25", "--c", "1"]) == 2
