"""`mpgemm identify`: boxes from the catalogue, from Python and from hardware; text, JSON and pages."""

import json
import re
import sys

import pytest

from mpgemm.cli import identify, main

MODULE = """
import numpy as np
import tensorcore_models as tcm

UNIT = tcm.MatrixEngine(tcm.FusedDotAdd(4, 24))


def multiply(a, b, c):
    return UNIT.gemm(a, b, c)


def bits(a, b, c):
    return UNIT.gemm_bits(a, b, c)


def broken(a, b, c):
    raise RuntimeError("<out of order>")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "boxes_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


BEST = r"FusedDotAdd\(terms=4, fraction_bits=23\): 0 of the \d+ answers so far are not its own"
VOLTA = ["identify", "--instruction", "volta:mma.m8n8k4.f32.f16.f16.f32", "--vectors", "1000"]


def test_an_instruction_as_text(capsys):
    assert main(VOLTA) == 0
    shown = capsys.readouterr()
    assert "identified: FusedDotAdd(terms=4, fraction_bits=23)" in shown.out and "row to paste" in shown.out
    assert shown.err == ""  # no terminal


NOISY = (
    MODULE
    + """

def noisy(a, b, c):
    print("asked")
    return UNIT.gemm_bits(a, b, c)


def leaving(a, b, c):
    raise SystemExit(0)


print("imported")
"""
)
TOLD = ["--raw", "--a-format", "fp16", "--c-format", "fp32", "--d-format", "fp32", "--k", "4", "--vectors", "1000"]


def test_what_a_box_prints_is_no_output(module, capsys):
    (module / "noisy_boxes.py").write_text(NOISY)
    assert main(["identify", "--python", "noisy_boxes:noisy", *TOLD, "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["family"] and "imported" in shown.err and "asked" in shown.err


def test_a_box_that_ends_the_program_is_not_identified(module, capsys):
    (module / "leaving_boxes.py").write_text(NOISY)
    assert main(["identify", "--python", "leaving_boxes:leaving", *TOLD]) == 1
    assert "raises: SystemExit: 0" in capsys.readouterr().out
    values = ["--a-format", "fp16", "--d-format", "fp32", "--k", "4"]
    assert main(["identify", "--python", "leaving_boxes:leaving", *values, "--suite", "fasi"]) == 2
    assert "the function raised SystemExit (0)" in capsys.readouterr().err
    (module / "ending_boxes.py").write_text("raise SystemExit(0)")
    assert main(["identify", "--python", "ending_boxes:f", *TOLD]) == 2
    assert "the function raised SystemExit (0)" in capsys.readouterr().err


@pytest.mark.full
def test_progress_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main([*VOLTA, "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert main(VOLTA) == 0
    first, *rest = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"looking for a specification, \d+ s", first) and "random vectors, none refutes" in rest[-1]


@pytest.mark.parametrize(
    ("at", "known"),
    [
        ("looking for", r"no specification was tried on the \d+ answers so far"),
        ("alternatives left", BEST + r"; reached: \d+ specifications, \d{1,3} random vectors"),
        ("random vectors", BEST + r"; reached: \d+ specifications, \d{4,} random vectors"),
    ],
)
def test_what_is_known_when_it_is_interrupted(at, known, capsys, monkeypatch):
    def interrupt(line):
        if at in line:
            raise KeyboardInterrupt

    monkeypatch.setattr(identify, "_progress", lambda quiet: interrupt)
    assert main(VOLTA) == 130
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(f"mpgemm identify: interrupted: {known}", shown.err.strip())


@pytest.mark.full
def test_a_function_as_json_and_page(module, capsys):
    told = ["--python", "boxes_of_mine:bits", "--raw", "--a-format", "fp16", "--c-format", "fp32", "--d-format", "fp32"]
    page = module / "reports" / "page.html"
    assert main(["identify", *told, "--k", "4", "--vectors", "1000", "--json", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["specification"]["class"] == "FusedDotAdd" and found["specification"]["fraction_bits"] == 24
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and "FusedDotAdd(terms=4, fraction_bits=24)" in text
    assert "<h2>Evidence</h2>" in text and "exponent_floor" in text


def test_a_suite_first(module, capsys):
    told = ["--python", "boxes_of_mine:multiply", "--a-format", "fp16", "--c-format", "fp32", "--d-format", "fp32"]
    assert main(["identify", *told, "--k", "4", "--vectors", "500", "--suite", "gnft"]) == 0
    assert "FMA size" in capsys.readouterr().out


def test_a_broken_box_is_said_to_be_one(module, capsys):
    told = ["--python", "boxes_of_mine:broken", "--raw", "--a-format", "fp16", "--d-format", "fp32", "--k", "4"]
    page = module / "page.html"
    assert main(["identify", *told, "--html", str(page)]) == 1
    assert "raises: RuntimeError: <out of order>" in capsys.readouterr().out
    assert "&lt;out of order&gt;" in page.read_text()


def test_hardware_by_name(capsys):
    assert main(["identify", "--engine", "cpu-emulated:vdpbf16ps", "--vectors", "1000"]) == 0
    assert "pair_order='odd_first'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--python", "nowhere:f"], "No module named"),
        (["--python", "json"], "MODULE:FUNCTION"),
        (["--python", "json:nothing"], "has no nothing"),
        (["--python", "json:dumps"], "a_format, d_format and k"),
        (["--python", "json:dumps", "--suite", "fasi"], "a_format, d_format and k|--a-format"),
        (["--instruction", "volta:none"], "none"),
        (
            ["--instruction", "volta:mma.m8n8k4.f32.f16.f16.f32", "--k", "4"],
            "got --k without --python, but an instruction or engine states",
        ),
        (["--engine", "abacus:fast"], "does not name a hardware engine"),
    ],
)
def test_bad_input_is_one_line(argv, message, capsys):
    assert main(["identify", *argv]) == 2
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert any(part in shown.err for part in message.split("|"))


@pytest.mark.full
def test_a_solver_is_asked_on_demand(capsys):
    pytest.importorskip("bitwuzla")
    told = ["identify", "--instruction", "ada:mma.m16n8k32.f32.e4m3.e4m3.f32", "--vectors", "1000"]
    assert main([*told, "--solver", "bitwuzla", "--solver-timeout", "1", "--solver-total", "4"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the solvers came to no end in time" in said or "proved equal" in said


def test_no_solver_installed_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("tensorcore_models.probing.formal.solvers.find_spec", lambda name: None)
    assert main(["identify", "--instruction", "volta:mma.m8n8k4.f32.f16.f16.f32", "--solver"]) == 2
    assert "mpgemm[smt]" in capsys.readouterr().err
