"""Defines the parser of every command, which reports an error in one line and refuses options without effect."""

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

#: Old names of options, and their new names: a command has at most one of these.
RENAMED = {"--format": ("--operands", "--figure-format")}


class Parser(argparse.ArgumentParser):
    """`Parser` reports an error in one line that points to `--help`.

    It refuses an option that keeps one value and is given twice. A command states beside its options which combinations have
    no effect (:meth:`goes_with`, :meth:`goes_without`); these are refused even if the given value is the default.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Numbers such as -1e-3, -0x1p-4 and -1/3 are values; argparse alone takes them for options.
        self._negative_number_matcher = re.compile(r"^-[\d.]")
        self._rules: list[tuple[tuple[str, ...], tuple[str, ...], bool, str]] = []
        self._given: set[str] = set()
        self._moved: dict[str, str] = {}
        self._least: dict[str, int] = {}
        #: Destinations of options that may be given an empty word.
        self.takes_empty: frozenset[str] = frozenset()

    def goes_with(self, options: tuple[str, ...], others: tuple[str, ...], what: str = "") -> None:
        """State that options have an effect only beside at least one of the options `others`.

        options, others: Options, or destinations of positional arguments.
        what: Name that a message gives to `others` (default: the options' own names).
        """
        self._rules.append((options, others, True, what))

    def goes_without(self, options: tuple[str, ...], others: tuple[str, ...], what: str = "") -> None:
        """State that options have no effect beside any of the options `others`; parameters as for :meth:`goes_with`."""
        self._rules.append((options, others, False, what))

    def at_least(self, least: int, *options: str) -> None:
        """State the smallest value that numeric options take."""
        self._least |= dict.fromkeys(options, least)

    def moved(self, option: str, where: str) -> None:
        """State that an option of earlier versions was removed, and what replaces it; the message names the replacement."""
        self._moved[option] = where

    def _with_new_names(self, words: Sequence[str]) -> list[str]:
        """Replace old names of options, which work for one more minor version, and print the new names on standard error."""
        found = []
        for word in words:
            name, equals, value = word.partition("=")
            if name not in self._option_string_actions:
                for new in (new for new in RENAMED.get(name, ()) if new in self._option_string_actions):
                    print(
                        f"{self.prog}: {name} was renamed to {new}; the old name ends with version 0.3", file=sys.stderr
                    )
                    word = f"{new}{equals}{value}"
            found.append(word)
        return found

    def parse_known_args(self, args=None, namespace=None):
        """Parse as argparse does, and keep the `given` options. Raises ValueError for removed or ineffective options."""
        self._given = set()
        args = self._with_new_names(sys.argv[1:] if args is None else args)
        for word in args:
            if where := self._moved.get(word.partition("=")[0]):
                raise ValueError(f"{word.partition('=')[0]} was removed; use {where}")
        found = super().parse_known_args(args, namespace)
        found[0].given = frozenset(self._given)
        if found[1]:  # argparse reports these unknown words; the checks below might blame other options
            return found
        for options, others, wanted, what in self._rules:
            beside = [name for name in others if self._is_given(name)]
            useless = [self._spelled(name) for name in options if self._is_given(name) and bool(beside) != wanted]
            if useless:
                names = " or ".join(map(self._spelled, others)) if wanted else " and ".join(map(self._spelled, beside))
                relation = "with" if wanted or what else "without"
                go, it_has = ("goes", "it has") if len(useless) == 1 else ("go", "they have")
                way_out = f"leave out {' and '.join(useless)}, or {'give ' if wanted else ''}{names}"
                raise ValueError(
                    f"{' and '.join(useless)} {go} {relation} {what or names}, so {it_has} no effect here: {way_out}"
                )
        for name, least in self._least.items():
            value = getattr(found[0], self._option_string_actions[name].dest)
            if self._is_given(name) and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        return found

    def _is_given(self, name: str) -> bool:
        """Return whether the command line holds an option or a positional argument."""
        action = self._option_string_actions.get(name)
        return (name if action is None else action.dest) in self._given

    def _spelled(self, name: str) -> str:
        """Return the name of an option, or the name of a positional argument as the usage shows it."""
        if name in self._option_string_actions:
            return name
        return next(str(action.metavar or name) for action in self._actions if action.dest == name)

    def _get_values(self, action, arg_strings):
        """Note the given arguments, and refuse an option given twice that keeps one value, because argparse drops the first."""
        if "" in arg_strings and action.dest not in self.takes_empty:
            name = action.option_strings[0] if action.option_strings else str(action.metavar or action.dest)
            self.error(f"{name} got an empty word, expected {action.metavar or action.dest} (. is the current folder)")
        if action.option_strings or arg_strings:
            if action.option_strings and type(action) is argparse._StoreAction and action.dest in self._given:
                self.error(f"{action.option_strings[0]} is given twice, expected once")
            self._given.add(action.dest)
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        words = message.split() if message.startswith("unrecognized arguments: ") else []
        self.exit(2, f"{self.prog}: {message}{self._what_was_meant(words[2:])} (see {self.prog} --help)\n")

    def _what_was_meant(self, unknown: Sequence[str]) -> str:
        """Return hints for unknown words: options that they resemble, or --files for names of matrix files."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        names = (word.partition("=")[0] for word in unknown if word.startswith("--"))
        near = dict.fromkeys(name for word in names for name in difflib.get_close_matches(word, options, 1, 0.75))
        hints = [f"did you mean {' or '.join(near)}?"] if near else []
        if "--files" in options and any(re.search(r"\.(npy|npz|mtx|safetensors|pt)\b", word) for word in unknown):
            hints.append("give matrix files with --files")
        return "".join(f"; {hint}" for hint in hints)
