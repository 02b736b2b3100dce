"""Says what an experiment found and writes its files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpgemm.reporting.answers import csv_text
from mpgemm.reporting.report import Table, fitted, json_text
from tensorcore_models.files import write_text

if TYPE_CHECKING:
    from mpgemm.experiments.outcome import Outcome

#: The most rows of a table that are printed.
MOST_ROWS = 60


def outcome_text(outcome: Outcome) -> Iterator[str | Table]:
    """Tables and remarks; of a long table the first rows."""
    for table in outcome.tables:
        yield ""
        yield replace(table, rows=table.rows[:MOST_ROWS], whole=True)
        if len(table.rows) > MOST_ROWS:
            yield fitted(f"{len(table.rows) - MOST_ROWS} more rows: --csv prints them, --out FOLDER writes them")
    if outcome.remarks:
        yield ""
        yield fitted("\n".join(outcome.remarks))


def written_to(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Say which files lie in the folder of --out, if any."""
    return [f"\nwritten to {args.out}: {', '.join(names)}"] if names else []


def write_outcome(args: argparse.Namespace, outcome: Outcome) -> list[str]:
    """Write the outcome's JSON, CSV and figure into the folder of --out; the names of the files."""
    from mpgemm.reporting import plots
    from tensorcore_models import figures

    write_text(args.out / f"{outcome.name}.json", json_text(dict(outcome.data)))
    write_text(args.out / f"{outcome.name}.csv", csv_text(outcome.tables))
    written = [f"{outcome.name}.json", f"{outcome.name}.csv"]
    picture = args.out / f"{outcome.name}.png"
    if outcome.draw and not args.no_figures:
        outcome.draw(picture)
        written += [f"{outcome.name}.{name}" for name in figures.style().formats]
    elif outcome.panels and not args.no_figures:
        written += figures.save(plots.panel_grid(outcome.panels, outcome.columns), picture)
    return written
