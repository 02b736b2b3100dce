"""Judges emulated FP64 against DGEMM on the same input, in sentences."""

import math
from collections.abc import Sequence

from mpgemm.exact.conditioning import DIGIT
from mpgemm.experiments.evaluate import Record, summarise
from mpgemm.experiments.spread import METHOD, interval_of
from mpgemm.experiments.standing import (
    METRICS,
    STATUSES,
    differences_of,
    middle_of,
    sampling_bits,
    standing,
    worst_status,
)
from mpgemm.experiments.verdict import spelled_bits

#: Unit roundoff of FP64.
FP64_ROUNDOFF = 2.0**-53


#: Beginnings of the sentences on methods, by status.
_SAID = {
    "as accurate": "As accurate as DGEMM here",
    "borderline": "Borderline, about as far behind DGEMM as two such products may differ",
    "undecided": "Undecided, as {results} results are too few to tell (up to {chance:.1f} bits are chance)",
}


def judge_fp64(group: str, records: Sequence[Record], results: int, *, pairs: bool = False) -> list[str]:
    """Return sentences on which methods with FP64 results are as accurate as NumPy's FP64 product; none if it was not measured.

    A method is as accurate if its errors, in norm and in the worst element, exceed those of NumPy's product by no more than two
    such products of one input may differ.

    group: name of the input.
    records: records of all methods; records of other inputs and of other result formats are ignored.
    results: number of elements of the product.
    pairs: whether the cases of the group are pairs of a stack, of which the worst decides, and not seeds.
    """
    mine = [record for record in records if record.group == group and record.errors.format == "fp64"]
    summaries = {summary.method: summary for summary in summarise(mine)}
    if "fp64" not in summaries or len(summaries) < 2:
        return []
    native, lines = summaries.pop("fp64"), []
    baseline = [record for record in mine if record.method == native.method]
    good: dict[str, list[str]] = {}
    for method, summary in summaries.items():
        own = [record for record in mine if record.method == method]
        parts = [[record] for record in own] if pairs else [own]
        found = [_beside_native(part, baseline, results) for part in parts]
        status = worst_status(status for status, _, _ in found)
        if status in _SAID:
            good.setdefault(status, []).append(f"{summary.label} (grade {summary.grade})")
            continue
        norm, element, where = max(
            (norm, element, part[0].case) for (_, norm, element), part in zip(found, parts, strict=True)
        )
        lines.append(
            f"Less accurate than DGEMM: {summary.label}, by {norm:.1f} bits in the norm and {element:.1f} in the worst element "
            f"over |A||B|{f' in {where}, the worst pair' if pairs else ''}, grade {summary.grade} (DGEMM here: {native.grade})."
        )
    counted = results * (1 if pairs else native.count)
    said = {status: text.format(results=counted, chance=sampling_bits(counted)) for status, text in _SAID.items()}
    lines = [f"{said[status]}: {', '.join(good[status])}." for status in STATUSES if status in good] + lines
    if pairs:
        lines.append(f"Each of the {native.count} pairs is judged by itself; the worst decides.")
    elif interval_of([0.0] * native.count):
        lines.append(f"Decided by the {METHOD} ({native.count}).")
    condition = max((r.condition for r in baseline if r.condition is not None), key=lambda c: c.norm, default=None)
    if condition is None or math.isinf(native.effective_bits):
        return lines
    none = f"; DGEMM itself has not one correct digit of the result ({spelled_bits(native.median_bits)})"
    return [*lines, condition.sentence(53).rstrip(".") + f"{none if native.median_bits < DIGIT else ''}."]


def _beside_native(records: Sequence[Record], native: Sequence[Record], results: int) -> tuple[str, float, float]:
    """Return (status, bits behind in the norm, bits behind in the worst element); the bits are at least 0."""
    middles = {m: middle_of(differences_of(records, native, m, FP64_ROUNDOFF)) for m in METRICS}
    exact = all(record.errors.componentwise == 0 for record in records)
    found = [standing(*middles[m], m, results * len(records), exact=exact) for m in METRICS]
    norm, element = (max(0.0, -middles[m][0]) for m in METRICS)
    return worst_status(found), norm, element
