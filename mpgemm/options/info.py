"""`mpgemm info`: versions, kernels, instruction sets, and the engines at hand."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--json", action="store_true", help="print JSON")
