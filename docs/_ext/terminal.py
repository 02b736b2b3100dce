"""How wide the terminal is whose output the pages show, whole."""

import textwrap

#: Columns of that terminal.
COLUMNS = 88


def in_a_terminal(text: str) -> str:
    """Text with long lines wrapped and indented: for what Python prints; commands wrap what they print by themselves."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        hang = line[: len(line) - len(line.lstrip())] + "  "
        lines += textwrap.wrap(line, COLUMNS, subsequent_indent=hang, replace_whitespace=False) or [""]
    return "\n".join(lines)
