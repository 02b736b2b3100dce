"""The atlas: what a page for each instruction says, from the catalogue alone.

`witnesses` finds inputs that tell an instruction from its neighbours, `evidence` says what a row rests on and what is open,
`places` where its page is. The documentation's build (docs/_ext/atlas_pages.py) puts them on pages, with the words and trees of
:mod:`tensorcore_models.explanations`.
"""

from .places import catalogued, page_path
from .witnesses import PairWitness, witness

__all__ = ["PairWitness", "catalogued", "page_path", "witness"]
