"""`mpgemm selftest`: does the installed package compute what it should on this machine?"""

import argparse

QUESTION = "keep results, check the installation"
SUMMARY = "kernels beside their exact twins, and outputs of real GPUs: about a minute"
EXAMPLES = (
    ("", "about half a minute"),
    ("--seconds 120", "more of it"),
)

#: Seconds of random comparisons; the other checks take a few more.
SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--seconds", type=float, default=SECONDS, metavar="S", help=f"time for random comparisons ({SECONDS:g})")
    add("--seed", type=int, default=0, help="of the random encodings (0)")
    add("--json", action="store_true", help="print JSON")
