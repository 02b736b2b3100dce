"""This benchmark measures the generic kernels, one accumulator of each family, against numpy's SGEMM, interleaved in one run.

    python bench/bench_generic.py [--size 256] [--threads 1] [--only WORD] [--quick] [--json out/generic.json]

Fast paths are off, so it measures the kernels that cover every accumulator, and beside them the same accumulator
recorded as Programs, where that is possible. "one tile" is a whole call of an instruction on one 16 x 8 x 16 tile, with
argument checks.
"""

import contextlib
from functools import partial

from harness import interleaved, prepared, report, rows


def units(tcm) -> dict:
    """Return engines by name: published ones first, then points of the parametric space and known slow cases."""
    acc = tcm.accumulators
    half = {"a_format": "fp16"}
    fp64 = dict.fromkeys(("a_format", "c_format", "d_format"), "fp64")
    scaled = {"a_format": "e2m1", "scale_format": "ue4m3", "block_size": 16}
    table = {
        "FDA N=4 F=23": (acc.FusedDotAdd(4, 23), half),
        "FDA N=16 F=25": (acc.FusedDotAdd(16, 25), half),
        "FDA fp8 N=32 F=13": (acc.FusedDotAdd(32, 13, output_fraction_bits=13), {"a_format": "e4m3fn"}),
        "FDA block-scaled": (
            acc.FusedDotAdd(32, 25),
            {"a_format": "e4m3fn", "scale_format": "ue8m0", "block_size": 32},
        ),
        "fp8 through fp16": (acc.InterleavedDotAdd(acc.FusedDotAdd(16, 25)), {"a_format": "e4m3fn"}),
        "GDFS nvfp4": (acc.GroupDotFusedSum(), scaled),
        "FDRDA N=8": (acc.FusedDotRoundDownAdd(8), half),
        "FDRDA N=4 tf32": (acc.FusedDotRoundDownAdd(4), {"a_format": "tf32"}),
        "GFDRDA fp8": (acc.GroupFusedDotRoundDownAdd(16), {"a_format": "e4m3fnuz"}),
        "FMA fp32": (acc.SequentialFMA(), {"a_format": "fp32"}),
        "FMA fp64": (acc.SequentialFMA(), fp64),
        "FMA fp16 rz": (acc.SequentialFMA("rz"), half | {"c_format": "fp16", "d_format": "fp16"}),
        "AMX lanes": (acc.LanedFMA(), {"a_format": "bf16"}),
        "GPS G=4": (acc.GroupPairwiseSum(), half),
        "BFMMLA": (acc.PairRoundOddSum(), {"a_format": "bf16"}),
        "s8 to s32": (acc.IntegerDotAdd(), {"a_format": "s8", "c_format": "s32", "d_format": "s32"}),
        **{
            f"parametric {rounding}": (acc.ParametricDotAdd(16, 25, alignment_rounding=rounding), half)
            for rounding in ("rne", "rna", "rz", "ru", "rd", "ro")
        },
        "parametric products normalised": (acc.ParametricDotAdd(16, 24, normalised_products=True), half),
        "parametric c late": (acc.ParametricDotAdd(16, 24, c_position="late"), half),
        "parametric sticky": (acc.ParametricDotAdd(16, 24, sticky=True), half),
        "parametric pairwise": (acc.ParametricDotAdd(16, 24, alignment="pairwise"), half),
        "parametric odd-even": (acc.ParametricDotAdd(16, 24, alignment="odd_even"), half),
        "parametric normalising": (acc.ParametricDotAdd(16, 24, normalise_each_add=True), half),
        "parametric F=80": (acc.ParametricDotAdd(16, 80), half),
        "parametric F=80 rne": (acc.ParametricDotAdd(16, 80, alignment_rounding="rne"), half),
        "parametric F=80 normalising": (acc.ParametricDotAdd(16, 80, normalise_each_add=True), half),
        "parametric N=1": (acc.ParametricDotAdd(1, 24), half),
        "parametric N=1 F=80 rne": (acc.ParametricDotAdd(1, 80, alignment_rounding="rne"), half),
        "exact fp16": (acc.ParametricDotAdd(16, None), half),
        "exact bf16": (acc.ParametricDotAdd(16, None), {"a_format": "bf16"}),
        "exact fp64": (acc.ParametricDotAdd(16, None), fp64),
        "exact fp64 N=1": (acc.ParametricDotAdd(1, None), fp64),
        "FMA fp64 rz": (acc.SequentialFMA("rz"), fp64),
        "FMA fp64 rna": (acc.SequentialFMA("rna"), fp64),
        "FMA fp8": (acc.SequentialFMA(), dict.fromkeys(("a_format", "c_format", "d_format"), "e4m3fn")),
    }
    return {name: tcm.MatrixEngine(spec, **formats) for name, (spec, formats) in table.items()}


def operands(tcm, np, engine, size: int) -> tuple:
    """Return standard normal operands as encodings, with c = 0 and block scales of 1."""
    rng = np.random.default_rng(1)
    formats = engine.formats
    if isinstance(formats[0], tcm.formats.IntegerFormat):
        a, b = (rng.integers(0, 256, (size, size), np.uint8) for _ in range(2))
    else:
        values = (rng.standard_normal((size, size)) for _ in range(2))
        a, b = (tcm.encode(x, f, saturate=not f.has_inf) for x, f in zip(values, formats, strict=False))
    scales = (None, None)
    if engine.scale_format is not None:
        blocks = -(-size // engine.block_size)
        one = int(tcm.encode(np.float64(1.0), engine.scale_format))
        scales = (np.full((size, blocks), one, np.uint8), np.full((blocks, size), one, np.uint8))
    return a, b, np.zeros((size, size), formats[2].container), *scales


def main() -> None:
    args = prepared(__doc__, size=256, only="", quick=False)
    import numpy as np

    import tensorcore_models as tcm
    from tensorcore_models import kernels
    from tensorcore_models.arithmetic.recorder import Unrecordable
    from tensorcore_models.kernels.programs import TooWide
    from tensorcore_models.kernels.recorded import RecordedKernel

    tcm.set_num_threads(args.threads)
    kernels.set_kernel("generic")
    size, repeats = args.size, 3 if args.quick else 9
    x = np.random.default_rng(2).standard_normal((size, size)).astype(np.float32)
    functions = {"sgemm": lambda: x @ x}
    for name, engine in units(tcm).items():
        if args.only in name:
            matrices = operands(tcm, np, engine, size)
            functions[f"{name} ({kernels.kernel_name(engine)})"] = partial(kernels.matrix_bits, engine, *matrices)
            with contextlib.suppress(Unrecordable, TooWide):
                functions[f"{name} (Programs)"] = partial(RecordedKernel(kernels.lowered(engine)).run, *matrices)
    records = rows(f"{size}^3", interleaved(functions, repeats), "sgemm", size**3)
    ins = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")
    tile = operands(tcm, np, ins, 16)
    tile = tile[0], np.ascontiguousarray(tile[1][:, :8]), np.ascontiguousarray(tile[2][:, :8])
    y = x[:16, :16].copy()
    timings = interleaved(
        {"sgemm": lambda: [y @ y for _ in range(200)], "mma_bits": lambda: [ins.mma_bits(*tile) for _ in range(200)]},
        repeats,
    )
    records += rows("200 calls, one tile", timings, "sgemm", 200 * 16 * 8 * 16)
    report(records, args.json)


if __name__ == "__main__":
    main()
