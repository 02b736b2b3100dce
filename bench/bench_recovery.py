"""This benchmark measures a recovery method's time beside its engine passes: splitting, joining, outside sums.

    python bench/bench_recovery.py [--sizes 512 1024] [--engine a100] [--only WORD] [--cpu-time] [--quick]

The runs are interleaved. The reference of each method is as many plain engine products of words as it has passes; a
ratio of 1.25 means 25 % in addition.
"""

from harness import interleaved, prepared, report, rows

METHODS = (
    "markidis", "markidis_scaled", "egemm", "ootomo", "ootomo:accumulate_outside=c_only", "ootomo_inside", "ootomo_tf32",
    "sgemm_cube", "multiword", "bf16x3", "bf16x9", "tf32x3", "mixpert", "quantensor", "ozaki_int8", "ozaki2_int8", "fp64",
    "cutlass_bf16x9", "ozaki_fp8", "ozaki2_fp8",
)  # fmt: skip


def main() -> None:
    args = prepared(__doc__, sizes=[512, 1024], engine="a100", only="", cpu_time=False, quick=False)
    import numpy as np

    import mpgemm
    import tensorcore_models as tcm
    from mpgemm.recovery.run import prepare

    tcm.set_num_threads(args.threads)
    rng = np.random.default_rng(1)
    records = []
    for size in args.sizes:
        a, b = (rng.standard_normal((size, size), np.float32) for _ in range(2))
        for name in METHODS:
            if args.only not in name:
                continue
            row = mpgemm.get_method(name)
            try:
                engine = mpgemm.resolve_engine(args.engine, row)
            except mpgemm.UnsuitableEngine:
                engine = mpgemm.resolve_engine(None, row)
            word_a, word_b = _words(prepare(a, b, None, row, engine))

            def passes(engine=engine, row=row, word_a=word_a, word_b=word_b):
                for _ in range(row.passes):
                    engine.gemm_bits(word_a, word_b)

            def method(engine=engine, row=row, a=a, b=b):
                mpgemm.recovered_gemm(a, b, None, row, engine)

            timings = interleaved({"passes": passes, name: method}, 3 if args.quick else 9, clock=args.clock)
            records += rows(f"{size}^3, {row.passes} passes", timings, "passes", row.passes * size**3)
    report(records, args.json)


def _words(run):
    """Return one word of each operand as encodings."""
    if run.row.kind == "words":
        return run.words()[0][0], run.words()[1][0]
    import numpy as np

    from mpgemm.recovery.integer_run import encoded

    rng = np.random.default_rng(2)
    return tuple(encoded(rng.integers(-15, 16, x.shape, np.int8), run.word_format) for x in (run.a, run.b))


if __name__ == "__main__":
    main()
