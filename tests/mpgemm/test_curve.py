"""`mpgemm curve`: points of the axis, what the curves hold, and the files."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import mpgemm
from mpgemm.bounds.probabilistic import likely_bound
from mpgemm.cli import main
from mpgemm.experiments.curves import AXES, _looks
from mpgemm.inputs.matrices import generate

WORDS = "curve --over k 16 64 --points 3 --repeats 2 --shape 5 9 7 --methods fp16@a100 fp32"


def test_points_run_from_end_to_end():
    assert AXES["k"].points(16, 256, 5) == [16, 32, 64, 128, 256]
    assert AXES["k"].points(1, 3, 9) == [1, 2, 3]
    assert AXES["exponent"].points(-20, 20, 5) == [-20, -10, 0, 10, 20]
    assert AXES["condition"].points(1, 1e6, 3) == pytest.approx([1, 1e3, 1e6])
    assert AXES["k"].points(7, 7, 1) == [7]


def test_a_point_is_the_error_of_the_method_with_its_spread(capsys):
    assert main([*WORDS.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (point,) = [p for p in found["points"] if (p["label"], p["x"]) == ("fp16@a100", 32)]
    pairs = [generate("uniform_symmetric", 5, 32, 7, seed) for seed in (0, 1)]
    errors = [
        mpgemm.errors(mpgemm.recovered_gemm(a, b, None, "fp16", "a100"), a, b).relative_frobenius for a, b in pairs
    ]
    assert (point["low"], point["high"]) == (min(errors), max(errors)) and point["seeds"] == 2
    assert point["error"] == pytest.approx(sum(errors) / 2, rel=1e-12)  # the median of two
    assert len(found["points"]) == 6 and found["over"] == "k"


def test_the_files_are_pictures_and_the_points(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main([*WORDS.split(), "--figure-format", "png", "svg", "--out", str(tmp_path)]) == 0
    assert "written to" in capsys.readouterr().out
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    picture = (tmp_path / "curve.svg").read_text()
    assert "<svg" in picture and "fp16@a100" in picture
    rows = list(csv.DictReader(io.StringIO((tmp_path / "curve.csv").read_text())))
    assert [float(row["x"]) for row in rows if row["method"] == "fp32"] == [16, 32, 64]
    assert json.loads((tmp_path / "curve.json").read_text())["seeds"] == 2


def test_the_band_is_drawn_from_the_smallest_to_the_largest():
    pytest.importorskip("matplotlib")
    from mpgemm.reporting.plots import Curve, curves

    figure = curves([Curve("a", [1, 2], [2.0, 4.0], "-", [1.0, 3.0], [3.0, 8.0])], "t", "x", "y")
    (band,) = figure.axes[0].collections
    heights = np.array(band.get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == (1, 8)


def test_engines_share_colours_and_methods_styles():
    found = _looks(["markidis@v100", "ootomo@v100", "markidis@h100", "fp32"])
    assert found == {
        "markidis@v100": ("-", 0, 0), "ootomo@v100": ("--", 0, 1), "markidis@h100": ("-", 1, 0), "fp32": ("-", 2, 2)
    }  # fmt: skip
    assert _looks(["a@h100", "b@h100"]) == {"a@h100": ("-", 0, 0), "b@h100": ("-", 1, 1)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--over depth 1 2", "the axis depth, expected one of k, exponent, condition"),
        ("--over k 64 16", "expected two numbers of at least 1, the smaller first"),
        ("--over k 1.5 3", "expected two integers"),
        ("--over k 0 3", "expected two numbers of at least 1"),
        ("--over k a 3", "--over got 'LOW=a', expected KEY=NUMBER"),
        ("--over exponent 0 3 --distribution normal", "'normal' has no parameter 'exponent' for --over"),
        ("--over exponent 0 3 --param exponent=1", "got --param exponent, which --over exponent varies"),
        ("--over k 1 2 --points 0", "at least 1 point"),
        ("--over k 1 2 --repeats 0", "--repeats must be at least 1"),
        ("--over k 1 2 --methods nonsense@h100", "nonsense"),
    ],
)
def test_bad_axes_are_refused_in_one_line(words, message, capsys):
    assert main(["curve", *words.split()]) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1


def test_one_verdict_for_each_method_beside_fp32(capsys):
    """Markidis' method loses bits with k on V100; seeds are enough to say so, and one is said to be too few."""
    words = "curve --over k 16 1024 --points 3 --methods markidis@v100 bf16x9:restart_every=16@h100 fp32 --shape 8 16 8"
    assert main([*words.split(), "--repeats", "4"]) == 0
    out = capsys.readouterr().out
    assert "95% interval, Student's t over seeds (4), paired" in out and "median of 4 seeds" in out
    (line,) = re.findall(
        r"^markidis@v100: less accurate at k = 16 to 1024; [\d.]+ bits less at the end \(.*\)\.$", out, re.M
    )
    assert "bf16x9:restart_every=16@h100: as accurate at k = " in out
    assert main([*words.split(), "--repeats", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert all(point["interval"] is None for point in data["points"])
    assert main([*words.split(), "--repeats", "2"]) == 0
    assert "2 seeds, no interval" in capsys.readouterr().out


def test_bounds_are_drawn_as_far_as_they_hold(capsys):
    """The line of a method is its bound on the first seed; where it promises nothing it stops, and the label says so."""
    words = "curve --over k 16 16384 --points 3 --repeats 1 --methods fp8@h100 fp32 fp64 --shape 4 16 4 --distribution normal"
    assert main([*words.split(), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    fp8, fp32, fp64 = data["bounds"]
    assert (
        fp8["values"][-1] == "nan" and "because no digit is certain" in fp8["label"] and "stops at k = " in fp8["label"]
    )
    for line, kind in ((fp32, "99%"), (fp64, "certain")):
        assert "nan" not in line["values"] and line["reason"] == "" and f"bound ({kind})" in line["label"]
    for k, value in zip((16, 512, 16384), fp32["values"], strict=True):
        a, b = generate("normal", 4, k, 4, 0)
        row = replace(mpgemm.get_method("fp32"), accumulation="blocks", restart_every=256)
        bound, exact = likely_bound(a, b, None, row, "ieee"), mpgemm.exact_gemm(a, b).rounded("fp64")
        assert value == pytest.approx(np.linalg.norm(bound) / np.linalg.norm(exact), rel=1e-9)
    errors = [point["error"] for point in data["points"] if point["method"] == "fp32"]
    assert all(error < value for error, value in zip(errors, fp32["values"], strict=True))
    assert main([*words.split(), "--no-bounds"]) == 0
    assert "ound" not in capsys.readouterr().out


def test_methods_of_the_cube_are_drawn_with_their_certain_bound(capsys):
    """Theirs is by norms, the one that their results are held against."""
    words = "curve --over k 16 64 --points 2 --repeats 1 --shape 4 1 4 --methods sgemm_cube fp16 --json"
    assert main(words.split()) == 0
    data = json.loads(capsys.readouterr().out)
    errors = {}
    for point in data["points"]:
        errors.setdefault(point["method"], []).append(point["error"])
    assert len(data["bounds"]) == 9
    for line in data["bounds"]:
        assert "bound (certain)" in line["label"] and not line["reason"]
        assert all(error < bound < 1 for error, bound in zip(errors[line["method"]], line["values"], strict=True))


def test_a_device_means_the_path_that_runs_the_method(capsys):
    """Only tcgen05 scales its accumulator; the name says so, in `compare`, too."""
    words = ["--methods", "cutlass_bf16x9@b200", "fp32", "--shape", "2", "16", "2"]
    assert main(["curve", "--over", "k", "16", "16", "--points", "1", *words, "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert points[0]["label"] == "cutlass_bf16x9@b200/tcgen05" and "tcgen05" in points[0]["method"]
    found = mpgemm.compare(["cutlass_bf16x9"], ["b200"], np.ones((2, 16), np.float32), np.ones((16, 2), np.float32))
    assert [row.requested for row in found] == ["b200/tcgen05"] and found[0].rate is not None


def test_an_engine_that_does_not_run_its_method_ends_no_curve(capsys):
    line = ["curve", "--over", "k", "16", "16", "--points", "1", "--shape", "2", "16", "2", "--methods"]
    assert main([*line, "cutlass_bf16x9@h100", "fp16@h100"]) == 0
    shown = capsys.readouterr().out
    assert "Left out: cutlass_bf16x9@h100: " in shown and "fp16@h100" in shown
    assert main([*line, "cutlass_bf16x9@h100", "fp16@h100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["left_out"]) == ["cutlass_bf16x9@h100"] and {p["label"] for p in found["points"]} == {"fp16@h100"}
    assert main([*line, "cutlass_bf16x9@h100"]) == 2
    assert "scales its accumulator input" in capsys.readouterr().err
