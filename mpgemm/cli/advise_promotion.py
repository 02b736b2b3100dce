"""`mpgemm advise-promotion` shows error, bound and cost of adding partial sums outside of the core every so many products."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mpgemm.cli.common.inputs import add_matrix_arguments, pair_of, seeded_pairs
from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Progress, Table, wrapped

if TYPE_CHECKING:
    from mpgemm.experiments.promotion import PromotionAdvice
    from mpgemm.experiments.promotion_seeds import PromotionOverSeeds

QUESTION = "evaluate a scheme"
SUMMARY = "find how often a kernel should add partial sums outside of the matrix unit: error, bound, cost"
EXAMPLES = (
    ("A.npy B.npy --engine h100", "error, bound and cost of every interval"),
    ("--engine h100 --wanted 1e-4 --shape 1 7168 64", "the interval that a wanted error needs"),
    (
        "--engine a100 --operands half --distribution uniform_nonnegative --repeats 8",
        "one recommendation from eight seeds",
    ),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    source = add_matrix_arguments(parser, "normal 64 x 4096 x 64")
    source.add_argument(
        "--repeats",
        type=int,
        default=1,
        metavar="N",
        help="number of seeds, from --seed on; for several, each error is given as the median, the smallest and "
        "the largest (default 1)",
    )
    parser.goes_without(("--repeats",), ("files", "--shipped"), "matrices that are drawn")
    parser.at_least(1, "--repeats")
    add = parser.add_argument
    add(
        "--engine",
        default="h100",
        help="matrix unit: a device, a device's path (h100/mma) or an instruction (arch:name); default h100",
    )
    add(
        "--operands",
        dest="format",
        metavar="FORMAT",
        help="format of the operands, if --engine is a device (default: fp8 if its unit has it, else fp16)",
    )
    add(
        "--wanted",
        type=float,
        metavar="ERROR",
        help="largest relative error (Frobenius norm) of the sums that you accept. Default: twice the smallest "
        "error that an interval reaches, or a quarter of the error of rounding the operands, if that is "
        "larger",
    )
    add(
        "--intervals",
        nargs="+",
        type=int,
        metavar="Q",
        help="intervals to compare: numbers of products between two additions to a sum outside of the unit "
        "(default 16, 32, 64, ..., 4096)",
    )
    add(
        "--no-scale",
        action="store_true",
        help="do not multiply operands by powers of two before they are rounded to a narrow format (default: scaled)",
    )
    add("--json", action="store_true", help="print the result as JSON")
    add("--quiet", action="store_true", help="do not show progress on the terminal")


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError, OSError on bad input."""
    from mpgemm.experiments.promotion import INTERVALS, advise_promotion

    intervals = args.intervals or INTERVALS
    wrong = [q for q in intervals if q < 1]
    if wrong:
        raise ValueError(f"--intervals got {wrong[0]}, expected positive integers (numbers of products)")

    def advice_on(a, b) -> PromotionAdvice:
        return advise_promotion(
            a, b, args.engine, fmt=args.format, wanted=args.wanted, intervals=intervals, scale=not args.no_scale,
            progress=Progress(sys.stderr, args.quiet),
        )  # fmt: skip

    advice: PromotionAdvice | PromotionOverSeeds
    if args.repeats == 1:
        a, b, label = pair_of(args, "normal", (64, 4096, 64))
        advice = advice_on(a, b)
        lines = _lines(advice, label)
    else:
        from mpgemm.experiments.promotion_seeds import PromotionOverSeeds

        pairs = seeded_pairs(args, "normal", (64, 4096, 64))
        advice = PromotionOverSeeds.of([advice_on(pair.a, pair.b) for pair in pairs])
        label = f"{pairs[0].label} to {args.seed + args.repeats - 1}"
        lines = _lines_over_seeds(advice, label)
    return Output({"input": label, **advice.to_dict(), "verdict": advice.verdict}, lines)


def _lines_over_seeds(found: PromotionOverSeeds, label: str):
    yield wrapped(f"{label} on {found.by_seed[0].engine} ({' x '.join(map(str, found.by_seed[0].shape))} computed)")
    yield ""
    cells = [
        [
            "never" if i.every is None else str(i.every),
            f"{i.additions:.3%}",
            i.error.text(".2e"),
            i.whole.text(".2e"),
            i.bound,
        ]
        for i in found.intervals
    ]
    headings = ["every", "additions", "error", "whole error", "bound"]
    title = "relative errors (Frobenius), median (smallest to largest); whole error: with the operands' rounding"
    yield Table(title, headings, cells)
    yield ""
    yield from map(wrapped, found.sentences())


def _lines(advice: PromotionAdvice, label: str):
    cells = [
        ["never" if i.every is None else str(i.every), f"{i.additions:.3%}", i.error, i.bits, i.bound, i.whole]
        for i in advice.intervals
    ]
    headings = ["every", "additions", "error", "bits", "bound", "whole error"]
    yield wrapped(f"{label} on {advice.engine} ({' x '.join(map(str, advice.shape))} computed)")
    yield ""
    title = "relative errors (Frobenius); whole error: with the operands' rounding"
    yield Table(title, headings, cells)
    yield ""
    yield wrapped(advice.verdict)
    yield wrapped(advice.beside)
    if any(advice.scaled):
        yield wrapped(
            f"A was multiplied by 2^{advice.scaled[0]} and B by 2^{advice.scaled[1]} first (--no-scale leaves that out)."
        )
