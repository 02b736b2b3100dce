"""The reference runs every accumulator algorithm in plain Python integers, one output element at a time: the slow exact truth.

Families state a pass in :mod:`tensorcore_models.arithmetic`; `matrix` chains passes over k and loops over matrices.
"""

from ..arithmetic.passes import Pass
from .matrix import dot_bits, mma_bits

__all__ = ["Pass", "dot_bits", "mma_bits"]
