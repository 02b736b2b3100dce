"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["mpgemm.comparison", "mpgemm.engines", "mpgemm.errors", "mpgemm.matrices", "mpgemm.tolerances"])
def test_examples(name):
    importlib.import_module(name)
    failed, tried = doctest.testmod(__import__("sys").modules[name])
    assert tried
    assert not failed
