"""A dask cluster that dies in mid-run: one line, exit status 2, and what is finished is kept."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from mpgemm.experiments.journal import Journal

pytest.importorskip("distributed")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes by signals")

#: A cluster in a session of its own, so that it can be killed whole: its address on standard output, then it waits.
CLUSTER = """
import time
from distributed import LocalCluster

if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None)
    print(cluster.scheduler_address, flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def cluster_process(folder):
    """A cluster's process and its scheduler's address; nothing of it outlives the test."""
    script = folder / "cluster.py"
    script.write_text(CLUSTER)
    command = [sys.executable, str(script)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            kill(process)


def kill(process) -> None:
    """The cluster with its workers, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.full
def test_a_cluster_that_is_killed_is_one_line(tmp_path):
    out = tmp_path / "out"
    journal = out / "journal.jsonl"
    with cluster_process(tmp_path) as (cluster, address):
        arguments = [
            "evaluate", "--distribution", "normal", "--shape", "64", "400", "64", "--repeats", "2000", "--methods",
            "fp16_accumulate", "fp32", "--out", str(out), "--no-figures", "--cluster", address,
        ]  # fmt: skip
        command = [sys.executable, "-m", "mpgemm", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            try:
                deadline = time.monotonic() + 120
                while not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
                    assert time.monotonic() < deadline
                    assert run.poll() is None, run.communicate()
                    time.sleep(0.05)
                kill(cluster)
                _, errors = run.communicate(timeout=120)
            finally:
                run.kill()
    assert run.returncode == 2, errors
    said = [line for line in errors.splitlines() if not re.match(r"\d+/\d+ |$", line)]
    assert len(said) == 1 and said[0].startswith("mpgemm evaluate: ") and "the same command resumes" in said[0], errors
    assert len(Journal(journal)) >= 3
