"""Places from which kernels read by mistake: other lines of a matrix, and other elements of an operand in memory."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from mpgemm.testing.diagnosis.places import TILES

#: Lines for one of which a kernel may read.
COARSER = (2, 4)
#: Rows and columns in which scale factors of 128 rows are interleaved in memory (published: PTX ISA, tcgen05.mma).
LAYOUT = (32, 4)
#: Elements by which a leading dimension is wrong, and multiples to which it is padded.
STRIDES, PADDED = (1, 2, 4, 8, 16), (8, 16, 32, 64, 128)


def line_maps(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """(words, from which line each line is read): no two alike, "{}" stands for the word for a line."""
    at = np.arange(size)
    known = {at.tobytes()}
    for text, source in _line_maps(at, size):
        if source.tobytes() not in known:
            known.add(source.tobytes())
            yield text, source


def _line_maps(at: np.ndarray, size: int) -> Iterator[tuple[str, np.ndarray]]:
    for step, beside in ((1, "behind"), (-1, "before")):
        yield f"the {{}} {beside}", np.clip(at + step, 0, size - 1)
        yield f"the {{}} {beside}, around the end", (at + step) % size
    yield "the first {} everywhere", np.zeros_like(at)
    yield "the {} as far from the other end", at[::-1]
    for group in COARSER:
        yield f"the first {{}} of every {group}", at // group * group
    for tile in (t for t in TILES if t < size):
        yield f"the {{}} at the same place of the first {tile}", at % tile
        yield f"the {{}} {tile} before", np.where(at >= tile, at - tile, at)
        yield f"the {{}} {tile} behind", np.where(at + tile < size, at + tile, at)
    rows, columns = LAYOUT
    whole = size // (rows * columns) * (rows * columns)
    start, inside = at // (rows * columns) * (rows * columns), at % (rows * columns)
    for text, moved in (
        (f"the {{}} in the units' layout of {rows} x {columns}", inside % columns * rows + inside // columns),
        (f"the {{}} back from the units' layout of {rows} x {columns}", inside % rows * columns + inside // rows),
    ):
        yield text, np.where(at < whole, start + moved, at)


#: From which line, and from which value of k, the elements of an operand are read: arrays (elements, k), or what broadcasts to
#: it, made from their own lines. What is read behind the operand's end is of line -1.
ElementMap = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def element_maps(shape: tuple[int, int], stored: str) -> Iterator[tuple[str, ElementMap]]:
    """(words, map) of an operand of that shape (lines, k). `stored`: "rows" where values of k are beside each other in memory,
    or "columns"."""
    size, k = shape
    for tile in (t for t in TILES if t <= min(size, k)):
        yield f"blocks of {tile} x {tile} are transposed", partial(_transposed, tile, shape)
        if 2 * tile <= min(size, k):
            text = f"in blocks of {2 * tile} x {2 * tile} the {tile} x {tile} beside the diagonal are exchanged"
            yield text, partial(_exchanged, tile, shape)
    across = k if stored == "rows" else size
    for stride in leading_dimensions(across):
        yield (
            f"its leading dimension is taken as {stride}, not {across}",
            partial(_strided, stride, stored == "rows", shape),
        )


def leading_dimensions(across: int) -> Iterator[int]:
    """What may be taken for a leading dimension."""
    padded = (-(-across // p) * p for p in PADDED)
    for stride in dict.fromkeys((*(across + s for t in STRIDES for s in (t, -t)), *padded)):
        if stride > 0 and stride != across:
            yield stride


def _transposed(tile: int, shape: tuple[int, int], lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, j = lines[:, None], np.arange(shape[1])[None]
    x, y = i // tile * tile + j % tile, j // tile * tile + i % tile
    return _inside(x, y, i, j, shape)


def _exchanged(tile: int, shape: tuple[int, int], lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, j = lines[:, None], np.arange(shape[1])[None]
    return _inside((i & ~tile) | (j & tile), (j & ~tile) | (i & tile), i, j, shape)


def _inside(x, y, i, j, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Elements that would come from outside of the operand stay at their place."""
    inside = (x < shape[0]) & (y < shape[1])
    return np.where(inside, x, i), np.where(inside, y, j)


def _strided(stride: int, by_rows: bool, shape: tuple[int, int], lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size, k = shape
    i, j = lines[:, None], np.arange(k)[None]
    first, second = np.divmod(i * stride + j, k) if by_rows else np.divmod(j * stride + i, size)
    line, at = (first, second) if by_rows else (second, first)
    inside = (line < size) & (at < k)
    return np.where(inside, line, -1), np.where(inside, at, 0)
