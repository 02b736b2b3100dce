"""Computes the exact product of two matrices: correctly rounded results, and exact differences from computed results.

The exact value of an element is c + sum of a_ik b_kj over the reals. ``_kernels/exact.h`` describes how it is computed: by
binary64 sums with certificates, their residues modulo 2^52, and a long accumulator. All ways give the same bits, so results do
not depend on the CPU or the number of threads.

Infinities and NaN follow IEEE 754 element by element: if an operand of an element is infinite or NaN, the element is the
infinity or NaN that IEEE sums of the products give (0 times infinity, and infinities of both signs, give NaN). An exact zero is
+0.
"""

from typing import Any

import numpy as np

import tensorcore_models as tcm
from mpgemm._kernels import exact as exact_kernel
from mpgemm.inputs.sizes import check_shapes
from tensorcore_models.formats.operands import values_of_bits
from tensorcore_models.formats.rounding import source_array
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.machine.threads import threads_for

#: B is transposed if more than one element in `_TRANSPOSE_FROM` needs the long accumulator, `_TRANSPOSED` columns at a time.
_TRANSPOSE_FROM = 64
_TRANSPOSED = 64
#: B with at most so many columns is not transposed: a cache line holds a whole row, so columns are read as fast as rows.
_FEW_COLUMNS = 8


def exact_gemm(a: Any, b: Any, c: Any = None) -> "ExactResult":
    """Return the exact product A B (+ C).

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
        Real numbers of any type that binary64 holds exactly (fp64, fp32, fp16, bf16, fp8, integers up to 2^53). Types may
        differ; any strides and byte order are allowed. The arrays are copied, so later changes do not affect the result.
    c : array_like, shape (m, n), optional
        The addend.

    Returns
    -------
    ExactResult
        The exact product. Its methods round it or compare results with it; what they compute is kept for later calls.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or its type is wider than float64.
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> exact = exact_gemm(np.float32([[1, 2**-24]]), np.float32([[1], [1]]))
    >>> exact.rounded("fp32"), exact.error_of(np.float32([[1]]))
    (array([[1.]], dtype=float32), array([[-5.96046448e-08]]))
    """
    return ExactResult(a, b, c)


class ExactResult:
    """`ExactResult` is an exact product; :func:`exact_gemm` makes it.

    The constructor's option ``shared=True`` keeps float32 and float64 arrays a and b without a copy if it can; do not change
    them afterwards. :func:`exact_gemm` copies them.

    Attributes
    ----------
    shape : tuple of int
        Shape (m, n) of the product.

    Raises
    ------
    TypeError, ValueError
        See :func:`exact_gemm`.
    """

    @default_fp_state
    def __init__(self, a: Any, b: Any, c: Any = None, *, shared: bool = False):
        taken = source_array if shared else _copied
        self._a, self._b = taken(a, "a"), taken(b, "b")
        self._c = None if c is None else source_array(c, "c").astype(np.float64)  # astype copies
        check_shapes(self._a, self._b, self._c)
        self.shape = (self._a.shape[0], self._b.shape[1])
        self._start()

    @default_fp_state
    def rounded(self, fmt: str | tcm.Format = "fp32") -> np.ndarray:
        """Return the exact values rounded once to a format, to nearest with ties to even.

        Parameters
        ----------
        fmt : str or Format
            Format fp64, fp32, or any narrower format of :func:`tensorcore_models.get_format` that has a numpy or ml_dtypes
            type.

        Returns
        -------
        numpy.ndarray
            The values, shape (m, n), in the type of the format, read only because they are kept for the next call. Values
            beyond the format's range become infinities in formats that have them (:func:`tensorcore_models.encode`).

        Raises
        ------
        ValueError
            If the format is unknown or has no numpy or ml_dtypes type, or cannot encode a value.
        """
        row = tcm.get_format(fmt)
        if not isinstance(row, tcm.Format) or row.dtype is None:
            raise ValueError(
                f"format is {row.name}, expected a floating-point format with a numpy or ml_dtypes type, such as fp32"
            )
        if row.name not in self._rounded:
            result = self._round(row)
            result.flags.writeable = False
            self._rounded[row.name] = result
        return self._rounded[row.name]

    @default_fp_state
    def error_of(self, computed: Any) -> np.ndarray:
        """Return computed - exact, each difference rounded once to binary64, to nearest with ties to even.

        The error is 0 if and only if the element is exact: a nonzero difference that would round to 0 becomes 2^-1074, the
        smallest number of binary64, with the sign of the difference. If the exact element is NaN, the error is NaN. If the
        exact element is infinite, the error is 0 for the same infinity and ``computed - exact`` for other values. If only the
        computed element is infinite or NaN, the error is that element.

        Parameters
        ----------
        computed : array_like, shape (m, n)
            The result to judge, of any type that :func:`exact_gemm` takes.

        Returns
        -------
        numpy.ndarray
            The errors, float64, shape (m, n).

        Raises
        ------
        ValueError, TypeError
            If the shape is not that of the product, or the elements are not real numbers.
        """
        x = source_array(computed, "computed").astype(np.float64, copy=False)
        if x.shape != self.shape:
            raise ValueError(f"computed has shape {x.shape}, expected {self.shape}, the shape of the product")
        return self._evaluate(exact_kernel.DIFFERENCE, x)

    @default_fp_state
    def equals(self, computed: Any) -> np.ndarray:
        """Return a mask of the elements that equal the exact result; zeros of either sign, and any two NaNs, are equal.

        Parameters
        ----------
        computed : array_like, shape (m, n)
            The result to judge.

        Returns
        -------
        numpy.ndarray
            The mask, bool, shape (m, n).
        """
        error = self.error_of(computed)
        both_nan = np.isnan(error)
        if both_nan.any():
            x = source_array(computed, "computed").astype(np.float64, copy=False)
            both_nan &= np.isnan(x) & np.isnan(self.rounded("fp64"))
        return (error == 0) | both_nan

    @default_fp_state
    def magnitudes(self) -> "ExactResult":
        """Return the exact ``|A||B| (+ |C|)``, to which bounds of rounding errors are proportional."""
        other = object.__new__(type(self))
        other._a, other._b, other._c = np.abs(self._a), np.abs(self._b), None if self._c is None else np.abs(self._c)
        other.shape = self.shape
        other._start()
        return other

    # ------------------------------------------------------------ how

    def _start(self) -> None:
        """Start with no results kept."""
        self._product: exact_kernel.Product | None = None
        self._expansion: tuple[np.ndarray, ...] | None = None
        self._rounded: dict[str, np.ndarray] = {}

    def _round(self, fmt: tcm.Format) -> np.ndarray:
        if fmt.name == "fp64":
            return self._evaluate(exact_kernel.NEAREST)
        if fmt.name == "fp32" and self._expansion is None:
            return self._rounded_fp32()
        odd = self._evaluate(exact_kernel.ODD)  # rounding to odd first makes the second rounding correct
        if fmt.name == "fp32":
            with np.errstate(over="ignore", under="ignore"):
                return odd.astype(np.float32)
        return values_of_bits(np.asarray(tcm.encode(odd, fmt)), fmt)

    def _kernel(self) -> exact_kernel.Product:
        if self._product is None:
            (m, k), n = self._a.shape, self._b.shape[1]
            # threads share one block at a time, so their number follows the work of a block, however long k is
            threads = threads_for(min(m, exact_kernel.BLOCK) * min(k, exact_kernel.BLOCK) * min(n, exact_kernel.BLOCK))
            self._product = exact_kernel.Product(*_bytes(self._a), *_bytes(self._b), m, k, n, isa_level(), threads)
        return self._product

    def _rounded_fp32(self) -> np.ndarray:
        out, left = np.empty(self.shape, np.float32), np.ones(self.shape, bool)
        if self._a.size and self._b.size:
            self._kernel().rounded_fp32(self._c, out, left.view(np.uint8))
        rows, columns = np.nonzero(left)
        if rows.size:
            with np.errstate(over="ignore", under="ignore"):
                out[rows, columns] = self._dots(rows, columns, exact_kernel.ODD).astype(np.float32)
        return out

    def _expand(self) -> tuple[np.ndarray, ...]:
        if self._expansion is None:
            high, low = np.empty(self.shape), np.empty(self.shape)
            left = np.ones(self.shape, bool)
            row_units, column_units = np.ones(self.shape[0]), np.ones(self.shape[1])
            if self._a.size and self._b.size:
                product = self._kernel()
                product.expansion(high, low, left.view(np.uint8))
                product.units(row_units, column_units)
            else:
                high[:] = low[:] = 0.0
            self._expansion = (high, low, row_units, column_units, left)
        return self._expansion

    def _evaluate(self, what: int, x: np.ndarray | None = None) -> np.ndarray:
        high, low, row_units, column_units, left = self._expand()
        out = np.empty(self.shape)
        threads = threads_for(32 * out.size)  # about 32 operations an element
        exact_kernel.finish(high, low, row_units, column_units, self._c, x, what, out, isa_level(), threads)
        rows, columns = np.nonzero(left)
        if rows.size:
            out[rows, columns] = self._dots(rows, columns, what, x)
        return out

    def _dots(self, rows: np.ndarray, columns: np.ndarray, what: int, x: np.ndarray | None = None) -> np.ndarray:
        """Return the elements that only the long accumulator can compute."""
        k, n = self._b.shape
        if n <= _FEW_COLUMNS or rows.size * _TRANSPOSE_FROM <= self.shape[0] * n:
            return self._dots_of(self._b, (n, 1), rows, columns, columns, what, x)
        out = np.empty(rows.size)
        for start in range(0, n, _TRANSPOSED):
            chosen = np.flatnonzero((columns >= start) & (columns < start + _TRANSPOSED))
            if chosen.size:
                b = np.ascontiguousarray(self._b[:, start : start + _TRANSPOSED].T)
                at = rows[chosen], columns[chosen]
                out[chosen] = self._dots_of(b, (1, k), *at, at[1] - start, what, x)
        return out

    def _dots_of(
        self, b: np.ndarray, steps: tuple[int, int], rows, columns, columns_of_b, what: int, x: np.ndarray | None
    ) -> np.ndarray:
        """Return elements by the long accumulator; `steps` are the strides of B along k and along columns."""
        k = self._b.shape[0]
        out = np.empty(rows.size)
        exact_kernel.dots(
            _bytes(self._a),
            _bytes(b),
            (k, *steps),
            rows.astype(np.int64),
            columns_of_b.astype(np.int64),
            None if self._c is None else self._c[rows, columns],
            None if x is None else x[rows, columns],
            what,
            out,
            threads_for(16 * rows.size * k),  # about 16 operations a product
        )
        return out


def _copied(x: Any, name: str) -> np.ndarray:
    """Return a float32 or float64 array of the same values that shares no memory with `x`."""
    array = source_array(x, name)
    return array.copy() if np.may_share_memory(array, np.asarray(x)) else array


def _bytes(x: np.ndarray) -> tuple[np.ndarray, bool]:
    return x.reshape(-1).view(np.uint8), x.dtype == np.float64


@default_fp_state
def exact_dot_integers(x: Any, y: Any, c: float = 0.0) -> tuple[int, int]:
    """Return c plus the dot product of two vectors of finite numbers, computed in Python integers.

    It is slow, but easy to check.

    Parameters
    ----------
    x, y : array_like, shape (k,)
        Finite numbers of any type that :func:`exact_gemm` takes.
    c : float
        The addend.

    Returns
    -------
    numerator, exponent : int
        The exact value is ``numerator * 2**exponent``.

    Raises
    ------
    ValueError
        If shapes differ or a number is not finite.

    Examples
    --------
    >>> exact_dot_integers([0.5, 3.0], [1.0, 2.0])
    (13, -1)
    """
    x, y = (source_array(v, name).astype(np.float64) for v, name in ((x, "x"), (y, "y")))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"got shapes {x.shape} and {y.shape}, expected two vectors of the same length")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(c)):
        raise ValueError("x, y or c holds infinities or NaN, expected finite numbers")
    terms = [_integer(float(c))]
    for u, v in zip(x.tolist(), y.tolist(), strict=True):
        (m, i), (n, j) = _integer(u), _integer(v)
        terms.append((m * n, i + j))
    terms = [term for term in terms if term[0]]
    exponent = min((e for _, e in terms), default=0)
    total = sum(m << (e - exponent) for m, e in terms)
    return (total, exponent) if total else (0, 0)


def _integer(x: float) -> tuple[int, int]:
    """Return x as (m, e) with x = m 2^e."""
    numerator, denominator = x.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()
