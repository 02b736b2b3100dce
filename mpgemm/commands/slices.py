"""`mpgemm slices`: how many integer slices or moduli does this product need, and what do they cost?"""

import argparse
import sys

from mpgemm.commands.matrices import pair_of
from mpgemm.experiments.slice_advice import SliceAdvice, slice_advice
from mpgemm.options.prose import wrapped
from mpgemm.reporting import report


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status. Raises ValueError, TypeError, OSError on bad input."""
    a, b, label = pair_of(args, "normal", (64, 256, 64))
    progress = report.Progress(sys.stderr, args.quiet)
    advice = slice_advice(a, b, args.target, args.methods, args.engine, output=args.output, progress=progress)
    if args.json:
        sys.stdout.write(report.json_text({"input": label, **advice.to_dict()}))
    elif args.csv:
        sys.stdout.write(_table(advice, label).to_csv())
    else:
        if advice.counts:
            _table(advice, label).print()
            print()
        for sentence in advice.sentences():
            print(wrapped(sentence))
    return 0


def _table(advice: SliceAdvice, label: str) -> report.Table:
    target = {"fp64": "DGEMM's accuracy", "fp32": "SGEMM's accuracy"}.get(advice.target, f"{advice.target} bits")
    rows = advice.to_rows()
    bits = f"{advice.span} bit{'s' * (advice.span != 1)}"
    title = f"{label}: {target}, {advice.output} results; exponents span {bits}; costs in ms for 10^12 operations"
    cells = [["-" if value is None else value for value in row.values()] for row in rows]
    return report.Table(title, list(rows[0]) if rows else [], cells)
