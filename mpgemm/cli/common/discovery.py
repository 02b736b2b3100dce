"""Finds the commands, which are the modules of `mpgemm.cli`.

Such a module states the `QUESTION` that its command answers, its `SUMMARY` (one line of help), its `EXAMPLES` (pairs of
arguments and a comment, which may be empty), `add_arguments(parser)` and `run(args) -> Output`. No table lists the modules:
every file in that folder is a command.
"""

import argparse
import importlib
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.report import wrapped

#: The questions that commands answer, in the order in which help shows them.
QUESTIONS = (
    "evaluate a scheme",
    "plan a block",
    "compare corrections",
    "debug a kernel",
    "look into a unit",
    "repeat a paper",
    "keep results, check the installation",
)

#: Other names of commands: the other name, and the command that it runs.
OTHER_NAMES = {"verdict": "evaluate", "eval": "evaluate"}

#: The package of the commands.
PACKAGE = __package__.rpartition(".")[0]


def command_names() -> list[str]:
    """Return the names of all commands in alphabetical order, without reading a file."""
    modules = pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__)
    return [module.name.replace("_", "-") for module in modules if not module.ispkg]


def command_module(command: str) -> ModuleType:
    """Import and return the module of one command, without the modules of the others."""
    return importlib.import_module(_module_name(command))


def _module_name(command: str) -> str:
    return f"{PACKAGE}.{command.replace('-', '_')}"


def stated(command: str) -> tuple[str, str]:
    """Return the question and the summary that a command's file states, without importing it, because imports are slow."""
    spec = find_spec(_module_name(command))
    assert spec is not None and spec.origin is not None
    text = Path(spec.origin).read_text(encoding="utf-8")
    found = dict(re.findall(r'^(QUESTION|SUMMARY) = "(.+)"$', text, re.MULTILINE))
    return found["QUESTION"], found["SUMMARY"]


def by_question() -> dict[str, dict[str, str]]:
    """Return the commands under each question, with their summaries."""
    commands = {name: stated(name) for name in command_names()}
    return {q: {name: summary for name, (of, summary) in commands.items() if of == q} for q in QUESTIONS}


def all_commands() -> list[str]:
    """Return the names of all commands, sorted by question and then alphabetically."""
    return [name for commands in by_question().values() for name in commands]


def command_parser(command: str) -> Parser:
    """Return the parser of one command's arguments; its help ends with the examples."""
    module = command_module(command)
    examples = ["examples:"]
    for arguments, meaning in module.EXAMPLES:
        examples += [f"  # {meaning}"] if meaning else []
        examples.append(f"  mpgemm {command} {arguments}".rstrip())
    parser = Parser(
        prog=f"mpgemm {command}", description=module.SUMMARY, epilog="\n".join(examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.set_defaults(command=command)
    module.add_arguments(parser)
    parser.add_argument(
        "--wide", action="store_true", help="show all columns of tables, even where they exceed the screen"
    )
    return parser


def overview() -> str:
    """Return all commands with a line for each, under the questions that they answer."""
    indent = max(map(len, command_names())) + 4
    lines = []
    for question, commands in by_question().items():
        lines += ["", f"{question}:"]
        for name, summary in commands.items():
            lines.append(wrapped(f"  {name}".ljust(indent) + summary, hang=" " * indent))
    return "\n".join(lines)
