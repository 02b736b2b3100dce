"""`mpgemm read`: what a kernel computes, and whether two are equal; bad input ends in one line."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from ptx_cases import FOLDER

from mpgemm.cli import main
from tensorcore_models import compiled

ARGUMENTS = ["--arguments", "bf16:32x64", "bf16:64x32", "fp32:32x32", "32", "32", "64"]
AMD = str(FOLDER.parent / "amdgcn" / "bf16-kept.s")
KEPT, FOLDED = (str(FOLDER / f"sm_80-bf16-{name}.ptx") for name in ("kept", "folded"))


def test_a_promotion_is_told(capsys):
    assert main(["read", KEPT, *ARGUMENTS]) == 0
    told = capsys.readouterr().out
    assert "chain of ampere:mma.m16n8k16.f32.bf16.bf16.f32" in told and "k 0:32 + k 32:64" in told
    assert main(["read", FOLDED, *ARGUMENTS, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (
        facts["kernel"] == "gemm"
        and facts["rows"][0]["elements"] == 1024
        and "k 0:64" in facts["rows"][0]["expression"]
    )


def test_the_order_of_k_of_an_amd_kernel_is_told(capsys):
    kernel = str(FOLDER.parent / "amdgcn" / "fp16-kpack2.s")
    assert main(["read", kernel, "--arguments", "fp16:64x32", "fp16:32x64", "fp32:64x64", "64", "64", "32"]) == 0
    assert "k 0:4, 8:12, 4:8, 12:20" in capsys.readouterr().out
    assert main(["read", kernel]) == 0
    assert "gemm for gfx942" in capsys.readouterr().out


def test_two_kernels(capsys):
    assert main(["read", KEPT, FOLDED, *ARGUMENTS, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "different"
    assert main(["read", KEPT, KEPT, *ARGUMENTS]) == 0
    assert capsys.readouterr().out.startswith("equal: ")


def test_the_output_is_written(tmp_path):
    rng, names = np.random.default_rng(0), []
    a, b = (rng.integers(0x3F00, 0x4000, shape).astype(np.uint16) for shape in ((32, 64), (64, 32)))
    for name, array in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", array)
        names.append(str(tmp_path / f"{name}.npy"))
    assert (
        main(["read", KEPT, "--arguments", *names, "fp32:32x32", "32", "32", "64", "--out", str(tmp_path / "c.npy")])
        == 0
    )
    c = np.zeros((32, 32), np.float32)
    compiled.read(KEPT).run([a, b, c, 32, 32, 64])
    assert np.array_equal(np.load(tmp_path / "c.npy"), c)


CONTRACTED = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry square(.param .u64 x, .param .u64 y) .reqntid 32
{ .reg .b32 %r<3>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3; ld.global.f32 %f1, [%rd4]; mul.f32 %f2, %f1, %f1; add.f32 %f3, %f2, %f1; st.global.f32 [%rd5], %f3;
  ret; }
"""


def test_contraction_and_rows_are_obeyed(tmp_path, capsys):
    """x x + x by one multiply-add, as ptxas does it, and by two roundings; one of four rows."""
    kernel, x = tmp_path / "square.ptx", np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    kernel.write_text(CONTRACTED)
    np.save(tmp_path / "x.npy", x)
    found = {}
    for word in ("true", "false"):
        out = tmp_path / f"{word}.npy"
        words = [
            str(kernel),
            "--arguments",
            str(tmp_path / "x.npy"),
            "fp32:4x8",
            "--fmad",
            word,
            "--json",
            "--out",
            str(out),
        ]
        assert main(["read", *words, "--rows", "2"]) == 0
        facts = json.loads(capsys.readouterr().out)
        found[word] = np.load(out)
        assert facts["rows"][0]["elements"] == 8 and "param_0[2, j]" in facts["rows"][0]["expression"].replace(
            "x[", "param_0["
        )
    wide = x.astype(np.float64)
    assert (found["true"] == (wide * wide + wide).astype(np.float32)).all()
    assert (found["false"] == x * x + x).all() and (found["true"] != found["false"]).any()
    words = [str(kernel), str(kernel), "--arguments", "fp32:4x8", "fp32:4x8", "--fmad", "false"]
    assert main(["read", *words]) == 0


def test_a_kernel_without_arguments(capsys):
    assert main(["read", KEPT]) == 0
    told = capsys.readouterr().out
    assert "gemm for sm_80" in told and " param_0 (8 bytes)" in told and "instructions without a model: none" in told


@pytest.mark.parametrize(("words", "match"), [
    ([KEPT, "--grid", "2", "--out", "c.npy"], "--out needs --arguments"),
    ([KEPT, KEPT, KEPT], "got 3 kernels, expected one to read or two"),
    ([KEPT, "--other-grid", "2"], "--other-grid is the grid of a second kernel"),
    ([KEPT, "--arguments", "what"], "expected FORMAT:SHAPE"),
    ([KEPT, "--arguments", "bf16:32x64"], "in none of the arguments; gemm_param_1, gemm_param_2, gemm_param_6"),
    ([KEPT, KEPT, *ARGUMENTS, "--out", "c.npy"], "takes one kernel, got two"),
    ([KEPT, *ARGUMENTS, "--output", "7"], "output is 7, expected the index of an argument, 0 to 5"),
    ([KEPT, KEPT, *ARGUMENTS, "--rows", "0"], "takes one kernel, got two"),
    ([KEPT, *ARGUMENTS, "--rows", "32"], "rows must be from 0 to 31, got [32]"),
    ([KEPT, "--rows", "1"], "--rows needs --arguments"),
    ([KEPT, "--fmad", "false"], "--fmad needs --arguments"),
    ([AMD, *ARGUMENTS, "--fmad", "false"], "fmad"),
    (["none.ptx"], "none.ptx"),
    ([KEPT, "--entry", "other"], "unknown entry 'other'"),
])  # fmt: skip
def test_bad_input_is_one_line(words, match, capsys):
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["read", *words]))
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert match in error and error.count("\n") <= 2


def test_a_page_and_a_picture(tmp_path, capsys):
    """The page has the code with the lines that the expression names, the expression and its pictures; all well-formed."""
    page, picture = tmp_path / "kernel.html", tmp_path / "kernel.svg"
    assert main(["read", KEPT, *ARGUMENTS, "--html", str(page), "--picture", str(picture)]) == 0
    drawn = ElementTree.fromstring(picture.read_text())
    labels = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert labels.count("add.f32") == 2 and {"k 0:32", "k 32:64", "chain"} <= set(labels)
    text = page.read_text()
    assert text.count("<svg") == 2 and "order of k" in capsys.readouterr().out
    marked = re.findall(r'<mark id="L(\d+)">.*?(mma\.sync|add\.f32)', text)
    assert {word for _, word in marked} == {"mma.sync", "add.f32"}
    assert set(re.findall(r'href="#L(\d+)"', text)) <= {line for line, _ in marked}


@pytest.mark.parametrize(("words", "match"), [
    ([KEPT, "--html", "x.html"], "--html needs --arguments"),
    ([KEPT, KEPT, *ARGUMENTS, "--picture", "x.svg"], "--picture takes one kernel"),
    ([KEPT, *ARGUMENTS, "--picture", "x.png"], "ends in .svg"),
])  # fmt: skip
def test_pages_that_cannot_be_written(words, match, capsys):
    assert main(["read", *words]) == 2
    assert match in capsys.readouterr().err
