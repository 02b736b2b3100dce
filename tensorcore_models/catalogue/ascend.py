"""Lists the instructions of Ascend's cube: 910A and 310 ("ascend"), 910B1 to 910B4 ("ascend910b"), 950 ("ascend950").

These facts are published:

- FP16 steps of 16 x 16 x 16, and saturation on the 910A: xue-sgemm-cube
- INT8 steps of 16 x 32 x 16: Huawei's documentation of the cube unit
- BF16, FP32 and HF32 operands on Atlas A2, and FP32 fractals of 16 x 8: Huawei's documentation of AscendC's Mmad
- HF32 has FP32's exponent and 11 fraction bits; by default it is on for convolutions and off for matrix products: the CANN
  documentation of --allow_hf32, and torch_npu.npu.matmul.allow_hf32 in Huawei's PyTorch 6.0 to 7.2 API reference
- on the 950 HF32 has 10 fraction bits (asc-devkit, HF32.md), and the cube takes HiFloat8 (arXiv 2409.16626), 32 operands in a
  step as for other operands of 8 bits (asc-devkit, TCubeTiling.md: C0)

These facts are not measured but assumed here:

- The products of a step are added in ascending k, and the sum is rounded to nearest even after every product. FP16, BF16 and
  HF32 products are exact in FP32; an FP32 product is fused with its addition. PTO-ISA/pto-spec e599a3d3 states both (ADR-0047,
  accepted 2026-08-01), but its draft ADR-0094 accepts no rule of matrix numerics, and pto-isa calls TMATMUL
  implementation-defined.
- FP32 is rounded to HF32 to nearest even. A mode of the core (SetHF32TransMode in the AscendC API reference, 07_0259) has
  another value, "towards zero", and pto-isa sets its bit for ties away from zero.
- An HF32 step has 8 products, between FP16's 16 and FP32's 4.

Every HiFloat8 number, also a subnormal one, is a number of fp16, so a HiFloat8 product is exact in FP32 in every multiplier.
"""

from ..accumulators import ConvertedDotAdd, IntegerDotAdd, SequentialFMA
from ..engines.instruction import Instruction

STEP = "PTO-ISA/pto-spec e599a3d3, ADR-0047 (sequential sums, rounded to nearest)"
NO_DATA = "no measurement of a cube step is published, so its order and rounding are assumed"


def rows() -> list[Instruction]:
    """Return all Ascend rows."""
    return [
        Instruction(
            SequentialFMA(saturate=True),
            arch="ascend", name="cube.m16n16k16.f32.f16.f16.f32", m=16, n=16, k=16, a_format="fp16", b_format="fp16",
            path="cube", evidence="reconstruction", source=f"{STEP}; xue-sgemm-cube (saturation on the 910A)", note=NO_DATA,
        ),
        *(
            Instruction(
                IntegerDotAdd(terms=32),
                arch=arch, name="cube.m16n16k32.s32.s8.s8.s32", m=16, n=16, k=32, a_format="s8", b_format="s8",
                c_format="s32", d_format="s32", path="cube", evidence="vendor document",
                source="Huawei Ascend documentation of the cube unit (int8, 16x32x16 into int32)",
            )
            for arch in ("ascend", "ascend910b", "ascend950")
        ),
        *(
            Instruction(
                SequentialFMA(),
                arch=arch, name=f"cube.m16n16k{k}.f32.{short}.{short}.f32", m=16, n=16, k=k, a_format=fmt,
                b_format=fmt, path="cube", evidence="reconstruction", source=STEP, note=f"{note}; {NO_DATA}",
            )
            for arch, hf32, digits in (("ascend910b", "hf32", 11), ("ascend950", "hf32_950", 10))
            for fmt, short, k, note in (
                ("fp16", "f16", 16, "overflow gives infinity, the 910B's default; products are exact"),
                ("bf16", "bf16", 16, "products are exact, so words of bf16x3 and bf16x6 are multiplied without error"),
                (hf32, "hf32", 8, f"FP32 operands are rounded to {digits} fraction bits; a step is assumed to have 8 products"),
                ("fp32", "f32", 4, "the number of products in a step follows from the A2's published FP32 peak"),
            )
        ),
        Instruction(
            ConvertedDotAdd(SequentialFMA(), "fp16"),
            arch="ascend950", name="cube.m16n16k32.f32.hif8.hif8.f32", m=16, n=16, k=32, a_format="hifloat8",
            b_format="hifloat8", path="cube", evidence="reconstruction", source=f"arXiv 2409.16626 (HiFloat8); {STEP}",
            note="products are exact; a step has 32 products, the C0 of asc-devkit, TCubeTiling.md; "
            f"{NO_DATA}",
        ),
    ]  # fmt: skip
