"""Tables, JSON, CSV and progress lines."""

import io
import json
import os
import sys

import pytest

from mpgemm.reporting.report import SCHEMA, Progress, Table, json_text, running, terminal_columns
from tensorcore_models.results import format_cell


def test_plain_table():
    table = Table("title", ["name", "value"], [["a", 0.5], ["longer", 1234567.0]])
    assert str(table) == "title\nname       value\n------  --------\na           0.50\nlonger  1.23e+06"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="got a row of 1 cells, expected 2, one for each heading"):
        Table("t", ["a", "b"], [["x"]])


def test_empty_table():
    assert str(Table("t", ["a", "b"], [])) == "t\na  b\n-  -"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (0.0, "0"),
        (0, "0"),
        (12, "12"),
        (3.14159, "3.14"),
        (1e-7, "1.00e-07"),
        (float("inf"), "inf"),
        ("x", "x"),
        (True, "True"),
        (99999.0, "1.00e+05"),
    ],
)
def test_cells(cell, text):
    assert format_cell(cell) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_tables_never_exceed_the_terminal(monkeypatch):
    rows = [["a method with a long name, s_b = 12", 1.5, 2.5e-7, "text that is long enough to be wrapped at a space"]]
    table = Table("a title that is longer than a narrow terminal", ["label", "bits kept", "error", "why"], rows)
    full = str(table)
    for width in range(1, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        stream = Terminal()
        table.print(stream)
        lines = stream.getvalue().splitlines()
        assert max(map(len, lines)) <= max(width, 1)
        if width >= 30:
            assert "label" in lines[1] or "label" in lines[2]
        if width >= max(map(len, full.splitlines())):
            assert stream.getvalue() == f"{full}\n"
    monkeypatch.setenv("COLUMNS", "60")
    assert "(1 more column with --wide)" in table.text(60)
    stream = Terminal()
    with running(["x"], wide=True):
        table.print(stream)
    assert stream.getvalue() == f"{full}\n"


def test_a_label_is_wrapped_only_where_it_does_not_fit_alone():
    label = "a method with a long name, s_b = 12, and more"
    table = Table("t", ["label", "error", "why"], [[label, 2.5e-7, "text that is long enough to be wrapped"]])
    for width in range(len(label), 200):
        lines = table.text(width).splitlines()
        assert any(line.startswith(label) for line in lines) and max(map(len, lines)) <= width
    assert label not in table.text(len(label) - 1) and "2.50e-07" in table.text(len(label) + 10)


def test_pipes_get_the_columns_of_a_terminal_unless_all_are_asked_for(monkeypatch):
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((70, 24)))
    stream = io.StringIO()
    table = Table("t", ["x" * 30, "y" * 30, "z" * 30], [["a", "b", "c"]])
    table.print(stream)
    assert stream.getvalue() == f"{table.text(70)}\n" and "with --wide" in stream.getvalue()
    stream.truncate(0)
    with running(["evaluate"], wide=True):
        table.print(stream)
    assert stream.getvalue().strip("\0") == f"{table}\n"

    def none(descriptor):
        raise OSError(f"{descriptor} is no terminal")

    monkeypatch.setattr(os, "get_terminal_size", none)
    assert terminal_columns() == 80


def test_html_and_data_frames(monkeypatch):
    table = Table("a < b", ["name", "value"], [["<x>", 0.1 + 0.2]])
    assert "&lt;x&gt;" in table._repr_html_() and "a &lt; b" in table._repr_html_()
    pandas = pytest.importorskip("pandas")
    frame = table.to_dataframe()
    assert (
        list(frame.columns) == ["name", "value"]
        and frame["value"][0] == 0.1 + 0.2
        and isinstance(frame, pandas.DataFrame)
    )


def test_data_frames_without_pandas_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"mpgemm\[dataframe\]"):
        Table("t", ["a"], [[1]]).to_dataframe()


def test_csv_keeps_all_digits_and_quotes():
    assert Table("t", ["a", "b"], [["x, y", 0.1 + 0.2]]).to_csv() == 'a,b\n"x, y",0.30000000000000004\n'


def test_json_is_strict():
    text = json_text({"a": [float("inf"), float("-inf"), float("nan"), 1.5], "b": (1, None), 3: "x"})
    found = json.loads(text, parse_constant=pytest.fail)
    assert found.pop("schema") == SCHEMA and found.pop("environment")["numpy"]
    assert found == {"a": ["inf", "-inf", "nan", 1.5], "b": [1, None], "3": "x"}


def test_json_names_the_command_that_runs():
    with running(["evaluate", "--json"]):
        found = json.loads(json_text([1, 2]))
    assert found["command"] == ["evaluate", "--json"] and found["rows"] == [1, 2]
    assert "command" not in json.loads(json_text({}))


def test_progress_speaks_on_terminals_only():
    for stream, options in ((io.StringIO(), {}), (Terminal(), {"quiet": True})):
        progress = Progress(stream, patience=0.0, **options)
        for done in range(4):
            progress(done, 3, "x")
        assert stream.getvalue() == ""


def test_progress_is_silent_on_quick_jobs():
    stream = Terminal()
    progress = Progress(stream)
    for done in range(4):
        progress(done, 3, "x")
    assert stream.getvalue() == ""


def test_progress_says_how_many_how_long_and_how_much_is_left():
    stream = Terminal()
    progress = Progress(stream, patience=0.0)
    progress.start -= 10
    progress(1, 3, "case")
    assert stream.getvalue() == "\r1/3 case, 10 s, about 20 s left"
    progress(3, 3, "")
    assert stream.getvalue().endswith("\r" + " " * len("1/3 case, 10 s, about 20 s left") + "\r")


def test_whole_tables_leave_nothing_out():
    """Too wide ones are cut in parts that repeat what tells rows apart, or turned where that fits."""
    headings = ["unit", "k", "a long heading", "another long heading", "error"]
    rows = [["volta", 4, 1.5, "x", 1e-7], ["volta", 16, 2.5, "y", 2e-7], ["ampere", 4, 3.5, "z", 3e-7]] * 1
    many = Table("t", headings, [[*row[:1], i, *row[2:]] for i, row in enumerate(rows * 3)], whole=True)
    text = many.text(30)
    assert all(len(line) <= 30 for line in text.splitlines()) and "with --wide" not in text
    parts = text.split("\n\n")
    assert len(parts) > 1 and all(part.splitlines()[part is parts[0]].split()[:2] == ["unit", "k"] for part in parts)
    assert [word in text for word in ("error", "another", "3.00e-07")] == [True] * 3
    turned = Table("t", headings, rows[:2], whole=True).text(40)
    assert turned.splitlines()[1].split() == ["unit", "volta", "volta"] and "\n\n" not in turned
    assert "more columns with --wide" in Table("t", headings, rows[:2]).text(30)
    silent = Table("t", headings, rows[:2], silent=True)
    assert "--wide" not in silent.text(30) and len(silent.text(30).splitlines()[-1]) <= 30
