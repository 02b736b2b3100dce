"""Emulated FP64 beside DGEMM on the same input, in sentences."""

import math
from collections.abc import Sequence

from mpgemm.exact.conditioning import DIGIT
from mpgemm.experiments.evaluate import Record, summarise
from mpgemm.experiments.judging import BORDERLINE_BITS, differences_of, noise_bits, side_of
from mpgemm.experiments.spread import METHOD, SeedSpread, interval_of
from mpgemm.experiments.verdict import spelled_bits

#: Unit roundoff of FP64.
FP64_ROUNDOFF = 2.0**-53


def judge_fp64(group: str, records: Sequence[Record], results: int) -> list[str]:
    """Which methods with FP64 results are as accurate as NumPy's FP64 product; empty where that was not measured.

    A method is where neither the norm nor a single result is worse by more than two such products of one input may differ.

    group: Of the input.
    records: Of all methods; those of other inputs, and of other result formats, take no part.
    results: Elements of the product.
    """
    mine = [record for record in records if record.group == group and record.errors.format == "fp64"]
    summaries = {summary.method: summary for summary in summarise(mine)}
    if "fp64" not in summaries or len(summaries) < 2:
        return []
    native = summaries.pop("fp64")
    noise, lines = noise_bits(results * native.count), []
    baseline = [record for record in mine if record.method == native.method]
    good: dict[int, list[str]] = {0: [], 1: []}
    for method, summary in summaries.items():
        own = [record for record in mine if record.method == method]
        found = {m: differences_of(own, baseline, m, FP64_ROUNDOFF) for m in noise}
        middle = {m: SeedSpread.of(found[m]).median for m in noise}
        side = min(side_of(middle[m], interval_of(found[m]), noise[m], BORDERLINE_BITS[m]) for m in noise)
        if side >= 0:
            good[side].append(f"{summary.label} (grade {summary.grade})")
            continue
        norm, element = (max(0.0, -middle[metric]) for metric in ("relative_frobenius", "componentwise"))
        lines.append(
            f"Less accurate than DGEMM: {summary.label}, by {norm:.1f} bits in the norm and {element:.1f} in the worst element "
            f"over |A||B|, grade {summary.grade} (DGEMM here: {native.grade})."
        )
    said = {1: "As accurate as DGEMM here", 0: "Borderline, about as far behind DGEMM as two such products may differ"}
    lines = [f"{text}: {', '.join(good[side])}." for side, text in said.items() if good[side]] + lines
    if interval_of([0.0] * native.count):
        lines.append(f"Decided by the {METHOD} ({native.count}).")
    condition = baseline[0].condition
    if condition is None or math.isinf(native.effective_bits):
        return lines
    none = f"; DGEMM itself has not one right digit of it ({spelled_bits(native.median_bits)})"
    return [*lines, condition.sentence(53).rstrip(".") + f"{none if native.median_bits < DIGIT else ''}."]
