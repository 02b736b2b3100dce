"""This module gives arrays in memory that is reused from call to call (the pool of `_kernels.workspace`)."""

import math

import numpy as np

from .._kernels.common.workspace import Workspace

_LINE = 64


def workspace(size: int) -> np.ndarray:
    """Return uninitialised memory of `size` bytes, which returns to the pool when its last view is deleted."""
    return np.frombuffer(memoryview(Workspace(max(size, 1))), np.uint8)


class Scratch:
    """`Scratch` gives out uninitialised memory of given sizes in bytes as arrays that start on cache lines."""

    def __init__(self, *sizes: int):
        self._memory = workspace(sum(size + -size % _LINE for size in sizes))
        self._used = 0

    def take(self, shape: tuple[int, ...], dtype) -> np.ndarray:
        """Return an array of this shape and type; raises MemoryError if the remaining memory is too small."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        piece = self._memory[self._used : self._used + size]
        if piece.size < size:
            raise MemoryError(
                f"{size} bytes of scratch memory are needed, but {piece.size} are left: make Scratch larger"
            )
        self._used += size + -size % _LINE
        return piece.view(dtype).reshape(shape)
