"""The atlas: a page for each architecture and instruction, generated from the catalogue alone.

`trees` holds the order of a sum as a tree, `drawing` draws trees as SVG, `arithmetic` puts an accumulator into words and
formulas, `witnesses` finds inputs that tell an instruction from its neighbours, `evidence` says what a row rests on and what is
open, `pages` puts all of it on pages.
"""

from .drawing import svg
from .pages import all_pages, catalogued, page_path, write_atlas
from .trees import Node, tree_of, tree_of_order
from .witnesses import Witness, witness

__all__ = [
    "Node",
    "Witness",
    "all_pages",
    "catalogued",
    "page_path",
    "svg",
    "tree_of",
    "tree_of_order",
    "witness",
    "write_atlas",
]
