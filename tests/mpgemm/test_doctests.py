"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest

MODULES = (
    "experiments.comparison",
    "recovery.engines",
    "exact.errors",
    "inputs.matrices",
    "bounds.tolerances",
    "bounds.statistical",
    "bounds.two_engines",
    "experiments.promotion",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, tried = doctest.testmod(importlib.import_module(f"mpgemm.{name}"))
    assert tried
    assert not failed
