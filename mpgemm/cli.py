"""The `mpgemm` command line: a table of commands, each in a module of its own.

A command module has `add_arguments(parser)` and `run(args) -> int`. Bad input is a ValueError, TypeError or
OSError from `run`: it becomes one line on standard error and exit status 2.
"""

import argparse
import csv
import difflib
import importlib
import os
import re
import sys
from concurrent.futures import BrokenExecutor, CancelledError
from typing import NoReturn

from mpgemm.commands.examples import epilog
from mpgemm.reporting.report import running
from tensorcore_models.machine.fp_state import default_fp_state

# name: (module, one line of help). A module is imported only when its command runs.
COMMANDS: dict[str, tuple[str, str]] = {
    "evaluate": ("mpgemm.commands.evaluate", "accuracy of SGEMM-cube and native GEMMs on files or generated matrices"),
    "compare": ("mpgemm.commands.compare", "recovery methods times matrix engines: errors, bits, passes, bounds"),
    "explain": ("mpgemm.commands.explain", "one recovered dot product step by step, and where its error comes from"),
    "models": ("mpgemm.commands.models", "the catalogue of matrix engines and recovery methods"),
    "tolerance": ("mpgemm.commands.tolerance", "what a kernel's test may allow, and what a tolerance would miss"),
    "advise-promotion": (
        "mpgemm.commands.advise_promotion",
        "how often to add up outside of the core: error, bound, cost",
    ),
    "whodunit": ("mpgemm.commands.whodunit", "which GPU's arithmetic, order of k or recovery method made these bits?"),
    "identify": ("mpgemm.commands.identify", "what a matrix unit computes: a black box in, its specification out"),
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
    "distinguish": (
        "mpgemm.commands.distinguish",
        "an input on which two instructions give different results, verified",
    ),
    "beats": ("mpgemm.commands.beats", "FP32 operands on which one recovery method is nearer than another, verified"),
    "report": ("mpgemm.commands.report", "one page, HTML or Markdown, from the folders that other commands wrote"),
    "info": ("mpgemm.commands.info", "versions, kernels, instruction sets, engines at hand"),
    "selftest": (
        "mpgemm.commands.selftest",
        "kernels beside their exact twins, and outputs of real GPUs: about a minute",
    ),
    "completion": ("mpgemm.commands.completion", "a script that completes commands and options in bash, zsh or fish"),
}


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line; `--help` has the rest."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Numbers such as -1e-3, -0x1p-4 and -1/3 are values; argparse alone takes them for options.
        self._negative_number_matcher = re.compile(r"^-[\d.]")

    def parse_known_args(self, args=None, namespace=None):
        self._given: set[str] = set()
        return super().parse_known_args(args, namespace)

    def _get_values(self, action, arg_strings):
        """Refuse an option that is given twice and keeps one value: argparse would drop the first without a word."""
        if action.option_strings and type(action) is argparse._StoreAction:
            if action.dest in self._given:
                self.error(f"{action.option_strings[0]} is given twice, expected once")
            self._given.add(action.dest)
        return super()._get_values(action, arg_strings)

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
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=summary,
            epilog=epilog(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == chosen:
            importlib.import_module(module).add_arguments(subparser)
            subparser.add_argument("--wide", action="store_true", help="tables with all columns, however wide")
    return parser


# Threads of the kernels sleep while they wait: spinning costs a command more CPU time than its work, and is read when a command
# loads OpenMP's library.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@default_fp_state
def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 on bad input, 130 after Ctrl-C."""
    argv = sys.argv[1:] if argv is None else argv
    chosen = next((word for word in argv if not word.startswith("-")), None)
    if chosen is not None and chosen not in COMMANDS:
        sys.exit(_refuse(chosen, _unknown_command(chosen)))
    args = build_parser(chosen).parse_args(argv)
    if sys.stdout is None:  # it was closed before we started; whatever is printed is not wanted
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, it stays open until the end
    try:
        with running(argv, args.wide):
            status = importlib.import_module(COMMANDS[args.command][0]).run(args)
        sys.stdout.flush()  # a full disk shows here, not when the interpreter ends
        return status
    except BrokenPipeError:  # the reader of our output went away, as `mpgemm ... | head` does
        _silence()
        return 1
    except MemoryError as error:
        return _refuse(args.command, f"more memory is needed than there is {error}")
    except RecursionError:
        return _refuse(args.command, "an input is nested too deeply")
    except (CancelledError, BrokenExecutor) as error:
        return _refuse(
            args.command,
            f"the workers were lost ({str(error) or type(error).__name__}); with --out, run again to resume",
        )
    except (ValueError, TypeError, OSError, OverflowError, csv.Error) as error:
        if isinstance(error, OSError):
            _silence_if_broken()
        return _refuse(args.command, str(error) or type(error).__name__)
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        return _refuse(
            args.command, f"the cluster failed ({type(error).__name__}: {error}); with --out, run again to resume"
        )
    except KeyboardInterrupt:  # commands that keep finished work say themselves how to go on
        print(f"\nmpgemm {args.command}: interrupted", file=sys.stderr)
        return 130


def _unknown_command(name: str) -> str:
    near = difflib.get_close_matches(name, COMMANDS, 1)
    hint = f" did you mean {near[0]}?" if near else ""
    return f"no such command;{hint} known: {', '.join(COMMANDS)}"


def _refuse(command: str, reason: str) -> int:
    """Say why a command cannot be carried out, in one line; the exit status."""
    print(f"mpgemm {command}: {' '.join(reason.split())}", file=sys.stderr)
    return 2


def _silence() -> None:
    """Let what is still to be written to standard output go nowhere: the interpreter flushes it at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _silence_if_broken() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _silence()
