"""The atlas: a page for each architecture and instruction, generated from the catalogue alone.

`witnesses` finds inputs that tell an instruction from its neighbours, `evidence` says what a row rests on and what is open,
`pages` puts them on pages, with the words and trees of :mod:`tensorcore_models.explanations`.
"""

from .pages import all_pages, catalogued, page_path, write_atlas
from .witnesses import Witness, witness

__all__ = [
    "Witness",
    "all_pages",
    "catalogued",
    "page_path",
    "witness",
    "write_atlas",
]
