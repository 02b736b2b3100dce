"""Prints an experiment's outcome and writes its files."""

import argparse
import sys

from mpgemm.experiments.outcome import Outcome
from mpgemm.inputs.files import write_text
from mpgemm.reporting import plots, report


def print_outcome(outcome: Outcome) -> None:
    """Tables and remarks on standard output."""
    for table in outcome.tables:
        print()
        table.print()
    if outcome.remarks:
        print("", *outcome.remarks, sep="\n")


def print_data(args: argparse.Namespace, outcome: Outcome) -> None:
    """The outcome as JSON or CSV on standard output, as the options ask."""
    if args.json:
        sys.stdout.write(report.json_text(dict(outcome.data)))
    else:
        sys.stdout.write(_csv(outcome))


def _csv(outcome: Outcome) -> str:
    """The tables as CSV, each under its title where there are several."""
    if len(outcome.tables) == 1:
        return outcome.tables[0].to_csv()
    return "\n".join(f"# {table.title}\n{table.to_csv()}" for table in outcome.tables)


def write_outcome(args: argparse.Namespace, outcome: Outcome) -> list[str]:
    """Write the outcome's JSON, CSV and figure into the folder of --out; the names of the files."""
    write_text(args.out / f"{outcome.name}.json", report.json_text(dict(outcome.data)))
    write_text(args.out / f"{outcome.name}.csv", _csv(outcome))
    written = [f"{outcome.name}.json", f"{outcome.name}.csv"]
    if outcome.panels and not args.no_figures:
        plots.save_figure(plots.panel_grid(outcome.panels, outcome.columns), args.out / f"{outcome.name}.png")
        written.append(f"{outcome.name}.png")
    return written
