"""Computes matrix products in mpmath, as an independent reference that shares no code with the exact kernels."""

from collections.abc import Iterable
from typing import Any

import mpmath
import numpy as np

from mpgemm.inputs.sizes import check_shapes
from tensorcore_models.formats.rounding import source_array
from tensorcore_models.integers import integer_arguments
from tensorcore_models.machine.fp_state import default_fp_state


@default_fp_state
@default_fp_state
@integer_arguments("prec")
def mp_gemm(a: Any, b: Any, c: Any = None, prec: int | None = None) -> "mpmath.matrix":
    """Return A B (+ C) in mpmath arithmetic, for small matrices.

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
        Real numbers that binary64 holds exactly.
    c : array_like, shape (m, n), optional
        The addend.
    prec : int, optional
        Working precision in bits. By default it is chosen from the exponents of the data, so that the result is exact.

    Returns
    -------
    mpmath.matrix
        The product as m rows and n columns of mpf. Infinities and NaNs follow IEEE arithmetic.

    Raises
    ------
    ValueError
        If shapes do not fit or prec is below 1.
    TypeError
        If an argument is not an array of real numbers.

    Examples
    --------
    >>> print(mp_gemm([[1.0, 2.0**-70]], [[1.0], [1.0]])[0, 0] - 1)
    8.470329472543e-22
    """
    a, b, c = _matrices(a, b, c)
    result = mpmath.matrix(a.shape[0], b.shape[1])
    with mpmath.workprec(_precision(a, b, c, prec)):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                result[i, j] = _entry(a, b, c, i, j)
    return result


@default_fp_state
@integer_arguments("prec")
def mp_gemm_entries(
    a: Any, b: Any, c: Any, indices: Iterable[tuple[int, int]], prec: int | None = None
) -> list["mpmath.mpf"]:
    """Return some elements of :func:`mp_gemm`, to check large products by samples.

    Parameters
    ----------
    a, b, c, prec
        Arguments of :func:`mp_gemm`; c may be None.
    indices : iterable of (int, int)
        Row and column of each element.

    Returns
    -------
    list of mpf
        The elements in the order of the indices.

    Raises
    ------
    IndexError
        If an index lies outside the product.
    ValueError, TypeError
        See :func:`mp_gemm`.
    """
    a, b, c = _matrices(a, b, c)
    entries = []
    with mpmath.workprec(_precision(a, b, c, prec)):
        for i, j in indices:
            if not (0 <= i < a.shape[0] and 0 <= j < b.shape[1]):
                raise IndexError(
                    f"index ({i}, {j}) is outside of the product, expected one within {(a.shape[0], b.shape[1])}"
                )
            entries.append(_entry(a, b, c, i, j))
    return entries


def _matrices(a: Any, b: Any, c: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    a, b = (source_array(x, name).astype(np.float64) for x, name in ((a, "a"), (b, "b")))
    c = None if c is None else source_array(c, "c").astype(np.float64)
    check_shapes(a, b, c)
    return a, b, c


def _exponents(x: np.ndarray) -> tuple[int, int]:
    """Return the exponent of the last bit of the smallest nonzero number of x, and an exponent above the largest number."""
    magnitudes = np.abs(x[np.isfinite(x) & (x != 0)])
    if magnitudes.size == 0:
        return 0, 0
    return int(np.frexp(magnitudes.min())[1]) - 53, int(np.frexp(magnitudes.max())[1])


def _precision(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, prec: int | None) -> int:
    """Return the bits that hold every partial sum exactly, from the lowest bit of a product to the largest sum."""
    if prec is not None:
        if prec < 1:
            raise ValueError(f"prec is {prec}, expected at least 1 bit, or None for an exact result")
        return prec
    (low_a, high_a), (low_b, high_b) = _exponents(a), _exponents(b)
    low, high = low_a + low_b, high_a + high_b
    if c is not None and np.any(c[np.isfinite(c)]):
        low_c, high_c = _exponents(c)
        low, high = min(low, low_c), max(high, high_c)
    return max(high - low + a.shape[1].bit_length() + 2, 53)


def _entry(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, i: int, j: int) -> "mpmath.mpf":
    total = mpmath.mpf(0) if c is None else mpmath.mpf(float(c[i, j]))
    for x, y in zip(a[i].tolist(), b[:, j].tolist(), strict=True):
        total += mpmath.mpf(x) * mpmath.mpf(y)
    return total
