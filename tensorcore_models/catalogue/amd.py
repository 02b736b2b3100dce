"""AMD matrix-core instructions (MFMA), CDNA1 to CDNA3.

Arithmetic: xie-mma-sim, table IV and section IV; CDNA1 from MMA-Sim's code only. Shapes: AMD CDNA ISA documents.
"""

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
ISA = "AMD CDNA ISA, V_MFMA_I32: exact int32 sums"

#: Shapes (m, n, k, blocks) of CDNA1 and CDNA2, where the name leaves the blocks out.
FP32_SHAPES = ((32, 32, 2, 1), (32, 32, 1, 2), (16, 16, 4, 1), (16, 16, 1, 4), (4, 4, 1, 16))
FP16_SHAPES = ((32, 32, 8, 1), (32, 32, 4, 2), (16, 16, 16, 1), (16, 16, 4, 4), (4, 4, 4, 16))
BF16_SHAPES = ((32, 32, 4, 1), (32, 32, 2, 2), (16, 16, 8, 1), (16, 16, 2, 4), (4, 4, 2, 16))
FP64_SHAPES = ((16, 16, 4, 1), (4, 4, 4, 4))

#: CDNA3 shapes of int8.
CDNA3_INT8_SHAPES = ((32, 32, 16, 1), (16, 16, 32, 1), (32, 32, 4, 2), (16, 16, 4, 4), (4, 4, 4, 16))


def _mfma(arch, shape, a, b, c, name, accumulator, *, source=MMA_SIM, evidence="published model") -> Instruction:
    m, n, k, blocks = shape
    return Instruction(
        accumulator, arch=arch, name=name, m=m, n=n, k=k, blocks=blocks, a_format=a, b_format=b, c_format=c, d_format=c,
        path="mfma", source=source, evidence=evidence,
    )  # fmt: skip


def _old_name(shape, cd: str, ab: str) -> str:
    return f"v_mfma_{cd}_{shape[0]}x{shape[1]}x{shape[2]}{ab}"


def _new_name(shape, cd: str, ab: str) -> str:
    blocks = f"{shape[3]}b_" if shape[3] > 1 else ""
    return f"v_mfma_{cd}_{shape[0]}x{shape[1]}x{shape[2]}_{blocks}{ab}"


def _exact(group: int, k: int) -> ParametricDotAdd:
    """CDNA1: the exact sum of `group` products and c, rounded once; chained over k."""
    return ParametricDotAdd(
        group, fraction_bits=None, output_rounding="rne", nan="quiet", negative_underflow="negative"
    )


def _pairwise(group: int, k: int) -> GroupPairwiseSum:
    """CDNA2: FP32 trees over `group` products, added one after the other to the c of an instruction."""
    return GroupPairwiseSum(group, terms=k)


def _cdna1_and_2_rows():
    for arch, unit, source in (("cdna1", _exact, CDNA1), ("cdna2", _pairwise, MMA_SIM)):
        for shape in FP32_SHAPES:
            name = _old_name(shape, "f32", "f32")
            yield _mfma(arch, shape, "fp32", "fp32", "fp32", name, SequentialFMA(), source=source)
        for shape in FP16_SHAPES:
            name = _old_name(shape, "f32", "f16")
            yield _mfma(arch, shape, "fp16", "fp16", "fp32", name, unit(4, shape[2]), source=source)
        for shape in BF16_SHAPES:
            name = _old_name(shape, "f32", "bf16")
            yield _mfma(arch, shape, "bf16", "bf16", "fp32", name, unit(2, shape[2]), source=source)
        for shape in FP16_SHAPES:
            name = _old_name(shape, "i32", "i8")
            spec = IntegerDotAdd(terms=shape[2])
            yield _mfma(arch, shape, "s8", "s8", "s32", name, spec, source=ISA, evidence="vendor document")
    for shape in FP16_SHAPES:
        name = _old_name(shape, "f32", "bf16_1k")
        yield _mfma("cdna2", shape, "bf16", "bf16", "fp32", name, _pairwise(4, shape[2]))
    for shape in FP64_SHAPES:
        yield _mfma("cdna2", shape, "fp64", "fp64", "fp64", _old_name(shape, "f64", "f64"), SequentialFMA())


def _cdna3_rows():
    for shape in FP64_SHAPES:
        yield _mfma("cdna3", shape, "fp64", "fp64", "fp64", _new_name(shape, "f64", "f64"), SequentialFMA())
    for shape in FP32_SHAPES:
        yield _mfma("cdna3", shape, "fp32", "fp32", "fp32", _new_name(shape, "f32", "f32"), SequentialFMA())
    for shape in ((16, 16, 8, 1), (32, 32, 4, 1)):
        spec = FusedDotRoundDownAdd(4)
        yield _mfma("cdna3", shape, "tf32", "tf32", "fp32", _new_name(shape, "f32", "xf32"), spec)
    for fmt, spelling in (("fp16", "f16"), ("bf16", "bf16")):
        for shape in FP16_SHAPES:
            spec = FusedDotRoundDownAdd(min(8, shape[2]))
            yield _mfma("cdna3", shape, fmt, fmt, "fp32", _new_name(shape, "f32", spelling), spec)
    for shape in ((16, 16, 32, 1), (32, 32, 16, 1)):
        for a, a_name in (("e5m2fnuz", "bf8"), ("e4m3fnuz", "fp8")):
            for b, b_name in (("e5m2fnuz", "bf8"), ("e4m3fnuz", "fp8")):
                name = _new_name(shape, "f32", f"{a_name}_{b_name}")
                yield _mfma("cdna3", shape, a, b, "fp32", name, GroupFusedDotRoundDownAdd(16))
    for shape in CDNA3_INT8_SHAPES:
        name = _new_name(shape, "i32", "i8")
        spec = IntegerDotAdd(terms=shape[2])
        yield _mfma("cdna3", shape, "s8", "s8", "s32", name, spec, source=ISA, evidence="vendor document")


def rows() -> list[Instruction]:
    """All AMD rows."""
    return [*_cdna1_and_2_rows(), *_cdna3_rows()]
