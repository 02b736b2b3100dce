"""`mpgemm beats`: FP32 operands on which one recovery method is nearer to the exact product than another."""

import argparse

from mpgemm.options.solver_options import add_options

QUESTION = "compare corrections"
SUMMARY = "FP32 operands on which one recovery method is nearer than another, verified"
EXAMPLES = (("markidis ootomo --engine v100", "FP32 operands on which adding c inside of the core is nearer"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("better", metavar="METHOD", help="the method that is to be nearer; NAME or NAME:OPTION=VALUE,...")
    add("worse", metavar="OTHER", help="the method that is to be farther off")
    add("--engine", help="instruction or device that runs both (default: that of the first)")
    add("--k", type=int, help="products of the dot product (default: one k step of the engine)")
    add(
        "--exponents",
        nargs=2,
        type=int,
        default=(-14, 14),
        metavar=("LOW", "HIGH"),
        help="of operands (default -14 14)",
    )
    add("--c-exponents", nargs=2, type=int, default=(-30, 14), metavar=("LOW", "HIGH"), help="of c (default -30 14)")
    add_options(parser)
