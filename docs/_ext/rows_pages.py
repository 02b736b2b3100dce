"""Writes the pages of the atlas about recovery methods and Ascend chips."""

from ascend import get_chip, list_chips
from mpgemm.recovery.rows import ROWS


def methods_page() -> str:
    """Return the page of the recovery methods, which has a section for each."""
    lines = [
        "# Recovery methods",
        "",
        "This page is generated from the rows of `mpgemm/recovery/rows.py`. `mpgemm models --methods` lists the methods, and "
        "`mpgemm compare` runs them. [Recovery](../recovery.md) explains the formulas.",
        "",
    ]
    for row in ROWS.values():
        facts = {
            "in short": row.title,
            "source": f"{row.source} ({row.certainty})",
            "words": f"{row.words} of {' or '.join(row.formats)}, {len(row.products)} products",
            "range": row.range_limits,
            "engine by default": row.default_engine,
        }
        options = [f"| `{name}` | {_cell(text)} |" for name, text in row.options.items()]
        lines += [f"## {row.name}", "", f"`{row.formula}`", "", "| | |", "|---|---|"]
        lines += [f"| {name} | {_cell(text)} |" for name, text in facts.items() if text]
        lines += (
            ["", "The method has these options:", "", "| option | meaning |", "|---|---|", *options, ""]
            if options
            else [""]
        )
    return "\n".join(lines)


def chips_page() -> str:
    """Return the page of the Ascend chips, which has a table of parameters with units and sources for each."""
    lines = [
        "# Ascend chips",
        "",
        "This page is generated from the files of `ascend/chips/`. The tables say for each parameter whether it is nominal, "
        "measured, fitted or assumed, and give its source. [The time model](../ascend.md) uses these parameters.",
        "",
    ]
    for name in list_chips():
        chip = get_chip(name)
        lines += [f"## {name}", "", "| parameter | value | unit | kind | source |", "|---|---|---|---|---|"]
        lines += [
            f"| {' | '.join(_cell(f'{x:g}' if isinstance(x, float) else str(x)) for x in row)} |"
            for row in chip.describe()
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return a text with the bars of a Markdown table escaped."""
    return text.replace("|", "\\|")
