"""`mpgemm predict`, `whodunit`, `diff` and `invariance` on what an H100's libraries were recorded to run."""

import json
from pathlib import Path

import numpy as np
import pytest

from mpgemm.cli import main
from mpgemm.experiments.library_orders import library_orders
from mpgemm.experiments.whodunit import whodunit
from mpgemm.recovery.engines import ieee_engine
from tensorcore_models import libraries
from tensorcore_models.libraries.recorded_products import digest, load_rows, operands
from tensorcore_models.orders.order import uncovered

SHIPPED = str(Path(__file__).parents[1] / "vectors" / "h100_products.json")
ROWS = {row["name"]: row for row in load_rows(SHIPPED)}


def saved(name, folder, monkeypatch):
    """A recorded row, with its operands as files of the working folder."""
    monkeypatch.chdir(folder)
    a, b, scales = operands(ROWS[name])
    for file, x in {"A": a, "B": b, **scales}.items():
        np.save(f"{file}.npy", x)
    return ROWS[name]


@pytest.mark.parametrize(
    ("name", "more"),
    (
        ("mm/tf32//16x16x256/tn", ["--operands", "tf32"]),
        ("mm/fp64//16x16x256/nn", []),
        ("mm/fp16/reduced/64x64x64/nt", ["--rows", "mm/fp16/*"]),
        ("rowwise/slow/64x64x64", ["--rows", "rowwise*", "--scale-a", "scale_a.npy", "--scale-b", "scale_b.npy"]),
        ("scaled/e4e5/slow/float16/64x64x64", ["--rows", "scaled/*", "--scale", "1.5"]),
    ),
)
def test_predict_by_profile_gives_the_recorded_matrix(name, more, tmp_path, monkeypatch, capsys):
    row = saved(name, tmp_path, monkeypatch)
    assert main(["predict", "A.npy", "B.npy", "--gpu", "h100", "--profile", SHIPPED, *more, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sha256"] == row["sha256"]
    assert name in facts["assumptions"][0]


@pytest.mark.parametrize(
    ("name", "more"),
    (
        ("mm/tf32//16x16x256/tn", ["--operands", "tf32", "--config", "algoId=21,stages=16x6,numSplitsK=24,layout=tn"]),
        ("mm/fp64//16x16x256/nn", ["--config", "ALGO_ID=22,STAGES_ID=11,SPLITK_NUM=16,layout=nn"]),
        ("mm/fp32//100x300x700/nn", ["--config", "algoId=20,stages=8x5,numSplitsK=10,layout=nn"]),
    ),
)
def test_cublas_13_0_knows_the_formats_of_the_recording(name, more, tmp_path, monkeypatch, capsys):
    row = saved(name, tmp_path, monkeypatch)
    assert main(["predict", "A.npy", "B.npy", "--gpu", "h100", "--library", "cublas-13.0", *more, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sha256"] == row["sha256"]


def test_bad_profiles_are_one_line(tmp_path, monkeypatch, capsys):
    saved("mm/tf32//16x16x256/tn", tmp_path, monkeypatch)
    common = ["predict", "A.npy", "B.npy", "--gpu", "h100"]
    library = [*common, "--library", "cublas-13.0", "--config"]
    Path("p.json").write_text("[]")
    for words, message in (
        ([*common, "--profile", SHIPPED, "--rows", "nothing*"], "has no row of m 16, k 256, n 16 named like"),
        ([*common, "--profile", "p.json"], "expected a list of objects with m, n, k, kernels"),
        (
            [*common, "--profile", SHIPPED, "--operands", "tf32", "--out-format", "fp16"],
            "none with operands of tf32 and a result of fp16",
        ),
        ([*common, "--profile", SHIPPED, "--library", "cutlass"], "--profile"),
        ([*common, "--rows", "nt"], "goes with --profile"),
        (["predict", "A.npy", "B.npy", "--gpu", "a100", "--profile", SHIPPED], "assume='h100'"),
        ([*library, "algoId=20,stages=8x5,numSplitsK=2"], "layout of its operands, which is not known"),
        ([*library, "algoId=20,tiles=3"], "config has the field 'tiles'"),
        (
            [*library, "algoId=21,stages=16x6", "--operands", "tf32", "--input-rounding", "rz"],
            "leave --input-rounding out",
        ),
    ):
        assert main(words) == 2, words
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1, error


def test_a_profile_of_another_gpu_is_predicted_where_that_is_said(tmp_path, monkeypatch, capsys):
    row = saved("mm/fp64//16x16x256/nn", tmp_path, monkeypatch)
    words = ["predict", "A.npy", "B.npy", "--gpu", "a100", "--profile", SHIPPED, "--assume", "h100", "--json"]
    assert main(words) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sha256"] == row["sha256"]
    assert "gpu 'a100' follows the rules recorded on an H100" in facts["assumptions"][1]


def test_cutlass_says_that_its_tile_matters(tmp_path, monkeypatch, capsys):
    saved("mm/bf16/reduced/100x300x700/tn", tmp_path, monkeypatch)
    words = ["predict", "A.npy", "B.npy", "--gpu", "h100", "--operands", "bf16", "--library", "cutlass"]
    assert main(words) == 0
    assert "--config does not state it" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--config", "tile_k=64"]) == 0
    assert "nobody named" not in capsys.readouterr().out


def test_diff_and_whodunit_by_profile(tmp_path, monkeypatch, capsys):
    row = saved("mm/fp32//17x512x1000/nt", tmp_path, monkeypatch)
    a, b, _ = operands(row)
    c = libraries.from_profile(row).product(a, b)
    other = ieee_engine("fp32").gemm(a, b)
    np.save("C.npy", c)
    np.save("D.npy", other)
    files = ["A.npy", "B.npy", "C.npy", "D.npy"]
    words = ["diff", *files, "--gpus", "h100", "h100", "--profiles", SHIPPED, SHIPPED, "--rows", "mm/fp32*"]
    assert main([*words, "--json"]) == 0
    sides = json.loads(capsys.readouterr().out)["sides"]
    assert [side["explained"] for side in sides] == [True, False]
    few = np.ascontiguousarray(b[:, :40])
    answer = whodunit(
        a[:4], few, np.ascontiguousarray(c[:4, :40]), device="h100", recipes=[libraries.from_profile(row).recipe]
    )
    assert answer.settled and len(answer.by_who()) == 2
    assert {"tiles of 8 k dealt in turn to 9 slices"} <= {s.how for s in answer.exact}


def test_invariance_by_profile(tmp_path, capsys):
    kernel = "nvjet_sm90_hsh_64x8_64x16_{}_v_bz{}_NNT"
    algo = "algoId=66 stages=MATMUL_STAGES_64xAUTO"
    common = {"n": 64, "k": 1024, "operands": "fp16", "dtype": "torch.float16", "layout": "nn", "cuda": "13.0"}
    rows = [
        {**common, "m": 1, "kernels": [kernel.format("4x1", "")], "configuration": algo},
        {**common, "m": 2, "kernels": [kernel.format("2x1", "")], "configuration": algo},
        {**common, "m": 8, "kernels": [kernel.format("2x1", "_splitK")], "configuration": f"{algo} numSplitsK=4"},
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert main(["invariance", "--gpu", "h100", "--profile", str(path), "--json"]) == 0
    (weight,) = json.loads(capsys.readouterr().out)["weights"]
    assert [step["bits_change"] for step in weight["batches"]] == [False, False, True]
    path.write_text("\n".join(map(json.dumps, [*rows, {**rows[2], "m": 1}])))
    assert main(["invariance", "--gpu", "h100", "--profile", str(path)]) == 2
    assert "recorded with two recipes" in capsys.readouterr().err


# -- whodunit without a profile ------------------------------------------------------------------------------------------------
@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("algo", "how", "row"),
    (
        ("algoId=55 stages=8x3 numSplitsK=5", "tiles of 8 k dealt in turn to 5 slices", {}),
        ("algoId=20 stages=8x5 numSplitsK=7 layout=nn", "7 slices of 60 k", {"k": 404}),
        ("algoId=13 customOption=100", "16 lanes of 26 k, joined as a butterfly", {"m": 1, "n": 300}),
        ("algoId=13 customOption=11", "16 lanes of 1 k in chunks of 32, joined left to right", {"m": 1, "n": 300, "k": 999}),
    ),
)  # fmt: skip
def test_whodunit_names_an_h100s_cores_and_order(algo, how, row):
    size = {"m": 12, "n": 30, "k": 404, **row}
    fields = dict(part.split("=") for part in algo.split())
    recipe = libraries.configured("h100", "13.0", **size, format="fp32", out_format="fp32", config=fields)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((size["m"], size["k"])).astype(np.float32)
    b = rng.standard_normal((size["k"], size["n"])).astype(np.float32)
    c = recipe.gemm_bits(a.view(np.uint32), b.view(np.uint32)).view(np.float32)
    answer = whodunit(a, b, c, device="h100")
    assert answer.settled and answer.untried > 1000
    assert {s.who for s in answer.exact} == {"hopper:FP32 cores"}
    assert how in {s.how for s in answer.exact}, [s.how for s in answer.exact]


def test_library_orders_take_every_k_once():
    for k in (64, 1000, 1056):
        for engine in (ieee_engine("fp32"), ieee_engine("fp64")):
            orders = [order for _, order, _ in library_orders(engine, (1, k, 8))]
            assert len(orders) == len(set(orders)) > 20
            assert not any(uncovered(order, k).size for order in orders)


def test_int8_and_fp8_of_cublas_13_0(tmp_path, monkeypatch, capsys):
    row = saved("scaled/e4e5/slow/float16/64x64x64", tmp_path, monkeypatch)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (8, 40), np.int8), rng.integers(-128, 128, (40, 5), np.int8)
    np.save("I.npy", a)
    np.save("J.npy", b)
    common = ["--gpu", "h100", "--library", "cublas-13.0", "--config"]
    assert main(["predict", "I.npy", "J.npy", *common, "algoId=64", "--out", "K.npy"]) == 0
    np.testing.assert_array_equal(np.load("K.npy"), a.astype(np.int32) @ b.astype(np.int32))
    capsys.readouterr()
    encodings = operands(row)[0]
    results = []
    for more in ("", ",fast_accumulation=true"):
        words = [
            "predict",
            "A.npy",
            "A.npy",
            *common,
            f"algoId=66,stages=128xAUTO{more}",
            "--operands",
            "e4m3fn",
            "--scale",
            "1.5",
        ]
        assert main([*words, "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out)["sha256"])
    fast = libraries.scaled_mm(encodings, encodings, 0.5, 3.0, device="h100", fast_accumulation=True)
    slow = libraries.scaled_mm(encodings, encodings, 0.5, 3.0, device="h100")
    assert results == [digest(slow), digest(fast)]
