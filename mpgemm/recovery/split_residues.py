"""Residues as pairs of small words: Ozaki scheme II where the unit has no integers but FP8 numbers.

A number modulo p is h b + l modulo p with words h and l so small that they, and their sum, are exact in e4m3: integers up to
16, and even ones up to 32. A product modulo p is then, as Karatsuba multiplies, three products of words:

    x y = b^2 h h' + b ((h + l)(h' + l') - h h' - l l') + l l'    (mod p).

Every p has a base b of its own, found by search, for which all its residues have such words (:data:`BASES`); that is what makes
moduli above 2^10 possible, where words of one base up to 16 would stop at 17^2. That scheme II needs such an adaptation on FP8
units is the point of arXiv:2603.10634 (read in its abstract); the moduli and words here are our own derivation.
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

#: Modulus: its base. The moduli are the largest below 1300, each coprime to the ones before, that have a base.
BASES = dict(
    zip(SPLIT_MODULI, (201, 599, 112, 292, 194, 143, 130, 189, 128, 49, 111, 126, 258, 137, 104, 50), strict=True)
)
#: Integers that e4m3 holds and that words are made of.
WORDS = tuple(n for n in range(-32, 33) if abs(n) <= 16 or n % 2 == 0)
#: A remainder is kept as two bytes, which count so much.
_BYTES = (1 << kernel.HIGH, 1)


@functools.cache
def word_table(p: int) -> np.ndarray:
    """Return (h, l, h + l) of every residue 0 to p - 1 with the smallest largest magnitude of the three; int8, shape (3, p)."""
    if p not in BASES:
        raise ValueError(f"modulus {p} has no words in e4m3; moduli that have them: {', '.join(map(str, BASES))}")
    words = np.array([(h, low, h + low) for h in WORDS for low in WORDS if h + low in set(WORDS)])
    words = words[np.argsort(np.abs(words).max(axis=1), kind="stable")[::-1]]
    table = np.zeros((3, p), np.int8)
    table[:, (words[:, 0] * BASES[p] + words[:, 1]) % p] = words.T  # of several the last is kept, the smallest
    return table


def factors_of(p: int, scale: int = 1) -> tuple[int, int, int]:
    """Return factors of h h', l l' and (h + l)(h' + l') whose sum is x y times `scale` modulo p, balanced."""
    b = BASES[p]
    high, low, both = b * b - b, 1 - b, b
    return balanced(scale * high, p), balanced(scale * low, p), balanced(scale * both, p)


@dataclass(frozen=True, eq=False)
class SplitRemainders(Remainders):
    """The Chinese remainder theorem for moduli above 256: a remainder takes two bytes, each with a weight of its own."""

    @functools.cached_property
    def inverses(self) -> np.ndarray:
        return np.array([part / p for p in self.moduli for part in _BYTES])

    def _cofactors(self) -> list[int]:
        return [self.product // p * part for p in self.moduli for part in _BYTES]

    def store(self, index: int, sums: Sequence[np.ndarray], planes: np.ndarray) -> None:
        """Keep in two of `planes` what the sums of h h', l l' and (h + l)(h' + l') say modulo the modulus `index`."""
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
    """Return the theorem for moduli of :data:`BASES`; kept from call to call."""
    if 2 * len(moduli) > kernel.MOST_MODULI:
        raise ValueError(f"{len(moduli)} moduli: expected at most {kernel.MOST_MODULI // 2}")
    return SplitRemainders(tuple(moduli))
