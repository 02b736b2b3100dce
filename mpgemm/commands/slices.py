"""`mpgemm slices`: how many integer slices or moduli does this product need, and what do they cost?"""

import argparse
import sys

from mpgemm.commands.matrices import add_matrix_arguments, pair_of
from mpgemm.commands.parser import Parser
from mpgemm.commands.prose import wrapped
from mpgemm.experiments.slice_advice import DEVICES, METHODS, SliceAdvice, slice_advice
from mpgemm.reporting import report


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_matrix_arguments(parser, "normal 64 x 256 x 64")
    parser.add_argument(
        "--target",
        default="fp64",
        metavar="fp64|fp32|BITS",
        help="the accuracy of DGEMM (default) or SGEMM on these matrices, or bits of |A||B|",
    )
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), metavar="NAME", help=f"default {' '.join(METHODS)}"
    )
    parser.add_argument(
        "--engine",
        "--engines",
        nargs="+",
        default=list(DEVICES),
        metavar="DEVICE",
        help=f"devices whose costs are told (default {' '.join(DEVICES)})",
    )
    parser.add_argument("--output", choices=("fp64", "fp32"), help="format of the results (default: the target's)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")
    parser.add_argument("--quiet", action="store_true", help="no progress on a terminal")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError, TypeError, OSError
        On bad input.
    """
    a, b, label = pair_of(args, "normal", (64, 256, 64))
    advice = slice_advice(
        a,
        b,
        args.target,
        args.methods,
        args.engine,
        output=args.output,
        progress=report.Progress(sys.stderr, args.quiet),
    )
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
    title = f"{label}: {target}, {advice.output} results; exponents span {advice.span} bits; costs in ms for 10^12 operations"
    cells = [["-" if value is None else value for value in row.values()] for row in rows]
    return report.Table(title, list(rows[0]) if rows else [], cells)
