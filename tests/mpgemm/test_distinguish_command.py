"""`mpgemm distinguish`."""

import json

import pytest
from solvers import needs_solver

from mpgemm.cli import main

AMPERE, HOPPER = (f"{arch}:mma.m16n8k16.f32.f16.f16.f32" for arch in ("ampere", "hopper"))


@pytest.mark.full
@needs_solver
def test_two_architectures(capsys):
    assert main(["distinguish", AMPERE, HOPPER, "--timeout", "600", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["status"] == "witness"
    assert facts["results"][AMPERE] != facts["results"][HOPPER]
    assert len(facts["inputs"]["a"]) == 16


def test_one_instruction_is_not_told_from_itself(capsys):
    assert main(["distinguish", HOPPER, HOPPER]) == 0
    assert "no input distinguishes the two" in capsys.readouterr().out


@pytest.mark.parametrize(
    "second, word",
    [("hopper:nothing", "nothing"), ("hopper:mma.m16n8k16.f32.bf16.bf16.f32", "same operand and result formats")],
)
def test_bad_input_is_one_line(capsys, second, word):
    assert main(["distinguish", HOPPER, second]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1 and len(error) < 300


def test_without_a_solver_the_message_names_the_extra(capsys, monkeypatch):
    monkeypatch.setattr("tensorcore_models.probing.formal.solvers.available_backends", lambda: ())
    assert main(["distinguish", AMPERE, HOPPER]) == 2
    assert "mpgemm[smt]" in capsys.readouterr().err


@needs_solver
def test_the_limit_is_said_first(capsys):
    assert main(["distinguish", HOPPER, HOPPER, "--timeout", "7", "--memory", "2000"]) == 0
    assert capsys.readouterr().out.startswith(
        "asking for at most 7 s, 2000 MiB for each solver (--timeout, --memory)\n"
    )
    assert main(["distinguish", HOPPER, HOPPER, "--timeout", "7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["limits"]["seconds"] == 7


def test_devices_that_solvers_cannot_be_asked_about(capsys):
    """Their probe vectors show it: Wormhole's erratum."""
    assert main(["distinguish", "wormhole", "blackhole", "--finite", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["results"] == {"wormhole": 0xC1800000, "blackhole": 0xB4000000}
    assert facts["solver"] == "a search among probe vectors and random operands"
    assert main(["distinguish", "wormhole", "wormhole"]) == 2
    assert "neither probe vectors nor random operands distinguish the two" in capsys.readouterr().err
    assert main(["distinguish", "wormhole", "blackhole", "--k", "64"]) == 2
    assert "--k, which only solvers use" in capsys.readouterr().err
