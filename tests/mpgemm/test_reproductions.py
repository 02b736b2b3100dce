"""`mpgemm reproduce`: the papers' figures and tables, in their quick form, and what they must show."""

import importlib
import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import exact_gemm
from mpgemm.cli import main
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.methods import CubeOptions, build_methods
from mpgemm.experiments.outcome import Context
from mpgemm.reproductions import (
    khattak7,
    rounding_to_zero,
    valpey_table4,
    valpey_table5,
    xue_claims,
    xue_sweeps,
    xue_table2,
)
from mpgemm.reproductions.rows import PAPERS, REPRODUCTIONS
from mpgemm.reproductions.xue_splits import split_figure
from mpgemm.reproductions.xue_sweeps import SWEEP_FIGURES, SWEEP_METHODS, run_sweep
from tensorcore_models.probing.formal import published


def test_valpey_table_and_search():
    rows = [valpey_table5.table_row(device) for device in valpey_table5.DEVICES]
    assert {(r.markidis, r.ootomo, r.rounded) for r in rows} == {(1 + 2.0**-23, 1.0, 1 + 2.0**-23)}
    found = valpey_table5.search("v100", trials=256, seed=3)
    assert found.markidis_better + found.ootomo_better + found.equal == 256
    assert found.markidis_better and found.ootomo_better
    for example in found.examples:
        a, b = (np.float32([[float.fromhex(x) for x in example[name]]]) for name in "ab")
        c = np.float32([[float.fromhex(example["c"])]])
        exact = exact_gemm(a, b.T, c)
        errors = [abs(exact.error_of(np.float32([[float.fromhex(example[m])]]))[0, 0]) for m in ("markidis", "ootomo")]
        assert errors[0] < errors[1]
        assert valpey_table5.recovered_gemm(a, b.T, c, valpey_table5.OOTOMO, "v100")[0, 0] == float.fromhex(
            example["ootomo"]
        )


def test_search_takes_each_dot_product_by_itself():
    rng = np.random.default_rng(0)
    a, b, c = valpey_table5._inputs("fp32", 5, 40, rng)
    engine = tcm.default_instruction("a100", "fp16")
    together = valpey_table5.dot_products(a, b, c, valpey_table5.MARKIDIS, engine)
    alone = [
        valpey_table5.dot_products(a[i : i + 1], b[i : i + 1], c[i : i + 1], valpey_table5.MARKIDIS, engine)[0]
        for i in range(40)
    ]
    np.testing.assert_array_equal(together, alone)
    with pytest.raises(ValueError, match="family"):
        valpey_table5.search("v100", "fp64")
    with pytest.raises(ValueError, match="at least 1"):
        valpey_table5.search("v100", trials=0)


@pytest.mark.full
def test_an_interrupted_search_resumes(tmp_path, monkeypatch):
    """What was finished is neither lost nor computed again, and the outcome is that of a run in one piece."""
    whole, calls, search = valpey_table5.run(Context(quick=True)), [], valpey_table5.search

    def counted(*arguments):
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append(arguments)
        return search(*arguments)

    monkeypatch.setattr(valpey_table5, "search", counted)
    path = tmp_path / "journal.jsonl"
    with pytest.raises(KeyboardInterrupt):
        valpey_table5.run(Context(quick=True, journal=Journal(path)))
    assert len(path.read_text().splitlines()) == 5
    monkeypatch.setattr(valpey_table5, "search", search)
    seen = []
    resumed = valpey_table5.run(
        Context(
            quick=True, journal=Journal(path), progress=lambda done, total, label: seen.append((done, total, label))
        )
    )
    assert resumed.data == whole.data and len(path.read_text().splitlines()) == 16
    assert seen[0] == (5, 16, "t4, fp16 elements, k = 16, seed 0: 128 dot products") and seen[-1] == (16, 16, "")
    with ThreadPoolExecutor(2) as executor:
        assert valpey_table5.run(Context(quick=True, executor=executor)).data == whole.data


def test_khattak_engines_are_what_they_are_called():
    for fmt, _ in khattak7.PANELS:
        for device in khattak7.CURVES:
            engine = device.engine(fmt)
            assert ("(hypothetical)" in engine.label) == ("(hyp.)" in device.name(fmt))
            assert engine.formats[0].name.startswith(fmt)
    assert [d.engine("fp16").accumulator.fraction_bits for d in khattak7.CURVES[:5]] == [23, 24, 25, 25, 24]
    assert khattak7.CURVES[2].engine("e5m2").accumulator.fraction_bits == 13
    assert khattak7.SIZES[0] == 10 and khattak7.SIZES[-1] == 10**6 and len(khattak7.SIZES) == 20


def test_khattak_figure_on_small_sizes(monkeypatch):
    monkeypatch.setattr(khattak7, "SIZES", (10, 61))
    monkeypatch.setattr(khattak7, "PANELS", (("e5m2", 1), ("fp16", 1), ("fp16", 2), ("bf16", 3)))
    outcome = khattak7.run(Context(seeds=(0,)))
    panels = {(p["format"], p["words"]): p for p in outcome.data["panels"]}
    for panel in panels.values():
        assert len(panel["curves"]) == 9
        for values in panel["curves"].values():
            assert all(0 < error <= limit for error, limit in zip(values, panel["bound"], strict=True))
    assert panels["fp16", 2]["curves"]["A100"][-1] < 1e-2 * panels["fp16", 1]["curves"]["A100"][-1]


def test_growth_shows_the_bias_of_rounding_to_zero():
    outcome = rounding_to_zero.run(Context(seeds=(0, 1), quick=True))
    curves = outcome.data["curves"]["uniform_nonnegative"]
    for device in ("V100", "A100", "H100"):
        inside, outside = (
            curves[f"Ootomo, all inside, {device}"][-1],
            curves[f"Ootomo, each k step outside, {device}"][-1],
        )
        assert inside > 5 * outside
    assert len(outcome.remarks) == 2 * (9 + 1)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("name", "picture"),
    [("xue-table2", False), ("valpey-table5", False), ("xue9a-corrections", True), ("rz", True), ("xie2", True)],
)
def test_commands_write_tables_data_and_figures(name, picture, tmp_path, capsys):
    assert main(["reproduce", name, "--quick", "--repeats", "1", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out
    files = {path.name for path in tmp_path.iterdir()}
    assert {f"{name}.json", f"{name}.csv"} <= files and (f"{name}.png" in files) == picture
    for path in tmp_path.glob("*.json"):
        assert json.loads(path.read_text())["environment"]["numpy"]


def test_table_2_has_every_claim():
    outcome = xue_table2.run(Context(seeds=(0,), quick=True))
    rows = {row["method"]: row for row in outcome.data["rows"]}
    assert {"markidis", "egemm", "ootomo", "ma", "mixpert", "sgemm_cube"} <= rows.keys()
    one = "uniform_symmetric k = 1"
    assert rows["markidis"][one] > rows["egemm"][one] > 0
    assert all(np.isfinite(row[one]) for row in rows.values())
    # Two RN words leave at most 2^-23 of [1, 2), two truncated ones three units of 2^-23, the four segments nothing.
    worst = {method: row["operand, worst"] for method, row in rows.items()}
    assert worst["ootomo"] == worst["egemm"] == worst["ma"] == worst["sgemm_cube"] == 1.0
    assert worst["markidis"] == pytest.approx(np.log2(6)) and worst["mixpert"] == -np.inf


@pytest.mark.full
def test_the_claims_of_the_paper_are_what_its_sections_say():
    """Each value is computed when it is asked for; those that follow from equations and from exhaustive counts are exact."""
    ours = xue_claims.Ours((0,))
    found = {
        claim.what: claim.ours(ours)
        for claim in xue_claims.CLAIMS
        if "fig. 8" not in claim.place and "12" not in claim.place
    }
    assert found["N_fused of (176, 64, 176)"] == "44" and found["f of the feasible blocks"] == "0.918 to 0.999"
    assert found["the best bm by eq. 9"] == "86.7 to 90.5" and found["fraction bits that two words keep"] == "22 bits"
    assert found["bits that SGEMM-cube loses against FP32"] == "1.0 of an operand"
    assert found["residuals flushed at exponents -10, -12 and -13"] == "6.2%, 25.0%, 50.0%"
    assert found["FP32 peak of the 910B3"] == "73.73 TFLOP/s" and found["best speed with double buffers"].endswith(
        "65.3 fitted"
    )


@pytest.mark.full
def test_every_claim_has_our_number():
    """11 seconds of CPU time: products of the accuracies, and speeds of the largest sizes."""
    outcome = xue_claims.run(Context(seeds=(0,)))
    assert [row["number"] for row in outcome.data["rows"]] == list(range(1, len(xue_claims.CLAIMS) + 1))
    assert all(row["here"] and row["paper"] and row["place"] for row in outcome.data["rows"])
    differing = {row["claim"] for row in outcome.data["rows"] if row["why"]}
    assert {
        "best speed with double buffers",
        "k large: SGEMM-cube on 910A and FP32 on 910B3",
        "exponents 15 to 27 are remapped into range",
    } <= differing


# -- rows and the command ----------------------------------------------------------------------------------------------------
#: Options that say how an experiment runs, not what it computes; `backends` and `chip` are made of others.
OF_THE_CONTEXT = {"workers", "cluster", "seed", "repeats", "quick", "calibrated", "changes"}


@pytest.mark.parametrize("row", REPRODUCTIONS.values(), ids=REPRODUCTIONS)
def test_a_row_takes_what_its_function_takes(row):
    module, _, name = row.where.partition(":")
    function = getattr(importlib.import_module(f"mpgemm.reproductions.{module}"), name)
    taken = {*row.takes} - OF_THE_CONTEXT
    if module == "valpey_table4":
        assert taken == {"timeout", "memory", "solver"}
    else:
        assert {*inspect.signature(function).parameters} - {"context"} == taken | {*row.arguments}
    assert ("quick" in row.takes) == ("context.quick" in inspect.getsource(function))
    assert row.seconds > 0 and row.source in PAPERS


def test_the_list_says_what_from_which_paper_and_how_long(capsys):
    assert main(["reproduce", "--list"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n{name} " in text for name in REPRODUCTIONS) and all(paper in text for paper in PAPERS.values())
    assert main(["reproduce", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["name"] for row in rows] == list(REPRODUCTIONS) and min(row["seconds"] for row in rows) > 0
    assert main(["reproduce", "--list", "--csv"]) == 0
    assert capsys.readouterr().out.count("name,part,what,seconds") == len(PAPERS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "give a name that mpgemm reproduce --list shows"),
        ("xue8c", "did you mean xue"),
        ("xue8a --quick", "--quick has no effect on xue8a"),
        ("xue2a --methods fp32 --seed 1", "--methods and --seed have no effect on xue2a"),
        ("xue8a --set cores=2", "--set has no effect on xue8a"),
        ("xue10 --block 64,64,64", "--block has no effect on xue10"),
        ("rz --workers 0", "--workers must be at least 1"),
        ("--list xue8a", "NAME goes without --list"),
        ("rz --timeout 3", "--timeout has no effect on rz"),
        ("rz --out README.md", "is not a folder"),
    ],
)
def test_what_has_no_effect_is_refused(words, message, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").touch()
    assert main(["reproduce", *words.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["evaluate --figure 8a", "compare --figure=rz", "compare --table xue2", "compare --quick", "simulate --figure 10",
     "plan --figure 6"],
)  # fmt: skip
def test_options_that_made_figures_name_the_command(words, capsys):
    assert main(words.split()) == 2
    assert "was removed; use mpgemm reproduce" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["8b", "9c"])
def test_a_figure_of_the_paper(tmp_path, name, monkeypatch, capsys):
    row = xue_sweeps.SWEEP_FIGURES[name]
    monkeypatch.setitem(xue_sweeps.SWEEP_FIGURES, name, replace(row, points=row.points[:2]))
    words = f"reproduce xue{name} --repeats 1 --shape 8 8 8 --step-orders exact --metric normwise --out"
    assert main([*words.split(), str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert f"Figure {name}" in text and "|A||B|" in text
    data = json.loads((tmp_path / f"xue{name}.json").read_text(), parse_constant=pytest.fail)
    assert data["figure"]["points"] == list(row.points[:2])
    assert all(member["step_order"] in ("", "exact") for point in data["figure"]["summaries"] for member in point)
    assert (tmp_path / f"xue{name}.png").exists()
    assert (tmp_path / f"xue{name}.csv").read_text().startswith(row.x_label)


@pytest.mark.full
def test_figures_of_speed(capsys, tmp_path):
    assert main(["reproduce", "xue6", "xue11", "--calibrated", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "xue11_910A_calibrated.png" in shown and "2269 more rows are not shown: --csv prints them" in shown
    stems = ("xue6_910A_calibrated", "xue11_910A_calibrated")
    assert {path.name for path in tmp_path.iterdir()} == {f"{s}.{x}" for s in stems for x in ("csv", "json", "png")}
    whole, found = (json.loads((tmp_path / f"{stem}.json").read_text(encoding="utf-8")) for stem in stems)
    assert len(whole["rows"]) == 2329 and found["parameters"] == "fitted to 41.7 and 65.3"
    for buffering in ("single", "double"):  # as published
        assert max((row for row in found["rows"] if row["bk"] == 64), key=lambda row: row[buffering])["bm"] == 176


def test_a_query_without_end_is_a_cell_of_its_row(monkeypatch):
    pytest.importorskip("bitwuzla")

    def no_end(*args, **options):
        raise TimeoutError("3 carry bits: timeout after 1.0 s")

    carries = [query for query in published.QUERIES if query.name.startswith("Carry Bits")]
    monkeypatch.setattr(published, "carry_bits_needed", no_end)
    monkeypatch.setattr(valpey_table4, "QUERIES", carries)
    seen = []
    outcome = valpey_table4.run(Context(progress=lambda *x: seen.append(x)), timeout=1.0)
    rows = outcome.tables[0].rows
    assert len(rows) == 4 and all(cell.startswith("timeout") for row in rows for cell in row[1:])
    assert len(outcome.data["queries"]) == len(seen) == 16


# -- figures 2, 8 and 9 of Xue et al. ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SWEEP_FIGURES)
def test_sweeps_measure_every_point_and_method(name):
    points = [-3, 0] if name.startswith("8") else [16, 32]
    methods = build_methods(SWEEP_METHODS, CubeOptions(scale_exponents=(0, 12)))
    sweep = run_sweep(name, methods, Context(seeds=(0, 1)), shape=(8, 24, 8), points=points)
    assert len(sweep.methods) == 6
    assert all(len(sweep.curve(method)) == 2 for method in sweep.methods)
    assert all(summary.count == 2 for members in sweep.summaries for summary in members)
    if name == "9a":
        assert sweep.shapes == ((16, 24, 16), (32, 24, 32))
    with pytest.raises(ValueError, match="method 'x' was not measured"):
        sweep.curve("x")


def test_published_sizes_of_figure_9a():
    assert SWEEP_FIGURES["9a"].shape_at(128) == (128, 2816, 128)


def test_unknown_figures():
    with pytest.raises(ValueError, match="unknown figure '7'; known: 8a"):
        run_sweep("7", [], Context())
    with pytest.raises(ValueError, match="unknown figure '7'; known: 2a, 2b"):
        split_figure("7")


def test_figure_2_reproduces_the_worked_numbers():
    """Eqs. 3 to 5 at -10 and -12, and the probability of a real flush, which is half as large."""
    figure = split_figure("2a", [-12])
    values = {curve.label: curve.values[0] for curve in figure.curves}
    assert values["P(u), eq. 5"] == pytest.approx(0.4999, abs=5e-5)
    assert values["paper's event u counted"] == pytest.approx(values["P(u), eq. 5"], abs=1e-12)
    assert values["really flushed to 0, to nearest"] == 0.25


def test_figure_2b_bits():
    figure = split_figure("2b", [0])
    values = {curve.label: curve.values[0] for curve in figure.curves}
    assert values["eq. 6, s_b = 12"] == 22
    assert values["worst, rounding to nearest, s_b = 12"] >= 22
