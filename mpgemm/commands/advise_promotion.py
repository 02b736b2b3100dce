"""`mpgemm advise-promotion`: how often to add a chain up outside of the core, and what each interval costs and brings."""

import argparse
import sys

from mpgemm.commands.matrices import pair_of
from mpgemm.experiments.promotion import INTERVALS, PromotionAdvice, advise_promotion
from mpgemm.options.prose import wrapped
from mpgemm.reporting import report


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status. Raises ValueError, TypeError, OSError on bad input."""
    intervals = args.intervals or INTERVALS
    wrong = [q for q in intervals if q < 1]
    if wrong:
        raise ValueError(f"--intervals: {wrong[0]} is no number of products")
    a, b, label = pair_of(args, "normal", (64, 4096, 64))
    advice = advise_promotion(
        a, b, args.engine, fmt=args.format, wanted=args.wanted, intervals=intervals, scale=not args.no_scale,
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
