"""The commands there are: modules of this folder with a `SUMMARY`.

Such a module states the `QUESTION` that its command answers, its `SUMMARY` (one line of help), its `EXAMPLES` (arguments, and
what they show or "") and `add_arguments(parser)`. Nothing lists the modules: a file put here is a command.
"""

import argparse
import importlib
import pkgutil
from importlib.util import find_spec
from types import ModuleType

import mpgemm.options
from mpgemm.options.parser import Parser
from mpgemm.options.prose import wrapped

#: The questions that bring a person, in the order in which help shows them.
QUESTIONS = (
    "evaluate a scheme",
    "plan a block",
    "compare corrections",
    "debug a kernel",
    "look into a unit",
    "repeat a paper",
    "keep results, check the installation",
)


def options_of(command: str) -> ModuleType | None:
    """The module of one command, None where there is no such command; no other command's is imported."""
    name = command.replace("-", "_")
    if not name.isidentifier() or find_spec(f"{__package__}.{name}") is None:
        return None
    module = importlib.import_module(f"{__package__}.{name}")
    return module if hasattr(module, "SUMMARY") else None


def all_commands() -> dict[str, ModuleType]:
    """Every command's module, by questions and then by names."""
    names = [module.name.replace("_", "-") for module in pkgutil.iter_modules(mpgemm.options.__path__)]
    found = {name: options for name in names if (options := options_of(name))}
    return dict(sorted(found.items(), key=lambda item: (QUESTIONS.index(item[1].QUESTION), item[0])))


def by_question() -> dict[str, list[str]]:
    """The names of the commands under each question."""
    commands = all_commands()
    return {q: [name for name, module in commands.items() if q == module.QUESTION] for q in QUESTIONS}


def command_parser(command: str) -> Parser:
    """The parser of one command's arguments; its help ends with the examples."""
    options = options_of(command)
    if options is None:
        raise ValueError(f"no command {command!r}")
    examples = ["examples:"]
    for arguments, meaning in options.EXAMPLES:
        examples += [f"  # {meaning}"] if meaning else []
        examples.append(f"  mpgemm {command} {arguments}".rstrip())
    parser = Parser(
        prog=f"mpgemm {command}", description=options.SUMMARY, epilog="\n".join(examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.set_defaults(command=command)
    options.add_arguments(parser)
    parser.add_argument("--wide", action="store_true", help="tables with all columns, however wide")
    return parser


def overview() -> str:
    """All commands with a line for each, under the questions that they answer."""
    commands = all_commands()
    indent = max(map(len, commands)) + 4
    lines = []
    for question, names in by_question().items():
        lines += ["", f"{question}:"]
        for name in names:
            lines.append(wrapped(f"  {name}".ljust(indent) + commands[name].SUMMARY, hang=" " * indent))
    return "\n".join(lines)
