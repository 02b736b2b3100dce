"""This package models GPU libraries bit for bit: the instruction, the order of k, the joining of sums and the epilogue.

No function of this package runs on a GPU, and none guesses: a case that was not measured raises :class:`Unknown`.
"""

from ..orders.order import Chain, Sum
from .attention import AttentionRecipe, attention
from .cublaslt import PLATFORMS, cublaslt, tail_loss
from .cutlass import cutlass
from .profiled import ProfiledProduct, configured, from_profile
from .recipe import Epilogue, Recipe, Unknown, folded_scale
from .recorded import Recording, load_recording
from .scaled_mm import scaled_mm, scaled_mm_recipe
from .scaled_mm_choices import recorded_split

__all__ = [
    "PLATFORMS",
    "AttentionRecipe",
    "Chain",
    "Epilogue",
    "ProfiledProduct",
    "Recipe",
    "Recording",
    "Sum",
    "Unknown",
    "attention",
    "configured",
    "cublaslt",
    "cutlass",
    "folded_scale",
    "from_profile",
    "load_recording",
    "recorded_split",
    "scaled_mm",
    "scaled_mm_recipe",
    "tail_loss",
]
