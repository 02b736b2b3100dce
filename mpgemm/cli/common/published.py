"""What `mpgemm simulate --published` says: published speeds and times of Ascend chips beside this model's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mpgemm.reporting.report import Table, json_text, say

if TYPE_CHECKING:
    from ascend.reports.published import PredictedTime


def print_published(as_json: bool) -> None:
    """Published speeds, times and busy ratios beside this model's, as tables or JSON."""
    from ascend.reports.calibration import PUBLISHED_BLOCK, statements
    from ascend.reports.published import comparisons, spread

    rows = statements()
    compared = comparisons()
    if as_json:
        times = [
            {
                **{key: value for key, value in c.measurement._asdict().items() if key != "deal"}, "predicted": c.predicted,
                "error": c.error, "predicted_busy": c.busy, "block": str(c.schedule.blocking),
            }
            for c in compared
        ]  # fmt: skip
        spreads = {kind: spread(chosen)._asdict() for kind, chosen in _kinds(compared).items()}
        result = {"statements": [row._asdict() for row in rows], "times": times, "spread": spreads}
        sys.stdout.write(json_text(result))
        return
    headings = ("statement", "published", "nominal", "calibrated", "")
    lines = [
        (r.statement, r.published, r.nominal, r.calibrated, "fitted to" if r.used_in_fit else "predicted") for r in rows
    ]
    say("910A and 910B: predictions beside published numbers; the fitted ones prove nothing")
    Table("Published (SGEMM-cube, section 6.3) and simulated, TFLOP/s", headings, lines).print()
    say(f"The size behind 41.7 and 65.3 is not published; 5632 x 2816 x 5632 is assumed, block {PUBLISHED_BLOCK}.\n")
    _print_times(compared)


def _kinds(compared: list[PredictedTime]) -> dict[str, list[PredictedTime]]:
    return {
        "predicted": [c for c in compared if not c.measurement.fitted],
        "fitted": [c for c in compared if c.measurement.fitted],
    }


def _print_times(compared: list[PredictedTime]) -> None:
    """Published times and busy ratios beside the predictions, and how far these are off."""
    from ascend.reports.published import BUSY_PIPES, FAR_OFF, SOURCES, spread

    times, busy = [], []
    for c in compared:
        r = c.measurement
        kind = "fitted to" if r.fitted else "predicted"
        size = f"{r.m} x {r.k} x {r.n}"
        times.append(
            (
                r.source, r.name, r.chip, size, r.operand, str(c.schedule.blocking), c.schedule.placement(),
                f"{r.microseconds:.4g}", f"{c.predicted:.4g}", f"{c.error:+.0%}", kind,
            )
        )  # fmt: skip
        pairs = (f"{here:.2f} / {there:.2f}" for there, here in zip(c.busy, r.busy, strict=True))
        if r.busy:
            busy.append((r.name, r.chip, size, *pairs, *[""] * (len(BUSY_PIPES) - len(r.busy)), kind))
    columns = (
        "source", "case", "chip", "m x k x n", "operand", "block", "placed", "published us", "predicted", "error", "",
    )  # fmt: skip
    Table("Published times and simulated ones", columns, times).print()
    print()
    Table("Busy ratios, published / simulated", ("case", "chip", "m x k x n", *BUSY_PIPES, ""), busy).print()
    print()
    for kind, chosen in _kinds(compared).items():
        found = spread(chosen)
        say(
            f"{kind}: {found.rows} rows, rms of log(predicted / published) {found.time:.1%}, of busy ratios {found.busy:.3f}, "
            f"of the scalar unit's alone {found.scalar:.3f}"
        )
    for c in compared:
        if abs(c.error) > FAR_OFF:
            r = c.measurement
            say(f"{r.source}, {r.name}, {r.m} x {r.k} x {r.n}: {c.error:+.0%}; {r.remark}")
    for name, source in SOURCES.items():
        say(f"{name}: {source}")
