"""This module times functions by ratios: interleaved runs, medians, and a record of the machine and its BLAS.

A speed here is always the ratio to a reference that ran in the same process, turn by turn with the measured function,
so that load or throttling of the machine slows both. Only the standard library is imported at the top, because
`hold_blas` must set the environment before numpy loads its BLAS.

Use::

    from harness import hold_blas, interleaved, machine, report
    hold_blas(threads=1)            # before numpy is imported
    import numpy as np
    timings = interleaved({"sgemm": lambda: a @ b, "mine": lambda: f(a, b)}, repeats=15)
    report(rows("name", timings, reference="sgemm", work=m * k * n), json_path=None)
"""

import argparse
import ctypes
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

#: Environment variables that set the number of threads of BLAS and OpenMP runtimes.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def hold_blas(threads: int = 1, core: str | None = "Haswell") -> None:
    """Set OpenBLAS's kernel and threads, before numpy is imported.

    A `core` of None leaves the choice of the kernel to OpenBLAS; :func:`blas_core_name` says which one runs.
    """
    if "numpy" in sys.modules:
        raise RuntimeError("hold_blas must run before numpy is imported: its BLAS has read the environment")
    if core is not None:
        os.environ["OPENBLAS_CORETYPE"] = core
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)


def pin(cpus: int = 1) -> list[int]:
    """Restrict this process to its first `cpus` CPUs, if the system can, and return the CPUs that it may use."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:cpus])
    return sorted(os.sched_getaffinity(0))


#: Options of benchmarks with their keywords of argparse; each benchmark sets the defaults.
OPTIONS: dict[str, dict] = {
    "size": {"type": int}, "sizes": {"type": int, "nargs": "+"}, "turns": {"type": int}, "threads": {"type": int},
    "engine": {}, "methods": {"nargs": "+"}, "only": {"help": "only rows whose name contains this word"}, "json": {},
    "isa": {"nargs": "+", "help": "instruction sets (default: all of this CPU, with --quick the best)"},
    "venv": {"help": "folder of the virtual environment with the peers"},
    "page": {"help": "page whose table between the two marks is replaced (docs/performance.md)"},
    "quick": {"action": "store_true", "help": "fewer turns"},
    "cpu_time": {"action": "store_true", "help": "measure CPU time instead of wall time (one thread, for shared machines)"},
}  # fmt: skip


def prepared(doc: str | None, core: str | None = "Haswell", **defaults: object) -> argparse.Namespace:
    """Return a benchmark's options and clock, with BLAS limited to --threads and the process to as many CPUs.

    `defaults` are those of the options in :data:`OPTIONS`.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"threads": 1, "json": None, **defaults}.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **OPTIONS[name])
    args = parser.parse_args()
    if getattr(args, "cpu_time", False) and args.threads != 1:
        parser.error("--cpu-time adds the time of all threads: use it with --threads 1")
    args.clock = time.process_time if getattr(args, "cpu_time", False) else time.perf_counter
    hold_blas(args.threads, core)
    pin(args.threads)
    return args


def _loaded_blas() -> list[str]:
    """Return the paths of the OpenBLAS libraries that this process has loaded (Linux), else of those beside numpy."""
    import numpy

    numpy.ones((2, 2)) @ numpy.ones((2, 2))
    maps = Path("/proc/self/maps")
    if maps.exists():
        paths = {line.split()[-1] for line in maps.read_text().splitlines() if "openblas" in line.lower()}
        return sorted(path for path in paths if path.startswith("/"))
    folder = Path(numpy.__file__).parent.parent / "numpy.libs"
    return sorted(str(path) for path in folder.glob("*openblas*"))


def blas_core_name() -> str:
    """Return the kernel that OpenBLAS chose at run time ("Haswell"); "unknown" if numpy has another BLAS."""
    for path in _loaded_blas():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for symbol in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
            function = getattr(library, symbol, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return function().decode()
    return "unknown"


def _cpuinfo(key: str) -> str:
    """Return the first entry of that name in /proc/cpuinfo, "" without one."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    return ""


def machine() -> dict:
    """Return the facts that a reader of a ratio needs: CPU, features, BLAS kernel and threads, versions, variant."""
    import numpy

    flags = _cpuinfo("flags").split() + _cpuinfo("Features").split()
    features = ("avx2", "fma", "f16c", "avx512f", "avx512ifma", "avx512_fp16", "asimd")
    return {
        "cpu": _cpuinfo("model name") or platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "features": [feature for feature in features if feature in flags],
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
        "blas_core": blas_core_name(),
        "blas_core_asked": os.environ.get("OPENBLAS_CORETYPE", ""),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "isa_asked": os.environ.get("MPGEMM_ISA", ""),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


@dataclass(frozen=True)
class Timing:
    """`Timing` holds the seconds of one call over the turns of an interleaved run."""

    median: float
    fastest: float
    low_quartile: float
    high_quartile: float
    turns: int

    @property
    def spread(self) -> float:
        """Return the distance of the quartiles, relative to the median."""
        return (self.high_quartile - self.low_quartile) / self.median


def interleaved(
    functions: dict[str, Callable[[], object]],
    repeats: int = 15,
    warm_up: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time each function once a turn, for `repeats` turns, after `warm_up` turns that do not count.

    Every other turn runs in reverse order, so that no function always follows the same one. On a shared machine,
    ``clock=time.process_time`` leaves out the time for which this process waited (one thread only).
    """
    samples: dict[str, list[float]] = {name: [] for name in functions}
    names = list(functions)
    for turn in range(warm_up + repeats):
        for name in names if turn % 2 == 0 else reversed(names):
            start = clock()
            functions[name]()
            elapsed = clock() - start
            if turn >= warm_up:
                samples[name].append(elapsed)
    return {name: summary(values) for name, values in samples.items()}


def summary(values: list[float]) -> Timing:
    """Return the median, quartiles and minimum of `values` (seconds, at least one)."""
    if len(values) < 2:
        return Timing(values[0], values[0], values[0], values[0], len(values))
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return Timing(statistics.median(values), min(values), low, high, len(values))


def rows(name: str, timings: dict[str, Timing], reference: str, work: float) -> list[dict]:
    """Return one record for each function: times, multiply-adds a second (`work` a call), ratio to the reference."""
    base = timings[reference].median
    return [
        {"benchmark": name, "path": path, "ratio": t.median / base, "gmacs": work / t.median / 1e9}
        | {"spread": t.spread, **asdict(t)}
        for path, t in timings.items()
    ]


def print_rows(records: list[dict]) -> None:
    """Print the records as a table: median milliseconds, multiply-adds a second, ratio of medians, spread."""
    width = max(len(f"{r['benchmark']} {r['path']}") for r in records)
    print(f"{'path':{width}}  {'median ms':>10}  {'GMAC/s':>8}  {'ratio':>6}  spread")
    for r in records:
        label = f"{r['benchmark']} {r['path']}"
        numbers = f"{1e3 * r['median']:10.3f}  {r['gmacs']:8.2f}  {r['ratio']:6.2f}"
        print(f"{label:{width}}  {numbers}  {100 * r['spread']:4.0f} %")


def write_json(path: str | os.PathLike, content: object) -> None:
    """Write `content` as JSON; an interrupted run leaves the old file complete."""
    from tensorcore_models.files import write_text

    write_text(path, json.dumps(content, indent=1) + "\n")


def report(records: list[dict], json_path: str | os.PathLike | None = None) -> None:
    """Print the records with their machine; write both as JSON if a path is given."""
    host = machine()
    if host["blas_core_asked"] not in ("", host["blas_core"]):
        print(f"note: BLAS kernel {host['blas_core']!r} ran instead of the requested {host['blas_core_asked']!r}")
    blas = f"BLAS kernel {host['blas_core']}, {host['threads']} thread(s)"
    print(f"{host['cpu']}; {blas}; numpy {host['numpy']}")
    print_rows(records)
    if json_path is not None:
        write_json(json_path, {"machine": host, "rows": records})
