"""Text for people on the command line: paragraphs as wide as the terminal."""

import textwrap

from mpgemm.reporting.report import terminal_columns


def wrapped(text: str, indent: str = "", hang: str | None = None) -> str:
    """Text broken at the terminal's width, each line a paragraph; `hang` stands before what follows a first line
    (default: indent)."""
    hang = indent if hang is None else hang
    width = max(20, terminal_columns())
    lines = (
        textwrap.fill(line, width, initial_indent=indent, subsequent_indent=hang, break_on_hyphens=False)
        for line in text.split("\n")
    )
    return "\n".join(lines)


def item(text: str) -> str:
    """Text below a headline: two columns in, what is wrapped two more."""
    return wrapped(text, "  ", "    ")
