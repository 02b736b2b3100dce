"""The `mpgemm` command line: a table of commands, each in a module of its own.

A command module has `add_arguments(parser)` and `run(args) -> int`. Bad input is a ValueError, TypeError or
OSError from `run`: it becomes one line on standard error and exit status 2.
"""

import argparse
import importlib
import os
import sys
from typing import NoReturn

# name: (module, one line of help). A module is imported only when its command runs.
COMMANDS: dict[str, tuple[str, str]] = {
    "evaluate": ("mpgemm.commands.evaluate", "accuracy of SGEMM-cube and native GEMMs on files or generated matrices"),
    "compare": ("mpgemm.commands.compare", "recovery methods times matrix engines: errors, bits, passes, bounds"),
    "explain": ("mpgemm.commands.explain", "one recovered dot product step by step, and where its error comes from"),
    "models": ("mpgemm.commands.models", "the catalogue of matrix engines and recovery methods"),
    "plan": ("mpgemm.commands.plan", "block sizes for a GEMM on an Ascend chip, why, and what to type into the kernel"),
    "simulate": ("mpgemm.commands.simulate", "a tile schedule on the pipes of an Ascend core: speed, stalls, traces"),
    "predict": ("mpgemm.commands.predict", "what a GPU library returns for two matrices, bit for bit"),
    "diff": (
        "mpgemm.commands.diff",
        "two GPUs' results of one product: explained by their recipes? where and why do they part?",
    ),
    "invariance": (
        "mpgemm.commands.invariance",
        "do rows of a GEMM change their bits with the batch size on a GPU library?",
    ),
    "report": ("mpgemm.commands.report", "one Markdown page from the folders that other commands wrote"),
}


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line; `--help` has the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        from mpgemm.experiments.provenance import package_version

        print(f"{parser.prog} {package_version()}")
        parser.exit(0)


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The argument parser; only the `chosen` command's own arguments are added."""
    parser = _Parser(prog="mpgemm", description="Mixed-precision GEMM on modelled matrix hardware.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary)
        if name == chosen:
            importlib.import_module(module).add_arguments(subparser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 on bad input, 130 after Ctrl-C."""
    argv = sys.argv[1:] if argv is None else argv
    chosen = next((word for word in argv if not word.startswith("-")), None)
    args = build_parser(chosen).parse_args(argv)
    try:
        return importlib.import_module(COMMANDS[args.command][0]).run(args)
    except BrokenPipeError:  # the reader of our output went away, as `mpgemm ... | head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, TypeError, OSError) as error:
        print(f"mpgemm {args.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # commands that keep finished work say themselves how to go on
        print(f"\nmpgemm {args.command}: interrupted", file=sys.stderr)
        return 130
