"""Estimates the largest of many errors from a smaller sample, by extreme values of a tail.

A product of m n elements passes if all elements pass. By the union bound it fails with probability at most m n P(one fails).
For a product that passes with probability q, one element may thus fail with probability (1 - q) / (m n), which is too rare to
be seen in a sample. Excesses over a threshold that one element in a hundred exceeds are therefore taken to follow a
generalised Pareto distribution, which is the limit for every usual distribution (Pickands 1975). Its shape is never taken
below 0, because an exponential tail bounds every lighter tail, such as that of a normal or a bounded error; this raises the
limit by a tenth to a fifth there. Its two parameters are fitted to the mean and variance of the excesses (Hosking and Wallis
1987). The confidence is that of a bootstrap over whole draws, because the elements of a draw share rows and columns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: The tail holds one value in `ONE_IN`, and at least `FEWEST` values.
ONE_IN, FEWEST = 100, 50
#: Number of bootstrap samples for the confidence.
RESAMPLED = 200


@dataclass(frozen=True)
class Tail:
    """`Tail` is the distribution of non-negative values above a threshold."""

    values: np.ndarray  #: Observed values above the threshold, ascending.
    count: int  #: Number of all observed values, above and below the threshold.
    threshold: float
    #: scale, shape: parameters of the generalised Pareto distribution of the excesses; shape 0 is exponential.
    scale: float
    shape: float

    @property
    def share(self) -> float:
        """Return the share of the values that are above the threshold."""
        return self.values.size / self.count if self.count else 0.0

    def limit(self, probability: float) -> float:
        """Return the limit that a value exceeds with the given probability."""
        if probability >= self.share or not self.values.size or not math.isfinite(self.threshold):
            return self.threshold
        if not math.isfinite(float(self.values[-1])):
            return math.inf
        times = math.log(self.share / probability)
        beyond = times if self.shape == 0 else math.expm1(self.shape * times) / self.shape
        return max(self.threshold + self.scale * beyond, 0.0)


def exceedance(values: np.ndarray, value: float) -> float:
    """Return the probability of exceeding `value`.

    This is the observed frequency, or, in the upper half of the tail, that of the fitted tail, limited to the observed
    frequency plus half an observation.
    """
    above = int(np.count_nonzero(values > value))
    if not values.size or 2 * above >= tail_size(values.size):
        return above / max(1, values.size)
    tail = fit_tail(values)
    if tail.scale == 0 or value <= tail.threshold:
        return above / values.size
    excess = (value - tail.threshold) / tail.scale
    beyond = math.exp(-excess) if tail.shape == 0 else (1 + tail.shape * excess) ** (-1 / tail.shape)
    return min(max(tail.share * beyond, above / values.size), (above + 0.5) / values.size)


def tail_size(count: int) -> int:
    """Return the number of values in the tail of `count` values."""
    return max(1, min(max(count // ONE_IN, FEWEST), count // 4))


def fit_tail(values: np.ndarray, count: int | None = None, size: int | None = None) -> Tail:
    """Return the tail fitted to the `size` largest of `count` non-negative values, of which `values` holds at least these.

    Values may be infinite.
    """
    count = values.size if count is None else count
    if not values.size:
        return Tail(values, count, 0.0, 0.0, 0.0)
    size = min(tail_size(count) if size is None else size, values.size)
    top = np.sort(values.ravel())[-size - 1 :]
    threshold = float(top[0])
    top = top[top > threshold]
    if not top.size or not math.isfinite(float(top[-1])):
        return Tail(top, count, threshold, 0.0, 0.0)
    excess = top - threshold
    mean, variance = float(excess.mean()), float(excess.var())
    ratio = mean * mean / variance if variance > 0 else math.inf
    if ratio >= 1:  # lighter than exponential
        return Tail(top, count, threshold, mean, 0.0)
    return Tail(top, count, threshold, mean * (1 + ratio) / 2, (1 - ratio) / 2)


def upper_limit(draws: Sequence[np.ndarray], probability: float, confidence: float) -> float:
    """Return an upper confidence limit of the bound that a value of independent draws exceeds with a given probability.

    The limit is at least the largest observed value.
    """
    draws = [x.ravel() for x in draws]
    whole = np.concatenate(draws)
    if not whole.size:
        return 0.0
    largest = float(whole.max())
    if not math.isfinite(largest):
        return math.inf
    rng = np.random.default_rng(0)  # for the bootstrap
    sizes = np.array([x.size for x in draws])
    kept = np.partition(whole, -min(whole.size, 4 * tail_size(whole.size)))[-min(whole.size, 4 * tail_size(whole.size))]
    tops = [x[x >= kept] for x in draws]
    found = []
    for _ in range(RESAMPLED):
        chosen = rng.integers(len(draws), size=len(draws))
        again = np.concatenate([tops[i] for i in chosen])
        count = int(sizes[chosen].sum())
        found.append(fit_tail(again, count, tail_size(count)).limit(probability) if again.size else 0.0)
    return max(largest, float(np.quantile(found, confidence)), fit_tail(whole).limit(probability))
