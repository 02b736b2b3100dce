"""This benchmark measures the speed of the Ascend planner and simulator against the bounds that the project states.

    python bench/bench_ascend.py [--repeats 5] [--json FILE]

Each figure is the median of interleaved repeats (every round runs each job once), with the spread, in CPU time of one
core. Bounds: the analytic ranking of the whole feasible space takes less than 50 ms; ranking with the best 200
simulated less than 5 s; a plan of the joint space with its errors less than 1 s; the simulator places at least 2
million operations a second.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import ascend
from ascend.pipes.build import build_program
from ascend.pipes.simulate import run_program
from ascend.schedule import build_schedule

CHIP = ascend.get_chip("910A")
SIZE = (5632, 2816, 5632)
LARGE = (16384, 8192, 16384)
#: Shapes whose plan must take less than a second.
SHAPES = ((1, 4096, 4096), (1000, 333, 777), SIZE, (32, 11008, 4096), LARGE)


def _program(b: int, size: tuple[int, int, int]):
    m, k, n = size
    return build_program(build_schedule(m, k, n, CHIP, ascend.Blocking(b, 64, b)))


def paper_plan(shape: tuple[int, int, int], **options):
    """Return the ranking of the paper's kernel, without errors."""
    return ascend.plan(*shape, CHIP, kernel="paper", error_of=lambda schedule: 0.0, **options)


def jobs() -> dict[str, tuple[Callable[[], float], str, float]]:
    """Return the jobs as name -> (job that returns its figure, unit, bound)."""
    best, small = _program(176, SIZE), _program(64, SIZE)

    def seconds(f: Callable[[], object]) -> float:
        start = time.process_time()
        f()
        return time.process_time() - start

    def rate(program, **options) -> float:
        start = time.process_time()
        timeline = run_program(program, **options)
        return timeline.events / (time.process_time() - start) / 1e6

    return {
        "analytic ranking, the paper's 2329 blocks": (
            lambda: 1e3 * seconds(lambda: paper_plan(SIZE, rank="analytic")),
            "ms",
            50,
        ),
        "the paper's best 200 simulated, 5632 x 2816 x 5632": (lambda: seconds(lambda: paper_plan(SIZE)), "s", 5),
        "the paper's best 200 simulated, 16384 x 8192 x 16384": (lambda: seconds(lambda: paper_plan(LARGE)), "s", 5),
        **{
            f"plan with errors, {' x '.join(map(str, shape))}": (
                lambda shape=shape: seconds(lambda: ascend.plan(*shape, CHIP)),
                "s",
                1,
            )
            for shape in SHAPES
        },
        "one core, every operation, block 64": (lambda: rate(small, steady_state=False), "M operations/s", 2),
        "all 32 cores, block 176": (lambda: rate(best, all_cores=True), "M operations/s", 2),
        "all 32 cores, block 64": (lambda: rate(small, all_cores=True), "M operations/s", 2),
    }


def main() -> None:
    """Run the jobs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    table = jobs()
    samples: dict[str, list[float]] = {name: [] for name in table}
    for _ in range(args.repeats):
        for name, (job, _, _) in table.items():
            samples[name].append(job())
    rows = []
    for name, (_, unit, bound) in table.items():
        values = samples[name]
        rows.append(
            {"job": name, "median": statistics.median(values), "least": min(values), "most": max(values), "unit": unit,
             "bound": bound}
        )  # fmt: skip
        row = rows[-1]
        comparison = "at least" if "/s" in unit else "under"
        print(
            f"{name:54s} {row['median']:8.2f} {unit:15s} ({row['least']:.2f} to {row['most']:.2f}; {comparison} {bound:g})"
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
