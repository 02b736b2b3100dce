"""Writes one HTML page of an identification; it has no scripts and loads nothing."""

import html

from .evidence import ranges
from .outcome import Identification, spec_text

STYLE = """body { font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; line-height: 1.4 }
table { border-collapse: collapse; width: 100%; font-size: 90% }
th, td { border: 1px solid #bbb; padding: .3em .5em; text-align: left; vertical-align: top; overflow-wrap: break-word }
pre, code { background: #f3f3f3 } pre { padding: .6em; white-space: pre-wrap }"""


def _table(headings: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(h)}</th>" for h in headings)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>"


def _section(title: str, content: str) -> str:
    return f"<h2>{html.escape(title)}</h2>\n{content}\n"


def page(result: Identification) -> str:
    """Return the identification as the text of an HTML page."""
    facts = [
        ["formats", str(result.interface)],
        ["queries", f"{result.queries}, {result.queries_before_random} of them before the random phase"],
        ["random vectors", str(result.vectors)],
        ["seconds", f"{result.seconds:.1f}"],
    ]
    parts = [_section("Cost", _table(["what", "how much"], facts))]
    if result.counterexample is not None:
        parts.append(_section("Counter-example", f"<pre>{html.escape(result.counterexample.text)}</pre>"))
    if result.engine is None and result.nearest is not None:
        parts.append(_section("Nearest specification", f"<pre>{html.escape(str(result.nearest))}</pre>"))
    if result.engine is not None:
        parts.append(_section("Row of the catalogue", f"<pre>{html.escape(result.catalogue_row())}</pre>"))
    if result.others:
        rows = [[spec_text(other.specification), f"{other.wrong} of {other.of}"] for other in result.others]
        parts.append(
            _section("Other families", _table(["nearest specification", "answers that are not its own"], rows))
        )
    questions = (("Open questions", result.open_questions), ("Values that compute the same", result.equal_values))
    for heading, found in questions:
        if found:
            rows = [[q.field, str(q.value), ranges(q.alternatives), q.reason] for q in found]
            parts.append(_section(heading, _table(["field", "value", "others that would do", "why"], rows)))
    if result.evidence:
        rows = [
            [e.query, e.answer, "; ".join(f"{name}: {ranges(values)}" for name, values in e.excluded.items())]
            for e in result.evidence
        ]
        parts.append(_section("Evidence", _table(["query", "answer", "what it excludes"], rows)))
    title = html.escape(result.label)
    head = f'<head><meta charset="utf-8"><title>{title}</title>\n<style>{STYLE}</style></head>'
    body = f"<h1>{title}</h1>\n<p><strong>{html.escape(result.verdict)}</strong></p>\n{''.join(parts)}"
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n<body>\n{body}</body>\n</html>\n'
