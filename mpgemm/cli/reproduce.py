"""`mpgemm reproduce` computes figures and tables of papers again."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from mpgemm.cli.common.ascend_options import add_chip_arguments, chip_of, parse_block
from mpgemm.cli.common.inputs import seeds_of
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import (
    add_output_arguments,
    add_run_arguments,
    check_run,
    outcome_text,
    run_resumable,
    write_outcome,
    written_to,
)
from mpgemm.cli.common.solver_options import add_limit_arguments
from mpgemm.cli.evaluate import add_cube_arguments, add_method_arguments
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, fitted

if TYPE_CHECKING:
    from mpgemm.experiments.outcome import Context
    from mpgemm.reproductions.rows import Reproduction

QUESTION = "repeat a paper"
SUMMARY = "compute figures and tables of papers again"
EXAMPLES = (
    ("--list", "all figures and tables, their papers and run times"),
    ("xue8a xue8b --out out", "two figures of the SGEMM-cube paper: table, JSON, CSV, picture"),
    ("xue9b --step-orders sequential exact", "a figure for two roundings inside of the cube's steps"),
    ("khattak7 --quick --out out", "a figure with fewer points and smaller products"),
    ("xue11 --chip 910B3", "a figure about speed, for another chip"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="names of figures and tables, which --list shows")
    add("--list", action="store_true", help="list figures and tables, with their papers and run times")
    drawn = parser.add_argument_group("drawn matrices")
    add = drawn.add_argument
    add("--seed", type=int, metavar="N", help="first seed of the drawn matrices (default 0)")
    add("--repeats", type=int, metavar="N", help="number of seeds (default: the figure's own number, 1 or 3)")
    add("--quick", action="store_true", help="compute fewer points, and smaller products for each")
    add(
        "--shape",
        nargs=3,
        type=int,
        metavar=("M", "K", "N"),
        help="sizes of the product, for figures in which no size varies (default: the figure's own)",
    )
    what = parser.add_argument_group("what figures 8 and 9 of the SGEMM-cube paper compare")
    add_method_arguments(what, "fp16, fp32_numpy, sgemm_cube")
    add_cube_arguments(what, "0 6 12", "sequential")
    what.add_argument(
        "--block",
        metavar="BM,BK,BN",
        help="sizes in elements of SGEMM-cube's blocks on the 910A, which determine where its chains along k end "
        "(default: all of k in one chain; fig. 12: 176,64,176)",
    )
    add_chip_arguments(parser)
    add_limit_arguments(parser.add_argument_group("SMT solvers"))
    add_run_arguments(parser)
    add_output_arguments(parser)
    shown = ("--list", "--json", "--csv", "-h", "--help")
    parser.goes_without(("names", *(name for name in parser._option_string_actions if name not in shown)), ("--list",))


#: Options that are keywords of the functions that compute a row, and options that say where and how these run.
KEYWORDS = (
    "methods", "engine", "orders", "scale_exponents", "step_orders", "shape", "metric", "timeout", "memory", "solver",
)  # fmt: skip
HOW = ("seed", "repeats", "quick", "workers", "cluster", "block", "chip", "calibrated", "changes")


def run(args: argparse.Namespace) -> Output:
    """Carry out the command."""
    from mpgemm.reproductions.rows import get_reproduction

    if args.list:
        return _list()
    if not args.names:
        raise ValueError("no figure or table is named: give a name that mpgemm reproduce --list shows")
    rows = [get_reproduction(name) for name in dict.fromkeys(args.names)]
    refused = {row.name: reason for row in rows if (reason := _refusal(args, row))}
    if len(refused) == len(rows):
        raise ValueError("; ".join(refused.values()))
    check_run(args)
    return run_resumable(args, lambda args, context: _run(args, rows, context, refused))


def _refusal(args: argparse.Namespace, row: Reproduction) -> str:
    """Return why a row refuses these options, or "" if they all have an effect on it."""
    useless = [
        f"--{'set' if name == 'changes' else name.replace('_', '-')}" for name in (*KEYWORDS, *HOW)
        if name in args.given and name not in row.takes
    ]  # fmt: skip
    return (
        f"{' and '.join(useless)} {'has' if len(useless) == 1 else 'have'} no effect on {row.name}: leave "
        f"{' and '.join(useless)} out"
        if useless
        else ""
    )


def _list() -> Output:
    from mpgemm.reproductions.rows import PAPERS, REPRODUCTIONS

    rows = [asdict(row) for row in REPRODUCTIONS.values()]
    shown = ("name", "part", "what", "seconds")
    facts = [{name: row[name] for name in ("source", *shown)} for row in rows]
    tables = [
        Table(f"{source}: {paper}", shown, [[row[name] for name in shown] for row in rows
                                                   if row["source"] == source])
        for source, paper in PAPERS.items()
    ]  # fmt: skip
    text = [piece for table in tables for piece in (table, "")]
    text.append(fitted("seconds: CPU time of one run, measured on one x86-64 machine; --quick takes less"))
    return Output({"rows": facts, "papers": PAPERS}, text, tables)


def _run(args: argparse.Namespace, rows: list[Reproduction], context: Context, refused: dict[str, str]) -> Output:
    """Compute each row; rows that refuse the options or fail are reported and skipped, and the exit status is then 2.

    The tables of a row are printed as soon as it is computed.
    """
    found: dict[str, dict] = {}
    written: list[str] = []
    refused = dict(refused)
    for row in rows:
        if row.name not in refused:
            own = replace(context, seeds=tuple(seeds_of(args, row.repeats)), quick=args.quick)
            try:
                outcome = row.run(own, **_options(args, row))
            except ValueError as error:
                refused[row.name] = f"{row.name}: {error}"
        if row.name in refused:
            print(f"mpgemm reproduce: {refused[row.name]}", file=sys.stderr)
            continue
        found[row.name] = dict(outcome.data)
        if args.out:
            written += write_outcome(args, outcome)
        if not args.json:
            Output(text=outcome_text(outcome), tables=outcome.tables).print(args)
    facts = {"reproductions": found, "refused": refused, "written": written}
    return Output(facts, written_to(args, sorted(written)), status=2 if refused else 0)


def _options(args: argparse.Namespace, row: Reproduction) -> dict:
    """Return the given options as keywords of a row's function."""
    found = {name: getattr(args, name) for name in KEYWORDS if name in args.given}
    if "solver" in found:
        found["backends"] = found.pop("solver")
    if "shape" in found:
        found["shape"] = tuple(found["shape"])
    if args.block:
        found["block"] = parse_block(args.block)
    if "chip" in row.takes:
        found["chip"] = chip_of(args)
    return found
