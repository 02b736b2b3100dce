"""Kernels that run an accumulator over matrices of encodings.

`dispatch` chooses among three layers, all with the same bits: the fast paths (`narrow`, `wide`, `chains`, `pairwise`, `groups`,
`integer`; `common` has what they share), the compiled generic kernels (`generic`), and the plain-integer reference. `lowering`
turns an accumulator with its formats into what the compiled kernels take, `small` keeps what small products need. A fast kernel
computes what its operand ranges allow and marks the elements that it does not vouch for (infinities, NaNs, overflow, extreme
addends); those go to the generic kernel.
docs/kernels.md has each kernel's contract, docs/performance.md what bounds its speed.
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
