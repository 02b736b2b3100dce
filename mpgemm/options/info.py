"""`mpgemm info`: versions, kernels, instruction sets, and the engines at hand."""

import argparse

QUESTION = "keep results, check the installation"
SUMMARY = "versions, kernels, instruction sets, engines at hand"
EXAMPLES = (("", "versions, kernels, instruction sets, engines"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--json", action="store_true", help="print JSON")
