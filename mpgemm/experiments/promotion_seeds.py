"""Advises on promotion from several seeds of one distribution, by confidence intervals over the seeds."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mpgemm.experiments.promotion import MATTERS, WANTED, Interval, PromotionAdvice, spelled
from mpgemm.experiments.spread import METHOD, SeedSpread, interval_of
from tensorcore_models.results import Result


@dataclass(frozen=True)
class SeededInterval:
    """`SeededInterval` holds the error, bound and cost of one interval of promotion over the seeds."""

    every: int | None  #: Number of products between two additions outside; None for no additions outside.
    additions: float  #: Extra FP32 additions for each product.
    error: SeedSpread  #: Relative Frobenius error of the sums.
    whole: SeedSpread  #: Relative Frobenius error of the sums and of the operands' rounding.
    bound: float  #: Largest certified bound of a seed.
    side: int  #: 1 if the error is within the accepted error, -1 if it is not, 0 if that is undecided.
    seeds_to_decide: int | None  #: Number of seeds that would decide; None if it is unknown or too large.


@dataclass(frozen=True, repr=False)
class PromotionOverSeeds(Result):
    """`PromotionOverSeeds` says which interval of promotion suffices on a distribution.

    Attributes
    ----------
    by_seed : tuple of PromotionAdvice
        The advice on each seed.
    intervals : tuple of SeededInterval
        Intervals from the shortest to no additions outside.
    matters : int
        1 if promotion lowers the whole error by more than a tenth, -1 if it does not, 0 if that is undecided.
    """

    by_seed: tuple[PromotionAdvice, ...]
    intervals: tuple[SeededInterval, ...]
    matters: int

    @classmethod
    def of(cls, by_seed: Sequence[PromotionAdvice]) -> "PromotionOverSeeds":
        """Return the advice from that on each seed, on the same engine and with the same intervals."""
        rows = list(zip(*(advice.intervals for advice in by_seed), strict=True))
        wanted = [advice.wanted for advice in by_seed]
        found = []
        for members in rows:
            errors = [interval.error for interval in members]
            over = [_log_ratio(error, target) for error, target in zip(errors, wanted, strict=True)]
            within = interval_of(over)
            side = -_side(over)
            seeds = None if within is None else within.seeds_to_decide(0.0)
            whole = SeedSpread.of([interval.whole for interval in members])
            bound = max(interval.bound for interval in members)
            first: Interval = members[0]
            found.append(
                SeededInterval(
                    first.every, first.additions, SeedSpread.of(errors), whole, bound, side, None if side else seeds
                )
            )
        gains = [_log_ratio(a.intervals[-1].whole, min(i.whole for i in a.intervals) * MATTERS) for a in by_seed]
        asked = by_seed[0].wanted_by == WANTED
        return cls(tuple(by_seed), tuple(found), 1 if asked else _side(gains))

    @property
    def wanted(self) -> SeedSpread:
        """Return the accepted error over the seeds; it differs between seeds if it follows from the errors of each seed."""
        return SeedSpread.of([advice.wanted for advice in self.by_seed])

    def to_rows(self) -> list[dict]:
        """Return one row for each interval."""
        return [asdict(interval) for interval in self.intervals]

    def to_dict(self) -> dict:
        """Return JSON-compatible values: the intervals over the seeds, and each seed's advice."""
        return {
            "engine": self.by_seed[0].engine,
            "shape": self.by_seed[0].shape,
            "intervals": self.to_rows(),
            "wanted": asdict(self.wanted),
            "wanted_by": self.by_seed[0].wanted_by,
            "matters": self.matters,
            "seeds": [advice.to_dict() for advice in self.by_seed],
        }

    def sentences(self) -> list[str]:
        """Return sentences on the recommendation, on borderline intervals, and on the way of deciding."""
        return [self.verdict, *self._undecided(), self._decided_by()]

    @property
    def verdict(self) -> str:
        """Return the recommendation in a sentence."""
        if self.matters < 0:
            least = min(interval.whole.median for interval in self.intervals)
            return (
                "Promotion does not matter here: the whole error, rounding the operands to the engine's format included, is "
                f"{self.intervals[-1].whole.text('.3g')} without additions outside, and at best {least:.3g} with them."
            )
        enough = [interval for interval in self.intervals if interval.side > 0]
        wanted = f"{self.wanted.median:.3g} ({self.by_seed[0].wanted_by})"
        if not enough:
            best = min(self.intervals, key=lambda interval: interval.error.median)
            smallest = f"{best.error.text('.3g')}, {spelled(best.every)}"
            return f"No interval surely reaches {wanted}: the smallest error is {smallest}."
        chosen = enough[-1]
        certain = [interval for interval in self.intervals if interval.bound <= self.wanted.low]
        proof = (
            f"Certified to reach it: {spelled(certain[-1].every)}."
            if certain
            else "No interval is certified to reach it."
        )
        if chosen.every is None:
            return f"Nothing needs to be added up outside: the error {chosen.error.text('.3g')} is within {wanted}. {proof}"
        return (
            f"Add up outside {spelled(chosen.every)}: {chosen.error.text('.3g')}, within {wanted}, for {chosen.additions:.2%} "
            f"extra additions. {proof}"
        )

    def _undecided(self) -> list[str]:
        open_ones = [interval for interval in self.intervals if interval.side == 0] if self.matters >= 0 else []
        lines = [
            f"Borderline: {spelled(interval.every)}, {interval.error.text('.3g')}"
            + (f"; about {interval.seeds_to_decide} seeds would decide." if interval.seeds_to_decide else ".")
            for interval in open_ones
        ]
        return lines + (["It is not decided whether promotion matters at all."] if self.matters == 0 else [])

    def _decided_by(self) -> str:
        seeds = len(self.by_seed)
        if interval_of([0.0] * seeds) is None:
            return f"{seeds} seeds are too few for an interval, so every seed must agree."
        return f"Decided by the {METHOD} ({seeds}), of log(error / accepted error); brackets: smallest to largest."


def _side(values: Sequence[float]) -> int:
    """Return 1 if the mean is above 0, -1 if it is below, 0 if that is undecided; without an interval all must agree."""
    interval = interval_of(values)
    if interval is not None:
        return interval.beside(0.0)
    return 1 if min(values) > 0 else -1 if max(values) <= 0 else 0


def _log_ratio(error: float, target: float) -> float:
    if math.isinf(error):
        return math.inf
    return math.log2(error / target) if error else -math.inf
