"""The slow exact truth: every accumulator algorithm in plain Python integers, one output element at a time.

`operands` takes encodings apart, `aligned` adds numbers that are aligned to a common exponent, `ieee` has IEEE operations:
what the families (:mod:`tensorcore_models.families`) state their `pass_bits` in. `passes` is what one pass is given, `matrix`
runs passes over matrices and is what users call.
"""

from .matrix import dot_bits, mma_bits
from .passes import Pass

__all__ = ["Pass", "dot_bits", "mma_bits"]
