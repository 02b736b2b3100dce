"""This module times recovery methods beside torch's products, and emulated units, on a GPU: call, device alone, host alone.

Kernels are compiled before (`warm`), in processes side by side; the times are taken alone.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

import tensorcore_models as tcm
from mpgemm.campaign.emulation import UNITS, on
from mpgemm.campaign.recovery import FP64, methods_of
from mpgemm.campaign.tasks import Task
from mpgemm.campaign.work import Work
from mpgemm.kernels.multiply import matmul, split
from tensorcore_models.gpu import costs
from tensorcore_models.gpu.targets import KernelTarget
from tensorcore_models.gpu.tensors import run_bits
from tensorcore_models.gpu.tiles import CANDIDATES, UnitTile
from tensorcore_models.kernels import lowered

#: Sizes m, n, k of timed products, small and square ones first, and sides of emulated ones.
SHAPES = ((1024,) * 3, (4096,) * 3, (16, 4096, 4096), (256, 4096, 4096), (8192,) * 3)
SIDES = (1024, 4096)
#: Size from which on tiles are timed, too, and kernels without scaling and repair.
LARGE = 4096
#: torch's products: name, type of the operands, precision of FP32 products.
TORCH = (
    ("torch FP32", torch.float32, "ieee"), ("torch TF32", torch.float32, "tf32"), ("torch BF16x9", torch.float32, "bfx9"),
    ("torch FP16", torch.float16, None), ("torch BF16", torch.bfloat16, None), ("torch FP64", torch.float64, None),
)  # fmt: skip

#: Function that makes a call ready to be timed.
Prepared = Callable[[], Callable[[], object]]


def tasks(target: KernelTarget, device: torch.device, time: Callable[[Callable[[], object]], dict]) -> Iterator[Task]:
    """Yield for each product the times of a call, and TFLOP/s (2 m n k) of the whole call and of the device alone."""
    for m, n, k in SHAPES:
        for name, prepare in products(target, device, m, n, k).items():
            yield {"name": name, "m": m, "n": n, "k": k}, partial(_timed, prepare, time, 2 * m * n * k)
    yield from emulated(target, device, time)
    yield from tiled(target, device, time)


def products(target: KernelTarget, device: torch.device, m: int, n: int, k: int) -> dict[str, Prepared]:
    """Yield the products of a shape as prepared calls; operands are made when a call is."""
    found: dict[str, Prepared] = {
        name: partial(_torch_call, device, (m, n, k), kind, precision)
        for name, kind, precision in TORCH
        if precision is None or _has_precision(precision)
    }
    for method in methods_of(target):
        found[method] = partial(_method_call, device, (m, n, k), method)
        if method == FP64:
            continue
        found[f"{method}, B split before"] = partial(_method_call, device, (m, n, k), method, split_before=True)
        if m >= LARGE:
            found[f"{method}, tiles timed"] = partial(_method_call, device, (m, n, k), method, config="tune")
            found[f"{method}, unscaled"] = partial(_method_call, device, (m, n, k), method, scale="none", repair=False)
    return found


def operands(device: torch.device, shape: tuple[int, int, int], kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return normal random A and B, equal for every product of a shape."""
    (m, n, k), draws = shape, torch.Generator(device).manual_seed(0)
    a, b = (torch.randn(size, device=device, generator=draws) for size in ((m, k), (k, n)))
    return a.to(kind), b.to(kind)


def _torch_call(device, shape, kind: torch.dtype, precision: str | None) -> Callable[[], object]:
    a, b = operands(device, shape, kind)
    return partial(torch.matmul, a, b) if precision is None else partial(_torch_product, a, b, precision)


def _has_precision(precision: str) -> bool:
    """Return whether this torch has an FP32 precision of that name."""
    try:
        _torch_product(torch.ones(1, 1), torch.ones(1, 1), precision)
    except (ValueError, RuntimeError):
        return False
    return True


def _torch_product(a: torch.Tensor, b: torch.Tensor, precision: str) -> torch.Tensor:
    """Return torch's product in a precision of its matmul settings."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    try:
        settings.fp32_precision = precision
        return a @ b
    finally:
        settings.fp32_precision = before


def _method_call(device, shape, method: str, split_before: bool = False, **options) -> Callable[[], object]:
    a, b = operands(device, shape, torch.float64 if method == FP64 else torch.float32)
    left = a.bfloat16() if method.startswith("bf16xfp32") else a
    return partial(matmul, left, split(b, method) if split_before else b, method, **options)


def _timed(prepare: Prepared, time: Callable[[Callable[[], object]], dict], operations: int) -> dict[str, float]:
    found = time(prepare())
    return {
        **found, "tflops": operations / found["seconds"] / 1e12,
        "device_tflops": operations / found["device_seconds"] / 1e12,
    }  # fmt: skip


def emulated(
    target: KernelTarget, device: torch.device, time: Callable[[Callable[[], object]], dict]
) -> Iterator[Task]:
    """Yield for each unit and side the times of a product of normal numbers, and the TFLOP/s predicted as the maximum."""
    for side in SIDES:
        for name in UNITS:
            low = lowered(tcm.get_instruction(*name.split(":", 1)))
            if low.scale_format is None and low.floating is not None:
                facts = {"name": f"emulated {name}", "m": side, "n": side, "k": side}
                yield facts, partial(_rate, target, device, time, name, side)


def tiled(target: KernelTarget, device: torch.device, time: Callable[[Callable[[], object]], dict]) -> Iterator[Task]:
    """Yield the times of the largest side in each tile of :data:`tensorcore_models.gpu.tiles.CANDIDATES`."""
    for facts, _ in emulated(target, device, time):
        side, name = facts["m"], facts["name"].removeprefix("emulated ")
        for tile in CANDIDATES if side == SIDES[-1] else ():
            about = {**facts, "name": f"{facts['name']}, {tile}", "unit": name, "target": target.name, **tile._asdict()}
            yield about, partial(_rate, target, device, time, name, side, tile)


def _unit_call(device: torch.device, name: str, side: int, tile: UnitTile | None = None) -> Callable[[], object]:
    engine = tcm.get_instruction(*name.split(":", 1))
    floating, rng = lowered(engine).floating, np.random.default_rng(0)
    assert floating is not None
    a, b = (
        on(device, tcm.encode(rng.standard_normal((side, side), np.float32), fmt.name, "rne")) for fmt in floating[:2]
    )
    return partial(run_bits, engine, a, b, tile=tile)


def _rate(
    target: KernelTarget, device: torch.device, time, name: str, side: int, tile: UnitTile | None = None
) -> dict[str, float]:
    row = _timed(partial(_unit_call, device, name, side, tile), time, 2 * side**3)
    if (name, target.name) in costs.COUNTED and target.name in costs.DEVICES:
        row["predicted_tflops"] = 2 * costs.predicted(name, target.name).limit
    return row


def run(work: Work) -> None:
    """Take the times, alone."""
    work.carry_out(tasks(work.device.target, work.device.tensors, work.device.timer))


def warm(work: Work) -> None:
    """Call every product once to compile its kernels; a failure is reported when the product is timed."""

    def once(call: Callable[[], object]) -> dict[str, float]:
        call()
        return {"seconds": 1.0, "device_seconds": 1.0, "host_seconds": 1.0}

    work.carry_out(tasks(work.device.target, work.device.tensors, once))
