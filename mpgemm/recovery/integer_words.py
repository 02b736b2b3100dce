"""Makes integer words of the operands of integer recovery methods: slices, residues, quantised words.

Rows of A (axis 1) and columns of B (axis 0) share an exponent. Elements that are not finite count as 0. The arithmetic is in
``_kernels/integer_words_split.h``; `tests/support/integer_reference.py` states it in plain integers.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm._kernels import integer_words as kernel
from mpgemm.recovery.methods import RecoveryMethod
from tensorcore_models.formats import Format, IntegerFormat
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.machine.threads import threads_for
from tensorcore_models.machine.workspace import Scratch

#: Largest number of balanced 8-bit digits that fit int64 together.
MOST_BALANCED = 8


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """`Magnitudes` holds the largest magnitudes of the rows or columns of a matrix.

    Attributes
    ----------
    largest : numpy.ndarray of float64
        Largest finite magnitude of each row or column.
    finite : numpy.ndarray of bool
        Whether all elements of each row or column are finite.
    """

    largest: np.ndarray
    finite: np.ndarray

    @functools.cached_property
    def exponents(self) -> np.ndarray:
        """Return the least e of each row or column with all |x| < 2^e, int32; 0 for zeros."""
        return np.where(self.largest > 0, np.frexp(self.largest)[1], 0).astype(np.int32)


def _source(x: np.ndarray, axis: int) -> tuple[np.ndarray, bool, int, int, bool]:
    """Return a matrix as the kernels take it: bytes, is double, rows, columns, and whether rows (not columns) share
    exponents."""
    x = np.ascontiguousarray(x, x.dtype.newbyteorder("=")) if x.ndim == 2 else x
    if x.dtype not in (np.float32, np.float64) or x.ndim != 2:
        raise TypeError(f"got {x.dtype} with {x.ndim} dimensions, expected a float32 or float64 matrix")
    if axis not in (0, 1):
        raise ValueError(f"axis is {axis!r}, expected 1 (rows) or 0 (columns)")
    return x.reshape(-1).view(np.uint8), x.dtype == np.float64, *x.shape, axis == 1


def magnitudes(x: np.ndarray, axis: int) -> Magnitudes:
    """Return the largest finite magnitudes of the rows (axis 1) or columns (axis 0), and whether all elements are finite.

    Parameters
    ----------
    x : ndarray of float32 or float64, 2 dimensions
        The operand.
    axis : int
        1 for rows, 0 for columns.

    Raises
    ------
    TypeError, ValueError
        If x is no such matrix, or axis is neither 0 nor 1.
    """
    source = _source(x, axis)
    count = x.shape[1 - axis]
    largest, finite = np.empty(count), np.empty(count, bool)
    kernel.scan(source, largest, finite.view(np.uint8), isa_level(), threads_for(x.size))
    return Magnitudes(largest, finite)


def common_exponents(x: np.ndarray, axis: int) -> np.ndarray:
    """Return e for each row (axis 1) or column (axis 0) with max |x| < 2^e over its finite elements, 0 for zeros.

    Parameters
    ----------
    x : ndarray of float32 or float64, 2 dimensions
        The operand.
    axis : int
        1 for rows, 0 for columns.
    """
    return magnitudes(x, axis).exponents


def _powers(exponents: np.ndarray) -> np.ndarray:
    """Return two powers of two for each exponent whose product is 2^exponent, which may be beyond FP64's range."""
    half = exponents // 2
    return np.ldexp(1.0, np.stack([half, exponents - half]))


# -- slices --------------------------------------------------------------------------------------------------------------
def top_exponent(row: RecoveryMethod) -> int:
    """Return how far the first slice's unit is below the common exponent: the bits of a slice, 6 for balanced 8-bit digits."""
    return row.slice_bits if row.slice_bits < 8 else row.slice_bits - 2


def slice_operand(
    x: np.ndarray,
    axis: int,
    row: RecoveryMethod,
    exponents: np.ndarray | None = None,
    out: np.ndarray | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the slices of a matrix on common exponents.

    Parameters
    ----------
    x : ndarray of float32 or float64, 2 dimensions
        The operand.
    axis : int
        1 if rows share an exponent, 0 if columns do.
    row : RecoveryMethod
        The method.
    exponents : ndarray of int32, optional
        The :func:`common_exponents` of x, if they are known.
    out : ndarray of int8, shape (words, *x.shape), C-contiguous, optional
        Array in which the slices are stored.

    Returns
    -------
    slices : list of int8 arrays
        Slices with x ~ 2^e sum_j slice_j 2^-(top + bits j), where top is :func:`top_exponent`. Digits of at most 7 bits
        truncate x; balanced digits of 8 bits hold the nearest such number.
    exponents : ndarray of int32
        Exponent e of each row or column.

    Raises
    ------
    ValueError
        If int8 cannot hold a slice, or int64 cannot hold all balanced slices together.
    """
    balanced = row.slice_bits == 8
    if row.slice_bits > 8 or (balanced and row.words > MOST_BALANCED):
        raise ValueError(
            f"method {row.name!r} has {row.words} slices of {row.slice_bits} bits, expected at most 7 bits in a slice, or 8 "
            f"bits in at most {MOST_BALANCED} slices"
        )
    exponents = common_exponents(x, axis) if exponents is None else exponents
    planes = np.empty((row.words, *x.shape), np.int8) if out is None else out
    shift = (8 * row.words - 2 if balanced else 0) - exponents
    kernel.slices(
        _source(x, axis),
        _powers(shift),
        balanced,
        row.slice_bits,
        planes.reshape(row.words, x.size),
        isa_level(),
        threads_for(x.size * row.words),
    )
    return list(planes), exponents


# -- residues ------------------------------------------------------------------------------------------------------------
def residue_bits(moduli, k: int) -> int:
    """Return the largest beta, at most 62, with 2 k 2^(2 beta) < M, so that sums of k products up to 2^(2 beta) are below M/2.

    Raises
    ------
    ValueError
        If the moduli leave no bit.
    """
    product = math.prod(moduli)
    beta = min(62, ((product - 1) // (2 * max(k, 1))).bit_length() // 2)
    while beta >= 0 and 2 * max(k, 1) << (2 * beta) >= product:
        beta -= 1
    if beta < 1:
        raise ValueError(
            f"moduli are {tuple(moduli)}, expected a larger product than {product} for k = {k}; take more moduli"
        )
    return beta


def balanced(n: int, p: int) -> int:
    """Return the residue of an integer modulo p that lies in [-p/2, p/2)."""
    return (n + p // 2) % p - p // 2


@functools.lru_cache(maxsize=64)
def _modulus_facts(moduli: tuple[int, ...], factors: tuple[int, ...]) -> np.ndarray:
    """Return rows of p, 1/p and factor 2^(PIECE i) modulo p (balanced) for i below PIECES."""
    pairs = list(zip(moduli, factors, strict=True))
    powers = [[balanced(factor << (kernel.PIECE * i), p) for p, factor in pairs] for i in range(kernel.PIECES)]
    return np.array([moduli, [1 / p for p in moduli], *powers], np.float32)


def integers_below(
    x: np.ndarray, axis: int, bits: int, exponents: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return integers RZ(x 2^(bits - e)) below 2^bits and the exponents e - bits of their units, with the common exponents e.

    Parameters
    ----------
    x : ndarray of float32 or float64, 2 dimensions
        The operand.
    axis : int
        1 if rows share an exponent, 0 if columns do.
    bits : int
        Number of bits, 1 to 62.
    exponents : ndarray of int32, optional
        The :func:`common_exponents` of x, if they are known.

    Returns
    -------
    whole : ndarray of int64
        The integers.
    exponents : ndarray of int32
        Exponent of the unit of each row or column.
    """
    exponents = (common_exponents(x, axis) if exponents is None else exponents) - np.int32(_checked_bits(bits))
    whole = np.empty(x.shape, np.int64)
    kernel.integers(_source(x, axis), _powers(-exponents), whole.reshape(-1), isa_level(), threads_for(x.size))
    return whole, exponents


def _checked_bits(bits: int) -> int:
    if not 1 <= bits <= 62:
        raise ValueError(f"bits is {bits}, expected 1 to 62")
    return bits


def residue_words(
    x: np.ndarray,
    axis: int,
    bits: int,
    moduli: tuple[int, ...],
    exponents: np.ndarray | None = None,
    out: np.ndarray | None = None,
    factors: Sequence[int] | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return balanced residues of the integers of :func:`integers_below`, or of multiples of them, modulo each modulus.

    Parameters
    ----------
    x, axis, bits, exponents
        See :func:`integers_below`.
    moduli : tuple of int
        Moduli from 2 to 256.
    out : ndarray of int8, shape (moduli, *x.shape), C-contiguous, optional
        Array in which the residues are stored.
    factors : sequence of int, optional
        Factor of the integers for each modulus, by default 1.

    Returns
    -------
    words : list of int8 arrays
        Residues in [-p/2, p/2), one array for each modulus.
    exponents : ndarray of int32
        See :func:`integers_below`.
    """
    exponents = (common_exponents(x, axis) if exponents is None else exponents) - np.int32(_checked_bits(bits))
    planes = np.empty((len(moduli), *x.shape), np.int8) if out is None else out
    kernel.residues(
        _source(x, axis),
        _powers(-exponents),
        bits,
        _modulus_facts(tuple(moduli), (1,) * len(moduli) if factors is None else tuple(factors)),
        planes.reshape(len(moduli), x.size),
        isa_level(),
        threads_for(x.size * len(moduli)),
    )
    return list(planes), exponents


def residue_entries(
    x: np.ndarray, axis: int, bits: int, p: int, tables: np.ndarray, exponents: np.ndarray
) -> np.ndarray:
    """Return the table entries of the residues of :func:`integers_below` modulo p, uint8, shape (tables, *x.shape).

    Parameters
    ----------
    x, axis, bits, exponents
        See :func:`integers_below`.
    p : int
        Odd modulus of at most 1300.
    tables : ndarray of uint8, shape (tables, p)
        Tables, in which entry r belongs to integers congruent to r modulo p.
    """
    least = -(p // 2) - kernel.MARGIN
    around = np.take(tables, np.arange(least, 1 - least) % p, axis=1)
    planes = np.empty((len(tables), *x.shape), np.uint8)
    kernel.looked_up(
        _source(x, axis),
        _powers(np.int32(_checked_bits(bits)) - exponents),
        bits,
        _modulus_facts((p,), (1,)),
        around,
        planes.view(np.int8).reshape(len(tables), x.size),
        isa_level(),
        threads_for(x.size * len(tables)),
    )
    return planes


# -- quantised words -----------------------------------------------------------------------------------------------------
def quantise(
    x: np.ndarray,
    words: int,
    fmt: Format | IntegerFormat,
    largest: float | None = None,
    memory: Scratch | None = None,
) -> list[tuple[np.ndarray, float]]:
    """Return words and their FP32 scales; each word is the quantised remainder of the words before it.

    Remainders are computed in the type of x. Floating-point words are in [-1, 1], integer words in [-q_max, q_max].

    Parameters
    ----------
    x : ndarray of float32 or float64, 2 dimensions
        The operand.
    words : int
        Number of words.
    fmt : Format or IntegerFormat
        Format of the words; integers have at most 8 bits.
    largest : float, optional
        Largest finite magnitude in x, if it is known.
    memory : Scratch, optional
        Memory with words + 1 pieces, for integer words and their remainder.

    Returns
    -------
    list of (ndarray, float)
        Words (int8, or float32 values of a floating-point format) and scales.
    """
    if largest is None:
        largest = float(magnitudes(x, 1).largest.max(initial=0.0))
    if isinstance(fmt, Format):
        return _floating_words(x, words, fmt, largest)
    found, left = [], x
    rest = x if words == 1 else _piece(memory, x.shape, np.dtype(x.dtype.type))  # not written for the last word
    for n in range(words):
        factor = _scale(largest / fmt.maximum)
        word = _piece(memory, x.shape, np.dtype(np.int8))
        largest = _integer_word(left, x.dtype.type(factor), fmt.maximum, word, None if n + 1 == words else rest)
        found.append((word, float(factor)))
        left = rest
    return found


def _scale(x: float) -> np.float32:
    """Return x in FP32, or 1 if that is 0."""
    with np.errstate(over="ignore", under="ignore"):
        return np.float32(x) or np.float32(1)


def _piece(memory: Scratch | None, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.empty(shape, dtype) if memory is None else memory.take(shape, dtype)


def _integer_word(x: np.ndarray, factor, limit: int, word: np.ndarray, rest: np.ndarray | None) -> float:
    """Store a word of x and, unless `rest` is None, its remainder, and return the remainder's largest magnitude.

    `rest` may be x itself.
    """
    source, is_double = _source(x, 1)[:2]
    largest = np.zeros(-(-x.size // kernel.BLOCK))
    left = None if rest is None else rest.reshape(-1).view(np.uint8)
    threads = threads_for(x.size)
    kernel.quantise(source, is_double, float(factor), limit, word.reshape(-1), left, largest, isa_level(), threads)
    return float(largest.max(initial=0.0))


def _floating_words(x: np.ndarray, words: int, fmt: Format, largest: float) -> list[tuple[np.ndarray, float]]:
    found, left = [], np.where(np.isfinite(x), x, x.dtype.type(0))
    for _ in range(words):
        factor = _scale(largest)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            word = tcm.decode(tcm.encode(left / x.dtype.type(factor), fmt), fmt, np.float32)
            left = left - x.dtype.type(factor) * word.astype(x.dtype)
        left = np.where(np.isfinite(left), left, x.dtype.type(0))
        largest = float(np.max(np.abs(left), initial=0.0))
        found.append((word, float(factor)))
    return found
