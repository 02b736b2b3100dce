"""Runs the `mpgemm` command line: finds a command, carries it out, and prints in one line why a command cannot be carried out.

`mpgemm some-command` is the module `mpgemm.cli.some_command` (`mpgemm.cli.common.discovery`): `add_arguments` defines its
options, `run(args)` carries it out and returns an Output, which this module prints. Functions import the modules that compute
when they are called, so that `--help` is quick. On bad input `run` raises ValueError, TypeError or OSError: its message
becomes one line on standard error, and the exit status is 2.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import io
import os
import sys
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path
from typing import TYPE_CHECKING

from mpgemm.cli.common.discovery import (
    OTHER_NAMES,
    all_commands,
    command_module,
    command_names,
    command_parser,
    overview,
)
from mpgemm.cli.common.parser import Parser
from mpgemm.cli.common.run_options import figures_of
from mpgemm.reporting.report import running, wrapped
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Interrupted

if TYPE_CHECKING:
    from mpgemm.bounds.watching import OutsideBound


class _Version(argparse.Action):
    """Prints the version, which is looked up only when the option is given."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        from mpgemm.reporting.provenance import package_version

        print(f"{parser.prog} {package_version()}")
        parser.exit(0)


def _general_parser() -> Parser:
    """Build the parser of `mpgemm` itself, which lists the commands and prints the version."""
    parser = Parser(
        prog="mpgemm",
        usage="mpgemm COMMAND [OPTION ...]",
        description=f"Mixed-precision GEMM on modelled matrix hardware.\n{overview()}",
        epilog=wrapped("mpgemm COMMAND --help lists a command's options and shows examples."),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    return parser


# The kernels' threads sleep while they wait, because spinning costs a command more CPU time than its work. OpenMP's library
# reads this setting when a command loads it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@default_fp_state
def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 on bad input, 3 if a result is outside of its certified bound, 130
    after Ctrl-C."""
    argv = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a file name that is not UTF-8 is printed with escapes and raises no error
            stream.reconfigure(errors="backslashreplace")
    if not argv:
        from mpgemm.cli.common.front import first_screen

        print(first_screen())
        return 0
    command = OTHER_NAMES.get(argv[0], argv[0])
    if command.startswith("-") or not command:
        parser = _general_parser()
        parser.parse_args(argv[:1])  # help and the version end here
        parser.error("a COMMAND is missing")
    if command not in command_names():
        sys.exit(_refuse(command, _unknown_command(command)))
    try:
        args = command_parser(command).parse_args(argv[1:])
    except ValueError as error:
        return _refuse(command, str(error))
    return _carried_out(command, args, argv)


def _carried_out(command: str, args: argparse.Namespace, argv: list[str]) -> int:
    """Run a command, print its output and return the exit status, also where the command cannot be carried out."""
    if sys.stdout is None:  # the caller closed it before the start and wants no output
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, it stays open until the end
    try:
        with running(argv, args.wide), figures_of(args):
            status = command_module(command).run(args).print(args)
        sys.stdout.flush()  # a full disk shows here, not when the interpreter ends
        return status
    except BrokenPipeError:  # the program that reads the output ended first, as in `mpgemm ... | head`
        _silence()
        return 1
    except MemoryError as error:
        return _refuse(command, f"more memory is needed than there is; give smaller matrices. {error}")
    except RecursionError:
        return _refuse(command, "an input is nested too deeply to be read; flatten it")
    except (CancelledError, BrokenExecutor) as error:
        return _refuse(
            command,
            f"the workers were lost ({str(error) or type(error).__name__}); with --out the same command resumes",
        )
    except (ValueError, TypeError, OSError, OverflowError, csv.Error) as error:
        if isinstance(error, OSError):
            _silence_if_broken()
        return _refuse(command, str(error) or type(error).__name__)
    except Exception as error:
        from mpgemm.bounds.watching import OutsideBound

        if isinstance(error, OutsideBound):
            return _outside(command, args, error)
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        return _refuse(
            command, f"the cluster failed ({type(error).__name__}: {error}); with --out the same command resumes"
        )
    except KeyboardInterrupt as stopped:  # commands that keep finished work add how to resume
        known = f": {stopped.known}" if isinstance(stopped, Interrupted) else ""
        print(f"\nmpgemm {command}: interrupted{known}", file=sys.stderr)
        return 130


def _unknown_command(name: str) -> str:
    near = difflib.get_close_matches(name, all_commands(), 1)
    hint = f" did you mean {near[0]}?" if near else ""
    return f"no such command;{hint} the commands are {', '.join(all_commands())}"


def _outside(command: str, args: argparse.Namespace, error: OutsideBound) -> int:
    """Print which result is outside of its certified bound, write a file that computes it again, and return the exit status."""
    from mpgemm.experiments.outside import write_outside

    folder = getattr(args, "out", None)
    try:
        path = write_outside(error, folder if isinstance(folder, Path) else Path())
        again = f"mpgemm selftest --rerun {path} computes it again"
    except OSError as failed:
        again = f"the file that computes it again could not be written ({failed})"
    print(
        f"mpgemm {command}: a result of this package is wrong, so nothing is judged: {error}; {again}", file=sys.stderr
    )
    return 3


def _refuse(command: str, reason: str) -> int:
    """Print in one line why a command cannot be carried out, and return the exit status 2."""
    print(f"mpgemm {command}: {' '.join(reason.split())}", file=sys.stderr)
    return 2


def _silence() -> None:
    """Discard the buffered output, because the interpreter would flush it at its end and fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _silence_if_broken() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _silence()
