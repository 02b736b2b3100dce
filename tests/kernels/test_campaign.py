"""The campaign for GPUs, from end to end on a device that is none: rows, failures, what is kept when it is cut off."""

import json

import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

from mpgemm.kernels import campaign, devices, products  # noqa: E402
from mpgemm.kernels.configurations import Configuration  # noqa: E402


@pytest.fixture
def small(monkeypatch):
    """An A100 that is none, two methods, one small shape."""
    from ptx_device import PTXDevice

    device = PTXDevice("sm_80").use(monkeypatch)
    tile = Configuration(16, 32, 32, 2, 2)
    monkeypatch.setattr(products, "choose", lambda *args: tile)
    monkeypatch.setattr(campaign, "methods_of", lambda target: ["ootomo_tf32", "bf16xfp32x2"])
    monkeypatch.setattr(campaign, "SHAPES", ((5, 9, 41),))
    monkeypatch.setattr(campaign, "SIDES", (17,))
    monkeypatch.setattr(campaign, "seconds", lambda run: 1e-3 if torch.is_tensor(run()) else None)
    return device


def carried_out(target, path):
    cpu = torch.device("cpu")
    return campaign.run(
        {"bits": campaign.comparisons(target, cpu), "times": campaign.times(target, cpu)}, target, "none", path
    )


@pytest.mark.full  # some 7 s: every kernel that is timed is compiled
def test_every_row_is_written(small, tmp_path, capsys):
    path = tmp_path / "report.json"
    assert carried_out(small.target, path) == 0
    report = json.loads(path.read_text())
    assert len(report["bits"]) == 2 * len(campaign.DATA) and {row["differ"] for row in report["bits"]} == {0}
    assert report["target"] == "sm_80" and report["bits"][0].keys() == {
        "method",
        "data",
        "m",
        "n",
        "k",
        "elements",
        "differ",
    }
    times = {row["name"]: row for row in report["times"]}
    assert times["ootomo_tf32"]["seconds"] == 1e-3 and "bf16xfp32x2, B split before" in times and "torch FP32" in times
    assert "8 comparisons, 0 with bits that differ or failed" in capsys.readouterr().out


def test_what_fails_is_a_row_and_what_ran_before_is_kept(small, tmp_path, monkeypatch):
    path, execute, runs = tmp_path / "report.json", devices.execute, []

    def failing(launch, device):
        runs.append(launch)
        if len(runs) == 3:
            raise RuntimeError("out of resources")
        execute(launch, device)
        if len(runs) == 5:
            launch.arguments["out"].data.mul_(2.0)
        if len(runs) == 9:
            raise KeyboardInterrupt

    monkeypatch.setattr(devices, "execute", failing)
    with pytest.raises(KeyboardInterrupt):
        carried_out(small.target, path)
    rows = json.loads(path.read_text())["bits"]
    assert len(rows) == 4 and rows[1]["failed"] == "RuntimeError: out of resources"
    assert [row.get("differ") for row in rows] == [0, None, 45, 0]


@pytest.mark.full  # some 8 s: residues are compiled
def test_fp64_is_compared_and_timed(small, tmp_path, monkeypatch):
    """Its bits at few moduli; rows with infinities are NaN in both."""
    monkeypatch.setattr(campaign, "FP64", "ozaki2_int8:moduli=3")
    monkeypatch.setattr(campaign, "methods_of", lambda target: [campaign.FP64])
    path = tmp_path / "report.json"
    assert carried_out(small.target, path) == 0
    report = json.loads(path.read_text())
    assert [row["differ"] for row in report["bits"]] == [0] * len(campaign.DATA)
    names = [row["name"] for row in report["times"]]
    assert names[:2] == ["ozaki2_int8:moduli=3", "torch FP64"] and not any("failed" in x for x in report["times"][:2])


def test_without_a_device_it_says_so(capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    assert campaign.main([]) == 2
    assert "no GPU" in capsys.readouterr().err


def test_emulated_units_are_compared_on_every_edge(tmp_path, monkeypatch):
    """What `--emulation` does, with products of the CPU in the place of a device's."""
    from types import SimpleNamespace

    from mpgemm.kernels import emulation_campaign as emulation
    from tensorcore_models.kernels import lowered
    from tensorcore_models.kernels.generic import generic_bits

    wrong = {"units": 0}

    def run_bits(engine, a, b, c=None, scale_a=None, scale_b=None):
        low = lowered(engine)
        formats = (low.a_format, low.b_format, low.c_format)
        arrays = [
            None if x is None else x[0].numpy().view(f.container) for x, f in zip((a, b, c), formats, strict=True)
        ]
        d = generic_bits(low, *arrays) ^ low.d_format.container.type(wrong["units"])
        return SimpleNamespace(bits=torch.from_numpy(d.view(f"i{d.itemsize}"))[None], tiles=1, again=())

    monkeypatch.setattr(emulation, "UNITS", ("ampere:mma.m16n8k16.f32.f16.f16.f32",))
    monkeypatch.setattr(emulation, "ROUNDS", 1)
    monkeypatch.setattr(emulation, "run_bits", run_bits)
    cpu, path, target = torch.device("cpu"), tmp_path / "report.json", SimpleNamespace(name="sm_80")
    for wrong["units"], expected in ((0, 0), (1, len(emulation.EDGES))):
        found = campaign.run({"bits": emulation.comparisons(cpu), "rates": iter(())}, target, "none", path)
        rows = json.loads(path.read_text())["bits"]
        assert found == expected, rows
        assert [row["data"] for row in rows] == list(emulation.EDGES)
        assert all(row["differ"] == (row["elements"] if expected else 0) for row in rows)
