"""Checks before any allocation that shapes fit together and that arrays fit into the machine's memory."""

import math
import os
from collections.abc import Sequence

import numpy as np


def memory_bytes() -> int | None:
    """Return the size of this machine's memory in bytes, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def check_fits(shape: Sequence[int], itemsize: int, what: str) -> None:
    """Refuse an array that is larger than the machine's memory or has a negative size.

    Raises a ValueError that begins with `what`.
    """
    if min(shape, default=0) < 0:
        raise ValueError(f"{what}: got the shape {tuple(shape)}, expected sizes of at least 0")
    size, memory = math.prod(shape) * itemsize, memory_bytes()
    if memory is not None and size > memory:
        text = " x ".join(map(str, shape))
        raise ValueError(
            f"{what}: {text} elements take {size / 2**30:.3g} GiB, but this machine has {memory / 2**30:.3g} GiB: give smaller "
            "sizes"
        )


def check_shapes(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> None:
    """Refuse arrays whose shapes do not fit the product A B (+ C), with a ValueError."""
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"a has shape {a.shape} and b has shape {b.shape}, expected matrices of 2 dimensions")
    if a.shape[1] != b.shape[0]:
        turned = "; if b is stored as n x k, give b.T (--transpose-b of a command)" if a.shape[1] == b.shape[1] else ""
        raise ValueError(f"a is {a.shape} and b is {b.shape}, expected as many columns of a as rows of b{turned}")
    if c is not None and c.shape != (a.shape[0], b.shape[1]):
        raise ValueError(f"c is {c.shape}, expected {(a.shape[0], b.shape[1])} from a {a.shape} and b {b.shape}")
