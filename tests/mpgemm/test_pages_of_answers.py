"""The pages of answers show what their commands print: every line shown is among the lines printed, in their order.

A page may leave lines out ("..." or the tables above a verdict). FP32 there is NumPy's, whose bits are those of a machine's
BLAS: where it adds up otherwise, the page that judges by it is left out.
"""

import re
import shlex
from pathlib import Path

import pytest
from answers import BLAS_OF_THE_PAGES, blas_digest

from mpgemm.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Columns of the terminal that each page was made in.
PAGES = {"answers": 88, "explain": 88, "tolerances": 88, "promotion": 88, "whodunit": 100}
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
    if any(word.endswith(".npy") for word in words):
        pytest.skip("files that the page makes")
    if page == "answers" and blas_digest() != BLAS_OF_THE_PAGES:
        pytest.skip("this machine's BLAS adds up FP32 otherwise than the page's")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(PAGES[page]))
    assert main(words) == 0
    printed = iter(line.rstrip() for line in capsys.readouterr().out.splitlines())
    for line in text.splitlines():
        if line.strip() not in ("", "..."):
            assert line.rstrip() in printed, line  # a search in an iterator: the lines keep their order
