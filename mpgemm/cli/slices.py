"""`mpgemm slices` finds how many integer slices or moduli a product needs, and what they cost."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mpgemm.cli.common.inputs import add_matrix_arguments, pair_of
from mpgemm.cli.common.option_values import COST_DEVICES, COUNTED_METHODS
from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, wrapped

if TYPE_CHECKING:
    from mpgemm.experiments.slice_advice import SliceAdvice

QUESTION = "compare corrections"
SUMMARY = "find how many integer slices or moduli a product needs, by proof and by measurement"
EXAMPLES = (
    ("A.npy B.npy", "how many slices make emulated FP64 as accurate as DGEMM here?"),
    ("A.npy B.npy --target 40 --engine b300 h100", "slices for 40 bits, and their costs on two devices"),
    ("A.npy B.npy --target relative:30", "30 bits relative to the result, even if the product is ill-conditioned"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add_matrix_arguments(parser, "normal 64 x 256 x 64")
    add = parser.add_argument
    add(
        "--target",
        default="fp64",
        metavar="fp64|fp32|BITS|relative[:BITS]",
        help="accuracy to reach on these matrices: fp64 (that of DGEMM, the default) or fp32 (that of SGEMM), a "
        "number of bits relative to |A||B|, or relative:BITS for bits relative to the result (relative: all "
        "bits of the output format)",
    )
    add(
        "--methods",
        nargs="+",
        default=list(COUNTED_METHODS),
        metavar="NAME",
        help=f"methods whose slices or moduli are counted (default {' '.join(COUNTED_METHODS)})",
    )
    add(
        "--engine",
        "--engines",
        nargs="+",
        default=list(COST_DEVICES),
        metavar="DEVICE",
        help=f"devices for which the cost of each method is shown (default {' '.join(COST_DEVICES)})",
    )
    add("--output", choices=("fp64", "fp32"), help="format of the results (default: that of the target)")
    add("--json", action="store_true", help="print the result as JSON")
    add("--csv", action="store_true", help="print the table as CSV")
    add("--quiet", action="store_true", help="do not show progress on the terminal")
    parser.goes_without(("--csv",), ("--json",))


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    from mpgemm.experiments.slice_advice import slice_advice

    a, b, label = pair_of(args, "normal", (64, 256, 64))
    progress = Progress(sys.stderr, args.quiet)
    advice = slice_advice(a, b, args.target, args.methods, args.engine, output=args.output, progress=progress)
    table = _table(advice, label)
    text: list[str | Table] = [table, ""] if advice.counts else []
    text += map(wrapped, advice.sentences())
    return Output({"input": label, **advice.to_dict()}, text, [table])


def _table(advice: SliceAdvice, label: str) -> Table:
    bits_of = f"{advice.wanted} bits of the result" if advice.relative else f"{advice.target} bits"
    target = {"fp64": "DGEMM's accuracy", "fp32": "SGEMM's accuracy"}.get(advice.target, bits_of)
    rows = advice.to_rows()
    bits = f"{advice.span} bit{'s' * (advice.span != 1)}"
    title = f"{label}: {target}, {advice.output} results; exponents span {bits}; costs in ms for 10^12 operations"
    cells = [["-" if value is None else value for value in row.values()] for row in rows]
    return Table(title, list(rows[0]) if rows else [], cells)
