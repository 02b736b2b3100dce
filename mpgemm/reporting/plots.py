"""Draws figures; Matplotlib is imported when a figure is made, needs no display, and keeps its global settings."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorcore_models.figures import colour_of, columns_that_fit, letters, new_figure, style


@dataclass(frozen=True)
class Curve:
    """`Curve` is one line of a figure, y over x, with an optional band from `low` to `high`.

    Lines with the same number in `colour` have the same colour.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = ""
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    colour: int | None = None
    marker: int | None = (
        None  #: Number of the marker; None for the number of the colour, without markers on dotted lines.
    )


@dataclass(frozen=True)
class Panel:
    """`Panel` is one set of axes of a figure."""

    title: str
    curves: Sequence[Curve]
    x_label: str
    y_label: str
    log_x: bool = True
    log_y: bool = True


#: Number of rows of a legend below the axes that figures for a screen have room for.
_LEGEND_ROWS = 4
#: Markers of the curves, in turn; their shapes distinguish curves without colour, too.
_MARKERS = "osD^v<>Pp*Xh"


#: Factor below the reference's error from which errors are drawn at the left edge, because they would compress the others.
OFF_AXIS = 1e4
#: Largest exponent of elements that round to zero in fp16 (2^-25 is the tie), and largest exponent that does not overflow.
LOST_EXPONENT, LARGEST_EXPONENT = -26, 15


def _one_panel(width: float, height: float, lines: bool = False):
    """Return (figure, axes) for one panel."""
    figure = new_figure(width, height, lines)
    return figure, figure.add_subplot()


def curves(
    lines: Sequence[Curve],
    title: str,
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_base: int = 2,
    marks: Mapping[str, float] | None = None,
):
    """Return a figure of curves over a common x axis and a logarithmic y axis.

    lines: curves; values that are 0 or not finite are left out.
    log_x: whether the x axis is logarithmic.
    log_base: base of a logarithmic x axis.
    marks: y of horizontal lines, by label.
    """
    figure, axes = _one_panel(8.0, 4.6)
    for number, line in enumerate(lines):
        place = number if line.colour is None else line.colour
        colour = colour_of(place)
        x, y = np.asarray(line.x, float), np.asarray(line.y, float)
        shown = np.isfinite(y) & (y > 0)
        few = len(x) <= 40
        marked = few and (line.style != ":" or line.marker is not None)
        number_of_marker = place if line.marker is None else line.marker
        axes.plot(
            x[shown], y[shown], line.style or "-", marker=_MARKERS[number_of_marker % len(_MARKERS)] if marked else "",
            markersize=5 if line.style == "--" else 3.5, markerfacecolor="none" if line.style in ("--", ":") else None,
            linewidth=1.2, color=colour, label=line.label,
        )  # fmt: skip
        if len(line.low):
            low, high = np.asarray(line.low, float), np.asarray(line.high, float)
            held = shown & np.isfinite(high) & (low > 0)
            axes.fill_between(x[held], low[held], high[held], color=colour, alpha=0.15, linewidth=0)
    for label, level in (marks or {}).items():
        axes.axhline(level, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate(
            label, (1.0, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7, color="0.4"
        )
    if log_x:
        axes.set_xscale("log", base=log_base)
    else:
        axes.locator_params(axis="x", integer=True)
    axes.set_yscale("log")
    axes.set_title(_title(figure, title, 10, beside=True), fontsize=10)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    _side_legend(figure, axes)
    return figure


def method_errors(
    groups: Mapping[str, Sequence[tuple[str, float]]], title: str, x_label: str, reference: str = "FP32, chains of 256"
):
    """Return a figure with errors of methods as dots on a logarithmic axis, with one colour for each input.

    groups: sequence of (method, error) by input. An error of 0 is an open marker at the left edge, an infinite error a cross
        at the right edge.
    reference: method that the others are compared with, drawn as a vertical line for each input that has it. Errors more than
        :data:`OFF_AXIS` times smaller than all of these are arrows at the left edge with their values.
    """
    names = list(dict.fromkeys(name for members in groups.values() for name, _ in members))
    figure, axes = _one_panel(8.0, 1.0 + 0.28 * len(names) + 0.2 * len(groups), lines=True)
    labels = [textwrap.fill(name, letters(0.42 * figure.get_figwidth(), 8)) for name in names]
    more = sum(label.count("\n") for label in labels)
    figure.set_figheight(figure.get_figheight() + 0.14 * more * style().scale)
    lines = [dict(members).get(reference, 0.0) for members in groups.values()]
    least = min((error for error in lines if 0 < error < np.inf), default=0.0) / OFF_AXIS
    values = [e for members in groups.values() for _, e in members if max(least, 0) < e < np.inf]
    low, high = (min(values) / 4, max(values) * 4) if values else (1e-9, 1.0)
    if any(0 < error < least for members in groups.values() for _, error in members):
        low /= 10  # room for their values
    for number, ((group, members), line) in enumerate(zip(groups.items(), lines, strict=True)):
        colour = colour_of(number)
        mark = _MARKERS[number % len(_MARKERS)]
        axes.plot([], [], mark, color=colour, label=group)
        if 0 < line < np.inf:
            axes.axvline(line, color=colour, linewidth=1, linestyle="--", zorder=1)
        for name, error in members:
            place = len(names) - 1 - names.index(name)
            if error == 0:
                axes.plot(low, place, mark, color=colour, markerfacecolor="none", markersize=7)
            elif not np.isfinite(error):
                axes.plot(high, place, "X", color=colour, markersize=7)
            elif error < least:
                axes.plot(low, place, "<", color=colour, markersize=6)
                axes.annotate(
                    f"{error:.0e}", (low, place), xytext=(8 + 28 * number, 0), textcoords="offset points", va="center",
                    fontsize=7, color=colour, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                )  # fmt: skip
            else:
                axes.plot(error, place, mark, color=colour, markersize=5)
    if any(0 < line < np.inf for line in lines):
        axes.plot([], [], "--", color="0.4", linewidth=1, label=f"error of {reference}")
    axes.set_xscale("log")
    axes.set_xlim(low / 2, high * 2)
    axes.set_yticks(range(len(names)), labels[::-1], fontsize=8)
    axes.set_title(_title(figure, title, 10), fontsize=10)
    axes.set(xlabel=x_label)
    axes.grid(True, axis="both", color="0.9", linewidth=0.6)
    handles, labels = axes.get_legend_handles_labels()
    _legend(figure, handles, labels, columns=1)
    return figure


#: Width of the mark before a legend's label, in letters.
_MARK = 9
#: Width in inches of a legend beside the axes, and width of a figure below which the legend is below the axes.
_SIDE, _NARROW = 2.4, 5.0


def _title(figure, text: str, points: float, beside: bool = False) -> str:
    """Return a title wrapped to the width of the figure, or, with a legend beside the axes, of the axes."""
    width = figure.get_figwidth()
    taken = _SIDE if beside and width >= _NARROW else 0.0
    return textwrap.fill(text, letters(0.92 * (width - taken), points))


def _legend(figure, handles: Sequence, labels: Sequence[str], columns: int) -> None:
    """Draw a legend below the axes, inside of the figure, with wrapped labels and as many columns as fit."""
    room = letters(figure.get_figwidth(), 8) - _MARK
    wrapped = ["\n".join(textwrap.wrap(label, room)) for label in labels]
    longest = max((len(line) for label in wrapped for line in label.split("\n")), default=1) + _MARK
    fitting = max(1, min(columns, (room + _MARK) // longest))
    more = sum(label.count("\n") for label in wrapped)  # lines beyond one for each label
    more += max(-(-len(labels) // fitting) - (0 if figure.get_figwidth() < _NARROW else _LEGEND_ROWS), 0)
    figure.set_figheight(figure.get_figheight() + 0.16 * more * style().scale)
    figure.legend(handles, wrapped, fontsize=8, frameon=False, loc="outside lower center", ncols=fitting)


def _side_legend(figure, axes) -> None:
    """Draw a legend beside the axes of a figure that is made high enough, or below the axes of a narrow figure."""
    handles, labels = axes.get_legend_handles_labels()
    if figure.get_figwidth() < _NARROW:
        _legend(figure, handles, labels, columns=2)
        return
    wrapped = [textwrap.fill(label, letters(_SIDE, 7) - _MARK - 2) for label in labels]
    lines = sum(label.count("\n") + 1 for label in wrapped)
    figure.set_figheight(max(figure.get_figheight(), 0.15 * lines * style().scale + 1))
    axes.legend(handles, wrapped, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def short_engines(engines: Sequence[str]) -> dict[str, str]:
    """Return short labels of engines for a legend: the architecture, with parts of the instruction's name where needed."""
    unique = list(dict.fromkeys(engines))
    arches = [engine.partition(":")[0] for engine in unique]
    labels: dict[str, str] = {}
    for engine, arch in zip(unique, arches, strict=True):
        path, shape, *_ = (*engine.partition(":")[2].split("."), "", "")
        wanted = [arch] if arches.count(arch) == 1 else [arch, path]
        label = " ".join(filter(None, wanted))
        labels[engine] = label if label not in labels.values() else f"{label} {shape}".strip()
    return labels if len(set(labels.values())) == len(unique) else {engine: engine for engine in unique}


def method_comparison(
    groups: Mapping[str, Sequence[tuple[str, str, Any]]],
    title: str,
    x_label: str,
    fp32: Mapping[str, float] | None = None,
):
    """Return a figure with errors as grouped bars on a logarithmic axis that begins at a power of ten.

    There is a panel for each input, a group of bars for each method, and a colour for each engine. A bar is the median of a
    `SeedSpread` (:mod:`mpgemm.experiments.spread`), and a thin line its range. An error of 0 has no bar, an infinite error
    reaches the edge.

    fp32: error of FP32 by input, drawn as a dashed line.
    """
    fp32 = {group: error for group, error in (fp32 or {}).items() if 0 < error < np.inf}
    methods = list(dict.fromkeys(method for members in groups.values() for method, _, _ in members))
    labels = short_engines([engine for members in groups.values() for _, engine, _ in members])
    finite = [
        x for members in groups.values() for *_, e in members for x in (e.median, e.low, e.high) if 0 < x < np.inf
    ]
    finite += fp32.values()
    low, high = (10.0 ** np.floor(np.log10(min(finite) / 2)), max(finite) * 3) if finite else (1e-9, 1.0)
    thick = 0.8 / max(len(labels), 1)
    figure = new_figure(8.0, 0.9 + len(groups) * (0.5 + len(methods) * (0.2 + 0.13 * len(labels))), lines=True)
    grid = figure.subplots(max(len(groups), 1), 1, squeeze=False, sharex=True).ravel()
    order = list(labels)
    for axes, (group, members) in zip(grid, groups.items(), strict=False):
        for method, engine, spread in members:
            number = order.index(engine)
            place = methods.index(method) + (number + 0.5) * thick - 0.4
            _method_bar(axes, place, thick * 0.92, number, spread, (low, high))
        if group in fp32:
            axes.axvline(fp32[group], color="0.2", linewidth=1, linestyle="--")
        axes.set_yticks(range(len(methods)), methods, fontsize=8)
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.set_title(_title(figure, group, 9), fontsize=9, loc="left")
        axes.grid(True, axis="x", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
    grid[-1].set_xlabel(x_label)
    figure.suptitle(_title(figure, title, 10), fontsize=10)
    handles = [
        grid[0].barh(
            [0], [0], color=colour_of(n), left=low, hatch=_hatch(n), edgecolor="black" if style().grey else None
        )
        for n in range(len(order))
    ]
    names = list(labels.values())
    if fp32:
        handles += grid[0].plot([], [], "--", color="0.2", linewidth=1)
        names.append("FP32, chains of 256")
    _legend(figure, handles, names, columns=4)
    return figure


def _method_bar(axes, place: float, thick: float, number: int, spread, ends: tuple[float, float]) -> None:
    """Draw a method's median as a bar in an engine's colour, between `ends`, and its spread as a line."""
    low, high = ends
    if spread.median == 0:
        axes.annotate("exact", (low, place), xytext=(2, 0), textcoords="offset points", va="center", fontsize=6)
        return
    axes.barh(place, min(spread.median, high) - low, thick, left=low, color=colour_of(number),
              edgecolor="black" if style().grey else None, linewidth=0.4,
              hatch=_hatch(number) if np.isfinite(spread.median) else "////")  # fmt: skip
    if spread.seeds > 1:
        axes.plot([max(spread.low, low), min(spread.high, high)], [place, place], color="black", linewidth=0.8)


def _hatch(number: int) -> str | None:
    """Return the hatch of bars in grey figures, where colours do not distinguish them."""
    return ("", "....", "xxxx", "\\\\\\\\", "ooo", "++++")[number % 6] if style().grey else None


def full_window(scale_exponent: int) -> tuple[int, int]:
    """Return the smallest and the largest exponent e whose numbers two fp16 words hold with 22 bits.

    The second word is scaled by 2^s_b. Three conditions must hold:

    * its last bit 2^(e - 22), after scaling, is not below fp16's smallest number 2^-24, so e >= -2 - s_b;
    * the first word is normal and finite, so -14 <= e <= 14 (numbers of exponent 15 fit, except the largest);
    * the scaled second word, at most 2^(e - 11 + s_b), is finite.
    """
    return max(-14, -2 - scale_exponent), min(14, 26 - scale_exponent)


def exponent_histogram(
    histograms: Mapping[str, Mapping[int, int]], title: str, scale_exponents: Sequence[int] = (0, 6, 12)
):
    """Return a figure of the share of elements by exponent, with the range of fp16; shares are logarithmic.

    histograms: number of elements by exponent of the leading bit, for each matrix.
    scale_exponents: values of s_b whose windows (:func:`full_window`) are drawn above the bars.
    """
    figure, axes = _one_panel(8.0, 4.0, lines=True)
    exponents = [e for histogram in histograms.values() for e in histogram] or [0]
    low, high = min([-26, *exponents]) - 1, max([17, *exponents]) + 1
    width = 0.8 / max(len(histograms), 1)
    least, lost_text = 1.0, []
    for number, (name, histogram) in enumerate(histograms.items()):
        places = sorted(histogram)
        total = max(sum(histogram.values()), 1)
        shares = np.array([histogram[place] / total for place in places])
        least = min([least, *shares])
        lost = [place <= LOST_EXPONENT or place > LARGEST_EXPONENT for place in places]
        bars = axes.bar(np.array(places) + (number + 0.5) * width - 0.4, shares, width, color=colour_of(number))
        axes.bar([low], [0], 0, label=name, color=colour_of(number))
        for bar, gone in zip(bars, lost, strict=True):
            bar.set(hatch="xxxx" if gone else None, edgecolor="#8B0000" if gone else bar.get_facecolor(), linewidth=0.4)
        count = sum(histogram[place] for place, gone in zip(places, lost, strict=True) if gone)
        lost_text.append(f"{name}: {count} lost ({count / total:.2g})" if count else f"{name}: none lost")
    axes.set_yscale("log")
    bottom = least / 3
    top = (1 / bottom) ** (0.14 * len(scale_exponents))  # room for the windows above a share of 1
    axes.set_ylim(bottom, top * 2)
    for number, scale in enumerate(scale_exponents):
        left, right = full_window(scale)
        height = top ** ((number + 1) / (len(scale_exponents) + 0.3)) * 1.2
        axes.plot([left - 0.5, right + 0.5], [height, height], color="0.25", linewidth=1.4, marker="|", markersize=7)
        axes.annotate(
            f"22 bits with s_b = {scale}", ((left + right) / 2, height), xytext=(0, 2), textcoords="offset points", ha="center",
            va="bottom", fontsize=7, color="0.25",
        )  # fmt: skip
    for start, end, colour, label in (
        (low, LOST_EXPONENT + 0.5, "#f4c7c3", "lost in fp16"),
        (LOST_EXPONENT + 0.5, -14.5, "#fbe7c6", "fp16 subnormal"),
        (LARGEST_EXPONENT + 0.5, high, "#d9c3f4", "overflows fp16"),
    ):
        axes.axvspan(start, end, color=colour, alpha=0.5, linewidth=0, label=label, zorder=0)
    axes.set_xlim(low, high)
    axes.set_title(
        "\n".join(_title(figure, line, 9, beside=True) for line in (title, "; ".join(lost_text))), fontsize=9
    )
    axes.set(xlabel="exponent of the element, floor(log2 |x|)", ylabel="share of the nonzero elements")
    axes.set_yticks([tick for tick in axes.get_yticks() if bottom <= tick <= 1])
    _side_legend(figure, axes)
    return figure


def panel_grid(panels: Sequence[Panel], columns: int = 3):
    """Return a figure of several panels, `columns` in a row, with one colour for each label and a shared vertical range."""
    columns = min(columns, len(panels), columns_that_fit())
    rows = -(-len(panels) // columns)
    figure = new_figure(max(4.2 * columns + 0.4, 7.5), 3.2 * rows + 0.9, lines=rows > 1)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=columns > 1)
    labels = list(dict.fromkeys(line.label.replace(" (hyp.)", "") for panel in panels for line in panel.curves))
    handles: dict = {}
    for panel, axes in zip(panels, grid.ravel(), strict=False):
        for line in panel.curves:
            name = line.label.replace(" (hyp.)", "")
            number = labels.index(name)
            x, y = np.asarray(line.x, float), np.asarray(line.y, float)
            shown = np.isfinite(y) & ((y > 0) if panel.log_y else True)
            # The first curves are wide and pale and the last ones thin, so that curves that coincide stay visible.
            rest = (len(labels) - 1 - number) / max(len(labels) - 1, 1)
            (handle,) = axes.plot(
                x[shown], y[shown], line.style or "-", marker=_MARKERS[number % len(_MARKERS)], markersize=3 + 6 * rest,
                markerfacecolor="none", linewidth=1.1 + 4 * rest, alpha=1 - 0.5 * rest, color=colour_of(number),
            )  # fmt: skip
            handles.setdefault(name, handle)
        axes.set_title(panel.title, fontsize=11)
        axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
        if panel.log_x:
            points = [x for line in panel.curves for x in line.x if x > 0]
            axes.set_xscale("log", base=10 if not points or max(points) > 100 * min(points) else 2)
        if panel.log_y:
            axes.set_yscale("log")
        axes.label_outer()
        axes.grid(True, which="major", color="0.9", linewidth=0.6)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    _legend(figure, list(handles.values()), list(handles), columns=len(handles))
    return figure


#: Largest number of points across and down a picture of wrong elements; larger results are drawn in blocks.
_POINTS_SHOWN = 512


def wrong_elements(outside: np.ndarray, title: str):
    """Return a picture of a result, shape (m, n), with one colour for right and another for wrong elements.

    A point of a large result stands for a block of elements, and is wrong if one of them is.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    m, n = outside.shape
    down, across = (max(1, -(-size // _POINTS_SHOWN)) for size in (m, n))
    starts = np.arange(0, m, down), np.arange(0, n, across)
    wrong = np.logical_or.reduceat(np.logical_or.reduceat(outside, starts[0], 0), starts[1], 1)
    figure = new_figure(6.4, 5.2)
    axes = figure.subplots()
    states = {"right": "white", "wrong": "black"} if style().grey else {"right": "#dbe6f0", "wrong": "#b2182b"}
    axes.imshow(
        wrong, cmap=ListedColormap(list(states.values())), vmin=0, vmax=1, aspect="auto", interpolation="nearest",
        extent=(0, n, m, 0),
    )  # fmt: skip
    axes.set(xlabel="column", ylabel="row")
    axes.set_title("\n".join(textwrap.wrap(title, letters(0.9 * figure.get_figwidth(), 9))), fontsize=9)
    one = f"wrong (at least one of {down} x {across} elements)" if down * across > 1 else "wrong"
    handles = [Patch(facecolor=colour, edgecolor="0.4", linewidth=0.4) for colour in states.values()]
    _legend(figure, handles, ["right", one], columns=2)
    return figure
