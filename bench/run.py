"""This benchmark compares every fast path with numpy's SGEMM of the same size, interleaved in one run.

    python bench/run.py [--quick] [--size 512] [--threads 1] [--json out/bench.json] [--page docs/performance.md]

The ratio is between median times. The limit is the speed of a core that starts nothing but the path's vector
instructions: the number of instructions for 16 products (docs/performance.md counts them) over the rate that
bench/probe.c measures beside each row, turn by turn.
"""

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench_exact import matrices
from harness import interleaved, machine, prepared, rows, write_json
from page import write_page

LANES = (4, 8, 16)
NOT_HERE = "not measurable here"


# -- vector instructions for 16 products (docs/performance.md), by level; None: not counted -----------------------------------
def narrow_count(terms: int, wide_sum: bool = False, fp16: bool = False):
    avx512 = 4.5 + (11.75 + 3 * wide_sum + 11 * fp16) / terms
    avx2 = 9 + (26 + 7 * (terms == 16) + 24 * fp16) / terms
    return lambda level: (None, avx2, avx512)[level]


def down_count(terms: int, halves: int = 1):
    avx2, avx512 = (70, 32) if halves == 1 else (100, 46)
    return lambda level: (None, 9 + avx2 / terms, 4.5 + avx512 / terms)[level]


def wide_count(terms: int):
    return lambda level: (26 + 152 / terms, 9 + 58.5 / terms, 4.5 + 20.5 / terms)[level]


def vector_count(avx2: float, avx512: float):
    return lambda level: (None, avx2, avx512)[level]


def plain_count(instructions: float):
    return lambda level: instructions * 16 / LANES[level]


#: Rounds of bench/probe.c in one measurement, which takes about as long as a row's own calls.
PROBE_ROUNDS = 300_000


def instruction_probe() -> Callable[[int, int], int] | None:
    """Return probe(level, rounds), which starts vector instructions and returns their number; None if it cannot be built."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "probe.so"
        source = Path(__file__).with_name("probe.c")
        try:
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        probe = ctypes.CDLL(str(library)).probe
        probe.restype, probe.argtypes = ctypes.c_int64, (ctypes.c_int, ctypes.c_int64)
    return probe


def units():
    """Return the accumulators of the table, with the vector instructions of their path (None: not counted)."""
    import tensorcore_models as tcm

    def engine(accumulator, a, c="fp32", **scales):
        return tcm.MatrixEngine(accumulator, a_format=a, b_format=a, c_format=c, d_format=c, **scales)

    rne = {"output_rounding": "rne"}
    exact = {**rne, "nan": "quiet", "negative_underflow": "negative"}
    mx = {"scale_format": "ue8m0", "block_size": 32}
    return {
        "FDA fp16 N=4 F=23": (engine(tcm.FusedDotAdd(4, 23), "fp16"), narrow_count(4)),
        "FDA fp16 N=8 F=24": (engine(tcm.FusedDotAdd(8, 24), "fp16"), narrow_count(8)),
        "FDA fp16 N=16 F=25": (engine(tcm.FusedDotAdd(16, 25), "fp16"), narrow_count(16, True)),
        "FDA fp16, fp16 out": (engine(tcm.FusedDotAdd(16, 25, **rne), "fp16", "fp16"), narrow_count(16, True, True)),
        "FDA bf16 N=16 F=25": (engine(tcm.FusedDotAdd(16, 25), "bf16"), narrow_count(16, True)),
        "FDA tf32 N=4 F=24": (engine(tcm.FusedDotAdd(4, 24), "tf32"), narrow_count(4)),
        "FDA tf32 N=8 F=25": (engine(tcm.FusedDotAdd(8, 25), "tf32"), narrow_count(8)),
        "FDA fp8 N=32 F=13": (engine(tcm.FusedDotAdd(32, 13, output_fraction_bits=13), "e4m3fn"), narrow_count(32)),
        "FDA fp8 N=32 F=25": (engine(tcm.FusedDotAdd(32, 25), "e4m3fn"), wide_count(32)),
        "Hopper mma.sync fp8": (engine(tcm.InterleavedDotAdd(), "e4m3fn"), narrow_count(16)),
        "mxfp8 block scaled": (engine(tcm.FusedDotAdd(32, 25), "e4m3fn", **mx), wide_count(32)),
        "nvfp4 GDFS": (
            engine(tcm.GroupDotFusedSum(), "e2m1", scale_format="ue4m3", block_size=16),
            vector_count(5.44, 2.06),
        ),
        "CDNA3 FDRDA fp16": (engine(tcm.FusedDotRoundDownAdd(8), "fp16"), down_count(8)),
        "CDNA3 FDRDA bf16": (engine(tcm.FusedDotRoundDownAdd(8), "bf16"), down_count(8)),
        "CDNA3 GFDRDA fp8": (engine(tcm.GroupFusedDotRoundDownAdd(16), "e4m3fnuz"), down_count(16, 2)),
        "CDNA1 exact sums fp16": (engine(tcm.ParametricDotAdd(4, None, **exact), "fp16"), vector_count(52, 26)),
        "CDNA2 GPS fp16": (engine(tcm.GroupPairwiseSum(4), "fp16"), plain_count(2)),
        "CDNA2 GPS bf16": (engine(tcm.GroupPairwiseSum(4), "bf16"), plain_count(2)),
        "SFMA fp32": (engine(tcm.SequentialFMA(), "fp32"), plain_count(1)),
        "SFMA fp64": (engine(tcm.SequentialFMA(), "fp64", "fp64"), plain_count(2)),
        "VDPBF16PS": (tcm.get_instruction("x86:vdpbf16ps.k2.f32.bf16.bf16.f32"), plain_count(1)),
        "TDPBF16PS": (tcm.get_instruction("x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"), plain_count(1)),
        "IntegerDotAdd s8": (engine(tcm.IntegerDotAdd(), "s8", "s32"), vector_count(2, 1)),
        "parametric, nearest alignment": (
            engine(tcm.ParametricDotAdd(terms=16, fraction_bits=24, alignment_rounding="rne"), "fp16"),
            vector_count(14 + 36 / 16, 7 + 18 / 16),
        ),
    }


def operands(engine, size: int, rng):
    """Return encodings of normal random matrices, and scales around 1."""
    import numpy as np

    import tensorcore_models as tcm

    def draw(name):
        fmt = tcm.get_format(name)
        if name.startswith("s"):
            return rng.integers(0, 100, (size, size)).astype(fmt.container)
        return np.asarray(tcm.encode(rng.standard_normal((size, size)), fmt, saturate=True)).astype(fmt.container)

    args = [draw(x) for x in (engine.a_format, engine.b_format, engine.c_format)]
    if engine.scale_format:
        one = 127 if engine.scale_format == "ue8m0" else 0x38
        blocks = size // engine.block_size
        args += [rng.integers(one - 4, one + 4, shape).astype(np.uint8) for shape in ((size, blocks), (blocks, size))]
    return args


def gemm_rows(args, isas, rng) -> list[dict]:
    """Return one record for each path and instruction set, with SGEMM and, turn by turn, the core's rate, because its
    clock varies.
    """
    import numpy as np

    import tensorcore_models as tcm
    from tensorcore_models import kernels

    x, y = (rng.standard_normal((args.size, args.size), np.float32) for _ in range(2))
    records = []
    probe = instruction_probe()
    levels = tcm.available_isas()
    for name, (engine, count) in units().items():
        data = operands(engine, args.size, rng)
        for isa in isas:

            def run(engine=engine, data=data, isa=isa):
                tcm.set_isa(isa)
                kernels.matrix_bits(engine, *data)

            level = levels.index(isa)
            functions: dict = {"sgemm": lambda: x @ y, f"{name} [{isa}]": run}
            if probe:
                functions["probe"] = lambda level=level: probe(level, PROBE_ROUNDS)
                functions["probe of sgemm"] = lambda: probe(1, PROBE_ROUNDS)
            timings = interleaved(functions, 3 if args.quick else 9, 1, args.clock)
            started = probe(level, 1) * PROBE_ROUNDS * args.threads if probe else 0
            rates = [started / timings.pop(n).median for n in ("probe", "probe of sgemm")] if probe else []
            sgemm, record = rows(f"{args.size}^3", timings, "sgemm", args.size**3)
            record |= {"name": name, "isa": isa, "kernel": kernels.kernel_name(engine, args.size, args.size, args.size)}
            instructions = count(level)
            if instructions and rates:
                record["limit_gmacs"] = 16 * rates[0] / instructions / 1e9
                record["share"] = record["gmacs"] / record["limit_gmacs"]
            if rates:  # two multiply-adds of AVX2 for 16 products
                record["sgemm_share"] = sgemm["gmacs"] / (8 * rates[1] / 1e9)
            records.append(record)
            print_row(record)
    tcm.set_isa(None)
    return records


def tile_rows(args, rng) -> list[dict]:
    """Time a batch of m16n8k16 instructions against one GEMM of the same work."""
    import numpy as np

    import tensorcore_models as tcm

    instruction = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")
    count = 1 << (14 if args.quick else 20)
    a, b = (tcm.encode(rng.standard_normal(s, np.float32), "fp16") for s in ((count, 16, 16), (count, 16, 8)))
    c = np.zeros((count, 16, 8), np.uint32)
    side = round((count * 16 * 8 * 16) ** (1 / 3))
    x, y = (tcm.encode(rng.standard_normal((side, side), np.float32), "fp16") for _ in range(2))
    z = np.zeros((side, side), np.uint32)
    engine = units()["FDA fp16 N=16 F=25"][0]
    functions = {
        "GEMM of the same work": lambda: engine.gemm_bits(x, y, z),
        f"{count} tiles m16n8k16 in one call": lambda: instruction.mma_bits(a, b, c),
    }
    timings = interleaved(functions, 3 if args.quick else 7, 1, args.clock)
    records = rows("tiles", timings, "GEMM of the same work", count * 16 * 8 * 16)
    for record in records:
        print(
            f"{record['path']:44} {1e6 * record['median']:12.1f} us, {record['ratio']:.2f} x the GEMM of the same work"
        )
    return records


def call_rows(args, rng) -> list[dict]:
    """Time calls on one m16n8k16 tile, with checked arguments, beside numpy's product of two 16 x 16 matrices."""
    import numpy as np

    import tensorcore_models as tcm

    tile = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    c, square = np.zeros((16, 8), np.float32), rng.standard_normal((16, 16), np.float32)
    bits = [x.view(f.container) for x, f in zip((a, b, c), tile.formats, strict=False)]
    product, calls = tile.prepared(16, 16, 8), 2000

    def tile_call(device: str, name: str):
        other = tcm.get_instruction(device, name)
        shapes = (other.m, other.k), (other.k, other.n), (other.m, other.n)
        args = [tcm.encode(rng.standard_normal(s), f) for s, f in zip(shapes, other.formats, strict=False)]
        return lambda: other.mma_bits(*args)

    functions: dict[str, Callable] = {
        "numpy, 16 x 16": lambda: square @ square,
        "mma_bits": lambda: tile.mma_bits(*bits),
        "mma": lambda: tile.mma(a, b, c),
        "gemm_bits": lambda: tile.gemm_bits(*bits),
        "gemm": lambda: tile.gemm(a, b, c),
        "mma_bits, bf16": tile_call("hopper", "mma.m16n8k16.f32.bf16.bf16.f32"),
        "mma_bits, tf32 m16n8k8": tile_call("hopper", "mma.m16n8k8.f32.tf32.tf32.f32"),
        "mma_bits, CDNA3 fp16 32x32x8": tile_call("cdna3", "v_mfma_f32_32x32x8_f16"),
        "prepared, encodings": lambda: product.bits(*bits),
        "prepared, values": lambda: product(a, b, c),
    }

    def repeated(function):
        for _ in range(calls):
            function()

    turns = {name: lambda f=f: repeated(f) for name, f in functions.items()}
    timings = interleaved(turns, 5 if args.quick else 15, 1, args.clock)
    records = rows("one m16n8k16 tile", timings, "numpy, 16 x 16", calls * 16 * 8 * 16)
    for record in records:
        record["calls"] = calls
        print(
            f"{record['path']:44} {1e6 * record['median'] / calls:8.2f} us a call, {record['ratio']:.1f} x numpy's 16 x 16"
        )
    return records


def method_rows(args, isas, rng) -> list[dict]:
    """Return the records of :func:`methods_of` for each instruction set."""
    import tensorcore_models as tcm

    records = []
    for isa in isas:
        tcm.set_isa(isa)
        records += [record | {"isa": isa} for record in methods_of(args, isa, rng)]
    tcm.set_isa(None)
    return records


def methods_of(args, isa: str, rng) -> list[dict]:
    """Return whole algorithms beside SGEMM: SGEMM-cube, exact products, and Markidis and Ootomo in FDA products of that
    size.
    """

    import ascend
    import mpgemm
    import tensorcore_models as tcm

    size = args.size
    (a, b), (left, right) = matrices(rng, size, False), matrices(rng, size, True)
    core = mpgemm.resolve_engine("a100", mpgemm.get_method("markidis"))
    x, y = (tcm.encode(v, "fp16") for v in (a, b))
    functions = {
        "sgemm": lambda: a @ b,
        "FDA GEMM of the A100": lambda: core.gemm_bits(x, y),
        "SGEMM-cube, three terms, termwise": lambda: ascend.cube_gemm(a, b),
        "exact_gemm to fp32, benign data": lambda: mpgemm.exact_gemm(a, b).rounded("fp32"),
        "exact_gemm to fp32, cancelling data": lambda: mpgemm.exact_gemm(left, right).rounded("fp32"),
        "Markidis, four products": lambda: mpgemm.recovered_gemm(a, b, method="markidis", engine=core),
        "Ootomo, three products, each k step outside": lambda: mpgemm.recovered_gemm(
            a, b, method="ootomo", engine=core
        ),
    }
    timings = interleaved(functions, 3 if args.quick else 9, 1, args.clock)
    records = rows(f"{size}^3", timings, "sgemm", size**3)[1:]
    for record in records:
        record["fda_gemms"] = record["median"] / timings["FDA GEMM of the A100"].median
        record["name"], record["path"] = record["path"], f"{record['path']} [{isa}]"
        print_row(record, f"{record['fda_gemms']:5.2f} FDA GEMMs")
    return records


def rounding_rows(args, rng) -> list[dict]:
    """Time conversions of float32 to narrow formats, RNE, beside copying the source."""
    import numpy as np

    import tensorcore_models as tcm

    count = 1 << 24
    x = rng.standard_normal(count, np.float32)
    functions = {"copy": x.copy} | {f"encode {f}": lambda f=f: tcm.encode(x, f) for f in ("fp16", "bf16", "e4m3fn")}
    timings = interleaved(functions, 3 if args.quick else 9, 1, args.clock)
    records = rows("rounding", timings, "copy", count)[1:]
    for r in records:
        print(f"{r['path']:44} {r['gmacs']:8.2f} G elements/s, {r['ratio']:.2f} x copying the source")
    return records


def print_row(r: dict, limit_text: str = "limit not counted") -> None:
    limit = r.get("limit_gmacs")
    share = f"{100 * r['share']:5.0f} % of {limit:6.1f}" if limit else limit_text
    if "sgemm_share" in r:
        share += f"; SGEMM {100 * r['sgemm_share']:3.0f} %"
    print(f"{r['path']:44} {r['gmacs']:8.2f} {100 * r['spread']:4.0f} % {r['ratio']:8.2f}   {share}", flush=True)


def main() -> None:
    args = prepared(__doc__, size=512, quick=False, cpu_time=False, isa=None, page=None, json="out/bench.json")
    import numpy as np

    import tensorcore_models as tcm

    tcm.set_num_threads(args.threads)
    rng = np.random.default_rng(1)
    fast = [isa for isa in reversed(tcm.available_isas()) if isa != "baseline"]
    isas = tuple(args.isa or fast or ["baseline"])
    host = machine()
    blas = f"BLAS kernel {host['blas_core']} (asked: {host['blas_core_asked']})"
    print(f"{host['cpu']}; {blas}; {args.threads} thread(s), {'CPU' if args.cpu_time else 'wall'} time")
    print(f"{'path':44} {'GMAC/s':>8} spread {'x SGEMM':>8}   percent of the vector-operation limit (GMAC/s)")
    for isa in ("avx512", "avx2"):
        if isa not in isas:
            print(f"paths with {isa}: {NOT_HERE}")
    chosen = isas[:1] if args.quick and not args.isa else isas
    records = gemm_rows(args, chosen, rng) + method_rows(args, chosen, rng)
    calls = rounding_rows(args, rng) + tile_rows(args, rng) + call_rows(args, rng)
    write_json(args.json, {"machine": host, "rows": records + calls})
    if args.page:
        command = f"python bench/run.py {' '.join(sys.argv[1:])}"
        write_page(args.page, host, command, records, calls)
        print(f"table written to {args.page}", file=sys.stderr)
    print(f"written to {args.json}", file=sys.stderr)


if __name__ == "__main__":
    main()
