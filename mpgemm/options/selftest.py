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
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, metavar="S", help=f"time for random comparisons ({SECONDS:g})"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random encodings (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
