"""What a comparison recommends on one input, as data and as sentences.

A method is recommended only where there is something to reach and its cost is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpgemm.exact.errors import ErrorReport
from mpgemm.experiments.comparison_record import ComparisonRecord
from mpgemm.experiments.judging import LOST, bits_between, noise_bits
from mpgemm.experiments.not_finite import NotFinite
from mpgemm.experiments.verdict import FEWEST_BITS, METRICS, ZERO_PRODUCT, spelled_bits

_INFINITE = float("inf")


@dataclass(frozen=True)
class Recommendation:
    """The cheapest method that is good enough on one engine and input."""

    #: case, engine: The engine as it was asked for.
    case: str
    engine: str
    wanted: str  #: What is enough: "FP32", or a number of bits.
    method: str | None  #: None where no method compared reaches it, or where the cost of none that does is known.
    best: str  #: The method with the smallest error there.
    reached: tuple[str, ...] = ()  #: All methods that reach it, the smallest error first.
    without_cost: tuple[str, ...] = ()  #: Those of them whose cost is not known.


@dataclass(frozen=True)
class OneInput:
    """What was measured on one input."""

    case: str
    ranked: Sequence[ComparisonRecord]  #: The smallest error first.
    fp32: ErrorReport | None  #: NumPy's FP32 product.
    not_finite: NotFinite | None  #: None where all operands are finite.

    @property
    def zero_product(self) -> bool:
        """Whether the exact product is zero and something has an error, infinite relative to the product alone."""
        reports = [record.errors for record in self.ranked] + ([self.fp32] if self.fp32 else [])
        return any(errors.relative_frobenius == _INFINITE and errors.normwise < _INFINITE for errors in reports)

    @property
    def why_no_fp32(self) -> str:
        """Why FP32's error is nothing to reach, in a sentence; empty where it is."""
        if self.zero_product:
            return ZERO_PRODUCT
        if self.fp32 is None:
            return "FP32 was not measured."
        if self.fp32.normwise > LOST:
            return "FP32 itself loses this product, which leaves its range: scale A or B first."
        if self.fp32.effective_bits() < FEWEST_BITS:
            return (
                f"The results cancel: FP32's error is {self.fp32.normwise:.1e} of |A||B| and yet "
                f"{self.fp32.relative_frobenius:.1e} of the product (norms), so FP32 is nothing to reach here."
            )
        return ""

    def reaches_fp32(self, record: ComparisonRecord) -> bool:
        """Whether a record is as accurate as FP32, but for what two FP32 products may differ."""
        noise = noise_bits(record.errors.m * record.errors.n)
        return all(bits_between(getattr(record.errors, m), getattr(self.fp32, m)) >= -noise[m] for m in METRICS)


def recommendations(found: OneInput, bits: float | None) -> list[Recommendation]:
    """For each engine what reaches FP32, where that is a measure, and what reaches `bits`."""
    if found.not_finite is not None:
        return []
    rows = []
    for engine in dict.fromkeys(record.requested for record in found.ranked):
        here = [record for record in found.ranked if record.requested == engine]
        wanted = {}
        if not found.why_no_fp32:
            wanted["FP32"] = [record for record in here if found.reaches_fp32(record)]
        if bits is not None:
            wanted[f"{bits:g} bits"] = [record for record in here if record.effective_bits >= bits]
        rows += [_cheapest(found.case, engine, what, good, here[0].method) for what, good in wanted.items()]
    return rows


def _cheapest(case: str, engine: str, wanted: str, good: Sequence[ComparisonRecord], best: str) -> Recommendation:
    costs = {record.method: record.cost for record in good if record.cost is not None}
    cheapest = min(costs, key=lambda method: costs[method]) if costs else None
    unknown = tuple(record.method for record in good if record.cost is None)
    return Recommendation(case, engine, wanted, cheapest, best, tuple(record.method for record in good), unknown)


# -- sentences -----------------------------------------------------------------------------------------------------------
def remarks(found: OneInput, bits: float | None) -> list[str]:
    """What the table of an input says, in sentences; engines of which the same is said are named together."""
    if found.not_finite is not None:
        return [f"{found.not_finite} No bits are told and no method is recommended: replace them first."]
    said: dict[str, list[str]] = {}
    for row in recommendations(found, bits):
        records = {record.method: record for record in found.ranked if record.requested == row.engine}
        said.setdefault(_sentence(row, records), []).append(row.engine)
    lines = [f"{', '.join(engines)}: {text}" for text, engines in said.items()]
    if found.why_no_fp32:
        lines.insert(0, found.why_no_fp32)
    if found.fp32 is not None and not found.zero_product:
        lines.append(f"FP32 here (NumPy): {spelled_bits(found.fp32.effective_bits())}.")
    return lines


def _sentence(row: Recommendation, records: Mapping[str, ComparisonRecord]) -> str:
    if not row.reached:
        return f"none reaches {row.wanted}; the best is {row.best} ({_bits(records[row.best])})."
    if row.method is None:
        listed = ", ".join(f"{name} ({_passes(records[name])}, {_bits(records[name])})" for name in row.reached)
        return f"{row.wanted} is reached by {listed}; which is cheapest is not known, as no rate is."
    record = records[row.method]
    known = " (a reconstruction)" if record.certainty == "reconstruction" else ""
    text = (
        f"the cheapest that reaches {row.wanted} is {row.method}{known}: {_passes(record)} at {record.rate:g} TFLOP/s, "
        f"{record.cost:.3g} ms for 10^12 operations, {_bits(record)}{_worst(record, row.wanted)}."
    )
    if row.without_cost:
        text += f" Reached, too, at a cost that is not known, by {', '.join(row.without_cost)}."
    return text


def _worst(record: ComparisonRecord, wanted: str) -> str:
    """What a number of bits in the norm hides: fewer in the worst element."""
    worst, bits = record.errors.effective_bits("componentwise"), wanted.removesuffix(" bits")
    if bits == wanted or worst >= float(bits):
        return ""
    return f" in the norm, {spelled_bits(worst)} in the worst element over |A||B| (grade {record.errors.grade})"


def _passes(record: ComparisonRecord) -> str:
    return f"{record.passes} pass{'es' * (record.passes != 1)}"


def _bits(record: ComparisonRecord) -> str:
    return spelled_bits(record.effective_bits)
