"""A stack of products has one verdict: how many members are as accurate as FP32, and which are not."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mpgemm.cli import main
from mpgemm.experiments import evaluate as evaluation
from mpgemm.experiments.cases import file_cases
from mpgemm.experiments.judging import verdict
from mpgemm.experiments.methods import CubeOptions, build_methods
from mpgemm.experiments.stacks import judge_stack

QUICK = ["--methods", "fp32", "sgemm_cube", "sgemm_cube_scaled", "--orders", "termwise", "--scale-exponents", "12"]


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """Seven pairs of normal numbers: one of tiny numbers, one with an element beyond fp16, one with an infinity."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((7, 24, 24)).astype(np.float32) for _ in range(2))
    a[2] *= np.float32(2.0**-30)
    a[4, 1, 2] = 7e4
    a[5, 3, 3] = np.inf
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", a)
    np.save("B.npy", b)
    return a, b


def test_one_verdict_names_the_members_to_look_at(stack, capsys):
    assert main(["evaluate", "A.npy", "B.npy", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Verdict: ") == 1
    assert shown.startswith("Verdict: results are lost in 1, as accurate as FP32 in 6 of 7 pairs")
    said = [
        line.strip().partition(":")[0] for line in shown.split("\n\n")[0].splitlines() if line.startswith("  A.npy")
    ]
    assert said[0] == "A.npy[5] x B.npy[5]" and set(said[1:]) == {f"A.npy[{i}] x B.npy[{i}]" for i in (2, 4)}
    assert "2 of 7 pairs need their rows and columns scaled" in " ".join(shown.split())
    assert shown.count("SGEMM-cube termwise, s_b = 12 ") == 1 and "7 pairs: median" in shown


def test_members_are_judged_as_they_are_alone(stack):
    cases = file_cases(Path("A.npy"), Path("B.npy"))
    methods = build_methods(["fp32", "fp32_numpy", "fp32_chain", "hf32", "sgemm_cube", "sgemm_cube_scaled"],
                            CubeOptions(("termwise",), (12,), ("exact", "sequential")))  # fmt: skip
    found = judge_stack(cases, methods, evaluation.evaluate(cases, methods))
    assert found is not None and len({case.group for case in cases}) == 1
    a, b = stack
    alone = [verdict(x, y) for x, y in zip(a, b, strict=True)]
    assert found.counts == {"lost": 1, "as accurate": 6} and found.status == "lost"
    assert [member.status for member in alone].count("lost") == 1
    for member in found.worst:
        number = int(member.group.partition("[")[2].partition("]")[0])
        same = alone[number]
        assert (member.status, member.judged[0].effective_bits) == (same.status, same.judged[0].effective_bits)
    assert found.to_dict()["text"] == found.sentences() and found.to_rows()


def test_a_stack_of_good_members_says_so_in_two_lines(stack, capsys):
    np.save("A.npy", stack[0][:2])
    np.save("B.npy", stack[1][:2])
    assert main(["evaluate", "A.npy", "B.npy", *QUICK, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["inputs"]
    assert entry["verdict"]["text"] == [
        "Verdict: as accurate as FP32 in all 2 pairs, however the cube rounds inside a step.",
        "  Use termwise order, s_b = 12.",
    ]
    assert entry["identity"] == {"members": 2} and entry["operands"][0]["shape"] == [48, 24]


def test_results_are_there_early_and_a_sweep_resumes(stack, capsys, monkeypatch):
    """Ctrl-C in the third part: a table of the first two lies in --out, and only the rest is computed again."""
    rng = np.random.default_rng(0)
    np.save("A.npy", rng.standard_normal((70, 4, 8)).astype(np.float32))
    np.save("B.npy", rng.standard_normal((8, 3)).astype(np.float32))
    command = ["evaluate", "A.npy", "B.npy", "--methods", "fp32", "fp64", "--out", "out", "--no-figures"]
    measured, right = [], evaluation.measure

    def counted(case, method):
        measured.append(case.label)
        if len(measured) == 140:
            raise KeyboardInterrupt
        return right(case, method)

    monkeypatch.setattr(evaluation, "measure", counted)
    assert main(command) == 130
    assert "139 results are kept" in capsys.readouterr().err
    with Path("out/results.csv").open() as stream:
        assert [int(row["count"]) for row in csv.DictReader(stream)] == [64, 64]
    measured.clear()
    assert main(command) == 0
    assert len(measured) == 1
    with Path("out/results.csv").open() as stream:
        assert [int(row["count"]) for row in csv.DictReader(stream)] == [70, 70]


def test_a_stack_without_fp32_or_elements_has_no_verdict(stack, capsys):
    assert main(["evaluate", "A.npy", "B.npy", "--methods", "fp64"]) == 0
    assert capsys.readouterr().out.startswith("No verdict:")
