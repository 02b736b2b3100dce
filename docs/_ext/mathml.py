"""Renders formulas as MathML, which browsers show without scripts and without network."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def _formula(node: nodes.Element, display: str) -> str:
    try:
        return convert(node.astext(), display=display)
    except Exception as error:  # the converter has no base class for its errors
        LOGGER.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def _visit_inline(translator, node: nodes.math) -> None:
    translator.body.append(_formula(node, "inline"))
    raise nodes.SkipNode


def _visit_block(translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math-block">{_formula(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
