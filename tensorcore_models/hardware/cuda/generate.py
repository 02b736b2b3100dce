"""Chooses the kernel generator of an instruction."""

from collections.abc import Callable

from ...engines.instruction import Instruction
from .group_source import wgmma_kernel
from .source import CudaKernel, mma_kernel, wmma_kernel
from .targets import TARGETS
from .tcgen05_source import tcgen05_kernel

GENERATORS: dict[str, Callable[[Instruction, str | None], CudaKernel]] = {
    "mma": mma_kernel,
    "wmma": wmma_kernel,
    "wgmma": wgmma_kernel,
    "tcgen05": tcgen05_kernel,
}


def kernel(row: Instruction, target: str | None = None) -> CudaKernel:
    """The CUDA kernel that runs a row, for its architecture's own target by default; ValueError for what is not generated."""
    if row.arch not in TARGETS or row.path not in GENERATORS:
        raise ValueError(f"{row}: CUDA kernels are generated for NVIDIA's {', '.join(GENERATORS)} instructions")
    return GENERATORS[row.path](row, target)
