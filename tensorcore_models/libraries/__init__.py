"""What GPU libraries return, bit for bit: which instruction their kernels chain, in which order of k, joined and finished how.

Nothing here runs a GPU, and nothing is guessed: what nobody has measured raises :class:`Unknown`.
"""

from ..engines.order import Chain, Sum
from .cublaslt import PLATFORMS, cublaslt, tail_loss
from .recipe import Epilogue, Recipe, Unknown, folded_scale
from .scaled_mm import scaled_mm, scaled_mm_recipe

__all__ = [
    "PLATFORMS",
    "Chain",
    "Epilogue",
    "Recipe",
    "Sum",
    "Unknown",
    "cublaslt",
    "folded_scale",
    "scaled_mm",
    "scaled_mm_recipe",
    "tail_loss",
]
