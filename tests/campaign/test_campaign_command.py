"""`mpgemm campaign` from end to end on the stand-in: processes, tables, the page, going on, what is refused."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="campaigns take torch: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import campaign_stand_in  # noqa: E402

from mpgemm.campaign import jobs, parts, summary, worker  # noqa: E402
from mpgemm.campaign.parts import PARTS  # noqa: E402
from mpgemm.cli import campaign, main  # noqa: E402
from tensorcore_models.hardware.campaign.recording import replay  # noqa: E402

WORKER = (sys.executable, str(Path(campaign_stand_in.__file__)))


@pytest.fixture
def device(monkeypatch):
    return campaign_stand_in.stand_in(monkeypatch)


def arguments(folder, *parts, budget=400.0, **more):
    given = {"parts": list(parts), "out": folder, "budget": budget, "processes": 2, "experiments": None, "json": False}
    return argparse.Namespace(**given | more)


def carried_out(args, *more):
    """The exit status of the command on a device, when its answer is printed."""
    return campaign.carried_out(args, *more).print(args)


class OneProcess(jobs.Processes):
    """Shares one after the other in this process; the third one of units comes to a bad end."""

    device = None

    def run(self, group, ended):
        for job in group:
            words = self._command(job)[len(self.worker) :]
            bad = job.name == "units-3"
            status = bad or worker.main(words, device_of=lambda: self.device)
            ended(jobs.JobOutcome(job.name, 1.0, "ended by signal 6" if bad else "" if status == 0 else "failed"))


def test_a_part_its_tables_and_its_page(device, tmp_path, monkeypatch, capsys):
    campaign_stand_in.small(monkeypatch)
    monkeypatch.setattr(OneProcess, "device", device)
    monkeypatch.setattr(jobs, "Processes", OneProcess)
    status = carried_out(arguments(tmp_path, "units"), device)
    said = capsys.readouterr().out
    assert status == 1 and "units-3: ended by signal 6" in said and "units-1: done" in said
    held = json.loads((tmp_path / "campaign.json").read_text())
    assert held["campaign"]["device"]["gpu"] == "no GPU" and [x["job"] for x in held["ended_badly"]] == ["units-3"]
    [part] = held["campaign"]["parts"]
    assert part["part"] == "units" and part["rows"] == 2 and part["differ"] == 0 and part["compared"] > 6000
    assert main(["report", str(tmp_path), "--format", "markdown"]) == 0
    page = capsys.readouterr().out
    assert "Does no GPU give the bits of the models?" in page and "results compared, 0 differ" in page
    assert "mma.m16n8k16.f32.f16.f16.f32" in page and "units-3: ended by signal 6" in page
    counts = replay(tmp_path / "units" / "recorded")  # of all shares
    assert set(counts.values()) == {0} and len({name.rpartition("/")[0] for name in counts}) == 2
    compared = json.loads((tmp_path / "units" / "recorded" / "comparison.json").read_text())
    assert all(sum(found["dots"].values()) and not sum(found["mismatches"].values()) for found in compared.values())


@pytest.mark.full  # a minute: 11 processes that import torch, of which some compile kernels
def test_all_parts_in_processes_and_going_on(device, tmp_path, monkeypatch, capsys):
    few = {"units": 4}  # shares, of those that there are
    monkeypatch.setattr(parts, "PARTS", {name: replace(p, shares=few.get(name, 1)) for name, p in PARTS.items()})
    monkeypatch.setenv("MPGEMM_STAND_IN", "abort:units-3")
    assert carried_out(arguments(tmp_path), device, WORKER) == 1
    said = capsys.readouterr().out
    assert "units-3: ended by signal 6" in said and "units-1: done" in said and "warm-times-0: done" in said
    held = {row["part"]: row for row in json.loads((tmp_path / "campaign.json").read_text())["campaign"]["parts"]}
    assert set(held) == set(PARTS) and all(row["differ"] == 0 and row["rows"] for row in held.values())
    for part in PARTS:
        assert (tmp_path / f"{part}.csv").is_file()
    functions = np.load(tmp_path / "functions" / "special_functions.npz")
    assert "hash/cvt.rna.tf32.f32" in functions.files
    listed = json.loads((tmp_path / "libraries" / "products.json").read_text())
    assert listed["gpu"] == "no GPU" and {row["op"] for row in listed["rows"]} >= {"mm", "int_mm", "order"}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/arrays/**/*.npz")}
    capsys.readouterr()
    carried_out(arguments(tmp_path, "libraries", json=True), device, WORKER)
    shown = json.loads(capsys.readouterr().out)
    assert {row["part"] for row in shown["parts"]} == set(PARTS)
    assert {path: path.stat().st_mtime_ns for path in before} == before  # nothing that was there is done again


def test_what_differs_is_status_1(device, tmp_path, monkeypatch):
    monkeypatch.setattr(summary, "summarise", lambda *a: [{"part": "units", "differ": 1, "failed": 0, "left": 0}])
    monkeypatch.setattr(jobs, "planned", lambda *a: [])
    assert carried_out(arguments(tmp_path, "units", json=True), device, WORKER) == 1
    monkeypatch.setattr(summary, "summarise", lambda *a: [{"part": "units", "differ": 0, "failed": 0, "left": 9}])
    assert carried_out(arguments(tmp_path, "units", json=True), device, WORKER) == 0


def test_what_is_refused(device, tmp_path):
    (tmp_path / "device.json").write_text(json.dumps({**device.facts, "gpu": "another GPU"}))
    with pytest.raises(ValueError, match="another device or version"):
        carried_out(arguments(tmp_path, "units"), device, WORKER)
    (tmp_path / "device.json").write_text(json.dumps(device.facts))
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / "rows-1.json").write_text("{")
    with pytest.raises(ValueError, match=r"rows-1\.json is damaged"):
        carried_out(arguments(tmp_path, "units"), device, WORKER)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mufu", "--out", "x"], "unknown part 'mufu', expected one or more of units, emulation"),
        (["--out", "x", "--budget", "0"], "expected seconds above 0"),
        (["--out", "x", "--budget", "nan"], "expected seconds above 0"),
        (["times", "--out", "x", "--experiments", "y.json"], "--experiments has an effect only on the part units"),
    ],
)
def test_bad_words_are_refused_in_one_line(words, message, capsys):
    assert main(["campaign", *words]) == 2
    err = capsys.readouterr().err
    assert message in err and len(err.splitlines()) == 1


def test_without_a_gpu_it_says_so(tmp_path, capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    assert main(["campaign", "--out", str(tmp_path)]) == 2
    assert "no CUDA driver" in capsys.readouterr().err and not list(tmp_path.iterdir())
