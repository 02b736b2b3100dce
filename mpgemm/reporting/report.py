"""Results as text: tables for people, JSON and CSV for programs."""

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
#: A text column after the first is wrapped, down to this width, before a column is left out.
NARROWEST_TEXT = 30


@dataclass(frozen=True)
class _Run:
    """How the command that runs was called."""

    command: tuple[str, ...] = ()
    wide: bool = False


_RUN: ContextVar[_Run | None] = ContextVar("run", default=None)


def _current() -> _Run:
    return _RUN.get() or _Run()


@contextlib.contextmanager
def running(command: Sequence[str], wide: bool = False) -> Iterator[None]:
    """Assign output printed inside to a command, which its JSON names; `wide` tables are printed in full."""
    token = _RUN.set(_Run(tuple(command), wide))
    try:
        yield
    finally:
        _RUN.reset(token)


def terminal_columns() -> int:
    """Return columns of the terminal: $COLUMNS, else of the one that a standard stream that is no pipe and no file leads to,
    else 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    for descriptor in (1, 2, 0):
        with contextlib.suppress(OSError):
            return max(os.get_terminal_size(descriptor).columns, 1)
    return 80


def shown_width() -> int | None:
    """Return columns that a table may take: the terminal's, also where the output goes to a pipe or file; None (any) for
    --wide."""
    return None if _current().wide else terminal_columns()


@dataclass(frozen=True)
class Table:
    """Rows under headings. Raises ValueError if a row has another number of cells than there are headings."""

    title: str  #: The heading.
    headings: Sequence[str]  #: One for each column.
    rows: Sequence[Sequence[object]]  #: Strings and numbers; numbers are aligned to the right.
    #: No column is left out: a table that is too wide is turned, or cut in parts that repeat what tells its rows apart.
    whole: bool = False
    #: Nothing is said of columns that are left out: the first ones are what matters.
    silent: bool = False

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(
                    f"table {self.title!r}: {len(row)} cells, but the table has {len(self.headings)} headings"
                )

    @classmethod
    def of_rows(cls, title: str, rows: Sequence[Mapping[str, object]]) -> "Table":
        """Of rows with the same names."""
        return cls(title, list(rows[0]) if rows else [], [list(row.values()) for row in rows])

    def __str__(self) -> str:
        """Return plain text, columns two spaces apart."""
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return plain text at most `width` columns wide.

        Long texts are wrapped, the first only alone, then columns left out from the right; a whole table is turned or cut
        instead.
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
            if shown > len(kept):  # a part has a column of its own, however narrow it gets
                widths[shown - 1] = max(width - sum(widths[: shown - 1]) - 2 * (shown - 1), 1)
            lines += [*([""] if lines else []), *part._lines(range(shown), widths)]
            begin += shown - min(keys, begin)
        return lines

    def _keys(self, width: int) -> int:
        """Return columns from the left that tell the rows apart, if they take three quarters of the width at most; else one."""
        texts = self._texts()
        widths = [max(map(len, column)) + 2 for column in zip(self.headings, *texts, strict=True)]
        for n in range(1, len(widths)):
            if len({tuple(row[:n]) for row in texts}) == len(texts):
                return n if sum(widths[:n]) <= 0.75 * width else 1
        return 1

    def _turned(self) -> "Table":
        """Return rows as columns."""
        headings, *rows = zip(self.headings, *self._texts(), strict=True)
        return Table(self.title, headings, rows)

    def _lines(self, kept: Sequence[int], widths: Sequence[int]) -> list[str]:
        """Return some columns, as wide as asked, under their headings."""
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
        """Return which columns are numbers."""
        return number_columns(self.rows, len(self.headings))

    def _fit(self, width: int | None) -> tuple[list[int], list[int]]:
        """Return (columns that are shown, width of each column)."""
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
            if widths[widest] == least[widest]:  # one column is left, and it is too wide
                widths[widest] = max(width, 1)
                break
            widths[widest] = max(least[widest], widths[widest] - over)
        return kept, widths

    def _least(self, column: int, width: int, cells: Sequence[str]) -> int:
        """Return how narrow a column may get: headings and texts are wrapped, numbers are not."""
        if not self._right()[column]:
            return width if column == 0 else min(width, NARROWEST_TEXT)
        return max(map(len, [*self.headings[column].split(), *cells]))

    def shown(self) -> str:
        """Return plain text, no wider than the terminal or $COLUMNS."""
        return self.text(shown_width())

    def print(self, stream: TextIO | None = None) -> None:
        """Print to a stream (standard output by default), no wider than the terminal or $COLUMNS."""
        print(self.shown(), file=stream or sys.stdout)

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it."""
        return html_table(self.title, self.headings, self.rows)

    def to_dataframe(self):
        """Return the rows as a pandas data frame, numbers in full. Raises ImportError if pandas is missing."""
        return data_frame([dict(zip(self.headings, row, strict=True)) for row in self.rows])

    def to_csv(self) -> str:
        """Return comma-separated values with a header line; numbers in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(self.rows)
        return text.getvalue()


def fitted(text: str) -> str:
    """Return lines wrapped to the terminal's width, what is wrapped indented."""
    width = shown_width()
    if width is None:
        return text
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, width, subsequent_indent=indent if len(indent) < width else "") or [""]
    return "\n".join(lines)


def say(text: str) -> None:
    """Print text on standard output, its lines wrapped to the terminal."""
    print(fitted(text))


def wrapped(text: str, indent: str = "", hang: str | None = None) -> str:
    """Return the text broken at the terminal's width, each line a paragraph; `hang` stands before what follows a first line
    (default: indent)."""
    hang = indent if hang is None else hang
    width = max(20, terminal_columns())
    lines = (
        textwrap.fill(line, width, initial_indent=indent, subsequent_indent=hang, break_on_hyphens=False)
        for line in text.split("\n")
    )
    return "\n".join(lines)


def item(text: str) -> str:
    """Return the text below a headline: two columns in, what is wrapped two more."""
    return wrapped(text, "  ", "    ")


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a cell."""
    return [text] if len(text) <= width else textwrap.wrap(text, width, break_on_hyphens=False)


def json_text(value: object) -> str:
    """Return strict JSON, indented: what is not finite becomes the string "inf", "-inf" or "nan".

    In front are the layout's version ("schema"), the command line where a command runs ("command"), and what the numbers were
    computed with ("environment"); a value that is no object goes under "rows".
    """
    command = _current().command
    from mpgemm.reporting.provenance import environment  # it imports NumPy, which the help does without

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
    """Progress of a long job on a terminal: one line rewritten, with the count, the time so far and about how much is left.

    stream: Standard error by default. Where it is no terminal nothing is printed.
    quiet: Print nothing there either.
    patience: Seconds before the first line, so that quick jobs print nothing.
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
