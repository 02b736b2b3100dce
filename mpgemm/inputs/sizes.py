"""Whether sizes go together, and what is asked for fits into the memory: looked at before any of it is taken."""

import math
import os
from collections.abc import Sequence

import numpy as np


def memory_bytes() -> int | None:
    """Return bytes of this machine's memory, None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def check_fits(shape: Sequence[int], itemsize: int, what: str) -> None:
    """Refuse, with a ValueError that begins with `what`, an array that is larger than the machine's memory, or has a
    negative size."""
    if min(shape, default=0) < 0:
        raise ValueError(f"{what}: sizes must not be negative, got {tuple(shape)}")
    size, memory = math.prod(shape) * itemsize, memory_bytes()
    if memory is not None and size > memory:
        text = " x ".join(map(str, shape))
        raise ValueError(
            f"{what}: {text} elements take {size / 2**30:.3g} GiB, but this machine has {memory / 2**30:.3g} GiB"
        )


def check_shapes(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> None:
    """Refuse arrays of which there is no product A B (+ C), with a ValueError."""
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"a and b must be matrices (2 dimensions), got shapes {a.shape} and {b.shape}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"a is {a.shape} and b is {b.shape}: the columns of a must be as many as the rows of b")
    if c is not None and c.shape != (a.shape[0], b.shape[1]):
        raise ValueError(f"c is {c.shape}, expected {(a.shape[0], b.shape[1])} from a {a.shape} and b {b.shape}")
