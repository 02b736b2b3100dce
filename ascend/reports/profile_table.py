"""This module reads profilers' CSV tables, and says for another file what it is and what to do."""

import codecs
import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

#: First bytes of UTF-16 files, which spreadsheets and PowerShell write.
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Words in place of a number that was not measured.
NOT_MEASURED = ("", "N/A", "NA", "NAN")


class TableLine(NamedTuple):
    """`TableLine` is a line of a table: its number in the file, its fields by column, and fields beyond the last column."""

    number: int
    fields: dict[str, str]
    extra: list[str]


class ProfileTable(NamedTuple):
    """`ProfileTable` holds the columns and lines of a profiler's file."""

    path: Path
    columns: list[str]
    lines: list[TableLine]

    def needs(self, columns: Sequence[str], have_them: str) -> None:
        """Raise ValueError if columns are missing; `have_them` names files that have the columns."""
        if missing := [name for name in columns if name not in self.columns]:
            named = list(filter(None, self.columns))
            shown = ", ".join(named[:6]) + ", ..." * (len(named) > 6)
            raise ValueError(
                f"{self.path}: no column {', '.join(map(repr, missing))} among {len(named)} columns ({shown}); {have_them}"
            )


def read_table(path: str | Path, expected: str, also_called: Mapping[str, str] | None = None) -> ProfileTable:
    """Read a CSV file in UTF-8, with a byte order mark or without one.

    Parameters
    ----------
    path : str or Path
        File to read.
    expected : str
        Expected content of the file, for messages.
    also_called : mapping of str to str, optional
        Other names of columns, and the names by which they are looked up.

    Raises
    ------
    ValueError
        If the file is empty, has no rows or is not a CSV file in UTF-8.
    OSError
        If it cannot be read.
    """
    path = Path(path)
    text = text_of(path, path.read_bytes(), expected)
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}; expected {expected}") from None
    names = [name.strip() for name in rows[0]]
    columns = [(also_called or {}).get(name, name) for name in names]
    lines = [
        TableLine(
            number,
            dict(zip(columns, map(str.strip, row), strict=False)),
            [word for word in row[len(columns) :] if word.strip()],
        )
        for number, row in enumerate(rows[1:], 2)
        if any(word.strip() for word in row)
    ]
    if not lines:
        raise ValueError(f"{path} has a header line but no rows: expected {expected}")
    return ProfileTable(path, columns, lines)


def text_of(path: Path, data: bytes, expected: str) -> str:
    """Return the text of a file's bytes. Raises ValueError with the command that converts another encoding to UTF-8."""
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise ValueError(f"{path} is empty: expected {expected}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        encoding, what = _other_encoding(data), f"{path} is not a CSV file in UTF-8: {error}"
    if encoding is None:
        raise ValueError(f"{what}; expected {expected}")
    raise ValueError(
        f"{what}; the file is readable as {encoding}: convert it (iconv -f {encoding} -t UTF-8 {path} > utf8.csv) and "
        f"give the converted file"
    )


def _other_encoding(data: bytes) -> str | None:
    """Return the encoding of bytes that are no UTF-8: UTF-16 by its mark, GBK if all bytes fit it, else none."""
    if data.startswith(UTF16):
        return "UTF-16"
    try:
        text = data.decode("gb18030")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else "GBK"


def number_in(fields: Mapping[str, str], *columns: str) -> float | None:
    """Return the number in the first of some columns that has one; None if it is missing, not measured or below 0."""
    for column in columns:
        word = fields.get(column, "")
        if word.upper() in NOT_MEASURED:
            continue
        try:
            found = float(word)
        except ValueError:
            continue
        if 0 <= found < math.inf:
            return found
    return None
