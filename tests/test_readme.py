"""What the README shows runs as it stands there, and prints what it shows."""

import re
import shlex
from pathlib import Path

import pytest
from answers import BLAS_OF_THE_PAGES, blas_digest

from mpgemm.cli import main
from mpgemm.cli.common.discovery import OTHER_NAMES, command_names, command_parser
from mpgemm.cli.common.front import DOORS
from tests.support.readme_files import write_all

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
TEN = [first for commands in DOORS.values() for first in commands]
#: Columns of the terminal in which the outputs were shown.
COLUMNS = "88"


def blocks(language):
    """Each code block of a language."""
    return [text for lang, text in BLOCK.findall(README.read_text()) if lang == language]


def test_python_lines_run_as_they_stand(tmp_path, monkeypatch, capsys):
    (code,) = blocks("python")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    exec(compile(code, str(README), "exec"), names)
    assert capsys.readouterr().out
    for first in TEN:
        exec(compile(first.python, first.command, "eval"), names)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_ten_names_are_those_that_the_command_shows(page, capsys):
    rows = [row for row in (README.parent / page).read_text().splitlines() if row.startswith("| `")]
    expected = [
        f"| `{first.command}` | {first.question} | `mpgemm {first.command} {first.arguments}` | `{first.python}` |"
        for first in TEN
    ]
    assert [row for row in rows if row.count("|") == 5 and "mpgemm " in row] == expected and len(TEN) == 10
    assert main([]) == 0
    screen = capsys.readouterr().out
    assert all(f"mpgemm {first.command} {first.arguments}" in screen for first in TEN)
    assert all(door in screen for door in DOORS)


@pytest.mark.parametrize("first", TEN, ids=lambda first: first.command)
def test_the_parser_of_each_of_the_ten_takes_its_line(first):
    assert command_parser(first.command).parse_args(shlex.split(first.arguments))


@pytest.mark.parametrize("word", OTHER_NAMES)
def test_another_word_for_a_command_is_understood(word, capsys):
    assert word not in command_names()
    with pytest.raises(SystemExit) as ended:
        main([word, "--help"])
    assert ended.value.code == 0 and f"usage: mpgemm {OTHER_NAMES[word]} " in capsys.readouterr().out


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


def test_seven_questions_have_one_command_each():
    assert len(SHOWN) == 7 and all(shown for _, shown in SHOWN)
    assert len(README.read_text().splitlines()) <= 195


def test_make_targets_exist():
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"^\$ make (\w+)", README.read_text(), re.M):
        assert f"\n{target}:" in makefile


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
