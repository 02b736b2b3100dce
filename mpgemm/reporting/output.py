"""Defines the output of a command, from which --json, --csv and the readable text are made."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpgemm.reporting.report import Table, json_text


@dataclass(frozen=True)
class Output:
    """`Output` holds the output of one run of a command."""

    data: object = None  #: JSON-compatible values for --json; None if they are written already.
    text: Iterable[str | Table] = ()  #: Readable output: lines that are already wrapped, and tables.
    tables: Sequence[Table] = ()  #: Tables for --csv.
    status: int = 0  #: Exit status.
    remark: str = ""  #: Last line, on standard error.

    def print(self, args: argparse.Namespace) -> int:
        """Print the output in the form that the command's options ask for, and return the exit status."""
        if getattr(args, "json", False):
            if self.data is not None:
                sys.stdout.write(json_text(self.data))
        elif getattr(args, "csv", None) is True:  # --csv FILE of `plan` is a file that it wrote
            sys.stdout.write(csv_text(self.tables))
        else:
            for piece in self.text:
                print(piece.shown() if isinstance(piece, Table) else piece)
        if self.remark:
            print(self.remark, file=sys.stderr)
        return self.status


def csv_text(tables: Sequence[Table]) -> str:
    """Return tables as CSV; if there are several, each is below its title."""
    if len(tables) == 1:
        return tables[0].to_csv()
    return "\n".join(f"# {table.title}\n{table.to_csv()}" for table in tables)
