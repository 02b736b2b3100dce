"""This module runs shares of parts in processes: side by side, except for parts that take times, each with its budget."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mpgemm.campaign.parts import CampaignPart
from mpgemm.traces.library_log import CALLS, FILE, LEVEL

#: Command that starts a share.
WORKER = (sys.executable, "-m", "mpgemm.campaign.worker")
#: Fraction of the budget that is reserved for times if there are other parts, too.
TIMES = 0.4
#: Seconds after its time until a share is ended, so that a started task may finish, and a slow start may complete.
GRACE = 60.0


@dataclass(frozen=True)
class Job:
    """`Job` is a share with its seconds.

    Attributes
    ----------
    part : CampaignPart
    share : int
    seconds : float
    warm : bool
    """

    part: CampaignPart
    share: int
    seconds: float
    warm: bool = False

    @property
    def name(self) -> str:
        """Return the name of the job in logs and messages."""
        return f"{'warm-' if self.warm else ''}{self.part.name}-{self.share}"


@dataclass(frozen=True)
class JobOutcome:
    """`JobOutcome` says how a share ended; `said` is empty if it ended well."""

    job: str
    seconds: float
    said: str


def planned(parts: Sequence[CampaignPart], budget: float, processes: int) -> list[list[Job]]:
    """Return jobs in groups: jobs of a group run side by side, one group after the other.

    Parameters
    ----------
    parts : sequence of CampaignPart
    budget : float
        Seconds for all jobs together.
    processes : int
        Number of processes at a time; with more jobs, each job has less time.
    """
    beside = [(part, share, part.alone) for part in parts for share in range(part.shares)]
    alone = [part for part in parts if part.alone]
    time_beside = budget * (1 - TIMES) if alone else budget
    each = time_beside * min(1.0, processes / max(len(beside), 1))
    first = [Job(part, share, each, warm) for part, share, warm in beside]
    return [first, *([Job(part, 0, (budget - time_beside) / len(alone))] for part in alone)]


class Processes:
    """`Processes` runs jobs, each in its own process group with a log.

    Parameters
    ----------
    folder : Path
        Folder of the campaign.
    experiments : Path or None
        File of decisive experiments.
    processes : int
        Number of processes at a time.
    worker : sequence of str
        Command that is started; the job's arguments follow.
    grace : float
        Seconds after a job's time until it is ended.
    """

    def __init__(
        self,
        folder: Path,
        experiments: Path | None,
        processes: int,
        worker: Sequence[str] = WORKER,
        grace: float = GRACE,
    ):
        self.folder, self.experiments, self.processes = Path(folder), experiments, processes
        self.worker, self.grace = tuple(worker), grace
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, jobs: Sequence[Job], ended: Callable[[JobOutcome], None]) -> None:
        """Run jobs side by side and pass each outcome to `ended`; an interruption ends all of them."""
        with ThreadPoolExecutor(min(self.processes, len(jobs)) or 1) as pool:
            futures = [pool.submit(self._one, job) for job in jobs]
            try:
                for future in futures:
                    ended(future.result())
            except BaseException:
                self._end_all()
                for future in futures:
                    future.cancel()
                raise

    def _one(self, job: Job) -> JobOutcome:
        start = time.monotonic()
        log = self.folder / "logs" / f"{job.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            with self._lock:
                if self._stopped:
                    return JobOutcome(job.name, 0.0, "not started")
                process = subprocess.Popen(
                    self._command(job), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    env=self._environment(job), start_new_session=True,
                )  # fmt: skip
                self._running.add(process)
            try:
                status = process.wait(job.seconds + self.grace)
                said = "" if status == 0 else _last_line(log) if status > 0 else f"ended by signal {-status}"
            except subprocess.TimeoutExpired:
                said = f"ended {self.grace:.0f} s after its time; its rows so far are kept"
            finally:
                _end(process)
                with self._lock:
                    self._running.discard(process)
        return JobOutcome(job.name, round(time.monotonic() - start, 1), said)

    def _command(self, job: Job) -> list[str]:
        words = [*self.worker, "--out", str(self.folder), "--part", job.part.name, "--share", str(job.share)]
        words += ["--seconds", f"{job.seconds:.3f}", *(["--warm"] if job.warm else [])]
        return words + (["--experiments", str(self.experiments)] if self.experiments is not None else [])

    def _environment(self, job: Job) -> Mapping[str, str]:
        """Return the environment of a job: this process's, with shared threads and with cuBLASLt's log of library calls.

        Timings taken while others run, as for tiles before times are taken, are kept in a cache that is not used again.
        """
        found = dict(os.environ)
        found.setdefault("TRITON_CACHE_DIR", str(Path.home() / ".triton" / "cache"))
        if job.warm:
            found["TORCHINDUCTOR_CACHE_DIR"] = str(self.folder / "cache" / job.name)
        if not job.part.alone or job.warm:
            for name in ("OMP_NUM_THREADS", "MPGEMM_NUM_THREADS"):
                found.setdefault(name, str(max(1, (os.cpu_count() or 1) // self.processes)))
        if job.part.name == "libraries":
            found |= {LEVEL: CALLS, FILE: str(self.folder / "logs" / f"cublaslt-{job.share}.log")}
        return found

    def _end_all(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            _end(process)


def _end(process: subprocess.Popen) -> None:
    """End a process and its children, if it still runs."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "without output"
