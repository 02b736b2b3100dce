"""Collects the pages' texts in one script for the search page: opened from disk it may not fetch the pages, as Sphinx does."""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

#: Below the folder of static files.
FILE = "_static/search_texts.js"
#: Characters of a page that are kept.
LONGEST = 20_000
#: The same of the many pages that are in no table of contents, such as those of instructions.
LONGEST_ORPHAN = 1_000


def text_of(doctree: nodes.document, longest: int) -> str:
    """Words of a page without its headings, which the search shows already, and without what no reader sees."""
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
    """Keep the text of a page."""
    page = app.env.docname
    _texts(app.env)[page] = text_of(doctree, LONGEST_ORPHAN if "orphan" in app.env.metadata[page] else LONGEST)


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Drop the text of a page that is read again, or gone."""
    _texts(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: list[str], other: BuildEnvironment) -> None:
    """Take over what another process has read."""
    _texts(env).update({page: text for page, text in _texts(other).items() if page in pages})


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the script."""
    if error is None:
        texts = json.dumps(_texts(app.env), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        Path(app.outdir, FILE).write_text(f"const PAGE_TEXTS = {texts};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Register all of it."""
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("build-finished", write)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
