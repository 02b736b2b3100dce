"""The Ascend cube: 910A and 310 (arch "ascend"), 910B1 to 910B4 (arch "ascend910b"), 950 (arch "ascend950").

Sources: xue-sgemm-cube (16 x 16 x 16 FP16, saturation on the 910A); Huawei's documentation of the cube unit (16 x 32 x 16
INT8) and of AscendC's Mmad (BF16, FP32 and HF32 operands on Atlas A2, FP32 fractals of 16 x 8); the CANN documentation of
--allow_hf32 (HF32 has FP32's exponent and 11 fraction bits; on for convolutions and off for matrix products by default, as
torch_npu.npu.matmul.allow_hf32 is: Huawei, PyTorch 6.0 to 7.2 API reference).

Not measured, and assumed here: the order of the products in a step (ascending k) and how often a step rounds (every product, to
nearest even; FP16, BF16 and HF32 products are exact in FP32, an FP32 product is fused with its addition). PTO-ISA/pto-spec
e599a3d3 states both (ADR-0047, accepted 2026-08-01; its ADR-0094, a draft, accepts no rule of matrix numerics, and pto-isa
calls TMATMUL implementation-defined). Not published: the rounding of FP32 to HF32 (here to nearest even; a mode of the core,
SetHF32TransMode in the AscendC API reference, 07_0259, has another value "towards zero", and pto-isa sets its bit for ties away
from zero), the depth of an HF32 step (8, between FP16's 16 and FP32's 4).

On the 950 HF32 has 10 fraction bits (asc-devkit, HF32.md), and the cube takes HiFloat8 (arXiv 2409.16626), of which 32 make a
step as of other operands of 8 bits (asc-devkit, TCubeTiling.md: C0). Every HiFloat8 number is one of fp16 (its subnormal
numbers included), so that a product is exact in FP32 whatever the multiplier looks like; order and rounding are assumed as
above.
"""

from ..accumulators import ConvertedDotAdd, IntegerDotAdd, SequentialFMA
from ..engines.instruction import Instruction

STEP = "sequential RN as PTO-ISA/pto-spec e599a3d3 states it (ADR-0047); no measurement of a cube step is published"


def rows() -> list[Instruction]:
    """Return all Ascend rows."""
    return [
        Instruction(
            SequentialFMA(saturate=True),
            arch="ascend", name="cube.m16n16k16.f32.f16.f16.f32", m=16, n=16, k=16, a_format="fp16", b_format="fp16",
            path="cube", evidence="reconstruction", source=f"{STEP}; 910A saturates",
        ),
        *(
            Instruction(
                IntegerDotAdd(terms=32),
                arch=arch, name="cube.m16n16k32.s32.s8.s8.s32", m=16, n=16, k=32, a_format="s8", b_format="s8",
                c_format="s32", d_format="s32", path="cube", evidence="vendor document",
                source="Huawei Ascend documentation: int8 cube 16x32x16 into int32",
            )
            for arch in ("ascend", "ascend910b", "ascend950")
        ),
        *(
            Instruction(
                SequentialFMA(),
                arch=arch, name=f"cube.m16n16k{k}.f32.{short}.{short}.f32", m=16, n=16, k=k, a_format=fmt,
                b_format=fmt, path="cube", evidence="reconstruction", source=STEP, note=note,
            )
            for arch, hf32, digits in (("ascend910b", "hf32", 11), ("ascend950", "hf32_950", 10))
            for fmt, short, k, note in (
                ("fp16", "f16", 16, "IEEE overflow, the 910B's default; exact products"),
                ("bf16", "bf16", 16, "exact products; words of bf16x3 and bf16x6 are multiplied without error"),
                (hf32, "hf32", 8, f"FP32 operands rounded to {digits} fraction bits; the depth of a step is assumed"),
                ("fp32", "f32", 4, "the depth follows from the A2's published FP32 peak, the rounding of a product is assumed"),
            )
        ),
        Instruction(
            ConvertedDotAdd(SequentialFMA(), "fp16"),
            arch="ascend950", name="cube.m16n16k32.f32.hif8.hif8.f32", m=16, n=16, k=32, a_format="hifloat8",
            b_format="hifloat8", path="cube", evidence="reconstruction", source=f"HiFloat8: arXiv 2409.16626; {STEP}",
            note="exact products; C0 is 32 (asc-devkit, TCubeTiling.md)",
        ),
    ]  # fmt: skip
