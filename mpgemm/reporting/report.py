"""Writes results as text: tables to read, JSON and CSV for programs."""

import contextlib
import csv
import io
import json
import math
import os
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

from tensorcore_models.results import data_frame, format_cell, html_table, number_columns

#: Version of the layout of the JSON that commands and results write; docs/json.md describes it.
SCHEMA = 3
#: Width to which text columns after the first are wrapped before a column is left out.
NARROWEST_TEXT = 30


@dataclass(frozen=True)
class _Run:
    """`_Run` says how the running command was called."""

    command: tuple[str, ...] = ()
    wide: bool = False


_RUN: ContextVar[_Run | None] = ContextVar("run", default=None)


def _current() -> _Run:
    return _RUN.get() or _Run()


@contextlib.contextmanager
def running(command: Sequence[str], wide: bool = False) -> Iterator[None]:
    """Set the command that JSON names inside of a with block, and whether tables are printed in full (`wide`)."""
    token = _RUN.set(_Run(tuple(command), wide))
    try:
        yield
    finally:
        _RUN.reset(token)


def terminal_columns() -> int:
    """Return the columns of the terminal: $COLUMNS, or those of a terminal on a standard stream, or 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    for descriptor in (1, 2, 0):
        with contextlib.suppress(OSError):
            return max(os.get_terminal_size(descriptor).columns, 1)
    return 80


def shown_width() -> int | None:
    """Return the columns that a table may take: those of the terminal, also for pipes and files, or None with --wide."""
    return None if _current().wide else terminal_columns()


@dataclass(frozen=True)
class Table:
    """`Table` holds rows below headings; it raises ValueError if a row has not as many cells as there are headings."""

    title: str  #: Line above the headings.
    headings: Sequence[str]  #: Headings of the columns.
    rows: Sequence[Sequence[object]]  #: Rows of strings and numbers; numbers are aligned to the right.
    #: Whether all columns are shown. A table that is too wide is then transposed, or divided into parts that repeat the columns
    #: that identify its rows.
    whole: bool = False
    #: Whether columns may be left out without a remark, because the first columns are sufficient.
    silent: bool = False

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(
                    f"table {self.title!r}: got a row of {len(row)} cells, expected {len(self.headings)}, one for each heading"
                )

    @classmethod
    def of_rows(cls, title: str, rows: Sequence[Mapping[str, object]]) -> "Table":
        """Return a table of rows that have the same keys, which are its headings."""
        return cls(title, list(rows[0]) if rows else [], [list(row.values()) for row in rows])

    def __str__(self) -> str:
        """Return the table as plain text, with two spaces between columns."""
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return the table as plain text, at most `width` columns wide.

        Long texts are wrapped, those of the first column only if it is the only one. Then columns are left out from the right,
        but a `whole` table is transposed or divided instead.
        """
        lines = [] if width is None else textwrap.wrap(self.title, width)
        return "\n".join([*(lines or [self.title]), *self._body(width)])

    def _body(self, width: int | None) -> list[str]:
        """Return the lines below the title."""
        kept, widths = self._fit(width)
        left_out = self.headings[len(kept) :]
        if width is None or not left_out or (self.silent and not self.whole):
            return self._lines(kept, widths)
        if not self.whole:
            remark = f"({len(left_out)} more column{'s' * (len(left_out) > 1)} with --wide)"
            return [*self._lines(kept, widths), *textwrap.wrap(remark, width)]
        turned = self._turned()
        places, turned_widths = turned._fit(width)
        if len(self.rows) < len(self.headings) and len(places) == len(turned.headings):
            return turned._lines(places, turned_widths)
        lines: list[str] = []
        keys, begin = self._keys(width), 0
        while begin < len(self.headings):
            columns = [*range(min(keys, begin)), *range(begin, len(self.headings))]
            headings, *rows = ([row[i] for i in columns] for row in (self.headings, *self.rows))
            part = Table("", headings, rows)
            kept, widths = part._fit(width)
            shown = max(len(kept), min(keys, begin) + 1)
            if shown > len(kept):  # every part shows at least one new column, however narrow it is
                widths[shown - 1] = max(width - sum(widths[: shown - 1]) - 2 * (shown - 1), 1)
            lines += [*([""] if lines else []), *part._lines(range(shown), widths)]
            begin += shown - min(keys, begin)
        return lines

    def _keys(self, width: int) -> int:
        """Return the number of columns from the left that identify the rows, or 1 if they take over three quarters of
        `width`."""
        texts = self._texts()
        widths = [max(map(len, column)) + 2 for column in zip(self.headings, *texts, strict=True)]
        for n in range(1, len(widths)):
            if len({tuple(row[:n]) for row in texts}) == len(texts):
                return n if sum(widths[:n]) <= 0.75 * width else 1
        return 1

    def _turned(self) -> "Table":
        """Return the transposed table."""
        headings, *rows = zip(self.headings, *self._texts(), strict=True)
        return Table(self.title, headings, rows)

    def _lines(self, kept: Sequence[int], widths: Sequence[int]) -> list[str]:
        """Return the lines of some columns, of given widths, below their headings."""
        right, lines = self._right(), []
        for number, row in enumerate([self.headings, *self._texts()]):
            cells = [_wrapped(row[i], widths[i]) for i in kept]
            for level in range(max(map(len, cells), default=0)):
                words = [cell[level] if level < len(cell) else "" for cell in cells]
                padded = (
                    word.rjust(widths[i]) if right[i] else word.ljust(widths[i])
                    for word, i in zip(words, kept, strict=True)
                )
                lines.append("  ".join(padded).rstrip())
            if number == 0:
                lines.append("  ".join("-" * widths[i] for i in kept))
        return lines

    def _texts(self) -> list[list[str]]:
        return [[format_cell(cell) for cell in row] for row in self.rows]

    def _right(self) -> list[bool]:
        """Return for each column whether it holds numbers."""
        return number_columns(self.rows, len(self.headings))

    def _fit(self, width: int | None) -> tuple[list[int], list[int]]:
        """Return (indices of the shown columns, width of each column)."""
        texts = [list(self.headings), *self._texts()]
        widths = [max(len(row[i]) for row in texts) for i in range(len(self.headings))]
        kept = list(range(len(self.headings)))
        if width is None:
            return kept, widths
        least = [self._least(i, widths[i], [row[i] for row in texts[1:]]) for i in kept]
        while len(kept) > 1 and sum(least[i] + 2 for i in kept) - 2 > width:
            kept.pop()
        while kept and (over := sum(widths[i] + 2 for i in kept) - 2 - width) > 0:
            widest = max(kept, key=lambda i: widths[i] - least[i])
            if widths[widest] == least[widest]:  # only one column is left, and it is too wide
                widths[widest] = max(width, 1)
                break
            widths[widest] = max(least[widest], widths[widest] - over)
        return kept, widths

    def _least(self, column: int, width: int, cells: Sequence[str]) -> int:
        """Return the least width of a column; headings and texts are wrapped, numbers are not."""
        if not self._right()[column]:
            return width if column == 0 else min(width, NARROWEST_TEXT)
        return max(map(len, [*self.headings[column].split(), *cells]))

    def shown(self) -> str:
        """Return the table as plain text, no wider than the terminal or $COLUMNS."""
        return self.text(shown_width())

    def print(self, stream: TextIO | None = None) -> None:
        """Print the table to a stream (standard output by default), no wider than the terminal or $COLUMNS."""
        print(self.shown(), file=stream or sys.stdout)

    def _repr_html_(self) -> str:
        """Return the table as HTML for notebooks."""
        return html_table(self.title, self.headings, self.rows)

    def to_dataframe(self):
        """Return the rows as a pandas data frame, with all digits; raise ImportError if pandas is missing."""
        return data_frame([dict(zip(self.headings, row, strict=True)) for row in self.rows])

    def to_csv(self) -> str:
        """Return the table as CSV with a header line, with all digits of numbers."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(self.rows)
        return text.getvalue()


def fitted(text: str) -> str:
    """Return lines wrapped to the terminal's width, with continuation lines indented."""
    width = shown_width()
    if width is None:
        return text
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, width, subsequent_indent=indent if len(indent) < width else "") or [""]
    return "\n".join(lines)


def say(text: str) -> None:
    """Print text on standard output, with its lines wrapped to the terminal's width."""
    print(fitted(text))


def wrapped(text: str, indent: str = "", hang: str | None = None) -> str:
    """Return the text wrapped to the terminal's width, with each line as a paragraph.

    hang: indentation of continuation lines, by default `indent`.
    """
    hang = indent if hang is None else hang
    width = max(20, terminal_columns())
    lines = (
        textwrap.fill(line, width, initial_indent=indent, subsequent_indent=hang, break_on_hyphens=False)
        for line in text.split("\n")
    )
    return "\n".join(lines)


def item(text: str) -> str:
    """Return a text below a headline, indented by two columns, with continuation lines indented by four."""
    return wrapped(text, "  ", "    ")


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a cell."""
    return [text] if len(text) <= width else textwrap.wrap(text, width, break_on_hyphens=False)


def json_text(value: object) -> str:
    """Return strict, indented JSON; numbers that are not finite become the strings "inf", "-inf" and "nan".

    The first keys are the layout's version ("schema"), the command line if a command runs ("command"), and the software and
    machine ("environment"). A value that is no object is stored under "rows".
    """
    command = _current().command
    from mpgemm.reporting.provenance import (
        environment,
    )  # imported here because it imports NumPy, which help texts do not need

    header = {"schema": SCHEMA, **({"command": list(command)} if command else {}), "environment": environment()}
    body = value if isinstance(value, dict) else {"rows": value}
    return json.dumps(_finite({**header, **body}), indent=1, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class Progress:
    """`Progress` shows the progress of a long job in one line of a terminal: count, elapsed time and estimated remaining time.

    stream: output stream, by default standard error; nothing is printed unless it is a terminal.
    quiet: whether to print nothing on a terminal either.
    patience: seconds before the first line, so that quick jobs print nothing.
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False, patience: float = 2.0):
        self.stream = stream or sys.stderr
        self.shown = self.stream.isatty() and not quiet
        self.start = time.monotonic()
        self.next = self.start + patience
        self.width = 0

    def __call__(self, done: int, total: int, label: str) -> None:
        now = time.monotonic()
        finished = done == total
        if not self.shown or not (now >= self.next or (finished and self.width)):
            return
        self.next = now + 0.1
        text = "" if finished else f"{done}/{total} {label}"[:80].rstrip() + f", {now - self.start:.0f} s"
        if 0 < done < total:
            text += f", about {(now - self.start) / done * (total - done):.0f} s left"
        print("\r" + text.ljust(self.width) + ("\r" if finished else ""), end="", file=self.stream, flush=True)
        self.width = len(text)
