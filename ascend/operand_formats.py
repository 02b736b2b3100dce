"""This module lists the formats of operands in L1 as rows: bits, whole numbers of products, block scales, CANN's type name.

Sources: asc-devkit (github.com/cannmirror/asc-devkit, 0da921b91), TCubeTiling, table 1: C0 is 32 bytes, 64 elements of FP4;
baseK of MxMatmul is a multiple of 64. OCP Microscaling Formats (MX) 1.0: a scale of one byte for 32 elements.

Weights (B) that are narrower in memory than on the cube are widened by vector units before they reach L1, which holds
both operands in the cube's format. Sources: CATLASS (github.com/hicann/catlass, 0dfcf9df), examples 30_w8a16_matmul and
32_w4a8_matmul (Atlas A2 and A3), 59 and 74 (Ascend 950, MX FP8 and FP4); ops-nn (github.com/hicann/ops-nn, 293f6604),
weight_quant_batch_matmul_v2, op_kernel/arch35.
"""

from typing import Any, NamedTuple

#: Rows and columns of a fractal, and bytes of one of its rows (C0 elements).
ALIGNMENT = 16
C0_BYTES = 32


class OperandFormat(NamedTuple):
    """`OperandFormat` holds the facts of an operand format that tilings and times need.

    `bits` is the size of an element. `depth` names the chip's parameter for the depth of a cube step. Blocks of k hold
    a multiple of `whole_k` products. `scale_block` elements share a scale of one byte (0: no scales). `data_type` is
    CANN's name of the type as a plain Matmul takes it ("": it takes no such type). `weight_bits` is the size of an
    element of B in memory if that is narrower (0: it is not). `integer` says whether the sums are int32.
    """

    name: str
    bits: int
    depth: str
    whole_k: int = ALIGNMENT
    scale_block: int = 0
    data_type: str = ""
    weight_bits: int = 0
    integer: bool = False

    @property
    def weight_bytes(self) -> float:
        """Return the bytes of an element of B in memory."""
        return (self.weight_bits or self.bits) / 8

    @property
    def bytes(self) -> int | float:
        """Return the bytes of an element, a float if they are half a byte."""
        return self.bits // 8 if self.bits % 8 == 0 else self.bits / 8

    @property
    def c0(self) -> int:
        """Return the number of elements in one row of a fractal."""
        return C0_BYTES * 8 // self.bits

    @property
    def scale_bytes(self) -> float:
        """Return the bytes of block scales for each byte of elements."""
        return 8 / (self.bits * self.scale_block) if self.scale_block else 0.0

    def stored(self, products: Any) -> Any:
        """Return the bytes in L1 of `products` elements of one row or column with their scales; `products` are whole blocks."""
        return products * self.bits // 8 + (products // self.scale_block if self.scale_block else 0)


FORMATS: dict[str, OperandFormat] = {
    row.name: row
    for row in (
        OperandFormat("fp16", 16, "cube_k", data_type="FLOAT16"),
        OperandFormat("bf16", 16, "cube_bf16_k", data_type="BFLOAT16"),
        OperandFormat("hf32", 32, "cube_hf32_k", data_type="FLOAT"),
        OperandFormat("fp32", 32, "cube_fp32_k", data_type="FLOAT"),
        OperandFormat("int8", 8, "cube_int8_k", 32, data_type="INT8", integer=True),
        OperandFormat("fp8", 8, "cube_fp8_k", 32, data_type="FLOAT8_E4M3FN"),  # or E5M2: the same bytes and steps
        OperandFormat("hifloat8", 8, "cube_fp8_k", 32, data_type="HIFLOAT8"),
        OperandFormat("mxfp8", 8, "cube_mxfp8_k", 64, 32),
        OperandFormat("mxfp4", 4, "cube_mxfp4_k", 64, 32),
        OperandFormat("w8a16", 16, "cube_k", weight_bits=8),  # int8 weights, FP16 activations
        OperandFormat("a8w4", 8, "cube_int8_k", 32, weight_bits=4, integer=True),  # int8 activations, int4 weights
        OperandFormat("a8w4mx", 8, "cube_mxfp8_k", 64, 32, weight_bits=4),  # MX FP8 activations, MX FP4 weights
    )
}
