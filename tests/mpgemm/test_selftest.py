"""`mpgemm selftest` and `mpgemm info`: they pass here, and a fault is seen."""

import json

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.selftest import checks
from tensorcore_models import kernels

pytestmark = pytest.mark.smoke


def test_selftest_passes_here(capsys):  # 2 s: every check that the command has
    assert main(["selftest", "--seconds", "0.1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["passed"] and all(check["compared"] and not check["different"] for check in facts["checks"])
    assert facts["checks"][0]["compared"] == 48 * 24
    assert facts["checks"][1]["compared"] == 100 * 9 * 2 and "H100" in facts["checks"][1]["name"]


def test_every_arithmetic_gets_its_turn_and_the_first_turns_have_every_class():
    rows = checks.distinct_rows()
    classes = {type(row.accumulator) for row in tcm.list_instructions() if row.published}
    assert {type(row.accumulator) for row in rows[: len(classes)]} == classes
    assert {row.accumulator for row in rows} == {row.accumulator for row in tcm.list_instructions() if row.published}


def test_twins_stop_in_time():
    ticks = iter(range(1000))
    assert checks.twins(4, clock=lambda: next(ticks)).compared == 2 * checks.M * checks.N


@pytest.mark.full
@pytest.mark.parametrize("name", ["matrix_bits", "batch_bits"])
def test_a_wrong_kernel_is_seen(name, monkeypatch, capsys):
    right = getattr(kernels, name)

    def wrong(unit, *args):
        d = np.array(right(unit, *args))
        if "hopper" in str(unit):
            d.flat[0] ^= d.dtype.type(1)
        return d

    monkeypatch.setattr(kernels, name, wrong)
    assert main(["selftest", "--seconds", "30"]) == 1
    text = capsys.readouterr().out
    assert "FAILED" in text and "the first that differs is hopper:" in text


def test_instruction_sets_are_as_before():
    before = tcm.active_isa()
    checks.twins(0.2)
    assert tcm.active_isa() == before


@pytest.mark.parametrize("arguments", [["--seconds", "0"], ["--seconds", "nan"], ["--seed", "-1"]])
def test_bad_input(arguments, capsys):
    assert main(["selftest", *arguments]) == 2
    assert "expected" in capsys.readouterr().err


def test_info(capsys):
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["kernels"]["instruction sets"] == list(tcm.available_isas())
    assert main(["info"]) == 0
    assert "numpy " in capsys.readouterr().out
