"""This benchmark compares encode and split_fp16 with a plain copy of the source, interleaved, for every instruction set.

python bench/bench_rounding.py [--size 16777216] [--threads 1] [--cpu-time] [--json out/rounding.json]
"""

from harness import interleaved, prepared, report, rows


def main() -> None:
    args = prepared(__doc__, size=1 << 24, cpu_time=False)
    import numpy as np

    import tensorcore_models as tcm

    tcm.set_num_threads(args.threads)
    x = np.random.default_rng(0).standard_normal(args.size, np.float32)
    calls = {"copy": x.copy, "split_fp16": lambda: tcm.split_fp16(x)}
    for fmt, rounding in (("fp16", "rne"), ("bf16", "rne"), ("e4m3fn", "rne"), ("fp16", "rz"), ("fp16", "sr")):
        calls[f"encode {fmt} {rounding}"] = lambda fmt=fmt, rounding=rounding: tcm.encode(x, fmt, rounding)
    records = []
    for isa in tcm.available_isas():
        tcm.set_isa(isa)
        records += rows(isa, interleaved(calls, 7, clock=args.clock), "copy", args.size)
    report(records, args.json)


if __name__ == "__main__":
    main()
