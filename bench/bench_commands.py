"""This benchmark measures the CPU time of commands, as ratios to numpy's SGEMM of 1024^3 in the same run.

    python bench/bench_commands.py [--only WORD] [--turns 3] [--json out/commands.json]

Every command runs in its own process, as from a shell, on files of normal random data. CPU time is that of the process
and its children, so that other load on the machine does not count. It makes the table of docs/performance.md.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import hold_blas, machine, summary, write_json

#: Timed commands: the name, and the arguments of Python.
COMMANDS = (
    ("import mpgemm", ("-c", "import mpgemm")),
    ("mpgemm --help", ("-m", "mpgemm", "--help")),
    ("mpgemm evaluate --help", ("-m", "mpgemm", "evaluate", "--help")),
    ("tolerance --engine h100 --k 4096", ("-m", "mpgemm", "tolerance", "--engine", "h100", "--k", "4096")),
    (
        "tolerance --engine h100 --shape 512 4096 512",
        ("-m", "mpgemm", "tolerance", "--engine", "h100", "--shape", "512", "4096", "512"),
    ),
    ("whodunit, 48 x 768 x 40", ("-m", "mpgemm", "whodunit", "a48.npy", "b48.npy", "c48.npy")),
    ("whodunit, 48 x 768 x 40, FP16 output", ("-m", "mpgemm", "whodunit", "a48.npy", "b48.npy", "c48_fp16.npy")),
    ("whodunit, 48 x 768 x 40, FP32 operands", ("-m", "mpgemm", "whodunit", "a48_fp32.npy", "b48_fp32.npy", "c48.npy")),
    ("evaluate, the shipped pairs", ("-m", "mpgemm", "evaluate")),
    ("reproduce xue8a", ("-m", "mpgemm", "reproduce", "xue8a", "--out", "figure", "--fresh")),
    (
        "compare, 7 methods, 6 engines, 64 x 512 x 64",
        ("-m", "mpgemm", "compare", "--shape", "64", "512", "64",
         "--methods", "fp16", "bf16x3", "markidis", "ootomo", "ma", "egemm", "sgemm_cube",
         "--engines", "v100", "a100", "h100", "b200", "mi300x", "l40s"),
    ),
    (
        "identify, a unit outside of the families",
        ("-m", "mpgemm", "identify", "--python", "kahan:box", "--k", "4",
         "--a-format", "fp32", "--b-format", "fp32", "--c-format", "fp32", "--d-format", "fp32")),
    ("plan 4096 4096 4096 --chip 910A", ("-m", "mpgemm", "plan", "4096", "4096", "4096", "--chip", "910A")),
)  # fmt: skip

#: A unit outside of all families: Kahan's compensated sum of FP32 products.
BOX = """
import numpy as np

def box(a, b, c):
    total, low = np.array(c, np.float32), np.zeros_like(c, np.float32)
    for k in range(a.shape[-1]):
        y = np.float32(a[..., k, None].astype(np.float32) * b[..., k, None, :].astype(np.float32)) - low
        t = np.float32(total + y)
        low = np.float32(np.float32(t - total) - y)
        total = t
    return total
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="commands whose line has this word")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", default="out/commands.json")
    return parser.parse_args()


def write_files(folder: Path) -> None:
    """Write the operands and results that the commands read, and return their paths."""
    import numpy as np

    import mpgemm

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((48, 768), (768, 40)))
    wide = {"a48_fp32": a.astype(np.float32), "b48_fp32": b.astype(np.float32)}
    c = mpgemm.recovered_gemm(*wide.values(), method="fp16", engine="h100")
    for name, x in {"a48": a, "b48": b, "c48": c, "c48_fp16": c.astype(np.float16), **wide}.items():
        np.save(folder / f"{name}.npy", x)
    (folder / "kahan.py").write_text(BOX)


def cpu_seconds(words: tuple[str, ...], folder: Path) -> float:
    """Return the CPU time of one run of Python with these arguments, including its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(Path(__file__).parents[1])))}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Status 1 is a valid answer: identify found nothing.
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(f"{' '.join(words)}: exit status {done.returncode}: {done.stderr[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sgemm_seconds() -> float:
    """Return the CPU time of numpy's 1024^3 product in this process, the fastest of five."""
    import numpy as np

    x = np.ones((1024, 1024), np.float32)
    times = []
    for _ in range(6):
        start = time.process_time()
        x @ x
        times.append(time.process_time() - start)
    return min(times[1:])


def main() -> None:
    args = arguments()
    hold_blas(1)
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        print(f"{'command':52} {'CPU s':>8} {'SGEMMs of 1024^3':>18}")
        for line, words in (row for row in COMMANDS if args.only in row[0]):
            pairs = [(cpu_seconds(words, folder), sgemm_seconds()) for _ in range(args.turns)]
            seconds, ratio = summary([s for s, _ in pairs]).median, summary([s / r for s, r in pairs]).median
            records.append({"command": line, "cpu_seconds": seconds, "ratio": ratio, "turns": args.turns})
            print(f"{line:52} {seconds:8.2f} {ratio:18.0f}", flush=True)
    write_json(args.json, {"machine": machine(), "rows": records})


if __name__ == "__main__":
    main()
