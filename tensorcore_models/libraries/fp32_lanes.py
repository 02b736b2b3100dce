"""This module computes the FP32 arithmetic of a GPU's threads on arrays: functions, chains, sums over a warp's lanes."""

from collections.abc import Iterable

import numpy as np

from ..functions import get_function

#: Number of lanes of a warp.
WARP = 32


def apply(name: str, *operands: np.ndarray) -> np.ndarray:
    """Return the GPU's results of a function of FP32 values, with the names of :func:`tensorcore_models.get_function`."""
    bits = [np.ascontiguousarray(x, np.float32).view(np.uint32) for x in operands]
    return get_function("hopper", name).bits(*bits).view(np.float32)


def chain(x: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return the sum along the last axis, added from the left to +0 or `start` and rounded after each addition."""
    first = np.zeros(x.shape[:-1], np.float32) if start is None else start
    return np.add.accumulate(np.concatenate([first[..., None], x], axis=-1), axis=-1, dtype=np.float32)[..., -1]


def butterfly(x: np.ndarray, distances: Iterable[int]) -> np.ndarray:
    """Return the sum that lane 0 has after all lanes (last axis) add their partner's sum at each distance."""
    lanes = np.arange(x.shape[-1])
    for distance in distances:
        x = x + x[..., lanes ^ distance]
    return x[..., 0]


def halves(width: int) -> list[int]:
    """Return the halving distances width / 2, ..., 1 for a power of two."""
    return [width >> i for i in range(1, width.bit_length())]
