"""Figures are made without a display and without touching pyplot's state."""

import dataclasses
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from mpgemm.cli import main
from mpgemm.experiments.spread import SeedSpread
from mpgemm.reporting import plots
from tensorcore_models import figures
from tensorcore_models.formats.words import bits_kept, split_fp16


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


def test_fp32_is_a_line_and_fp64_stands_off_the_axis():
    members = [("FP16", 1e-3), ("FP32, chains of 256", 1e-7), ("FP64", 1e-16)]
    axes = plots.method_errors({"in": members}, "t", "error").axes[0]
    lines = [line for line in axes.get_lines() if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]
    assert [line.get_xdata()[0] for line in lines] == [1e-7]
    assert axes.get_xlim()[0] > 1e-10
    assert [text.get_text() for text in axes.texts] == ["1e-16"]
    without = plots.method_errors({"in": members[::2]}, "t", "error").axes[0]
    assert without.get_xlim()[0] < 1e-16 and not without.texts


def test_histogram_shares_add_up_on_a_logarithmic_axis_and_lost_elements_are_marked():
    figure = plots.exponent_histogram({"A": {-30: 3, 0: 1}, "B": {16: 1, 1: 7}}, "t")
    axes = figure.axes[0]
    first, second = (c for c in axes.containers if len(c) == 2)
    assert [bar.get_height() for bar in first] == [0.75, 0.25]
    assert [bool(bar.get_hatch()) for bar in first] == [True, False]
    assert [bool(bar.get_hatch()) for bar in second] == [False, True]
    assert axes.get_yscale() == "log" and "A: 3 lost (0.75); B: 1 lost (0.12)" in axes.get_title()
    plots.exponent_histogram({"A": {}, "B": {0: 1}}, "t")


@pytest.mark.parametrize("scale", [0, 3, 6, 12, 14, 20])
def test_the_window_of_s_b_is_where_every_number_keeps_22_bits(scale):
    rng, good = np.random.default_rng(scale), []
    for exponent in range(-27, 18):
        x = np.ldexp(rng.integers(1 << 23, 1 << 24, 20_000).astype(np.float64), exponent - 23).astype(np.float32)
        x = np.append(x, np.nextafter(np.float32(2.0 ** (exponent + 1)), np.float32(0)))
        kept = bits_kept(x, split_fp16(x, scale), scale)
        if kept.min() >= 22:
            good.append(exponent)
    assert plots.full_window(scale) == (min(good), max(good)) and len(good) == max(good) - min(good) + 1


def test_comparison_has_a_group_for_each_method_and_a_colour_for_each_engine():
    groups = {
        "one": [("x", "volta:mma.a.b", 1e-3), ("x", "hopper:mma.a.b", 1e-4), ("y", "volta:mma.a.b", np.inf)],
        "two": [("x", "volta:mma.a.b", 0.0), ("y", "hopper:mma.a.b", 1e-6)],
    }
    spreads = {
        name: [(method, engine, SeedSpread.of([e])) for method, engine, e in found] for name, found in groups.items()
    }
    figure = plots.method_comparison(spreads, "t", "error", {"one": 2e-7, "two": np.nan})
    dashed = [[line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() == "--" and len(line.get_xdata())]
              for axes in figure.axes]  # fmt: skip
    assert dashed == [[2e-7], []] and figure.axes[0].get_xlim()[0] == pytest.approx(1e-7)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["volta", "hopper", "FP32, chains of 256"]
    bars = [bar[0] for bar in figure.axes[0].containers[:3]]
    assert len({bar.get_facecolor() for bar in bars}) == 2 and bars[2].get_hatch()
    assert bars[0].get_x() + bars[0].get_width() == pytest.approx(1e-3)
    assert "exact" in [text.get_text() for text in figure.axes[1].texts]


@pytest.mark.parametrize(
    ("engines", "labels"),
    [
        (["volta:mma.x", "hopper:mma.x"], ["volta", "hopper"]),
        (["hopper:mma.m16n8k16.x", "hopper:wgmma.m64n8k16.x"], ["hopper mma", "hopper wgmma"]),
        (["hopper:mma.m16n8k16.f32.x", "hopper:mma.m16n8k8.f32.x"], ["hopper mma", "hopper mma m16n8k8"]),
        (["ieee", "a:mma.x"], ["ieee", "a"]),
    ],
)
def test_short_engine_labels_differ(engines, labels):
    assert list(plots.short_engines(engines).values()) == labels


def test_coinciding_curves_stay_visible_in_a_grid():
    lines = [plots.Curve(name, [1, 10], [1e-3, 1e-2]) for name in ("a", "b", "c")]
    figure = plots.panel_grid([plots.Panel("t", lines, "x", "y"), plots.Panel("u", lines, "x", "y")], 2)
    widths = [line.get_linewidth() for line in figure.axes[0].get_lines()]
    assert widths == sorted(widths, reverse=True) and len(set(widths)) == 3
    assert [axes.get_ylabel() for axes in figure.axes] == ["y", ""]


def test_figures_are_saved_whole(tmp_path):
    path = tmp_path / "out" / "x.png"
    assert figures.save(plots.curves([plots.Curve("a", [1, 2], [1, 2])], "t", "x", "y"), path) == ["x.png"]
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in path.parent.iterdir()] == ["x.png"]


def _method_errors(inputs=2):
    names = [f"SGEMM-cube termwise, s_b = {n}, scaled rows, exact steps" for n in (0, 6, 12)]
    return plots.method_errors(
        {f"input {i}": [(name, 1e-7 * (i + 1)) for name in names] for i in range(inputs)}, "t", "x"
    )


def _histogram(inputs=2):
    return plots.exponent_histogram({"A": {0: 3, -4: 5}, "B": {1: 2, -20: 1}}, "a title")


def _curves(inputs=2):
    lines = [plots.Curve(f"a method with a long name, number {i}", [1, 2, 4], [1e-7, 2e-7, 4e-7]) for i in range(8)]
    return plots.curves(lines, "a title that is longer than a column of a journal can be", "k", "error")


def _grid(inputs=2):
    lines = [plots.Curve(name, [1, 10], [1e-3, 1e-2]) for name in ("a", "b", "c")]
    return plots.panel_grid([plots.Panel("t", lines, "x", "y")] * 5, 3)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("name", "grey"), [("one-column", True), ("two-column", False)])
@pytest.mark.parametrize("make", [_method_errors, _histogram, _curves, _grid])
def test_figures_for_papers(make, name, grey, tmp_path):
    """As wide as asked, texts of the asked size that stay inside of the figure, axes that leave room for data."""
    asked = dataclasses.replace(figures.STYLES[name], grey=grey)
    with figures.drawn_as(asked):
        figure = make()
        assert figures.save(figure, tmp_path / "x.png") == ["x.pdf"]
    assert figure.get_figwidth() == asked.width
    box, letter = figure.get_tightbbox(), 0.06  # in inches; layouts are off by less than a letter of 7.5 points
    assert (
        -letter < box.x0
        and box.x1 < asked.width + letter
        and -letter < box.y0
        and box.y1 < figure.get_figheight() + letter
    )
    assert all(axes.bbox.width > 0.25 * figure.bbox.width for axes in figure.axes if axes.axison)
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    assert all(text.get_fontsize() >= 0.85 * asked.points for legend in legends for text in legend.get_texts())
    assert b"/FontFile2" in (tmp_path / "x.pdf").read_bytes()  # fonts are embedded


@pytest.mark.full
def test_equal_figures_are_equal_files(tmp_path):
    with figures.drawn_as(figures.PageStyle(("svg", "pdf", "png"))):
        first, second = (
            [(tmp_path / folder / name).read_bytes() for name in figures.save(_curves(), tmp_path / folder / "x.png")]
            for folder in ("a", "b")
        )
    assert first == second


def test_a_journal_s_style_is_one_file(tmp_path):
    path = tmp_path / "journal.toml"
    path.write_text('base = "two-column"\nwidth = 6.5\nformats = ["svg", "pdf"]\ngrey = true\n')
    assert figures.read_style(str(path)) == figures.PageStyle(("svg", "pdf"), 6.5, 7.5, grey=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wdth = 3", "wdth = 3 is not a field of a style"),
        ('width = "3"', "is not a field"),
        ("width = 0.1", "expected 1 to 40"),
        ('formats = ["jpg"]', "got jpg as format of figures"),
        ("formats = []", "no format"),
        ('base = "poster"', "base is 'poster'"),
        ("width", "is not a TOML file"),
    ],
)
def test_styles_that_are_none(text, said, tmp_path):
    path = tmp_path / "journal.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        figures.read_style(str(path))


def test_a_style_has_a_name_or_a_file():
    with pytest.raises(ValueError, match="unknown style 'poster': expected screen, one-column, two-column, or a file"):
        figures.read_style("poster")


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pip install 'mpgemm\[plot\]'"):
        plots.curves([], "t", "x", "y")


@pytest.mark.parametrize("command", ["reproduce xue8a", "compare", "reproduce xue10", "plan --heat-map"])
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


@pytest.mark.parametrize("count", [1, 3])
def test_the_legend_of_a_grid_lies_inside_of_the_figure(count):
    lines = [plots.Curve(f"SGEMM-cube elementwise, s_b = {n}", [1, 10], [1e-3, 1e-2]) for n in range(8)]
    title = "Figure 8a: uniform in [-2^e, 2^e], 1 seed, m x k x n = 64x64x64"
    figure = plots.panel_grid([plots.Panel(title, lines, "x", "y")] * count, count)
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0 and legend.x1 <= figure.bbox.x1 and legend.y0 >= 0
    assert count > 1 or figure.axes[0].title.get_window_extent().x1 <= figure.bbox.x1


@pytest.mark.full
@pytest.mark.parametrize("length", [60, pytest.param(200, marks=pytest.mark.full)])
def test_no_legend_is_cut(length):
    """Every label lies inside of its picture, however long and however many they are."""
    names = [f"{i} {'name ' * (length // 5)}" for i in range(9)]
    errors = plots.method_errors({name: [("fp16", 1e-4), ("fp32", 1e-7)] for name in names}, "t", "x")
    bars = plots.method_comparison({"x": [("fp16", name, SeedSpread.of([1e-4, 2e-4])) for name in names]}, "t", "x")
    grid = plots.panel_grid([plots.Panel("t", [plots.Curve(name, [1, 2], [1, 2]) for name in names], "x", "y")])
    beside = plots.curves([plots.Curve(name, [1, 2], [1, 2]) for name in names], names[0], "x", "y")
    exponents = plots.exponent_histogram({name: {0: 1} for name in names[:2]}, names[0])
    for figure in (errors, bars, grid, beside, exponents):
        figure.canvas.draw()
        axes, whole = figure.axes[0], figure.bbox
        for part in (*figure.legends, *filter(None, [axes.get_legend()]), axes.title):
            box = part.get_window_extent()
            assert box.x0 >= whole.x0 and box.x1 <= whole.x1 and box.y0 >= whole.y0 and box.y1 <= whole.y1
        assert axes.get_window_extent().width > whole.width / 3  # room is left for what is drawn
