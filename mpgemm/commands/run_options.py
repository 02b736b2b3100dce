"""What the commands that measure share: where results go, and how a run that is interrupted goes on."""

import argparse
import sys
from collections.abc import Callable

from mpgemm.experiments.executors import open_executor
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.outcome import Context
from mpgemm.reporting import plots
from mpgemm.reporting.provenance import code_digest
from mpgemm.reporting.report import Progress


def metric_of(args: argparse.Namespace) -> str:
    """What the figures show."""
    return args.metric or "relative_frobenius"


def check_run(args: argparse.Namespace) -> None:
    """Refuse an output folder that cannot be, and figures without matplotlib."""
    if args.out and args.out.exists() and not args.out.is_dir():
        raise ValueError(f"--out {args.out} is not a folder")
    if args.out and not args.no_figures:
        plots.require_matplotlib()


def run_resumable(args: argparse.Namespace, work: Callable[[argparse.Namespace, Context], int]) -> int:
    """`work` with the journal of --out and the workers; after Ctrl-C, how many results are kept, and exit status 130."""
    journal = _open_journal(args)
    try:
        with open_executor(args.workers, args.cluster) as executor:
            return work(args, Context(journal=journal, progress=Progress(sys.stderr, args.quiet), executor=executor))
    except KeyboardInterrupt:
        kept = f"; {len(journal)} results are kept in {journal.path}, run again to resume" if journal.path else ""
        print(f"\nmpgemm {args.command}: interrupted{kept}", file=sys.stderr)
        return 130


def _open_journal(args: argparse.Namespace) -> Journal:
    if args.out is None:
        return Journal()
    path = args.out / "journal.jsonl"
    if args.fresh:
        path.unlink(missing_ok=True)
    journal = Journal(path, code_digest())
    for count, what in (
        (journal.dropped, f"damaged, dropped from {path}"),
        (journal.outdated, f"of another version of the code, left in {path} and not used"),
    ):
        if count:
            entries = "1 result is" if count == 1 else f"{count} results are"
            print(f"mpgemm {args.command}: {entries} {what}; what is missing is measured again", file=sys.stderr)
    return journal
