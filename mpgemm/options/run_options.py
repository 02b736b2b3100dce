"""What the commands that measure share: where results go, and how a run that is interrupted goes on."""

from pathlib import Path

from mpgemm.options.parser import Parser
from mpgemm.options.words import METRICS


def add_run_arguments(parser: Parser) -> None:
    """The group "how": workers and clusters, of a command that has --repeats already."""
    how = parser.add_argument_group("how")
    how.add_argument(
        "--workers", type=int, default=1, metavar="N", help="measurements side by side, in threads (default 1)"
    )
    how.add_argument(
        "--cluster",
        metavar="ADDRESS|local:N",
        help="on a dask cluster instead (tcp://host:8786), or in N processes of this machine",
    )
    parser.goes_without(("--workers",), ("--cluster",))
    parser.at_least(1, "--workers", "--repeats")


def add_output_arguments(parser: Parser, *, metric_needs_out: bool = False) -> None:
    """The group "output"; the metric is that of pictures alone (`metric_needs_out`), or that of a table, too."""
    output = parser.add_argument_group("output")
    add = output.add_argument
    add("--out", type=Path, metavar="FOLDER", help="write JSON, CSV, figures and the journal there")
    add("--fresh", action="store_true", help="measure again what the journal in --out holds")
    add("--no-figures", action="store_true", help="no pictures")
    add("--json", action="store_true", help="print JSON instead of tables")
    add("--quiet", action="store_true", help="no progress on a terminal")
    add("--csv", action="store_true", help="print CSV instead of tables")
    add("--metric", choices=METRICS, help="what the figures show (default relative_frobenius)")
    parser.goes_without(("--csv",), ("--json",))
    parser.goes_with(("--fresh", "--no-figures"), ("--out",))
    if metric_needs_out:
        parser.goes_with(("--metric",), ("--out",))
