"""Makes the output of `mpgemm simulate --published`: published speeds and times of Ascend chips beside the model's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, fitted

if TYPE_CHECKING:
    from ascend.reports.published import PredictedTime


def published_numbers() -> Output:
    """Return published speeds, times and busy ratios beside this model's."""
    from ascend.reports.calibration import PUBLISHED_BLOCK, statements
    from ascend.reports.published import comparisons, spread

    rows = statements()
    compared = comparisons()
    data = [
        {
            **{key: value for key, value in c.measurement._asdict().items() if key != "deal"}, "predicted": c.predicted,
            "error": c.error, "predicted_busy": c.busy, "block": str(c.schedule.blocking),
        }
        for c in compared
    ]  # fmt: skip
    spreads = {kind: spread(chosen)._asdict() for kind, chosen in _kinds(compared).items()}
    headings = ("statement", "role", "published", "nominal", "calibrated")
    lines = [
        (r.statement, "fitted to" if r.used_in_fit else "predicted", r.published, r.nominal, r.calibrated) for r in rows
    ]
    text = [
        fitted("910A and 910B: predictions beside published numbers; numbers that the model was fitted to prove nothing"),
        Table("Published (SGEMM-cube, section 6.3) and simulated, TFLOP/s", headings, lines, whole=True),
        fitted(f"The size behind 41.7 and 65.3 is not published; 5632 x 2816 x 5632 is assumed, block {PUBLISHED_BLOCK}."),
        *_times(compared),
    ]  # fmt: skip
    return Output({"statements": [row._asdict() for row in rows], "times": data, "spread": spreads}, text)


def _short(microseconds: float) -> str:
    return f"{microseconds:.4g}" if microseconds < 1e4 else f"{microseconds:.0f}"


def _kinds(compared: list[PredictedTime]) -> dict[str, list[PredictedTime]]:
    return {
        "predicted": [c for c in compared if not c.measurement.fitted],
        "fitted": [c for c in compared if c.measurement.fitted],
    }


def _times(compared: list[PredictedTime]) -> Iterator[str | Table]:
    """Yield published times and busy ratios beside the predictions, and the predictions' errors."""
    from ascend.reports.published import BUSY_PIPES, FAR_OFF, SOURCES, spread

    times, busy = [], []
    for c in compared:
        r = c.measurement
        fit, size = "yes" if r.fitted else "no", f"{r.m}x{r.k}x{r.n}"
        times.append(
            (
                r.name, r.chip, size, _short(r.microseconds), _short(c.predicted), f"{c.error:+.0%}", fit,
                r.source, r.operand, str(c.schedule.blocking), c.schedule.placement(),
            )
        )  # fmt: skip
        pairs = (f"{here:.2f} / {there:.2f}" for there, here in zip(c.busy, r.busy, strict=True))
        if r.busy:
            busy.append((r.name, r.chip, size, fit, *pairs, *[""] * (len(BUSY_PIPES) - len(r.busy))))
    columns = (
        "case", "chip", "m x k x n", "us", "predicted", "error", "fit", "source", "operand", "block", "placed",
    )  # fmt: skip
    yield Table(
        "Published and simulated times; fit: whether a parameter of the model was fitted to the row", columns, times
    )
    yield ""
    ratios = ("case", "chip", "m x k x n", "fit", *BUSY_PIPES)
    yield Table("Busy ratios, published / simulated", ratios, busy, whole=True)
    yield ""
    for kind, chosen in _kinds(compared).items():
        found = spread(chosen)
        yield fitted(
            f"{kind}: {found.rows} rows; rms of log(predicted / published) {found.time:.1%}; rms error of busy ratios "
            f"{found.busy:.3f}, of the scalar unit's ratio {found.scalar:.3f}"
        )
    for c in compared:
        if abs(c.error) > FAR_OFF:
            r = c.measurement
            yield fitted(f"{r.source}, {r.name}, {r.m} x {r.k} x {r.n}: {c.error:+.0%}; {r.remark}")
    for name, source in SOURCES.items():
        yield fitted(f"{name}: {source}")
