"""Predicts figures 6 and 10 to 12 of Xue et al. (arXiv:2507.23387v4) by the model of an Ascend chip."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import ascend
from ascend.blocking import optimal_bm
from ascend.reports import figures, plots
from ascend.reports.calibration import ASSUMED_SIZE, PUBLISHED_BLOCK
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.reporting.report import Table

Shape = tuple[int, int, int]


def figure_6(context: Context, chip: ascend.Chip | None = None) -> Outcome:
    """Return N_fused and f of every feasible block."""
    chip = chip or ascend.get_chip("910A")
    rows = figures.figure_6(chip)
    title = f"{chip.name}: N_fused and f (eq. 8) of the {len(rows)} feasible blocks"
    ends = [extreme(row["f"] for row in rows) for extreme in (min, max)]
    low, high = sorted(optimal_bm(chip, f) for f in ends)
    remark = f"f from {ends[0]:.4f} to {ends[1]:.4f}; eq. 9 is least at bm = {low:.1f} to {high:.1f} (section 5.1.1: 86 to 90)"
    return replace(_outcome("xue6", chip, title, rows, plots.figure_6_plot), remarks=[remark])


def figure_10(context: Context, chip: ascend.Chip | None = None, shape: Shape = ASSUMED_SIZE) -> Outcome:
    """Return the roofline with every feasible block."""
    chip = chip or ascend.get_chip("910A")
    rows = figures.figure_10(chip, shape, progress=_progress(context, "10"))
    peak = figures.PAPER_PEAK if chip.soc_version == "Ascend910A" else chip.peak_flops() / 3
    draw = partial(plots.roofline_plot, bandwidth=chip.hbm_bytes_per_second, peak=peak)
    return _outcome("xue10", chip, f"Fig. 10: {_where(chip, shape)}", rows, draw)


def figure_11(context: Context, chip: ascend.Chip | None = None, shape: Shape = ASSUMED_SIZE) -> Outcome:
    """Return the speed with single and double buffers over square blocks."""
    chip = chip or ascend.get_chip("910A")
    rows = figures.figure_11(chip, shape, _progress(context, "11"))
    return _outcome("xue11", chip, f"Fig. 11: {_where(chip, shape)}", rows, plots.figure_11_plot)


def figure_12(context: Context, chip: ascend.Chip | None = None, block: Shape | None = None) -> Outcome:
    """Return the speed against m = n, against k and against all sizes, with that of FP32 on the 910B3."""
    chip = chip or ascend.get_chip("910A")
    chosen = ascend.Blocking(*block) if block else PUBLISHED_BLOCK
    rows = figures.figure_12(chip, chosen, _progress(context, "12"))
    title = f"Fig. 12: {chip.name} ({_basis(chip)}), block {chosen}, and 910B3"
    return _outcome("xue12", chip, title, rows, plots.figure_12_plot)


def _basis(chip: ascend.Chip) -> str:
    """Return in words whether the chip's parameters are fitted or nominal."""
    return "fitted to 41.7 and 65.3" if _is_calibrated(chip) else "nominal parameters"


def _is_calibrated(chip: ascend.Chip) -> bool:
    return bool(chip.calibrated) and chip == chip.with_calibration()


def _where(chip: ascend.Chip, shape: Shape) -> str:
    return f"{chip.name} ({_basis(chip)}), m, k, n = {', '.join(map(str, shape))}"


def _progress(context: Context, figure: str) -> Callable[[int, int], None]:
    return lambda done, total: context.progress and context.progress(done, total, f"points of figure {figure}")


def _outcome(name: str, chip: ascend.Chip, title: str, rows: list[dict], draw: Callable) -> Outcome:
    table = Table.of_rows(title, rows)
    stem = f"{name}_{chip.name}" + ("_calibrated" if _is_calibrated(chip) else "")
    data = {"chip": chip.name, "parameters": _basis(chip), "rows": rows}
    return Outcome(stem, [table], data, draw=lambda path: draw(rows, path=path, title=title))
