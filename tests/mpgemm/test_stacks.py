"""A stack of products has one verdict: how many members are as accurate as FP32, and which are not."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from mpgemm.cli import main
from mpgemm.experiments import evaluate as evaluation
from mpgemm.experiments.cases import file_cases, given_case
from mpgemm.experiments.fp64_judging import judge_fp64
from mpgemm.experiments.judging import verdict
from mpgemm.experiments.methods import CubeOptions, build_methods
from mpgemm.experiments.spread import SeedSpread
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
                            CubeOptions(("termwise",), (12,), ("sequential", "exact")))  # fmt: skip
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


@pytest.fixture
def one_bad_pair(tmp_path, monkeypatch):
    """Twenty pairs of normal numbers, the eighth A the seventh times 2^-24."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((20, 32, 32)).astype(np.float32) for _ in range(2))
    a[7] = a[6] * np.float32(2.0**-24)
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", a)
    np.save("B.npy", b)
    return a, b


def test_compare_judges_each_pair_and_the_worst_decides(one_bad_pair, capsys):
    """In the eighth pair ootomo has some 13 bits: the median of all hides it, and no interval over pairs is formed."""
    assert (
        main(
            ["compare", "A.npy", "B.npy", "--methods", "ootomo", "fp64", "--engines", "h100", "--bits", "20", "--json"]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    rows = {row["case"]: row["effective_bits"] for row in found["records"] if row["method"] == "ootomo"}
    assert min(rows, key=rows.get) == "A.npy[7] x B.npy[7]" and min(rows.values()) < 14 < 20 < sorted(rows.values())[1]
    assert {row["wanted"]: row["reached"] for row in found["recommendations"]} == {
        "FP32": ["fp64"],
        "20 bits": ["fp64"],
    }
    assert main(["compare", "A.npy", "B.npy", "--methods", "ootomo", "--engines", "h100"]) == 0
    shown = capsys.readouterr().out
    assert "h100: none reaches FP32; the best is ootomo (" in shown
    assert "bits in the worst pair (A.npy[7] x B.npy[7])" in " ".join(shown.split())
    assert "Each of the 20 pairs is judged by itself; the worst decides." in " ".join(shown.split())
    assert "Student" not in shown and "20 pairs: medians" in " ".join(shown.split())


def test_emulated_fp64_is_judged_pair_by_pair(tmp_path):
    """One pair of nine in which eight slices are too few."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((9, 20, 20)), rng.standard_normal((9, 20, 20))
    a[4] *= 2.0 ** rng.uniform(-30, 30, (20, 20))
    cases = [given_case(x, y, label=f"pair {i}") for i, (x, y) in enumerate(zip(a, b, strict=True))]
    cases = [dataclasses.replace(case, group="stack") for case in cases]
    methods = build_methods(["fp64", "ozaki_int8:slices=8@h100"])
    lines = judge_fp64("stack", evaluation.evaluate(cases, methods), 400, pairs=True)
    assert lines[0].startswith("Less accurate than DGEMM: ") and "in pair 4, the worst pair" in lines[0]
    assert lines[1] == "Each of the 9 pairs is judged by itself; the worst decides."


def test_a_stack_without_fp32_or_elements_has_no_verdict(stack, capsys):
    assert main(["evaluate", "A.npy", "B.npy", "--methods", "fp64"]) == 0
    assert capsys.readouterr().out.startswith("No verdict, because")


# -- pairs that tell nothing -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("zeros", [1, 3])
def test_pairs_of_zeros_take_no_part_in_medians(zeros, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((zeros + 1, 16, 16)).astype(np.float32) for _ in range(2))
    a[1:] = 0
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", a)
    np.save("B.npy", b)
    assert main(["compare", "A.npy", "B.npy", "--engines", "h100", "--methods", "fp16", "ootomo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    said = " ".join(found["remarks"]["A.npy x B.npy"])
    assert "every bit" not in said and f"In {zeros} of {zeros + 1} pairs all results are exact" in said
    assert main(["compare", "A.npy", "B.npy", "--engines", "h100", "--methods", "fp16", "ootomo"]) == 0
    table = capsys.readouterr().out
    assert table.index("ootomo ") < table.index("fp16 ")  # the worst pair decides, not the exact ones


def test_of_two_middle_numbers_of_bits_the_finite_one_is_the_median():
    assert SeedSpread.of_bits([22.5, np.inf]).median == 22.5 and SeedSpread.of_bits([22.5, np.inf]).high == np.inf
    assert SeedSpread.of_bits([20.0, 22.0, np.inf, np.inf]).median == 22.0
    assert SeedSpread.of_bits([np.inf] * 2).median == np.inf and SeedSpread.of_bits([1.0, 2.0]).median == 1.5
