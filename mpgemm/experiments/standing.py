"""Compares a method with another on the same inputs: it is as accurate, borderline, undecided or less accurate.

Errors are compared in bits. A method is as accurate if it is at most :data:`NOISE_BITS` behind, because two FP32 products of
one input differ by as much (:mod:`mpgemm.experiments.judging` has the source of the numbers). An open status has one of two
names:

- *borderline*: the difference is known and lies at the threshold;
- *undecided*: the difference is not known, because there are too few results or seeds. The ratio of two mean squares over
  N results has Fisher's F distribution, so 95 % of its square roots are within :func:`sampling_bits` of N. With one result no
  method is as accurate.

With several seeds, the confidence interval of the mean difference decides (:mod:`mpgemm.experiments.spread`).
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
#: Bits around that threshold within which one seed does not decide: half of the change by random orders of k.
BORDERLINE_BITS: Mapping[str, float] = {"relative_frobenius": 0.25, "componentwise": 0.5}
#: Error over |A||B| above which a result is lost.
LOST = 2.0**-10
#: All statuses, best first.
STATUSES = ("as accurate", "borderline", "undecided", "less accurate", "lost")
#: 95 % of samples of N results give a quotient of two equal deviations within this number over sqrt(N - 1), in bits.
_SPREAD = 1.96 / math.log(2)
#: Smallest number of results that distinguishes equal methods from methods at the threshold of the norm.
FEWEST_RESULTS = 1 + math.ceil((_SPREAD / NOISE_BITS["relative_frobenius"]) ** 2)


def sampling_bits(results: int) -> float:
    """Return the bits by which the measured difference of two methods may be chance, for this number of results.

    >>> [round(sampling_bits(n), 2) for n in (1, 16, 65536)]
    [4.67, 0.73, 0.01]
    """
    # For N = 1 the ratio of two |normal| numbers is below tan(0.975 pi / 2) = 25.45, or 4.67 bits, with probability 97.5 %.
    return _SPREAD / math.sqrt(results - 1) if results > 1 else math.log2(25.45)


def results_that_decide(difference: float, metric: str = "relative_frobenius") -> int | None:
    """Return the number of results that would distinguish this difference from the threshold; None above a million."""
    distance = abs(difference + NOISE_BITS[metric])
    if distance < _SPREAD / 1000:
        return None
    return max(FEWEST_RESULTS, 1 + math.ceil((_SPREAD / distance) ** 2))


def results_for_all(differences: Mapping[str, float]) -> int | None:
    """Return the number of results that would decide by all metrics if the differences stay the same; None above a million.

    One difference beyond its threshold decides alone; if all are within their thresholds, every metric must be decided.

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
    """Return the status of a method by one metric, one of :data:`STATUSES` but the last.

    difference, interval: bits more than the other method (negative for fewer), and their interval if there are enough seeds.
    metric: one of :data:`METRICS`.
    results: number of elements that were measured, over all seeds.
    exact: whether every element is exact; two or more exact elements decide.
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
    """Return the worst of several statuses."""
    return max(found, key=STATUSES.index)


def bits_between(error: float, other: float, floor: float = FP32_ROUNDOFF) -> float:
    """Return by how many bits `error` is smaller than `other`, both raised to at least `floor`; 0 if both are infinite."""
    error, other = max(error, floor), max(other, floor)
    if math.isinf(error) or math.isinf(other):
        return 0.0 if error == other else math.copysign(math.inf, -1 if math.isinf(error) else 1)
    return math.log2(other / error)


def differences_of(
    records: Sequence[Record], others: Sequence[Record], metric: str, floor: float = FP32_ROUNDOFF
) -> list[float]:
    """Return the bits by which one method's error is smaller than another's, once for each case that both have."""
    mine, theirs = ({record.case: getattr(record.errors, metric) for record in of} for of in (records, others))
    return [bits_between(error, theirs[case], floor) for case, error in mine.items() if case in theirs]


def middle_of(differences: Sequence[float]) -> tuple[float, MeanInterval | None]:
    """Return (mean, interval), or (median, None) if there are too few differences for an interval."""
    interval = interval_of(differences)
    return (SeedSpread.of(differences).median, None) if interval is None else (interval.mean, interval)
