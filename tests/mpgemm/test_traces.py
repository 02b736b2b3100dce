"""Traces: what is recorded is read back, from other programs' folders too, and the first module that parts is found."""

import json

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.traces import comparing
from mpgemm.traces.comparing import compare_traces
from mpgemm.traces.reading import read_trace
from mpgemm.traces.recording import TraceRecorder
from tensorcore_models import read_scales

BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((12, 64)).astype(BF16), [RNG.standard_normal((48, 64)), RNG.standard_normal((64, 48))]


def run(folder, unit=None, broken=(), steps=1):
    """Two layers and logits; `broken` modules lose a product."""
    unit = unit or tcm.get_instruction("hopper:mma.m16n8k16.f32.bf16.bf16.f32")
    with TraceRecorder(folder) as trace:
        for _ in range(steps):
            x = X
            for name, weight in zip(("layers.0.up", "lm_head"), W, strict=True):
                taken = x.copy()
                if name in broken:
                    taken[:, 3] = 0
                out = unit.gemm(taken, np.ascontiguousarray(weight.astype(BF16).T)).astype(BF16)
                trace.record(name, input=x, weight=weight.astype(BF16), output=out)
                x = out
            trace.next_step()


def test_equal_runs_and_what_is_read_back(tmp_path):
    run(tmp_path / "a", steps=2)
    run(tmp_path / "b", steps=2)
    found = compare_traces(read_trace(tmp_path / "a"), read_trace(tmp_path / "b"))
    assert found.first is None
    assert "same bits in all 4 modules" in str(found)
    tensor = read_trace(tmp_path / "a").tensor((0, "layers.0.up"), "input")
    assert tensor.dtype == BF16
    assert (tensor == X).all()
    assert len(list((tmp_path / "a").rglob("*.weight.npy"))) == 2  # weights once


def test_recorded_scales_reach_the_search(tmp_path, monkeypatch):
    """Those of the rows and columns that are looked at; tests/test_readme.py runs the search itself."""
    rng = np.random.default_rng(1)
    x, weight = (rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((40, 320), (200, 320)))
    scale_x, scale_w = rng.uniform(0.1, 1, (40, 3)).astype(np.float32), rng.uniform(0.1, 1, (2, 3)).astype(np.float32)
    spread = [np.repeat(scale_x, 128, 1)[:, :320], np.repeat(np.repeat(scale_w, 128, 0)[:200], 128, 1)[:, :320]]
    out = (x.astype(np.float32) * spread[0]) @ (weight.astype(np.float32) * spread[1]).T
    for folder, times in (("a", 1), ("b", 1 + 2.0**-10)):
        with TraceRecorder(tmp_path / folder) as trace:
            tensors = {"input": x, "weight": weight, "input_scale": scale_x, "weight_scale": scale_w}
            trace.record("up", output=out * np.float32(times), **tensors)
    calls = []

    def search(a, b, found, scale_a=None, scale_b=None, **_):
        scaling = read_scales(scale_a, scale_b, len(a), 320, b.shape[1])
        calls.append((found, (a.astype(np.float64) * scaling.spread_a()) @ (b.astype(np.float64) * scaling.spread_b())))
        raise ValueError("seen")

    monkeypatch.setattr(comparing, "whodunit", search)
    compare_traces(read_trace(tmp_path / "a"), read_trace(tmp_path / "b"))
    assert np.allclose(*calls[0], rtol=1e-4, atol=1e-4)  # FP32 sums of 320 products
    assert not np.allclose(*calls[1], rtol=1e-4, atol=1e-4)


def test_the_first_module_that_parts_and_the_logits(tmp_path):
    run(tmp_path / "a", steps=2)
    run(tmp_path / "b", steps=2, broken=("lm_head",))
    found = compare_traces(read_trace(tmp_path / "a"), read_trace(tmp_path / "b"), explain=False)
    assert (found.first.step, found.first.module, found.first.inputs, found.first.weights) == (0, "lm_head", True, True)
    one, other = (read_trace(tmp_path / n).tensor((0, "lm_head"), "output").astype(np.float64) for n in "ab")
    logs = [
        x - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)) - x.max(1, keepdims=True)
        for x in (one, other)
    ]
    best = one.argmax(1)
    change = logs[1][np.arange(12), best] - logs[0][np.arange(12), best]
    assert found.logits.largest == pytest.approx(np.abs(change).max())
    assert found.logits.outside == np.mean((np.exp(change) < 0.9) | (np.exp(change) > 1.1))
    assert found.logits.ranks == np.mean(other.argmax(1) != best)
    assert found.logits.tokens == 24


@pytest.mark.parametrize(("last", "words"), [(2.0**-6, "grows"), (2.0**-12, "shrinks"), (2.0**-9, "goes"), (None, "")])
def test_how_the_difference_changes_is_said_as_it_is(tmp_path, last, words):
    """The last module's may be smaller, or the first that differs is the last."""
    for folder, there in (("a", 0), ("b", 1)):
        with TraceRecorder(tmp_path / folder) as trace:
            for name, off in (("one", 2.0**-9), *([] if last is None else [("two", last)])):
                trace.record(name, output=np.full((2, 2), 1 + there * off, np.float32))
    text = str(compare_traces(read_trace(tmp_path / "a"), read_trace(tmp_path / "b")))
    assert (f"the difference {words} from 0.002 to" in text) if words else ("the difference" not in text)


def test_who_made_each_side(tmp_path):
    """FP32 sums of one step tell Hopper from Volta."""
    weight = RNG.standard_normal((16, 32)).astype(np.float16)
    x = RNG.standard_normal((16, 32)).astype(np.float16)
    for name, unit in (("a", "hopper:mma.m16n8k16.f32.f16.f16.f32"), ("b", "volta:mma.m8n8k4.f32.f16.f16.f32")):
        with TraceRecorder(tmp_path / name) as trace:
            out = tcm.get_instruction(unit).gemm(x, np.ascontiguousarray(weight.T))
            trace.record("layer", input=x, weight=weight, output=out)
    found = compare_traces(read_trace(tmp_path / "a"), read_trace(tmp_path / "b"))
    assert "hopper" in found.recipes[0]
    assert "volta" in found.recipes[1]
    assert "hopper" not in found.recipes[1]


def test_folders_of_other_programs(tmp_path, capsys):
    y = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for name, change in (("a", 0), ("b", 1)):
        (tmp_path / name / "step2").mkdir(parents=True)
        np.save(tmp_path / name / "step2" / "model.layers.10.q.output.npy", y + change)
        np.save(tmp_path / name / "step2" / "model.layers.2.q.npy", y)
        np.savez(tmp_path / name / "step_1.npz", **{"model.layers.0.q.input": y, "model.layers.0.q.output": y})
    assert list(read_trace(tmp_path / "a").modules) == [
        (1, "model.layers.0.q"),
        (2, "model.layers.2.q"),
        (2, "model.layers.10.q"),
    ]
    assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    text = capsys.readouterr().out
    assert "model.layers.10.q (step 2)" in text
    assert "not recorded" in text
    assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first"]["differing"] == 6


def test_bad_traces(tmp_path, capsys):
    run(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "trace.json").write_text("{}")
    np.save(tmp_path / "damaged" / "x.npy", X.view(np.uint16))
    with TraceRecorder(tmp_path / "other") as trace:
        trace.record("elsewhere", output=X)
    with TraceRecorder(tmp_path / "shape") as trace:
        trace.record("lm_head", output=X[:3])
        with pytest.raises(ValueError, match="got tensors named result, expected names from input, weight"):
            trace.record("x", result=X)
    with pytest.raises(ValueError, match="holds a trace already"):
        TraceRecorder(tmp_path / "a")
    for other, message in (
        ("missing", "no such folder"), ("empty", "no tensors"), ("damaged", "is no index"), ("other", "no module in common"),
    ):  # fmt: skip
        assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / other)]) == 2
        assert message in capsys.readouterr().err
    assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / "a"), "--logits", "head"]) == 2
    assert "no module 'head'" in capsys.readouterr().err


def test_modules_that_differ_in_special_characters_stay_apart(tmp_path):
    """Names whose letters a file name cannot have, or that look like a second run, are modules of their own."""
    names = (
        "blk/0",
        "blk:0",
        "blk_0",
        "Blk/0",
        "\u0441\u043b\u043e\u0439",
        "\u0441\u043b\u043e\u0438",
        "l",
        "l",
        "l#2",
        "l#2",
        "l#",
    )
    with TraceRecorder(tmp_path) as trace:
        for _ in range(2):
            for value, name in enumerate(names):
                trace.record(name, weight=np.full((1, 1), value, np.float32), output=np.full(2, value, np.float32))
            trace.next_step()
    read = read_trace(tmp_path)
    for step in range(2):
        keys = [key for key in read.modules if key[0] == step]
        assert [read.tensor(key, "output")[0] for key in keys] == list(range(len(names)))
        assert [read.tensor(key, "weight").item() for key in keys] == list(range(len(names)))
    assert {key[1] for key in read.modules} >= {"l", "l#2", "l##2", "l##2#2", "l##"}
    assert len(list(tmp_path.rglob("*.weight.npy"))) == len(names)  # weights once


def test_a_weight_whose_zero_changes_its_sign_is_recorded_again(tmp_path):
    with TraceRecorder(tmp_path) as trace:
        for zero in (0.0, -0.0, -0.0):
            trace.record("up", weight=np.array([[zero, 1]], np.float32), output=np.zeros(1, np.float32))
            trace.next_step()
    signs = [np.signbit(read_trace(tmp_path).tensor((step, "up"), "weight")[0, 0]) for step in range(3)]
    assert signs == [False, True, True]
    assert len(list(tmp_path.rglob("*.weight.npy"))) == 2


def test_an_index_of_another_version_is_refused(tmp_path, capsys):
    run(tmp_path)
    index = json.loads((tmp_path / "trace.json").read_text())
    (tmp_path / "trace.json").write_text(json.dumps({**index, "version": 99}))
    assert main(["trace", "compare", str(tmp_path), str(tmp_path)]) == 2
    assert "the trace has version 99, expected 1" in capsys.readouterr().err


@pytest.mark.parametrize("kinds", [("output",), ("input", "output", "weight"), ("input", "output", "weight", "bias")])
def test_tensors_without_dimensions(tmp_path, capsys, kinds):
    """A loss or a scalar gate among the modules; one called logits, too."""
    for name, value in (("a", 1.0), ("b", 2.0)):
        with TraceRecorder(tmp_path / name) as trace:
            for module in ("gate", "logits"):
                tensors = dict.fromkeys(kinds, np.float32(value))
                if "weight" in kinds:
                    tensors |= {"weight": np.ones((1, 1), np.float32), "input": np.ones((1, 1), np.float32)}
                trace.record(module, **tensors)
    assert read_trace(tmp_path / "a").tensor((0, "gate"), "output").shape == ()
    assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "the first module whose bits differ is gate" in capsys.readouterr().out
    assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / "a"), "--logits", "gate"]) == 0


def recorded(folder, modules):
    """A folder with the outputs (and other tensors) of modules by their names."""
    with TraceRecorder(folder) as trace:
        for name, tensors in modules.items():
            trace.record(name, **(tensors if isinstance(tensors, dict) else {"output": tensors}))
    return read_trace(folder)


def test_runs_whose_routing_flips_are_compared_up_to_there_and_behind(tmp_path):
    x = RNG.standard_normal((8, 16)).astype(np.float32)
    near = x.copy()
    near[3, 5] = np.nextafter(near[3, 5], 9)
    first = recorded(tmp_path / "a", {"attn": x, "experts.0": x[:5], "experts.1": x[5:], "mlp": x, "lm_head": x})
    second = recorded(
        tmp_path / "b", {"attn": near, "experts.0": x[:4], "experts.1": x[4:], "mlp": x + 1, "lm_head": x}
    )
    found = compare_traces(first, second, explain=False)
    assert found.first.module == "attn" and found.first.differing == 1
    text = str(found)
    assert (
        "from experts.0 (step 0) on, whose outputs have the shapes (5, 16) and (4, 16): rows differ, as if routing"
        in text
    )
    assert "2 modules have other rows and are not compared: experts.0, experts.1" in text
    assert found.logits.largest == 0
    early = compare_traces(first, recorded(tmp_path / "c", {"attn": x, "experts.0": x[:4], "mlp": x}))
    assert str(early).startswith(
        "the first module whose output differs is experts.0 (step 0), whose outputs have the shapes"
    )


def test_fused_projections_are_compared_with_their_parts(tmp_path):
    x = RNG.standard_normal((6, 16)).astype(np.float32)
    weights = {name: RNG.standard_normal((8 if name == "q" else 4, 16)).astype(np.float32) for name in "qkv"}
    apart = {
        f"model.layers.0.self_attn.{name}_proj": {"input": x, "weight": w, "output": x @ w.T}
        for name, w in weights.items()
    }
    whole = np.concatenate(list(weights.values()))
    out = np.concatenate([x @ w.T for w in weights.values()], 1)
    fused = {"model.layers.0.self_attn.qkv_proj": {"input": x, "weight": whole, "output": out}}
    first, second = recorded(tmp_path / "a", apart), recorded(tmp_path / "b", fused)
    for pair in ((first, second), (second, first)):
        found = compare_traces(*pair, explain=False)
        assert found.first is None and len(found.modules) == 1 and not found.missing
        assert found.modules[0].inputs and found.modules[0].weights
        assert f"model.layers.0.self_attn.qkv_proj is q_proj, k_proj, v_proj of {tmp_path / 'a'}" in found.joined
    fused["model.layers.0.self_attn.qkv_proj"]["output"] = out + (np.arange(16) == 9)
    found = compare_traces(first, recorded(tmp_path / "c", fused), explain=False)
    assert found.first.differing == 6


def test_other_shapes_on_the_command_line(tmp_path, capsys):
    x = RNG.standard_normal((8, 16)).astype(np.float32)
    recorded(tmp_path / "a", {"up": x, "experts.0": x[:5]})
    recorded(tmp_path / "b", {"up": x, "experts.0": x[:4]})
    assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "shapes (5, 16) and (4, 16)" in capsys.readouterr().out
    assert main(["trace", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["modules"][1]["shapes"] == [[5, 16], [4, 16]] and found["modules"][1]["relative"] == "nan"
