"""Sweeps on a cluster: the bits of one process, also when a worker is killed; and clusters that cannot be used."""

import csv
import io
import json
import os
import signal
import threading
import time

import pytest

from mpgemm.cli import main
from mpgemm.experiments import executors

distributed = pytest.importorskip("distributed", reason="pip install 'mpgemm[cluster]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # dask's own, on many versions

SMALL = [
    "compare",
    "--methods",
    "fp16",
    "markidis",
    "--engines",
    "v100",
    "a100",
    "--shape",
    "8",
    "32",
    "8",
    "--repeats",
    "2",
]
#: What may differ from run to run.
TIMES = ("seconds",)


def rows_of(text):
    return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(io.StringIO(text))]


def printed(capsys, *arguments):
    assert main([*arguments, "--csv"]) == 0
    return rows_of(capsys.readouterr().out)


@pytest.fixture(scope="module")
def cluster():
    with executors._local_cluster(2) as local:
        yield local


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "command",
    [
        SMALL,
        ["evaluate", "--distribution", "normal", "--shape", "8", "32", "8", "--methods", "fp16", "sgemm_cube"],
        ["reproduce", "xue8a", "--shape", "4", "16", "4", "--repeats", "1", "--methods", "fp16"],
        ["reproduce", "rz", "--quick", "--repeats", "1"],
    ],
    ids=["compare", "evaluate", "figure", "growth"],
)
def test_results_are_those_of_one_process(command, cluster, capsys):
    here = printed(capsys, *command)
    there = printed(capsys, *command, "--cluster", cluster.scheduler_address)
    assert here == there and len(here) > 1


def test_processes_of_this_machine(capsys):
    assert printed(capsys, *SMALL) == printed(capsys, *SMALL, "--cluster", "local:1")


def kill_a_worker(cluster, journal, killed):
    """Kills one worker as soon as the journal has two results."""
    while not (journal.exists() and journal.read_text().count("\n") >= 2):
        time.sleep(0.01)
    worker = next(iter(cluster.workers.values()))
    killed.append(journal.read_text().count("\n"))
    os.kill(worker.pid, signal.SIGKILL)


@pytest.mark.full
def test_a_killed_worker_loses_nothing(tmp_path, capsys):
    command = [
        "compare",
        "--methods",
        "markidis",
        "ootomo",
        "--engines",
        "v100",
        "h100",
        "--shape",
        "64",
        "512",
        "64",
        "--repeats",
        "6",
    ]
    here = printed(capsys, *command)
    out, killed = tmp_path / "out", []
    with executors._local_cluster(2) as cluster:
        thread = threading.Thread(target=kill_a_worker, args=(cluster, out / "journal.jsonl", killed), daemon=True)
        thread.start()
        there = printed(capsys, *command, "--cluster", cluster.scheduler_address, "--out", str(out), "--no-figures")
        thread.join(30)
    assert here == there
    entries = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    assert killed and 2 <= killed[0] < len(entries)
    assert len({entry["key"] for entry in entries}) == len(entries)  # nothing was kept twice


def test_progress_counts_what_is_done(cluster, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "mpgemm.reporting.report.Progress.__call__", lambda self, done, total, label: seen.append((done, total))
    )
    printed(capsys, *SMALL, "--cluster", cluster.scheduler_address)
    done = [count for count, _ in seen]
    assert done == sorted(done) and seen[-1][0] == seen[-1][1] and len(set(done)) > 4


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "nonsense://nowhere"], "no dask scheduler"),
        (["--cluster", "local:"], "expected local:N"),
        (["--cluster", "local:0"], "expected local:N"),
        (["--cluster", "local:-1"], "expected local:N"),
        (["--cluster", "local:2", "--workers", "2"], "--workers goes without --cluster"),
    ],
)
def test_clusters_that_cannot_be(arguments, message, capsys):
    assert main([*SMALL, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1


@pytest.mark.full
def test_workers_with_other_code_are_refused(cluster, monkeypatch):
    monkeypatch.setattr(executors, "code_digest", lambda: "another")
    client = distributed.Client(cluster, set_as_default=False)
    with client, pytest.raises(ValueError, match="expected the same code"):
        monkeypatch.setattr(client, "run", lambda *args, **options: {"tcp://worker": "this one"})
        executors._check_code(client)


@pytest.mark.full
def test_workers_without_the_package_are_refused(cluster, monkeypatch):
    with distributed.Client(cluster, set_as_default=False) as client, pytest.raises(ValueError, match="install mpgemm"):
        monkeypatch.setattr(
            client, "run", lambda *args, **options: {"tcp://worker": ImportError("No module named 'mpgemm'")}
        )
        executors._check_code(client)
