"""Products with few rows or columns on the vector units, in FP32: what the numeric interpreter of that kernel does.

Every product is rounded to FP32 and then added, each step RN: whether the units fuse the two is not published.

- B streamed (n >= m): each element of C is one chain over the slice's k in order; a row of B times one element of A at a
  time, lanes along n.
- A streamed (n < m): lanes along k: lane l adds the products of k = l, l + 64, ... in order, and the 64 sums are added
  by halves (lane l and l + 32, then l + 16, and so on).

Slices of k are merged as on the cube (:mod:`ascend.slices`); c is the start of the first slice's chain, or is added
to its sum of lanes.
"""

import numpy as np

from ascend.slices import Sums, merge_slices

#: FP32 lanes of a 2048-bit vector.
LANES = 64


def vector_product(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, sums: Sums) -> np.ndarray:
    """A B (+ C) as a vector kernel computes it: float32."""
    return merge_slices(vector_slices(a, b, c, sums))


def vector_slices(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, sums: Sums) -> np.ndarray:
    """The slices of k before they are merged: float32, shape (slices, m, n)."""
    if sums.operand == "fp16":
        a, b = a.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32)
    chain = _chains if sums.lanes == "b" else _lanes
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        for number, ((start, stop),) in enumerate(sums.slices):
            found.append(chain(a[:, start:stop], b[start:stop], c if number == 0 else None))
    return np.stack(found)


def _chains(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32) if c is None else c.copy()
    for position in range(a.shape[1]):
        total += a[:, position, None] * b[position]
    return total


def _lanes(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    sums = np.zeros((a.shape[0], b.shape[1], LANES), np.float32)
    for start in range(0, a.shape[1], LANES):
        x, y = a[:, start : start + LANES], b[start : start + LANES]
        sums[:, :, : x.shape[1]] += x[:, None, :] * y.T[None]
    half = LANES // 2
    while half:
        sums = sums[:, :, :half] + sums[:, :, half : 2 * half]
        half //= 2
    return sums[:, :, 0] if c is None else c + sums[:, :, 0]
