"""Joins products of integer words to the result: sums of slices, Chinese remainders, sums of quantised words.

The arithmetic is in ``_kernels/integer_words_join.h``; `tests/support/integer_reference.py` states it in plain integers.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpgemm._kernels import integer_words as kernel
from mpgemm.recovery.integer_words import balanced
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.machine.threads import threads_for

_TYPES = {np.dtype(np.int32): kernel.INT32, np.dtype(np.int64): kernel.INT64, np.dtype(np.float32): kernel.FLOAT}

#: Largest magnitude of the exponents of rows and columns for which scaling by powers of two is exact or overflows once, because
#: joined values are multiples of 2^-224 (16 slices) and below 2^433 (54 moduli).
_EXACT_EXPONENT = 390


def products_of(products: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the bytes and the type codes of an engine's results, as the kernels take them."""
    types = np.array([_TYPES[p.dtype] for p in products], np.int32)
    return [np.ascontiguousarray(p).reshape(-1).view(np.uint8) for p in products], types


def _result(
    rows: np.ndarray, columns: np.ndarray, dtype
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], tuple[np.ndarray | None, np.ndarray | None], np.ndarray]:
    """Return an array for the result, exponents and powers of two of its rows and columns, and the array's bytes."""
    rows, columns = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(columns, np.int32)
    out = np.empty((len(rows), len(columns)), dtype)
    exact = max(int(np.abs(e).max(initial=0)) for e in (rows, columns)) <= _EXACT_EXPONENT
    powers = (np.ldexp(1.0, rows), np.ldexp(1.0, columns)) if exact else (None, None)
    return out, (rows, columns), powers, out.reshape(-1).view(np.uint8)


def joined_slices(
    products: Sequence[np.ndarray], exponents: Sequence[int], rows: np.ndarray, columns: np.ndarray, dtype
) -> np.ndarray:
    """Return RN(2^(row + column) sum_j product_j 2^exponent_j), shape (m, n), with the sum in FP64 in the given order.

    products (sequence of ndarray of int32, int64 or float32, shape (m, n)): products of pairs of words.
    exponents: exponent of each product, not decreasing, 0 for the last.
    rows, columns (ndarray of int, shapes (m,) and (n,)): exponents of the rows of A and of the columns of B.
    dtype: float64 or float32, to which the FP64 result is rounded.
    The FP64 sum is rounded again only if 2^(row + column) takes it out of FP64's normal range.
    """
    out, ends, powers, data = _result(rows, columns, dtype)
    if out.size:
        steps = np.ldexp(1.0, -np.diff(np.asarray(exponents, np.int64), prepend=exponents[0]))
        arrays, types = products_of(products)
        threads = threads_for(out.size * len(products))
        wide = out.dtype == np.float64
        kernel.join_slices(arrays, types, steps, (*ends, *powers), data, wide, isa_level(), threads)
    return out


@dataclass(frozen=True, eq=False)
class Remainders:
    """`Remainders` holds the constants of the Chinese remainder theorem for some moduli, as the kernels take them.

    With M the product of the moduli p_i and y_i = residue_i ((M / p_i)^-1 mod p_i), the integer in [-M/2, M/2) with these
    residues is sum of y_i (M / p_i) - q M, where q is the integer nearest to the sum of y_i / p_i.
    """

    moduli: tuple[int, ...]

    @functools.cached_property
    def product(self) -> int:
        """Return M, the product of the moduli."""
        return math.prod(self.moduli)

    @functools.cached_property
    def factors(self) -> list[int]:
        """Return (M / p_i)^-1 modulo p_i for each modulus, balanced."""
        return [balanced(pow(self.product // p, -1, p), p) for p in self.moduli]

    @functools.cached_property
    def limbs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the limbs of M / p_i, shape (limbs, moduli), and the limbs of M, lowest first."""
        count = -(-self.product.bit_length() // kernel.LIMB)
        mask = (1 << kernel.LIMB) - 1
        whole = [[x >> (kernel.LIMB * j) & mask for x in self._cofactors()] for j in range(count)]
        return np.array(whole, np.float64), np.array(
            [self.product >> (kernel.LIMB * j) & mask for j in range(count)], np.float64
        )

    def _cofactors(self) -> list[int]:
        return [self.product // p for p in self.moduli]

    @functools.cached_property
    def inverses(self) -> np.ndarray:
        """Return 1 / p_i for each modulus."""
        return np.array([1 / p for p in self.moduli])

    def reduce(self, index: int, product: np.ndarray, out: np.ndarray, accumulate: bool = False) -> None:
        """Store y of the modulus `index`, balanced, in int8 `out`.

        product: product of residues, those of one operand multiplied by the modulus' factor.
        accumulate: whether to add y to `out`, which holds that of another part of k.
        """
        flat = np.ascontiguousarray(product, np.int32).reshape(-1).view(np.uint8)
        if out.size:
            kernel.reduce(
                flat,
                self.moduli[index],
                accumulate,
                out.reshape(-1),
                isa_level(),
                threads_for(out.size),
            )

    def joined(self, planes: np.ndarray, rows: np.ndarray, columns: np.ndarray, dtype) -> np.ndarray:
        """Return the integers whose y :meth:`reduce` stored, shape (moduli, m, n), rounded to FP64 once, times 2^(row +
        column)."""
        return self._joined(planes.reshape(len(self.moduli), -1), rows, columns, dtype)

    def _joined(self, flat: np.ndarray, rows: np.ndarray, columns: np.ndarray, dtype) -> np.ndarray:
        """Return the integers of planes with one plane for each weight, times 2^(row + column)."""
        out, ends, powers, data = _result(rows, columns, dtype)
        if out.size:
            wide = out.dtype == np.float64
            weights, product = self.limbs
            threads = threads_for(out.size * len(flat) * len(product))
            scales = (*ends, *powers)
            kernel.join_residues(flat, self.inverses, weights, product, scales, data, wide, isa_level(), threads)
        return out


@functools.lru_cache(maxsize=64)
def remainders(moduli: tuple[int, ...]) -> Remainders:
    """Return the constants for at most 54 pairwise coprime moduli of at most 256; they are cached."""
    if not 1 <= len(moduli) <= kernel.MOST_MODULI:
        raise ValueError(f"got {len(moduli)} moduli, expected 1 to {kernel.MOST_MODULI}")
    return Remainders(tuple(moduli))


def add_quantised(sums: np.ndarray, product: np.ndarray, factor: np.float32, accumulate: bool = True) -> None:
    """Store sums + RN(RN(product) factor) in FP32 in `sums`; without `accumulate`, 0 replaces the old sums."""
    arrays, kinds = products_of([product])
    if sums.size:
        threads = threads_for(sums.size)
        kernel.add_quantised(
            arrays[0], int(kinds[0]), float(factor), accumulate, sums.reshape(-1), isa_level(), threads
        )
