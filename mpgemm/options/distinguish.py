"""`mpgemm distinguish`: an input on which two instructions give different results, or the proof that there is none."""

import argparse

from mpgemm.options.solver_options import add_options

QUESTION = "look into a unit"
SUMMARY = "an input on which two instructions give different results, verified"
EXAMPLES = (
    ("ampere:mma.m16n8k16.f32.f16.f16.f32 hopper:mma.m16n8k16.f32.f16.f16.f32", "an input on which two units differ"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("first", metavar="SPEC_A", help="instruction: architecture:name, as `mpgemm models` lists them")
    add("second", metavar="SPEC_B", help="instruction of the same formats")
    add("--k", type=int, help="products of the dot product (default: whole steps of both)")
    add("--finite", action="store_true", help="leave infinities and NaNs out")
    add_options(parser)
