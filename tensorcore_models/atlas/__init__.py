"""Derives the contents of the atlas, which has a page for each instruction of the catalogue.

`witnesses` finds inputs that tell an instruction from its neighbours, `evidence` lists the evidence and the open questions of a
row, and `places` returns the address of its page. The build of the documentation (docs/_ext/atlas_pages.py) writes the pages,
with the words and trees of :mod:`tensorcore_models.explanations`.
"""

from .places import catalogued, page_path
from .witnesses import PairWitness, witness

__all__ = ["PairWitness", "catalogued", "page_path", "witness"]
