"""Lists AMD's matrix-core instructions (MFMA) from CDNA1 to CDNA3.

The arithmetic is that of xie-mma-sim, table IV and section IV; only MMA-Sim's code has CDNA1. The shapes are those of AMD's
CDNA ISA documents.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product

from ..accumulators import (
    FusedDotRoundDownAdd,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    IntegerDotAdd,
    ParametricDotAdd,
    SequentialFMA,
)
from ..engines.instruction import Instruction

MMA_SIM = "xie-mma-sim, table IV and section IV; mmasim 2.1.1"
CDNA1 = "mmasim 2.1.1; MATLAB-tensor-core"
ISA = "AMD CDNA ISA, V_MFMA_I32 (exact int32 sums)"

#: Shapes (m, n, k, blocks); names of CDNA1 and CDNA2 leave the number of blocks out.
FP32_SHAPES = ((32, 32, 2, 1), (32, 32, 1, 2), (16, 16, 4, 1), (16, 16, 1, 4), (4, 4, 1, 16))
FP16_SHAPES = ((32, 32, 8, 1), (32, 32, 4, 2), (16, 16, 16, 1), (16, 16, 4, 4), (4, 4, 4, 16))
BF16_SHAPES = ((32, 32, 4, 1), (32, 32, 2, 2), (16, 16, 8, 1), (16, 16, 2, 4), (4, 4, 2, 16))
FP64_SHAPES = ((16, 16, 4, 1), (4, 4, 4, 4))

#: Shapes of int8 instructions on CDNA3.
CDNA3_INT8_SHAPES = ((32, 32, 16, 1), (16, 16, 32, 1), (32, 32, 4, 2), (16, 16, 4, 4), (4, 4, 4, 16))


def _mfma(arch, shapes, a, b, c, spelled, spec, *, source=MMA_SIM, evidence="published model") -> Iterator[Instruction]:
    """Yield instructions of all shapes.

    `spelled` has the names of the result's and the operands' types, and `spec(k)` returns the accumulator.
    """
    for m, n, k, blocks in shapes:
        apart = "" if arch != "cdna3" else f"_{blocks}b_" if blocks > 1 else "_"
        yield Instruction(
            spec(k), arch=arch, name=f"v_mfma_{spelled[0]}_{m}x{n}x{k}{apart}{spelled[1]}", m=m, n=n, k=k, blocks=blocks,
            a_format=a, b_format=b, c_format=c, d_format=c, path="mfma", source=source, evidence=evidence,
        )  # fmt: skip


def _fp32(arch, source=MMA_SIM):
    return _mfma(arch, FP32_SHAPES, "fp32", "fp32", "fp32", ("f32", "f32"), lambda k: SequentialFMA(), source=source)


def _fp64(arch):
    return _mfma(arch, FP64_SHAPES, "fp64", "fp64", "fp64", ("f64", "f64"), lambda k: SequentialFMA())


def _int8(arch, shapes):
    exact = {"source": ISA, "evidence": "vendor document"}
    return _mfma(arch, shapes, "s8", "s8", "s32", ("i32", "i8"), lambda k: IntegerDotAdd(terms=k), **exact)


def _exact(group: int, k: int) -> ParametricDotAdd:
    """Return CDNA1's accumulator: exact sums of `group` products and c, rounded once, which are chained over k."""
    return ParametricDotAdd(
        group, fraction_bits=None, output_rounding="rne", nan="quiet", negative_underflow="negative"
    )


def _pairwise(group: int, k: int) -> GroupPairwiseSum:
    """Return CDNA2's accumulator: FP32 trees over `group` products, added one after the other to c."""
    return GroupPairwiseSum(group, terms=k)


def _cdna1_and_2_rows():
    for arch, unit, source in (("cdna1", _exact, CDNA1), ("cdna2", _pairwise, MMA_SIM)):
        yield from _fp32(arch, source)
        yield from _mfma(arch, FP16_SHAPES, "fp16", "fp16", "fp32", ("f32", "f16"), partial(unit, 4), source=source)
        yield from _mfma(arch, BF16_SHAPES, "bf16", "bf16", "fp32", ("f32", "bf16"), partial(unit, 2), source=source)
        yield from _int8(arch, FP16_SHAPES)
    yield from _mfma("cdna2", FP16_SHAPES, "bf16", "bf16", "fp32", ("f32", "bf16_1k"), partial(_pairwise, 4))
    yield from _fp64("cdna2")


def _cdna3_rows():
    def down(k):
        return FusedDotRoundDownAdd(min(8, k))

    yield from _fp64("cdna3")
    yield from _fp32("cdna3")
    tf32 = ((16, 16, 8, 1), (32, 32, 4, 1))
    yield from _mfma("cdna3", tf32, "tf32", "tf32", "fp32", ("f32", "xf32"), lambda k: FusedDotRoundDownAdd(4))
    for fmt, spelling in (("fp16", "f16"), ("bf16", "bf16")):
        yield from _mfma("cdna3", FP16_SHAPES, fmt, fmt, "fp32", ("f32", spelling), down)
    fp8 = {"bf8": "e5m2fnuz", "fp8": "e4m3fnuz"}
    for shape, a, b in product(((16, 16, 32, 1), (32, 32, 16, 1)), fp8, fp8):
        spelled = "f32", f"{a}_{b}"
        yield from _mfma("cdna3", (shape,), fp8[a], fp8[b], "fp32", spelled, lambda k: GroupFusedDotRoundDownAdd(16))
    yield from _int8("cdna3", CDNA3_INT8_SHAPES)


def rows() -> list[Instruction]:
    """Return all AMD rows."""
    return [*_cdna1_and_2_rows(), *_cdna3_rows()]
