"""Runs every accumulator algorithm in plain Python integers, one output element at a time: slow, and the truth of the tests.

Families state a pass in :mod:`tensorcore_models.arithmetic`; `matrix` chains passes over k and loops over matrices.
"""

from ..arithmetic.passes import Pass
from .matrix import dot_bits, mma_bits

__all__ = ["Pass", "dot_bits", "mma_bits"]
