"""This benchmark compares SGEMM-cube (with its split) and the native FP16 product with numpy's SGEMM, interleaved.

python bench/bench_sgemm_cube.py [--sizes 512 1024] [--threads 1] [--quick] [--json out/sgemm_cube.json]
"""

from harness import interleaved, prepared, report, rows


def main() -> None:
    args = prepared(__doc__, sizes=[512, 1024], quick=False)
    import numpy as np

    import ascend
    import tensorcore_models as tcm

    tcm.set_num_threads(args.threads)
    rng = np.random.default_rng(1)
    records = []
    for size in args.sizes:
        a, b = (rng.standard_normal((size, size), np.float32) for _ in range(2))

        def with_isa(isa, a=a, b=b, **options):
            def run():
                tcm.set_isa(isa)
                return ascend.cube_gemm(a, b, **options)

            return run

        best = tcm.available_isas()[-1]
        functions = {"sgemm": lambda a=a, b=b: a @ b}
        functions |= {f"termwise {isa}": with_isa(isa) for isa in reversed(tcm.available_isas())}
        if not args.quick:
            functions |= {
                "termwise pairwise": with_isa(best, step_order="pairwise"),
                "termwise exact steps": with_isa(best, step_order="exact"),
                "termwise_inplace": with_isa(best, order="termwise_inplace"),
                "elementwise": with_isa(best, order="elementwise"),
                "four terms": with_isa(best, low_low=True),
                "blocks 176, 64, 176": with_isa(best, blocking=ascend.Blocking(176, 64, 176)),
                "native fp16": lambda a=a, b=b: ascend.cube_hgemm(a, b),
            }
        timings = interleaved(functions, repeats=5 if args.quick else 15)
        tcm.set_isa(None)
        records += rows(f"{size}^3", timings, "sgemm", size**3)
    report(records, args.json)


if __name__ == "__main__":
    main()
