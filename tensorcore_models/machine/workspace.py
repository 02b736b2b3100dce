"""Memory for intermediate results that is kept from call to call, as arrays (`_kernels.workspace` has the one pool)."""

import math

import numpy as np

from .._kernels.common.workspace import Workspace

_LINE = 64


def workspace(size: int) -> np.ndarray:
    """Return uninitialised memory of `size` bytes; it goes back to the pool when no view of it is left."""
    return np.frombuffer(memoryview(Workspace(max(size, 1))), np.uint8)


class Scratch:
    """Uninitialised memory of given sizes in bytes, handed out in arrays that start on cache lines."""

    def __init__(self, *sizes: int):
        self._memory = workspace(sum(size + -size % _LINE for size in sizes))
        self._used = 0

    def take(self, shape: tuple[int, ...], dtype) -> np.ndarray:
        """Return an array of that shape and type; raises MemoryError if there is not enough left of what was asked for."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        piece = self._memory[self._used : self._used + size]
        if piece.size < size:
            raise MemoryError(f"{size} bytes of scratch memory are wanted, {piece.size} are left")
        self._used += size + -size % _LINE
        return piece.view(dtype).reshape(shape)
