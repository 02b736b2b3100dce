"""Pictures of plans and simulations (matplotlib, an extra: ``pip install mpgemm[plot]``).

Each function draws rows that others computed and writes one file; nothing is computed here.
"""

from collections.abc import Sequence
from pathlib import Path

from ascend.pareto import Point
from ascend.pipes.program import PIPES
from ascend.pipes.simulate import Timeline
from ascend.pipes.trace import bars
from ascend.reports.waterfall import WaterfallStep
from tensorcore_models.figures import new_figure, require_matplotlib, save, side_by_side

#: One colour for each kind of work, told apart without red and green (Okabe and Ito).
COLOURS = {
    "cube": "#0072B2",
    "load": "#E69F00",
    "move": "#56B4E9",
    "C": "#009E73",
    "other": "#999999",
}


def _save(figure, path: str | Path) -> list[Path]:
    """Write a figure; the paths of its files."""
    return [Path(path).with_name(name) for name in save(figure, path)]


def _colour(kind: str) -> str:
    if kind.startswith("cube"):
        return COLOURS["cube"]
    if kind in ("A load", "B load", "A miss", "B miss", "stream load", "kept load"):
        return COLOURS["load"]
    if kind in ("A move", "B move"):
        return COLOURS["move"]
    return COLOURS["C"] if kind.startswith("C ") else COLOURS["other"]


def _start(timeline: Timeline, cycles: float) -> float:
    """Start of a window around the first C block whose old value is read back, else around the first that leaves."""
    for kinds in (("C add",), ("C move", "C write")):
        start = min((bar.start for bar in bars(timeline) if bar.kind in kinds), default=None)
        if start is not None:
            return max(start - 0.4 * cycles, 0.0)
    return 0.0


def gantt(timeline: Timeline, path: str | Path) -> list[Path]:
    """What each pipe of core 0 does in 12,000 cycles where a C block leaves; the axis shows time."""
    timeline, cycles = timeline.recorded(), 12_000
    microsecond = timeline.chip.frequency_mhz  # cycles
    first = _start(timeline, cycles)
    window = bars(timeline, first, first + cycles)
    used = [lane for lane in range(len(PIPES)) if any(bar.pipe == lane for bar in window)]
    figure = new_figure(11, 0.9 + 0.55 * len(used))
    axes = figure.subplots()
    for bar in window:
        start, end = max(bar.start, first), min(bar.end, first + cycles)
        axes.broken_barh(
            [(start / microsecond, (end - start) / microsecond)], (used.index(bar.pipe) - 0.38, 0.76),
            color=_colour(bar.kind), edgecolor="white", linewidth=0.3,
        )  # fmt: skip
    axes.set_yticks(range(len(used)), [PIPES[lane] for lane in used])
    axes.invert_yaxis()
    axes.set_xlim(first / microsecond, (first + cycles) / microsecond)
    axes.set_xlabel(f"time on core 0, us (at {timeline.chip.frequency_mhz:g} MHz)")
    s = timeline.schedule
    axes.set_title(
        f"{timeline.chip.name}, block {s.blocking}, {s.buffering} buffers, {s.mode}: {timeline.tflops:.1f} TFLOP/s",
        fontsize=10,
    )
    names = {"cube": "cube", "load": "GM to L1", "move": "L1 to L0", "C": "C", "other": "split, sync"}
    handles = [axes.plot([], [], "s", color=COLOURS[key], label=label)[0] for key, label in names.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(names), frameon=False, fontsize=8)
    return _save(figure, path)


def buffering_plot(single: Timeline, double: Timeline, path: str | Path) -> list[Path]:
    """Single beside double buffers: the first k blocks on the pipes, numbered, in shades of the two buffers (ping, pong)."""
    cycles = 4_000  # of the multiplication that are shown
    figure = new_figure(11, 5.2)
    panels = figure.subplots(2, 1, sharex=True)
    shown = ("MTE2", "MTE1", "CUBE")
    for axes, timeline in zip(panels, (single.recorded(), double.recorded()), strict=True):
        counts: dict[str, int] = {}
        microsecond = timeline.chip.frequency_mhz
        for bar in sorted(bars(timeline), key=lambda bar: bar.start):
            first = timeline.phases[0].launch
            if PIPES[bar.pipe] not in shown or bar.start - first > cycles:
                continue
            number = counts[bar.kind] = counts.get(bar.kind, -1) + 1
            start, length = (bar.start - first) / microsecond, (bar.end - bar.start) / microsecond
            lane = shown.index(PIPES[bar.pipe])
            axes.broken_barh(
                [(start, length)], (lane - 0.38, 0.76), color=_colour(bar.kind), alpha=0.95 if number % 2 == 0 else 0.55,
                edgecolor="white", linewidth=0.5,
            )  # fmt: skip
            if length > 0.02 * cycles / microsecond:
                axes.text(start + length / 2, lane, str(number), ha="center", va="center", fontsize=7, clip_on=True)
        axes.set_yticks(range(len(shown)), ["GM to L1", "L1 to L0", "cube"])
        axes.invert_yaxis()
        axes.set_xlim(0, cycles / microsecond)
        title = f"{timeline.schedule.buffering} buffers: {timeline.tflops:.0f} TFLOP/s"
        axes.set_title(title, fontsize=9, loc="left")
    panels[1].set_xlabel(f"us since the first load, core 0 of a {double.chip.name}; number: k block, shade: buffer")
    return _save(figure, path)


def roofline_plot(rows: Sequence[dict], path: str | Path, bandwidth: float, peak: float, title: str) -> list[Path]:
    """Blocks in the roofline (rows of figure_10); `bandwidth` in B/s, `peak` in FLOP/s."""
    figure = new_figure(7.5, 4.6)
    axes = figure.subplots()
    knee = peak / bandwidth
    most = max(row["operational_intensity"] for row in rows) * 1.3
    axes.plot([knee / 8, knee, most], [peak / 8e12, peak / 1e12, peak / 1e12], color="black", label="roof (eq. 11)")
    for name, colour, marker in (("single", "#E69F00", "o"), ("double", "#0072B2", "^")):
        axes.scatter(
            [row["operational_intensity"] for row in rows], [row[name] for row in rows], s=7, color=colour,
            marker=marker, alpha=0.5, linewidths=0, label=f"{name} buffer (simulated)",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axvline(knee, color="grey", linestyle=":", linewidth=1)
    axes.annotate(f"knee {knee:.1f} FLOP/B", (knee, axes.get_ylim()[0] * 1.15), fontsize=8, xytext=(4, 0),
                  textcoords="offset points")  # fmt: skip
    axes.annotate("memory bound", (knee / 7.5, peak / 2.6e12), fontsize=8)
    axes.annotate("compute bound", (knee * 1.4, peak / 1e12 * 1.06), fontsize=8)
    axes.set_xlabel("operational intensity, memory to L1 (FLOP/B, eq. 10)")
    axes.set_ylabel("FP32-equivalent TFLOP/s")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return _save(figure, path)


def figure_6_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """N_fused and f over bm x bk (rows of figure_6), coloured by bn / bm."""
    from matplotlib.colors import LogNorm

    figure, (left, right) = side_by_side(2, 9.5, 4)
    x = [row["bm_bk"] for row in rows]
    ratio = [row["bn_over_bm"] for row in rows]
    for axes, key, label in ((left, "n_fused", "N_fused"), (right, "f", "f")):
        points = axes.scatter(x, [row[key] for row in rows], c=ratio, s=7, cmap="viridis", norm=LogNorm(), linewidths=0)
        axes.set_xlabel("bm x bk (elements)")
        axes.set_ylabel(label)
    left.set_yscale("log")
    left.set_xscale("log")
    figure.colorbar(points, ax=right, label="bn / bm")
    figure.suptitle(title, fontsize=10)
    return _save(figure, path)


def figure_11_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """Single and double buffering over square blocks, a line for each bk."""
    figure, both = side_by_side(2, 9.5, 4.2, sharey=True)
    depths = sorted({row["bk"] for row in rows})
    import matplotlib

    colours = matplotlib.colormaps["viridis"]
    for axes, name in zip(both, ("single", "double"), strict=True):
        for place, bk in enumerate(depths):
            own = [row for row in rows if row["bk"] == bk]
            axes.plot([row["bm"] for row in own], [row[name] for row in own], "o-", markersize=3.5, linewidth=1,
                      color=colours(place / max(len(depths) - 1, 1)), label=f"bk = {bk}")  # fmt: skip
        axes.set_title(f"{name} buffer", fontsize=10)
        axes.set_xlabel("bm = bn")
        axes.grid(alpha=0.3)
    both[0].set_ylabel("FP32-equivalent TFLOP/s (simulated)")
    both[0].legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10)
    return _save(figure, path)


def figure_12_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """Scaling in m = n, k and all."""
    names = list(dict.fromkeys(row["series"] for row in rows))
    figure, panels = side_by_side(len(names), 11.5, 3.9, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        own = [row for row in rows if row["series"] == name]
        x = [row["k"] if name == "k" else row["m"] for row in own]
        axes.plot(x, [row["sgemm_cube"] for row in own], "^-", markersize=3, linewidth=1, color="#0072B2",
                  label="SGEMM-cube, 910A, one block")  # fmt: skip
        axes.plot(x, [row["sgemm_cube_best"] for row in own], "-", linewidth=1, color="#56B4E9",
                  label="SGEMM-cube, 910A, best block")  # fmt: skip
        axes.plot(x, [row["fp32_910B3"] for row in own], "o-", markersize=3, linewidth=1, color="#E69F00",
                  label="FP32 on the cube, 910B3")  # fmt: skip
        axes.set_xlabel(name)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("TFLOP/s (simulated)")
    figure.axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.suptitle(title, fontsize=10)
    return _save(figure, path)


def heat_map_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """Speed over (bm, bn); white where eq. 12 rejects the block."""
    import numpy as np

    bm = sorted({row["bm"] for row in rows})
    bn = sorted({row["bn"] for row in rows if row["bn"] <= 512})
    grid = np.full((len(bn), len(bm)), np.nan)
    for row in rows:
        if row["bn"] in bn:
            grid[bn.index(row["bn"]), bm.index(row["bm"])] = row["tflops"]
    figure = new_figure(6.6, 6)
    axes = figure.subplots()
    edges_m = [x - 8 for x in bm] + [bm[-1] + 8]
    edges_n = [x - 8 for x in bn] + [bn[-1] + 8]
    mesh = axes.pcolormesh(edges_m, edges_n, grid, cmap="viridis")
    best = max(rows, key=lambda row: row["tflops"])
    axes.plot(best["bm"], best["bn"], "*", color="white", markeredgecolor="black", markersize=12)
    axes.annotate(f" ({best['bm']}, {best['bk']}, {best['bn']}): {best['tflops']:.1f}", (best["bm"], best["bn"]),
                  xytext=(8, 8), textcoords="offset points", fontsize=8,
                  bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.8})  # fmt: skip
    axes.set_xlabel("bm")
    axes.set_ylabel("bn")
    axes.set_title(title, fontsize=10)
    figure.colorbar(mesh, ax=axes, label="FP32-equivalent TFLOP/s (simulated)")
    return _save(figure, path)


def waterfall_plot(steps: Sequence[WaterfallStep], path: str | Path, title: str) -> list[Path]:
    """From the peak to the simulated speed; fitted causes are hatched."""
    figure = new_figure(9, 4.6)
    axes = figure.subplots()
    shown = [step for step in steps if step is steps[0] or abs(step.lost) >= 0.005]
    for place, step in enumerate(shown):
        if place == 0:
            axes.barh(0, step.tflops, color="#0072B2")
        else:
            axes.barh(place, step.lost, left=step.tflops, color="#E69F00", hatch="///" if step.fitted else None,
                      edgecolor="white")  # fmt: skip
        text = f"{step.tflops:.1f}" if place == 0 else f"-{step.lost:.1f}" + (" (fitted)" if step.fitted else "")
        axes.annotate(text, (step.tflops + max(step.lost, 0.0), place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=8)  # fmt: skip
    end = len(shown)
    axes.barh(end, steps[-1].tflops, color="#0072B2")
    axes.annotate(f"{steps[-1].tflops:.1f}", (steps[-1].tflops, end), xytext=(4, 0), textcoords="offset points",
                  va="center", fontsize=8)  # fmt: skip
    axes.set_yticks(range(end + 1), [step.cause for step in shown] + ["simulated"], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, steps[0].tflops * 1.12)
    axes.set_xlabel("FP32-equivalent TFLOP/s")
    axes.set_title(title, fontsize=10)
    return _save(figure, path)


def occupancy_plot(timeline: Timeline, path: str | Path) -> list[Path]:
    """Bytes in use of each buffer of core 0 over 60,000 cycles where a C block leaves; the axis shows time."""
    timeline, cycles = timeline.recorded(), 60_000
    microsecond = timeline.chip.frequency_mhz  # cycles
    first = _start(timeline, cycles)
    series = timeline.occupancy()
    figure = new_figure(11, 1.1 * len(series) + 0.8)
    for axes, (name, (times, used)) in zip(figure.subplots(len(series), sharex=True), series.items(), strict=True):
        axes.step(times / microsecond, used / 1024, where="post", linewidth=0.9, color="#0072B2")
        axes.set_ylabel(f"{name}\nKiB", fontsize=8)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=7)
    axes.set_xlim(first / microsecond, (first + cycles) / microsecond)
    axes.set_xlabel(f"time on core 0, us (at {microsecond:g} MHz)")
    figure.suptitle(f"{timeline.chip.name}, block {timeline.schedule.blocking}: buffers in use", fontsize=10)
    return _save(figure, path)


def pareto_plot(points: Sequence[Point], path: str | Path, title: str) -> list[Path]:
    """Time against bits; the front as a line with labels."""
    require_matplotlib()
    from matplotlib.ticker import LogLocator

    figure = new_figure(9.5, 4.6)
    axes = figure.subplots()
    front = [point for point in points if point.on_front]
    rest = [point for point in points if not point.on_front]
    axes.scatter([1e6 * p.plan.seconds for p in rest], [p.bits for p in rest], s=10, color="#999999", linewidths=0,
                 label="other schedules")  # fmt: skip
    axes.plot([1e6 * p.plan.seconds for p in front], [p.bits for p in front], "o-", color="#0072B2", markersize=5,
              linewidth=1, label="front")  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    for ticks in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        ticks("{x:g}")
    for number, p in enumerate(front, 1):
        axes.annotate(str(number), (1e6 * p.plan.seconds, p.bits), xytext=(-3, 5), textcoords="offset points",
                      fontsize=8, ha="right")  # fmt: skip
    names = "\n".join(f"{number}  {p.label()}" for number, p in enumerate(front, 1))
    axes.text(1.02, 1.0, names, transform=axes.transAxes, va="top", fontsize=7)
    axes.set_xlabel("predicted time (us)")
    axes.set_ylabel("correct bits, -log2 of the relative error")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return _save(figure, path)
