"""This benchmark measures how cost grows with n, N, F and threads, and the cost of special inputs (docs/performance.md).

    python bench/bench_growth.py [--only n|N|F|threads|inputs|memory] [--quick] [--cpu-time] [--isa avx2] [--json FILE]

Every line is interleaved with its reference in one run. Ratios are of medians, or of the fastest turns where stated.
Two threads are compared with two processes of one thread each that run the same product at the same time, because cores
of a shared machine are seldom equal, and two seldom give twice the speed of one.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Pipe, get_context
from pathlib import Path

from harness import hold_blas, interleaved, machine, pin, rows, write_json
from run import operands, units

#: Paths of bench/run.py that the tables follow.
PATHS = (
    "FDA fp16 N=16 F=25", "FDA bf16 N=16 F=25", "FDA tf32 N=8 F=25", "FDA fp8 N=32 F=13", "mxfp8 block scaled", "nvfp4 GDFS",
    "CDNA3 FDRDA fp16", "CDNA2 GPS fp16", "SFMA fp32", "SFMA fp64", "IntegerDotAdd s8", "parametric, nearest alignment",
)  # fmt: skip
SECTIONS = ("n", "N", "F", "threads", "inputs", "memory")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=SECTIONS)
    parser.add_argument("--quick", action="store_true", help="fewer turns, n up to 2048")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time instead of wall time, except for threads")
    parser.add_argument("--isa", help="instruction set (default: the best of this CPU)")
    parser.add_argument("--json", default="out/growth.json")
    args = parser.parse_args()
    args.repeats = 3 if args.quick else 9
    args.clock = time.process_time if args.cpu_time else time.perf_counter
    return args


def table(title: str, functions: dict[str, Callable], reference: str, work: float, args) -> list[dict]:
    """Time, print and return the lines of one table."""
    records = rows(title, interleaved(functions, args.repeats, 1, args.clock), reference, work)
    for r in records:
        print(
            f"{title:34} {r['path']:30} {r['gmacs']:8.2f} GMAC/s {r['ratio']:7.3f} {100 * r['spread']:4.0f} %",
            flush=True,
        )
    return records


def product(engine, data):
    from tensorcore_models import kernels

    return lambda: kernels.matrix_bits(engine, *data)


def repeat(call: Callable, calls: int) -> None:
    """Time calls whose results are dropped at once, because kept results would need fresh pages, mostly for small products."""
    for _ in range(calls):
        call()


def by_size(rng, args) -> list[dict]:
    """Return the time of a product of n^3 over that at n = 512, in blocks of calls that take equally long up to 1024."""
    records = []
    for name in PATHS:
        engine, functions = units()[name][0], {}
        for size in (512, 256, 1024, 2048) if args.quick else (512, 256, 1024, 2048, 4096):
            call, calls = product(engine, operands(engine, size, rng)), max(1, (1024 // size) ** 3)
            functions[f"{size}"] = lambda call=call, calls=calls: repeat(call, calls)
        timings = interleaved(functions, args.repeats, 1, args.clock)
        work = {size: max(1, (1024 // int(size)) ** 3) * int(size) ** 3 for size in timings}
        each = {size: t.median / work[size] for size, t in timings.items()}
        least = {size: t.fastest / work[size] for size, t in timings.items()}
        ratios = {size: (each[size] / each["512"], least[size] / least["512"]) for size in sorted(each, key=int)}
        records.append({"benchmark": "n", "path": name} | ratios)
        shown = "  ".join(f"{size}: {1e-9 / each[size]:6.2f} {x:5.2f} ({y:4.2f})" for size, (x, y) in ratios.items())
        print(f"{name:34} {shown}", flush=True)
    return records


def by_engine(engines: dict, title: str, rng, args) -> list[dict]:
    functions = {name: product(engine, operands(engine, 512, rng)) for name, engine in engines.items()}
    return table(title, functions, next(iter(functions)), 512**3, args)


def by_terms(rng, args) -> list[dict]:
    from tensorcore_models import FusedDotAdd, MatrixEngine

    sets = (("fp16", 24, "32-bit lanes, F = 24"), ("bf16", 24, "32-bit lanes, shifted, F = 24"))
    return [
        record
        for fmt, bits, title in sets
        for record in by_engine(
            {f"{fmt} N = {n}": MatrixEngine(FusedDotAdd(n, bits), a_format=fmt) for n in (16, 8, 4)},
            title,
            rng,
            args,
        )
    ]


def by_fraction(rng, args) -> list[dict]:
    from tensorcore_models import FusedDotAdd, MatrixEngine

    engines = {
        f"fp16 N = 8, F = {f}": MatrixEngine(FusedDotAdd(8, f), a_format="fp16") for f in (24, 13, 20, 25, 26, 28)
    }
    engines |= {f"fp8 N = 32, F = {f}": MatrixEngine(FusedDotAdd(32, f), a_format="e4m3fn") for f in (13, 22, 25)}
    return by_engine(engines, "F", rng, args)


def neighbour(commands) -> None:
    """Run products in one thread in another process, from one message to the next, and send how many it does in a second."""
    import numpy as np

    import tensorcore_models as tcm

    tcm.set_num_threads(1)
    while name := commands.recv():
        engine = units()[name][0]
        call = product(engine, operands(engine, 1024, np.random.default_rng(1)))
        while commands.recv() == "run":
            commands.send("running")
            start, count = time.perf_counter(), 0
            while not commands.poll():
                call()
                count += 1
            commands.recv()
            commands.send(count / (time.perf_counter() - start))


def rate(call: Callable, calls: int) -> float:
    """Return the number of calls in a second."""
    start = time.perf_counter()
    repeat(call, calls)
    return calls / (time.perf_counter() - start)


def beside(other, call: Callable, calls: int) -> float:
    """Return the products in a second of this process and of another one that runs at the same time."""
    other.send("run")
    other.recv()
    mine = rate(call, calls)
    other.send("rest")
    return mine + other.recv()


def threads_of(name: str, other, rng, args) -> dict:
    """Compare, for one path, two threads with one, and with two processes of one thread each, the limit of two cores."""
    import tensorcore_models as tcm

    engine = units()[name][0]
    call = product(engine, operands(engine, 1024, rng))
    calls = 1 + int(0.1 * rate(call, 1))
    one, two, both = [], [], []
    other.send(name)
    for _ in range(args.repeats):
        one.append(rate(call, calls))
        both.append(beside(other, call, calls))
        tcm.set_num_threads(2)
        two.append(rate(call, 2 * calls))
        tcm.set_num_threads(1)
    other.send("next")
    median = statistics.median
    return {
        "benchmark": "threads",
        "path": name,
        "gmacs": 1024**3 / 1e9 * median(one),
        "two_threads": median(two) / median(one),
        "two_processes": median(both) / median(one),
        "share": median(x / y for x, y in zip(two, both, strict=True)),
    }


def by_threads(rng, args) -> list[dict]:
    mine, other = Pipe()
    process = get_context("spawn").Process(target=neighbour, args=(other,), daemon=True)
    process.start()
    records = []
    for name in PATHS:
        r = threads_of(name, mine, rng, args)
        print(
            f"threads, 1024^3  {name:30} {r['gmacs']:7.2f} GMAC/s  two threads {r['two_threads']:.2f} x  two processes "
            f"{r['two_processes']:.2f} x  share {r['share']:.2f}",
            flush=True,
        )
        records.append(r)
    mine.send("")
    process.join()
    return records


def kinds(engine, rng) -> dict[str, list]:
    """Return operands of one engine: normal random data, and the same with values that hardware treats specially."""
    import numpy as np

    import tensorcore_models as tcm

    size = 512
    plain = operands(engine, size, rng)
    fmt = tcm.get_format(engine.a_format)
    if not hasattr(fmt, "fraction_bits"):
        return {"normal": plain}

    def changed(change):
        return [change(plain[0]), change(plain[1]), *plain[2:]]

    largest = 1 << (fmt.fraction_bits + fmt.padding_bits)

    def subnormal(x):
        tiny = rng.integers(0, largest, x.shape).astype(x.dtype)
        return np.where(rng.random(x.shape) < 0.5, tiny, x)

    def wide(x):
        reach = min(fmt.emax, 50)  # sums stay below 2^128, because an overflow to infinity takes another path
        field = rng.integers(max(0, fmt.bias - reach), fmt.bias + reach, x.shape, np.uint64)
        sign, fraction = rng.integers(0, 2, x.shape, np.uint64), rng.integers(0, largest, x.shape, np.uint64)
        return (sign << np.uint64(fmt.bits - 1) | field * np.uint64(largest) | fraction).astype(x.dtype)

    found = {
        "normal": plain,
        "half zeros": changed(lambda x: np.where(rng.random(x.shape) < 0.5, x.dtype.type(0), x)),
        "half subnormal": changed(subnormal),
        "wide exponents": changed(wide),
    }
    if fmt.has_nan:
        special = [x.copy() for x in plain]
        special[0][7, 9] = fmt.nan_bits
        found["one NaN in A"] = special
    return found


def by_inputs(rng, args) -> list[dict]:
    records = []
    for name in PATHS:
        engine = units()[name][0]
        functions = {kind: product(engine, data) for kind, data in kinds(engine, rng).items()}
        records += table(name, functions, "normal", 512**3, args)
    return records


def resident(field: str) -> int:
    """Return the KiB that the kernel reports for this process: current VmRSS, and VmHWM since it was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def added_memory(name: str, size: int) -> int:
    """Return the most KiB that one product takes beyond its operands, in its own process."""
    import numpy as np

    engine = units()[name][0]
    call = product(engine, operands(engine, size, np.random.default_rng(0)))
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, the largest resident size
    before = resident("VmRSS")
    call()
    return resident("VmHWM") - before


def by_memory(_, args) -> list[dict]:
    records, size = [], 2048 if args.quick else 4096
    for name in PATHS:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found = pool.submit(added_memory, name, size).result() / 1024
        records.append({"benchmark": "memory", "path": name, "size": size, "mebibytes": found})
        print(f"memory, {size}^3{'':20} {name:30} {found:7.1f} MiB, the result among them", flush=True)
    return records


def main() -> None:
    args = arguments()
    hold_blas(1)
    if "threads" not in args.only:
        pin(1)
    import numpy as np

    import tensorcore_models as tcm

    tcm.set_num_threads(1)
    rng = np.random.default_rng(1)
    tcm.set_isa(args.isa)
    tables = by_size, by_terms, by_fraction, by_threads, by_inputs, by_memory
    sections = dict(zip(SECTIONS, tables, strict=True))
    records = [record for name in SECTIONS if name in args.only for record in sections[name](rng, args)]
    write_json(args.json, {"machine": machine(), "rows": records})


if __name__ == "__main__":
    main()
