"""``python -m mpgemm.kernels.campaign [REPORT.json]``: on a GPU, bits of every method against the simulation, and times.

Bits: each method on each kind of the gate's data at ragged shapes. Times: medians of CUDA events over square products, beside
torch's FP32, its TF32, BF16x9 where this torch has a setting for it, and FP64. The report has device and versions, too. It is
written after each comparison and time; what fails is a row that says so. With --emulation units are emulated instead
(:mod:`mpgemm.kernels.emulation_campaign`).
"""

import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch

from mpgemm.kernels import devices
from mpgemm.kernels.forms import KERNELS, kernel_form
from mpgemm.kernels.gate import DATA, ResidueCase, operands, same_bits, simulated
from mpgemm.kernels.multiply import matmul, split
from mpgemm.kernels.recipes import recipe
from mpgemm.kernels.residues import residue_method
from mpgemm.kernels.targets import MISSING
from mpgemm.kernels.tuning import seconds
from mpgemm.reporting.provenance import package_version
from tensorcore_models.files import atomic_writer
from tensorcore_models.gpu.compiling import triton_module
from tensorcore_models.gpu.targets import KernelTarget

#: m, n, k of comparisons with the simulation, and sides of the square products that are timed.
SHAPES = ((1, 64, 512), (37, 53, 1000), (200, 130, 777), (512, 512, 512))
SIDES = (1024, 4096, 8192)
#: The method for FP64, with moduli for 53 bits.
FP64 = "ozaki2_int8:moduli=15"
#: What a row is of, and what computes the rest of it.
Task = tuple[dict, Callable[[], dict]]


def methods_of(target: KernelTarget) -> list[str]:
    """Methods whose words the target multiplies."""
    words = {**{name: kernel_form(recipe(name)).format for name in KERNELS}, FP64: "s8"}
    return [name for name, fmt in words.items() if (target.name, fmt) not in MISSING]


def compared(target: KernelTarget, device: torch.device, method: str, shape: tuple[int, int, int], kind: str) -> dict:
    """How many elements of a product differ from the simulation."""
    if method == FP64:
        return _compared_doubles(target, device, shape, kind)
    row, (m, n, k) = recipe(method), shape
    a, b, c = operands(kind, m, n, k, kernel_form(row).format)
    left = torch.from_numpy(a).to(device)
    if method.startswith("bf16xfp32"):
        left = left.bfloat16()
        a = left.float().cpu().numpy()
    right, added = torch.from_numpy(b).to(device), torch.from_numpy(c).to(device)
    found = matmul(left, right, method, c=added).cpu().numpy()
    differ = np.count_nonzero(~same_bits(found, simulated(row, target.unit, a, b, c)))
    return {"elements": found.size, "differ": int(differ)}


def _compared_doubles(target: KernelTarget, device: torch.device, shape: tuple[int, int, int], kind: str) -> dict:
    """The same for residues, where what is not finite makes rows and columns NaN."""
    a, b, _ = operands(kind, *shape, "s8")
    found = matmul(torch.from_numpy(a).to(device), torch.from_numpy(b).to(device), FP64).cpu().numpy()
    expected = ResidueCase(residue_method(FP64), target).expected(a, b, None)
    return {"elements": found.size, "differ": int(np.count_nonzero(~same_bits(found, expected)))}


def comparisons(target: KernelTarget, device: torch.device) -> Iterator[Task]:
    """Each method, shape and kind of data."""
    for method in methods_of(target):
        for m, n, k in SHAPES:
            for kind in DATA:
                facts = {"method": method, "data": kind, "m": m, "n": n, "k": k}
                yield facts, partial(compared, target, device, method, (m, n, k), kind)


def times(target: KernelTarget, device: torch.device) -> Iterator[Task]:
    """Seconds and TFLOP/s (2 m n k over the time) of each method, also with B split before, and of torch."""
    for side in SIDES:
        a, b = (torch.randn(side, side, device=device) for _ in range(2))
        runs: dict[str, Callable[[], Callable[[], object]]] = {}
        methods = methods_of(target)
        for method in (name for name in methods if name != FP64):
            left = a.bfloat16() if method.startswith("bf16xfp32") else a
            runs[method] = partial(partial, matmul, left, b, method)
            runs[f"{method}, tiles timed"] = partial(partial, matmul, left, b, method, config="tune")
            runs[f"{method}, B split before"] = partial(_split_product, left, b, method)
        if FP64 in methods:
            x, y = a.double(), b.double()
            runs[FP64] = partial(partial, matmul, x, y, FP64)
            runs["torch FP64"] = partial(partial, torch.matmul, x, y)
        for name, precision in (("torch FP32", "ieee"), ("torch TF32", "tf32"), ("torch BF16x9", "bfx9")):
            runs[name] = partial(partial, _torch_product, a, b, precision)
        for name, run in runs.items():
            yield {"name": name, "side": side}, partial(_timed, run, side)


def _timed(prepared: Callable[[], Callable[[], object]], side: int) -> dict:
    found = seconds(prepared())
    return {"seconds": found, "tflops": 2 * side**3 / found / 1e12}


def _split_product(a: torch.Tensor, b: torch.Tensor, method: str) -> Callable[[], object]:
    return partial(matmul, a, split(b, method))


def _torch_product(a: torch.Tensor, b: torch.Tensor, precision: str) -> torch.Tensor:
    """torch's product in a precision of its matmul settings; ValueError where this torch has none of that name."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    try:
        settings.fp32_precision = precision
        return a @ b
    finally:
        settings.fp32_precision = before


def run(parts: Mapping[str, Iterator[Task]], target: KernelTarget, name: str, path: str | Path) -> int:
    """Carry out "bits" and another part on the device `name`, the report written row by row; how many bits differ or failed."""
    report: dict = {
        "device": name, "target": target.name, "python": platform.python_version(), "torch": torch.__version__,
        "triton": triton_module().__version__, "mpgemm": package_version(), **{part: [] for part in parts},
    }  # fmt: skip
    for part, tasks in parts.items():
        for facts, task in tasks:
            try:
                report[part].append({**facts, **task()})
            except Exception as error:  # whatever compiler or device raise: hours of other rows are not lost for it
                report[part].append({**facts, "failed": f"{type(error).__name__}: {error}"})
            with atomic_writer(path) as file:
                file.write(json.dumps(report, indent=2).encode())
    wrong = sum(row.get("differ") != 0 for row in report["bits"])
    timed = [row for part in parts if part != "bits" for row in report[part]]
    failed = sum("failed" in row for row in timed)
    sys.stdout.write(
        f"{name}: {len(report['bits'])} comparisons, {wrong} with bits that differ or failed; {len(timed)} times, "
        f"{failed} failed; {path}\n"
    )
    return wrong


def main(arguments: list[str]) -> int:
    """Run the campaign; 0 where no bit differs, 1 where one does or a comparison fails, 2 without a device."""
    emulation = "--emulation" in arguments
    names = [x for x in arguments if x != "--emulation"]
    path = names[0] if names else "emulation-campaign.json" if emulation else "kernels-campaign.json"
    if not torch.cuda.is_available():
        sys.stderr.write("mpgemm.kernels.campaign: no GPU that torch sees; the gate checks bits without one\n")
        return 2
    device = torch.device("cuda")
    target = devices.device_target(device)
    assert target is not None
    if emulation:
        from mpgemm.kernels import emulation_campaign

        parts = {"bits": emulation_campaign.comparisons(device), "rates": emulation_campaign.rates(device)}
    else:
        parts = {"bits": comparisons(target, device), "times": times(target, device)}
    return int(run(parts, target, torch.cuda.get_device_name(device), path) > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
