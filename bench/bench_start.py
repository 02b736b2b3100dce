"""This benchmark measures the CPU time of imports, of every command's help, and of the slowest modules (-X importtime).

python bench/bench_start.py [--turns 5] [--json out/start.json]
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from bench_commands import cpu_seconds
from harness import hold_blas, machine, summary, write_json

FOLDER = Path(__file__).parents[1]


def slowest_modules(words: tuple[str, ...], count: int = 8) -> list[tuple[float, str]]:
    """Return the milliseconds that modules take themselves, without those that they import."""
    done = subprocess.run([sys.executable, "-X", "importtime", *words], cwd=FOLDER, capture_output=True, text=True)
    lines = re.findall(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)", done.stderr)
    return sorted(((int(own) / 1000, name) for own, name in lines), reverse=True)[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", default="out/start.json")
    args = parser.parse_args()
    hold_blas(1)
    from mpgemm.cli.common.discovery import all_commands

    runs = {"python": ("-c", "pass"), "import numpy": ("-c", "import numpy"), "import mpgemm": ("-c", "import mpgemm")}
    runs |= {
        f"mpgemm {name} --help".replace("  ", " "): ("-m", "mpgemm", *name.split(), "--help")
        for name in ("", *all_commands())
    }
    records = []
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(args.turns):
        for name, words in runs.items():
            times[name].append(cpu_seconds(words, FOLDER))
    for name, words in runs.items():
        seconds = summary(times[name]).median
        worst = slowest_modules(words, 3)
        records.append({"start": name, "cpu_seconds": seconds, "modules": worst})
        print(f"{name:32} {seconds:6.3f} s   {', '.join(f'{module} {ms:.0f} ms' for ms, module in worst)}")
    write_json(args.json, {"machine": machine(), "rows": records})


if __name__ == "__main__":
    main()
