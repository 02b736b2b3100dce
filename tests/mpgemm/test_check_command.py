"""`mpgemm check`: attention, grouped products, tensors by name, encodings, and pictures of where a result is wrong."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.cli import main

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
UNIT = tcm.default_instruction("h100", "e4m3fn", path="wgmma")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of a right and of a wrong product, of experts, and of attention."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((48, 256)).astype(E4M3), rng.standard_normal((256, 40)).astype(E4M3)
    d = UNIT.gemm(a, b, promote_every=128).astype(np.float32)
    np.save(folder / "A.npy", a)
    np.save(folder / "B.npy", b)
    np.savez(folder / "both.npz", x=a, w=b)
    np.save(folder / "raw.npy", a.view(np.uint8))
    np.save(folder / "right.npy", d)
    wrong = d.copy()
    wrong[16:32] = 0
    np.save(folder / "wrong.npy", wrong)
    experts = rng.standard_normal((2, 256, 24)).astype(E4M3)
    np.save(folder / "experts.npy", experts)
    ends = [20, 48]
    out = np.concatenate([UNIT.gemm(a[:20], experts[0]), UNIT.gemm(a[20:], experts[1])]).astype(np.float32)
    np.save(folder / "grouped.npy", out)
    out[20:24] = UNIT.gemm(a[20:24], experts[0])
    np.save(folder / "late.npy", out)
    assert ends[-1] == len(a)
    q, k, v = (rng.standard_normal((2, 40, 16)).astype(np.float16) for _ in range(3))
    s = np.einsum("hqd,hkd->hqk", q.astype(np.float64), k.astype(np.float64)) / 4
    p = np.exp(s - s.max(2, keepdims=True)) * np.tril(np.ones((40, 40)))
    attention = np.einsum("hqk,hkd->hqd", p / p.sum(2, keepdims=True), v.astype(np.float64)).astype(np.float16)
    for name, x in {"q": q, "k": k, "v": v, "attention": attention, "rolled": np.roll(attention, 1, 1)}.items():
        np.save(folder / f"{name}.npy", x)
    return folder


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(capsys, *words):
    status = main(["check", *words, "--json"])
    return status, json.loads(capsys.readouterr().out)


ORDER = ["--operands", "e4m3fn", "--promote-every", "128"]


def test_operands_of_two_formats_are_a_gradient_and_a_weight(files, capsys, tmp_path):
    rng = np.random.default_rng(1)
    gradient, weight = rng.standard_normal((24, 128)).astype(ml_dtypes.float8_e5m2), np.load(files / "B.npy")[:128]
    unit = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e5m2.e4m3")
    for name, array in (("G", gradient.view(np.uint8)), ("W", weight), ("out", unit.gemm(gradient, weight.view(E4M3)))):
        np.save(tmp_path / f"{name}.npy", array.astype(BF16) if name == "out" else array)
    words = [str(tmp_path / f"{name}.npy") for name in ("out", "G", "W")]
    assert checked(capsys, *words, "--operands", "e5m2,e4m3fn", "--out-format", "bf16")[0] == 0
    assert checked(capsys, *words, "--operands", "e5m2", "--out-format", "bf16")[0] == 1


@pytest.mark.parametrize("operands", [("A.npy", "B.npy"), ("both.npz:x", "both.npz:w"), ("raw.npy", "B.npy")])
def test_operands_as_files_have_them(files, capsys, operands):
    status, found = checked(capsys, "right.npy", *operands, *ORDER)
    assert status == 0 and found["passes"] and found["plots"] == []


def test_a_picture_of_where(files, capsys):
    pytest.importorskip("matplotlib")
    status, found = checked(capsys, "wrong.npy", "A.npy", "B.npy", *ORDER, "--plot", "where.png")
    assert status == 1 and found["place"] == "rows 16 to 31, all columns" and found["plots"] == ["where.png"]
    assert (files / "where.png").read_bytes().startswith(b"\x89PNG")
    status, found = checked(capsys, "right.npy", "A.npy", "B.npy", *ORDER, "--plot", "none.svg")
    assert status == 0 and found["plots"] == ["none.svg"] and (files / "none.svg").exists()
    assert main(["check", "right.npy", "A.npy", "B.npy", *ORDER, "--plot", "x.txt"]) == 2
    assert "expected a figure's name that ends in" in capsys.readouterr().err


def test_the_picture_marks_the_wrong_elements():
    pytest.importorskip("matplotlib")
    from mpgemm.reporting.plots import wrong_elements

    outside = np.zeros((1000, 40), bool)
    outside[501, 7] = True  # one of a block of two
    figure = wrong_elements(outside, "one element")
    (axes,) = figure.axes
    shown = np.asarray(axes.images[0].get_array())
    assert shown.shape == (500, 40) and np.argwhere(shown).tolist() == [[250, 7]] and axes.images[0].get_cmap().N == 2
    assert axes.get_title() == "one element"
    assert [text.get_text() for text in figure.legends[0].get_texts()][0] == "right"
    assert "2 x 1" in figure.legends[0].get_texts()[1].get_text()


def test_grouped(files, capsys):
    words = ["A.npy", "experts.npy", "--operands", "e4m3fn", "--ends", "20", "48"]
    status, found = checked(capsys, "grouped.npy", *words)
    assert status == 0 and found["allowed"] == ["passes: every element is right in 2 groups"]
    status, found = checked(capsys, "grouped.npy", *words, "--rows", "3")
    assert status == 0 and found["allowed"] == [
        "passes: 72 of 1152 elements were checked, and all are right in 2 groups"
    ]
    status, found = checked(capsys, "late.npy", *words)
    assert status == 1 and found["place"] == "rows 20 to 23, all columns"
    assert "the kernel takes the boundary to be at row 24" in found["suspects"][0]


def test_attention(files, capsys):
    operands = ["--attention", "q.npy", "k.npy", "v.npy", "--causal"]
    status, found = checked(capsys, "attention.npy", *operands)
    assert status == 0 and "causal attention" in found["allowed"][0]
    status, found = checked(capsys, "rolled.npy", *operands, "--kv-tile", "32", "--softmax-scale", "0.25")
    assert status == 1 and "queries are rolled" in found["suspects"][0]
    status, found = checked(capsys, "attention.npy", *operands, "--window", "4", "0")
    assert status == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["right.npy", "A.npy", "B.npy"], "|V1, which NumPy writes"),
        (["right.npy", "raw.npy", "raw.npy"], "give --operands e4m3fn"),
        (["right.npy", "A.npy", "B.npy", "--operands", "e5m2,e4m3fn,bf16"], "expected one format or two, as in"),
        (
            ["right.npy", "A.npy", "B.npy", "--operands", "e5m2,e4m3fn", "--input-rounding", "rne"],
            "expected one format (with",
        ),
        (["right.npy", "both.npz", "B.npy", "--operands", "e4m3fn"], "holds 2 arrays, expected one: name one of x, w"),
        (["right.npy"], "give the files of A and B, or --attention"),
        (["right.npy", "A.npy", "B.npy", "--causal"], "--causal goes with --attention"),
        (["a.npy", "A.npy", "B.npy", "--attention", "q.npy", "k.npy", "v.npy"], "A and B go without --attention"),
        (["a.npy", "--c", "A.npy", "--attention", "q.npy", "k.npy", "v.npy"], "--c goes without --attention"),
        (["grouped.npy", "A.npy", "experts.npy", "--operands", "e4m3fn", "--ends", "20", "49"], "from 0 to at most 48"),
        (
            ["grouped.npy", "A.npy", "experts.npy", "--ends", "20", "48", "--zero-a", "3"],
            "--zero-a goes without --ends",
        ),
    ],
)
def test_bad_input_is_one_line(files, capsys, words, message):
    assert main(["check", *words]) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1
