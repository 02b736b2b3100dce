"""Ctrl-C ends every command in one line and exit status 130."""

import pytest

from mpgemm.cli import main


@pytest.mark.parametrize(
    ("command", "arguments"), [("plan", []), ("simulate", []), ("models", ["h100"]), ("report", ["."])]
)
def test_interrupted(command, arguments, monkeypatch, capsys):
    import importlib

    def interrupt(args):
        raise KeyboardInterrupt

    module = importlib.import_module(f"mpgemm.cli.{command.replace('-', '_')}")
    monkeypatch.setattr(module, "run", interrupt)
    assert main([command, *arguments]) == 130
    assert capsys.readouterr().err.strip() == f"mpgemm {command}: interrupted"
