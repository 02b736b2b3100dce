"""`mpgemm completion`: a script that completes commands, options and choices in bash, zsh or fish."""

import argparse

QUESTION = "keep results, check the installation"
SUMMARY = "a script that completes commands and options in bash, zsh or fish"
EXAMPLES = (("bash", "then: source <(mpgemm completion bash)"),)

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("shell", choices=SHELLS, help="bash, zsh: source <(mpgemm completion bash); fish: ... | source")
