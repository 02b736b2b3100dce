"""Scales of operands on the command line: numbers, or matrix files."""

from typing import Any


def add_scale_arguments(parser: Any) -> None:
    """--scale-a and --scale-b."""
    for side in "ab":
        parser.add_argument(
            f"--scale-{side}", nargs="+", metavar="X|FILE",
            help=f"scale of {side.upper()}: a number or a file, whose shape says the rule (per tensor, rows and "
            "columns, blocks of 128, mx, nvfp4); block scales and one number more for nvfp4",
        )  # fmt: skip
