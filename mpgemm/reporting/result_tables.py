"""Reads CSV files of results as tables; files with several tables have a line "# title" above each."""

import csv
import io
from pathlib import Path

from mpgemm.reporting.report import Table


def read_tables(path: Path) -> list[Table]:
    """Return the tables of a CSV file, with numbers converted; raise ValueError if the file cannot be read as a table."""
    try:
        text = path.read_text(encoding="utf-8")
        parts = _parts(text, path.stem)
        return [_table(title, list(csv.reader(io.StringIO(body)))) for title, body in parts]
    except (csv.Error, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read as CSV tables ({error}); write the file again") from None


def without_constants(table: Table) -> tuple[Table, dict[str, object]]:
    """Return the table without columns that have one value in all rows, and these columns' values.

    A table of one row, or of constant columns only, is not changed.
    """
    values = list(zip(*table.rows, strict=True))
    constant = [len(table.rows) > 1 and len(set(column)) == 1 for column in values]
    if not any(constant) or all(constant):
        return table, {}
    kept = [i for i, same in enumerate(constant) if not same]
    rows = [[row[i] for i in kept] for row in table.rows]
    said = {str(table.headings[i]): values[i][0] for i, same in enumerate(constant) if same and values[i][0] != ""}
    return Table(table.title, [table.headings[i] for i in kept], rows), said


def _parts(text: str, stem: str) -> list[tuple[str, str]]:
    """Return the title and the text of each table."""
    parts: list[tuple[str, list[str]]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("# "):
            parts.append((line[2:].strip(), []))
        elif line.strip() or parts:
            if not parts:
                parts.append((stem, []))
            parts[-1][1].append(line)
    return [(title, "".join(lines).strip("\r\n") + "\n") for title, lines in parts]


def _table(title: str, rows: list[list[str]]) -> Table:
    rows = [row for row in rows if row]
    heading, body = (rows[0], rows[1:]) if rows else ([], [])
    for number, row in enumerate(body, 2):
        if len(row) != len(heading):
            raise ValueError(f"row {number} has {len(row)} cells, expected {len(heading)}, one for each heading")
    return Table(title, heading, [[_cell(text) for text in row] for row in body])


def _cell(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
