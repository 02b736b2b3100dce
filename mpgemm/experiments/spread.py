"""Several seeds: medians with their spread, and how certain a mean difference is.

Two methods are measured on the same matrices, so their errors are compared seed by seed: the difference in bits of each seed
is one observation. The interval of the mean difference is Student's: mean +- t s / sqrt(seeds). It rests on the differences
being about normal, which log-errors of whole products are; ``tests/mpgemm/test_spread.py`` checks how often it holds the true
value on products whose errors are known.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

#: With which an interval holds the true mean.
CONFIDENCE = 0.95
#: Seeds from which on an interval is computed.
FEWEST = 3
#: Seeds up to which the number that would decide is looked for.
MOST = 10_000
#: How intervals are called where they are printed.
METHOD = f"{CONFIDENCE:.0%} interval, Student's t over seeds"


@dataclass(frozen=True)
class SeedSpread:
    """The median and spread of several seeds."""

    median: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "SeedSpread":
        """Of one number or more."""
        ordered = sorted(values)
        middle, odd = divmod(len(ordered), 2)
        below, above = ordered[middle - 1 + odd], ordered[middle]
        median = below if below == above else (below + above) / 2  # infinite ones, too
        return cls(float(median), float(ordered[0]), float(ordered[-1]), len(ordered))

    @classmethod
    def of_bits(cls, values: Sequence[float]) -> "SeedSpread":
        """Of bits, infinite where a result is exact: of two middle ones the smaller, if the other is infinite."""
        found, ordered = cls.of(values), sorted(values)
        return replace(found, median=float(ordered[(len(ordered) - 1) // 2])) if found.median == math.inf else found

    def text(self, form: str = ".2f") -> str:
        """ "median (low to high)", the median alone of one seed."""
        spread = f" ({self.low:{form}} to {self.high:{form}})" if self.seeds > 1 else ""
        return f"{self.median:{form}}{spread}"


@dataclass(frozen=True)
class MeanInterval:
    """Where the mean of a quantity lies."""

    mean: float
    low: float
    high: float
    deviation: float  #: Standard deviation of one seed; NaN where a value is infinite.
    seeds: int

    def beside(self, threshold: float) -> int:
        """1 if it lies above the threshold, -1 if it lies below, 0 if it holds it."""
        return (self.low > threshold) - (self.high < threshold)

    def seeds_to_decide(self, threshold: float) -> int | None:
        """Return how many seeds, these included, would leave the threshold out if mean and deviation stay; None beyond
        :data:`MOST`."""
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
    """Return the interval of the mean; None below :data:`FEWEST` values. Where one is infinite it spans the values.

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
    """Return the quantile below which \\|t\\| with so many degrees of freedom stays with this probability.

    >>> [round(student_quantile(n), 3) for n in (1, 2, 7, 30)]
    [12.706, 4.303, 2.365, 2.042]
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):  # halved to the last bit
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(high)


def _within(angle: float, freedom: int) -> float:
    """P(\\|t\\| < sqrt(freedom) tan(angle)): Abramowitz and Stegun 26.7.3 and 26.7.4."""
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for j in range(1 + odd, freedom, 2):  # powers of the cosine: 1, 3, ... or 0, 2, ..., up to freedom - 2
        total += term
        term *= cosine * cosine * j / (j + 1)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
