"""This module compares kernels of FP32 and FP64 recovery with the simulation: each method, shape and kind of data, bit for
bit.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from mpgemm.campaign.tasks import Task
from mpgemm.campaign.work import Work
from mpgemm.kernels.forms import KERNELS, kernel_form
from mpgemm.kernels.gate import DATA, ResidueCase, operands, same_bits, simulated
from mpgemm.kernels.multiply import matmul
from mpgemm.kernels.recipes import recipe
from mpgemm.kernels.residues import residue_method
from mpgemm.kernels.targets import MISSING
from tensorcore_models.gpu.targets import KernelTarget

#: Sizes m, n, k.
SHAPES = ((1, 64, 512), (37, 53, 1000), (200, 130, 777), (512, 512, 512), (1024, 1024, 2048))
#: Method for FP64, with moduli for 53 bits.
FP64 = "ozaki2_int8:moduli=15"


def methods_of(target: KernelTarget) -> list[str]:
    """Return the methods whose words the target can multiply."""
    words = {**{name: kernel_form(recipe(name)).format for name in KERNELS}, FP64: "s8"}
    return [name for name, fmt in words.items() if (target.name, fmt) not in MISSING]


def tasks(target: KernelTarget, device: torch.device) -> Iterator[Task]:
    """Yield each shape, kind of data and method; small products of all methods come first."""
    for m, n, k in SHAPES:
        for kind in DATA:
            for method in methods_of(target):
                facts = {"method": method, "data": kind, "m": m, "n": n, "k": k}
                yield facts, partial(compared, target, device, method, (m, n, k), kind)


def compared(target: KernelTarget, device: torch.device, method: str, shape: tuple[int, int, int], kind: str) -> dict:
    """Return how many elements of a product differ from the simulation."""
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
    """Return the comparison for residues, where values that are not finite make rows and columns NaN."""
    a, b, _ = operands(kind, *shape, "s8")
    found = matmul(torch.from_numpy(a).to(device), torch.from_numpy(b).to(device), FP64).cpu().numpy()
    expected = ResidueCase(residue_method(FP64), target).expected(a, b, None)
    return {"elements": found.size, "differ": int(np.count_nonzero(~same_bits(found, expected)))}


def run(work: Work) -> None:
    """Run the share."""
    work.carry_out(tasks(work.device.target, work.device.tensors))
