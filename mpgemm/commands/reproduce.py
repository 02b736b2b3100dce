"""`mpgemm reproduce`: figures and tables of papers, computed again."""

import argparse
import sys
from dataclasses import asdict, replace

from mpgemm.commands.ascend_options import chip_of, parse_block
from mpgemm.commands.inputs import seeds_of
from mpgemm.commands.outcomes import csv_of, print_outcome, write_outcome
from mpgemm.commands.run_options import check_run, run_resumable
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.reporting import report
from mpgemm.reproductions.rows import PAPERS, REPRODUCTIONS, Reproduction, get_reproduction

#: Options that are keywords of what computes, and those that say where and how it runs.
KEYWORDS = (
    "methods", "engine", "orders", "scale_exponents", "step_orders", "shape", "metric", "timeout", "memory", "solver",
)  # fmt: skip
HOW = ("seed", "repeats", "quick", "workers", "cluster", "block", "chip", "calibrated", "changes")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status."""
    if args.list:
        return _list(args)
    if not args.names:
        raise ValueError("what is to be reproduced? mpgemm reproduce --list names it")
    rows = [get_reproduction(name) for name in dict.fromkeys(args.names)]
    for row in rows:
        useless = [f"--{'set' if name == 'changes' else name.replace('_', '-')}" for name in (*KEYWORDS, *HOW)
                   if name in args.given and name not in row.takes]  # fmt: skip
        if useless:
            raise ValueError(
                f"{' and '.join(useless)} {'has' if len(useless) == 1 else 'have'} no effect on {row.name}"
            )
    check_run(args)
    return run_resumable(args, lambda args, context: _run(args, rows, context))


def _list(args: argparse.Namespace) -> int:
    rows = [asdict(row) for row in REPRODUCTIONS.values()]
    shown = ("name", "part", "what", "seconds")
    if args.json:
        facts = [{name: row[name] for name in ("source", *shown)} for row in rows]
        sys.stdout.write(report.json_text({"rows": facts, "papers": PAPERS}))
        return 0
    tables = [
        report.Table(f"{source}: {paper}", shown, [[row[name] for name in shown] for row in rows
                                                   if row["source"] == source])
        for source, paper in PAPERS.items()
    ]  # fmt: skip
    if args.csv:
        sys.stdout.write(csv_of(Outcome("", tables, {})))
        return 0
    for table in tables:
        table.print()
        print()
    report.say("seconds: CPU time of one run, measured on one x86-64 machine; --quick takes less")
    return 0


def _run(args: argparse.Namespace, rows: list[Reproduction], context: Context) -> int:
    outcomes = {}
    for row in rows:
        own = replace(context, seeds=tuple(seeds_of(args, row.repeats)), quick=args.quick)
        outcomes[row.name] = row.run(own, **_options(args, row))
    written = [file for outcome in outcomes.values() for file in write_outcome(args, outcome)] if args.out else []
    if args.json:
        found = {name: dict(outcome.data) for name, outcome in outcomes.items()}
        sys.stdout.write(report.json_text({"reproductions": found, "written": written}))
        return 0
    for outcome in outcomes.values():
        sys.stdout.write(csv_of(outcome)) if args.csv else print_outcome(outcome)
    if written and not args.csv:
        print(f"\nwritten to {args.out}: {', '.join(sorted(written))}")
    return 0


def _options(args: argparse.Namespace, row: Reproduction) -> dict:
    """The keywords that the options say."""
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
