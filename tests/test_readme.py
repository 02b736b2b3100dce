"""What the README shows runs as it stands there, and prints what it shows."""

import re
import shlex
from pathlib import Path

import pytest
from answers import BLAS_OF_THE_PAGES, blas_digest

from mpgemm.cli import main
from tests.support.readme_files import write_all

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
#: Columns of the terminal in which the outputs were shown.
COLUMNS = "88"


def blocks(language):
    """Each code block of a language."""
    return [text for lang, text in BLOCK.findall(README.read_text()) if lang == language]


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, tmp_path, monkeypatch, capsys):
    compiled = compile(code, str(README), "exec")
    monkeypatch.chdir(tmp_path)
    exec(compiled, {"__name__": "readme"})
    assert capsys.readouterr().out


SHOWN = [
    text.removeprefix("$ ").partition("\n")[::2] for text in blocks("console") if text.startswith("$ mpgemm")
]  # (command, output)


# Some take 2 to 4 s: they are the commands that people try first.
@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_question_has_the_answer_that_is_shown(command, shown, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    if "out.npy" in command or "trace" in command:
        write_all(tmp_path)
    assert main(shlex.split(command)[1:]) == int("FAILS" in shown)
    printed = iter(capsys.readouterr().out.splitlines())
    same_blas = blas_digest() == BLAS_OF_THE_PAGES
    for line in shown.splitlines():
        if "NumPy" in line and not same_blas:
            continue
        assert line.rstrip() in printed, line  # a search in an iterator: the lines keep their order


def test_six_questions_have_one_command_each():
    assert len(SHOWN) == 6 and all(shown for _, shown in SHOWN)
    assert len(README.read_text().splitlines()) <= 150


def test_make_targets_exist():
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"^\$ make (\w+)", README.read_text(), re.M):
        assert f"\n{target}:" in makefile


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
