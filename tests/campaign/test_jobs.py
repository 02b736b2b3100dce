"""Shares in processes: how time is dealt, and that none of them costs the others."""

import sys
import threading
from pathlib import Path

import pytest

from mpgemm.campaign.jobs import Processes, planned
from mpgemm.campaign.parts import PARTS, CampaignPart

#: A worker that does what its part is called.
SCRIPT = """
import os, sys, time
part = sys.argv[sys.argv.index("--part") + 1]
print(" ".join(sys.argv[1:]), os.environ.get("CUBLASLT_LOG_LEVEL"), os.environ.get("OMP_NUM_THREADS"), flush=True)
print(os.environ.get("TORCHINDUCTOR_CACHE_DIR"), os.environ.get("TRITON_CACHE_DIR"), flush=True)
if part == "hangs":
    if child := os.fork():
        open(sys.argv[sys.argv.index("--out") + 1] + f"/pid-{child}", "w").close()
    time.sleep(600)
if part == "aborts":
    os.abort()
if part == "raises":
    raise ValueError("no such thing")
"""


@pytest.fixture
def run(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(SCRIPT)

    def runs(*names, seconds=0.2, processes=4, **more):
        found = {}
        runner = Processes(tmp_path, None, processes, (sys.executable, str(script)), grace=0.3)
        jobs = planned(
            [CampaignPart(name, "", 1, **more) for name in names], seconds * 4 if more else seconds, processes
        )
        for group in jobs:
            runner.run(group, lambda outcome: found.__setitem__(outcome.job, outcome))
        return found, tmp_path

    return runs


def test_none_of_them_costs_the_others(run):
    found, folder = run("works", "aborts", "raises", "hangs")
    assert found["works-0"].said == ""
    assert found["aborts-0"].said == "ended by signal 6"
    assert found["raises-0"].said == "ValueError: no such thing"
    assert "after its time" in found["hangs-0"].said
    assert "--part works --share 0 --seconds 0.200 None" in (folder / "logs" / "works-0.log").read_text()
    (child,) = (path.name[4:] for path in folder.glob("pid-*"))
    assert not runs_still(child)


def runs_still(process: str) -> bool:
    """Whether a process is neither gone nor ended and not yet waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_interruption_ends_all(run, monkeypatch):
    from concurrent.futures import Future

    from mpgemm.campaign import jobs

    started, running, popen = threading.Event(), [], jobs.subprocess.Popen

    def interrupted(self, timeout=None):
        started.wait(20)
        raise KeyboardInterrupt

    def noted(*args, **options):
        running.append(popen(*args, **options))
        started.set()
        return running[-1]

    monkeypatch.setattr(jobs.subprocess, "Popen", noted)
    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("hangs", seconds=100)
    assert running and all(process.poll() is not None for process in running)


def test_libraries_log_and_what_takes_times_runs_alone(run):
    found, folder = run("libraries")
    assert " 5 " in (folder / "logs" / "libraries-0.log").read_text() and found["libraries-0"].said == ""
    found, folder = run("times", alone=True)
    assert list(found) == ["warm-times-0", "times-0"]
    assert "--warm" in (folder / "logs" / "warm-times-0.log").read_text()
    assert "--warm" not in (folder / "logs" / "times-0.log").read_text()
    # Tiles that are timed beside others are not those that times are taken of; what is compiled is.
    caches = [(folder / "logs" / f"{name}.log").read_text().split()[-2:] for name in ("warm-times-0", "times-0")]
    assert caches[0][0] == str(folder / "cache" / "warm-times-0") != caches[1][0] and caches[0][1] == caches[1][1]


def test_time_is_dealt():
    beside, alone = planned(list(PARTS.values()), 600, 64)
    assert {job.seconds for job in beside} == {360.0} and [job.seconds for job in alone] == [240.0]
    assert len(beside) == sum(part.shares for part in PARTS.values())
    beside, _ = planned(list(PARTS.values()), 600, 2)
    assert sum(job.seconds for job in beside) == pytest.approx(2 * 360)
    (beside,) = planned([PARTS["units"]], 100, 64)
    assert {job.seconds for job in beside} == {100.0} and not any(job.warm for job in beside)
