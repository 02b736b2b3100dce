"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ("comparison", "engines", "errors", "matrices", "tolerances"))
def test_examples(name):
    failed, tried = doctest.testmod(importlib.import_module(f"mpgemm.{name}"))
    assert tried
    assert not failed
