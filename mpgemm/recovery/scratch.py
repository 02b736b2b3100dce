"""Memory for intermediate results that is kept from call to call: fresh pages cost more than what is written to them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

#: Bytes up to which a buffer is kept, and how many are.
KEPT_BYTES = 1 << 25
KEPT_BUFFERS = 2

_LINE = 64
_spare: list[np.ndarray] = []


class Scratch:
    """Uninitialised memory handed out in pieces that start on cache lines, nothing of which outlives its ``with`` block.

    Parameters
    ----------
    buffer : ndarray of uint8
    """

    def __init__(self, buffer: np.ndarray):
        self._buffer = buffer
        self._used = -buffer.__array_interface__["data"][0] % _LINE

    def take(self, shape: tuple[int, ...], dtype) -> np.ndarray:
        """An array of that shape and type.

        Raises
        ------
        MemoryError
            If there is not enough left of what was asked for.
        """
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        piece = self._buffer[self._used : self._used + size]
        if piece.size < size:
            raise MemoryError(f"{size} bytes of scratch memory are wanted, {piece.size} are left")
        self._used += size + -size % _LINE
        return piece.view(dtype).reshape(shape)


@contextmanager
def scratch(*sizes: int, keep: bool = True) -> Iterator[Scratch]:
    """Memory for pieces of so many bytes each.

    Parameters
    ----------
    *sizes : int
        Bytes of the pieces that will be taken.
    keep : bool
        False: memory of this call's own, which nobody reuses (for pieces that others may hold on to).
    """
    size = sum(s + _LINE for s in sizes) + _LINE
    buffer = None
    if keep:
        with suppress(IndexError):  # there is none, or another thread was faster
            buffer = _spare.pop()
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, np.uint8)
    try:
        yield Scratch(buffer)
    finally:
        if keep and buffer.size <= KEPT_BYTES and len(_spare) < KEPT_BUFFERS:
            _spare.append(buffer)
