"""Times of mpgemm's kernels on a GPU beside cuBLAS's in one process, ratios first: ``python bench/gpu.py``.

Units emulated on a GPU are timed by ``mpgemm campaign times``. ``--host`` measures what calls cost the host instead, with a
driver that launches nothing, and needs no GPU.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from mpgemm import kernels
from mpgemm.kernels.tuning import seconds

METHODS = ("ootomo", "bf16x3", "bf16x6", "bf16x9", "tf32x3", "sgemm_cube")


def host_microseconds(run: Callable[[], object], calls: int = 200, rounds: int = 15) -> float:
    """The least mean time of a call over some rounds: a loaded machine only adds."""
    for _ in range(20):
        run()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        best = min(best, (time.perf_counter() - start) / calls)
    return 1e6 * best


def host(sides, methods) -> list[dict]:
    """Measure the host's time of planned calls and of calls of matmul."""
    sys.path.insert(0, str(Path(__file__).parent))
    from stub_driver import StubDriver

    driver, rows = StubDriver().install(), []
    for side in sides:
        a, b, out = (torch.zeros(side, side) for _ in range(3))
        for method in methods:
            plan = kernels.plan(side, side, side, method, device="cpu")
            plan(a, b, out)
            before = driver.launched
            plan(a, b, out)
            row = {"method": method, "side": side, "launches": driver.launched - before}
            row["plan_us"] = host_microseconds(partial(plan, a, b, out))
            row["matmul_us"] = host_microseconds(partial(kernels.matmul, a, b, method, out=out))
            rows.append(row)
            print(
                "{method:>12} {side:>6}: plan {plan_us:5.1f} us, matmul {matmul_us:5.1f} us, {launches} launches".format(
                    **row
                )
            )
    return rows


def products(sides, methods) -> list[dict]:
    """Whole calls beside cuBLAS FP32: TFLOP/s are 2 m n k over the time; errors are of the largest element."""
    rows = []
    for side in sides:
        torch.manual_seed(0)
        a, b = (torch.randn(side, side, device="cuda") for _ in range(2))
        exact = a[:256].double() @ b.double()
        weights = {method: kernels.split(b, method) for method in methods}
        calls = {"cuBLAS FP32": partial(torch.matmul, a, b)}
        calls |= {method: partial(kernels.matmul, a, b, method) for method in methods}
        calls |= {f"{m}, B split before": partial(kernels.matmul, a, weights[m]) for m in methods}
        base = 0.0
        for name, run in calls.items():
            found = run()[:256].double()
            taken = seconds(run)
            base = base or taken
            error = float((found - exact).abs().max() / exact.abs().max())
            rows.append({"name": name, "side": side, "ratio": base / taken, "seconds": taken, "error": error})
            print(
                f"{base / taken:6.2f} x cuBLAS FP32, {2e-12 * side**3 / taken:6.1f} TFLOP/s, error {error:.1e}: "
                f"{name}, {side}"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", action="store_true", help="host time with a driver that launches nothing")
    parser.add_argument(
        "--sides", type=int, nargs="+", help="by default 1024 4096 8192 on a GPU, 1024 4096 for the host"
    )
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--out", type=Path, help="a JSON file for what was measured")
    args = parser.parse_args()
    if args.host:
        found = host(args.sides or (1024, 4096), args.methods)
    elif torch.cuda.is_available():
        found = products(args.sides or (1024, 4096, 8192), args.methods)
    else:
        raise SystemExit("no GPU is here: python bench/gpu.py --host measures what calls cost the host")
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
