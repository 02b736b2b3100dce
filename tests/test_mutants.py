"""The table of deliberate faults fits the code: each text that a mutant changes is found exactly once."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("mutation_run", ROOT / "tests" / "mutation" / "run.py")
RUN = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = RUN  # dataclasses look their module up
SPEC.loader.exec_module(RUN)


@pytest.mark.parametrize("mutant", RUN.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place(mutant):
    assert (ROOT / mutant.path).read_text().count(mutant.old) == 1
    assert mutant.old != mutant.new
