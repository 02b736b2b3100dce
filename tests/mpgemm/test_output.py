"""The output of a command: one statement for --json, --csv and people, and no command that writes them by itself."""

import argparse
import ast
import json
from pathlib import Path

import pytest

import mpgemm.cli
from mpgemm.cli.common.discovery import all_commands, command_module
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table

TABLES = [Table("first", ["a", "b"], [[1, "x"]]), Table("second", ["c"], [[0.5]])]
FOUND = Output({"a": 1}, ["a line", TABLES[0]], TABLES, 3, "a remark")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, "a line\nfirst\na  b\n-  -\n1  x\n"),
        ({"csv": True}, "# first\na,b\n1,x\n\n# second\nc\n0.5\n"),
        ({"csv": "plans.csv"}, "a line\nfirst\na  b\n-  -\n1  x\n"),  # a file, which the command has written
    ],
)
def test_text_and_csv(options, shown, capsys):
    assert FOUND.print(argparse.Namespace(json=False, **options)) == 3
    printed = capsys.readouterr()
    assert printed.out == shown and printed.err == "a remark\n"


def test_json_comes_first_and_one_table_has_no_title(capsys):
    FOUND.print(argparse.Namespace(json=True, csv=True))
    assert json.loads(capsys.readouterr().out)["a"] == 1
    Output(tables=TABLES[1:]).print(argparse.Namespace(csv=True))
    assert capsys.readouterr().out == "c\n0.5\n"


@pytest.mark.parametrize("command", all_commands())
def test_every_command_returns_its_output(command):
    assert command_module(command).run.__annotations__["return"] in ("Output", Output)


def test_no_command_writes_json_or_tables_by_itself():
    """Files get JSON through write_text; standard output gets everything through an Output, but for what `campaign` says on the
    way."""
    found = []
    for path in Path(mpgemm.cli.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            function, call = ast.unparse(node.func), ast.unparse(node)
            if function in ("sys.stdout.write", "say", "report.say") or (function == "print" and "json_text" in call):
                found.append(f"{path.name}:{node.lineno}")
    assert {name.partition(":")[0] for name in found} == {"campaign.py"} and len(found) == 1
