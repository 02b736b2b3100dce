"""The examples in the docstrings are true."""

import doctest
import importlib
from pathlib import Path

import pytest

import ascend
import mpgemm
import tensorcore_models

FOLDERS = {package.__name__: Path(package.__file__).parent for package in (tensorcore_models, ascend, mpgemm)}
MODULES = sorted(
    ".".join([package, *file.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__")
    for package, folder in FOLDERS.items()
    for file in folder.rglob("*.py")
    if "\n    >>> " in file.read_text(encoding="utf-8")
)
#: Modules whose examples need an extra.
NEEDED = dict.fromkeys(
    ("mpgemm.frameworks.torch_mode", "mpgemm.frameworks.torch_recorder", "mpgemm.kernels.calls"), "torch"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
