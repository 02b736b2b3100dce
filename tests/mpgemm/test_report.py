"""Tables, JSON, CSV and progress lines."""

import io
import json

import pytest

from mpgemm.reporting.report import Progress, Table, format_cell, json_text


def test_plain_table():
    table = Table("title", ["name", "value"], [["a", 0.5], ["longer", 1234567.0]])
    assert str(table) == "title\nname       value\n------  --------\na           0.50\nlonger  1.23e+06"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="1 cells under 2 headings"):
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


def test_rich_table_has_the_same_cells():
    pytest.importorskip("rich")
    stream = Terminal()
    Table("title", ["method", "error"], [["[odd] name", 1e-7]]).print(stream)
    assert "[odd] name" in stream.getvalue()
    assert "1.00e-07" in stream.getvalue()


def test_terminal_without_rich(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.box", None)
    stream = Terminal()
    table = Table("title", ["method"], [["x"]])
    table.print(stream)
    assert stream.getvalue() == f"{table}\n"


def test_csv_keeps_all_digits_and_quotes():
    assert Table("t", ["a", "b"], [["x, y", 0.1 + 0.2]]).to_csv() == 'a,b\n"x, y",0.30000000000000004\n'


def test_json_is_strict():
    text = json_text({"a": [float("inf"), float("-inf"), float("nan"), 1.5], "b": (1, None), 3: "x"})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": ["inf", "-inf", "nan", 1.5], "b": [1, None], "3": "x"}


def test_progress_is_silent_on_quick_jobs_and_speaks_on_long_ones():
    quick = io.StringIO()
    progress = Progress(quick)
    for done in range(4):
        progress(done, 3, "x")
    assert quick.getvalue() == ""
    slow = io.StringIO()
    progress = Progress(slow, interval=0.0)
    progress(1, 3, "case")
    assert slow.getvalue() == "1/3 case (0 s)\n"


def test_progress_on_a_terminal_cleans_its_line():
    stream = Terminal()
    progress = Progress(stream)
    progress.interval = 0.0
    progress(1, 2, "a long label")
    progress(2, 2, "")
    assert stream.getvalue().endswith("\r")
