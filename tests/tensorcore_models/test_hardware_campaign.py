"""The campaign against a fake GPU: it must find a changed rule, shrink mismatches, record, replay, and keep to its budget."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from fake_gpu import FakeGpu

import tensorcore_models as tcm
from tensorcore_models.catalogue.measured import load_tables, with_table
from tensorcore_models.formats.sums import scale_rounded
from tensorcore_models.hardware.campaign import run as campaign_module
from tensorcore_models.hardware.campaign.comparison import compare, differences
from tensorcore_models.hardware.campaign.decisive import Experiment, load_experiments
from tensorcore_models.hardware.campaign.recording import Recorder, recorded, replay
from tensorcore_models.hardware.campaign.run import Campaign, main
from tensorcore_models.hardware.cuda.engines import CudaEngine
from tensorcore_models.hardware.libraries.orders import reproduce
from tensorcore_models.probing.random_operands import operands

RECORDED = Path(__file__).resolve().parent.parent / "vectors" / "hopper"
FP16 = tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32")
BF16 = tcm.get_instruction("hopper:mma.m16n8k16.f32.bf16.bf16.f32")
FP8 = tcm.get_instruction("hopper:mma.m16n8k32.f32.e5m2.e5m2.f32")
S8 = tcm.get_instruction("hopper:mma.m16n8k32.s32.s8.s8.s32.satfinite")
ROWS = (FP16, BF16, FP8, S8)


def aligns_zeros(row):
    """A GPU on which the products of zero operands take part in the alignment, with exponent -126 of a zero."""
    return row.with_rules(zero_operand="minus126") if "zero_operand" in row.accumulator.edge_rules else row


def word(value, digits):
    return f"{value:#0{digits + 2}x}"


@pytest.fixture
def experiments(tmp_path):
    """Three decisive experiments: 0 * 2^15 with c = 2^-140 and with c = 2^-60, and the order of the fp8 groups."""
    zero = {"id": "Z1", "instruction": FP16.name, "a_bits": ["0x0000"] * 16, "b_bits": ["0x7800"] + ["0x0000"] * 15}
    low = {**zero, "id": "Z2", "c_bits": "0x21800000", "predictions": {"-126": "0x21800000", "skipped": "0x21800000"}}
    zero |= {"c_bits": "0x00000200", "predictions": {"-126": "0x00000000", "skipped": "0x00000200"}}
    # 1 and 2^-24 in the first group, -1 in the second: (1 + 2^-24 truncated) - 1 = 0 one way, 2^-24 the other.
    a, b = ["0x00"] * 32, ["0x00"] * 32
    a[0] = b[0] = "0x3c"
    a[1], b[1] = "0x0c", "0x0c"
    a[2], b[2] = "0xbc", "0x3c"
    order = {"id": "Q1", "instruction": FP8.name, "a_bits": a, "b_bits": b, "c_bits": "0x00000000"}
    order |= {"predictions": {"first to last": "0x00000000", "last to first": "0x33800000"}, "note": "order"}
    path = tmp_path / "experiments.json"
    path.write_text(json.dumps({"about": "test", "experiments": [zero, low, order]}))
    return path


def run(tmp_path, device, experiments=None, rows=ROWS, **options):
    said = []
    options = {"budget": 1000.0, "target": 6000, **options}
    campaign = Campaign(device, tmp_path / "out", experiments=experiments, rows=rows, say=said.append, **options)
    return campaign.run(), said, tmp_path / "out"


def test_the_experiments_decide_the_rule_and_the_comparison_uses_it(tmp_path, experiments):
    summary, said, out = run(tmp_path, FakeGpu(model_of=aligns_zeros), experiments)
    assert summary["mismatches"] == {} and summary["failures"] == {} and summary["not_run"] == []
    table = json.loads((out / "edge_rules.json").read_text())
    assert table["rules"]["zero_operand"] == "minus126" and table["rules"]["group_order"] == [0, 1]
    assert table["instructions"][FP16.name]["changed"] == {"zero_operand": "minus126"}
    assert table["evidence"].startswith("hardware: own run (model in place of a GPU")
    answers = json.loads((out / "decisive.json").read_text())["answers"]
    assert answers["Z"]["survive"] == ["-126"] and answers["Q"]["survive"] == ["first to last"]
    assert any(line.startswith("Z ") and line.endswith(": -126") for line in said)


def test_the_rules_reach_every_instruction_of_the_architecture(tmp_path, experiments):
    _, _, out = run(tmp_path, FakeGpu(model_of=aligns_zeros), experiments, rows=(FP16,))
    table = json.loads((out / "edge_rules.json").read_text())
    assert with_table(BF16, table).accumulator.zero_operand == "minus126"
    assert with_table(FP8, table).accumulator.dot.zero_operand == "minus126"
    assert with_table(FP8, table).accumulator.group_order == (0, 1)
    assert with_table(S8, table) == S8
    ampere = tcm.get_instruction("ampere:mma.m16n8k16.f32.f16.f16.f32")
    assert with_table(ampere, table) == ampere and with_table(FP16, None) == FP16
    assert with_table(FP16, table).evidence == table["evidence"]
    assert load_tables(out.parent / "nowhere") == []
    (out.parent / "measured").mkdir()
    (out.parent / "measured" / "gpu.json").write_text((out / "edge_rules.json").read_text())
    assert load_tables(out.parent / "measured") == [table]
    (out.parent / "measured" / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="other.json is not a table of edge rules"):
        load_tables(out.parent / "measured")


def test_a_reversed_chain_is_found(tmp_path, experiments):
    def reverse(row):
        return row.with_rules(group_order=(1, 0)) if row == FP8 else row

    summary, _, out = run(tmp_path, FakeGpu(model_of=reverse), experiments)
    table = json.loads((out / "edge_rules.json").read_text())
    assert table["rules"]["group_order"] == [1, 0] and summary["mismatches"] == {}
    assert json.loads((out / "decisive.json").read_text())["answers"]["Q"]["survive"] == ["last to first"]


def test_results_that_no_rule_explains_are_named(tmp_path, experiments):
    def broken(row):
        return dataclasses.replace(row, accumulator=tcm.ParametricDotAdd(32, None)) if row == FP8 else row

    _, said, out = run(tmp_path, FakeGpu(model_of=broken), experiments, rows=())
    found = json.loads((out / "edge_rules.json").read_text())["instructions"][FP8.name]
    assert found["unexplained"] == [] or "Q1" in found["unexplained"]
    assert json.loads((out / "decisive.json").read_text())["answers"]["Q"]["survive"] == ["last to first"]


def test_mismatches_are_counted_and_shrunk(tmp_path):
    summary, said, out = run(tmp_path, FakeGpu(model_of=aligns_zeros))
    assert summary["mismatches"].keys() == {FP16.name, BF16.name} or summary["mismatches"].keys() == {BF16.name}
    found = json.loads((out / "comparison.json").read_text())["instructions"][BF16.name]
    assert found["mismatches"]["zeros"] > 0 and found["mismatches"]["normals"] == 0
    example = found["examples"][0]
    assert len(example["a"]) <= 2, "a zero product and at most one addend that it hides are left"
    assert example["hardware"] != example["model"]
    assert any(line.startswith("decisive experiments are left out: no file") for line in said)


@pytest.mark.parametrize(
    "change",
    [{"fraction_bits": 24}, {"terms": 8}, {"output_rounding": "rne"}, {"alignment_rounding": "rd"},
     {"normalised_products": True}, {"negative_underflow": "negative"}],
    ids=str,
)  # fmt: skip
def test_a_changed_parameter_is_seen(change):
    """Each change shows on 7,680 dot products of each kind, and shrinks to a few products."""
    model = dataclasses.replace(BF16, accumulator=dataclasses.replace(BF16.accumulator, **change))
    wrong = 0
    for kind in ("normals", "clustered", "cancellation", "zeros", "subnormals", "underflow"):
        inputs = operands(BF16, kind, 60, np.random.default_rng(7))
        d, count, examples = compare(BF16, CudaEngine(BF16, FakeGpu(model_of=lambda row: model)), BF16, inputs, kind, 1)
        wrong += count
        if examples:
            example = examples[0]
            assert len(example.a) <= 4
            assert (int(example.hardware, 16), int(example.model, 16)) == rerun(example, model)
    assert wrong > 0


def rerun(example, model):
    """The results of a shrunk example on the changed model and on the catalogue's."""
    a, b = np.zeros((1, 16), np.uint16), np.zeros((16, 1), np.uint16)
    for place in example.a:
        a[0, place], b[place, 0] = int(example.a[place], 16), int(example.b[place], 16)
    c = np.array([[int(example.c, 16)]], np.uint32)
    return tuple(int(unit.gemm_bits(a, b, c)[0, 0]) for unit in (model, BF16))


def test_fp64_nan_payloads_are_not_compared():
    fp64 = tcm.get_format("fp64")
    quiet, other, inf = 0x7FF8 << 48, 0x7FFC << 48 | 0x123, 0x7FF0 << 48
    left, right = np.array([quiet, quiet, inf], np.uint64), np.array([other, inf, quiet], np.uint64)
    assert differences(left, right, fp64).tolist() == [False, True, True]


# -- recording ---------------------------------------------------------------------------------------------------------------
def test_recorded_vectors_replay(tmp_path):
    _, _, out = run(tmp_path, FakeGpu())
    counts = replay(out / "vectors")
    assert set(counts.values()) == {0} and len(counts) == len(ROWS) * len(campaign_module.KINDS)
    index = json.loads((out / "vectors" / "index.json").read_text())
    assert index["gpu"] == "model in place of a GPU" and all(n > 0 for n in index["vectors"].values())
    changed = replay(out / "vectors", lambda row: aligns_zeros(row))
    assert changed[f"{BF16}/zeros"] > 0 and changed[f"{BF16}/normals"] == 0


def test_the_recorded_set_is_a_few_megabytes(tmp_path):
    recorder = Recorder(tmp_path, {})
    for row, kind in itertools.product(tcm.list_instructions("hopper"), campaign_module.KINDS):
        kept = max(1, campaign_module.RECORDED_ELEMENTS // (row.m * row.k + row.k * row.n + 2 * row.m * row.n))
        inputs = operands(row, kind, kept, np.random.default_rng(0))
        recorder.add(row, kind, inputs, np.zeros(inputs.c.shape, row.formats[3].container))
    recorder.save()
    assert (tmp_path / "vectors.npz").stat().st_size < 6e6


def test_a_failed_write_leaves_the_old_set(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path, {})
    inputs = operands(FP16, "normals", 1, np.random.default_rng(0))
    recorder.add(FP16, "normals", inputs, FP16.mma_bits(*inputs))
    recorder.save()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        recorder.save()
    assert [kind for _, kind, _, _ in recorded(tmp_path)] == ["normals"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "vectors.npz"]


def test_vectors_of_a_real_gpu_replay():
    """What the campaign recorded on a Hopper GPU; the folder is empty until one was at hand."""
    if not (RECORDED / "index.json").is_file():
        pytest.skip("no vectors recorded on a Hopper GPU yet (tests/vectors/hopper is empty)")
    assert {name: count for name, count in replay(RECORDED).items() if count} == {}


def test_a_run_goes_on_where_the_last_one_ended(tmp_path):
    first, _, out = run(tmp_path, FakeGpu())
    vectors = replay(out / "vectors")
    again, _, _ = run(tmp_path, FakeGpu(), target=8000)
    assert first["dot_products"] < again["dot_products"] < 2 * first["dot_products"]
    assert replay(out / "vectors") == vectors  # those that were recorded stay


def test_results_of_another_device_and_damaged_ones_are_refused(tmp_path):
    _, _, out = run(tmp_path, FakeGpu(), rows=(FP16,))
    other = FakeGpu()
    other.name = "another"
    with pytest.raises(ValueError, match="holds results of gpu 'model in place of a GPU', expected 'another'"):
        run(tmp_path, other, rows=(FP16,))
    (out / "comparison.json").write_text("{")
    with pytest.raises(ValueError, match=r"comparison\.json is damaged"):
        run(tmp_path, FakeGpu(), rows=(FP16,))


# -- budget and failures -----------------------------------------------------------------------------------------------------
def test_the_budget_is_kept_and_partial_results_stay(tmp_path):
    ticks = itertools.count()
    summary, _, out = run(tmp_path, FakeGpu(), clock=lambda: next(ticks), budget=40.0, target=10**9)
    assert 40 <= summary["seconds"] < 50
    found = json.loads((out / "comparison.json").read_text())["instructions"]
    assert found[FP16.name]["dots"] and not found[S8.name]["dots"]
    assert S8.name in summary["not_run"]
    assert replay(out / "vectors")


def test_an_interrupted_run_leaves_its_results(tmp_path):
    class Interrupted(FakeGpu):
        def run(self, launch):
            if self.launches > 4:
                raise KeyboardInterrupt
            return super().run(launch)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Interrupted())
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["instructions"][FP16.name]["dots"]
    assert len(replay(tmp_path / "out" / "vectors")) == 5


def test_an_instruction_that_fails_does_not_stop_the_others(tmp_path):
    class Failing(FakeGpu):
        def run(self, launch):
            if launch.row == FP16:
                raise RuntimeError("cuLaunchKernel: illegal instruction")
            return super().run(launch)

    summary, said, out = run(tmp_path, Failing())
    found = json.loads((out / "comparison.json").read_text())["instructions"]
    assert found[FP16.name]["error"] == "RuntimeError: cuLaunchKernel: illegal instruction"
    assert summary["not_run"] == [FP16.name] and sum(found[BF16.name]["dots"].values()) >= 6000


def test_without_a_gpu_the_command_says_so(tmp_path, capsys, monkeypatch):
    def no_gpu():
        raise OSError("no CUDA driver on this machine")

    monkeypatch.setattr(campaign_module, "default_device", no_gpu)
    assert main(["--out", str(tmp_path / "out")]) == 2
    assert "no CUDA driver" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_command_runs(tmp_path, capsys, monkeypatch, experiments):
    monkeypatch.setattr(campaign_module, "default_device", lambda: FakeGpu())
    arguments = [
        "--out",
        str(tmp_path / "out"),
        "--target",
        "500",
        "--only",
        "f16.f16.f32",
        "--experiments",
        str(experiments),
    ]
    assert main(arguments) == 0
    assert "mismatches: none" in capsys.readouterr().out
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    assert main(["--out", str(tmp_path / "out"), "--experiments", str(bad)]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "experiments",
        "[]",
        '{"experiments": [{"id": "Z"}]}',
        '{"experiments": [{"id": "Z", "instruction": "i", "a_bits": ["0x3g"], "b_bits": [], "c_bits": "0"}]}',
    ],
)
def test_a_file_that_holds_no_experiments_is_refused(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="x.json is not a file of experiments, expected JSON with a list"):
        load_experiments(path)


@pytest.mark.full
def test_the_shared_experiments_agree_with_the_catalogue(tmp_path, shared):
    """On a GPU that is the catalogue's model nothing changes, and every experiment is explained."""
    path = shared / "experiments" / "hopper_decisive.json"
    loaded = load_experiments(path)
    assert len(loaded) == 121 and isinstance(loaded[0], Experiment)
    summary, _, out = run(tmp_path, FakeGpu(), path, rows=())
    table = json.loads((out / "edge_rules.json").read_text())
    assert all(not found["unexplained"] and not found["changed"] for found in table["instructions"].values())
    assert table["divided"] == {} and summary["failures"] == {}


# -- libraries ---------------------------------------------------------------------------------------------------------------
class SplitLibrary(tcm.Engine):
    """A library that splits k in two and returns fp16."""

    k, a_format, b_format, c_format, d_format, label = 1, "fp16", "fp16", "fp16", "fp16", "library"

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        raise NotImplementedError

    def gemm_bits(self, a, b, c=None, **options):
        return scale_rounded(
            FP16.gemm_bits(a, b, k_order="split_k:2"), 1.0, tcm.get_format("fp32"), tcm.get_format("fp16")
        )


def test_the_order_of_a_library_is_found():
    found = reproduce(SplitLibrary(), [FP16], (64, 32, 2048))
    assert found["reproduced"] == [f"{FP16.name}, split_k:2"] and found["complete"]
    assert 0 < found["agreement"][f"{FP16.name}, sequential"] < 1
