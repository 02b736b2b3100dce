"""`mpgemm plan` and `mpgemm simulate`: what they print, write and refuse."""

import csv
import json

import numpy as np
import pytest

from ascend.reports.calibration import Statement
from ascend.reports.published import MEASUREMENTS, comparisons
from mpgemm.cli import main
from mpgemm.cli.common.ascend_options import read_shapes


def run(capsys, *words):
    status = main([str(word) for word in words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def run_json(capsys, *words):
    status, out, err = run(capsys, *words, "--json")
    assert status == 0, err
    return json.loads(out)


# ---------------------------------------------------------------- plan


def test_plan_prints_a_table_and_the_tiling(capsys):
    status, out, err = run(
        capsys, "plan", 5632, 2816, 5632, "--kernel", "paper", "--simulate", 20, "--top", 3, "--tiling"
    )  # fmt: skip
    assert status == 0 and err == ""
    lines = out.splitlines()
    assert "nominal" in lines[0] and "2329 feasible blocks" in lines[1]
    assert lines[4].split()[:4] == ["176", "64", "176", "44"]
    assert "baseM = 176;" in out and "l1BlocksA = 44;" in out and "1036288" in out


def test_plan_json_and_csv(capsys, tmp_path):
    path = tmp_path / "plans.csv"
    words = ("--simulate", 5, "--top", 5, "--csv", path, "--explain", "--kernel", "paper")
    result = run_json(capsys, "plan", 1000, 800, 600, *words)
    assert (result["m"], result["k"], result["n"]) == (1000, 800, 600)
    assert len(result["plans"]) == 5 and result["explanation"]
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [int(row["bm"]) for row in rows] == [plan["bm"] for plan in result["plans"]]
    assert float(rows[0]["tflops"]) == result["plans"][0]["tflops"]


@pytest.mark.parametrize("operand", ["fp8", "hifloat8", "mxfp8", "mxfp4"])
def test_operands_whose_products_are_not_published_are_planned(capsys, tmp_path, operand):
    """Times and tilings in every form of output, no bits; and no dialect is said to write what it refuses."""
    words = ("plan", 128, 33, 128, "--chip", "950", "--operand", operand, "--top", 2, "--csv", tmp_path / "plans.csv")
    result = run_json(capsys, *words)
    assert result["plans"][0]["bits"] is result["plans"][0]["error_bound"] is None and result["plans"][0]["seconds"] > 0
    assert len((tmp_path / "plans.csv").read_text().splitlines()) == 3
    status, out, _ = run(capsys, *words, "--tiling")
    text = " ".join(out.split())
    assert status == 0 and "--emit pto does not write this kernel: the PTO kernel multiplies" in text
    assert "writes this kernel" not in text
    assert ("MxMatmul, with a scale of one byte for 32 products" in text) == operand.startswith("mx")
    assert run(capsys, *words, "--max-error", 1)[0] == 2


def test_a_dialect_that_writes_the_plan_is_named(capsys):
    words = (
        "plan",
        256,
        256,
        256,
        "--chip",
        "910B3",
        "--terms",
        1,
        "--layout",
        "nt",
        "--for",
        "pto",
        "--simulate",
        2,
        "--top",
        1,
    )
    assert "--emit pto FOLDER writes this kernel" in run(capsys, *words)[1]


def test_plan_with_data(capsys, tmp_path):
    rng = np.random.default_rng(1)
    a, b = rng.random((48, 2048), dtype=np.float32), rng.random((2048, 32), dtype=np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = ("--data", tmp_path / "a.npy", tmp_path / "b.npy")
    size = ("plan", 48, 2048, 32, "--rank", "analytic", "--top", 8)
    free = run_json(capsys, *size, *files)["plans"]
    errors = sorted({plan["error"] for plan in free})
    assert all(0 < error < 1e-5 for error in errors)
    limited = run_json(capsys, *size, *files, "--max-error", errors[0])["plans"]
    assert {plan["error"] for plan in limited} == {errors[0]}
    status, _, err = run(capsys, *size, *files, "--max-error", 1e-12)
    assert status == 2 and "no block keeps the error below 1e-12" in err


def test_plan_one_block(capsys):
    (plan,) = run_json(capsys, "plan", "--kernel", "paper", "--block", "192,64,192")["plans"]
    assert (plan["bm"], plan["n_fused"], plan["l0c_slots"]) == (192, 40, 1)
    status, _, err = run(capsys, "plan", "--kernel", "paper", "--block", "208,64,208")
    assert status == 2
    assert err == (
        "mpgemm plan: block (208, 64, 208) does not fit 910A (UB capacity (6 bytes for each element of C): "
        "259584 bytes needed, 253952 available): take a block within these limits\n"
    )


def test_plan_rejections(capsys):
    rows = run_json(capsys, "plan", "--rejections")["rejected"]
    assert len(rows) == 966 and all(row["reasons"] for row in rows)
    status, out, _ = run(capsys, "plan", "--rejections")
    assert status == 0 and "L0B capacity" in out


def test_plan_heat_map(capsys, tmp_path):
    assert run(capsys, "plan", 500, 500, 500, "--heat-map", "--block", "16,512,16", "--out", tmp_path)[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {f"heat_map_910A_bk512.{x}" for x in ("csv", "json", "png")}


def test_list_parameters(capsys):
    status, out, _ = run(capsys, "plan", "--list-parameters", "--chip", "910B3", "--set", "cores=10")
    assert status == 0
    cores = next(line for line in out.splitlines() if line.startswith("cores "))
    assert cores.split()[1:] == ["10", "cores", "assumed", "what-if"]


# ---------------------------------------------------------------- simulate


def test_simulate_summary(capsys):
    status, out, err = run(capsys, "simulate", "--calibrated")
    assert status == 0 and err == ""
    assert "65.30 TFLOP/s" in out and "compute bound" in out and "What the cube waits for" in out


def test_simulate_tables(capsys):
    result = run_json(
        capsys, "simulate", 1000, 800, 600, "--waterfall", "--bytes", "--sensitivity", "--sweep", "cores=16,32",
        "--block", "96,64,96",
    )  # fmt: skip
    assert result["waterfall"][-1]["tflops"] == pytest.approx(result["tflops"], rel=1e-9)
    assert {row["operand"] for row in result["byte_table"]} == {"A", "B", "C", "split"}
    assert [value for value, _ in result["sweep"]["rows"]] == [16, 32]
    status, out, _ = run(
        capsys, "simulate", 1000, 800, 600, "--waterfall", "--bytes", "--sensitivity", "--sweep", "cores=16,32"
    )
    assert status == 0
    for title in ("From the peak", "Bytes: eq. 9", "when one parameter changes", "What if cores were"):
        assert title in out


def test_simulate_files(capsys, tmp_path):
    files = {name: tmp_path / f"{name}.out.png" for name in ("gantt", "occupancy", "ping-pong", "waterfall-plot")}
    trace = tmp_path / "trace.json"
    words = [word for name, path in files.items() for word in (f"--{name}", path)]
    status, _, err = run(capsys, "simulate", 300, 300, 300, "--block", "64,64,64", "--trace", trace, *words)
    assert status == 0, err
    assert json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    data = [path.with_suffix(ending) for path in files.values() for ending in (".json", ".csv")]
    assert sorted(tmp_path.iterdir()) == sorted([trace, *files.values(), *data])
    pipes = json.loads((tmp_path / "gantt.out.json").read_text(encoding="utf-8"))["rows"]
    assert {"CUBE", "MTE1"} <= {row["pipe"] for row in pipes} and all(row["start"] <= row["end"] for row in pipes)
    used = json.loads((tmp_path / "occupancy.out.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["bytes"] >= 0 for row in used) and [row["time"] for row in used if row["buffer"] == "L0A"] == sorted(
        row["time"] for row in used if row["buffer"] == "L0A"
    )


@pytest.mark.full
def test_simulate_pictures_have_a_style(capsys, tmp_path):
    base = ("simulate", 300, 300, 300, "--block", "64,64,64", "--style")
    status, _, err = run(capsys, *base, "one-column", "--gantt", tmp_path / "g.png")
    assert status == 0, err
    assert (tmp_path / "g.pdf").read_bytes().startswith(b"%PDF") and not (tmp_path / "g.png").exists()
    assert "--style" in run(capsys, *base, "one-column")[2]


def test_simulate_all_cores_and_one(capsys):
    one = run_json(capsys, "simulate", 5632, 500, 500)
    every = run_json(capsys, "simulate", 5632, 500, 500, "--all-cores")
    # The cores' shares of the split pass differ by one element: 8 bytes, less than a cycle.
    assert every["cycles"] == pytest.approx(one["cycles"], abs=1)
    assert every["operations"] == 32 * one["operations"]


def test_simulate_what_if(capsys):
    slow = run_json(capsys, "simulate", 2000, 2000, 2000, "--set", "hbm_bytes_per_second=3e11")
    fast = run_json(capsys, "simulate", 2000, 2000, 2000)
    assert slow["tflops"] < fast["tflops"]


def test_simulate_published(capsys, monkeypatch):
    """A few of the rows; tests/ascend/test_evidence.py has all of them."""
    some, said = comparisons(MEASUREMENTS[:10]), [Statement("double buffer", "65.3", 69.1, 65.3, True)]
    monkeypatch.setattr("ascend.reports.published.comparisons", lambda: some)
    monkeypatch.setattr("ascend.reports.calibration.statements", lambda: said)
    rows = run_json(capsys, "simulate", "--published")
    assert len(rows["times"]) == 10 and rows["spread"]["predicted"]["rows"] == 5
    assert [row["calibrated"] for row in rows["statements"]] == [65.3]
    status, out, _ = run(capsys, "simulate", "--published")
    assert status == 0 and "gemm_performance" in out


def test_chip_files(capsys, tmp_path, shared):
    path = shared / "ascend_platform_config" / "Ascend910A.ini"
    from_file = run_json(capsys, "simulate", "--chip", path)
    assert from_file["tflops"] < run_json(capsys, "simulate")["tflops"]  # 1.02 TB/s against 1.2


# ---------------------------------------------------------------- bad input


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", 1, 2), "the size has 2 number(s), expected three: M K N"),
        (("plan", 0, 16, 16), "m must be at least 1, got 0"),
        (("plan", 2**30, 2**30, 2**30), "exceeds any chip's memory"),
        (("plan", "--block", "100,64,96"), "bm must be a positive multiple of 16 (16x16 fractals), got 100"),
        (("plan", "--block", "96,64"), "a block is BM,BK,BN"),
        (("plan", "--chip", "910B"), "910B1, 910B2, 910B3, 910B4"),
        (("plan", "--chip", "H100"), "unknown chip 'H100'"),
        (("plan", "--chip", "missing.ini"), "No such file"),
        (("plan", "--set", "speed=3"), "no parameter 'speed'"),
        (("plan", "--set", "cores"), "expected PARAMETER=VALUE"),
        (("plan", "--set", "cores=many"), "cores must be a number (cores), got 'many'"),
        (("plan", "--chip", "310", "--calibrated"), "no calibrated parameters"),
        (("plan", 64, 64, 64, "--max-error", "1e-12"), "no block keeps the error below 1e-12"),
        (("plan", "--chip", "910B5"), "did you mean 910B"),
        (
            ("plan", "--chip", "910A", "--operand", "bf16", "--terms", "1"),
            "multiplies fp16, int8, got bf16",
        ),
        (
            ("plan", "--chip", "910B3", "--operand", "bf16", "--terms", "3"),
            "got 3 terms of bf16 operands, but only fp16 operands are split into words",
        ),
        (("plan", "--shapes", "/nowhere/at/all.txt"), "No such file"),
        (("plan", 64, 64, 64, "--chip", "910A", "--chip", "910B3", "--pareto"), "--pareto takes one shape"),
        (("plan", "--explain"), "add --kernel paper"),
        (("plan", 10**7, 10**4, 1), "needs 373 GiB"),
        (("plan", 64, 64, 64, "--kernel", "paper", "--split", "2"), "does not split k"),
        (("simulate", "--kernel", "grid", "--grid", "8,8"), "a grid is M,K,N"),
        (("simulate", "--kernel", "grid", "--grid", "8,1,8"), "a grid of 8x1x8 has 64 cores, but 910A has 32"),
        (
            ("simulate", 64, 64, 64, "--kernel", "grid", "--split", "9", "--block", "16,16,16"),
            "got 9 slices of k, but k = 64 has only 4 blocks",
        ),
        (("simulate", "--split", "2"), "divides the rows of C among a grid of 32x1x1 cores"),
        (("simulate", "--kernel", "grid", "--swizzle", "3"), "a swizzle is OFFSET,DIRECTION"),
        (("simulate", "--kernel", "grid", "--grid", "2,1,2", "--swizzle", "1,0"), "but A stays in L1"),
        (("simulate", "--kernel", "grid", "--swizzle", "aswt", "--split", "2"), "cuts tiles of C and not k"),
        (("simulate", "--kernel", "grid", "--bytes"), "counts the bytes of kernel='paper' only, got kernel='grid'"),
        (("simulate", "--kernel", "vector"), "the vector kernel computes 1 term of fp32 or fp16 operands"),
        (("simulate", "--calibrate", "/nowhere/at/all.csv"), "No such file"),
        (("plan", "--top", "0"), "at least 1"),
        (("simulate", 16, -16, 16), "k must lie between 1 and"),
        (("simulate", "--block", "304,64,304"), "overflows L0A of 910A: 77824 bytes needed, 65536 available"),
        (("simulate", "--block", "17,64,16"), "bm must be a positive multiple of 16 (16x16 fractals), got 17"),
        (("simulate", "--operand", "fp32", "--terms", "1"), "multiplies fp16, int8, got fp32"),
        (("simulate", "--sweep", "cores"), "--sweep got 'cores', expected PARAMETER=V1"),
        (("simulate", 2**31 - 1, 16, 16, "--block", "16,16,16"), "m = 2147483647 makes 134217728 blocks of 16"),
        (("simulate", 2**24, 2**20, 16, "--block", "16,16,16"), "take larger blocks"),
        (("simulate", "--trace", "/nowhere/at/all.json"), "No such file"),
        (("plan", 64, 64, 64, "--pareto", "--terms", "3"), "--terms goes without --pareto"),
        (("plan", 64, 64, 64, "--kernel", "paper", "--for", "pto"), "got --kernel paper: leave --kernel out"),
        (
            ("plan", 64, 64, 64, "--rank", "traffic", "--simulate", "3"),
            "got --rank traffic, which simulates nothing: leave --simulate out",
        ),
        (
            ("plan", 64, 64, 64, "--chip", "910A", "--chip", "910B3", "--tiling"),
            "--tiling takes one shape and one --chip",
        ),
        (("plan", 64, 64, 64, "--batch", "3", "--top", "2"), "--top goes without --batch"),
        (("simulate", "--published", "--chip", "910B3"), "--chip goes with the simulation of one schedule"),
        (("plan", "--heat-map", "--top", "2"), "--top goes without --heat-map"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, words, message):
    status, out, err = run(capsys, *words)
    assert status == 2 and out.count("Traceback") == 0
    assert message in err and err.count("\n") == 1 and err.startswith(f"mpgemm {words[0]}: ")


def test_plan_compares_ways(capsys):
    """Nothing says which operands: the fastest that reaches FP32's bits, and the others; a named way is not compared."""
    found = run_json(capsys, "plan", 32, 512, 700, "--chip", "910B3", "--simulate", "2")
    assert [row["way"] for row in found["advice"]] and found["operand"] == "fp32" and found["terms"] == 1
    assert (
        run_json(capsys, "plan", 32, 512, 700, "--chip", "910B3", "--terms", "3", "--simulate", "2")["advice"] is None
    )
    status, _, err = run(capsys, "plan", 32, 512, 700, "--terms", "3", "--reach", "12")
    assert status == 2 and "--reach itself chooses terms" in err and "got --terms: leave" in err


def test_plan_begins_with_the_plan_that_is_advised(capsys):
    """Where the fastest plan of the way lacks FP32's bits, the table, --tiling and --emit have the one that reaches them."""
    found = run_json(capsys, "plan", 256, 4096, 256, "--chip", "910B3", "--simulate", "2", "--top", "3")
    chosen = next(row for row in found["advice"] if row["reaches"])
    same = [row for row in found["advice"] if row["way"] == chosen["way"]]
    assert [row["reaches"] for row in same] == [False, True]  # in shorter chains, slower
    first, *others = found["plans"]
    assert first["seconds"] == chosen["seconds"] and first["bits"] == chosen["bits"]
    assert all(row["bits"] >= chosen["bits"] - 0.75 for row in others)


def test_plan_says_why_rows_are_not_in_the_order_of_their_times(capsys):
    words = ("plan", 1, 2048, 512, "--chip", "910B3", "--terms", "1", "--simulate", "4")
    for top in (1, 10):
        seconds = [row["seconds"] for row in run_json(capsys, *words, "--top", str(top))["plans"]]
        said = "count as equal" in run(capsys, *words, "--top", str(top))[1]
        assert said == (seconds != sorted(seconds)) == (top == 10)


def test_a_named_operand_has_one_term(capsys):
    """Who names fp16 gets a product of FP16, not the FP32 product of three terms; --terms and --mode say that one."""
    for words, terms in (((), 1), (("--terms", "3"), 3), (("--mode", "fused"), 3)):
        found = run_json(capsys, "plan", 64, 512, 64, "--operand", "fp16", *words, "--simulate", "2", "--top", "1")
        assert (found["operand"], found["terms"]) == ("fp16", terms)


def test_plan_says_where_the_vector_units_take_the_place_of_terms(capsys):
    words = ("plan", 1, 2048, 512, "--chip", "910B3", "--terms", "3", "--simulate", "2", "--top", "1")
    assert "--mode fused plans for the cube alone" in run(capsys, *words)[1]
    assert "vector units" not in run(capsys, *words, "--mode", "fused")[1]


def test_plan_batch_and_target(capsys):
    batch = run_json(capsys, "plan", 64, 64, 64, "--batch", "40", "--terms", "1", "--chip", "910B3")
    assert (
        batch["products"] == 40
        and batch["groups"] == 20
        and all(o["seconds"] >= batch["seconds"] for o in batch["others"])
    )
    grouped = run_json(capsys, "plan", 256, 64, "--grouped", "7,33", "--terms", "1", "--chip", "910B3")
    assert [row["m"] for row in grouped["plans"]] == [7, 33]
    status, out, _ = run(capsys, "plan", 512, 512, 512, "--terms", "1", "--chip", "910B3", "--for", "pto", "--top", "1")
    assert status == 0 and "constexpr uint32_t stepKa" in out and "rectangles" in out
    for words, message in (
        (("plan", 64, 64, "--batch", "2"), "with --batch the size is M K N"),
        (("plan", 64, 64, 64, "--grouped", "3"), "with --grouped the size is K N"),
        (("plan", 64, 64, "--grouped", "3,x"), "expected integers M1,M2"),
        (("plan", 64, 64, 64, "--terms", "1", "--presplit", "b"), "does not split"),
    ):
        status, _, err = run(capsys, *words)
        assert status == 2 and message in err and err.count("\n") == 1


def test_a_named_block_is_dealt_as_the_target_deals(capsys):
    for target, placed in (("pto", "rectangles"), ("catlass", "order")):
        words = ("plan", 300, 300, 300, "--terms", "1", "--block", "64,64,64", "--for", target)
        status, out, err = run(capsys, *words)
        assert status == 0, err
        assert placed in out and "the kernel that these fields describe" not in out


def test_single_beside_double_buffers(capsys, tmp_path):
    options = ("--kernel", "grid", "--terms", "1", "--block", "64,64,64")
    status, _, _ = run(capsys, "simulate", 256, 256, 256, *options, "--ping-pong", tmp_path / "p.png")
    assert status == 0 and (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_of_shapes_is_read_line_by_line(tmp_path):
    path = tmp_path / "shapes.txt"
    path.write_text("# of a layer\nup 8, 16, 32\n\n64 128 256  # no name\n")
    assert read_shapes(path) == [("up", (8, 16, 32)), ("64 x 128 x 256", (64, 128, 256))]
    for text, message in (("8 16", "line 1: expected"), ("# nothing\n", "no shapes")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_shapes(path)


def test_a_chip_with_fixpipe_runs_a_grid_where_no_kernel_is_named(capsys):
    """The paper's kernel is for cores whose C goes through UB: 0.724 ms where the grid takes 0.555."""
    size = ("simulate", 4096, 4096, 4096, "--terms", 1, "--block", "128,64,256")
    own, grid, paper = (
        run_json(capsys, *size, "--chip", "910B3", *kernel)["seconds"]
        for kernel in ((), ("--kernel", "grid"), ("--kernel", "paper"))
    )
    assert own == grid < 0.8 * paper
    coupled = ("simulate", 1024, 1024, 1024, "--chip", "910A")
    assert run_json(capsys, *coupled)["seconds"] == run_json(capsys, *coupled, "--kernel", "paper")["seconds"]


def test_a_profile_without_busy_ratios_says_so_once(capsys, tmp_path):
    profile = tmp_path / "op_summary.csv"
    rows = [
        f'Op{i},MatMulV3,"{128 * i},512;512,1024","FLOAT16;FLOAT16","ND;ND","{128 * i},1024",500.0' for i in (1, 2, 3)
    ]
    profile.write_text(
        "\n".join(
            ["Op Name,OP Type,Input Shapes,Input Data Types,Input Formats,Output Shapes,Task Duration(us)", *rows]
        )
        + "\n"
    )
    status, out, err = run(capsys, "simulate", "--measured", profile, "--chip", "910B3")
    text = " ".join(out.split())
    assert status == 0, err
    assert text.count("lacks the busy times of pipes") == 1 and "3 product(s) differ by 5% or more" in text
    assert "no pipe's busy time explains it" not in text
