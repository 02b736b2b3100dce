"""Comparisons: records, pairs that do not fit, executors, recommendations, and where there is nothing to say."""

import csv
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mpgemm
from mpgemm.experiments.comparison import Comparison, compare, resolve_pairs
from mpgemm.experiments.executors import open_executor
from mpgemm.experiments.methods import build_methods
from mpgemm.recovery.engines import UnsuitableEngine, resolve_engine
from mpgemm.recovery.framework_names import FRAMEWORK_NAMES


def pair(k=48):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (5, k)).astype(np.float32), rng.uniform(-1, 1, (k, 4)).astype(np.float32)


def test_an_engine_without_the_words_leaves_the_others_their_rows():
    found = compare(["markidis", "sgemm_cube"], ["gaudi3", "riscv", "apple_amx", "a100"], *pair())
    assert [(r.method, r.requested) for r in found] == [
        (method, engine) for method in ("markidis", "sgemm_cube") for engine in ("gaudi3", "a100")
    ]
    assert [row[:2] for row in found.skipped] == [
        (method, engine) for method in ("markidis", "sgemm_cube") for engine in ("riscv", "apple_amx")
    ]
    riscv, apple = (reason for *_, reason in found.skipped[:2])
    assert "riscv takes bf16, e4m3fn, e5m2, fp32, s8, u8; methods that riscv runs: bf16, " in riscv
    assert "apple_amx takes fp16 to fp16, fp32 to fp32, fp64 to fp64; methods that apple_amx runs: fp32, fp64;" in apple


@pytest.mark.parametrize("engine", ["riscv", "apple_amx", "gaudi2", "v100", "910b4"])
def test_methods_that_an_engine_is_said_to_run_run_there(engine):
    said = set()
    for method in mpgemm.list_methods():
        try:
            resolve_engine(engine, method)
        except UnsuitableEngine as error:
            said.update(re.search(r"methods that .* runs: ([^;]*)", str(error))[1].split(", "))
    assert said == {method.name for method in mpgemm.list_methods() if runs(engine, method)}


def runs(engine, method) -> bool:
    try:
        return bool(resolve_engine(engine, method))
    except UnsuitableEngine:
        return False


def test_records_say_what_was_measured():
    a, b = pair()
    c = np.ones((5, 4), np.float32)
    found = compare(["ootomo", "multiword:words=3,format=bf16"], ["v100", "a100"], a, b, c, bounds=True, case="mine")
    assert [(r.method, r.passes) for r in found] == [("ootomo", 3), ("ootomo", 3), ("multiword:words=3,format=bf16", 6)]
    first = found[0]
    d = mpgemm.recovered_gemm(a, b, c, "ootomo", "v100")
    assert first.errors == mpgemm.errors(d, a, b, c) and first.effective_bits == first.errors.effective_bits()
    assert first.errors.componentwise <= first.bound < 1e-4
    (skipped,) = found.skipped
    assert skipped[:2] == ("multiword:words=3,format=bf16", "v100") and "engines that run it" in skipped[2]
    rows = json.loads(found.to_json())
    assert len(rows["records"]) == 3 and rows["records"][0]["case"] == "mine" and rows["skipped"][0]["engine"] == "v100"
    parsed = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert float(parsed[0]["relative_frobenius"]) == first.errors.relative_frobenius
    assert json.loads(first.to_json())["passes"] == 3 and "Left out" in str(found) and "ootomo" in str(first)


def test_what_is_not_finite_is_strict_json():
    a = np.float32([[1e6]])
    found = compare(["fp16", "fp64"], ["default"] and [None], a, a)
    rows = json.loads(found.to_json(), parse_constant=pytest.fail)["records"]
    assert rows[0]["relative_frobenius"] == "inf" and rows[0]["overflow_a"] == 1 and rows[1]["effective_bits"] == "inf"


def test_pairs():
    with pytest.raises(ValueError, match="no engine takes"):
        resolve_pairs(["bf16x3"], ["v100"])
    with pytest.raises(ValueError, match="unknown architecture"):
        resolve_pairs(["ootomo"], ["nonsense"])
    with pytest.raises(ValueError, match="unknown method"):
        resolve_pairs(["nonsense"], ["a100"])


def test_executor_gives_the_same_records():
    a, b = pair()
    plain = compare(["fp16", "ootomo", "egemm"], ["a100", "h100"], a, b)
    with ThreadPoolExecutor(2) as executor:
        threaded = compare(["fp16", "ootomo", "egemm"], ["a100", "h100"], a, b, executor=executor)
    assert [r.errors for r in plain] == [r.errors for r in threaded]
    assert isinstance(threaded, Comparison)


def test_one_worker_is_the_callers_thread():
    with open_executor(1) as executor:
        assert executor is None


def test_methods_that_add_nothing_are_refused():
    from mpgemm.experiments.cases import generated_cases, with_addend
    from mpgemm.experiments.evaluate import evaluate, verify_entries

    (case,) = generated_cases("normal", (2, 3, 4), [0])
    case = with_addend(case, "normal")
    with pytest.raises(ValueError, match="got a C, which these methods cannot add to a product: fp16"):
        evaluate([case], build_methods(["fp16", "recovery:fp16@a100"]))
    a, b, c = case.operands()
    (record,) = evaluate([case], build_methods(["recovery:fp16@a100"]))
    assert record.errors == mpgemm.errors(mpgemm.recovered_gemm(a, b, c, "fp16", "a100"), a, b, c)
    assert verify_entries(case, 8) == (8, 8)
    assert not np.array_equal(c, a[:, :1] * np.ones((1, 4))) and c.shape == (2, 4)


def test_recovery_methods_in_other_experiments():
    a, b = pair()
    (method,) = build_methods(["recovery:ootomo:terms=4@a100"])
    np.testing.assert_array_equal(method.multiply(a, b), mpgemm.recovered_gemm(a, b, None, "ootomo", "a100", terms=4))
    assert method.details(a, b)["passes"] == 4


def test_no_methods_at_all():
    a = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match="no methods to compare"):
        mpgemm.compare([], [], a, a)


# -- answers -------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def judged():
    a, b = mpgemm.inputs.generate("uniform_symmetric", 32, 256, 32)
    methods = ["fp16", "ootomo", "bf16x9", "bf16x9:restart_every=16", "egemm", "3xTF32", "highest"]
    return compare(methods, ["a100", "h100"], a, b, case="mine")


def test_tables_are_sorted_by_error(judged):
    ranked = judged.ranked("mine")
    errors = [record.errors.relative_frobenius for record in ranked]
    assert errors == sorted(errors) and len(ranked) == len(judged) == 13
    lines = judged.tables()[0].text().splitlines()
    assert lines[3].startswith("   1  bf16x9:restart_every=16") and lines[-1].split()[1] == "fp16"
    assert "egemm [reconstruction]" in str(judged)


def test_the_cheapest_that_is_enough_is_recommended(judged):
    found = {(row.engine, row.wanted): row.method for row in judged.recommendations(bits=11)}
    for device in ("a100", "h100"):
        assert found[device, "FP32"] == "ootomo"  # 3 passes; bf16x9 with restarts is as good and takes 9
        assert found[device, "11 bits"] == "fp16"
    text = judged.text(bits=11)
    assert "h100: the cheapest that reaches FP32 is ootomo: 3 passes at 989.4 TFLOP/s, 3.03 ms for " in text
    a, b = pair()
    poor = compare(["fp16", "egemm"], ["a100"], a, b)
    assert [row.method for row in poor.recommendations(bits=30)] == [None, None]
    assert "none reaches 30 bits; the best is egemm" in poor.text(bits=30)


def test_bf16x9_reaches_fp32_when_it_is_added_outside(judged):
    """What cuBLAS states for its emulation; one chain through a core that truncates misses it by bits."""
    reached = {row.engine: row.reached for row in judged.recommendations()}
    for device in ("a100", "h100"):
        assert set(reached[device]) == {"bf16x9:restart_every=16", "3xTF32", "ootomo"}


def test_costs_are_passes_over_the_data_sheets_rate(judged):
    """NVIDIA A100 data sheet: 312 TFLOP/s of FP16, 156 of TF32; an FP32 unit without a device has no rate."""
    costs = {record.method: record.cost for record in judged if record.requested in ("a100", "ieee")}
    assert costs["fp16"] == 1000 / 312 and costs["ootomo"] == 3000 / 312 and costs["3xTF32"] == 3000 / 156
    assert costs["highest"] is None


@pytest.mark.parametrize("row", FRAMEWORK_NAMES.values(), ids=lambda row: row.name)
def test_names_of_frameworks_are_methods(row):
    assert mpgemm.get_method(row.name) == mpgemm.get_method(row.name.lower()) == mpgemm.get_method(row.method)
    assert row.source


def test_names_in_any_case_and_with_a_hint():
    assert mpgemm.get_method("Ootomo:terms=4") == mpgemm.get_method("ootomo:terms=4")
    assert mpgemm.get_method(mpgemm.get_method("ootomo")).name == "ootomo"
    with pytest.raises(ValueError, match="did you mean 'allow_tf32'"):
        mpgemm.get_method("alow_tf32")
    with pytest.raises(ValueError, match="did you mean"):
        mpgemm.get_method("otomo")


def test_data_frames_and_short_reprs(judged):
    assert repr(judged) == "<Comparison: 13 records, 0 left out>" and "<table>" in judged._repr_html_()
    pytest.importorskip("pandas")
    assert list(judged.to_dataframe()["method"]) == [record.method for record in judged]


@pytest.mark.parametrize("exponent", [-100, 85])
def test_what_fp32_loses_is_not_reached(exponent):
    """A product beyond FP32's range: no method is recommended because it loses as much."""
    rng = np.random.default_rng(0)
    a, b = (np.ldexp(rng.standard_normal(s), exponent).astype(np.float32) for s in ((8, 16), (16, 8)))
    found = compare(["fp16", "ootomo"], ["a100"], a, b, case="x")
    assert not found.recommendations()
    assert found.remarks("x")[0].startswith("FP32 itself loses this product")


def test_bits_are_spelled():
    ones = np.ones((4, 4), np.float32)
    found = compare(["fp16"], ["a100"], ones, ones, case="x")
    cheapest = (
        "a100: the cheapest that reaches FP32 is fp16: 1 pass at 312 TFLOP/s, 3.21 ms for 10^12 operations, every bit."
    )
    assert found.remarks("x")[:2] == [cheapest, "FP32, chains of 256: every bit; NumPy's here every bit."]


# -- where there is nothing to say -------------------------------------------------------------------------------------------
def odd(value, place=(2, 3)):
    a = pair()[0].copy()
    a[place] = value
    return a


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf")])
def test_what_is_not_finite_has_no_bits_and_no_recommendation(value, shown):
    found = compare(["fp16", "ootomo"], ["a100"], odd(value), pair()[1], case="x")
    where = f"A holds 1 element that is not finite, A[2, 3] = {shown}"
    expected = f"{where}, so 4 of 20 exact results are infinite or NaN."
    advice = "No bits are given and no method is recommended; replace infinities and NaN first."
    assert found.remarks("x", 10) == [f"{expected} {advice}"]
    assert not found.recommendations(10) and all(np.isnan(record.effective_bits) for record in found)
    assert "bits" not in found.tables()[0].text().partition("\n")[2].replace("effective_bits", "").replace(
        "bits_equal", ""
    )


def test_a_product_of_nans_has_no_bits():
    text = compare(["fp16"], ["a100"], np.full((3, 4), np.nan), np.ones((4, 2))).text()
    assert "6 of 6 exact results are infinite or NaN" in text and "inf bits" not in text and "every bit" not in text
    verdict = str(mpgemm.verdict(np.full((3, 4), np.nan), np.ones((4, 2))))
    assert "6 of 6 exact results are infinite or NaN" in verdict and "every bit" not in verdict


@pytest.mark.parametrize("shape", [(0, 4, 3), (3, 4, 0)])
def test_an_empty_product_is_refused(shape):
    m, k, n = shape
    with pytest.raises(ValueError, match="the product is empty"):
        compare(["fp16", "ozaki_int8", "multiword"], ["a100"], np.ones((m, k)), np.ones((k, n)))


def test_a_zero_product_is_not_fp32_leaving_its_range():
    a, b = np.array([[1.0, 1e-8, -1, -1e-8]] * 3), np.full((4, 3), 1 / 3)
    remarks = compare(["fp64", "fp16"], ["a100"], a, b, case="x").remarks("x")
    assert remarks == [
        "The exact product is 0, so there are no leading bits to compare, only errors over |A||B| (componentwise)."
    ]
    text = str(mpgemm.verdict(a, b))
    assert "leaves its range" not in text and "The exact product is 0" in text and "FP32 not exact" in text


def test_fp32_without_a_right_bit_is_nothing_to_reach():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((6, 40)), rng.standard_normal((40, 6))
    a, b = np.hstack([a, -a]), np.vstack([b, b * (1 + 1e-10 * rng.standard_normal(b.shape))])
    found = compare(["fp64", "ootomo"], ["a100"], a, b, case="x")
    assert [row.wanted for row in found.recommendations(10)] == ["10 bits"]
    assert "The results cancel" in found.remarks("x")[0] and "FP32's error is no goal here" in found.remarks("x")[0]
    assert "FP32 itself has not one correct bit" in str(mpgemm.verdict(a, b))


def test_bits_beyond_fp32_are_told():
    rng = np.random.default_rng(1)
    found = compare(["fp64"], ["a100"], rng.standard_normal((9, 30)), rng.standard_normal((30, 9)), case="x")
    (line,) = [line for line in found.remarks("x", 50) if "50 bits" in line]
    assert "24 bits or more" not in line and re.search(r", 5[0-9]\.\d bits\.$", line)


def test_a_row_of_ones_own_is_no_published_formula():
    row = mpgemm.RecoveryMethod(name="x", title="t", formula="f", source="me")
    assert "published" not in str(row) and "source: me" in str(row)
    stated = {method.certainty for method in mpgemm.list_methods()}
    assert stated == {"published formula", "library practice", "reconstruction"}
