"""Pages of the atlas from other rows than instructions: recovery methods and Ascend chips."""

from ascend import get_chip, list_chips
from mpgemm.recovery.rows import ROWS


def methods_page() -> str:
    """Return the recovery methods, a section each."""
    lines = [
        "# Recovery methods",
        "",
        "Rows of `mpgemm/recovery/rows.py`. `mpgemm models --methods` lists them, `mpgemm compare` runs them, and "
        "[what they rest on](../recovery.md) has the formulas' background.",
        "",
    ]
    for row in ROWS.values():
        facts = {
            "source": f"{row.source} ({row.certainty})",
            "words": f"{row.words} of {' or '.join(row.formats)}, {len(row.products)} products",
            "range": row.range_limits,
            "engine by default": row.default_engine,
        }
        options = [f"- `{name}`: {text}" for name, text in row.options.items()]
        lines += [f"## {row.name}", "", f"{row.title}.", "", f"`{row.formula}`", "", "| | |", "|---|---|"]
        lines += [f"| {name} | {_cell(text)} |" for name, text in facts.items() if text]
        lines += ["", "Options:", "", *options, ""] if options else [""]
    return "\n".join(lines)


def chips_page() -> str:
    """Return the Ascend chips, a table each: parameter, value, unit, and where it is from."""
    lines = [
        "# Ascend chips",
        "",
        "Files of `ascend/chips/`. Every parameter says whether it is nominal, measured, fitted or assumed, and where it is "
        "from; [the model of the time](../ascend.md) uses them.",
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
    """Return a text as a cell of a table."""
    return text.replace("|", "\\|")
