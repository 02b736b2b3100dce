"""Computes medians and spreads over several seeds, and confidence intervals of mean differences.

Two methods are measured on the same matrices, so their errors are compared seed by seed: each seed gives one difference in
bits. The interval of the mean difference is Student's, mean +- t s / sqrt(seeds). It assumes that the differences are about
normal, which is true of log errors of whole products. ``tests/mpgemm/test_spread.py`` checks how often the interval contains
the true value on products whose errors are known.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

#: Probability with which an interval contains the true mean.
CONFIDENCE = 0.95
#: Smallest number of seeds for which an interval is computed.
FEWEST = 3
#: Largest number of seeds that is reported as enough to decide.
MOST = 10_000
#: Name of the intervals in printed sentences.
METHOD = f"{CONFIDENCE:.0%} interval, Student's t over seeds"


@dataclass(frozen=True)
class SeedSpread:
    """`SeedSpread` holds the median, the smallest and the largest value over several seeds."""

    median: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "SeedSpread":
        """Return the spread of one or more numbers."""
        ordered = sorted(values)
        middle, odd = divmod(len(ordered), 2)
        below, above = ordered[middle - 1 + odd], ordered[middle]
        median = below if below == above else (below + above) / 2  # right for two equal infinities, too
        return cls(float(median), float(ordered[0]), float(ordered[-1]), len(ordered))

    @classmethod
    def of_bits(cls, values: Sequence[float]) -> "SeedSpread":
        """Return the spread of bits; the median of an even number is the smaller middle value if the other is infinite."""
        found, ordered = cls.of(values), sorted(values)
        return replace(found, median=float(ordered[(len(ordered) - 1) // 2])) if found.median == math.inf else found

    def text(self, form: str = ".2f") -> str:
        """Return the text "median (low to high)", or the median alone for one seed."""
        spread = f" ({self.low:{form}} to {self.high:{form}})" if self.seeds > 1 else ""
        return f"{self.median:{form}}{spread}"


@dataclass(frozen=True)
class MeanInterval:
    """`MeanInterval` is a confidence interval of the mean of a quantity over seeds."""

    mean: float
    low: float
    high: float
    deviation: float  #: Standard deviation of one seed; NaN if a value is infinite.
    seeds: int

    def beside(self, threshold: float) -> int:
        """Return 1 if the interval is above the threshold, -1 if it is below, 0 if it contains the threshold."""
        return (self.low > threshold) - (self.high < threshold)

    def seeds_to_decide(self, threshold: float) -> int | None:
        """Return the number of seeds, with these, whose interval would exclude the threshold; None above :data:`MOST`.

        The mean and the deviation are taken to stay the same.
        """
        if self.beside(threshold):
            return self.seeds
        distance = abs(self.mean - threshold)

        def decided(seeds: int) -> bool:
            return student_quantile(seeds - 1) * self.deviation < distance * math.sqrt(seeds)

        if not decided(MOST):
            return None
        below, enough = self.seeds, MOST
        while enough - below > 1:
            middle = (below + enough) // 2
            below, enough = (below, middle) if decided(middle) else (middle, enough)
        return enough

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"


def interval_of(values: Sequence[float]) -> MeanInterval | None:
    """Return the interval of the mean, None for fewer than :data:`FEWEST` values; with an infinite value, the range.

    >>> interval_of([1.0, 2.0]) is None
    True
    >>> str(interval_of([1.0, 2.0, 3.0]))
    '-0.48 to 4.48'
    """
    x = np.asarray(values, np.float64)
    if x.size < FEWEST:
        return None
    if not np.isfinite(x).all():
        median = SeedSpread.of(values).median
        return MeanInterval(median, float(x.min()), float(x.max()), math.nan, x.size)
    mean, deviation = float(x.mean()), float(x.std(ddof=1))
    half = student_quantile(x.size - 1) * deviation / math.sqrt(x.size)
    return MeanInterval(mean, mean - half, mean + half, deviation, x.size)


@functools.cache
def student_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the limit that Student's \\|t\\| with `freedom` degrees of freedom stays below with this probability.

    >>> [round(student_quantile(n), 3) for n in (1, 2, 7, 30)]
    [12.706, 4.303, 2.365, 2.042]
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):  # bisection to the last bit
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(high)


def _within(angle: float, freedom: int) -> float:
    """Return P(\\|t\\| < sqrt(freedom) tan(angle)) (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for j in range(1 + odd, freedom, 2):  # powers of the cosine: 1, 3, ... or 0, 2, ..., up to freedom - 2
        total += term
        term *= cosine * cosine * j / (j + 1)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
