"""`mpgemm predict`, `mpgemm diff` and `mpgemm invariance`."""

import json

import numpy as np
import pytest
from amd_cases import FOLDER, GEMM

import tensorcore_models as tcm
from mpgemm.cli import main
from tensorcore_models import libraries
from tensorcore_models.libraries.recorded import FORMAT

NVJET = {"ALGO_ID": 66, "STAGES_ID": 35, "SPLITK_NUM": 1, "REDUCTION_SCHEME": 2}
CHOICES = (
    (1, {"ALGO_ID": 13, "CUSTOM_OPTION": 42}), (8, {**NVJET, "SPLITK_NUM": 4}), (64, NVJET), (128, {**NVJET, "TILE_ID": 3}),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("A.npy", rng.standard_normal((8, 1024)).astype(np.float16))
    np.save("B.npy", rng.standard_normal((1024, 40)).astype(np.float16))
    np.save("C.npy", np.zeros((8, 40), np.float16))
    record(tmp_path / "chosen.json", CHOICES)
    return tmp_path


def record(path, choices):
    common = {"k": 1024, "n": 40, "format": "fp16", "out_format": "fp16"}
    path.write_text(json.dumps({
        "format": FORMAT, "device": "h100", "cublaslt": "13.1.1", "workspace_bytes": 2**25,
        "records": [{"m": m, **common, "config": config} for m, config in choices],
    }))  # fmt: skip


def operands():
    return np.load("A.npy").view(np.uint16), np.load("B.npy").view(np.uint16)


def test_predict_by_configuration_and_by_recording(folder, capsys):
    common = ["predict", "A.npy", "B.npy", "--gpu", "h100", "--library", "cublaslt-13.1"]
    config = "ALGO_ID=66,STAGES_ID=35,SPLITK_NUM=4,REDUCTION_SCHEME=2"
    assert main([*common, "--config", config, "--out", "C.npy"]) == 0
    text = capsys.readouterr().out
    assert "(4 parts, left to right)" in text and "wrote C.npy" in text
    recipe = libraries.cublaslt("h100", "13.1", m=8, k=1024, n=40, format="fp16", config={**NVJET, "SPLITK_NUM": 4})
    want = recipe.gemm_bits(*operands(), out_format="fp16")
    np.testing.assert_array_equal(np.load("C.npy").view(np.uint16), want)
    assert main([*common, "--recorded", "chosen.json", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["recipe"]["chains"] == 4 and facts["recipe"]["lost_k"] == []
    assert facts["first"] == float(want.view(np.float16)[0, 0])


KERNEL = ["--kernel", str(FOLDER / "fp16-kpack2.s")]
LAUNCHED, SHORT = (
    ["--arguments", f"fp16:64x{k}", f"fp16:{k}x64", "fp32:64x64", "64", "64", str(k)] for k in (1024, 64)
)


@pytest.mark.full  # 2 s and more: a kernel is read in two sizes
def test_predict_in_the_order_of_a_kernel(folder, capsys):
    """For operands of other m and n than those that the kernel was read with."""
    common = ["predict", "A.npy", "B.npy", *KERNEL, *LAUNCHED]
    assert main([*common, "--out", "C.npy"]) == 0
    assert "assumed: a block has 256 threads" in capsys.readouterr().out
    a, b = operands()
    want = GEMM["fp16-kpack2"].predicted(a, b)
    np.testing.assert_array_equal(np.load("C.npy").view(np.uint32), want)
    assert (want != GEMM["fp16-kpack2"].engine.gemm_bits(a, b)).mean() > 0.2
    assert main([*common, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["out_format"] == "fp32" and facts["recipe"]["engine"] == "cdna3:v_mfma_f32_32x32x8_f16"


@pytest.mark.parametrize(("words", "match"), [
    (KERNEL, "--kernel needs --arguments"),
    ([*KERNEL, *SHORT, "--operands", "bf16", "--input-rounding", "rne"], "gemm multiplies fp16 by fp16, but A and B "
    "are bf16"),
    ([*KERNEL, *SHORT, "--out-format", "fp16"], "the output format fp16 is not known; known: fp32"),
    ([*KERNEL, *SHORT, "--scale", "2"], "--scale goes without --kernel"),
    ([*KERNEL, *SHORT], "the recipe has k = 64"),
    (["--gpu", "h100", "--grid", "2"], "--grid goes with --kernel"),
    ([], "one of the arguments --gpu --kernel is required"),
    (["--gpu", "h100", *KERNEL], "not allowed with argument"),
])  # fmt: skip
def test_what_predict_does_not_take_of_a_kernel(words, match, folder, capsys):
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["predict", "A.npy", "B.npy", *words]))
    assert ended.value.code == 2 and match in capsys.readouterr().err


def test_predict_reports_values_that_are_left_out(folder, capsys):
    np.save("A.npy", np.ones((1, 11528), np.float16))
    np.save("B.npy", np.ones((11528, 8), np.float16))
    arguments = [
        "--gpu",
        "h100",
        "--library",
        "cublaslt-13.1",
        "--config",
        "ALGO_ID=66",
        "STAGES_ID=35",
        "SPLITK_NUM=9",
    ]
    assert main(["predict", "A.npy", "B.npy", *arguments, "--out-format", "fp32"]) == 0
    text = capsys.readouterr().out
    assert "first element 11520 " in text and "warning: this kernel omits the last 8 products of each sum" in text


def test_predict_fp8_encodings(folder, capsys):
    a, b = np.full((4, 64), 0x38, np.uint8), np.full((64, 4), 0x40, np.uint8)  # 1 and 2
    np.save("A.npy", a)
    np.save("B.npy", b)
    arguments = [
        "--gpu",
        "rtx4060",
        "--library",
        "scaled_mm",
        "--config",
        "fast_accumulation=true",
        "--operands",
        "e4m3fn",
    ]
    assert main(["predict", "A.npy", "B.npy", *arguments, "--scale", "0.5", "--out", "C.npy"]) == 0
    assert "first element 64 " in capsys.readouterr().out and np.load("C.npy").dtype == np.uint16


def test_formats_have_one_spelling_in_all_commands(folder, capsys):
    """e4m3 is OCP's e4m3fn, which has no infinity: 0x78 is 256 there, infinity in an IEEE-like format."""
    np.save("A.npy", np.full((4, 64), 0x78, np.uint8))
    np.save("B.npy", np.full((64, 4), 0x38, np.uint8))
    common = ["A.npy", "B.npy", "--operands", "E4M3", "--out-format", "f32"]
    assert main(["predict", *common, "--gpu", "rtx4060", "--library", "scaled_mm", "--out", "C.npy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["format"], facts["out_format"], facts["first"]) == ("e4m3fn", "fp32", 64 * 256.0)
    diff = ["diff", *common[:2], "C.npy", "C.npy", *common[2:], "--gpus", "l40s", "h100", "--json"]
    assert main(diff) == 0
    assert all(side["explained"] for side in json.loads(capsys.readouterr().out)["sides"])
    assert main(["predict", *common[:2], "--operands", "fp8", "--gpu", "rtx4060"]) == 2
    assert "'fp8' stands for several formats: give one of e4m3fn, e5m2" in capsys.readouterr().err


def test_predict_draws_the_order(folder, capsys):
    config = "ALGO_ID=66,STAGES_ID=35,SPLITK_NUM=4,REDUCTION_SCHEME=2"
    common = ["predict", "A.npy", "B.npy", "--gpu", "h100", "--library", "cublaslt-13.1", "--config", config]
    assert main([*common, "--picture", "order.svg"]) == 0
    assert "wrote order.svg" in capsys.readouterr().out
    assert "k 256:512" in (folder / "order.svg").read_text()


def test_diff_says_where_and_why(folder, capsys):
    a, b = operands()
    for name, device in (("C1.npy", "a100"), ("C2.npy", "h100")):
        np.save(name, libraries.cutlass(device, k=1024).gemm_bits(a, b, out_format="fp32").view(np.float32))
    common = ["diff", "A.npy", "B.npy", "C1.npy", "C2.npy", "--gpus", "a100", "h100", "--out-format", "fp32"]
    assert main([*common, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [side["explained"] for side in facts["sides"]] == [True, True]
    assert all("split_k 1" in side["recipe"] for side in facts["sides"])
    assert facts["differ"] > 0 and "fraction bits" in facts["why"][0]
    i, j, stop = facts["first"]["row"], facts["first"]["column"], facts["part_at"]["k"]
    halves = [
        libraries.cutlass(d, k=stop).gemm_bits(a[i : i + 1, :stop], b[:stop, j : j + 1]).view(np.float32)
        for d in ("a100", "h100")
    ]
    assert [float(x[0, 0]) for x in halves] == facts["part_at"]["sums"] and halves[0] != halves[1]
    assert main(common) == 0
    assert "the sums differ after the first" in capsys.readouterr().out


def test_diff_says_when_nothing_explains_a_result(folder, capsys):
    a, b = operands()
    good = libraries.cutlass("a100", k=1024).gemm_bits(a, b, out_format="fp32").view(np.float32)
    np.save("C1.npy", good)
    np.save("C2.npy", good + np.float32(1))
    assert main(["diff", "A.npy", "B.npy", "C1.npy", "C2.npy", "--gpus", "a100", "a100", "--out-format", "fp32"]) == 0
    text = capsys.readouterr().out
    assert "a100: explained: 320 of 320" in text and "a100: NOT explained" in text and "another kernel" in text


def test_diff_names_every_recipe_that_explains_a_result(folder, capsys):
    """Zeros tell no order: none is picked."""
    np.save("A.npy", np.zeros((8, 1024), np.float16))
    np.save("C.npy", np.zeros((8, 40), np.float16))
    assert main(["diff", "A.npy", "B.npy", "C.npy", "C.npy", "--gpus", "a100", "h100", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["sides"][0]["also"]) > 5 and facts["differ"] == 0


def test_invariance(folder, capsys):
    assert main(["invariance", "--recorded", "chosen.json", "--json"]) == 0
    (weight,) = json.loads(capsys.readouterr().out)["weights"]
    assert weight["invariant"] is False
    assert [step["m"] for step in weight["batches"]] == [1, 8, 64, 128]
    assert [step["bits_change"] for step in weight["batches"]] == [False, True, True, False]
    assert "4 parts" in weight["batches"][2]["changes"][0]
    assert main(["invariance", "--recorded", "chosen.json"]) == 0
    assert "rows change their bits with m" in capsys.readouterr().out
    record(folder / "chosen.json", CHOICES[2:])
    assert main(["invariance", "--recorded", "chosen.json"]) == 0
    assert "predicted: rows keep their bits at every recorded m" in capsys.readouterr().out
    record(folder / "chosen.json", [*CHOICES[2:], (256, {"ALGO_ID": 41})])
    assert main(["invariance", "--recorded", "chosen.json"]) == 0
    text = capsys.readouterr().out
    assert "not known for every m" in text and "ALGO_ID 41" in text


def test_invariance_of_configurations_given_inline(folder, capsys):
    configs = [f"{m}:{','.join(f'{name}={value}' for name, value in config.items())}" for m, config in CHOICES]
    inline = ["--gpu", "h100", "--library", "torch.matmul-13.1", "--shape", "1024", "40", "--config", *configs]
    assert main(["invariance", *inline, "--json"]) == 0
    given = json.loads(capsys.readouterr().out)
    assert main(["invariance", "--recorded", "chosen.json", "--json"]) == 0
    recorded = json.loads(capsys.readouterr().out)
    assert given["weights"] == recorded["weights"] and given["status"] == recorded["status"] == "predicted"


def test_calls_are_what_they_call_and_predictions_are_called_so(folder, capsys):
    config = ["--config", "ALGO_ID=66,STAGES_ID=35"]
    texts = []
    for name in ("cublaslt-13.1", "cublas-13.1", "torch.matmul-13.1"):
        assert main(["predict", "A.npy", "B.npy", "--gpu", "h100", "--library", name, *config]) == 0
        texts.append(capsys.readouterr().out)
    assert (
        texts[0] == texts[1] == texts[2]
        and "predicted result:" in texts[0]
        and "results of the recipe are predicted" in texts[0]
    )


def test_help_says_what_the_recorded_choices_need(capsys):
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    assert "pip install --no-deps mmaemu" in " ".join(capsys.readouterr().out.split())


PREDICT = ["predict", "A.npy", "B.npy", "--gpu", "h100"]
INLINE = ["invariance", "--gpu", "h100", "--library", "cublaslt-13.1", "--shape", "1024", "40"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    (
        ([*PREDICT, "--library", "cublaslt-13.1"], "name the kernel with --config"),
        ([*PREDICT, "--library", "cublaslt"], "names no version"),
        ([*PREDICT, "--library", "mkl"], "unknown library 'mkl'"),
        (PREDICT, "on h100: give --library with one of these names. cublaslt (which cublas, torch.matmul"),
        (
            ["predict", "A.npy", "B.npy", "--gpu", "a100"],
            "scaled_mm (which torch._scaled_mm call): not possible on a100",
        ),
        (
            [*PREDICT, "--library", "torch.matmul"],
            "names no version of cuBLASLt, which it calls: add one, such as torch.matmul-13.1",
        ),
        ([*PREDICT, "--library", "cublas-13.1"], "cublaslt_heuristic --device h100"),
        ([*PREDICT, "--library", "torch._scaled_mm"], "scaled_mm takes FP8 operands"),
        (["invariance"], "missing --gpu, --library, --shape, --config: give"),
        (
            ["invariance", "--recorded", "chosen.json", "--gpu", "h100"],
            "got --recorded and --gpu, but the recording states",
        ),
        ([*INLINE, "--config", "ALGO_ID=66"], "expected M:FIELD=VALUE"),
        ([*INLINE, "--config", "1:ALGO_ID=66", "1:ALGO_ID=66"], "gives m 1 twice"),
        ([*INLINE, "--config", "1:ALGO_ID=66,STAGES_ID=35"], "no weight matrix with two values of m"),
        ([*PREDICT, "--library", "cublaslt-13.1", "--config", "ALGO_ID=x"], "expected an integer"),
        ([*PREDICT, "--library", "cublaslt-13.1", "--config", "66"], "expected FIELD=VALUE"),
        ([*PREDICT, "--library", "cublaslt-13.1", "--config", "ALGO_ID=41"], "known: 11, 12, 13"),
        ([*PREDICT, "--library", "cutlass", "--config", "tile=3"], "expected one of tile_k"),
        ([*PREDICT, "--library", "cutlass", "--recorded", "chosen.json"], "--recorded FILE goes with"),
        ([*PREDICT, "--library", "cublaslt-13.1", "--recorded", "nowhere.json"], "nowhere.json"),
        (["predict", "A.npy", "A.npy", "--gpu", "h100"], "as many columns of A as rows of B"),
        (["predict", "A.npy", "B.npy", "--gpu", "h999"], "unknown architecture 'h999'"),
        ([*PREDICT, "--operands", "e4m3fn"], "not representable"),
        (["diff", "A.npy", "B.npy", "A.npy", "A.npy", "--gpus", "a100", "h100"], "expected (8, 40)"),
        (["diff", "A.npy", "B.npy", "C.npy", "C.npy", "--gpus", "a100", "h100", "--configs", "a=1", ""], "goes with"),
        (["invariance", "--recorded", "A.npy"], "not JSON"),
    ),
)
def test_bad_input_is_one_line(folder, capsys, arguments, message):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.startswith(f"mpgemm {arguments[0]}: ")


def test_invariance_knows_the_gpus_of_the_catalogue(capsys):
    words = [
        "--library",
        "cublaslt-13.1",
        "--shape",
        "512",
        "512",
        "--config",
        "1:ALGO_ID=66,STAGES_ID=35",
        "64:ALGO_ID=66,STAGES_ID=35",
    ]
    assert main(["invariance", "--gpu", "NVIDIA H100 80GB HBM3", *words]) == 0
    by_name = capsys.readouterr()
    assert main(["invariance", "--gpu", "h200", *words]) == 0
    alike = capsys.readouterr()
    assert alike.out == by_name.out and "h200: inferred from the rules of h100" in alike.err and not by_name.err
    assert main(["invariance", "--gpu", "a100", *words]) == 2
    assert "cuBLASLt's rules are not known for a100" in capsys.readouterr().err


def test_fp32_files_are_told_to_name_the_units_format(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in "AB":
        np.save(f"{name}.npy", np.eye(64, dtype=np.float32))
    words = ["predict", "A.npy", "B.npy", "--gpu", "h100", "--library", "cutlass"]
    assert main(words) == 2 and "with --operands fp16" in capsys.readouterr().err
    assert main([*words, "--operands", "fp16"]) == 0


def test_a_format_that_no_path_has_is_answered_with_those_there_are():
    with pytest.raises(
        ValueError,
        match=r"v100 has no instruction for e4m3fn x e4m3fn to fp32: choose one of fp16 to fp16, fp16 to fp32",
    ):
        tcm.default_instruction("v100", "e4m3fn", path="mma")
    with pytest.raises(ValueError, match=r"on path 'wgmma': choose one of 'mma'"):
        tcm.default_instruction("a100", "fp16", path="wgmma")
