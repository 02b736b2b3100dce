"""A recorded run against what a device gives for its inputs: modules, biases, recipes of recorded kernels, what is refused."""

import json

import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.frameworks.predicted_traces import predicted_trace
from mpgemm.traces.comparing import compare_traces
from mpgemm.traces.reading import read_trace
from mpgemm.traces.recording import TraceRecorder
from tensorcore_models import libraries

RNG = np.random.default_rng(2)
X, W = RNG.standard_normal((3, 8, 640)).astype(np.float16), RNG.standard_normal((24, 640)).astype(np.float16)
BIAS = RNG.standard_normal(24).astype(np.float16)
ROW = {
    "m": 24, "n": 24, "k": 640, "operands": "fp16", "dtype": "torch.float16", "layout": "nt",
    "kernels": ["cutlass_80_tensorop_f16_s16816gemm_f16_64x64_32x6_tn_align8",
                "void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, __half, true, __half>(x)"],
    "configuration": "algoId=21 tile=MATMUL_TILE_64x64 stages=MATMUL_STAGES_32x6 numSplitsK=2 reductionScheme=COMPUTE_TYPE",
}  # fmt: skip


def recorded(folder, sums):
    """A run with one linear layer, one with a bias, and one without a weight."""
    with TraceRecorder(folder) as trace:
        trace.record("up", input=X, weight=W, output=sums.astype(np.float16).reshape(3, 8, 24))
        with_bias = (sums + BIAS.astype(np.float32)).astype(np.float16).reshape(3, 8, 24)
        trace.record("lm_head", input=X, weight=W, bias=BIAS, output=with_bias)
        trace.record("experts", output=X)


@pytest.fixture
def split():
    """Sums in two slices, as the row's kernels form them."""
    recipe = libraries.from_profile(ROW).recipe
    a, b = X.reshape(24, 640).view(np.uint16), np.ascontiguousarray(W.T).view(np.uint16)
    return recipe.gemm_bits(a, b, out_format="fp32").view(np.float32)


def test_one_chain(tmp_path):
    sums = tcm.default_instruction("h100", "fp16").gemm(X.reshape(24, 640), np.ascontiguousarray(W.T))
    recorded(tmp_path / "run", sums)
    trace = read_trace(tmp_path / "run")
    found = compare_traces(trace, predicted_trace(trace, "h100"))
    assert found.first is None and len(found.modules) == 2
    assert "experts: not predicted, because it has scales, or lacks a recorded input or weight" in found.left_out


def test_a_split_is_seen_and_its_kernels_explain_it(tmp_path, split, capsys):
    recorded(tmp_path / "run", split)
    (tmp_path / "kernels.json").write_text(json.dumps({"rows": [ROW]}))
    run = str(tmp_path / "run")
    assert main(["trace", "compare", run, "predicted:h100", "--no-recipes"]) == 0
    said = capsys.readouterr().out
    assert "predicted:h100 (one chain over k)" in said and "up" in said
    trace = read_trace(run)
    assert compare_traces(trace, predicted_trace(trace, "h100"), explain=False).first.module == "up"
    assert main(["trace", "compare", run, "predicted:h100", "--profile", str(tmp_path / "kernels.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first"] is None


def test_refused(tmp_path, split, capsys):
    recorded(tmp_path / "run", split)
    with TraceRecorder(tmp_path / "bare") as trace:
        trace.record("up", output=X)
    with pytest.raises(ValueError, match="no module without scales whose input"):
        predicted_trace(read_trace(tmp_path / "bare"), "h100")
    with pytest.raises(ValueError, match="unknown architecture"):
        predicted_trace(read_trace(tmp_path / "run"), "h1000")
    run = str(tmp_path / "run")
    for arguments, words in (
        ((run, "--profile", "x.json"), "--profile needs"), (("predicted:h1000",), "unknown architecture"),
        (("predicted:h100", "--profile", "x.json"), "x.json"),
    ):  # fmt: skip
        assert main(["trace", "compare", run, *arguments]) != 0
        assert words in capsys.readouterr().err
