"""Defines the output of a command: one statement, from which --json, --csv and the text for people are made."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpgemm.reporting.report import Table, json_text


@dataclass(frozen=True)
class Output:
    """The findings of one run of a command."""

    data: object = None  #: Of --json: JSON-compatible values; None where everything is written already.
    text: Iterable[str | Table] = ()  #: For people: lines, wrapped as they are to be, and tables.
    tables: Sequence[Table] = ()  #: Of --csv.
    status: int = 0  #: The exit status.
    remark: str = ""  #: A line of standard error, behind everything else.

    def print(self, args: argparse.Namespace) -> int:
        """Print in the form that the command's options ask for; the exit status."""
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
    """Return tables as CSV, each under its title where there are several."""
    if len(tables) == 1:
        return tables[0].to_csv()
    return "\n".join(f"# {table.title}\n{table.to_csv()}" for table in tables)
