"""Figures are made without a display and without touching pyplot's state."""

import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from mpgemm.cli import main
from mpgemm.reporting import plots


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_curves_leave_out_what_a_logarithm_lacks():
    figure = plots.curves(
        [plots.Curve("a", [1, 2, 3, 4], [0.0, 1e-3, np.inf, 1e-2]), plots.Curve("b", [1, 2], [1, 2], "--")],
        "title",
        "x",
        "y",
        log_x=True,
        marks={"limit": 0.5},
    )
    axes = figure.axes[0]
    assert axes.get_lines()[0].get_xdata().tolist() == [2, 4]
    assert texts(axes) == ["a", "b"]
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_method_errors_shows_exact_and_lost_results_at_the_edges():
    figure = plots.method_errors({"in": [("x", 1e-3), ("exact", 0.0), ("lost", np.inf)]}, "t", "error")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["lost", "exact", "x"]
    points = {line.get_ydata()[0]: line.get_xdata()[0] for line in axes.get_lines() if len(line.get_xdata())}
    assert points[1] < points[2] == 1e-3 < points[0]
    plots.method_errors({"in": [("exact", 0.0)]}, "t", "error")


def test_histogram_shares_add_up():
    figure = plots.exponent_histogram({"A": {-30: 3, 0: 1}, "B": {}}, "t")
    heights = [patch.get_height() for patch in figure.axes[0].containers[0]]
    assert heights == [0.75, 0.25]


def test_figures_are_saved_whole(tmp_path):
    path = tmp_path / "out" / "x.png"
    plots.save_figure(plots.curves([plots.Curve("a", [1, 2], [1, 2])], "t", "x", "y"), path, dpi=40)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in path.parent.iterdir()] == ["x.png"]


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pip install 'mpgemm\[plot\]'"):
        plots.curves([], "t", "x", "y")


@pytest.mark.parametrize("command", ["evaluate --figure 8a", "compare", "simulate --figure 10", "plan --figure heat"])
def test_without_matplotlib_commands_say_so_before_they_work(command, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main([*command.split(), "--out", str(tmp_path / "out")]) == 2
    assert "pip install 'mpgemm[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_legend_of_few_methods_stands_below_the_axis_label():
    figure = plots.method_errors({"in": [("x", 1e-3), ("y", 1e-4)]}, "t", "error")
    figure.canvas.draw()
    legend, label = figure.legends[0].get_window_extent(), figure.axes[0].xaxis.label.get_window_extent()
    assert legend.y1 <= label.y0
