"""Advice on promotion from several seeds of one distribution: one recommendation, decided by intervals over the seeds."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mpgemm.experiments.promotion import MATTERS, WANTED, Interval, PromotionAdvice, spelled
from mpgemm.experiments.spread import METHOD, SeedSpread, interval_of
from tensorcore_models.results import Result


@dataclass(frozen=True)
class SeededInterval:
    """One interval over the seeds."""

    every: int | None  #: Products between two additions outside; None: never.
    additions: float  #: Extra FP32 additions for each product.
    error: SeedSpread  #: Relative Frobenius error of the sums.
    whole: SeedSpread  #: The same with the operands' rounding.
    bound: float  #: The largest certified bound of a seed.
    side: int  #: 1 where the error is within what is wanted, -1 where it is not, 0 where that is not decided.
    seeds_to_decide: int | None  #: How many seeds would decide; None where there are too few to say, or none would do.


@dataclass(frozen=True, repr=False)
class PromotionOverSeeds(Result):
    """Which interval suffices on a distribution.

    Attributes
    ----------
    by_seed : tuple of PromotionAdvice
        One for each seed.
    intervals : tuple of SeededInterval
        From the shortest to never.
    matters : int
        1 where promotion lowers the whole error by more than a tenth, -1 where it does not, 0 where that is not decided.
    """

    by_seed: tuple[PromotionAdvice, ...]
    intervals: tuple[SeededInterval, ...]
    matters: int

    @classmethod
    def of(cls, by_seed: Sequence[PromotionAdvice]) -> "PromotionOverSeeds":
        """From the advice on each seed, on the same engine and with the same intervals."""
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
        """Error that is wanted; of each seed another one where it comes from what the seed reaches."""
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
        """Return the recommendation, what is borderline, and what decided."""
        return [self.verdict, *self._undecided(), self._decided_by()]

    @property
    def verdict(self) -> str:
        """The recommendation in a sentence."""
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
        return lines + (["Whether promotion matters at all is not decided."] if self.matters == 0 else [])

    def _decided_by(self) -> str:
        seeds = len(self.by_seed)
        if interval_of([0.0] * seeds) is None:
            return f"{seeds} seeds give no interval: every seed must agree."
        return f"Decided by the {METHOD} ({seeds}), of log errors over what is wanted; brackets: smallest to largest."


def _side(values: Sequence[float]) -> int:
    """1 where the mean is above 0, -1 where it is below, 0 where that is not decided; of too few values all must agree."""
    interval = interval_of(values)
    if interval is not None:
        return interval.beside(0.0)
    return 1 if min(values) > 0 else -1 if max(values) <= 0 else 0


def _log_ratio(error: float, target: float) -> float:
    if math.isinf(error):
        return math.inf
    return math.log2(error / target) if error else -math.inf
