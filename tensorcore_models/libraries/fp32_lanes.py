"""FP32 arithmetic of a GPU's threads on arrays: functions, chains of additions, and how the lanes of a warp join their sums."""

from collections.abc import Iterable

import numpy as np

from ..functions import get_function

#: Lanes of a warp.
WARP = 32


def apply(name: str, *operands: np.ndarray) -> np.ndarray:
    """Return a function of FP32 values as the GPU computes it, named as :func:`tensorcore_models.get_function` does."""
    bits = [np.ascontiguousarray(x, np.float32).view(np.uint32) for x in operands]
    return get_function("hopper", name).bits(*bits).view(np.float32)


def chain(x: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return the sum along the last axis, from the left, rounded each time, from +0 or from `start`."""
    first = np.zeros(x.shape[:-1], np.float32) if start is None else start
    return np.add.accumulate(np.concatenate([first[..., None], x], axis=-1), axis=-1, dtype=np.float32)[..., -1]


def butterfly(x: np.ndarray, distances: Iterable[int]) -> np.ndarray:
    """Return the sum that lanes (last axis) have after adding their partner's, at each distance."""
    lanes = np.arange(x.shape[-1])
    for distance in distances:
        x = x + x[..., lanes ^ distance]
    return x[..., 0]


def halves(width: int) -> list[int]:
    """Return distances from half of a power of two down to 1."""
    return [width >> i for i in range(1, width.bit_length())]
