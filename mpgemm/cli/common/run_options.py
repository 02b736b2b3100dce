"""Adds the options of commands that measure (workers, output, figures), and runs them so that an interrupted run resumes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mpgemm.cli.common.option_values import FIGURE_FORMATS, FIGURE_STYLES, METRICS
from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output, csv_text
from mpgemm.reporting.report import Progress, Table, fitted, json_text
from tensorcore_models.files import write_text
from tensorcore_models.results import Interrupted

if TYPE_CHECKING:
    from mpgemm.experiments.journal import Journal
    from mpgemm.experiments.outcome import Context, Outcome


def add_run_arguments(parser: Parser) -> None:
    """Add the group "how" with workers and clusters; the command has --repeats already."""
    how = parser.add_argument_group("how")
    how.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="number of threads that measure at the same time (default 1)",
    )
    how.add_argument(
        "--cluster",
        metavar="ADDRESS|local:N",
        help="measure on a dask cluster (tcp://host:8786) or in N processes of this machine (default: in the "
        "threads of --workers)",
    )
    parser.goes_without(("--workers",), ("--cluster",))
    parser.at_least(1, "--workers", "--repeats")


def add_output_arguments(parser: Parser, *, metric_needs_out: bool = False) -> None:
    """Add the group "output"; with `metric_needs_out` the metric affects pictures alone, else also a table."""
    output = parser.add_argument_group("output")
    add = output.add_argument
    add(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="folder for JSON, CSV, figures and the journal of finished results (default: nothing is written)",
    )
    add(
        "--fresh",
        action="store_true",
        help="measure again what the journal in --out already holds (default: its results are used)",
    )
    add("--no-figures", action="store_true", help="write no figures")
    add_figure_arguments(parser, output)
    add("--json", action="store_true", help="print JSON instead of tables")
    add("--quiet", action="store_true", help="do not show progress on the terminal")
    add("--csv", action="store_true", help="print CSV instead of tables")
    add("--metric", choices=METRICS, help="measure of the error that the figures show (default relative_frobenius)")
    parser.goes_without(("--csv",), ("--json",))
    parser.goes_with(("--fresh", "--no-figures", *FIGURE_OPTIONS), ("--out",))
    parser.goes_without(FIGURE_OPTIONS, ("--no-figures",))
    if metric_needs_out:
        parser.goes_with(("--metric",), ("--out",))


#: Options of :func:`add_figure_arguments`.
FIGURE_OPTIONS = ("--figure-format", "--style")


def add_figure_arguments(parser: Parser, group: argparse._ArgumentGroup) -> None:
    """Add the options for format and style of figures, which :func:`figures_of` obeys."""
    group.add_argument(
        "--figure-format", dest="figure_formats", nargs="+", choices=FIGURE_FORMATS, metavar="FORMAT",
        help=f"file formats of figures: {', '.join(FIGURE_FORMATS)} (default: the style's, else png)",
    )  # fmt: skip
    add_style_argument(group)


def add_style_argument(group: argparse._ArgumentGroup | Parser) -> None:
    """Add the option for the style of figures, for a command that is given the name of each file."""
    group.add_argument(
        "--style", metavar="NAME|FILE.toml",
        help=f"style of figures: {', '.join(FIGURE_STYLES)}, or a TOML file that sets width, points, font, grey, "
        "dpi and formats for a journal (default screen)",
    )  # fmt: skip


def figures_of(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Return a context in which figures have the options' format and style. Raises ValueError, OSError for a bad style."""
    name, formats = getattr(args, "style", None), getattr(args, "figure_formats", None)
    if name is None and formats is None:
        return nullcontext()
    from tensorcore_models import figures

    asked = figures.read_style(name or "screen")
    return figures.drawn_as(asked if formats is None else replace(asked, formats=tuple(dict.fromkeys(formats))))


def metric_of(args: argparse.Namespace) -> str:
    """Return the metric that the figures show."""
    return args.metric or "relative_frobenius"


def check_run(args: argparse.Namespace) -> None:
    """Refuse an --out that is not a folder, and figures without matplotlib."""
    if args.out and args.out.exists() and not args.out.is_dir():
        raise ValueError(f"--out {args.out} is not a folder but a file: give a folder")
    if args.out and not args.no_figures:
        from tensorcore_models.figures import require_matplotlib

        require_matplotlib()


def run_resumable(args: argparse.Namespace, work: Callable[[argparse.Namespace, Context], Output]) -> Output:
    """Run `work` with the journal of --out and the workers, and return its output.

    Raises Interrupted after Ctrl-C, with the number of results that the journal keeps.
    """
    from mpgemm.experiments.executors import open_executor
    from mpgemm.experiments.outcome import Context

    journal = _open_journal(args)
    try:
        with open_executor(args.workers, args.cluster) as executor:
            return work(args, Context(journal=journal, progress=Progress(sys.stderr, args.quiet), executor=executor))
    except KeyboardInterrupt:
        if not journal.path:
            raise
        raise Interrupted(f"{len(journal)} results are kept in {journal.path}; the same command resumes") from None


def _open_journal(args: argparse.Namespace) -> Journal:
    from mpgemm.experiments.journal import Journal
    from mpgemm.reporting.provenance import code_digest

    if args.out is None:
        return Journal()
    path = args.out / "journal.jsonl"
    journal = Journal(path, code_digest(), fresh=args.fresh)
    for count, what in (
        (journal.dropped, f"damaged, dropped from {path}"),
        (journal.outdated, f"of another version of the code, left in {path} and not used"),
    ):
        if count:
            entries = "1 result is" if count == 1 else f"{count} results are"
            print(f"mpgemm {args.command}: {entries} {what}; missing results are measured again", file=sys.stderr)
    return journal


# -- outcomes ---------------------------------------------------------------------------------------------------------------
#: The most rows of a table that are printed.
MOST_ROWS = 60


def outcome_text(outcome: Outcome) -> Iterator[str | Table]:
    """Yield the tables and remarks of an outcome; long tables are shortened to their first rows."""
    for table in outcome.tables:
        yield ""
        yield replace(table, rows=table.rows[:MOST_ROWS], whole=True)
        if len(table.rows) > MOST_ROWS:
            yield fitted(
                f"{len(table.rows) - MOST_ROWS} more rows are not shown: --csv prints them, --out FOLDER writes them"
            )
    if outcome.remarks:
        yield ""
        yield fitted("\n".join(outcome.remarks))


def written_to(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Return a line that names the files written into the folder of --out, or no line if there are none."""
    return [f"\nwritten to {args.out}: {', '.join(names)}"] if names else []


def write_outcome(args: argparse.Namespace, outcome: Outcome) -> list[str]:
    """Write the outcome's JSON, CSV and figure into the folder of --out, and return the names of the files."""
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
