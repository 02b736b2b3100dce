"""The command as a user runs it: output, files, exit status and one line for bad input."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mpgemm.cli import main
from mpgemm.experiments.methods import build_methods


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "a.npy", rng.standard_normal((6, 20)).astype(np.float32))
    np.save(tmp_path / "b.npy", rng.standard_normal((20, 5)).astype(np.float32))
    return tmp_path / "a.npy", tmp_path / "b.npy"


def test_two_files_to_a_folder(files, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["evaluate", *map(str, files), "--out", str(out), "--verify", "4"]) == 0
    printed = capsys.readouterr()
    assert "SGEMM-cube termwise, s_b = 12" in printed.out
    assert "Verdict: " in printed.out and "relative_frobenius exact" in printed.out
    assert "4 of 4 sampled entries of the exact product agree with mpmath" in printed.out
    assert printed.err == ""
    assert sorted(p.name for p in out.iterdir()) == [
        "errors.png",
        "exponents.png",
        "journal.jsonl",
        "results.csv",
        "results.json",
    ]
    result = json.loads((out / "results.json").read_text(), parse_constant=pytest.fail)
    assert len(result["records"]) == len(result["summaries"]) == 27
    assert result["inputs"][0]["verdict"]["text"][0].startswith("Verdict: ")
    assert result["schema"] == 3 and result["command"][0] == "evaluate"
    assert result["environment"]["numpy"] == np.__version__
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == [row["method"] for row in result["summaries"]]
    assert float(rows[0]["relative_frobenius"]) == result["summaries"][0]["relative_frobenius"]


@pytest.mark.parametrize("count", [1, 2])
def test_matrices_by_name_from_one_file(tmp_path, count, capsys):
    path = tmp_path / "w.npz"
    np.savez(path, left=np.ones((2, 3)), right=np.ones((3, 4)), other=np.ones(1))
    arguments = [str(path)] * count + ["--a-name", "left", "--b-name", "right", "--methods", "fp32", "--json"]
    assert main(["evaluate", *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["records"][0]["errors"]["n"] == 4


def test_the_default_is_the_shipped_pairs(capsys):
    assert main(["evaluate", "--json", "--methods", "fp32"]) == 0
    result = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [row["case"] for row in result["inputs"]] == ["shipped:digits", "shipped:diffusion"]


def test_generated_input_with_parameters(capsys):
    arguments = ["--distribution", "uniform_nonnegative", "--param", "exponent=-6", "--shape", "8", "16", "4"]
    arguments += ["--workers", "2", "--repeats", "3", "--scale-exponents", "3", "auto", "--orders", "termwise"]
    assert main(["evaluate", *arguments]) == 0
    out = capsys.readouterr().out
    assert "uniform_nonnegative(exponent=-6) 8x16x4, 3 seeds: median (smallest to largest) of the bits" in out
    assert "s_b = 3" in out


def test_nonfinite_files_are_reported_not_fatal(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.array([[np.inf, 1.0], [np.nan, 7e4]]))
    np.save(tmp_path / "b.npy", np.eye(2))
    assert main(["evaluate", str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]) == 0
    out = capsys.readouterr().out
    assert "Lost elements of A: 1 beyond 65504 and 2 infinite or NaN" in out


@pytest.mark.sweep(1)
@pytest.mark.parametrize("shapes", [((0, 4), (4, 3)), ((3, 0), (0, 3)), ((3, 4), (4, 0))])
def test_empty_files(tmp_path, shapes, capsys):
    for name, shape in zip("ab", shapes, strict=True):
        np.save(tmp_path / f"{name}.npy", np.zeros(shape, np.float32))
    out = tmp_path / "out"
    assert main(["evaluate", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "--out", str(out)]) == 0
    assert ("No verdict" in capsys.readouterr().out) == (shapes[0][0] * shapes[1][1] == 0)


BAD = {
    "one file": (["a.npy"], "got 1 matrix file(s), expected two"),
    "missing": (["a.npy", "none.npy"], "none.npy: no such file"),
    "suffix": (["a.npy", "x.txt"], "the suffix '.txt', expected the suffix of a matrix format: .npy"),
    "truncated": (["a.npy", "cut.npy"], "cannot be read as a .npy file"),
    "rank": (["a.npy", "vector.npy"], "has shape (5,), expected 2 dimensions"),
    "objects": (["a.npy", "object.npy"], "cannot be read as a .npy file of numbers"),
    "complex": (["a.npy", "complex.npy"], "real numbers"),
    "strings": (["a.npy", "text.npy"], "real numbers"),
    "shapes": (["a.npy", "a.npy"], "expected a B with 20 rows, one for each column of A"),
    "distribution": (["--distribution", "x"], "unknown distribution 'x', expected one of uniform_symmetric"),
    "parameter": (["--distribution", "normal", "--param", "x=1"], "no parameter 'x', expected one of: mean, deviation"),
    "parameter value": (["--distribution", "normal", "--param", "mean=x"], "expected KEY=NUMBER"),
    "parameter alone": (["--param", "mean=1"], "--param goes with --distribution"),
    "shape": (["--distribution", "normal", "--shape", "-1", "2", "3"], "must not be negative"),
    "shipped": (["--shipped", "x"], "unknown shipped pair 'x', expected one of digits"),
    "two inputs": (["--shipped", "digits", "--distribution", "normal"], "expected one kind of input"),
    "method": (["--methods", "x"], "unknown method 'x'; known: fp16"),
    "engine": (["--engine", "x:y"], "known"),
    "scale": (["--scale-exponents", "x"], 'an integer or "auto"'),
    "order": (["--orders", "x"], "invalid choice: 'x'"),
    "figure": (["--figure", "8a"], "--figure was removed; use mpgemm reproduce"),
    "option": (["--nonsense"], "unrecognized arguments: --nonsense"),
    "repeats": (["--repeats", "0"], "--repeats must be at least 1"),
    "verify": (["--verify", "0"], "--verify must be at least 1"),
    "workers": (["--workers", "0"], "--workers must be at least 1"),
    "block": (["--block", "176,64"], "a block is BM,BK,BN"),
    "block size": (["--block", "7,64,176", "--methods", "fp16"], "multiple of 16"),
    "names": (["--a-name", "x"], "--a-name goes with two matrix files"),
    "out": (["--out", "a.npy"], "is not a folder"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_status_2(files, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").touch()
    (tmp_path / "cut.npy").write_bytes(files[0].read_bytes()[:100])
    np.save("vector.npy", np.ones(5))
    np.save("object.npy", np.array([[None]]), allow_pickle=True)
    np.save("complex.npy", np.ones((20, 5), complex))
    np.save("text.npy", np.full((20, 5), "x"))
    arguments, message = BAD[name]
    try:
        status = main(["evaluate", *arguments])
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert status == 2
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_an_unknown_command_is_one_line(capsys):
    for arguments in ([""], ["nonsense"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit):
        main(["evaluat", "A.npy", "B.npy"])
    assert "no such command; did you mean evaluate?" in capsys.readouterr().err


#: The command line with Ctrl-C at work: a process that a shell starts in the background, and its children, ignore it.
INTERRUPTIBLE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from mpgemm.cli import main; sys.exit(main())"
)


@contextlib.contextmanager
def started(command):
    """A process that does not outlive its test, whatever fails there."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.sweep(1)
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("ignored", [False, True], ids=["foreground", "background"])
def test_interrupt_keeps_what_is_finished_and_resumes(tmp_path, ignored):  # 2 s: two processes, one of them whole
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else signal.getsignal(signal.SIGINT)
    try:
        interrupt_and_resume(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt_and_resume(tmp_path):
    command = [
        sys.executable,
        "-c",
        INTERRUPTIBLE,
        "evaluate",
        "--distribution",
        "normal",
        "--shape",
        "64",
        "400",
        "64",
        "--repeats",
        "20000",
        "--methods",
        "fp16_accumulate",
        "fp32",
        "--step-orders",
        "exact",
        "--out",
        str(tmp_path),
        "--no-figures",
    ]
    journal = tmp_path / "journal.jsonl"
    with started(command) as process:
        deadline = time.monotonic() + 60
        while not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command resumes" in err
    assert "Traceback" not in err
    kept = journal.read_bytes()
    assert 3 <= kept.count(b"\n") < 40_000
    seeds = kept.count(b"\n") // 2 + 1
    command[command.index("--repeats") + 1] = str(seeds)
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    assert journal.read_bytes().startswith(kept)
    assert journal.read_bytes().count(b"\n") == 2 * seeds


def test_default_methods_that_add_no_c_are_left_out_and_named(files, tmp_path, capsys):
    a, b = map(np.load, files)
    c = np.linspace(-3, 3, 30).reshape(6, 5)
    np.save(tmp_path / "c.npy", c)
    assert main(["evaluate", *map(str, files), "--c", str(tmp_path / "c.npy"), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.strip().endswith(
        "left out, because they cannot add C: fp16, fp16_accumulate, hf32, sgemm_cube, sgemm_cube_scaled"
    )
    records = json.loads(printed.out)["records"]
    assert [record["method"] for record in records] == ["fp32", "fp32_numpy", "fp32_chain", "fp64"]
    assert all(0 < record["errors"]["relative_frobenius"] < 2.0**-20 for record in records[:3])
    product = next(method for method in build_methods(["fp64"])).multiply(a, b, c)
    assert np.array_equal(product, a.astype(np.float64) @ b.astype(np.float64) + c)
    with_engine = ["evaluate", *map(str, files), "--c", str(tmp_path / "c.npy"), "--engine", "a100"]
    assert (
        main(with_engine) == 2
        and "got a C, which these methods cannot add to a product: engine:" in capsys.readouterr().err
    )
