"""`mpgemm report` writes one page, HTML or Markdown, from the folders that other commands wrote."""

from __future__ import annotations

import argparse
import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table
from mpgemm.reporting.result_tables import read_tables, without_constants
from tensorcore_models.files import write_text
from tensorcore_models.results import format_cell

if TYPE_CHECKING:
    from mpgemm.reporting.findings import Findings

QUESTION = "keep results, check the installation"
SUMMARY = "write one page, HTML or Markdown, from the folders that other commands wrote"
EXAMPLES = (
    ("out", "a Markdown page of the results in out/"),
    ("out1 out2 --out page.html --title 'Our layers'", "one HTML page of two folders, which needs no network"),
)

MOST_ROWS = 60

FORMATS = ("html", "markdown")


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "folders", nargs="+", metavar="FOLDER", help="folders that evaluate, compare, plan or simulate wrote with --out"
    )
    add("--out", "--output", metavar="FILE", help="file for the page (default: standard output)")
    add("--format", choices=FORMATS, help="format of the page (default: html if FILE ends in .html, else markdown)")
    add("--title", default="Results", help="heading of the page (default Results)")
    add(
        "--rows",
        type=int,
        default=MOST_ROWS,
        metavar="COUNT",
        help=f"largest number of rows of a table that the page shows (default {MOST_ROWS})",
    )
    add(
        "--json",
        action="store_true",
        help="print the contents of the page (folders, tables, pictures) as JSON in place of the page",
    )
    parser.goes_without(("--out", "--format", "--rows"), ("--json",))


def run(args: argparse.Namespace) -> Output:
    """Carry out the command.

    Raises ValueError if a folder does not exist, or no folder has a table or picture.
    """
    if args.rows < 1:
        raise ValueError(f"--rows is {args.rows}, expected at least 1")
    folders = [Path(folder) for folder in args.folders]
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder; give one that a command wrote with --out")
    if not any(contents(folder) for folder in folders):
        names = ", ".join(map(str, folders))
        raise ValueError(
            f"{names} holds no tables (.csv) and no pictures (.png): give a folder that a command wrote with --out"
        )
    if args.json:
        found = [{"folder": str(f), "files": [path.name for path in contents(f)]} for f in folders]
        return Output({"title": args.title, "folders": found})
    text = _page(args, folders)
    if args.out:
        write_text(args.out, text)
        return Output()
    return Output(text=[text.removesuffix("\n")])


def _page(args: argparse.Namespace, folders: list[Path]) -> str:
    from mpgemm.reporting.html_report import html_page

    is_html = (args.out or "").lower().endswith((".html", ".htm"))
    if (args.format or ("html" if is_html else "markdown")) == "html":
        return html_page(folders, args.title, args.rows)
    base = Path(args.out).resolve().parent if args.out else Path.cwd()
    return markdown_page(folders, args.title, base, args.rows)


def contents(folder: Path) -> list[Path]:
    """Return the tables and pictures of a folder; a picture follows the table of the same name."""
    return sorted((p for p in folder.iterdir() if p.suffix in (".csv", ".png")), key=lambda p: (p.stem, p.suffix))


def escaped(text: object) -> str:
    """Escape a text so that Markdown shows it unchanged, without HTML, emphasis, links or table cells."""
    plain = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*\[\]|])", r"\\\1", plain)


def markdown_page(folders: list[Path], title: str, base: Path, rows: int = MOST_ROWS) -> str:
    """Return the page as Markdown, with links to pictures relative to `base`."""
    from mpgemm.reporting.findings import findings_of

    lines = [f"# {escaped(title)}", ""]
    for folder in folders:
        found = findings_of(folder)
        lines += [f"## {escaped(folder.name or folder.resolve().name)}", "", *_findings(found)]
        if not contents(folder):
            lines += ["No tables (.csv) and no pictures (.png) are in this folder.", ""]
        for path in contents(folder):
            if path.suffix == ".csv":
                lines += _tables(path, rows)
                continue
            stem = escaped(path.stem)
            lines += [f"### {stem}", ""] if not path.with_suffix(".csv").exists() else []
            lines += [f"![{stem}]({quote(os.path.relpath(path, base))})", ""]
        lines += _basis(found)
    return "\n".join(lines).rstrip() + "\n"


def _findings(found: Findings) -> Iterator[str]:
    if found.question:
        yield from (f"*{escaped(found.question)}*", "")
    for text, reasons in found.verdicts:
        yield from (f"**{escaped(text)}**", "", *(f"- {escaped(line)}" for line in reasons), *([""] if reasons else []))
    for heading, members in (("What to do", found.recommendations), ("Caveats", found.caveats)):
        if members:
            yield from (f"### {heading}", "", *(f"- {escaped(line)}" for line in members), "")


def _basis(found: Findings) -> Iterator[str]:
    """Yield lines on the evidence for the models, and on the environment in which the results were computed."""
    if found.engines:
        yield from ("### What the models rest on", "")
        for engine in found.engines:
            links = ", ".join(f"[{escaped(name)}]({address})" for name, address in engine.links)
            about = ". ".join(map(escaped, (engine.evidence, engine.source)))
            yield f"- **{escaped(engine.name)}**. {about}{f' See {links}.' if links else ''}"
        yield ""
    if found.origin:
        yield from (
            "### Computed with",
            "",
            *(f"- {name}: {escaped(value)}" for name, value in found.origin.items()),
            "",
        )


def _tables(path: Path, rows: int) -> Iterator[str]:
    """Yield the tables of a CSV file, each with a line that counts the rows left out."""
    try:
        tables = read_tables(path)
    except ValueError as error:
        yield from (f"### {escaped(path.stem)}", "", escaped(error), "")
        return
    for table in tables or [Table(path.stem, [], [])]:
        yield from (f"### {escaped(table.title)}", "")
        if not table.headings:
            yield from ("(empty)", "")
            continue
        table, constants = without_constants(table)
        if constants:
            same = ", ".join(f"{name} = {format_cell(value)}" for name, value in constants.items())
            yield from (f"The same in all rows: {escaped(same)}.", "")
        cells = [[escaped(format_cell(cell)) for cell in row] for row in table.rows[:rows]]
        for row in (list(map(escaped, table.headings)), ["---"] * len(table.headings), *cells):
            yield "| " + " | ".join(row) + " |"
        if len(table.rows) > rows:
            yield from ("", f"{len(table.rows) - rows} more rows in {escaped(path.name)}.")
        yield ""
