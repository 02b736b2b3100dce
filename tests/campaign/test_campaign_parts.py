"""Each part of a campaign on the stand-in: what it finds, what it records, and that it notices what is wrong."""

import hashlib
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="campaigns take torch: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import campaign_stand_in  # noqa: E402

from mpgemm.campaign import emulation, functions, libraries, library_cases, recovery, summary, times, units  # noqa: E402
from mpgemm.campaign.folder import claim, keep_arrays, kept_arrays, read_json  # noqa: E402
from mpgemm.campaign.work import Work  # noqa: E402
from mpgemm.kernels import devices  # noqa: E402
from mpgemm.kernels.gate import DATA  # noqa: E402
from mpgemm.traces.library_log import LibraryLog, configuration  # noqa: E402
from tensorcore_models.functions.hashes import block_hash, block_operands  # noqa: E402
from tensorcore_models.gpu.tiles import fastest_tiles  # noqa: E402
from tensorcore_models.hardware.campaign import run as unit_campaign  # noqa: E402
from tensorcore_models.hardware.campaign.recording import replay  # noqa: E402
from tensorcore_models.probing.edge_operands import EDGES  # noqa: E402
from tensorcore_models.probing.random_operands import KINDS  # noqa: E402

F16 = "hopper:wgmma.m64n128k16.f32.f16.f16"


@pytest.fixture
def device(monkeypatch):
    campaign_stand_in.small(monkeypatch)
    return campaign_stand_in.stand_in(monkeypatch)


def carried_out(module, device, folder, *, warm=False, **more):
    """Rows of a part's share."""
    claim(folder, device.facts)
    name = module.__name__.rpartition(".")[2]
    work = Work(name, device, folder, 1000.0, say=lambda text: None, **more)
    (module.warm if warm else module.run)(work)
    return work.rows.rows


# -- units -------------------------------------------------------------------------------------------------------------------
def test_units_are_compared_on_all_kinds_and_recorded(device, tmp_path):
    rows = carried_out(units, device, tmp_path, share=1, shares=2)
    assert [row["instruction"] for row in rows] == [row.name for row in units.rows_of("hopper")]
    assert all(row["kinds"] == len(KINDS) and row["differ"] == 0 and row["dots"] >= 3000 for row in rows)
    counts = replay(tmp_path / "units" / "share-1" / "vectors")
    assert len(counts) == 2 * len(KINDS) and set(counts.values()) == {0}


def test_a_unit_that_is_another_is_seen(monkeypatch, tmp_path):
    campaign_stand_in.small(monkeypatch)

    def model_of(row):
        return row.with_rules(zero_operand="minus126") if "f16" in row.name else row

    device = campaign_stand_in.stand_in(monkeypatch, model_of=model_of)
    rows = carried_out(units, device, tmp_path, share=1, shares=2)
    assert rows[0]["differ"] > 0 and "zeros" in rows[0]["where"] and rows[1]["differ"] == 0


def test_units_go_on_where_they_were(device, tmp_path, monkeypatch):
    first = carried_out(units, device, tmp_path, share=1, shares=2)
    monkeypatch.setattr(units, "TARGET", 6000)
    again = carried_out(units, device, tmp_path, share=1, shares=2)
    assert all(new["dots"] > old["dots"] for new, old in zip(again, first, strict=True))
    compared = read_json(tmp_path / "units" / "share-1" / "comparison.json")["instructions"]
    assert all(sum(found["dots"].values()) < 12000 for found in compared.values())


def test_units_of_another_device_and_damaged_ones_are_refused(device, tmp_path):
    carried_out(units, device, tmp_path, share=1, shares=2)
    path = tmp_path / "units" / "share-1" / "comparison.json"
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "gpu": "another"}))
    with pytest.raises(ValueError, match="holds results of gpu 'another', expected 'no GPU'"):
        carried_out(units, device, tmp_path, share=1, shares=2)
    path.write_text(json.dumps(held)[:-40])
    with pytest.raises(ValueError, match=r"comparison\.json is damaged"):
        carried_out(units, device, tmp_path, share=1, shares=2)
    path.write_text(json.dumps(held))
    vectors = tmp_path / "units" / "share-1" / "vectors" / "vectors.npz"
    vectors.write_bytes(vectors.read_bytes()[:-300])
    with pytest.raises(ValueError, match=r"vectors\.npz is damaged"):
        summary.check(tmp_path)


# Some 3 s: the whole catalogue of Hopper, which no smaller set stands for.
def test_every_row_and_kind_of_hopper(device, tmp_path, monkeypatch):
    monkeypatch.undo()
    device = campaign_stand_in.stand_in(monkeypatch)
    monkeypatch.setattr(units, "TARGET", 9)  # one matrix of each kind
    monkeypatch.setattr(unit_campaign, "FIRST_ROUND", 1)
    rows = carried_out(units, device, tmp_path, share=1, shares=2)
    assert len(rows) == len(units.rows_of("hopper")) > 90
    assert [row for row in rows if row["kinds"] != len(KINDS) or row["differ"] or "failed" in row] == []


# -- recovery and times ------------------------------------------------------------------------------------------------------
@pytest.mark.full  # some 8 s: kernels are compiled
def test_kernels_are_compared_with_the_simulation(device, tmp_path, monkeypatch):
    run, runs = devices.PlannedLaunch.__call__, []

    def faulty(launch, arguments, *rest):
        runs.append(launch)
        run(launch, arguments, *rest)
        if len(runs) == 4:  # a product has two launches
            launch.with_arguments(arguments).arguments["out"].data.mul_(2.0)
        if len(runs) == 5:
            raise RuntimeError("out of resources")

    monkeypatch.setattr(devices.PlannedLaunch, "__call__", faulty)
    rows = carried_out(recovery, device, tmp_path)
    assert [row["data"] for row in rows] == list(DATA)
    assert [row.get("differ") for row in rows] == [0, 45, None, 0]
    assert rows[2]["failed"] == "RuntimeError: out of resources"


@pytest.mark.full  # some 8 s: residues are compiled
def test_fp64_is_compared_and_timed(device, tmp_path, monkeypatch):
    """Its bits at few moduli; rows with infinities are NaN in both."""
    for module in (recovery, times):
        monkeypatch.setattr(module, "FP64", "ozaki2_int8:moduli=3")
        monkeypatch.setattr(module, "methods_of", lambda target: ["ozaki2_int8:moduli=3"])
    assert [row["differ"] for row in carried_out(recovery, device, tmp_path)] == [0] * len(DATA)
    row = next(r for r in carried_out(times, device, tmp_path) if r["name"] == "ozaki2_int8:moduli=3")
    assert row["seconds"] == 2e-3 and "failed" not in row


@pytest.mark.full  # some 5 s: kernels are compiled
def test_every_product_is_timed(device, tmp_path):
    rows = {row["name"]: row for row in carried_out(times, device, tmp_path)}
    assert not any("failed" in row for row in rows.values()), rows
    assert {"torch FP32", "torch TF32", "torch FP16", "torch BF16", "torch FP64"} < set(rows)
    assert {"ootomo_tf32", "ootomo_tf32, B split before", f"emulated {F16}"} < set(rows)
    tile = rows[f"emulated {F16}, 1 x 1 warps, 2 x 1 outputs"]
    assert fastest_tiles([tile]) == {(F16, "sm_90"): ((1, 1), (2, 1))}
    summary.summarise(tmp_path)  # what a campaign leaves to enter in the table
    kept = json.loads((tmp_path / summary.SUMMARY).read_text())["fastest_tiles"]
    assert kept == [{"unit": F16, "target": "sm_90", "warps": [1, 1], "each": [2, 1]}]
    row = rows["ootomo_tf32"]
    assert row["seconds"] == 2e-3 and row["device_seconds"] == 1e-3 and row["host_seconds"] == 5e-4
    assert row["tflops"] == pytest.approx(2 * 17**3 / 2e-3 / 1e12) and row["device_tflops"] == pytest.approx(
        2 * row["tflops"]
    )


def test_a_call_is_made_when_it_is_timed_and_not_before(device):
    calls = times.products(device.target, device.tensors, 8, 8, 8)
    call = calls["torch FP32"]()
    assert callable(call) and torch.is_tensor(call())


@pytest.mark.full  # some 6 s: kernels of every product are compiled
def test_large_products_have_tiles_timed_and_unscaled_kernels(device, tmp_path, monkeypatch):
    monkeypatch.setattr(times, "LARGE", 17)
    monkeypatch.setattr("mpgemm.kernels.tuning.seconds", lambda run: (run(), 1.0)[1])
    rows = {row["name"]: row for row in carried_out(times, device, tmp_path)}
    assert "failed" not in rows["ootomo_tf32, unscaled"] and "ootomo_tf32, tiles timed" in rows


def test_products_of_torch_are_timed(device, tmp_path, monkeypatch):
    monkeypatch.setattr(times, "methods_of", lambda target: [])
    monkeypatch.setattr(times, "UNITS", ())
    rows = {row["name"]: row for row in carried_out(times, device, tmp_path)}
    assert {"torch BF16x9", *rows} == {name for name, _, _ in times.TORCH}  # which not every torch has
    assert not any("failed" in row for row in rows.values()), rows


@pytest.mark.full  # some 8 s: kernels are compiled
def test_what_is_warmed_is_what_is_timed(device, tmp_path):
    rows = carried_out(times, device, tmp_path, warm=True)
    assert not any("failed" in row for row in rows), rows
    assert {"torch FP32", "ootomo_tf32", "ootomo_tf32, B split before", f"emulated {F16}"} < {
        row["name"] for row in rows
    }


# -- emulation ---------------------------------------------------------------------------------------------------------------
@pytest.mark.full  # some 4 s: kernels are compiled
def test_emulation_beside_own_products_and_at_edges(device, tmp_path):
    rows = carried_out(emulation, device, tmp_path)
    own = [row for row in rows if "beside" in row]
    assert {row["data"] for row in own} == set(emulation.OWN_DATA) and not any("failed" in row for row in rows)
    # The stand-in's products are those of wgmma: other candidates lie apart, it does not.
    by_unit = {unit: sum(row["apart"] for row in own if row["unit"] == unit) for unit in {row["unit"] for row in own}}
    assert min(by_unit.values()) == 0 and all(row["elements"] == 360 for row in own)
    edges = [row for row in rows if "beside" not in row]
    assert [row["data"] for row in edges] == list(EDGES) and {row["differ"] for row in edges} == {0}
    assert all(row["on_cpu"] <= row["again"] <= row["tiles"] for row in edges)


def test_a_wrong_bit_of_the_emulation_is_seen(device, monkeypatch):
    run_bits = emulation.run_bits

    def wrong(*operands):
        done = run_bits(*operands)
        done.bits[0, 0, 0] ^= 1
        return done

    monkeypatch.setattr(emulation, "run_bits", wrong)
    assert emulation.compared_at_edge(device.tensors, F16, "pruned", 0)["differ"] == 1


# -- functions ---------------------------------------------------------------------------------------------------------------
def test_functions_are_hashed_as_the_recording_of_an_h100(device, tmp_path, recordings):
    """On the machine of compiled text: block by block the hashes that an H100 gave."""
    rows = carried_out(functions, device, tmp_path)
    assert len(rows) == 4 and not [row["failed"] for row in rows if "failed" in row]
    own = [row for row in rows if row["what"] == "beside its model"]
    assert [(row["differ"], row["blocks"]) for row in own] == [(0, 2), (0, 2)]
    found = kept_arrays(tmp_path, "functions")
    for name in ("cvt.rna.tf32.f32", "tanh.approx.f32"):
        assert np.array_equal(found[f"hash/{name}"], recordings[f"hash/{name}"][:2])


@pytest.fixture
def recordings():
    import os
    from pathlib import Path

    path = Path(os.environ.get("MPGEMM_SHARED", "")) / "hardware_vectors" / "h100" / "special_functions" / "mufu.npz"
    if "MPGEMM_SHARED" not in os.environ or not path.is_file():
        pytest.skip(f"{path} is not here: MPGEMM_SHARED names the folder with hardware_vectors")
    return np.load(path)


def test_hashes_of_results_are_those_of_the_kernel(device):
    """The definition in NumPy beside the kernel, on a conversion whose results NumPy knows."""
    function = next(f for f in functions.FUNCTIONS if f.name == "cvt.rna.tf32.f32")
    x = block_operands(1)
    assert x[0] == 0x10000 and x[-1] == 0x1FFFF
    expected = (x + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    assert block_hash(expected) == int(functions.hashed(device.tensors, function)[1])
    assert block_hash(np.roll(expected, 1)) != block_hash(expected)


def test_every_model_beside_the_recording_of_an_h100(tmp_path, recordings):
    """Four blocks of each function, and all pairs of divisions: 0 differ; one result more is seen."""
    names = [f for f in functions.FUNCTIONS if functions.model_of("hopper", f) is not None]
    assert len(names) == len(functions.FUNCTIONS)
    for function in names:
        kept = {"small/two.a", "small/two.b", f"small/{function.name}"} & set(recordings.files)
        arrays = {name: recordings[name] for name in kept}
        if function.operands == 1:
            arrays[f"hash/{function.name}"] = recordings[f"hash/{function.name}"]
        keep_arrays(tmp_path, "functions", function.name, arrays)
        ticks = iter(range(100))
        found = functions.compared(
            tmp_path, "functions", function, functions.model_of("hopper", function), 4, lambda ticks=ticks: next(ticks)
        )
        assert found["differ"] == 0 and found["inputs"] in (1 << 17, 4 << 16), (function.name, found)


def test_a_model_is_compared_by_its_hashes(device, tmp_path):
    class Model:
        wrong = 0

        def bits(self, x):
            assert x.size == 1 << 16
            return ((x + np.uint32(0x1000)) & np.uint32(0xFFFFE000)) ^ np.uint32(self.wrong)

    function = next(f for f in functions.FUNCTIONS if f.name == "cvt.rna.tf32.f32")
    tasks = functions.tasks(
        device.tensors, tmp_path, "functions", "hopper", 1000.0, lambda arch, f: Model() if f is function else None
    )
    by_what = {(facts["function"], facts["what"]): task for facts, task in tasks}
    by_what["cvt.rna.tf32.f32", "recorded"]()
    assert by_what["cvt.rna.tf32.f32", "beside its model"]() == {"blocks": 2, "inputs": 2 << 16, "differ": 0}
    Model.wrong = 1
    found = by_what["cvt.rna.tf32.f32", "beside its model"]()
    assert found["differ"] == 2 and found["first"].startswith("inputs 0x000")


@pytest.mark.full  # some 15 s: 29 kernels are compiled; with results to nearest in the place of unpublished ones
def test_every_function_is_recorded(monkeypatch, tmp_path):
    from tensorcore_models.compiled.program import KernelProgram

    names = functions.FUNCTIONS
    campaign_stand_in.small(monkeypatch)
    monkeypatch.setattr(functions, "FUNCTIONS", names)
    device = campaign_stand_in.stand_in(monkeypatch)
    run = KernelProgram.run
    monkeypatch.setattr(KernelProgram, "run", lambda self, *a, **o: run(self, *a, **{**o, "unpublished": "nearest"}))
    rows = {row["function"]: row for row in carried_out(functions, device, tmp_path) if row["what"] == "recorded"}
    assert len(rows) == len(names)
    # Those are compiled and assembled as the others; the machine has no results of them, rounded or not.
    unknown = {f.name for f in names if f.narrow or f.name.endswith(".hi")}
    assert {name for name, row in rows.items() if "failed" in row} == unknown
    assert all(rows[name]["failed"].startswith("Refused: line 7") for name in unknown)


# -- libraries ---------------------------------------------------------------------------------------------------------------
def test_libraries_are_recorded(device, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign_stand_in.TorchMatmulEngine, "multiply", lambda self, a, b, c=None: a @ b)
    rows = {row["name"]: row for row in carried_out(libraries, device, tmp_path)}
    row = rows["mm/fp16/full/16x16x64/nt"]
    a, b = (
        torch.from_numpy(library_cases.drawn(s, [row["seed"][0], i])).half() for i, s in enumerate(((16, 64), (64, 16)))
    )
    d = a @ b.t().contiguous().t()
    assert row["sha256"] == hashlib.sha256(d.numpy().tobytes()).hexdigest() and row["deterministic"]
    assert np.array_equal(kept_arrays(tmp_path, "libraries")[row["name"]], d.numpy().view(np.int16)[row["rows"]])
    assert row["kernels"] == [["gemm", 1.5], ["pack", 0.5]] and row["shape"] == [16, 16] and "configuration" not in row
    kinds = {name.split("/")[0] for name, row in rows.items() if "refused" not in row}
    assert {"mm", "int8", "sdpa", "pointwise", "order"} <= kinds
    assert rows["order/fp16/16x16x64"]["best"] <= 1.0
    assert not any("failed" in row for row in rows.values())
    assert {row["op"] for row in rows.values() if "refused" in row} <= {
        "mm out fp32", "scaled_mm", "rowwise", "block 1x128 128x128", "sdpa",
    }  # fmt: skip


def test_a_device_at_fault_is_a_failure_and_a_refusal_is_none(device, tmp_path, monkeypatch):
    def refuses(where):
        raise RuntimeError("no kernel for these types")

    case = library_cases.LibraryCase("x", {"op": "x"}, refuses)
    found = libraries.recorded(device, tmp_path, "libraries", case, LibraryLog())
    assert found == {"refused": "RuntimeError: no kernel for these types"}

    def at_fault(*sizes, **options):
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr(torch, "zeros", at_fault)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        libraries.recorded(device, tmp_path, "libraries", case, LibraryLog())


def test_what_an_architecture_lacks_is_not_asked_for():
    names = {f.name: f for f in functions.FUNCTIONS}
    assert not functions.is_on("ampere", names["cvt.rn.satfinite.e4m3x2.f32"])
    assert functions.is_on("hopper", names["cvt.rn.satfinite.e4m3x2.f32"]) and functions.is_on(
        "volta", names["ex2.approx.f32"]
    )
    assert functions.is_on("volta", functions.PTXFunction("new.f32", "new.f32 $0, $1;"))


def test_every_case_has_a_name_of_its_own():
    names = [case.name for case in library_cases.cases()]
    assert len(names) == len(set(names)) > 300 and {name.split("/")[0] for name in names} == {
        "mm", "mm32", "scaled", "rowwise", "block128", "int8", "sdpa", "pointwise",
    }  # fmt: skip


LOG = (
    "[2026-11-26 10:00:00][cublasLt][77][Api][cublasLtHSHMatmul] A=0X7F Adesc=[type=R_16F rows=64 cols=32 ld=64] B=0X7E "
    "Bdesc=[type=R_16F rows=64 cols=64 ld=64] C=0X1 Cdesc=[type=R_16F rows=64 cols=64 ld=64] D=0X1 "
    "Ddesc=[type=R_16F rows=64 cols=64 ld=64] computeDesc=[computeType=COMPUTE_32F scaleType=R_32F transa=OP_T] "
    "algo=[algoId=66 tile=MATMUL_TILE_8x64 stages=MATMUL_STAGES_64xAUTO numSplitsK=3] workSpace=0X7F workSpaceSizeInBytes=4096 "
    "beta=0 outOfPlace=0 stream=0X0\n"
)


def test_the_configuration_is_read_from_the_log(tmp_path):
    path = tmp_path / "lt.log"
    log = LibraryLog(str(path))
    assert log.since() == "" and configuration("") is None and configuration("[cublasLtCreate] x") is None
    path.write_text("[2026][cublasLt][1][Trace][cublasLtCreate] lightHandle=0X0\n" + LOG)
    found = configuration(log.since())
    assert found["call"] == "cublasLtHSHMatmul" and found["workspace"] == 4096
    assert found["algo"] == "algoId=66 tile=MATMUL_TILE_8x64 stages=MATMUL_STAGES_64xAUTO numSplitsK=3"
    assert found["Adesc"] == "type=R_16F rows=64 cols=32 ld=64" and found["computeDesc"].endswith("transa=OP_T")
    assert log.since() == ""
