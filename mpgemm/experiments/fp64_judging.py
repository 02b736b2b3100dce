"""Emulated FP64 beside DGEMM on the same input, in sentences."""

from collections.abc import Sequence

from mpgemm.experiments.evaluate import Summary
from mpgemm.experiments.judging import bits_between, noise_bits

#: Unit roundoff of FP64.
FP64_ROUNDOFF = 2.0**-53


def judge_fp64(group: str, summaries: Sequence[Summary], results: int) -> list[str]:
    """Which methods with FP64 results are as accurate as NumPy's FP64 product; empty where that was not measured.

    A method is where neither the norm nor a single result is worse by more than two such products of one input may differ.

    group: Of the input.
    summaries: Of all methods; those of other inputs, and of other result formats, take no part.
    results: Elements of the product.
    """
    mine = {s.label: s for s in summaries if s.group == group and s.format == "fp64"}
    native = next((s for s in mine.values() if s.method == "fp64"), None)
    if native is None or len(mine) < 2:
        return []
    noise, good, lines = noise_bits(results * native.count), [], []
    for label, summary in mine.items():
        if summary is native:
            continue
        behind = {m: -bits_between(getattr(summary, m), getattr(native, m), FP64_ROUNDOFF) for m in noise}
        if all(behind[metric] <= noise[metric] for metric in noise):
            good.append(f"{label} (grade {summary.grade})")
        else:
            norm, element = (max(0.0, behind[metric]) for metric in ("relative_frobenius", "componentwise"))
            lines.append(
                f"Less accurate than DGEMM: {label}, by {norm:.1f} bits in the norm and {element:.1f} in the worst element "
                f"over |A||B|, grade {summary.grade} (DGEMM here: {native.grade})."
            )
    return ([f"As accurate as DGEMM here: {', '.join(good)}."] if good else []) + lines
