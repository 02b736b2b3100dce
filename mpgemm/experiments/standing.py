"""How a method stands beside another on the same inputs: as accurate, borderline, undecided or less accurate.

Errors are compared in bits. Up to :data:`NOISE_BITS` behind, a method is as accurate: two FP32 products of one input differ by
as much (:mod:`mpgemm.experiments.judging` says where the numbers are from). What is not settled has one of two names:

- *borderline*: the difference is known and lies at the threshold;
- *undecided*: the difference itself is not known, because results or seeds are too few. The ratio of two mean squares over N
  results is Fisher's F: 95 % of its root lies within :func:`sampling_bits` of N. One result decides for no method.

With several seeds the interval of the paired differences decides (:mod:`mpgemm.experiments.spread`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from ascend.numeric.baseline import MARGIN
from mpgemm.experiments.evaluate import Record
from mpgemm.experiments.spread import MeanInterval, SeedSpread, interval_of

#: Unit roundoff of FP32, the floor of both metrics.
FP32_ROUNDOFF = 2.0**-24
#: Metrics that are compared, as fields of an error report.
METRICS = ("relative_frobenius", "componentwise")
#: Bits of each metric by which two FP32 products of one input may differ.
NOISE_BITS: Mapping[str, float] = {"relative_frobenius": MARGIN, "componentwise": 1.5}
#: Bits around that threshold within which one seed decides nothing: half of what random orders of k change.
BORDERLINE_BITS: Mapping[str, float] = {"relative_frobenius": 0.25, "componentwise": 0.5}
#: Error over |A||B| from which a result is lost.
LOST = 2.0**-10
#: From good to bad.
STATUSES = ("as accurate", "borderline", "undecided", "less accurate", "lost")
#: Bits of the quotient of two equal deviations that 95 % of samples stay within are this over sqrt(N - 1).
_SPREAD = 1.96 / math.log(2)
#: Results from which on equal methods are told from those beyond the threshold of the norm.
FEWEST_RESULTS = 1 + math.ceil((_SPREAD / NOISE_BITS["relative_frobenius"]) ** 2)


def sampling_bits(results: int) -> float:
    """Return bits by which the measured difference of two methods may be chance, of that many results.

    >>> [round(sampling_bits(n), 2) for n in (1, 16, 65536)]
    [4.67, 0.73, 0.01]
    """
    # N = 1: the ratio of two |normal| numbers lies below tan(0.975 pi / 2) = 25.45 with 97.5 %, 4.67 bits
    return _SPREAD / math.sqrt(results - 1) if results > 1 else math.log2(25.45)


def results_that_decide(difference: float, metric: str = "relative_frobenius") -> int | None:
    """Return how many results would tell this difference from the threshold, if it stays; None beyond a million."""
    distance = abs(difference + NOISE_BITS[metric])
    if distance < _SPREAD / 1000:
        return None
    return max(FEWEST_RESULTS, 1 + math.ceil((_SPREAD / distance) ** 2))


def results_for_all(differences: Mapping[str, float]) -> int | None:
    """Return how many results would decide by all metrics, if the differences stay: one beyond its threshold decides alone,
    within all of them each must be told; None beyond a million.

    >>> results_for_all({"relative_frobenius": -1.3, "componentwise": -1.52})
    28
    """
    needed = {metric: results_that_decide(difference, metric) for metric, difference in differences.items()}
    beyond = [needed[m] for m, difference in differences.items() if difference < -NOISE_BITS[m]]
    if beyond:
        return min((n for n in beyond if n is not None), default=None)
    within = list(needed.values())
    return None if None in within else max(n for n in within if n is not None)


def standing(
    difference: float, interval: MeanInterval | None, metric: str, results: int, *, exact: bool = False
) -> str:
    """Return one of :data:`STATUSES` but the last.

    difference, interval: Bits more than the other method (less where negative), and their interval where there are seeds
        enough.
    metric: One of :data:`METRICS`.
    results: Elements that were measured, of all seeds.
    exact: Whether every one of them is exact: then more than one decide.
    """
    noise, margin = NOISE_BITS[metric], BORDERLINE_BITS[metric]
    if interval is not None:
        side = interval.beside(-noise)
        open_as = "borderline" if interval.high - interval.low <= 4 * margin else "undecided"
    else:
        chance = sampling_bits(results)
        side = 0 if abs(difference + noise) < max(margin, chance) else 1 if difference > -noise else -1
        open_as = "borderline" if chance <= margin else "undecided"
        if exact and results > 1:
            side = 1
        elif results == 1 and side > 0:
            side = 0
    return {1: "as accurate", 0: open_as, -1: "less accurate"}[side]


def worst_status(found: Iterable[str]) -> str:
    """Return the worst of several."""
    return max(found, key=STATUSES.index)


def bits_between(error: float, other: float, floor: float = FP32_ROUNDOFF) -> float:
    """Return how many bits smaller `error` is than `other`, both at least `floor`; 0 where both are infinite."""
    error, other = max(error, floor), max(other, floor)
    if math.isinf(error) or math.isinf(other):
        return 0.0 if error == other else math.copysign(math.inf, -1 if math.isinf(error) else 1)
    return math.log2(other / error)


def differences_of(
    records: Sequence[Record], others: Sequence[Record], metric: str, floor: float = FP32_ROUNDOFF
) -> list[float]:
    """Return bits by which one method's error is smaller than another's, seed by seed: on each case that both have, once."""
    mine, theirs = ({record.case: getattr(record.errors, metric) for record in of} for of in (records, others))
    return [bits_between(error, theirs[case], floor) for case, error in mine.items() if case in theirs]


def middle_of(differences: Sequence[float]) -> tuple[float, MeanInterval | None]:
    """Return (the mean with its interval), or the median without one where there are too few."""
    interval = interval_of(differences)
    return (SeedSpread.of(differences).median, None) if interval is None else (interval.mean, interval)
