"""What commands that ask SMT solvers about two named things have in common: limits as options, how the answer is printed."""

import argparse

from mpgemm.options.words import SOLVER_MEGABYTES, SOLVER_SECONDS, SOLVERS


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options for limits of time and memory, the choice of solvers, and JSON."""
    add_limit_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_limit_arguments(parser: argparse._ActionsContainer) -> None:
    """The options for limits of time and memory, and the choice of solvers."""
    add = parser.add_argument
    add("--timeout", type=float, default=SOLVER_SECONDS, help="seconds (default %(default)s)")
    add("--memory", type=int, default=SOLVER_MEGABYTES, help="MiB for each solver (default %(default)s)")
    add(
        "--solver", nargs="+", choices=SOLVERS, metavar="NAME",
        help=f"only these of {', '.join(SOLVERS)} (default: all that are installed)",
    )  # fmt: skip
