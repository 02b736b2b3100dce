"""`mpgemm advise-promotion`: how often to add a chain up outside of the core, and what each interval costs and brings."""

import argparse
import sys

from mpgemm.commands.matrices import add_matrix_arguments, pair_of
from mpgemm.commands.parser import Parser
from mpgemm.commands.prose import wrapped
from mpgemm.experiments.promotion import INTERVALS, PromotionAdvice, advise_promotion
from mpgemm.reporting import report


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    add_matrix_arguments(parser, "normal 64 x 4096 x 64")
    parser.add_argument("--engine", default="h100", help="device (default h100), path (h100/mma) or arch:name")
    parser.add_argument(
        "--format", metavar="FORMAT", help="operands of a device's unit (default: fp8 if it has that, else fp16)"
    )
    parser.add_argument("--wanted", type=float, metavar="ERROR", help="relative error of the sums that is wanted")
    parser.add_argument(
        "--intervals",
        nargs="+",
        type=int,
        default=list(INTERVALS),
        metavar="Q",
        help="products (default 16, 32, ..., 4096)",
    )
    parser.add_argument("--no-scale", action="store_true", help="leave operands of narrow formats unscaled")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress on a terminal")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError, TypeError, OSError
        On bad input.
    """
    wrong = [q for q in args.intervals if q < 1]
    if wrong:
        raise ValueError(f"--intervals: {wrong[0]} is no number of products")
    a, b, label = pair_of(args, "normal", (64, 4096, 64))
    advice = advise_promotion(
        a, b, args.engine, fmt=args.format, wanted=args.wanted, intervals=args.intervals, scale=not args.no_scale,
        progress=report.Progress(sys.stderr, args.quiet),
    )  # fmt: skip
    if args.json:
        print(report.json_text({"input": label, **advice.to_dict(), "verdict": advice.verdict}), end="")
    else:
        print("\n".join(_lines(advice, label)))
    return 0


def _lines(advice: PromotionAdvice, label: str):
    cells = [
        ["never" if i.every is None else str(i.every), f"{i.additions:.3%}", i.error, i.bits, i.bound, i.whole]
        for i in advice.intervals
    ]
    headings = ["every", "additions", "error", "bits", "bound", "whole error"]
    yield wrapped(f"{label} on {advice.engine} ({' x '.join(map(str, advice.shape))} computed)")
    yield ""
    title = "relative errors (Frobenius): of the sums; whole: with the operands' rounding"
    yield report.Table(title, headings, cells).shown()
    yield ""
    yield wrapped(advice.verdict)
    yield wrapped(advice.beside)
    if any(advice.scaled):
        yield wrapped(
            f"A was multiplied by 2^{advice.scaled[0]} and B by 2^{advice.scaled[1]} first (--no-scale leaves that out)."
        )
