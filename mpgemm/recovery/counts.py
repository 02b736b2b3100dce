"""Chooses the number of slices or moduli for a product, by a bound that follows from the words.

Rows of A and columns of B are scaled by powers of two so that their largest elements lie in [1/2, 1); counts do not depend on
that. Let a = (sum of the words W_p(a)) + T(a), with the remainder T(a), and likewise b. A method that forms the products of a
set K of pairs of words differs from the exact product, before it rounds its result, by

    sum over (p, q) not in K of W_p(a) W_q(b)  +  T(a) b  +  (a - T(a)) T(b)

for each a b, so by at most the sum over k of the magnitudes of these terms (:func:`truncation`). This bound is computed in FP64
from the operands before the unit multiplies. A count keeps N bits if the bound is at most 2^-N |A||B| in every element; the
rounding of the result and, for slices, the additions in FP64 are additional errors.

The *span* of a product says by how many bits |A||B| of an element can be below the product of the largest elements of its row
and its column. cuBLAS calls a cheap estimate of it exponent span capacity (ESC) and chooses the slices from it (automatic
dynamic precision, arXiv:2511.13778; its estimator is not reproduced here). Here the bound itself decides. If too many words
would be needed, or if operands hold Inf or NaN, the native product is taken, as in cuBLAS.
"""

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mpgemm.recovery.integer_words import (
    integers_below,
    magnitudes,
    residue_bits,
    slice_operand,
    top_exponent,
)
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.word_count import Count

#: Significand bits of the results, by format.
RESULT_BITS = {"fp32": 24, "fp64": 53}
#: Factor that covers the rounding errors of FP64 sums of non-negative numbers, k up to 2^40.
_MARGIN = 1 + 2.0**-10
#: Bound of the error of one product if elements scaled by their row's largest underflow in FP64.
_LOST = 2.0**-1021


@dataclass(frozen=True, eq=False)
class ScaledOperands:
    """`ScaledOperands` holds A and B with rows and columns scaled below 1, and their |A||B|."""

    #: a, b: scaled operands in float64.
    a: np.ndarray
    b: np.ndarray
    sizes: np.ndarray  #: |A||B| in float64, rounded down.
    finite: bool  #: Whether all elements of the operands are finite.
    flushed: bool  #: Whether some elements, divided by their row's largest, are below FP64's normal numbers.

    @classmethod
    def of(cls, a: np.ndarray, b: np.ndarray) -> "ScaledOperands":
        """Return the scaled operands of float32 or float64 matrices; elements that are not finite count as 0."""
        found: list[np.ndarray] = []
        finite, flushed = True, False
        for x, axis in ((a, 1), (b, 0)):
            facts = magnitudes(x, axis)
            exponents = facts.exponents[:, None] if axis else facts.exponents
            clean = np.where(np.isfinite(x), x, 0).astype(np.float64)
            scaled = np.ldexp(clean, -exponents)
            finite &= bool(facts.finite.all())
            flushed |= bool(((np.abs(scaled) < np.finfo(np.float64).tiny) & (clean != 0)).any())
            found.append(scaled)
        left, right = found
        return cls(left, right, np.abs(left) @ np.abs(right) / _MARGIN, finite, flushed)

    @property
    def span(self) -> int:
        """Return the span of the product in bits (see the module), 0 for products without elements."""
        held = self.sizes[self.sizes > 0]
        return max(0, math.ceil(-math.log2(held.min()))) if held.size else 0


def truncation(row: RecoveryMethod, operands: ScaledOperands) -> np.ndarray:
    """Return the bound of each element's error before any rounding, from remainders and dropped products of words."""
    a, b = operands.a, operands.b
    words_a, words_b = scaled_words(row, a, 1), scaled_words(row, b, 0)
    left_a, left_b = a - sum(words_a), b - sum(words_b)
    kept = set(row.products)
    total = np.abs(left_a) @ np.abs(b) + np.abs(a - left_a) @ np.abs(left_b)
    for i, word in enumerate(words_a):
        dropped = [np.abs(x) for j, x in enumerate(words_b) if (i, j) not in kept]
        if dropped:
            total = total + np.abs(word) @ np.sum(dropped, axis=0)
    return total * _MARGIN + (a.shape[1] * _LOST if operands.flushed else 0.0)


def scaled_words(row: RecoveryMethod, x: np.ndarray, axis: int) -> list[np.ndarray]:
    """Return the words of an operand in its own units, float64; elements that are not finite count as 0.

    Rows (axis 1) or columns (axis 0) share an exponent.
    """
    if row.modular:
        whole, exponents = integers_below(x, axis, residue_bits(row.moduli, x.shape[axis]))
        return [np.ldexp(whole.astype(np.float64), exponents[:, None] if axis else exponents)]
    slices, exponents = slice_operand(x, axis, row)
    unit = (exponents[:, None] if axis else exponents) - top_exponent(row)
    return [np.ldexp(w.astype(np.float64), unit - row.slice_bits * j) for j, w in enumerate(slices)]


def lost_share(row: RecoveryMethod, operands: ScaledOperands) -> np.ndarray:
    """Return :func:`truncation` over |A||B|, element by element, 0 where the truncation is 0."""
    lost = truncation(row, operands)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(lost > 0, lost / operands.sizes, 0.0)


def kept_bits(row: RecoveryMethod, operands: ScaledOperands) -> tuple[float, tuple[int, int]]:
    """Return the bits of |A||B| that every element keeps (infinite if all are exact), and the element that keeps the fewest."""
    ratio = lost_share(row, operands)
    if ratio.size == 0:
        return math.inf, (0, 0)
    i, j = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    largest = float(ratio[i, j])
    return (math.inf if largest == 0 else -math.log2(largest)), (int(i), int(j))


def counts_of(row: RecoveryMethod, k: int) -> Iterator[RecoveryMethod]:
    """Yield the row with every number of slices or moduli, fewest first; moduli too few for sums over k are left out."""
    for count in range(2 if row.modular else 1, row.most_words + 1):
        found = row.with_count(count)
        if not row.modular or math.prod(found.moduli) > 8 * max(k, 1):
            yield found


def choose(row: RecoveryMethod, a: np.ndarray, b: np.ndarray) -> Count:
    """Return the number of words that a row with a `count` takes for these operands.

    Raises ValueError if the result's format holds fewer bits than wanted, or if too few words are allowed.
    """
    control = row.count
    if control is None:
        raise ValueError(
            f"method {row.name!r} has a fixed number of words; give slices=auto or moduli=auto, which choose the number"
        )
    result = result_format(row, a, b)
    holds = RESULT_BITS[result]
    wanted = (holds if control.bits is None else control.bits) + control.offset
    if not control.fixed and control.bits is not None and control.bits > holds:
        raise ValueError(
            f"method {row.name!r}: bits is {control.bits}, expected at most {holds}, the precision of {result.upper()} output; "
            "use target=fp64, whose precision is 53 bits"
        )
    operands = ScaledOperands.of(a, b)
    if not operands.finite:
        reason = f"{row.name}: the native {result.upper()} product, since an operand holds Inf or NaN"
        return Count(row.name, None, float(holds), wanted, operands.span, (0, 0), reason)
    most = row.most_words if control.most is None else min(control.most, row.most_words)
    if control.fixed:
        return _fixed(row, operands, wanted, most)
    return _dynamic(row, operands, wanted, most, holds, result)


def result_format(row: RecoveryMethod, a: np.ndarray, b: np.ndarray) -> str:
    """Return the format, fp32 or fp64, of a method's result for these operands."""
    wide = row.target == "fp64" or (row.target == "input" and np.float64 in (a.dtype, b.dtype))
    return "fp64" if wide else "fp32"


def _held(row: RecoveryMethod, k: int) -> int:
    """Return the number of bits that the words hold below the largest element of a row."""
    return residue_bits(row.moduli, k) if row.modular else row.slice_bits * row.words


def _fixed(row: RecoveryMethod, operands: ScaledOperands, wanted: int, most: int) -> Count:
    k = operands.a.shape[1]
    found = [row_ for row_ in counts_of(row, k) if _held(row_, k) >= wanted]
    if not found or found[0].word_count > most:
        raise ValueError(
            f"method {row.name!r}: {wanted} bits need more than {words_of(row, most)}"
            + (
                f"; give most={found[0].word_count}"
                if found
                else f"; the method has at most {row.most_words}, so ask for fewer bits"
            )
        )
    bits, element = kept_bits(found[0], operands)
    count = found[0].word_count
    hold, keep = ("holds", "it keeps") if count == 1 else ("hold", "they keep")
    reason = (
        f"{row.name}: {words_of(row, count)} {hold} {wanted} bits; on these matrices {keep} {_spelled(bits)} of |A||B|"
    )
    return Count(row.name, count, bits, wanted, operands.span, element, reason)


def _dynamic(row, operands: ScaledOperands, wanted: int, most: int, holds: int, result: str) -> Count:
    """Return the fewest words that keep the wanted bits, by bisection, because more words never keep fewer bits."""
    candidates = list(counts_of(row, operands.a.shape[1]))
    if not candidates:
        raise ValueError(
            f"method {row.name!r}: k is {operands.a.shape[1]}, for which no number of moduli suffices; multiply parts of k "
            "and add the results"
        )
    measured: dict[int, tuple[float, tuple[int, int]]] = {}

    def kept(place: int) -> float:
        if place not in measured:
            measured[place] = kept_bits(candidates[place], operands)
        return measured[place][0]

    enough = bisect.bisect_left(range(len(candidates)), True, key=lambda place: kept(place) >= wanted)
    place = min(enough, len(candidates) - 1)
    bits, count = kept(place), candidates[place].word_count
    facts = (bits, wanted, operands.span, measured[place][1])
    if bits >= wanted and count <= most:
        keep = "keeps" if count == 1 else "keep"
        reason = f"{row.name}: {words_of(row, count)} {keep} {_spelled(bits)} of |A||B| where {wanted} are wanted"
        return Count(row.name, count, *facts, reason)
    i, j = measured[place][1]
    where = f"for row {i} of A and column {j} of B (exponents span {operands.span} bits)"
    if bits >= wanted:
        needed = f"{words_of(row, count)} would be needed {where}, but at most {min(most, row.most_words)} may be taken"
    else:
        needed = _beyond(candidates[-1], operands, wanted, where)
    reason = f"{row.name}: the native {result.upper()} product, because {needed}"
    return Count(row.name, None, float(holds), *facts[1:], reason)


def _beyond(row: RecoveryMethod, operands: ScaledOperands, wanted: int, where: str) -> str:
    """Return the words or bits that would suffice, in words, if the largest number of words of the row does not.

    The error of slices is at most k (2 + 2 slices) 2^-(their bits) times the product of the largest elements of a row and a
    column.
    """
    k, count = max(operands.a.shape[1], 1), row.word_count
    if row.modular:
        return f"more bits would be needed {where} than the {_held(row, k)} that {words_of(row, count)} hold"
    while row.slice_bits * count - math.log2(k * (2 + 2 * count)) < wanted + operands.span:
        count += 1
    return f"{words_of(row, count)} would be needed {where}, but at most {row.most_words} may be taken"


def words_of(row: RecoveryMethod, count: int) -> str:
    """Return a count with its noun: "1 modulus", "8 slices"."""
    one, many = ("modulus", "moduli") if row.modular else ("slice", "slices")
    return f"{count} {one if count == 1 else many}"


def _spelled(bits: float) -> str:
    return "all bits" if math.isinf(bits) else f"{bits:.1f} bits"
