"""Prints an experiment's outcome and writes its files."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from mpgemm.reporting import report
from tensorcore_models.files import write_text

if TYPE_CHECKING:
    from mpgemm.experiments.outcome import Outcome

#: The most rows of a table that are printed.
MOST_ROWS = 60


def print_outcome(outcome: Outcome) -> None:
    """Tables and remarks on standard output; of a long table the first rows."""
    for table in outcome.tables:
        print()
        replace(table, rows=table.rows[:MOST_ROWS], whole=True).print()
        if len(table.rows) > MOST_ROWS:
            report.say(f"{len(table.rows) - MOST_ROWS} more rows: --csv prints them, --out FOLDER writes them")
    if outcome.remarks:
        print()
        report.say("\n".join(outcome.remarks))


def csv_of(outcome: Outcome) -> str:
    """The tables as CSV, each under its title where there are several."""
    if len(outcome.tables) == 1:
        return outcome.tables[0].to_csv()
    return "\n".join(f"# {table.title}\n{table.to_csv()}" for table in outcome.tables)


def write_outcome(args: argparse.Namespace, outcome: Outcome) -> list[str]:
    """Write the outcome's JSON, CSV and figure into the folder of --out; the names of the files."""
    from mpgemm.reporting import plots
    from tensorcore_models import figures

    write_text(args.out / f"{outcome.name}.json", report.json_text(dict(outcome.data)))
    write_text(args.out / f"{outcome.name}.csv", csv_of(outcome))
    written = [f"{outcome.name}.json", f"{outcome.name}.csv"]
    picture = args.out / f"{outcome.name}.png"
    if outcome.draw and not args.no_figures:
        outcome.draw(picture)
        written += [f"{outcome.name}.{name}" for name in figures.style().formats]
    elif outcome.panels and not args.no_figures:
        written += figures.save(plots.panel_grid(outcome.panels, outcome.columns), picture)
    return written
