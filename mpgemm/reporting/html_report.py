"""Makes a self-contained HTML page of results that needs no network, sorts its tables, prints, and fits a phone."""

import base64
import json
import math
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from mpgemm.reporting.findings import Findings, findings_of
from mpgemm.reporting.report import Table
from mpgemm.reporting.result_tables import read_tables, without_constants
from tensorcore_models.results import format_cell

_ASSETS = files("mpgemm.reporting") / "page"
_PNG = b"\x89PNG\r\n\x1a\n"


def html_page(folders: Sequence[Path], title: str, rows: int) -> str:
    """Return a page with a section for each folder and at most `rows` rows of each table."""
    return document(title, "\n".join(line for folder in folders for line in _section(folder, rows)))


def document(title: str, body: str) -> str:
    """Return an HTML document with a title and a body."""
    style, script = ((_ASSETS / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_colours()}{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def palette() -> dict[str, dict[str, str]]:
    """Return the colours and fonts of reports and of the documentation's site, by CSS variable.

    The result has two parts, "light" and the changes for "dark".
    """
    return json.loads((_ASSETS / "palette.json").read_text(encoding="utf-8"))


def _colours() -> str:
    light, dark = ("".join(f" --{name}: {value};" for name, value in part.items()) for part in palette().values())
    return f":root {{{light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{{dark} }} }}\n"


def _section(folder: Path, rows: int) -> Iterator[str]:
    found = findings_of(folder)
    name = folder.name or folder.resolve().name
    yield f"<section>\n<h2>{escape(name)}</h2>"
    yield from _findings(found)
    pictures, tables = (sorted(folder.glob(pattern)) for pattern in ("*.png", "*.csv"))
    if not (pictures or tables):
        yield '<p class="caveat">No tables (.csv) and no pictures (.png) are in this folder.</p>'
    for path in pictures:
        yield _picture(path)
    for path in tables:
        yield from _tables(path, rows)
    yield from _engines(found)
    yield from _origin(found)
    yield "</section>"


def _findings(found: Findings) -> Iterator[str]:
    if found.question:
        yield f'<p class="question">{escape(found.question)}</p>'
    if found.verdicts:
        yield '<div class="verdict">\n<h3>Verdict</h3>'
        for text, reasons in found.verdicts:
            yield f"<p><strong>{escape(text)}</strong></p>"
            yield from _list(reasons)
        yield "</div>"
    for heading, lines in (("What to do", found.recommendations), ("Caveats", found.caveats)):
        if lines:
            yield f"<h3>{heading}</h3>"
            yield from _list(lines)


def _list(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _picture(path: Path) -> str:
    data = path.read_bytes()
    caption = escape(path.stem.replace("_", " "))
    if not data.startswith(_PNG):
        return f'<p class="caveat">{escape(path.name)} is not a PNG picture, or it is damaged.</p>'
    source = base64.b64encode(data).decode()
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{source}"><figcaption>{caption}</figcaption></figure>'
    )


def _tables(path: Path, rows: int) -> Iterator[str]:
    try:
        tables = read_tables(path)
    except ValueError as error:
        yield f'<p class="caveat">{escape(str(error))}</p>'
        return
    if not tables:
        yield f'<p class="caveat">{escape(path.name)} is empty.</p>'
    for table in tables:
        yield _table(table, rows, path.name)


def _table(table: Table, rows: int, file: str) -> str:
    table, constants = without_constants(table)
    same = ", ".join(f"{name} = {format_cell(value)}" for name, value in constants.items())
    above = f'<p class="note">All rows have {escape(same)}.</p>\n' if same else ""
    head = "".join(f'<th scope="col">{escape(str(heading))}</th>' for heading in table.headings)
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in table.rows[:rows])
    more = len(table.rows) - rows
    left_out = f'<p class="note">{more} more rows in {escape(file)}.</p>' if more > 0 else ""
    return (
        f"<h3>{escape(table.title)}</h3>\n{above}"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>{left_out}"
    )


def _cell(cell: object) -> str:
    """Return a table cell; a number is shortened, with all digits in its tooltip and as its sort key."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return f"<td>{escape(str(cell))}</td>"
    whole = repr(cell)
    order = f' data-order="{whole}"' if math.isfinite(cell) else f' data-order="{"-" if cell < 0 else ""}Infinity"'
    return f'<td class="number"{order} title="{whole}">{escape(format_cell(cell))}</td>'


def _engines(found: Findings) -> Iterator[str]:
    if not found.engines:
        return
    yield "<h3>Evidence for the models</h3>\n<ul>"
    for engine in found.engines:
        links = ", ".join(f'<a href="{escape(address)}">{escape(name)}</a>' for name, address in engine.links)
        where = f" See {links}." if links else ""
        yield (
            f"<li><strong>{escape(engine.name)}</strong>. {escape(engine.evidence)}. {escape(engine.source)}{where}</li>"
        )
    yield "</ul>"


def _origin(found: Findings) -> Iterator[str]:
    if found.origin:
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in found.origin.items())
        yield f"<h3>Computed with</h3>\n<dl>{rows}</dl>"
