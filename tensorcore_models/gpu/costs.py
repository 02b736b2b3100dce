"""Computes the cost of products on a GPU on paper: counted instructions, the pipes that bound them, and the resulting rates.

Predictions are computed, not measured; :data:`MEASURED` holds the rates that were timed on a GPU. The instructions are those of
the inner loop in SASS (:func:`tensorcore_models.gpu.counting.loop_count`, with which a test counts them anew). The limit is the
issue rate, four warp instructions a cycle on a multiprocessor, or a pipe. ``mpgemm campaign times`` measures rates.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ..results import Result


class GPUPipes(NamedTuple):
    """`GPUPipes` holds a GPU's multiprocessors, clock, and the lanes a cycle of each pipe that emulation uses, per
    multiprocessor."""

    multiprocessors: int
    gigahertz: float
    fp64: int
    conversions: int


#: NVIDIA's data sheets (boost clocks) and the CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions".
DEVICES = {
    "sm_80": GPUPipes(108, 1.41, 32, 16),
    "sm_89": GPUPipes(142, 2.52, 2, 16),
    "sm_90": GPUPipes(132, 1.83, 64, 16),
}
#: Threads that a multiprocessor issues for in a cycle.
ISSUE = 128
#: Instructions counted for a product, by unit and target, with the modes' own tiles, Triton 3.9.0; these kernels spill nothing.
COUNTED: dict[tuple[str, str], float] = {
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "sm_90"): 4.461,
    ("hopper:mma.m16n8k16.f32.bf16.bf16.f32", "sm_90"): 5.461,
    ("hopper:wgmma.m64n128k32.f32.e4m3.e4m3", "sm_90"): 3.270,
    ("cdna3:v_mfma_f32_32x32x8_f16", "sm_90"): 6.180,
    ("cdna3:v_mfma_f32_32x32x8_bf16", "sm_90"): 6.891,
    ("cdna1:v_mfma_f32_32x32x2f32", "sm_90"): 1.180,
    ("blackwell:tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0", "sm_90"): 4.510,
    ("blackwell:tcgen05.mma.m128n8k64.block32.f32.e2m1.e2m1.ue8m0", "sm_90"): 1.326,
    ("gaudi2:mme.k16.f32.e4m3.e4m3.f32", "sm_90"): 10.531,
    ("riscv:vfwbdot.k16.f32.bf16.bf16.f32", "sm_90"): 10.484,
    ("ampere:mma.m16n8k16.f32.f16.f16.f32", "sm_80"): 6.570,
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "sm_80"): 4.891,
    ("hopper:mma.m16n8k16.f32.bf16.bf16.f32", "sm_80"): 6.023,
    ("hopper:wgmma.m64n128k32.f32.e4m3.e4m3", "sm_80"): 3.756,
    ("cdna3:v_mfma_f32_32x32x8_f16", "sm_89"): 20.812,
    ("hopper:mma.m16n8k16.f16.f16.f16.f16", "sm_89"): 12.617,
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "sm_89"): 7.945,
    ("hopper:mma.m16n8k16.f32.bf16.bf16.f32", "sm_89"): 12.023,
    ("blackwell:tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0", "sm_89"): 12.039,
    ("riscv:vfwbdot.k16.f32.bf16.bf16.f32", "sm_89"): 23.734,
    ("rtx_blackwell:mma.m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0", "sm_89"): 2.621,
    ("ada:mma.m16n8k32.f32.e4m3.e4m3.f32", "sm_89"): 4.473,
    ("hopper:wgmma.m64n128k32.f32.e4m3.e4m3", "sm_89"): 3.764,
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "sm_100"): 4.480,
    ("x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32", "sm_90"): 6.795,
    ("arm:fmmla.m2n2k8.f32.e4m3.e5m2.f32", "sm_90"): 3.352,
    ("wormhole:mvmul.m8n16k16.f32.f16.f16.f32.phase0", "sm_90"): 12.430,
    ("wormhole:mvmul.m8n16k16.f32.f16.f16.f32.phase0", "sm_80"): 13.508,
    ("hopper:wmma.m16n16k16.f16.f16.f16.f32", "sm_90"): 4.688,
}
#: Rates in 10^12 products a second, measured for 4096^3 on an NVIDIA H100 80GB HBM3 (2026-11-26, Triton 3.9.0;
#: docs/units_on_gpus.md) with kernels that loaded operands from global memory in their loops. Kernels that copy operands ahead
#: were counted, not timed.
MEASURED: dict[tuple[str, str], float] = {
    ("hopper:mma.m16n8k16.f32.f16.f16.f32", "sm_90"): 1.11,
    ("hopper:mma.m16n8k16.f32.bf16.bf16.f32", "sm_90"): 0.85,
    ("hopper:wgmma.m64n128k32.f32.e4m3.e4m3", "sm_90"): 5.03,
    ("cdna3:v_mfma_f32_32x32x8_f16", "sm_90"): 1.63,
    ("blackwell:tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0", "sm_90"): 0.96,
}


@dataclass(frozen=True, repr=False)
class PredictedRate(Result):
    """`PredictedRate` is the predicted rate of a unit on a GPU.

    Attributes
    ----------
    unit, target : str
    instructions : float
        Number of instructions counted for a product.
    bound : str
        Pipe, or issue, that limits the rate.
    limit : float
        Rate in 10^12 products a second if only the bound costs time.
    measured : float or None
        Rate measured on a GPU (:data:`MEASURED`), None if no GPU was timed.
    """

    unit: str
    target: str
    instructions: float
    bound: str
    limit: float
    measured: float | None = None

    def __str__(self) -> str:
        seen = (
            "" if self.measured is None else f"; measured {self.measured:.2f}, {self.measured / self.limit:.2f} of it"
        )
        return (
            f"{self.unit} on {self.target}: {self.instructions:.2f} instructions a product, {self.limit:.2f} TMAC/s at most by "
            f"{self.bound} (predicted{seen})"
        )

    def to_rows(self) -> list[dict]:
        """Return one row."""
        return [vars(self)]


def predicted(unit: str, target: str) -> PredictedRate:
    """Return the predicted rate of a unit on a GPU, from counted instructions.

    Parameters
    ----------
    unit, target : str
        Key of :data:`COUNTED`, whose target is in :data:`DEVICES`.

    Raises
    ------
    ValueError
        If no instructions were counted for the unit on the target.
    """
    if (unit, target) not in COUNTED or target not in DEVICES:
        known = ", ".join(f"{u} on {t}" for u, t in COUNTED if t in DEVICES)
        raise ValueError(f"no instructions were counted for {unit} on {target}, expected one of {known}")
    device, count = DEVICES[target], COUNTED[unit, target]
    limits = {"issue": ISSUE / count}
    if (number := _fp64_instructions(unit, target)) > 0:
        limits["FP64"] = device.fp64 / number
    bound = min(limits, key=lambda name: limits[name])
    limit = limits[bound] * device.multiprocessors * device.gigahertz / 1000
    return PredictedRate(unit, target, count, bound, limit, MEASURED.get((unit, target)))


def _fp64_instructions(unit: str, target: str) -> float:
    """Return the FP64 instructions for a product: its multiply-add, or both of the bounds, and the additions at a step's
    end."""
    from ..catalogue import get_instruction
    from ..kernels import lowered
    from .modes import plan_of

    plan = plan_of(lowered(get_instruction(*unit.split(":", 1))), target)
    if plan.constants.get("BOUNDS", False):
        return 2.0
    if plan.mode.function == "group_sums" and plan.constants["SHIFT"] is not None:
        return 1 / plan.terms
    if plan.mode.function == "group_sums":
        return (4 * plan.terms // plan.constants["GROUP"] + 2) / plan.terms
    if plan.mode.function == "aligned_sums":  # each product of parts, and the end of a step
        parts, ends = plan.constants["PARTS"] ** 2, {"early": 2, "late": 0, "exact": 2}[plan.constants["ADDEND"]]
        return (4 if plan.constants["ODD"] else 3) * parts + ends / plan.terms + plan.constants["NORMALISED"]
    if plan.mode.function != "fused_floating" or plan.constants["WINDOW"]:
        return 0.0
    return 1 + (4 if plan.constants["DOWN"] is None else 8) / plan.terms
