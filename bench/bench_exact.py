"""This benchmark measures exact_gemm against numpy's SGEMM, interleaved in one run: FP32 results and exact differences.

    python bench/bench_exact.py [--sizes 512 1024] [--threads 1] [--quick] [--json out/exact.json]

Cancelling data: the two halves of k cancel up to about 2^-22 of the sum of magnitudes, so that certificates of
binary64 sums leave most FP32 results open.
"""

from harness import interleaved, prepared, report, rows


def matrices(rng, size: int, cancelling: bool):
    """Return normal float32 matrices; if cancelling, the second half of k nearly repeats the first with opposite sign."""
    import numpy as np

    a, b = (rng.standard_normal((size, size), np.float32) for _ in range(2))
    if cancelling:
        half = size // 2
        a[:, half:] = a[:, :half]
        b[half:] = -b[:half] * (1 + np.float32(2**-23) * rng.integers(-2, 3, (half, size)).astype(np.float32))
    return a, b


def main() -> None:
    args = prepared(__doc__, sizes=[512, 1024], quick=False)
    import numpy as np

    import mpgemm
    import tensorcore_models as tcm

    tcm.set_num_threads(args.threads)
    rng = np.random.default_rng(1)
    records = []
    for size in args.sizes:
        for kind in ("benign", "cancelling"):
            a, b = matrices(rng, size, kind == "cancelling")
            computed = a @ b

            def rounded(isa, a=a, b=b):
                def run():
                    tcm.set_isa(isa)
                    return mpgemm.exact_gemm(a, b).rounded("fp32")

                return run

            isas = tcm.available_isas()[-1:] if args.quick else tuple(reversed(tcm.available_isas()))
            functions = {"sgemm": lambda a=a, b=b: a @ b}
            functions |= {f"rounded fp32, {isa}": rounded(isa) for isa in isas}
            functions["error_of"] = lambda a=a, b=b, x=computed: mpgemm.exact_gemm(a, b).error_of(x)
            timings = interleaved(functions, repeats=5 if args.quick else 15)
            tcm.set_isa(None)
            records += rows(f"{size}^3 {kind}", timings, "sgemm", size**3)
    report(records, args.json)


if __name__ == "__main__":
    main()
