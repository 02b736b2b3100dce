"""Runs every installed solver on a script, each in a process of its own; the first answer counts.

The caller sets limits of time and memory; reaching a limit is an answer, not an error.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Literal

from ...bitvectors import terms as t
from ...bitvectors.terms import Term

#: Solvers, in the order in which they are started.
BACKENDS = ("bitwuzla", "z3", "cvc5")
#: Seconds between two starts; most questions are answered before the second solver starts.
HEAD_START = 0.4
DEFAULT_TIMEOUT = 60.0
#: MiB of address space that one solver may use.
DEFAULT_MEMORY = 8192

_WORKER = Path(__file__).with_name("worker.py")
_SOLVED = ("sat", "unsat")
_VALUE = re.compile(r"\(\s*(\|[^|]*\||[^\s()|]+)\s+(#b[01]+|#x[0-9a-fA-F]+|true|false)\s*\)")

Status = Literal["sat", "unsat", "timeout", "memory", "unknown"]


class NoSolver(ImportError):
    """`NoSolver` is the error for a call without an installed SMT solver."""


@dataclass(frozen=True)
class Answer:
    """`Answer` holds the result of one call of the solvers.

    Parameters
    ----------
    status : {"sat", "unsat", "timeout", "memory", "unknown"}
        "sat": `model` satisfies all assertions; "unsat": no model exists. Otherwise no solver finished, because all solvers ran
        out of time or memory, or gave up ("unknown").
    model : dict of str to int
        Values of the requested variables.
    backend : str
        Name of the solver that answered first; "folding" if the terms were simplified to a constant; empty without an answer.
    seconds : float
        Wall time in seconds from the first start to the answer.
    """

    status: Status
    model: dict[str, int] = field(default_factory=dict)
    backend: str = ""
    seconds: float = 0.0


def available_backends() -> tuple[str, ...]:
    """Return the solvers that are installed."""
    return tuple(name for name in BACKENDS if find_spec(name) is not None)


def chosen_backends(backends: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return `backends`, or all installed solvers; raise ValueError for an unknown name, NoSolver for one that is not
    installed."""
    present = available_backends()
    for name in backends or ():
        if name not in BACKENDS:
            raise ValueError(f"unknown solver {name!r}; known: {', '.join(BACKENDS)}")
    missing = [name for name in (backends or BACKENDS) if name not in present]
    if missing and (backends or not present):
        raise NoSolver(f"not installed: {', '.join(missing)}; pip install 'mpgemm[smt]' brings {', '.join(BACKENDS)}")
    return tuple(backends or present)


@dataclass
class _Run:
    """`_Run` is one solver process."""

    backend: str
    process: subprocess.Popen
    output: IO[bytes]
    errors: IO[bytes]

    @classmethod
    def start(cls, backend: str, script: IO[bytes], memory: int) -> "_Run":
        output, errors = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115, closed by stop
        command = [sys.executable, "-P", str(_WORKER), backend, str(memory)]
        script.seek(0)
        with os.fdopen(os.dup(script.fileno()), "rb") as source:
            process = subprocess.Popen(command, stdin=source, stdout=output, stderr=errors)
        return cls(backend, process, output, errors)

    def text(self) -> tuple[str, str]:
        """Return the text that the solver printed to standard output and to standard error."""
        self.output.seek(0)
        self.errors.seek(0)
        return self.output.read().decode(errors="replace"), self.errors.read().decode(errors="replace")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.output.close()
        self.errors.close()


def _status(printed: str, errors: str) -> Status:
    first = printed.split(maxsplit=1)[0] if printed.strip() else ""
    if first in _SOLVED:
        return first  # type: ignore[return-value]
    lower = (printed + errors).lower()
    if first == "memory" or any(word in lower for word in ("out of memory", "bad_alloc", "memoryerror", "max. memory")):
        return "memory"
    return "unknown"


def _model(printed: str) -> dict[str, int]:
    found = {}
    for name, value in _VALUE.findall(printed):
        digits = value[2:] if value[0] == "#" else str(int(value == "true"))
        found[name.strip("|")] = int(digits, 16 if value[:2] == "#x" else 2)
    return found


def solve(
    assertions: Iterable[Term],
    wanted: Iterable[Term] = (),
    *,
    timeout: float = DEFAULT_TIMEOUT,
    memory: int = DEFAULT_MEMORY,
    backends: Sequence[str] | None = None,
) -> Answer:
    """Return whether all assertions can hold, with values of the variables `wanted`; limits are those of LimitOptions."""
    if timeout <= 0 or memory < 0:
        raise ValueError(f"timeout (s) must be above 0 and memory (MiB) at least 0, got {timeout} and {memory}")
    start, wanted = time.monotonic(), list(wanted)
    open_assertions = [x for x in dict.fromkeys(assertions) if x is not t.TRUE]
    if t.FALSE in open_assertions:
        return Answer("unsat", backend="folding")
    if not open_assertions:
        return Answer("sat", {x.params[0]: 0 for x in wanted}, "folding")
    names = chosen_backends(backends)
    with tempfile.TemporaryFile() as script:
        script.write(t.smtlib(open_assertions, wanted).encode())
        script.flush()
        return _race(names, script, memory, start, timeout)


def _race(names: Sequence[str], script: IO[bytes], memory: int, start: float, timeout: float) -> Answer:
    runs: list[_Run] = []
    waiting = list(names)
    failures: dict[str, Status] = {}
    next_start = start
    try:
        while waiting or any(run.backend not in failures for run in runs):
            now = time.monotonic()
            if now - start > timeout:
                return Answer("timeout", seconds=now - start)
            if waiting and (now >= next_start or len(failures) == len(runs)):
                runs.append(_Run.start(waiting.pop(0), script, memory))
                next_start = now + HEAD_START
            for run in runs:
                if run.backend in failures or run.process.poll() is None:
                    continue
                printed, errors = run.text()
                status = _status(printed, errors)
                if status in _SOLVED:
                    return Answer(status, _model(printed), run.backend, time.monotonic() - start)
                failures[run.backend] = status
            time.sleep(min(0.05, 0.002 + (time.monotonic() - start) / 50))
    finally:
        for run in runs:
            run.stop()
    reasons = set(failures.values())
    return Answer("memory" if reasons == {"memory"} else "unknown", seconds=time.monotonic() - start)
