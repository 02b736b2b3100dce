"""Speed of encode and split_fp16 beside a plain copy of the source, interleaved, medians.

Run: python bench/bench_rounding.py [elements]
"""

import statistics
import sys
import time

import numpy as np

import tensorcore_models as tcm

REPEATS = 7


def interleaved(calls):
    """Median seconds of each call, all run in turn so that they see the same machine."""
    times = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 24
    x = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    print(f"{count} float32 elements, median of {REPEATS}: G elements/s, and time relative to x.copy()")
    for isa in tcm.available_isas():
        tcm.set_isa(isa)
        for threads in (1, 2):
            tcm.set_num_threads(threads)
            calls = {"copy": x.copy, "split_fp16": lambda: tcm.split_fp16(x)}
            for fmt in ("fp16", "bf16", "e4m3fn"):
                calls[f"encode {fmt}"] = lambda fmt=fmt: tcm.encode(x, fmt)
            calls["encode fp16 rz"] = lambda: tcm.encode(x, "fp16", "rz")
            calls["encode fp16 sr"] = lambda: tcm.encode(x, "fp16", "sr")
            seconds = interleaved(calls)
            for name, value in seconds.items():
                print(
                    f"{isa:9s} {threads} thread(s) {name:15s} {count / value / 1e9:6.2f} {value / seconds['copy']:6.2f}"
                )


if __name__ == "__main__":
    main()
