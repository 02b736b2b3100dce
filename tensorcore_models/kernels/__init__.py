"""This package holds the kernels that run an accumulator over matrices of encodings.

`dispatch` chooses among three layers with the same bits: the fast paths (`narrow`, `wide`, `chains`, `pairwise`, `groups`,
`integer`, with shared parts in `common`), the compiled generic kernels (`generic`), and the plain-integer reference. `lowering`
turns an accumulator with its formats into the arguments of the compiled kernels, `small` speeds up small products. A fast
kernel marks the elements that it may compute wrongly (infinities, NaNs, overflow, extreme addends), and the generic kernel
computes these again.
docs/kernels.md states each kernel's contract, docs/performance.md the limits of its speed.
"""

from .dispatch import (
    FAST_PATHS,
    KERNELS,
    FastKernel,
    FastPath,
    batch_bits,
    fast_kernels,
    get_kernel,
    kernel_name,
    lowered,
    matrix_bits,
    promoted_bits,
    scaled_bits,
    set_kernel,
)
from .generic import generic_batch_bits, generic_bits
from .small import SmallProduct, small_product, tile_product

__all__ = [
    "FAST_PATHS",
    "KERNELS",
    "FastKernel",
    "FastPath",
    "SmallProduct",
    "batch_bits",
    "fast_kernels",
    "generic_batch_bits",
    "generic_bits",
    "get_kernel",
    "kernel_name",
    "lowered",
    "matrix_bits",
    "promoted_bits",
    "scaled_bits",
    "set_kernel",
    "small_product",
    "tile_product",
]
