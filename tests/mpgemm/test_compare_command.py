"""The commands around comparisons: compare with its journal, explain, models, and options that are obeyed or refused."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import mpgemm
from mpgemm.bounds.attribution import PARTS
from mpgemm.cli import main
from mpgemm.experiments.comparison import compare
from mpgemm.experiments.journal import Journal

SMALL = ["compare", "--methods", "fp16", "ootomo", "--engines", "a100", "h100", "--shape", "6", "20", "5"]


def test_command_prints_a_table(capsys):
    assert main([*SMALL, "--bounds", "--distributions", "normal", "ootomo_type3"]) == 0
    out = capsys.readouterr().out
    assert out.count("ampere:mma.m16n8k16.f32.f16.f16.f32") == 4 and "exponents uniform in [-35, -15]" in out


def test_command_adds_c(tmp_path, capsys):
    """The same errors as Python's compare on the same three matrices, from a file and from a distribution."""
    from mpgemm.inputs.matrices import generate, generate_addend

    a, b = generate("normal", 6, 20, 5, 3)
    for c, text in (
        (np.linspace(-1, 1, 30).reshape(6, 5), str(tmp_path / "c.npy")),
        (generate_addend("decades", 6, 5, 3), "decades"),
    ):
        if text != "decades":
            np.save(text, c)
        arguments = [*SMALL, "--distributions", "normal", "--seed", "3", "--bounds", "--json", "--c", text]
        assert main(arguments) == 0
        rows = json.loads(capsys.readouterr().out)["records"]
        expected = compare(["fp16", "ootomo"], ["a100", "h100"], a, b, c, bounds=True)
        assert all(row["componentwise"] <= row["bound"] for row in rows)
        assert [row["componentwise"] for row in rows] == [r.errors.componentwise for r in expected]
        assert [row["bound"] for row in rows] == [r.bound for r in expected]
        plain = compare(["fp16"], ["a100"], a, b, bounds=True)
        assert rows[0]["bound"] != plain[0].bound and "+ " in rows[0]["case"]


def test_an_addend_that_float32_lacks_is_noted(tmp_path, capsys):
    np.save(tmp_path / "c.npy", np.full((61, 61), 0.1))
    arguments = ["compare", "--methods", "fp16", "--engines", "a100", "--shipped", "digits"]
    assert main([*arguments, "--c", str(tmp_path / "c.npy")]) == 0
    assert "FP32 cannot hold 3721 of 3721 elements of C" in capsys.readouterr().out
    assert main([*arguments, "--c", "normal", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"][0]["case"] == "shipped:digits + normal"


def test_command_writes_and_resumes(tmp_path, capsys):
    out = tmp_path / "o"
    assert main([*SMALL, "--out", str(out), "--json"]) == 0
    first = capsys.readouterr().out
    lines = (out / "journal.jsonl").read_text().splitlines()
    assert len(lines) == 12 and {p.name for p in out.iterdir()} == {
        "comparison.json",
        "comparison.csv",
        "comparison.png",
        "journal.jsonl",
    }
    (out / "journal.jsonl").write_text("\n".join(lines[:5]) + "\n" + lines[5][:40])  # killed while writing
    assert main([*SMALL, "--out", str(out), "--json", "--no-figures"]) == 0
    second = capsys.readouterr().out
    again = (out / "journal.jsonl").read_text().splitlines()
    assert again[:5] == lines[:5] and len(again) == 12
    records = [json.loads(text)["records"] for text in (first, second, (out / "comparison.json").read_text())]
    assert records[0] == records[1] == records[2]


def test_killed_runs_keep_what_is_finished(tmp_path):
    """SIGKILL in the middle: the next run adds only what is missing."""
    arguments = [
        "compare",
        "--methods",
        "fp16",
        "ootomo",
        "egemm",
        "--engines",
        "a100",
        "--shape",
        "60",
        "300",
        "60",
        "--repeats",
        "8",
        "--distributions",
        "normal",
        "--out",
        str(tmp_path),
        "--json",
        "--no-figures",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "mpgemm", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    journal = tmp_path / "journal.jsonl"
    deadline = time.monotonic() + 60
    while (
        time.monotonic() < deadline
        and process.poll() is None
        and not (journal.exists() and journal.read_text().count("\n") >= 2)
    ):
        time.sleep(0.01)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_text().splitlines()
    assert main(arguments) == 0
    after = journal.read_text().splitlines()
    whole = [line for line in before if line.endswith("}")]
    assert len(before) >= 2 and after[: len(whole)] == whole and len(after) == len(Journal(journal)) == 40


def test_command_with_workers_and_csv(capsys):
    assert main([*SMALL, "--workers", "2", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "--methods", "otomo"], "did you mean"),
        (["compare", "--engines", "a101"], "did you mean"),
        (["compare", "--methods", "bf16x3", "--engines", "v100"], "engines that run it"),
        (["compare", "--workers", "0"], "at least 1"),
        (["compare", "--json", "--csv"], "--csv goes without --json"),
        (["compare", "--repeats", "0"], "at least 1"),
        (["compare", "--files", "missing.npy", "missing.npy"], "missing.npy"),
        (
            ["compare", "--strict", "--distributions", "ootomo_type4", "--methods", "fp16", "--shape", "4", "4", "4"],
            "underflow",
        ),
        (["compare", "--c", "nonsense"], "expected a matrix file (a name with a suffix) or one of"),
        (["compare", "--c", "missing.npy"], "missing.npy"),
        (["explain", "--c", "normal"], "got 'normal', expected a number"),
        (["explain", "--distribution", "normal", "--c", "nonsense"], "expected a matrix file"),
        (["explain", "ootomo:terms=9"], "expected one of 3, 4"),
        (["explain", "--a", "1", "2"], "--a goes with --b"),
        (["explain", "--a", "1", "--b", "1", "2"], "two vectors"),
        (["explain", "--distribution", "normal", "--element", "-1", "0"], "outside"),
        (["models", "nowhere"], "unknown name 'nowhere'"),
        (["models", "--a-format", "fp17"], "unknown format"),
        (["models", "--methods", "--devices"], "--methods goes without --devices"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1


def test_explain(capsys):
    assert main(["explain", "markidis:rounding=rne", "--engine", "v100"]) == 0
    assert "0x3f800001" in capsys.readouterr().out
    assert main(["explain", "ootomo", "--distribution", "normal", "--k", "20", "--element", "1", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["attribution"]["parts"].keys() == set(PARTS)
    arguments = ["explain", "ootomo", "--distribution", "normal", "--k", "20", "--element", "1", "2", "--json"]
    assert main([*arguments, "--c", "normal"]) == 0
    added = json.loads(capsys.readouterr().out)
    assert added["attribution"]["exact"] != found["attribution"]["exact"]
    c = mpgemm.inputs.matrices.generate_addend("normal", 2, 3)[1, 2]
    assert main([*arguments, "--c", repr(float(c))]) == 0
    assert json.loads(capsys.readouterr().out)["attribution"] == added["attribution"]
    assert main(["explain", "fp16", "--a", "1", "2", "--b", "3", "4", "--c", "0.5", "--attribution-only"]) == 0
    assert "exactly the total" in capsys.readouterr().out


def test_models(capsys):
    assert main(["models", "h100", "--a-format", "fp16", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert (
        rows
        and {row["a_format"] for row in rows} == {"fp16"}
        and all(row["source"] and row["evidence"] for row in rows)
    )
    assert main(["models", "hopper:mma.m16n8k16.f32.f16.f16.f32"]) == 0
    assert "fraction_bits=25" in capsys.readouterr().out
    assert main(["models", "--methods"]) == 0
    assert "ozaki2_int8" in capsys.readouterr().out
    assert main(["models", "--devices"]) == 0
    assert "mi300x" in capsys.readouterr().out


def test_fp32_beside_c(capsys):
    assert main([*SMALL, "--distributions", "normal", "--c", "normal", "--json", "--bits", "12"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 3 and {row["wanted"] for row in found["recommendations"]} == {"FP32", "12 bits"}
    assert 0 < next(iter(found["fp32"].values()))["relative_frobenius"] < 1e-6


# -- options are obeyed or refused -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare --distribution uniform_symmetric --param exponent=-10 exponent=0", "gives exponent twice, -10 and 0"),
        ("advise-promotion --distribution normal --param mean=1 mean=1", "gives mean twice"),
        ("compare --shipped digits --seed 3 --repeats 2", "--seed and --repeats go with matrices that are generated"),
        ("compare --fresh", "--fresh goes with --out"),
        ("evaluate --shipped digits --metric normwise", "--metric goes with --out"),
        ("advise-promotion --shipped digits --seed 3", "--seed goes with matrices that are drawn"),
        ("compare --methods multiword:words=2,words=3", "'words' is given twice"),
        ("compare --rates a100=1 a100=2", "gives a100 twice"),
        ("report . --json --format html", "--format goes without --json"),
    ],
)
def test_no_option_is_ignored(words, message, capsys):
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", ["compare --bits 3 --bits 5", "tolerance --k 4 --k 5", "evaluate --param a=1 --param b=2"]
)
def test_an_option_given_twice_is_refused(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words.split())
    assert stopped.value.code == 2 and "is given twice, expected once" in capsys.readouterr().err


def test_what_is_asked_for_twice_is_measured_once(capsys):
    """Copies are no seeds: no interval comes of them."""
    command = ["compare", "--distribution", "normal", "--methods", "fp16", "--engines", "h100"]
    shape = ["--shape", "8", "16", "8"]
    assert main([*command, *shape, *shape, *shape]) == 0
    copies = capsys.readouterr().out
    assert main([*command, *shape]) == 0
    assert copies == capsys.readouterr().out and "seeds" not in copies
    assert main(["compare", "--distribution", "normal", "normal", "normal", *command[3:], *shape]) == 0
    assert capsys.readouterr().out == copies


def test_one_result_is_undecided(capsys):
    assert (
        main(
            [
                "compare",
                "--distribution",
                "normal",
                "--shape",
                "1",
                "65536",
                "1",
                "--methods",
                "ootomo",
                "fp16",
                "--engines",
                "h100",
            ]
        )
        == 0
    )
    shown = " ".join(capsys.readouterr().out.split())
    assert "h100: none surely reaches FP32; " in shown
    assert (
        "Undecided: ootomo, because up to 4.7 bits of 1 result may be chance; " in shown
        and "results would decide." in shown
    )
