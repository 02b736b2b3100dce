"""Multiplies float64 matrices for bounds: |A||B| + |C|, and small products on one thread."""

import numpy as np

#: Largest number of multiplications that OpenBLAS leaves to one thread. After a product on several threads these spin for tens
#: of milliseconds, a hundred times as long as a small product takes.
ONE_THREAD = 1 << 18
#: Number of multiplications from which several threads are faster in spite of the spinning.
SEVERAL = 1 << 28
#: Rows of a part of a product that one thread computes.
ROWS = 256
#: Values of k of a part of a product that one thread computes.
INNER = 128
#: Values of k for which |A| and |B| are formed at a time, so that they stay in the cache.
_AT_ONCE = 256


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A B of float64 matrices; products that are not large are computed in parts that OpenBLAS leaves to one thread."""
    (m, k), n = a.shape, b.shape[1]
    if m * k * n <= ONE_THREAD or m * k * n >= SEVERAL:
        return a @ b
    total = np.zeros((m, n))
    across = max(ONE_THREAD // (min(m, ROWS) * min(k, INNER)), 1)
    for i in range(0, m, ROWS):
        for start in range(0, k, INNER):
            left = a[i : i + ROWS, start : start + INNER]
            for j in range(0, n, across):
                total[i : i + ROWS, j : j + across] += left @ b[start : start + INNER, j : j + across]
    return total


def sizes_of(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """Return |A||B| + |C| in float64, shape (m, n), without storing |A| and |B| for all of k."""
    sizes = np.zeros((a.shape[0], b.shape[1]))
    for start in range(0, a.shape[1], _AT_ONCE):
        left, right = a[:, start : start + _AT_ONCE], b[start : start + _AT_ONCE]
        sizes += multiply(*(np.abs(x.astype(np.float64, copy=False)) for x in (left, right)))
    return sizes if c is None else sizes + np.abs(c.astype(np.float64, copy=False))
