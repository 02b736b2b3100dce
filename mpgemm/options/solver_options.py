"""What commands that ask SMT solvers about two named things have in common: limits as options, how the answer is printed."""

import argparse

from mpgemm.options.words import SOLVER_MEGABYTES, SOLVER_SECONDS, SOLVERS


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options for limits of time and memory, the choice of solvers, and JSON."""
    add_limit_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_limit_arguments(parser: argparse._ActionsContainer) -> None:
    """The options for limits of time and memory, and the choice of solvers."""
    parser.add_argument("--timeout", type=float, default=SOLVER_SECONDS, help="seconds (default %(default)s)")
    parser.add_argument(
        "--memory", type=int, default=SOLVER_MEGABYTES, help="MiB for each solver (default %(default)s)"
    )
    parser.add_argument(
        "--solver", nargs="+", choices=SOLVERS, metavar="NAME",
        help=f"only these of {', '.join(SOLVERS)} (default: all that are installed)",
    )  # fmt: skip
