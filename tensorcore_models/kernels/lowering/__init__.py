"""Turns an accumulator with its formats into what the compiled kernels take.

`lower` chooses the kernel family and has the aligned sums, `ieee` the chains of IEEE operations, `fields` what both share.
"""

from .lower import Lowered, lower

__all__ = ["Lowered", "lower"]
