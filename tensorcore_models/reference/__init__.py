"""The slow exact truth: every accumulator algorithm in plain Python integers, one output element at a time.

`operands` takes encodings apart, `fused` has the algorithms that align addends to a common exponent, `ieee` those made of
IEEE operations; `passes` has one pass of each accumulator, `matrix` runs them over matrices and is what users call.
"""

from .matrix import dot_bits, mma_bits
from .passes import Pass

__all__ = ["Pass", "dot_bits", "mma_bits"]
