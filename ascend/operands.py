"""This module computes the cube's products of BF16, HF32, FP32 and INT8 operands, as the catalogue models them.

The rows of the catalogue belong to arch "ascend910b" in :mod:`tensorcore_models.catalogue.ascend`, which says what is
not published of their arithmetic. A k group is one chain in L0C; groups and slices are added in FP32 (INT8: exactly, in
int32).
"""

from typing import Any

import numpy as np

from ascend.operand_formats import FORMATS
from ascend.slices import Sums, each_slice
from tensorcore_models.catalogue import get_instruction
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats.rounding import round_to

#: Row of the catalogue for each operand format.
INSTRUCTIONS = {
    "fp16": "cube.m16n16k16.f32.f16.f16.f32",
    "bf16": "cube.m16n16k16.f32.bf16.bf16.f32",
    "hf32": "cube.m16n16k8.f32.hf32.hf32.f32",
    "fp32": "cube.m16n16k4.f32.f32.f32.f32",
    "int8": "cube.m16n16k32.s32.s8.s8.s32",
}


def product_is_published(operand: str) -> bool:
    """Return whether a publication says how the cube adds products of an operand format."""
    return operand in INSTRUCTIONS


def cube_instruction(operand: str) -> Instruction:
    """Return the catalogue's row for an operand format; raises ValueError if the format has none."""
    if operand not in FORMATS:
        raise ValueError(f"operand must be one of {', '.join(FORMATS)}, got {operand!r}")
    if FORMATS[operand].weight_bits:
        raise ValueError(
            f"got {operand}, but a schedule does not hold the scales of such weights, so only its time can be simulated: to "
            f"compute the product, convert the weights to the cube's format first, and multiply the converted matrix"
        )
    if operand not in INSTRUCTIONS:
        raise ValueError(
            f"how the cube adds {operand} products is not published: simulate only the time, or take another operand"
        )
    return get_instruction("ascend910b", INSTRUCTIONS[operand])


def operand_slices(sums: Sums, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """Return the product of each slice of k of A B (+ C), in the order of a schedule of one term without FP16 words.

    Operands are rounded to their format (RN); for INT8 they must hold integers from -128 to 127 (c: int32). The result is
    float32, or int32 for INT8, of shape (slices, m, n).
    """
    instruction = cube_instruction(sums.operand)
    a, b, c = (_operand(x, sums.operand, name) for x, name in ((a, "a"), (b, "b"), (c, "c")))
    if sums.operand == "hf32":
        a, b = rounded_to_hf32(a, sums.hf32_rounding), rounded_to_hf32(b, sums.hf32_rounding)
    options: dict[str, Any] = {} if sums.operand == "int8" else {"input_rounding": "rne"}
    found = []
    for groups, x, y, seed in each_slice(sums, a, b, c):
        chains = (instruction.gemm(x[:, i:j], y[i:j], None if i else seed, **options) for i, j in groups)
        with np.errstate(over="ignore", invalid="ignore"):
            found.append(sum(chains, next(chains)))
    return np.stack(found)


def rounded_to_hf32(x: np.ndarray, rounding: str) -> np.ndarray:
    """Return FP32 numbers rounded to HF32, 11 fraction bits; infinities and NaNs stay.

    The modes are rne (to nearest even), rna and rnz (to nearest with ties away from zero and toward zero) and rz
    (toward zero). SetHF32TransMode (AscendC API reference, 07_0259) chooses between a mode that its text calls rounding
    "to the nearest even" and one "in the manner towards zero". Its bit of CTRL is the one that pto-isa sets for
    rounding with "tie away from zero". No publication says which of rna, rnz and rz the second mode is.
    """
    return round_to(x, "hf32", rounding=rounding or "rne")


def _operand(x: np.ndarray | None, operand: str, name: str) -> Any:
    if x is None or operand != "int8":
        return x
    kind = np.int32 if name == "c" else np.int8
    whole = np.asarray(x).astype(np.int64)
    limits = np.iinfo(kind)
    if not np.array_equal(whole, x) or whole.min(initial=0) < limits.min or whole.max(initial=0) > limits.max:
        raise ValueError(
            f"int8 operands: {name} must hold integers from {limits.min} to {limits.max}, got values from "
            f"{np.min(x)} to {np.max(x)}: quantise {name} first"
        )
    return whole.astype(kind)
