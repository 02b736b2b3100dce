"""Traces, figure data, pictures."""

import json

import pytest

import ascend
from ascend.pipes.simulate import simulate
from ascend.pipes.trace import bars, trace_events
from ascend.programs.program import PIPES
from ascend.reports import figures, plots
from ascend.reports.waterfall import waterfall
from ascend.schedule import build_schedule
from tensorcore_models.files import write_text

A = ascend.get_chip("910A").with_calibration()
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def timeline():
    return simulate(build_schedule(300, 500, 300, A, ascend.Blocking(64, 64, 64)), record=True)


def test_trace_file(timeline, tmp_path):
    path = tmp_path / "trace.json"
    timeline.to_trace(path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(lanes.values()) == list(PIPES)
    bars_ = [e for e in events if e["ph"] == "X"]
    assert len(bars_) == timeline.operations
    assert sum(e["args"]["cube steps"] for e in bars_) == _core_0_steps(timeline)
    # 1000 MHz: a cycle is 1e-3 microseconds.
    assert max(e["ts"] + e["dur"] for e in bars_) <= timeline.cycles * 1e-3 + 1e-9
    assert all(e["ts"] == pytest.approx(e["args"]["start cycle"] * 1e-3) for e in bars_)
    assert list(tmp_path.iterdir()) == [path]


def _core_0_steps(timeline):
    phase = timeline.phases[-1]
    return int((phase.op_count * phase.flat.op_cube_steps).sum())


def test_arrows_lead_from_a_result_to_its_use(timeline):
    events = trace_events(timeline)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert len(starts) == len(ends) > timeline.operations / 3
    bar_ends = {(e["tid"], round(e["ts"] + e["dur"], 6)) for e in events if e["ph"] == "X"}
    bar_starts = {(e["tid"], round(e["ts"], 6)) for e in events if e["ph"] == "X"}
    for number, start in starts.items():
        assert start["ts"] <= ends[number]["ts"] + 1e-9
        assert (start["tid"], round(start["ts"], 6)) in bar_ends
        assert (ends[number]["tid"], round(ends[number]["ts"], 6)) in bar_starts
        assert start["tid"] != ends[number]["tid"]  # flags are between pipes


def test_a_trace_can_be_cut_short(timeline):
    cut = trace_events(timeline, most_operations=50)
    assert sum(e["ph"] == "X" for e in cut) == 50
    kept = {e["id"] for e in cut if e["ph"] == "s"}
    assert kept == {e["id"] for e in cut if e["ph"] == "f"}


def test_bars_in_a_window(timeline):
    everything = bars(timeline)
    window = bars(timeline, 5000, 6000)
    assert window == [bar for bar in everything if bar.end >= 5000 and bar.start <= 6000]


def test_a_timeline_without_records_makes_them(timeline):
    plain = simulate(build_schedule(300, 500, 300, A, ascend.Blocking(64, 64, 64)))
    assert plain.phases[0].records is None
    assert plain.recorded().cycles == pytest.approx(plain.cycles, rel=1e-9)
    assert bars(plain.recorded()) == bars(timeline)


def test_a_failed_write_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_text(tmp_path / "folder", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_figure_6_is_the_whole_space():
    rows = figures.figure_6(A)
    assert len(rows) == 2329
    assert min(row["f"] for row in rows) > 0.918
    best = next(row for row in rows if (row["bm"], row["bk"], row["bn"]) == (176, 64, 176))
    assert (best["n_fused"], best["bm_bk"], best["f"]) == (44, 11264, 0.9453125)


def test_figure_10_lies_under_its_roof():
    seen = []
    rows = figures.figure_10(A, blocks=ascend.feasible_blocks(A)[::200], progress=lambda *x: seen.append(x))
    assert len(seen) == len(rows) == 12
    for row in rows:
        assert row["single"] < row["double"] < row["roof_tflops"] == figures.PAPER_PEAK / 1e12


@pytest.mark.full
def test_pictures_are_written(timeline, tmp_path):
    rows = figures.figure_10(A, blocks=[ascend.Blocking(b, 64, b) for b in (96, 128, 176)])
    series = [
        {"series": name, "m": s, "k": s, "n": s, "sgemm_cube": 1.0 * s, "sgemm_cube_best": 1.0 * s, "fp32_910B3": 2.0}
        for name in ("m = n", "k", "m = k = n")
        for s in (1, 2)
    ]
    schedule = build_schedule(300, 500, 300, A, ascend.Blocking(64, 64, 64))
    paths = [
        plots.pipes_plot(figures.pipe_rows(timeline), tmp_path / "gantt.png", "t"),
        plots.ping_pong_plot(figures.ping_pong_rows(schedule), tmp_path / "ping_pong.png", "t"),
        plots.occupancy_plot(figures.occupancy_rows(timeline), tmp_path / "occupancy.png", "t"),
        plots.roofline_plot(rows, tmp_path / "roofline.png", A.hbm_bytes_per_second, figures.PAPER_PEAK, "t"),
        plots.figure_6_plot(figures.figure_6(A)[::50], tmp_path / "6.png", "t"),
        plots.figure_11_plot([dict(row, bk=64) for row in rows], tmp_path / "11.png", "t"),
        plots.figure_12_plot(series, tmp_path / "12.png", "t"),
        plots.heat_map_plot(figures.heat_map(A, bk=256, size=(500, 500, 500)), tmp_path / "heat.png", "t"),
        plots.waterfall_plot(waterfall(schedule), tmp_path / "waterfall.png", "t"),
    ]
    assert all(path.read_bytes().startswith(PNG) for written in paths for path in written)


def test_heat_map_without_blocks():
    with pytest.raises(ValueError, match="no feasible block of 910A has bk = 4096"):
        figures.heat_map(A, bk=4096)
