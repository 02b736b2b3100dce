"""Results as text: tables for people, JSON and CSV for programs."""

import csv
import io
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Parameters
    ----------
    title : str
        Stands above.
    headings : sequence of str
        One for each column.
    rows : sequence of sequences
        Strings and numbers; numbers are aligned to the right.

    Raises
    ------
    ValueError
        If a row has another number of cells than there are headings.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(f"table {self.title!r}: {len(row)} cells under {len(self.headings)} headings")

    def __str__(self) -> str:
        """Plain text, columns two spaces apart."""
        texts = [[format_cell(cell) for cell in row] for row in self.rows]
        widths = [max(len(line[i]) for line in [list(self.headings), *texts]) for i in range(len(self.headings))]
        right = self._right()

        def line(cells: Sequence[str]) -> str:
            padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
            return "  ".join(padded).rstrip()

        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self.title, line(list(self.headings)), rule, *map(line, texts)])

    def _right(self) -> list[bool]:
        """Which columns are numbers."""
        return [
            bool(self.rows) and all(isinstance(row[i], int | float) for row in self.rows)
            for i in range(len(self.headings))
        ]

    def print(self, stream: TextIO | None = None) -> None:
        """Print to a stream (standard output by default): with rich on a terminal where it is installed, else plain."""
        stream = stream or sys.stdout
        if stream.isatty():
            try:
                self._print_rich(stream)
                return
            except ImportError:
                pass
        print(self, file=stream)

    def _print_rich(self, stream: TextIO) -> None:
        import rich.box
        import rich.console
        import rich.table
        import rich.text

        table = rich.table.Table(title=self.title, title_justify="left", box=rich.box.SIMPLE_HEAD)
        for heading, right in zip(self.headings, self._right(), strict=True):
            table.add_column(heading, justify="right" if right else "left")
        for row in self.rows:
            table.add_row(*(rich.text.Text(format_cell(cell)) for cell in row))
        rich.console.Console(file=stream).print(table)

    def to_csv(self) -> str:
        """Comma-separated values with a header line; numbers in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(self.rows)
        return text.getvalue()


def format_cell(cell: object) -> str:
    """A number in at most a few digits, anything else as it is."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if isinstance(cell, int) or cell == 0 or not math.isfinite(cell):
        return f"{cell:g}" if isinstance(cell, float) else str(cell)
    if 0.1 <= abs(cell) < 1e4:
        return f"{cell:.2f}"
    return f"{cell:.2e}"


def json_text(value: object) -> str:
    """Strict JSON, indented: what is not finite becomes the string "inf", "-inf" or "nan"."""
    return json.dumps(_finite(value), indent=1, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class Progress:
    """Progress of a long job on a stream: one line rewritten on a terminal, else a line every few seconds.

    Quick jobs print nothing off a terminal: the first line comes after `interval` seconds.
    """

    def __init__(self, stream: TextIO | None = None, interval: float = 5.0):
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.interval = 0.1 if self.terminal else interval
        self.last = self.start = time.monotonic()
        self.width = 0

    def __call__(self, done: int, total: int, label: str) -> None:
        now = time.monotonic()
        finished = done == total
        if now - self.last < self.interval and not (finished and self.width):
            return
        self.last = now
        text = f"{done}/{total} {label}"[:110].rstrip()
        if not self.terminal:
            if not finished:
                print(f"{text} ({now - self.start:.0f} s)", file=self.stream, flush=True)
            return
        text = "" if finished else text
        print("\r" + text.ljust(self.width) + ("\r" if finished else ""), end="", file=self.stream, flush=True)
        self.width = len(text)
