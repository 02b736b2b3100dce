"""`mpgemm beats` finds FP32 operands on which one recovery method is nearer to the exact product than another."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mpgemm.cli.common.solver_options import add_options, answer
from mpgemm.reporting.output import Output

if TYPE_CHECKING:
    from tensorcore_models.probing.formal.witnesses import Witness

QUESTION = "compare corrections"
SUMMARY = "find FP32 operands on which one recovery method is more accurate than another"
EXAMPLES = (
    (
        "markidis ootomo --engine v100",
        "FP32 operands on which Markidis' method is nearer to the exact result than Ootomo's",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "better",
        metavar="METHOD",
        help="method that must be nearer to the exact result: NAME or NAME:OPTION=VALUE,...",
    )
    add("worse", metavar="OTHER", help="method that must be farther from the exact result, written in the same way")
    add("--engine", help="instruction or device that runs both methods (default: that of the first method)")
    add("--k", type=int, help="length of the dot product (default: one k step of the engine)")
    add(
        "--exponents",
        nargs=2,
        type=int,
        default=(-14, 14),
        metavar=("LOW", "HIGH"),
        help="smallest and largest exponent of the operands, base 2 (default -14 14)",
    )
    add(
        "--c-exponents",
        nargs=2,
        type=int,
        default=(-30, 14),
        metavar=("LOW", "HIGH"),
        help="smallest and largest exponent of the addend c, base 2 (default -30 14)",
    )
    add_options(parser)


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError on bad input, and where no solver is installed."""
    from mpgemm.bounds.beating import beating_operands

    return answer(
        args,
        (args.better, args.worse),
        lambda limits: beating_operands(
            args.better, args.worse, args.engine, k=args.k, exponents=tuple(args.exponents),
            c_exponents=tuple(args.c_exponents), **limits,
        ),
        f"{args.better} is nowhere nearer than {args.worse}",
        _with_error,
    )  # fmt: skip


def _with_error(witness: Witness, bits: int) -> str:
    from tensorcore_models.probing.formal.methods import exact_dot
    from tensorcore_models.probing.formal.witnesses import exact_value, shown

    fmt = witness.formats.d
    return f"{shown(bits, fmt)}, error {float(abs(exact_value(bits, fmt) - exact_dot(witness))):.3e}"
