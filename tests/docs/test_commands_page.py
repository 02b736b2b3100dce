"""The page of the commands: written from their parsers, and current."""

import argparse
import re
from pathlib import Path

import commands_page
import pytest

from mpgemm.cli.common.discovery import all_commands, by_question, command_names, command_parser

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == commands_page.page()


@pytest.mark.parametrize("command", all_commands())
def test_a_section_has_every_option(command):
    section = PAGE.read_text(encoding="utf-8").partition(f"\n### {command}\n")[2].partition("\n### ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    parser = command_parser(command)
    assert len(rows) == len(parser._actions) - 1  # all but --help
    for option in parser._option_string_actions:
        assert option in ("-h", "--help") or any(f"`{option}`" in row or f"`{option} " in row for row in rows), option
    assert ("This command has no `--json`." in section) == (not any(row.startswith("| `--json`") for row in rows))


@pytest.mark.parametrize(
    ("keywords", "values", "default"),
    [
        ({"nargs": 3, "metavar": ("M", "K", "N")}, "M K N", ""),
        ({"nargs": 2, "metavar": "FILE", "default": (1, -2)}, "FILE FILE", "`1 -2`"),
        ({"nargs": "+", "default": []}, "X...", ""),
        ({"nargs": "?", "choices": ("a", "b"), "default": "b"}, "[{a,b}]", "`b`"),
        ({"type": int, "default": 0}, "X", "`0`"),
        ({"action": "store_true"}, "", ""),
    ],
)
def test_values_and_defaults_read_as_they_are_typed(keywords, values, default):
    action = argparse.ArgumentParser().add_argument("--x", **keywords)
    assert (commands_page.values_of(action), commands_page.default_of(action)) == (values, default)


def test_the_head_tells_apart_the_commands_that_explain_results():
    head = PAGE.read_text(encoding="utf-8").partition("## All commands")[0]
    for command in ("explain", "diff", "distinguish", "whodunit", "identify"):
        assert head.count(f"| [{command}](#{command}) |") == 1


def test_every_command_stands_under_one_question():
    names = [name for commands in by_question().values() for name in commands]
    assert sorted(names) == sorted(set(names)) == command_names()
    assert set(commands_page.PAGES) <= set(all_commands())


def test_make_pages_writes_every_generated_page():
    root = Path(commands_page.__file__).parents[2]
    told = {path.name for path in (root / "docs").glob("*.md") if "<!-- Generated" in path.read_text(encoding="utf-8")}
    (recipe,) = re.findall(r"^pages:\n((?:\t.*\n)+)", (root / "Makefile").read_text(encoding="utf-8"), re.M)
    assert {Path(name).name for name in re.findall(r"> (docs/\S+)", recipe)} == told and len(told) > 5
