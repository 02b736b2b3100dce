"""Puts the playground into the site: it makes the files that the page loads, and a directive adds the panels."""

from pathlib import Path

import playground_data
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

LEFT_OUT = "This build of the site has no playground, because the machine that built it has no clang with a WebAssembly linker."


def prepare(app: Sphinx) -> None:
    """Compile and write the files that the page loads, below the folder of static files, where git ignores them."""
    if playground_data.can_compile():
        playground_data.write(Path(app.srcdir) / playground_data.FOLDER)
    else:
        print(playground_data.MISSING)


class Playground(SphinxDirective):
    """`Playground` is the directive ``{playground}``, whose options set the fields.

    It adds the panels, or a sentence if they could not be built.
    """

    option_spec = dict.fromkeys(playground_data.FIELDS, directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        if not playground_data.can_compile():
            return [nodes.paragraph(text=LEFT_OUT)]
        root = "../" * self.env.docname.count("/")
        return [nodes.raw("", playground_data.panels(root, self.options or None), format="html")]


def setup(app: Sphinx) -> dict:
    """Register the directive."""
    app.connect("builder-inited", prepare, priority=90)
    app.add_directive("playground", Playground)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
