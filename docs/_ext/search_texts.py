"""Collects the pages' texts in one script for the search page, which cannot fetch pages if it is opened from disk."""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

#: Path of the script in the built site.
FILE = "_static/search_texts.js"
#: Number of characters of a page that are kept.
LONGEST = 20_000
#: Number of characters that are kept of a page in no table of contents, such as the page of an instruction.
LONGEST_ORPHAN = 1_000


def text_of(doctree: nodes.document, longest: int) -> str:
    """Return the words of a page without its headings, which the search already shows, and without invisible text."""
    parts = []
    for node in doctree.findall(nodes.Text):
        if not isinstance(node.parent, nodes.title | nodes.raw | nodes.comment | nodes.math | nodes.math_block):
            parts.append(node.astext())
    return " ".join(re.sub("-{3,}", " ", " ".join(parts)).split())[:longest]


def _texts(env: BuildEnvironment) -> dict[str, str]:
    if not hasattr(env, "search_texts"):
        env.search_texts = {}  # type: ignore[attr-defined]
    return env.search_texts  # type: ignore[attr-defined]


def read(app: Sphinx, doctree: nodes.document) -> None:
    """Store the text of a page that was read."""
    page = app.env.docname
    _texts(app.env)[page] = text_of(doctree, LONGEST_ORPHAN if "orphan" in app.env.metadata[page] else LONGEST)


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Remove the text of a page that is read again or was deleted."""
    _texts(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: list[str], other: BuildEnvironment) -> None:
    """Take over the texts that another process has read."""
    _texts(env).update({page: text for page, text in _texts(other).items() if page in pages})


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the script with all texts."""
    if error is None:
        texts = json.dumps(_texts(app.env), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        Path(app.outdir, FILE).write_text(f"const PAGE_TEXTS = {texts};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Register the collection and the script."""
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("build-finished", write)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
