"""This module compares units emulated on a GPU with the CPU's kernels at every edge, and with the GPU's own products.

The GPU's own products come from torch. If a library splits k or adds in another order, its results differ from those of
one chain; rows count such elements (`apart`), which is no fault of either.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

import tensorcore_models as tcm
from mpgemm.campaign.tasks import Task
from mpgemm.campaign.work import Work
from tensorcore_models.formats import get_format
from tensorcore_models.gpu.tensors import ComputedOnCPU, run_bits
from tensorcore_models.hardware.libraries.engines import TORCH_TYPES, TorchMatmulEngine
from tensorcore_models.hardware.libraries.orders import candidates
from tensorcore_models.kernels import batch_bits, lowered
from tensorcore_models.probing.edge_operands import EDGES, draw

#: One unit of each arithmetic that the modes cover.
UNITS = (
    "hopper:mma.m16n8k16.f32.f16.f16.f32", "hopper:mma.m16n8k16.f32.bf16.bf16.f32", "hopper:mma.m16n8k8.f32.tf32.tf32.f32",
    "hopper:wgmma.m64n128k32.f32.e4m3.e4m3", "hopper:mma.m16n8k32.f32.e4m3.e4m3.f32", "ampere:mma.m16n8k16.f32.f16.f16.f32",
    "ada:mma.m16n8k32.f32.e4m3.e4m3.f32", "cdna3:v_mfma_f32_32x32x8_f16", "cdna3:v_mfma_f32_32x32x8_bf16",
    "cdna3:v_mfma_f32_16x16x32_fp8_fp8", "blackwell:tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0",
    "cdna1:v_mfma_f32_32x32x2f32", "turing:mma.m8n8k16.s32.s8.s8.s32", "hopper:wmma.m16n16k16.f16.f16.f16.f32",
    "cdna1:v_mfma_f32_32x32x8f16", "cdna2:v_mfma_f32_32x32x8f16", "x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32",
    "arm:fmmla.m2n2k8.f32.e4m3.e5m2.f32", "arm:bfmopa.m8n8k1.bf16.bf16.bf16.bf16",
    "wormhole:matmul.m32n32k32.f32.f16.f16.f32.hifi4", "wormhole:mvmul.m8n16k16.f32.f16.f16.f32.phase0",
)  # fmt: skip
#: Number of compared products of each unit and edge, and limits of their m, n and k.
ROUNDS, MOST = 3, (150, 150, 500)
#: Formats and m, n, k of products that the GPU computes itself.
OWN_FORMATS = ("fp16", "bf16", "tf32", "e4m3fn")
OWN_SHAPES = ((320, 320, 768), (1000, 1000, 1000), (512, 512, 16384), (4096, 4096, 4096))
#: Number of which sizes of 8-bit products must be multiples in torch.
NARROW_SIZES = 16


def _wide(x: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
    powers = torch.randint(-10, 10, x.shape, device=x.device, generator=draws)
    return x * torch.exp2(powers.float())


def _pruned(x: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
    return x * (torch.rand(x.shape, device=x.device, generator=draws) < 0.3)


#: Transformations of standard normal numbers.
OWN_DATA: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "normal": lambda x, draws: x,
    "positive": lambda x, draws: x.abs(),
    "wide": _wide,
    "pruned": _pruned,
    "small": lambda x, draws: x * 2.0**-14,
    "near one": lambda x, draws: 1 + x * 2.0**-6,
}


def on(device: torch.device, x: np.ndarray | None) -> Any:
    """Return encodings as a batch of one on the device."""
    return None if x is None else torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}"))[None].to(device)


def edges(device: torch.device) -> Iterator[Task]:
    """Return, for each edge and unit, counts of elements, differences, tiles, repeated tiles, and those repeated on the CPU."""
    for number, edge in enumerate(EDGES):
        for name in UNITS:
            yield {"unit": name, "data": edge}, partial(compared_at_edge, device, name, edge, number)


def compared_at_edge(device: torch.device, name: str, edge: str, seed: int) -> dict[str, int]:
    """Return the comparison of products at an edge on the device with those of the CPU's kernels."""
    engine = tcm.get_instruction(*name.split(":", 1))
    low, rng = lowered(engine), np.random.default_rng(seed)
    found = {"elements": 0, "differ": 0, "tiles": 0, "again": 0, "on_cpu": 0}
    for turn in range(ROUNDS):
        p = draw(rng, low, edge, turn, tuple(int(x) for x in rng.integers(1, MOST)))
        with warnings.catch_warnings():  # elements that the CPU computed are counted instead
            warnings.simplefilter("ignore", ComputedOnCPU)
            done = run_bits(engine, *(on(device, x) for x in p))
        d = done.bits[0].cpu().numpy().view(low.d_format.container)
        expected = batch_bits(low, *(None if x is None else x[None] for x in p))[0]
        found["elements"] += d.size
        found["differ"] += int(np.count_nonzero(d != expected))
        found["tiles"] += done.tiles
        found["again"] += len(done.again)
        found["on_cpu"] += len(done.on_cpu)
    return found


def own(device: torch.device, arch: str) -> Iterator[Task]:
    """Return, for each format, shape and kind of data, the elements of the GPU's own product that differ from one chain."""
    for m, n, k in OWN_SHAPES:
        for fmt in OWN_FORMATS:
            for unit in candidates(arch, fmt):
                narrow = get_format(fmt).bits == 8
                if unit.d_format != "fp32" or (narrow and any(size % NARROW_SIZES for size in (m, n, k))):
                    continue
                for data in OWN_DATA:
                    if narrow and data == "wide":  # most of it would be NaN
                        continue
                    facts = {"unit": str(unit), "data": data, "m": m, "n": n, "k": k, "beside": f"torch's {fmt}"}
                    yield facts, partial(compared_with_own, device, str(unit), fmt, data, (m, n, k))


def compared_with_own(
    device: torch.device, name: str, fmt: str, data: str, shape: tuple[int, int, int]
) -> dict[str, int]:
    """Return the comparison of one product by torch with its emulation on the same device."""
    unit, (m, n, k) = tcm.get_instruction(*name.split(":", 1)), shape
    draws = torch.Generator(device).manual_seed(m * 7 + n * 11 + k)
    a, b = (_operand(OWN_DATA[data], shape, fmt, device, draws) for shape in ((m, k), (k, n)))
    native: Any = TorchMatmulEngine(fmt, "fp32", str(device)).multiply(a, b)
    found: Any = unit.gemm(a, b)
    apart = native.contiguous().view(torch.int32) != found.contiguous().view(torch.int32)
    return {"elements": native.numel(), "apart": int(apart.sum())}


def _operand(
    change: Callable, shape: tuple[int, int], fmt: str, device: torch.device, draws: torch.Generator
) -> torch.Tensor:
    x = change(torch.randn(shape, device=device, generator=draws), draws)
    if fmt == "tf32":
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)
    return x.to(getattr(torch, TORCH_TYPES[fmt]))


def run(work: Work) -> None:
    """Run the share; products of the GPU itself come first, because they take the least time for each result."""
    work.carry_out(tasks(work.device.tensors, work.device.arch))


def tasks(device: torch.device, arch: str) -> Iterator[Task]:
    """Yield own products and edges alternately, so that neither waits for the end of the other."""
    others = edges(device)
    for task in own(device, arch):
        yield task
        yield from ([other] if (other := next(others, None)) is not None else [])
    yield from others
