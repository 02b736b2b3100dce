"""Represents residues as pairs of small words, for Ozaki scheme II on units with FP8 numbers instead of integers.

A number modulo p is h b + l modulo p with words h and l so small that they, and their sum, are exact in e4m3, which holds
integers up to 16 and even integers up to 32. A product modulo p is then three products of words, as Karatsuba multiplies:

    x y = b^2 h h' + b ((h + l)(h' + l') - h h' - l l') + l l'    (mod p).

Every p has a base b of its own, found by search, for which all residues have such words (:data:`BASES`). This allows moduli
above 2^10; digits up to 16 in a fixed base would limit moduli to 17^2. arXiv:2603.10634 states that scheme II needs such an
adaptation on FP8 units (its abstract was read); the moduli and words here are derived in this project.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpgemm._kernels import integer_words as kernel
from mpgemm.recovery.integer_joins import Remainders, products_of
from mpgemm.recovery.integer_words import balanced
from mpgemm.recovery.method import SPLIT_MODULI
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.machine.threads import threads_for

#: Base of each modulus. The moduli are the largest integers below 1300 that have a base, each coprime to the moduli before it.
BASES = dict(
    zip(SPLIT_MODULI, (201, 599, 112, 292, 194, 143, 130, 189, 128, 49, 111, 126, 258, 137, 104, 50), strict=True)
)
#: Integers that e4m3 holds and that words may be.
WORDS = tuple(n for n in range(-32, 33) if abs(n) <= 16 or n % 2 == 0)
#: Weights of the two bytes in which a remainder is stored.
_BYTES = (1 << kernel.HIGH, 1)


@functools.cache
def word_table(p: int) -> np.ndarray:
    """Return (h, l, h + l) of every residue 0 to p - 1, int8, shape (3, p); of several, those with the smallest maximum."""
    if p not in BASES:
        raise ValueError(
            f"modulus is {p}, expected one of {', '.join(map(str, BASES))}, for which e4m3 words are known"
        )
    words = np.array([(h, low, h + low) for h in WORDS for low in WORDS if h + low in set(WORDS)])
    words = words[np.argsort(np.abs(words).max(axis=1), kind="stable")[::-1]]
    table = np.zeros((3, p), np.int8)
    table[:, (words[:, 0] * BASES[p] + words[:, 1]) % p] = (
        words.T
    )  # the last of several, which has the smallest words, is kept
    return table


def factors_of(p: int, scale: int = 1) -> tuple[int, int, int]:
    """Return balanced factors of h h', l l' and (h + l)(h' + l') with which they sum to x y times `scale` modulo p."""
    b = BASES[p]
    high, low, both = b * b - b, 1 - b, b
    return balanced(scale * high, p), balanced(scale * low, p), balanced(scale * both, p)


@dataclass(frozen=True, eq=False)
class SplitRemainders(Remainders):
    """`SplitRemainders` holds the constants of the theorem for moduli above 256; a remainder takes two bytes with two
    weights."""

    @functools.cached_property
    def inverses(self) -> np.ndarray:
        return np.array([part / p for p in self.moduli for part in _BYTES])

    def _cofactors(self) -> list[int]:
        return [self.product // p * part for p in self.moduli for part in _BYTES]

    def store(self, index: int, sums: Sequence[np.ndarray], planes: np.ndarray) -> None:
        """Store the remainder modulo the modulus `index` in two of `planes`, from the sums of h h', l l' and (h + l)(h'
        + l')."""
        p = self.moduli[index]
        arrays, types = products_of(sums)
        kernel.reduce_sums(
            arrays,
            types,
            np.array(factors_of(p, self.factors[index]), np.float64),
            p,
            planes[2 * index : 2 * index + 2].reshape(2, -1),
            isa_level(),
            threads_for(len(sums) * sums[0].size),
        )

    def joined(self, planes: np.ndarray, rows: np.ndarray, columns: np.ndarray, dtype) -> np.ndarray:
        return self._joined(planes.reshape(2 * len(self.moduli), -1), rows, columns, dtype)


@functools.lru_cache(maxsize=64)
def split_remainders(moduli: tuple[int, ...]) -> SplitRemainders:
    """Return the constants for moduli of :data:`BASES`; they are cached."""
    if 2 * len(moduli) > kernel.MOST_MODULI:
        raise ValueError(f"got {len(moduli)} moduli, expected at most {kernel.MOST_MODULI // 2}")
    return SplitRemainders(tuple(moduli))
