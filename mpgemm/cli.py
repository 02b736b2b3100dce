"""The `mpgemm` command line: a table of commands by the questions they answer.

The arguments of `mpgemm some-command` are `mpgemm.options.some_command.add_arguments(parser)`, imported for its `--help`; what
it does is `mpgemm.commands.some_command.run(args) -> int`, imported when it runs. Bad input is a ValueError, TypeError or
OSError from `run`: it becomes one line on standard error and exit status 2.
"""

import argparse
import csv
import difflib
import importlib
import os
import sys
from concurrent.futures import BrokenExecutor, CancelledError
from types import ModuleType

from mpgemm.options.examples import epilog
from mpgemm.options.parser import Parser
from mpgemm.options.prose import wrapped
from mpgemm.reporting.report import running
from tensorcore_models.machine.fp_state import default_fp_state

# The question that brings a person: {command: one line of help}.
QUESTIONS: dict[str, dict[str, str]] = {
    "evaluate a scheme": {
        "evaluate": "accuracy of SGEMM-cube and native GEMMs on files or generated matrices",
        "advise-promotion": "how often to add up outside of the core: error, bound, cost",
    },
    "plan a block": {
        "plan": "block sizes for a GEMM on an Ascend chip, why, and what to type into the kernel",
        "simulate": "a tile schedule on the pipes of an Ascend core: speed, stalls, traces",
    },
    "compare corrections": {
        "compare": "recovery methods times matrix engines: errors, bits, passes, bounds",
        "curve": "errors of methods against k, exponent or condition number, with their spread",
        "slices": "how many integer slices or moduli a product needs, proved and measured",
        "beats": "FP32 operands on which one recovery method is nearer than another, verified",
    },
    "debug a kernel": {
        "check": "is a kernel's result right on this unit, and if not, what kind of bug looks like it?",
        "tolerance": "what a kernel's test may allow, and what a tolerance would miss",
        "explain": "one recovered dot product step by step, and where its error comes from",
        "whodunit": "which GPU's arithmetic, order of k or recovery method made these bits?",
        "diff": "two GPUs' results of one product: explained by their recipes? where and why do they part?",
        "predict": "what a GPU library returns for two matrices, bit for bit",
        "invariance": "do rows of a GEMM change their bits with the batch size on a GPU library?",
        "trace": "two recorded runs of a model: which module's bits part first, who made each side, what the logits say",
    },
    "look into a unit": {
        "models": "the catalogue of matrix engines and recovery methods",
        "identify": "what a matrix unit computes: a black box in, its specification out",
        "distinguish": "an input on which two instructions give different results, verified",
    },
    "keep results, check the installation": {
        "report": "one page, HTML or Markdown, from the folders that other commands wrote",
        "info": "versions, kernels, instruction sets, engines at hand",
        "selftest": "kernels beside their exact twins, and outputs of real GPUs: about a minute",
        "completion": "a script that completes commands and options in bash, zsh or fish",
    },
}
COMMANDS = {name: row for commands in QUESTIONS.values() for name, row in commands.items()}


def _module(room: str, command: str) -> ModuleType:
    """A command's module in `mpgemm.options` or `mpgemm.commands`."""
    return importlib.import_module(f"mpgemm.{room}.{command.replace('-', '_')}")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        from mpgemm.experiments.provenance import package_version

        print(f"{parser.prog} {package_version()}")
        parser.exit(0)


def build_parser(chosen: str | None = None) -> Parser:
    """The argument parser; only the `chosen` command's own arguments are added."""
    parser = Parser(
        prog="mpgemm",
        usage="mpgemm COMMAND [OPTION ...]",
        description=f"Mixed-precision GEMM on modelled matrix hardware.\n{_overview()}",
        epilog=wrapped("mpgemm COMMAND --help lists a command's options and shows examples."),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="mpgemm", help=argparse.SUPPRESS
    )
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, description=summary, epilog=epilog(name), formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == chosen:
            _module("options", name).add_arguments(subparser)
            subparser.add_argument("--wide", action="store_true", help="tables with all columns, however wide")
    return parser


def _overview() -> str:
    """All commands with a line for each, under the questions that they answer."""
    indent = max(map(len, COMMANDS)) + 4
    lines = []
    for question, commands in QUESTIONS.items():
        lines += ["", f"{question}:"]
        for name, summary in commands.items():
            lines.append(wrapped(f"  {name}".ljust(indent) + summary, hang=" " * indent))
    return "\n".join(lines)


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
    try:
        args = build_parser(chosen).parse_args(argv)
    except ValueError as error:
        return _refuse(str(chosen), str(error))
    if sys.stdout is None:  # it was closed before we started; whatever is printed is not wanted
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, it stays open until the end
    try:
        with running(argv, args.wide):
            status = _module("commands", args.command).run(args)
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
