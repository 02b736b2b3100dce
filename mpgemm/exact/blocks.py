"""Computes the exact product of narrow operands with a scale for each block of k.

The sum of a block's products is an integer multiple of the product of the formats' smallest numbers. If that integer stays
below 2^53, any FP64 product computes the sum exactly; the product of two FP32 scales is exact in FP64, too. The long
accumulator of :mod:`mpgemm.exact.product` then adds one product for each block instead of one for each value of k.
"""

import numpy as np

from mpgemm._kernels import exact as exact_kernel
from mpgemm.exact.product import ExactResult
from tensorcore_models.formats import Format
from tensorcore_models.machine.threads import threads_for

#: Rows and columns whose sums are formed at a time, so that they stay in the cache and OpenBLAS uses one thread.
_ROWS, _COLUMNS = 32, 64


def sums_are_exact(formats: tuple[Format, Format], block: int) -> bool:
    """Return whether sums of `block` products of numbers of two formats are exact in FP64, in every order."""
    numbers = 1.0 * block
    for fmt in formats:
        numbers *= fmt.max_finite / fmt.min_subnormal
    return numbers <= 2.0**53


class ExactBlocks(ExactResult):
    """`ExactBlocks` is the exact product of X and Y with a factor for each block of k in a row (column), plus C.

    Parameters
    ----------
    x, y : ndarray of float64, shapes (m, k) and (k, n)
        Finite values whose sums of `block` products are exact in FP64 (:func:`sums_are_exact`).
    factors : (ndarray of float32, ndarray of float32), shapes (m, blocks) and (blocks, n)
        Finite factors of the blocks of X and of Y.
    block : int
        Number of values of k that share a factor.
    c : ndarray of float64, shape (m, n), optional
        The addend.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, factors: tuple[np.ndarray, np.ndarray], block: int, c=None):
        self._a, self._b, self._c, self._block = x, y, c, block
        self._factors = tuple(each.astype(np.float64) for each in factors)
        self.shape = (x.shape[0], y.shape[1])
        self._start()

    def magnitudes(self) -> ExactResult:
        """Return the exact product of the absolute values, plus |C|."""
        c = None if self._c is None else np.abs(self._c)
        of_a, of_b = (np.abs(each) for each in self._factors)
        return ExactBlocks(np.abs(self._a), np.abs(self._b), (of_a, of_b), self._block, c)

    def _rounded_fp32(self) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            return self._evaluate(exact_kernel.ODD).astype(np.float32)

    def _evaluate(self, what: int, x: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(self.shape)
        for i in range(0, self.shape[0], _ROWS):
            for j in range(0, self.shape[1], _COLUMNS):
                part = slice(i, i + _ROWS), slice(j, j + _COLUMNS)
                out[part] = self._part(*part, what, None if x is None else x[part])
        return out

    def _part(self, rows: slice, columns: slice, what: int, x: np.ndarray | None) -> np.ndarray:
        """Return some elements, the dot products of their blocks' sums and factors."""
        a, b = self._factors[0][rows], self._factors[1][:, columns]
        m, blocks, n = len(a), len(b), b.shape[1]
        sums = np.empty((blocks, m, n))
        for at in range(blocks):
            taken = slice(at * self._block, (at + 1) * self._block)
            np.matmul(self._a[rows, taken], self._b[taken, columns], out=sums[at])
        elements, out = np.arange(m * n), np.empty(m * n)
        c = None if self._c is None else self._c[rows, columns]
        exact_kernel.dots(
            _flat(np.moveaxis(sums, 0, 2)), _flat(a[:, None] * b.T[None]), (blocks, 1, blocks), elements, elements,
            None if c is None else np.ascontiguousarray(c).reshape(-1),
            None if x is None else np.ascontiguousarray(x).reshape(-1), what, out, threads_for(16 * sums.size),
        )  # fmt: skip
        return out.reshape(m, n)


def _flat(x: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the bytes of float64 numbers and the flag "is float64", as the kernel takes them."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8), True
