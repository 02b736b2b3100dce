"""What a method costs: passes over the data sheet's rate of the device, and nothing where nobody states one."""

import math

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.experiments.comparison import compare
from tensorcore_models.catalogue.devices import DEVICES
from tensorcore_models.catalogue.rates import DATA_SHEETS

RNG = np.random.default_rng(5)
A, B = RNG.standard_normal((12, 40)), RNG.standard_normal((40, 9))


def cheapest(found, engine, wanted):
    (row,) = [row for row in found if (row.engine, row.wanted) == (engine, wanted)]
    return row.method


def test_every_device_has_its_data_sheet():
    assert DATA_SHEETS.keys() == DEVICES.keys()
    for device, sheet in DATA_SHEETS.items():
        assert sheet.source and all(rate > 0 for rate in sheet.rates.values()), device
        formats = {row.a_format for row in tcm.list_instructions(device)}
        stated = [fmt for fmt in formats if sheet.rate(fmt)]
        assert len(stated) >= min(1, len(sheet.rates)), device


@pytest.mark.parametrize(
    ("device", "fmt", "rate"),
    [
        ("a100", "fp64", 19.5), ("a100", "fp16", 312), ("a100", "s8", 624), ("h100", "fp64", 66.9), ("h100", "e4m3fn", 1978.9),
        ("b300", "fp64", 1.25), ("b300", "s8", 150), ("mi250", "s8", 362.1), ("mi250", "fp16", 362.1), ("v100", "fp16", 125),
        ("mi300x", "e4m3fnuz", 2614.9), ("rtx4060", "fp16", None), ("v100", "s8", None),
    ],
)  # fmt: skip
def test_rates_of_the_data_sheets(device, fmt, rate):
    assert DATA_SHEETS[device].rate(fmt) == rate


def test_fp64_is_recommended_only_where_it_is_cheapest():
    """At 50 bits sixteen INT8 products beat one of FP64 on A100, H100 and B300; not on an MI250, whose INT8 is slow."""
    found = compare(["fp64", "ozaki2_int8:moduli=16"], ["a100", "h100", "b300", "mi250"], A, B).recommendations(bits=50)
    assert {engine: cheapest(found, engine, "50 bits") for engine in ("a100", "h100", "b300")} == dict.fromkeys(
        ("a100", "h100", "b300"), "ozaki2_int8:moduli=16"
    )
    assert cheapest(found, "mi250", "50 bits") == "fp64"


def test_int8_costs_as_much_as_fp16_on_an_mi250():
    found = {(r.method, r.requested): r.cost for r in compare(["fp16", "ozaki_int8"], ["mi250", "a100"], A, B)}
    assert found["ozaki_int8", "mi250"] == 10 * found["fp16", "mi250"]
    assert found["ozaki_int8", "a100"] == 5 * found["fp16", "a100"]


def test_no_cost_is_made_up():
    """An instruction without a device, a device without rates, an IEEE unit: named, not recommended."""
    for engine in ("ampere", "rtx4060", "ampere:mma.m16n8k16.f32.f16.f16.f32"):
        found = compare(["fp16", "ootomo"], [engine], A, B, case="x")
        assert [record.cost for record in found] == [None, None]
        (row,) = found.recommendations()
        assert row.method is None and row.reached == ("ootomo",) == row.without_cost
        assert "the cheapest is not known, because no rate is known" in found.remarks("x")[0]
        assert any("so no cost is given" in line for line in found.notes())


def test_the_rate_of_a_wrapped_engine_is_given_by_the_user():
    def mine(a, b, c):
        return (a.astype(np.float64) @ b.astype(np.float64) + c).astype(np.float32)

    engine = tcm.as_engine(mine, a_format="fp32", d_format="fp32", k=8)
    unknown = compare(["fp32"], [engine], A, B)
    known = compare(["fp32"], [engine], A, B, rates={"mine": 50})
    assert unknown[0].cost is None and known[0].cost == 20 and known[0].rate_source == "given"
    for rates, message in (
        ({"other": 3}, "got a rate for 'other', expected one of the compared engines"),
        ({"mine": 0}, "rate of mine is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(["fp32"], [engine], A, B, rates=rates)


def test_engines_that_compute_alike_are_all_named(capsys):
    words = "compare --methods fp16 ootomo --engines h100 h200 b200 b300 --distribution normal --shape 6 40 6"
    assert main(words.split()) == 0
    text = capsys.readouterr().out
    assert (
        "  h100, h200  " in text and "  b200, b300  " in text and "h100, h200: the cheapest that reaches FP32" in text
    )
    assert (
        main(
            [
                "evaluate",
                "--methods",
                "fp32",
                "--engines",
                "h100",
                "h200",
                "a100",
                "--distribution",
                "normal",
                "--shape",
                "4",
                "20",
                "4",
            ]
        )
        == 0
    )
    assert "h100, h200: hopper" in capsys.readouterr().out


def test_fp64_matrices_keep_their_precision(tmp_path, monkeypatch, capsys):
    """FP64 is judged by the product of the FP64 matrices, from files as from arrays; methods for FP32 round them."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", A)
    np.save("b.npy", B)
    (record, fp32) = compare(["fp64", "fp32"], [None], A, B)
    truth = mpgemm.errors(mpgemm.recovered_gemm(A, B, method="fp64", engine="ieee"), A, B).effective_bits()
    assert record.effective_bits == truth > 50 and 20 < fp32.effective_bits < 25
    assert main(["evaluate", "a.npy", "b.npy", "--methods", "fp32", "fp64", "sgemm_cube", "--csv"]) == 0
    rows = dict(line.split(",")[1:2] + [line] for line in capsys.readouterr().out.splitlines()[1:])
    exact = mpgemm.errors(A @ B, A, B).relative_frobenius
    assert repr(exact) in rows["fp64"] and math.log2(exact) < -50
    assert "FP32 cannot hold 480 of 480 elements of A" in mpgemm.compare(["fp16"], ["a100"], A, B).notes()[-1]
