"""Figures. Matplotlib is imported where a figure is made, without a display, and nothing global is changed."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorcore_models.figures import colour_of, columns_that_fit, letters, new_figure, style


@dataclass(frozen=True)
class Curve:
    """One line of a figure: y over x, with a band from `low` to `high` where they are given; lines of one `colour` share it."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = ""
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    colour: int | None = None
    marker: int | None = None  #: Its number; None: the colour's, and none on dotted lines.


@dataclass(frozen=True)
class Panel:
    """One set of axes of a figure."""

    title: str
    curves: Sequence[Curve]
    x_label: str
    y_label: str
    log_x: bool = True
    log_y: bool = True


#: Rows of a legend below axes that figures for a screen have room for.
_LEGEND_ROWS = 4
#: Markers of the curves, in turn; their shapes tell them apart without colour, too.
_MARKERS = "osD^v<>Pp*Xh"


#: Errors that many times smaller than the reference's are beside the question and would press the others together.
OFF_AXIS = 1e4
#: An element of this exponent, or below, rounds to zero in fp16 (2^-25 is the tie); beyond the other it overflows.
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
    """Return curves over a common axis.

    lines: On the logarithmic y axis values that are 0 or not finite are left out.
    log_x: A logarithmic x axis.
    log_base: That of the x axis.
    marks: label -> y of a horizontal line.
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
    """Return errors of methods as dots on a logarithmic axis, one colour for each input.

    groups: input -> sequence of (method, error). An error of 0 is at the left edge as an open marker; one that is
        infinite at the right edge as a cross.
    reference: The method that the others are compared with: a vertical line for each input that has it. An error more
        than :data:`OFF_AXIS` times smaller than all of these is at the left edge as an arrow with its value.
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


#: What a mark before a label of a legend takes, in letters.
_MARK = 9
#: Inches of a legend beside the axes, and of a figure that is too narrow for one.
_SIDE, _NARROW = 2.4, 5.0


def _title(figure, text: str, points: float, beside: bool = False) -> str:
    """Return a title in as many lines as the figure needs, or the axes where a legend is beside them."""
    width = figure.get_figwidth()
    taken = _SIDE if beside and width >= _NARROW else 0.0
    return textwrap.fill(text, letters(0.92 * (width - taken), points))


def _legend(figure, handles: Sequence, labels: Sequence[str], columns: int) -> None:
    """Draw a legend below the axes that stays inside of the figure: long labels are wrapped, columns are as many as fit."""
    room = letters(figure.get_figwidth(), 8) - _MARK
    wrapped = ["\n".join(textwrap.wrap(label, room)) for label in labels]
    longest = max((len(line) for label in wrapped for line in label.split("\n")), default=1) + _MARK
    fitting = max(1, min(columns, (room + _MARK) // longest))
    more = sum(label.count("\n") for label in wrapped)  # lines beyond one for each label
    more += max(-(-len(labels) // fitting) - (0 if figure.get_figwidth() < _NARROW else _LEGEND_ROWS), 0)
    figure.set_figheight(figure.get_figheight() + 0.16 * more * style().scale)
    figure.legend(handles, wrapped, fontsize=8, frameon=False, loc="outside lower center", ncols=fitting)


def _side_legend(figure, axes) -> None:
    """Draw a legend beside the axes that stays inside of the figure, which is high enough for it; below in a narrow figure."""
    handles, labels = axes.get_legend_handles_labels()
    if figure.get_figwidth() < _NARROW:
        _legend(figure, handles, labels, columns=2)
        return
    wrapped = [textwrap.fill(label, letters(_SIDE, 7) - _MARK - 2) for label in labels]
    lines = sum(label.count("\n") + 1 for label in wrapped)
    figure.set_figheight(max(figure.get_figheight(), 0.15 * lines * style().scale + 1))
    axes.legend(handles, wrapped, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def short_engines(engines: Sequence[str]) -> dict[str, str]:
    """Return engines by labels that fit a legend: the architecture, with as much of the instruction's name as tells them
    apart."""
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
    """Draw errors as grouped bars on a logarithmic axis that begins at a power of ten.

    A panel for each input, groups of methods, a colour for each engine; 0 has no bar, inf reaches the edge. Each is the median
    of a `SeedSpread` of :mod:`mpgemm.experiments.spread`; its ends are a line.

    fp32: input -> error of FP32, a dashed line.
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
    """Return the hatch that tells bars apart where colours do not."""
    return ("", "....", "xxxx", "\\\\\\\\", "ooo", "++++")[number % 6] if style().grey else None


def full_window(scale_exponent: int) -> tuple[int, int]:
    """Return smallest and largest exponent of which two fp16 words, the second scaled by 2^s_b, hold every number with 22 bits.

    The last bit of the second word, 2^(e - 22), must not be below fp16's smallest number once it is scaled: e >= -2 - s_b
    (-24 + 22); the first word must be normal and finite: -14 <= e <= 14 (of exponent 15 all but the largest fit); the scaled
    second word, at most 2^(e - 11 + s_b), must be finite.
    """
    return max(-14, -2 - scale_exponent), min(14, 26 - scale_exponent)


def exponent_histogram(
    histograms: Mapping[str, Mapping[int, int]], title: str, scale_exponents: Sequence[int] = (0, 6, 12)
):
    """Return how the elements' exponents lie in the range of fp16, on a logarithmic share.

    histograms: matrix -> {exponent of the leading bit: number of elements}.
    scale_exponents: s_b whose windows (:func:`full_window`) are drawn above the bars.
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
    """Return several sets of axes in one figure, `columns` beside each other; a label has one colour, the vertical range is
    shared."""
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
            # Curves that coincide stay visible: the first are wide and pale, the last thin.
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


#: Points across and down of a picture of wrong elements, at most; larger results are drawn in blocks.
_POINTS_SHOWN = 512


def wrong_elements(outside: np.ndarray, title: str):
    """Draw where a result is wrong, shape (m, n), in one colour where it is right and another where it is wrong.

    A point of a large result is a block of elements, which is wrong where one of them is.
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
    one = f"wrong: of {down} x {across} elements one or more" if down * across > 1 else "wrong"
    handles = [Patch(facecolor=colour, edgecolor="0.4", linewidth=0.4) for colour in states.values()]
    _legend(figure, handles, ["right", one], columns=2)
    return figure
