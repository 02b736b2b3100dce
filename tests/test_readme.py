"""What the README shows runs as it stands there."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from mpgemm.cli import main

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)


def blocks(language):
    """Each code block of a language."""
    return [text for lang, text in BLOCK.findall(README.read_text()) if lang == language]


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, tmp_path, monkeypatch, capsys):
    compiled = compile(code, str(README), "exec")
    monkeypatch.chdir(tmp_path)
    exec(compiled, {"__name__": "readme"})
    assert capsys.readouterr().out


COMMANDS = [
    line.removeprefix("$ ").partition("#")[0].strip()
    for text in blocks("console")
    for line in text.splitlines()
    if line.startswith("$ mpgemm")
]


#: Commands that take longest.
LONG = ("mpgemm evaluate --verify",)


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=pytest.mark.full if c in LONG else ()) for c in COMMANDS], ids=COMMANDS
)
def test_commands(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("A.npy", rng.standard_normal((20, 30)).astype(np.float32))
    np.save("B.npy", rng.standard_normal((30, 10)).astype(np.float32))
    np.save("C.npy", np.load("A.npy") @ np.load("B.npy"))
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out


def test_the_uses_are_there():
    assert len(blocks("python")) == 5
    assert COMMANDS


def test_make_targets_exist():
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"^\$ make (\w+)", README.read_text(), re.M):
        assert f"\n{target}:" in makefile


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
