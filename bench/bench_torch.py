"""This benchmark compares `a @ b` under `mpgemm.torch.emulate` with `Instruction.gemm`, the product itself.

python bench/bench_torch.py [--sizes 256 1024] [--engine h100] [--threads 1] [--cpu-time] [--json out/torch.json]
"""

from harness import interleaved, prepared, report, rows

TYPES = ("float16", "bfloat16", "float32")


def main() -> None:
    args = prepared(__doc__, sizes=[256, 1024], engine="h100", cpu_time=False)
    import torch

    import mpgemm.torch
    import tensorcore_models as tcm
    from mpgemm.frameworks.torch_tensors import to_array

    tcm.set_num_threads(args.threads)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    records = []
    for size in args.sizes:
        for name in TYPES:
            a, b = (torch.randn(size, size).to(getattr(torch, name)) for _ in range(2))
            with mpgemm.torch.emulate(args.engine) as run:
                torch.mm(a, b)
                engine = run.multipliers[0].engine_for(*run.report().rows[0].site.formats.split()[:3:2])
                left, right = to_array(a, "a"), to_array(b, "b")
                timed = {
                    "Instruction.gemm": lambda engine=engine, left=left, right=right: engine.gemm(left, right),
                    "torch.mm": lambda a=a, b=b: torch.mm(a, b),
                }
                timings = interleaved(timed, 15, clock=args.clock)
            records += rows(f"{size}^3 {name}", timings, "Instruction.gemm", size**3)
    report(records, args.json)


if __name__ == "__main__":
    main()
