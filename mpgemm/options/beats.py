"""`mpgemm beats`: FP32 operands on which one recovery method is nearer to the exact product than another."""

import argparse

from mpgemm.options.solver_options import add_options

QUESTION = "compare corrections"
SUMMARY = "FP32 operands on which one recovery method is nearer than another, verified"
EXAMPLES = (("markidis ootomo --engine v100", "FP32 operands on which adding c inside of the core is nearer"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "better", metavar="METHOD", help="the method that is to be nearer; NAME or NAME:OPTION=VALUE,..."
    )
    parser.add_argument("worse", metavar="OTHER", help="the method that is to be farther off")
    parser.add_argument("--engine", help="instruction or device that runs both (default: that of the first)")
    parser.add_argument("--k", type=int, help="products of the dot product (default: one k step of the engine)")
    parser.add_argument(
        "--exponents",
        nargs=2,
        type=int,
        default=(-14, 14),
        metavar=("LOW", "HIGH"),
        help="of operands (default -14 14)",
    )
    parser.add_argument(
        "--c-exponents", nargs=2, type=int, default=(-30, 14), metavar=("LOW", "HIGH"), help="of c (default -30 14)"
    )
    add_options(parser)
