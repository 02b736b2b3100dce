"""This module draws pictures of plans and simulations (matplotlib, an extra: ``pip install mpgemm[plot]``).

Each function draws rows that other modules computed and writes one file.
"""

from collections.abc import Sequence
from pathlib import Path

from ascend.planner.pareto import Point
from ascend.programs.program import PIPES
from ascend.reports.overlay import Overlay
from ascend.reports.waterfall import WaterfallStep
from tensorcore_models.figures import colour_of, new_figure, require_matplotlib, save, side_by_side

#: Colour numbers (:func:`tensorcore_models.figures.colour_of`) of each kind of work.
COLOURS = {"cube": 0, "load": 4, "move": 5, "C": 2, "other": 7}

#: Largest number of products in a picture of a profile.
MOST_PANELS = 12


def _save(figure, path: str | Path) -> list[Path]:
    """Write a figure and return the paths of its files."""
    return [Path(path).with_name(name) for name in save(figure, path)]


def _colour(kind: str) -> str:
    """Return the colour of an operation by its name."""
    if kind.startswith("cube"):
        return colour_of(COLOURS["cube"])
    if kind in ("A load", "B load", "A miss", "B miss", "stream load", "kept load"):
        return colour_of(COLOURS["load"])
    if kind in ("A move", "B move"):
        return colour_of(COLOURS["move"])
    return colour_of(COLOURS["C" if kind.startswith("C ") else "other"])


def pipes_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """Plot each pipe's operations over time (rows of :func:`pipe_rows`)."""
    used = [pipe for pipe in PIPES if any(row["pipe"] == pipe for row in rows)]
    figure = new_figure(11, 0.9 + 0.55 * len(used))
    axes = figure.subplots()
    for row in rows:
        axes.broken_barh(
            [(row["start"], row["end"] - row["start"])], (used.index(row["pipe"]) - 0.38, 0.76),
            color=_colour(row["work"]), edgecolor="white", linewidth=0.3,
        )  # fmt: skip
    axes.set_yticks(range(len(used)), used)
    axes.invert_yaxis()
    axes.set_xlim(min(row["start"] for row in rows), max(row["end"] for row in rows))
    axes.set_xlabel("time on core 0, us")
    axes.set_title(title, fontsize=10)
    names = {"cube": "cube", "load": "GM to L1", "move": "L1 to L0", "C": "C", "other": "split, sync"}
    handles = [axes.plot([], [], "s", color=colour_of(COLOURS[key]), label=label)[0] for key, label in names.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(names), frameon=False, fontsize=8)
    return _save(figure, path)


def ping_pong_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """Plot single beside double buffers (rows of ping_pong_rows): numbered k blocks in shades of the two buffers."""
    figure = new_figure(11, 5.2)
    panels = figure.subplots(2, 1, sharex=True)
    lanes, end = {"MTE2": "GM to L1", "MTE1": "L1 to L0", "CUBE": "cube"}, max(row["start"] for row in rows)
    for axes, buffers in zip(panels, ("single", "double"), strict=True):
        own = [row for row in rows if row["buffers"] == buffers]
        for row in own:
            length, lane = row["end"] - row["start"], list(lanes).index(row["pipe"])
            axes.broken_barh(
                [(row["start"], length)], (lane - 0.38, 0.76), color=_colour(row["work"]),
                alpha=0.55 if row["number"] % 2 else 0.95, edgecolor="white", linewidth=0.5,
            )  # fmt: skip
            if length > 0.015 * end:
                middle = row["start"] + length / 2
                axes.text(middle, lane, str(row["number"]), ha="center", va="center", fontsize=7, clip_on=True)
        axes.set_yticks(range(len(lanes)), list(lanes.values()))
        axes.invert_yaxis()
        axes.set_xlim(0, end)
        axes.set_title(f"{buffers} buffers: {own[0]['tflops']:.3g} TFLOP/s", fontsize=9, loc="left")
    panels[1].set_xlabel("us since the first load, core 0; number: k block, shade: buffer")
    figure.suptitle(title, fontsize=10)
    return _save(figure, path)


def roofline_plot(rows: Sequence[dict], path: str | Path, bandwidth: float, peak: float, title: str) -> list[Path]:
    """Plot the blocks in the roofline model (rows of figure_10); `bandwidth` in B/s, `peak` in FLOP/s."""
    figure = new_figure(7.5, 4.6)
    axes = figure.subplots()
    knee = peak / bandwidth
    most = max(row["operational_intensity"] for row in rows) * 1.3
    axes.plot([knee / 8, knee, most], [peak / 8e12, peak / 1e12, peak / 1e12], color="black", label="roof (eq. 11)")
    for name, colour, marker in (("single", colour_of(4), "o"), ("double", colour_of(0), "^")):
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
    """Plot N_fused and f over bm x bk (rows of figure_6), coloured by bn / bm."""
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
    """Plot the speed with single and double buffers over square blocks, a line for each bk."""
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
    """Plot the scaling in m = n, in k and in all sizes."""
    names = list(dict.fromkeys(row["series"] for row in rows))
    figure, panels = side_by_side(len(names), 11.5, 3.9, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        own = [row for row in rows if row["series"] == name]
        x = [row["k"] if name == "k" else row["m"] for row in own]
        axes.plot(x, [row["sgemm_cube"] for row in own], "^-", markersize=3, linewidth=1, color=colour_of(0),
                  label="SGEMM-cube, 910A, one block")  # fmt: skip
        axes.plot(x, [row["sgemm_cube_best"] for row in own], "-", linewidth=1, color=colour_of(5),
                  label="SGEMM-cube, 910A, best block")  # fmt: skip
        axes.plot(x, [row["fp32_910B3"] for row in own], "o-", markersize=3, linewidth=1, color=colour_of(4),
                  label="FP32 on the cube, 910B3")  # fmt: skip
        axes.set_xlabel(name)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("TFLOP/s (simulated)")
    figure.axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.suptitle(title, fontsize=10)
    return _save(figure, path)


def heat_map_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """Plot the speed over (bm, bn); blocks that eq. 12 rejects are white."""
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
    """Plot the causes from the peak down to the simulated speed; fitted causes are hatched."""
    figure = new_figure(9, 4.6)
    axes = figure.subplots()
    shown = [step for step in steps if step is steps[0] or abs(step.lost) >= 0.005]
    for place, step in enumerate(shown):
        if place == 0:
            axes.barh(0, step.tflops, color=colour_of(0))
        else:
            axes.barh(place, step.lost, left=step.tflops, color=colour_of(4), hatch="///" if step.fitted else None,
                      edgecolor="white")  # fmt: skip
        text = f"{step.tflops:.1f}" if place == 0 else f"-{step.lost:.1f}" + (" (fitted)" if step.fitted else "")
        axes.annotate(text, (step.tflops + max(step.lost, 0.0), place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=8)  # fmt: skip
    end = len(shown)
    axes.barh(end, steps[-1].tflops, color=colour_of(0))
    axes.annotate(f"{steps[-1].tflops:.1f}", (steps[-1].tflops, end), xytext=(4, 0), textcoords="offset points",
                  va="center", fontsize=8)  # fmt: skip
    axes.set_yticks(range(end + 1), [step.cause for step in shown] + ["simulated"], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, steps[0].tflops * 1.12)
    axes.set_xlabel("FP32-equivalent TFLOP/s")
    axes.set_title(title, fontsize=10)
    return _save(figure, path)


def occupancy_plot(rows: Sequence[dict], path: str | Path, title: str) -> list[Path]:
    """Plot the used bytes of each buffer of core 0 (rows of occupancy_rows)."""
    names = list(dict.fromkeys(row["buffer"] for row in rows))
    figure = new_figure(11, 1.1 * len(names) + 0.8)
    panels = figure.subplots(len(names), sharex=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=True):
        own = [row for row in rows if row["buffer"] == name]
        times, used = [row["time"] for row in own], [row["bytes"] / 1024 for row in own]
        axes.step(times, used, where="post", linewidth=0.9, color=colour_of(0))
        axes.set_ylabel(f"{name}\nKiB", fontsize=8)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=7)
    panels[-1].set_xlim(min(row["time"] for row in rows), max(row["time"] for row in rows))
    panels[-1].set_xlabel("time on core 0, us")
    figure.suptitle(title, fontsize=10)
    return _save(figure, path)


def pareto_plot(points: Sequence[Point], path: str | Path, title: str) -> list[Path]:
    """Plot the time against bits; the front is a line with labels."""
    require_matplotlib()
    from matplotlib.ticker import LogLocator

    figure = new_figure(9.5, 4.6)
    axes = figure.subplots()
    front = [point for point in points if point.on_front]
    rest = [point for point in points if not point.on_front]
    axes.scatter([1e6 * p.plan.seconds for p in rest], [p.bits for p in rest], s=10, color=colour_of(7), linewidths=0,
                 label="other schedules")  # fmt: skip
    axes.plot([1e6 * p.plan.seconds for p in front], [p.bits for p in front], "o-", color=colour_of(0), markersize=5,
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


def overlay_plot(found: Sequence[Overlay], path: str | Path, title: str) -> list[Path]:
    """Plot each product's pipes as two bars, measured and predicted, one panel a product; "all" is the time of the task.

    Of more than :data:`MOST_PANELS` products the slowest are drawn, and the title says so.
    """
    longest = sorted((each for each in found if each.pipes), key=lambda each: -each.row.seconds * each.row.lines)
    shown = longest[:MOST_PANELS]
    if not shown:
        raise ValueError(
            "no product can be drawn, because the profile has no busy times of pipes or has only batches: profile with pipe "
            "times (msprof --task-time=l1), and with a product that is not batched"
        )
    across = min(len(shown), 3)
    down = -(-len(shown) // across)
    figure = new_figure(3.9 * across, 0.7 + 2.5 * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, each in zip(panels, shown, strict=False):
        bars = [("all", each.row.seconds, each.predicted), *each.pipes]
        for place, (_, measured, predicted) in enumerate(bars):
            for offset, value, colour in ((-0.2, measured, 4), (0.2, predicted, 0)):
                if value is not None:
                    axes.barh(place + offset, 1e6 * value, 0.38, color=colour_of(colour))
        off = {pipe.pipe for pipe in each.off}
        axes.set_yticks(range(len(bars)), [f"{name} !" if name in off else name for name, *_ in bars], fontsize=8)
        axes.invert_yaxis()
        axes.tick_params(axis="x", labelsize=7)
        s = each.row
        axes.set_title(
            f"{s.name[-34:]}\n{s.m} x {s.k} x {s.n} {s.operand}" + f", {s.lines} times" * (s.lines > 1), fontsize=8
        )
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes in panels[max(len(shown) - across, 0) : len(shown)]:
        axes.set_xlabel("busy, us of a core", fontsize=8)
    handles = [
        panels[0].plot([], [], "s", color=colour_of(number), label=label)[0]
        for number, label in ((4, "measured"), (0, "predicted"))
    ]
    handles.append(panels[0].plot([], [], " ", label="!: pipe that explains the difference")[0])
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    more = f" (the {len(shown)} that take longest of {len(longest)})" if len(longest) > len(shown) else ""
    figure.suptitle(title + more, fontsize=10)
    return _save(figure, path)
