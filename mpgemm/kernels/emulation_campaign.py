"""``python -m mpgemm.kernels.campaign --emulation [REPORT.json]``: units emulated on this GPU, their bits and their rates.

Bits: each mode's units on products at every edge (:mod:`tensorcore_models.probing.edges`) against the CPU's generic kernel.
Rates: medians of CUDA events over square products, packing included, beside what was predicted from counted instructions.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

import tensorcore_models as tcm
from mpgemm.kernels.tuning import seconds
from tensorcore_models.gpu import costs
from tensorcore_models.gpu.tensors import ComputedOnCPU, gpu_of, run_bits
from tensorcore_models.kernels import lowered
from tensorcore_models.kernels.generic import generic_bits
from tensorcore_models.probing.edges import EDGES, draw

#: One unit of each arithmetic that modes hold.
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
#: Products that are compared of each unit and edge, what their m, n and k are below, and the sides of those that are timed.
ROUNDS, MOST, SIDES = 20, (150, 150, 500), (1024, 4096)


def on(device: torch.device, x: np.ndarray | None):
    """Encodings as a batch of one on the device."""
    return None if x is None else torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}"))[None].to(device)


def comparisons(device: torch.device) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """For each unit and edge: elements, how many differ, tiles, how many were done again."""
    for name in UNITS:
        for number, edge in enumerate(EDGES):
            yield {"unit": name, "data": edge}, partial(_compared, device, name, edge, number)


def _compared(device: torch.device, name: str, edge: str, seed: int) -> dict[str, int]:
    engine = tcm.get_instruction(*name.split(":", 1))
    low, rng = lowered(engine), np.random.default_rng(seed)
    found = {"elements": 0, "differ": 0, "tiles": 0, "again": 0, "on_cpu": 0}
    for turn in range(ROUNDS):
        p = draw(rng, low, edge, turn, tuple(int(x) for x in rng.integers(1, MOST)))
        with warnings.catch_warnings():  # what the CPU computed is counted instead
            warnings.simplefilter("ignore", ComputedOnCPU)
            done = run_bits(engine, *(on(device, x) for x in p))
        d = done.bits[0].cpu().numpy().view(low.d_format.container)
        found["elements"] += d.size
        found["differ"] += int(np.count_nonzero(d != generic_bits(low, *p)))
        found["tiles"] += done.tiles
        found["again"] += len(done.again)
        found["on_cpu"] += len(done.on_cpu)
    return found


def rates(device: torch.device) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """10^12 products a second of square products of normal numbers, and the limit that was predicted."""
    for name in UNITS:
        low = lowered(tcm.get_instruction(*name.split(":", 1)))
        if low.scale_format is None and low.floating is not None:
            yield from (({"unit": name, "side": side}, partial(_rate, device, name, side)) for side in SIDES)


def _rate(device: torch.device, name: str, side: int) -> dict[str, float]:
    engine = tcm.get_instruction(*name.split(":", 1))
    target, floating = gpu_of(torch.empty(0, device=device)).target.name, lowered(engine).floating
    assert floating is not None
    rng = np.random.default_rng(0)
    a, b = (
        on(device, tcm.encode(rng.standard_normal((side, side), np.float32), fmt.name, "rne")) for fmt in floating[:2]
    )
    time = seconds(partial(run_bits, engine, a, b))
    row = {"seconds": time, "tmacs": side**3 / time / 1e12}
    if (name, target) in costs.COUNTED and target in costs.DEVICES:
        row["predicted_limit"] = costs.predicted(name, target).limit
    return row
