"""Recommends methods on one input from a comparison, as data and as sentences.

A method is recommended only if FP32's error is a goal on that input, or bits were asked for, and if the method's cost is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpgemm.exact.conditioning import Conditioning
from mpgemm.exact.errors import ErrorReport
from mpgemm.experiments.comparison_record import ComparisonRecord, Runs
from mpgemm.experiments.not_finite import NotFinite
from mpgemm.experiments.spread import METHOD, MOST, SeedSpread, interval_of
from mpgemm.experiments.standing import (
    LOST,
    METRICS,
    NOISE_BITS,
    STATUSES,
    bits_between,
    middle_of,
    results_that_decide,
    sampling_bits,
    standing,
)
from mpgemm.experiments.verdict import FEWEST_BITS, ZERO_PRODUCT, spelled_bits

_INFINITE = float("inf")


@dataclass(frozen=True)
class Margin:
    """`Margin` says how far a method is from a threshold, and how many seeds or results would decide an open status."""

    metric: str
    bits: float  #: Bits above the threshold; negative if the method is less accurate than wanted.
    threshold: float  #: The threshold: bits more than FP32, or wanted bits.
    seeds: (
        int | None
    )  #: Number of seeds that would decide; None if too few were measured to say, or above :data:`MOST`.
    measured: int = 0  #: Number of results that were measured.
    results: int | None = None  #: Number of results that would decide an undecided status; None above a million.


@dataclass(frozen=True)
class Recommendation:
    """`Recommendation` names the cheapest method that is accurate enough on one engine and input."""

    #: case, engine: the input, and the name by which the engine was asked for.
    case: str
    engine: str
    wanted: str  #: The goal: "FP32", or a number of bits.
    method: str | None  #: The cheapest method; None if no method reaches the goal, or none that does has a known cost.
    best: str  #: The method with the smallest error on this engine.
    reached: tuple[str, ...] = ()  #: All methods that reach the goal, smallest error first.
    without_cost: tuple[str, ...] = ()  #: Methods that reach the goal and have no known cost.
    borderline: Mapping[str, Margin] = field(default_factory=dict)  #: Methods at the threshold.
    #: Methods for which there are too few results or seeds to decide.
    undecided: Mapping[str, Margin] = field(default_factory=dict)


@dataclass(frozen=True)
class OneInput:
    """`OneInput` holds the measurements on one input."""

    case: str
    ranked: Sequence[Runs]  #: Runs of each method and engine, smallest error first.
    fp32: Mapping[str, ErrorReport]  #: Errors of the FP32 baseline, by case.
    not_finite: NotFinite | None  #: Elements that are not finite; None if all operands are finite.
    fp32_numpy: Mapping[str, ErrorReport] = field(
        default_factory=dict
    )  #: Errors of NumPy's FP32 product here, by case.
    condition: Conditioning | None = None  #: Condition number of the product; of several cases, the largest in norm.
    pairs: bool = False  #: Whether the cases are pairs of a stack, each judged by itself, and not seeds.

    @property
    def zero_product(self) -> bool:
        """Return whether the exact product is zero and a method has an error, which is infinite relative to the product."""
        reports = [record.errors for runs in self.ranked for record in runs.records] + list(self.fp32.values())
        return any(errors.relative_frobenius == _INFINITE and errors.normwise < _INFINITE for errors in reports)

    @property
    def why_no_fp32(self) -> str:
        """Return a sentence on the reason why FP32's error is no goal on this input, "" if it is a goal."""
        if self.zero_product:
            return ZERO_PRODUCT
        if not self.fp32:
            return "FP32 was not measured."
        if self.pairs:
            found = [pair.why_no_fp32 for pair in self.of_pairs()]
            return found[0] if all(found) else ""
        normwise, relative = (
            SeedSpread.of([getattr(errors, metric) for errors in self.fp32.values()]).median
            for metric in ("normwise", "relative_frobenius")
        )
        if normwise > LOST:
            return "FP32 itself loses this product, which leaves its range; scale A or B first."
        if relative > 2.0**-FEWEST_BITS:
            return (
                f"The results cancel: FP32's error is {normwise:.1e} of |A||B| and yet {relative:.1e} of the product (norms), "
                "so FP32's error is no goal here."
            )
        return ""

    def of_pairs(self) -> list["OneInput"]:
        """Return the pairs of a stack, each as an input."""
        cases = list(dict.fromkeys(record.case for runs in self.ranked for record in runs.records))
        return [
            OneInput(case, [runs.of_case(case) for runs in self.ranked],
                     {case: self.fp32[case]} if case in self.fp32 else {}, None)
            for case in cases
        ]  # fmt: skip

    def without_fp32(self) -> dict[str, str]:
        """Return the pairs of a stack in which FP32's error is no goal, with the reason."""
        found = {pair.case: pair.why_no_fp32 for pair in self.of_pairs()} if self.pairs else {}
        return {case: why for case, why in found.items() if why}

    def exact_pairs(self) -> list[str]:
        """Return the pairs of a stack that FP32 and every method compute exactly, such as pairs with zeros.

        These pairs do not distinguish methods. The list is empty if all pairs are exact.
        """
        if not self.pairs:
            return []
        errors: dict[str, list[float]] = {}
        for runs in self.ranked:
            for record in runs.records:
                errors.setdefault(record.case, []).append(record.errors.componentwise)
        for case, report in self.fp32.items():
            errors.setdefault(case, []).append(report.componentwise)
        found = [case for case, each in errors.items() if not any(each)]
        return found if len(found) < len(errors) else []

    def beside_fp32(self, runs: Runs) -> tuple[str, Margin]:
        """Return a method's status against FP32 (:data:`mpgemm.experiments.standing.STATUSES`), and the margin that decides.

        All seeds decide together; of the pairs of a stack in which FP32's error is a goal, the worst decides.
        """
        if self.pairs:
            each = [pair.beside_fp32(runs.of_case(pair.case)) for pair in self.of_pairs() if not pair.why_no_fp32]
            return max(each, key=_how_bad)
        return max((self._beside(runs, metric) for metric in METRICS), key=_how_bad)

    def _beside(self, runs: Runs, metric: str) -> tuple[str, Margin]:
        records = list({record.case: record for record in runs.records}.values())
        pairs = [(record.errors, self.fp32[record.case]) for record in records]
        difference, interval = middle_of(
            [bits_between(getattr(mine, metric), getattr(theirs, metric)) for mine, theirs in pairs]
        )
        measured = sum(mine.m * mine.n for mine, _ in pairs)
        exact = all(mine.componentwise == 0 for mine, _ in pairs)
        status = standing(difference, interval, metric, measured, exact=exact)
        if any(mine.componentwise > LOST >= theirs.componentwise for mine, theirs in pairs):
            status = "lost"
        noise = NOISE_BITS[metric]
        seeds = None if interval is None else interval.seeds_to_decide(-noise)
        more = results_that_decide(difference, metric) if status == "undecided" else None
        return status, Margin(metric, difference + noise, -noise, seeds, measured, more)

    def beside_bits(self, runs: Runs, bits: float) -> tuple[str, Margin]:
        """Return a method's status against a number of bits, and the margin, over the seeds or in the worst pair of a stack.

        Without an interval, the measured bits decide.
        """
        found = [record.effective_bits for record in runs.records]
        interval = None if self.pairs else interval_of(found)
        reached = min(found) if self.pairs else runs.bits.median
        if interval is None:
            status = "as accurate" if reached >= bits else "less accurate"
        else:
            side = 1 if interval.low >= bits else interval.beside(bits)
            status = {1: "as accurate", 0: "borderline", -1: "less accurate"}[side]
        seeds = None if interval is None else interval.seeds_to_decide(bits)
        return status, Margin("relative_frobenius", reached - bits, bits, seeds)


def _how_bad(judged: tuple[str, Margin]) -> tuple[int, float]:
    """Return a sort key by status and margin that puts the worst last."""
    status, margin = judged
    return STATUSES.index(status), -margin.bits


def recommendations(found: OneInput, bits: float | None) -> list[Recommendation]:
    """Return recommendations for each engine: for FP32, where its error is a goal, and for `bits`, if given."""
    if found.not_finite is not None:
        return []
    rows = []
    for engine in dict.fromkeys(runs.first.requested for runs in found.ranked):
        here = [runs for runs in found.ranked if runs.first.requested == engine]
        if found.pairs:
            here.sort(key=lambda runs: runs.spread("relative_frobenius").high)
        wanted = {}
        if not found.why_no_fp32:
            wanted["FP32"] = [found.beside_fp32(runs) for runs in here]
        if bits is not None:
            wanted[f"{bits:g} bits"] = [found.beside_bits(runs, bits) for runs in here]
        rows += [_cheapest(found.case, engine, what, here, sides) for what, sides in wanted.items()]
    return rows


def _cheapest(
    case: str, engine: str, wanted: str, here: Sequence[Runs], judged: Sequence[tuple[str, Margin]]
) -> Recommendation:
    good = [runs.first for runs, (status, _) in zip(here, judged, strict=True) if status == "as accurate"]
    costs = {record.method: record.cost for record in good if record.cost is not None}
    cheapest = min(costs, key=lambda method: costs[method]) if costs else None
    unknown = tuple(record.method for record in good if record.cost is None)
    borderline, undecided = (
        {runs.first.method: margin for runs, (status, margin) in zip(here, judged, strict=True) if status == what}
        for what in ("borderline", "undecided")
    )
    reached = tuple(record.method for record in good)
    best = here[0].first.method
    return Recommendation(case, engine, wanted, cheapest, best, reached, unknown, borderline, undecided)


# -- sentences -----------------------------------------------------------------------------------------------------------
def remarks(found: OneInput, bits: float | None) -> list[str]:
    """Return sentences on the table of an input; engines with the same sentence are named together."""
    if found.not_finite is not None:
        return [f"{found.not_finite} No bits are given and no method is recommended; replace infinities and NaN first."]
    said: dict[str, list[str]] = {}
    rows = recommendations(found, bits)
    for row in rows:
        runs = {runs.first.method: runs for runs in found.ranked if runs.first.requested == row.engine}
        said.setdefault(_sentence(row, runs, found), []).append(row.engine)
    lines = [f"{', '.join(engines)}: {text}" for text, engines in said.items()]
    if found.why_no_fp32:
        lines.insert(0, found.why_no_fp32)
    seeds = len(found.ranked[0].records) if found.ranked else 0
    if found.pairs:
        lines += _of_stack(found, seeds) if rows else []
    elif rows and interval_of([0.0] * seeds) is not None:
        lines.append(f"Decided by the {METHOD} ({seeds}), of differences paired by seed.")
    elif rows and seeds > 1:
        lines.append(f"{seeds} seeds are too few for an interval, so medians decide.")
    if found.fp32 and not found.zero_product:
        here = f"; NumPy's here {_fp32_bits(found.fp32_numpy, found)}" if found.fp32_numpy else ""
        lines.append(f"FP32, chains of 256: {_fp32_bits(found.fp32, found)}{here}.")
    if found.condition is not None and not found.zero_product:
        lines.append(found.condition.sentence())
    return lines


def _of_stack(found: OneInput, pairs: int) -> list[str]:
    """Return sentences on the way a stack is judged, and on the pairs that are left out."""
    lines = [f"Each of the {pairs} pairs is judged by itself; the worst decides."]
    if missing := found.without_fp32():
        case, why = next(iter(missing.items()))
        lines.append(
            f"In {len(missing)} of {pairs} pairs FP32's error is no goal, so they are left out; the first is {case}: {why}"
        )
    if exact := found.exact_pairs():
        lines.append(
            f"In {len(exact)} of {pairs} pairs all results are exact, so medians leave these pairs out; the first is "
            f"{exact[0]}."
        )
    return lines


def _fp32_bits(reports: Mapping[str, ErrorReport], of: OneInput) -> str:
    skip = of.exact_pairs()
    spread = SeedSpread.of_bits([errors.effective_bits() for case, errors in reports.items() if case not in skip])
    return f"{spelled_bits(spread.median)}{_range(spread) if of.pairs else ''}"


def _sentence(row: Recommendation, found: Mapping[str, Runs], of: OneInput) -> str:
    open_ones = "".join(f" Borderline: {name}, {_spelled_margin(margin)}." for name, margin in row.borderline.items())
    open_ones += "".join(f" Undecided: {name}, {_spelled_chance(margin)}." for name, margin in row.undecided.items())
    if not row.reached:
        surely = " surely" if open_ones else ""
        best = _bits(found[row.best], of)
        return f"none{surely} reaches {row.wanted}; the best is {row.best} ({best}).{open_ones}"
    if row.method is None:
        listed = ", ".join(f"{name} ({_passes(found[name].first)}, {_bits(found[name], of)})" for name in row.reached)
        return f"{row.wanted} is reached by {listed}; the cheapest is not known, because no rate is known.{open_ones}"
    record = found[row.method].first
    known = " (a reconstruction)" if record.certainty == "reconstruction" else ""
    worst = "" if of.pairs else _worst(found[row.method], row.wanted)
    text = (
        f"the cheapest that reaches {row.wanted} is {row.method}{known}: {_passes(record)} at {record.rate:g} TFLOP/s, "
        f"{record.cost:.3g} ms for 10^12 operations, {_bits(found[row.method], of)}{worst}."
    )
    if row.without_cost:
        text += f" Methods that also reach it, at an unknown cost: {', '.join(row.without_cost)}."
    return text + open_ones


def _spelled_margin(margin: Margin) -> str:
    """Return the distance from the threshold and the number of seeds that would decide, in words."""
    where = "within" if margin.bits >= 0 else "beyond"
    of = " of the largest result" if margin.metric == "componentwise" else ""
    text = f"{abs(margin.bits):.2f} bits {where} the threshold of {abs(margin.threshold):.2f}{of}"
    return (
        text
        if margin.seeds is None
        else f"{text}, which about {margin.seeds} seeds would decide (at most {MOST} are tried)"
    )


def _spelled_chance(margin: Margin) -> str:
    """Return the reason why a method is undecided, and the number of seeds or results that would decide, in words."""
    if margin.seeds is not None:
        return f"which about {margin.seeds} seeds would decide (at most {MOST} are tried)"
    counted = f"{margin.measured} result{'s' * (margin.measured != 1)}"
    text = f"because up to {sampling_bits(margin.measured):.1f} bits of {counted} may be chance"
    known = margin.results is not None and margin.results > margin.measured
    return f"{text}; {f'about {margin.results}' if known else 'many more'} results would decide"


def _worst(runs: Runs, wanted: str) -> str:
    """Return the bits of the worst element in words, if they are fewer than wanted, "" otherwise."""
    error, bits = runs.spread("componentwise"), wanted.removesuffix(" bits")
    if bits == wanted or error.median <= 2.0 ** -float(bits):
        return ""
    worst = SeedSpread.of([record.errors.effective_bits("componentwise") for record in runs.records]).median
    return f" in the norm, {spelled_bits(worst)} in the worst element over |A||B| (grade {runs.row()['grade']})"


def _passes(record: ComparisonRecord) -> str:
    return f"{record.passes} pass{'es' * (record.passes != 1)}"


def _bits(runs: Runs, of: OneInput) -> str:
    spread = runs.bits
    if of.pairs:
        skip = of.exact_pairs()
        runs = Runs(tuple(record for record in runs.records if record.case not in skip))
        spread = runs.bits
        worst = max(runs.records, key=lambda record: record.errors.relative_frobenius)
        return (
            f"{spelled_bits(spread.low)} in the worst pair ({worst.case}), {spelled_bits(spread.median)} in the median"
        )
    return f"{spelled_bits(spread.median)}{_range(spread)}"


def _range(spread: SeedSpread) -> str:
    return f" ({spread.low:.1f} to {spread.high:.1f})" if spread.seeds > 1 else ""
