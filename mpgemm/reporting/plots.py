"""Figures. Matplotlib is imported where a figure is made, without a display, and nothing global is changed."""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpgemm.inputs.files import atomic_writer


@dataclass(frozen=True)
class Curve:
    """One line of a figure: y over x."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = ""


@dataclass(frozen=True)
class Panel:
    """One set of axes of a figure."""

    title: str
    curves: Sequence[Curve]
    x_label: str
    y_label: str
    log_x: bool = True
    log_y: bool = True


#: Marker and line of the curves, in turn; the shapes tell them apart without colour too.
_MARKERS = "osD^v<>Pp*Xh"

#: Colours that colour-blind readers tell apart (Okabe and Ito 2008).
_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#7F7F7F",
    "#8B0000",
    "#556B2F",
)


def require_matplotlib() -> None:
    """Check that pictures can be made: before long work, not after it.

    Raises
    ------
    ValueError
        If matplotlib is missing: the extra that brings it.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ValueError("figures need matplotlib: pip install 'mpgemm[plot]', or pass --no-figures") from None


def _new_figure(width: float = 7.0, height: float = 4.3):
    """(figure, axes) on a canvas without a display."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def save_figure(figure, path: str | os.PathLike, dpi: int = 130) -> None:
    """Write a figure as PNG, the whole file or nothing.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure to write.
    path : path
        The file.
    dpi : int
        Dots per inch.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    with atomic_writer(path) as stream:
        stream.write(buffer.getvalue())


def curves(
    lines: Sequence[Curve],
    title: str,
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = True,
    marks: Mapping[str, float] | None = None,
):
    """Curves over a common axis.

    Parameters
    ----------
    lines : sequence of Curve
        On a logarithmic y axis values that are 0 or not finite are left out.
    title, x_label, y_label : str
        As they stand in the figure.
    log_x, log_y : bool
        Logarithmic axes (base 2 and 10).
    marks : mapping, optional
        label -> y of a horizontal line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _new_figure(8.0, 4.6)
    for number, line in enumerate(lines):
        x, y = np.asarray(line.x, float), np.asarray(line.y, float)
        shown = np.isfinite(y) & ((y > 0) if log_y else True)
        few = len(x) <= 40
        axes.plot(
            x[shown],
            y[shown],
            line.style or "-",
            marker=_MARKERS[number % len(_MARKERS)] if few else "",
            markersize=5 if line.style == "--" else 3.5,
            markerfacecolor="none" if line.style == "--" else None,
            linewidth=1.2,
            color=_COLOURS[number % len(_COLOURS)],
            label=line.label,
        )
    for label, level in (marks or {}).items():
        axes.axhline(level, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate(
            label, (1.0, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7, color="0.4"
        )
    if log_x:
        axes.set_xscale("log", base=2)
    else:
        axes.locator_params(axis="x", integer=True)
    if log_y:
        axes.set_yscale("log")
    axes.set_title(title, fontsize=10)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def method_errors(groups: Mapping[str, Sequence[tuple[str, float]]], title: str, x_label: str):
    """Errors of methods as dots on a logarithmic axis, one colour for each input.

    Parameters
    ----------
    groups : mapping
        input -> sequence of (method, error). An error of 0 stands at the left edge as an open marker; one that is
        infinite at the right edge as a cross.
    title, x_label : str
        As they stand in the figure.
    """
    names = list(dict.fromkeys(name for members in groups.values() for name, _ in members))
    figure, axes = _new_figure(8.0, 1.0 + 0.28 * len(names) + 0.2 * len(groups))
    values = [e for members in groups.values() for _, e in members if 0 < e < np.inf]
    low, high = (min(values) / 4, max(values) * 4) if values else (1e-9, 1.0)
    for number, (group, members) in enumerate(groups.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        axes.plot([], [], "o", color=colour, label=group)
        for name, error in members:
            place = len(names) - 1 - names.index(name)
            if error == 0:
                axes.plot(low, place, "o", color=colour, markerfacecolor="none", markersize=7)
            elif not np.isfinite(error):
                axes.plot(high, place, "X", color=colour, markersize=7)
            else:
                axes.plot(error, place, "o", color=colour, markersize=5)
    axes.set_xscale("log")
    axes.set_xlim(low / 2, high * 2)
    axes.set_yticks(range(len(names)), names[::-1], fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.set(xlabel=x_label)
    axes.grid(True, axis="both", color="0.9", linewidth=0.6)
    figure.legend(fontsize=8, frameon=False, loc="outside lower center")
    return figure


def exponent_histogram(histograms: Mapping[str, Mapping[int, int]], title: str):
    """How the elements' exponents lie in the range of fp16.

    Parameters
    ----------
    histograms : mapping
        matrix -> {exponent of the leading bit: number of elements}.
    title : str
        As it stands in the figure.
    """
    figure, axes = _new_figure(7.0, 3.6)
    exponents = [e for histogram in histograms.values() for e in histogram] or [0]
    low, high = min([-26, *exponents]) - 1, max([17, *exponents]) + 1
    width = 0.8 / max(len(histograms), 1)
    for number, (name, histogram) in enumerate(histograms.items()):
        places = np.array(sorted(histogram), float)
        shares = np.array([histogram[int(place)] for place in places], float)
        axes.bar(
            places + (number + 0.5) * width - 0.4,
            shares / max(shares.sum(), 1),
            width,
            label=name,
            color=_COLOURS[number],
        )
    for left, right, colour, label in (
        (low, -25.5, "#f4c7c3", "lost in fp16"),
        (-25.5, -14.5, "#fbe7c6", "fp16 subnormal"),
        (15.5, high, "#d9c3f4", "overflows fp16"),
    ):
        axes.axvspan(left, right, color=colour, alpha=0.5, linewidth=0, label=label, zorder=0)
    axes.set_xlim(low, high)
    axes.set_title(title, fontsize=10)
    axes.set(xlabel="exponent of the element, floor(log2 |x|)", ylabel="share of the nonzero elements")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def panel_grid(panels: Sequence[Panel], columns: int = 3):
    """Several sets of axes in one figure, the vertical range and the colours shared.

    Parameters
    ----------
    panels : sequence of Panel
        The same label has the same colour in all of them.
    columns : int
        Panels beside each other.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("figures need matplotlib: pip install 'mpgemm[plot]', or pass --no-figures") from None
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.2 * columns + 2.2, 3.4 * rows + 0.3), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=columns > 1)
    labels = list(dict.fromkeys(line.label.replace(" (hyp.)", "") for panel in panels for line in panel.curves))
    handles: dict = {}
    for panel, axes in zip(panels, grid.ravel(), strict=False):
        for line in panel.curves:
            name = line.label.replace(" (hyp.)", "")
            number = labels.index(name)
            x, y = np.asarray(line.x, float), np.asarray(line.y, float)
            shown = np.isfinite(y) & ((y > 0) if panel.log_y else True)
            (handle,) = axes.plot(
                x[shown], y[shown], line.style or "-", marker=_MARKERS[number % len(_MARKERS)], markersize=3, linewidth=1.1,
                color=_COLOURS[number % len(_COLOURS)],
            )  # fmt: skip
            handles.setdefault(name, handle)
        axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
        if panel.log_x:
            axes.set_xscale("log")
        if panel.log_y:
            axes.set_yscale("log")
        axes.grid(True, which="major", color="0.9", linewidth=0.6)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    figure.legend(handles.values(), handles.keys(), fontsize=8, loc="outside right center", frameon=False)
    return figure
