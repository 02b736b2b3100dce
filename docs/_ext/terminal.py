"""Wraps text for the terminal whose output the pages show."""

import textwrap

#: Number of columns of the terminal.
COLUMNS = 88


def in_a_terminal(text: str) -> str:
    """Return text that Python printed with long lines wrapped and indented; commands wrap their own output."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        hang = line[: len(line) - len(line.lstrip())] + "  "
        lines += textwrap.wrap(line, COLUMNS, subsequent_indent=hang, replace_whitespace=False) or [""]
    return "\n".join(lines)
