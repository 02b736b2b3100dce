"""This module adds a unit's accumulators at the end of a GEMM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..formats import Format
from ..formats.sums import add_rounded

#: Names of the edge rules of a rollup.
RULES = ("flush_adds",)


@dataclass(frozen=True)
class Rollup:
    """`Rollup` says how accumulators take turns over k and are added at the end (Gaudi and Gaudi 2: mme_reference).

    Product k goes to accumulator k mod `accumulators`. Accumulator 0 starts from c, the other accumulators start from +0.
    After K products the accumulators i, i + 1, ... with i = K mod `accumulators` are added in pairs, ((i, i + 1),
    (i + 2, i + 3)), and +0 is added to the sum, so that -0 becomes +0. These additions are in the result format, rounded to
    nearest even.
    """

    accumulators: int = 1  #: Number of accumulators, a power of two; else ValueError.
    flush_adds: bool = False  #: Edge rule: subnormal results of the additions become zeros of their sign.

    def __post_init__(self):
        if self.accumulators < 1 or self.accumulators & (self.accumulators - 1):
            raise ValueError(f"accumulators is {self.accumulators}, expected a power of two")
        if not isinstance(self.flush_adds, bool):
            raise TypeError(f"flush_adds is {self.flush_adds!r}, expected True or False")

    def run(
        self,
        chain: Callable[[np.ndarray, list[range]], np.ndarray],
        c: np.ndarray,
        pieces: Sequence[range],
        fmt: Format,
    ) -> np.ndarray:
        """Return the sum over `pieces` of k; ``chain(c, pieces)`` returns the encodings of one accumulator's chain."""
        if self.accumulators == 1:
            return self._finished(chain(c, list(pieces)), fmt)
        ks = [k for piece in pieces for k in piece]
        zero = np.zeros(c.shape, c.dtype)
        taken = [ks[i :: self.accumulators] for i in range(self.accumulators)]
        sums = [
            chain(zero if i else c, _ranges(mine)) if mine else np.zeros(c.shape, fmt.container)
            for i, mine in enumerate(taken)
        ]
        first = len(ks) % self.accumulators
        sums = sums[first:] + sums[:first]
        while len(sums) > 1:
            sums = [self._added(sums[i], sums[i + 1], fmt) for i in range(0, len(sums), 2)]
        return self._finished(sums[0], fmt)

    def _added(self, x: np.ndarray, y: np.ndarray, fmt: Format) -> np.ndarray:
        """Return x + y; NaN has all bits set except the sign."""
        return self._cleared(add_rounded(x, y, fmt), fmt)

    def _finished(self, x: np.ndarray, fmt: Format) -> np.ndarray:
        """Return x + 0, which changes only -0; NaN has all bits set except the sign."""
        negative_zeros = x == fmt.container.type(fmt.sign_bit)
        return self._cleared(np.where(negative_zeros, 0, x) if negative_zeros.any() else x, fmt)

    def _cleared(self, total: np.ndarray, fmt: Format) -> np.ndarray:
        """Return a sum with NaN as all ones without sign, and with subnormal numbers flushed if the edge rule says so."""
        sign, mask = fmt.container.type(fmt.sign_bit), fmt.container.type(fmt.magnitude_mask)
        nan = (total & mask) > fmt.container.type(fmt.exponent_mask)
        if nan.any():
            total = np.where(nan, mask, total)
        if not self.flush_adds:
            return total
        return np.where(total & fmt.container.type(fmt.exponent_mask), total, total & sign)


def _ranges(ks: list[int]) -> list[range]:
    """Return evenly spaced values of k as one range, other values as one range each."""
    steps = {y - x for x, y in zip(ks, ks[1:], strict=False)}
    if len(steps) <= 1:
        return [range(ks[0], ks[-1] + 1, steps.pop() if steps else 1)]
    return [range(k, k + 1) for k in ks]
