"""This benchmark times mpgemm's kernels on a GPU in one process, as ratios: ``python bench/gpu.py``.

Recovered FP32 is compared with torch's FP32, FP64 from int8 with torch's FP64, emulated units with their predicted
rates. The products are those of ``mpgemm campaign times``. ``--host`` measures the host's cost of calls instead, with a
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
from mpgemm.campaign import times
from mpgemm.campaign.device import CampaignDevice, this_gpu

METHODS = ("ootomo", "bf16x3", "bf16x6", "bf16x9", "tf32x3", "sgemm_cube")
#: Number of rows whose error is measured against the exact product in FP64.
ROWS = 256


# -- host --------------------------------------------------------------------------------------------------------------------
def host_microseconds(run: Callable[[], object], calls: int = 20, rounds: int = 200) -> float:
    """Return the least mean time of a call over short rounds, because load of the machine only adds time to some of them."""
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
    """Return the host's time of planned calls and of calls of matmul."""
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


# -- device ------------------------------------------------------------------------------------------------------------------
def reference(name: str) -> str:
    """Return the product of torch that a product is compared with."""
    return "torch FP64" if name.startswith((times.FP64, "torch FP64")) else "torch FP32"


def products(device: CampaignDevice, sides, methods) -> list[dict]:
    """Return square products compared with torch's: TFLOP/s are 2 m n k over a call's time, errors those of the largest
    element.
    """
    rows: list[dict] = []
    for side in sides:
        a, b = times.operands(device.tensors, (side,) * 3, torch.float64)
        exact = a[:ROWS] @ b
        base: dict[str, float] = {}
        for name, prepare in times.products(device.target, device.tensors, side, side, side).items():
            if not name.startswith("torch") and name.partition(",")[0] not in methods:
                continue
            row = {"name": name, "side": side, "beside": reference(name)}
            try:
                call = prepare()
                found, row["seconds"] = call()[:ROWS].double(), device.timer(call)["seconds"]
            except (RuntimeError, ValueError) as error:  # out of memory, or words that the target lacks
                rows.append({**row, "failed": f"{type(error).__name__}: {error}"})
                print(f"failed: {name}, {side}: {error}")
                continue
            base.setdefault(name, row["seconds"])
            row["ratio"] = base[reference(name)] / row["seconds"]
            row["tflops"] = 2e-12 * side**3 / row["seconds"]
            row["error"] = float((found - exact).abs().max() / exact.abs().max())
            rows.append(row)
            print("{ratio:7.2f} x {beside}, {tflops:6.1f} TFLOP/s, error {error:.1e}: {name}, {side}".format(**row))
    return rows


def units(device: CampaignDevice) -> list[dict]:
    """Return emulated units with their rates over the rates predicted as the maximum."""
    rows = []
    for facts, run in times.emulated(device.target, device.tensors, device.timer):
        row = {**facts, **run()}
        row["ratio"] = row["tflops"] / row["predicted_tflops"] if "predicted_tflops" in row else None
        rows.append(row)
        ratio = "      no prediction" if row["ratio"] is None else f"{row['ratio']:7.2f} x predicted"
        print(f"{ratio}, {row['tflops']:6.2f} TFLOP/s: {row['name']}, {row['m']}")
    return rows


def measured(device: CampaignDevice, sides, methods) -> dict:
    """Return all measurements on a device, and the device."""
    print(", ".join(f"{name} {text}" for name, text in device.facts.items()))
    return {"device": device.facts, "products": products(device, sides, methods), "units": units(device)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--host", action="store_true", help="measure the host's time with a driver that launches nothing"
    )
    parser.add_argument(
        "--sides",
        type=int,
        nargs="+",
        help="sides of the products (default: 1024 4096 8192 on a GPU, 1024 4096 for the host)",
    )
    parser.add_argument("--methods", nargs="+", help="methods (default: the usual six, and on a GPU FP64 from int8)")
    parser.add_argument("--out", type=Path, help="JSON file for the measurements")
    args = parser.parse_args()
    if args.host:
        found: object = host(args.sides or (1024, 4096), args.methods or METHODS)
    else:
        try:
            device = this_gpu()
        except (OSError, RuntimeError, ValueError) as error:
            raise SystemExit(f"{error}; python bench/gpu.py --host measures what calls cost the host") from None
        found = measured(device, args.sides or (1024, 4096, 8192), args.methods or (*METHODS, times.FP64))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
