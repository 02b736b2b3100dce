"""The pages about frameworks show what their code prints, and their notebooks hold no errors."""

import json
import re
from pathlib import Path

import pytest
from pages import run_page

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
NEEDS = {"torch": "torch", "triton": "triton", "jax": "jax", "pytest": "", "attention": ""}


def comparable(text):
    """Lines without the errors of FP32 products, which are those of the machine's BLAS."""
    return [re.sub(r"FP32's [\d.e+-]+", "FP32's ...", line).rstrip() for line in text.strip().splitlines()]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", NEEDS)
def test_page(name, tmp_path):
    if NEEDS[name]:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed: pip install 'mpgemm[{NEEDS[name]}]'")
    for shown, printed in run_page(DOCS / f"{name}.md", tmp_path):
        assert comparable(printed) == comparable(shown)


@pytest.mark.parametrize("name", ["torch", "pytest"])
def test_notebook_was_run(name):
    cells = json.loads((DOCS / "notebooks" / f"{name}.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and all(cell["execution_count"] for cell in code)
    assert not [out for cell in code for out in cell["outputs"] if out["output_type"] == "error"]
