"""``python -m mpgemm.kernels.campaign [REPORT.json]``: on a GPU, bits of every method against the simulation, and times.

Bits: each method on each kind of the gate's data at ragged shapes. Times: medians of CUDA events over square products, beside
torch's FP32, its TF32, and BF16x9 where this torch has a setting for it. The report has device and versions, too. With
--emulation units are emulated instead (:mod:`mpgemm.kernels.emulation_campaign`).
"""

import json
import platform
import statistics
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from mpgemm.kernels import devices
from mpgemm.kernels.forms import KERNELS, kernel_form
from mpgemm.kernels.gate import DATA, operands, same_bits, simulated
from mpgemm.kernels.multiply import matmul, split
from mpgemm.kernels.recipes import recipe
from mpgemm.kernels.targets import MISSING, RACES
from mpgemm.reporting.provenance import package_version
from tensorcore_models.files import atomic_writer
from tensorcore_models.gpu.compiling import triton_module
from tensorcore_models.gpu.targets import KernelTarget

#: m, n, k of comparisons with the simulation, and sides of the square products that are timed.
SHAPES = ((1, 64, 512), (37, 53, 1000), (200, 130, 777), (512, 512, 512))
SIDES = (1024, 4096, 8192)
WARM, REPEATS = 3, 15


def methods_of(target: KernelTarget) -> list[str]:
    """Methods whose words the target multiplies."""
    known = [name for name in KERNELS if name not in RACES.get(target.name, ())]
    return [name for name in known if (target.name, kernel_form(recipe(name)).format) not in MISSING]


def bits(target: KernelTarget, device: torch.device) -> list[dict]:
    """How many elements differ from the simulation, for each method, shape and kind of data."""
    rows = []
    for method in methods_of(target):
        row = recipe(method)
        for m, n, k in SHAPES:
            for kind in DATA:
                a, b, c = operands(kind, m, n, k, kernel_form(row).format)
                left = torch.from_numpy(a).to(device)
                if method.startswith("bf16xfp32"):
                    left = left.bfloat16()
                    a = left.float().cpu().numpy()
                right, added = torch.from_numpy(b).to(device), torch.from_numpy(c).to(device)
                found = matmul(left, right, method, c=added).cpu().numpy()
                differ = np.count_nonzero(~same_bits(found, simulated(row, target.unit, a, b, c)))
                rows.append(
                    {
                        "method": method,
                        "data": kind,
                        "m": m,
                        "n": n,
                        "k": k,
                        "elements": found.size,
                        "differ": int(differ),
                    }
                )
    return rows


def seconds(run: Callable[[], object]) -> float:
    """Median time of a call on the device."""
    for _ in range(WARM):
        run()
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.median(times)


def times(target: KernelTarget, device: torch.device) -> list[dict]:
    """Seconds and TFLOP/s (2 m n k over the time) of each method, also with B split before, and of torch."""
    rows = []
    for side in SIDES:
        a, b = (torch.randn(side, side, device=device) for _ in range(2))
        runs: dict[str, Callable[[], object]] = {}
        for method in methods_of(target):
            left = a.bfloat16() if method.startswith("bf16xfp32") else a
            ready = split(b, method)
            runs[method] = partial(matmul, left, b, method)
            runs[f"{method}, B split before"] = partial(matmul, left, ready)
        for name, precision in (("torch FP32", "ieee"), ("torch TF32", "tf32"), ("torch BF16x9", "bfx9")):
            runs[name] = partial(_torch_product, a, b, precision)
        for name, run in runs.items():
            try:
                found = seconds(run)
            except (RuntimeError, ValueError) as error:
                rows.append({"name": name, "side": side, "refused": str(error)})
                continue
            rows.append({"name": name, "side": side, "seconds": found, "tflops": 2 * side**3 / found / 1e12})
    return rows


def _torch_product(a: torch.Tensor, b: torch.Tensor, precision: str) -> torch.Tensor:
    """torch's product in a precision of its matmul settings; ValueError where this torch has none of that name."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    try:
        settings.fp32_precision = precision
        return a @ b
    finally:
        settings.fp32_precision = before


def main(arguments: list[str]) -> int:
    """Run the campaign; 0 where no bit differs, 1 where one does, 2 without a device."""
    emulation = "--emulation" in arguments
    names = [x for x in arguments if x != "--emulation"]
    path = names[0] if names else "emulation-campaign.json" if emulation else "kernels-campaign.json"
    if not torch.cuda.is_available():
        sys.stderr.write("mpgemm.kernels.campaign: no GPU that torch sees; the gate checks bits without one\n")
        return 2
    device = torch.device("cuda")
    target = devices.device_target(device)
    assert target is not None
    report = {
        "device": torch.cuda.get_device_name(device), "target": target.name, "python": platform.python_version(),
        "torch": torch.__version__, "triton": triton_module().__version__, "mpgemm": package_version(),
    }  # fmt: skip
    if emulation:
        from mpgemm.kernels import emulation_campaign

        report |= {"bits": emulation_campaign.bits(device), "rates": emulation_campaign.rates(device, seconds)}
    else:
        report |= {"bits": bits(target, device), "times": times(target, device)}
    with atomic_writer(path) as file:
        file.write(json.dumps(report, indent=2).encode())
    wrong = [row for row in report["bits"] if row["differ"]]
    sys.stdout.write(
        f"{report['device']}: {len(report['bits'])} comparisons, {len(wrong)} with bits that differ; {path}\n"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
