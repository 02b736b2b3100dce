"""The pages of answers show what their commands print: every line shown is among the lines printed, in their order.

A page may leave lines out ("..." or the tables above a verdict). Where this machine's BLAS adds up otherwise than the page's,
lines that name NumPy are left out: nothing else depends on it.
"""

import re
import shlex
import sys
from pathlib import Path

import pytest
from answers import BLAS_OF_THE_PAGES, blas_digest

from mpgemm.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

from terminal import COLUMNS  # noqa: E402

PAGES = ("answers", "explain", "tolerances", "promotion", "whodunit", "tenstorrent", "questions")
PYTHON = re.compile(r"```python\n(.*?)```", re.S)
CONSOLE = re.compile(r"```console\n\$ (mpgemm [^\n]*)\n(.*?)```", re.S)
SHOWN = [
    (page, command, text)
    for page in PAGES
    for command, text in CONSOLE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    if text.strip()
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "command", "text"), SHOWN, ids=[f"{page}: {command[:90]}" for page, command, _ in SHOWN]
)
def test_the_page_shows_what_the_command_prints(page, command, text, tmp_path, monkeypatch, capsys):
    words = shlex.split(command, comments=True)[1:]
    files = [word for word in words if word.endswith(".npy")]
    if files and page != "whodunit":
        pytest.skip("files that the page makes")
    same_blas = blas_digest() == BLAS_OF_THE_PAGES
    if any("np" in Path(file).stem for file in files) and not same_blas:
        pytest.skip("this machine's BLAS adds up FP32 otherwise than the page's")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    if files:
        for code in PYTHON.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
            exec(code, {})
    assert main(words) == 0
    printed = iter(line.rstrip() for line in capsys.readouterr().out.splitlines())
    for line in text.splitlines():
        if line.strip() not in ("", "...") and (same_blas or "NumPy" not in line):
            assert line.rstrip() in printed, line  # a search in an iterator: the lines keep their order
