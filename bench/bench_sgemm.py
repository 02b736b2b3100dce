"""This benchmark compares FP32 products on the AMX unit with OpenBLAS's best SGEMM kernel, interleaved in one run.

    python bench/bench_sgemm.py [--sizes 512 1024 2048 4096] [--threads 1] [--turns 15] [--json out/sgemm.json]

It also measures the unit's peak turn by turn in the same run (products alone, operands in the first-level cache), and
prints the share of the peak that products of words reach, including splitting, packing and the traffic of C. Without
AMX it says so and ends. With MPGEMM_AMX=emulated it runs on the emulation, which shows that it works but says nothing
about speed.
"""

from harness import interleaved, prepared, report, rows

#: Multiply-adds of one turn of the peak's measurement.
PEAK_WORK = 4e9


def print_shares(records: list[dict]) -> None:
    """Print how much faster than SGEMM each method is, and which share of the unit's peak it reaches."""
    print("times faster than SGEMM (quartiles), share of the unit's peak:")
    for row in records:
        if "share" in row:
            base = next(r for r in records if r["benchmark"] == row["benchmark"] and r["path"] == "sgemm")["median"]
            quartiles = f"{base / row['high_quartile']:.2f} to {base / row['low_quartile']:.2f}"
            share = f"{row['share']:.0%} of {row['peak_gmacs']:.0f} GMAC/s"
            print(f"  {row['benchmark']} {row['path']}: {row['faster']:.2f} ({quartiles}), {share}")


def main() -> None:
    args = prepared(__doc__, core=None, sizes=[512, 1024, 2048, 4096], methods=["bf16x6", "bf16x9", "int8"], turns=15)
    import numpy as np

    import mpgemm
    import tensorcore_models as tcm
    from mpgemm._kernels import amx_sgemm
    from mpgemm.amx import METHODS, unit_missing
    from tensorcore_models.cpu_units.units import setting

    missing = [reason for method in args.methods if (reason := unit_missing(method))]
    if missing:
        print(f"nothing to measure: {missing[0]}")
        return
    emulated = setting() == "emulated"
    tcm.set_num_threads(args.threads)
    rng = np.random.default_rng(1)
    words = rng.integers(0, 256, 1 << 14, dtype=np.uint8) & np.uint8(0xBF)  # bf16 without infinities and NaN
    rounds = 1 if emulated else max(1, int(PEAK_WORK / args.threads / amx_sgemm.peak(words, 1, False, emulated, 1)))
    records = []
    for size in args.sizes:
        a, b = (rng.standard_normal((size, size), np.float32) for _ in range(2))
        functions = {"sgemm": lambda a=a, b=b: a @ b}
        for method in args.methods:
            functions[method] = lambda a=a, b=b, method=method: mpgemm.sgemm(a, b, method=method)
        for name, is_int8 in (("peak bf16", False), ("peak int8", True)):
            functions[name] = lambda is_int8=is_int8: amx_sgemm.peak(words, rounds, is_int8, emulated, args.threads)
        timings = interleaved(functions, repeats=args.turns)
        peaks = {name: functions[name]() / timings.pop(name).median for name in ("peak bf16", "peak int8")}
        found = rows(f"{size}^3", timings, "sgemm", size**3)
        for row in found:
            if row["path"] in METHODS:
                peak = peaks["peak int8" if row["path"] == "int8" else "peak bf16"]
                products = mpgemm.get_method(METHODS[row["path"]]["method"]).passes
                row |= {
                    "faster": 1 / row["ratio"],
                    "peak_gmacs": peak / 1e9,
                    "share": products * 1e9 * row["gmacs"] / peak,
                }
        records += found
    report(records, args.json)
    if emulated:
        print("emulated: no measurement of the unit")
        return
    print_shares(records)


if __name__ == "__main__":
    main()
