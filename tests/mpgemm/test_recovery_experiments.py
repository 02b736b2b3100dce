"""The papers' comparisons of recovery methods, in their quick form, and what they must show."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm import exact_gemm
from mpgemm.cli import main
from mpgemm.experiments import khattak7, side_by_side, valpey5
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.outcome import Context


def test_valpey_table_and_search():
    rows = [valpey5.table_row(device) for device in valpey5.DEVICES]
    assert {(r.markidis, r.ootomo, r.rounded) for r in rows} == {(1 + 2.0**-23, 1.0, 1 + 2.0**-23)}
    found = valpey5.search("v100", trials=256, seed=3)
    assert found.markidis_better + found.ootomo_better + found.equal == 256
    assert found.markidis_better and found.ootomo_better
    for example in found.examples:
        a, b = (np.float32([[float.fromhex(x) for x in example[name]]]) for name in "ab")
        c = np.float32([[float.fromhex(example["c"])]])
        exact = exact_gemm(a, b.T, c)
        errors = [abs(exact.error_of(np.float32([[float.fromhex(example[m])]]))[0, 0]) for m in ("markidis", "ootomo")]
        assert errors[0] < errors[1]
        assert valpey5.recovered_gemm(a, b.T, c, valpey5.OOTOMO, "v100")[0, 0] == float.fromhex(example["ootomo"])


def test_search_takes_each_dot_product_by_itself():
    rng = np.random.default_rng(0)
    a, b, c = valpey5._inputs("fp32", 5, 40, rng)
    engine = tcm.default_instruction("a100", "fp16")
    together = valpey5.dot_products(a, b, c, valpey5.MARKIDIS, engine)
    alone = [
        valpey5.dot_products(a[i : i + 1], b[i : i + 1], c[i : i + 1], valpey5.MARKIDIS, engine)[0] for i in range(40)
    ]
    np.testing.assert_array_equal(together, alone)
    with pytest.raises(ValueError, match="family"):
        valpey5.search("v100", "fp64")
    with pytest.raises(ValueError, match="at least 1"):
        valpey5.search("v100", trials=0)


def test_an_interrupted_search_resumes(tmp_path, monkeypatch):
    """What was finished is neither lost nor computed again, and the outcome is that of a run in one piece."""
    whole, calls, search = valpey5.run(Context(quick=True)), [], valpey5.search

    def counted(*arguments):
        if len(calls) == 5:
            raise KeyboardInterrupt
        calls.append(arguments)
        return search(*arguments)

    monkeypatch.setattr(valpey5, "search", counted)
    path = tmp_path / "journal.jsonl"
    with pytest.raises(KeyboardInterrupt):
        valpey5.run(Context(quick=True, journal=Journal(path)))
    assert len(path.read_text().splitlines()) == 5
    monkeypatch.setattr(valpey5, "search", search)
    seen = []
    resumed = valpey5.run(
        Context(
            quick=True, journal=Journal(path), progress=lambda done, total, label: seen.append((done, total, label))
        )
    )
    assert resumed.data == whole.data and len(path.read_text().splitlines()) == 16
    assert seen[0] == (5, 16, "t4, fp16 elements, k = 16, seed 0: 128 dot products") and seen[-1] == (16, 16, "")
    with ThreadPoolExecutor(2) as executor:
        assert valpey5.run(Context(quick=True, executor=executor)).data == whole.data


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
    outcome = side_by_side.run_growth(Context(seeds=(0, 1), quick=True))
    curves = outcome.data["curves"]["uniform_nonnegative"]
    for device in ("V100", "A100", "H100"):
        inside, outside = (
            curves[f"Ootomo, all inside, {device}"][-1],
            curves[f"Ootomo, each k step outside, {device}"][-1],
        )
        assert inside > 5 * outside
    assert len(outcome.remarks) == 2 * (9 + 1)


@pytest.mark.parametrize(
    "arguments", (["--table", "xue2"], ["--table", "valpey5"], ["--figure", "xue9a"], ["--figure", "rz"])
)
def test_commands_write_tables_data_and_figures(arguments, tmp_path, capsys):
    assert main(["compare", *arguments, "--quick", "--repeats", "1", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out
    names = {path.suffix for path in tmp_path.iterdir()}
    assert {".json", ".csv"} <= names and (".png" in names) == (arguments[0] == "--figure")
    for path in tmp_path.glob("*.json"):
        assert json.loads(path.read_text())["environment"]["numpy"]


def test_table_2_has_every_claim():
    outcome = side_by_side.run_table2(Context(seeds=(0,), quick=True))
    rows = {row["method"]: row for row in outcome.data["rows"]}
    assert {"markidis", "egemm", "ootomo", "ma", "mixpert", "sgemm_cube"} <= rows.keys()
    one = "uniform_symmetric k = 1"
    assert rows["markidis"][one] > rows["egemm"][one] > 0
    assert all(np.isfinite(row[one]) for row in rows.values())
    # Two RN words leave at most 2^-23 of [1, 2), two truncated ones three units of 2^-23, the four segments nothing.
    worst = {method: row["operand, worst"] for method, row in rows.items()}
    assert worst["ootomo"] == worst["egemm"] == worst["ma"] == worst["sgemm_cube"] == 1.0
    assert worst["markidis"] == pytest.approx(np.log2(6)) and worst["mixpert"] == -np.inf
