"""This benchmark compares `gemm_bits` calls of Gaudi's and RISC-V's instructions with fused dot-adds of the same step.

    python bench/bench_units.py [--size 512] [--threads 1] [--only WORD] [--quick] [--json out/units.json]

The runs are interleaved. Each instruction is compared with a FusedDotAdd that has as many products in a step, 24
fraction bits and the same operands (OCP's e4m3 for Gaudi's). With one thread times are CPU times.
"""

import time
from functools import partial

from bench_generic import operands
from harness import interleaved, prepared, report, rows

INSTRUCTIONS = (
    "gaudi2:mme.k8.f32.bf16.bf16.f32", "gaudi2:mme.k16.f32.e4m3.e4m3.f32", "gaudi2:mme.k16.f32.e5m2.e5m2.f32",
    "gaudi3:mme.k8.f32.bf16.bf16.f32", "gaudi3:mme.k8.f32.e4m3.e4m3.f32", "gaudi3:mme.k8.f32.e5m2.e5m2.f32",
    "riscv:vfwbdot.k8.f32.bf16.bf16.f32", "riscv:vfwbdot.k16.f32.bf16.bf16.f32", "riscv:vfwbdot.k32.f32.bf16.bf16.f32",
)  # fmt: skip


def main() -> None:
    args = prepared(__doc__, size=512, only="", quick=False)
    import numpy as np

    import tensorcore_models as tcm
    from tensorcore_models import kernels

    tcm.set_num_threads(args.threads)
    size, repeats, records = args.size, 5 if args.quick else 15, []
    clock = time.process_time if args.threads == 1 else time.perf_counter
    for name in INSTRUCTIONS:
        if args.only not in name:
            continue
        row = tcm.get_instruction(name)
        plain = {"e4m3": "e4m3fn"}.get(row.a_format, row.a_format)
        fused = tcm.MatrixEngine(tcm.accumulators.FusedDotAdd(row.k, 24), a_format=plain)
        a, b, _, *_ = operands(tcm, np, fused, size)
        functions = {
            "fused dot-add": partial(fused.gemm_bits, a, b),
            f"{name} ({kernels.kernel_name(row)})": partial(row.gemm_bits, a, b),
        }
        records += rows(
            f"{size}^3, step {row.k}", interleaved(functions, repeats, clock=clock), "fused dot-add", size**3
        )
    report(records, args.json)


if __name__ == "__main__":
    main()
