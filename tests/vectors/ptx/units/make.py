"""Write the PTX files beside this one: ``python tests/vectors/ptx/units/make.py`` with Triton 3.9.0; names of rows: those
alone. No GPU is needed.

Each is one kernel of tensorcore_models.gpu with few outputs a thread; its first line says for which unit and target. The tests
run them without Triton.
"""

import json
import sys
from pathlib import Path

import torch
import triton

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[3]), str(HERE.parents[2] / "support"), str(HERE.parent)]
from make import stripped  # noqa: E402
from unit_machine import EACH, WARPS  # noqa: E402

import tensorcore_models as tcm  # noqa: E402
from tensorcore_models.gpu.compiling import compile_function, unit_kernel  # noqa: E402
from tensorcore_models.gpu.conversions import converted  # noqa: E402
from tensorcore_models.gpu.products import unit_on  # noqa: E402
from tensorcore_models.gpu.targets import get_target  # noqa: E402
from tensorcore_models.kernels import lowered  # noqa: E402

#: Files: unit and target. FP64 with codes in bytes and in halves, two windows of FP32 and one, round-down with groups, block
#: scales, sums of groups, products that are cut one by one, with c exact, early and late, phases, chains.
FILES = {
    "hopper-fp16": ("hopper:mma.m16n8k16.f32.f16.f16.f32", "sm_90"),
    "ampere-bf16": ("ampere:mma.m16n8k16.f32.bf16.bf16.f32", "sm_80"),
    "ada-fp16": ("ada:mma.m16n8k16.f32.f16.f16.f32", "sm_89"),
    "ada-e4m3": ("ada:mma.m16n8k32.f32.e4m3.e4m3.f32", "sm_89"),
    "cdna3-fp8": ("cdna3:v_mfma_f32_16x16x32_fp8_fp8", "sm_90"),
    "blackwell-mxfp8": ("blackwell:tcgen05.mma.m128n8k32.block32.f32.e4m3.e4m3.ue8m0", "sm_100"),
    "wormhole-hifi2": ("wormhole:matmul.m32n32k32.f32.f16.f16.f32.hifi2", "sm_90"),
    "blackwell-mxfp4": ("blackwell:tcgen05.mma.m128n8k64.block32.f32.e2m1.e2m1.ue8m0", "sm_100"),
    "gaudi2-tf32": ("gaudi2:mme.k4.f32.tf32.tf32.f32", "sm_90"),
    "gaudi3-fp16": ("gaudi3:mme.k2.f32.f16.f16.f32", "sm_80"),
    "riscv-bf16": ("riscv:vfwbdot.k8.f32.bf16.bf16.f32", "sm_90"),
    "cdna1-fp32": ("cdna1:v_mfma_f32_32x32x2f32", "sm_80"),
}


def write(name: str, unit: str, target_name: str) -> None:
    """The kernels of one unit."""
    target, engine = get_target(target_name), tcm.get_instruction(*unit.split(":", 1))
    low, written = lowered(engine), set()

    def launch(what):
        made = compile_function(unit_kernel(what.function), what, target)
        facts = {
            "triton": triton.__version__, "unit": unit, "target": target_name, "function": what.function,
            "parameters": made.parameters,
        }  # fmt: skip
        if "SHAPE" in what.constants:
            facts["shape"] = what.constants["SHAPE"]
        text = f"// {json.dumps(facts)}\n{stripped(made.assembly)}"
        path = HERE / f"{name}-{what.function}.ptx"
        if path in written and text != path.read_text():  # b is packed otherwise
            path = HERE / f"{name}-{what.function}-b.ptx"
        path.write_text(text)
        written.add(path)

    types = {1: torch.int8, 2: torch.int16, 4: torch.int32}
    a, b = (torch.zeros((1, 8, 64), dtype=types[f.container.itemsize]) for f in (low.a_format, low.b_format))
    c = torch.zeros((1, 8, 8), dtype=types[low.c_format.container.itemsize])
    scales = (None, None) if low.scale_format is None else (torch.zeros((1, 8, 2), dtype=torch.uint8),) * 2
    device = unit_on(low, target, launch, unit, each=EACH, warps=WARPS)
    if device.plan.given is not None:
        a, b = (converted(device.plan.given, codes, side) for side, codes in enumerate((a, b)))
    device.chain(a, b, c, None, scales)


if __name__ == "__main__":
    for name, row in FILES.items():
        if name in (sys.argv[1:] or FILES):
            write(name, *row)
    for path in sorted(HERE.glob("*.ptx")):
        print(path.name, path.stat().st_size)
