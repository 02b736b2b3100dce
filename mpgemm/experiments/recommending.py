"""What a comparison recommends on one input, as data and as sentences.

A method is recommended only where there is something to reach and its cost is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpgemm.exact.conditioning import Conditioning
from mpgemm.exact.errors import ErrorReport
from mpgemm.experiments.comparison_record import ComparisonRecord, Runs
from mpgemm.experiments.judging import BORDERLINE_BITS, LOST, bits_between, noise_bits, side_of
from mpgemm.experiments.not_finite import NotFinite
from mpgemm.experiments.spread import METHOD, MOST, MeanInterval, SeedSpread, interval_of
from mpgemm.experiments.verdict import FEWEST_BITS, METRICS, ZERO_PRODUCT, spelled_bits

_INFINITE = float("inf")


@dataclass(frozen=True)
class Margin:
    """How far a method lies from a threshold on which nothing is decided, and how many seeds would decide it."""

    metric: str
    bits: float  #: Beyond the threshold where negative: less accurate than what is wanted.
    threshold: float  #: Bits more than FP32, or wanted bits.
    seeds: int | None  #: None where too few were measured to say, or where :data:`MOST` would not do.


@dataclass(frozen=True)
class Recommendation:
    """The cheapest method that is good enough on one engine and input."""

    #: case, engine: The input, and the engine as it was asked for.
    case: str
    engine: str
    wanted: str  #: What is enough: "FP32", or a number of bits.
    method: str | None  #: None where no method compared reaches it, or where the cost of none that does is known.
    best: str  #: The method with the smallest error there.
    reached: tuple[str, ...] = ()  #: All methods that reach it, the smallest error first.
    without_cost: tuple[str, ...] = ()  #: Those of them whose cost is not known.
    borderline: Mapping[str, Margin] = field(default_factory=dict)  #: Methods of which it is not decided.


@dataclass(frozen=True)
class OneInput:
    """What was measured on one input."""

    case: str
    ranked: Sequence[Runs]  #: The smallest error first.
    fp32: Mapping[str, ErrorReport]  #: The FP32 baseline, by case.
    not_finite: NotFinite | None  #: None where all operands are finite.
    fp32_numpy: Mapping[str, ErrorReport] = field(default_factory=dict)  #: NumPy's on this machine.
    condition: Conditioning | None = None  #: Of the product of the first seed.

    @property
    def zero_product(self) -> bool:
        """Whether the exact product is zero and something has an error, infinite relative to the product alone."""
        reports = [record.errors for runs in self.ranked for record in runs.records] + list(self.fp32.values())
        return any(errors.relative_frobenius == _INFINITE and errors.normwise < _INFINITE for errors in reports)

    @property
    def why_no_fp32(self) -> str:
        """Why FP32's error is nothing to reach, in a sentence; empty where it is."""
        if self.zero_product:
            return ZERO_PRODUCT
        if not self.fp32:
            return "FP32 was not measured."
        normwise, relative = (
            SeedSpread.of([getattr(errors, metric) for errors in self.fp32.values()]).median
            for metric in ("normwise", "relative_frobenius")
        )
        if normwise > LOST:
            return "FP32 itself loses this product, which leaves its range: scale A or B first."
        if relative > 2.0**-FEWEST_BITS:
            return (
                f"The results cancel: FP32's error is {normwise:.1e} of |A||B| and yet {relative:.1e} of the product (norms), "
                "so FP32 is nothing to reach here."
            )
        return ""

    def beside_fp32(self, runs: Runs) -> tuple[int, Margin]:
        """1 if a method is as accurate as FP32, but for what two FP32 products may differ, -1 if not, 0 if that is not
        decided; and the margin of the metric that decides."""
        errors = runs.first.errors
        noise = noise_bits(errors.m * errors.n * len(runs.records))
        found = [self._beside(runs, metric, noise[metric]) for metric in METRICS]
        return min(found, key=lambda pair: (pair[0], pair[1].bits))

    def _beside(self, runs: Runs, metric: str, noise: float) -> tuple[int, Margin]:
        pairs = [(record.errors, self.fp32[record.case]) for record in runs.records]
        differences = [bits_between(getattr(mine, metric), getattr(theirs, metric)) for mine, theirs in pairs]
        interval = interval_of(differences)
        difference = SeedSpread.of(differences).median if interval is None else interval.mean
        seeds = None if interval is None else interval.seeds_to_decide(-noise)
        side = side_of(difference, interval, noise, BORDERLINE_BITS[metric])
        return side, Margin(metric, difference + noise, -noise, seeds)

    def beside_bits(self, runs: Runs, bits: float) -> tuple[int, Margin]:
        """1 if a method has that many bits, -1 if not, 0 if its interval does not decide; and the margin.

        Without an interval the measured bits count.
        """
        interval = interval_of([record.effective_bits for record in runs.records])
        side = (1 if runs.bits.median >= bits else -1) if interval is None else self._side_of_bits(interval, bits)
        seeds = None if interval is None else interval.seeds_to_decide(bits)
        return side, Margin("relative_frobenius", runs.bits.median - bits, bits, seeds)

    @staticmethod
    def _side_of_bits(interval: MeanInterval, bits: float) -> int:
        return 1 if interval.low >= bits else interval.beside(bits)


def recommendations(found: OneInput, bits: float | None) -> list[Recommendation]:
    """For each engine what reaches FP32, where that is a measure, and what reaches `bits`."""
    if found.not_finite is not None:
        return []
    rows = []
    for engine in dict.fromkeys(runs.first.requested for runs in found.ranked):
        here = [runs for runs in found.ranked if runs.first.requested == engine]
        wanted = {}
        if not found.why_no_fp32:
            wanted["FP32"] = [found.beside_fp32(runs) for runs in here]
        if bits is not None:
            wanted[f"{bits:g} bits"] = [found.beside_bits(runs, bits) for runs in here]
        rows += [_cheapest(found.case, engine, what, here, sides) for what, sides in wanted.items()]
    return rows


def _cheapest(
    case: str, engine: str, wanted: str, here: Sequence[Runs], sides: Sequence[tuple[int, Margin]]
) -> Recommendation:
    good = [runs.first for runs, (side, _) in zip(here, sides, strict=True) if side == 1]
    costs = {record.method: record.cost for record in good if record.cost is not None}
    cheapest = min(costs, key=lambda method: costs[method]) if costs else None
    unknown = tuple(record.method for record in good if record.cost is None)
    undecided = {runs.first.method: margin for runs, (side, margin) in zip(here, sides, strict=True) if side == 0}
    reached = tuple(record.method for record in good)
    return Recommendation(case, engine, wanted, cheapest, here[0].first.method, reached, unknown, undecided)


# -- sentences -----------------------------------------------------------------------------------------------------------
def remarks(found: OneInput, bits: float | None) -> list[str]:
    """What the table of an input says, in sentences; engines of which the same is said are named together."""
    if found.not_finite is not None:
        return [f"{found.not_finite} No bits are told and no method is recommended: replace them first."]
    said: dict[str, list[str]] = {}
    rows = recommendations(found, bits)
    for row in rows:
        runs = {runs.first.method: runs for runs in found.ranked if runs.first.requested == row.engine}
        said.setdefault(_sentence(row, runs), []).append(row.engine)
    lines = [f"{', '.join(engines)}: {text}" for text, engines in said.items()]
    if found.why_no_fp32:
        lines.insert(0, found.why_no_fp32)
    seeds = len(found.ranked[0].records) if found.ranked else 0
    if rows and interval_of([0.0] * seeds) is not None:
        lines.append(f"Decided by the {METHOD} ({seeds}), of differences paired by seed.")
    elif rows and seeds > 1:
        lines.append(f"{seeds} seeds give no interval: medians decide.")
    if found.fp32 and not found.zero_product:
        here = f"; NumPy's here {_median_bits(found.fp32_numpy)}" if found.fp32_numpy else ""
        lines.append(f"FP32, chains of 256: {_median_bits(found.fp32)}{here}.")
    if found.condition is not None and not found.zero_product:
        lines.append(found.condition.sentence())
    return lines


def _median_bits(reports: Mapping[str, ErrorReport]) -> str:
    return spelled_bits(SeedSpread.of([errors.effective_bits() for errors in reports.values()]).median)


def _sentence(row: Recommendation, found: Mapping[str, Runs]) -> str:
    undecided = "".join(f" Borderline: {name}, {_spelled_margin(margin)}." for name, margin in row.borderline.items())
    if not row.reached:
        surely = " surely" if row.borderline else ""
        return f"none{surely} reaches {row.wanted}; the best is {row.best} ({_bits(found[row.best])}).{undecided}"
    if row.method is None:
        listed = ", ".join(f"{name} ({_passes(found[name].first)}, {_bits(found[name])})" for name in row.reached)
        return f"{row.wanted} is reached by {listed}; which is cheapest is not known, as no rate is.{undecided}"
    record = found[row.method].first
    known = " (a reconstruction)" if record.certainty == "reconstruction" else ""
    text = (
        f"the cheapest that reaches {row.wanted} is {row.method}{known}: {_passes(record)} at {record.rate:g} TFLOP/s, "
        f"{record.cost:.3g} ms for 10^12 operations, {_bits(found[row.method])}{_worst(found[row.method], row.wanted)}."
    )
    if row.without_cost:
        text += f" Reached, too, at a cost that is not known, by {', '.join(row.without_cost)}."
    return text + undecided


def _spelled_margin(margin: Margin) -> str:
    """How far from the threshold, and what would decide."""
    where = "within" if margin.bits >= 0 else "beyond"
    of = " of the largest result" if margin.metric == "componentwise" else ""
    text = f"{abs(margin.bits):.2f} bits {where} the threshold of {abs(margin.threshold):.2f}{of}"
    return (
        text
        if margin.seeds is None
        else f"{text}, which about {margin.seeds} seeds would decide (at most {MOST} are tried)"
    )


def _worst(runs: Runs, wanted: str) -> str:
    """What a number of bits in the norm hides: fewer in the worst element."""
    error, bits = runs.spread("componentwise"), wanted.removesuffix(" bits")
    if bits == wanted or error.median <= 2.0 ** -float(bits):
        return ""
    worst = SeedSpread.of([record.errors.effective_bits("componentwise") for record in runs.records]).median
    return f" in the norm, {spelled_bits(worst)} in the worst element over |A||B| (grade {runs.row()['grade']})"


def _passes(record: ComparisonRecord) -> str:
    return f"{record.passes} pass{'es' * (record.passes != 1)}"


def _bits(runs: Runs) -> str:
    spread = runs.bits
    several = f" ({spread.low:.1f} to {spread.high:.1f})" if spread.seeds > 1 else ""
    return f"{spelled_bits(spread.median)}{several}"
