"""Matrix units beside NVIDIA's, AMD's and Huawei's: Arm, x86, TPU.

Sources: Arm Architecture Reference Manual (BFMMLA, without the extended mode); Intel 64 SDM (VDPBF16PS, AMX). The x86 rows but
TDPFP16PS were run on a CPU, named in :data:`XEON`; docs/amx.md says what was compared.
"""

from ..accumulators import IntegerDotAdd, LanedFMA, PairRoundOddSum, SequentialFMA, Unpublished
from ..engines.instruction import Instruction

SDM = "Intel 64 and IA-32 Architectures SDM"
XEON = "run on an Intel Xeon, family 6 model 207 (Emerald Rapids, virtual machine), 2026-11-21"


def _integer_tile(name: str, a: str, b: str) -> Instruction:
    """One of the four AMX-INT8 instructions."""
    return Instruction(
        IntegerDotAdd(terms=64),
        arch="x86", name=f"{name}.m16n16k64.s32.{a}.{b}.s32", m=16, n=16, k=64, a_format=a, b_format=b, c_format="s32",
        d_format="s32", path="amx", source=f"{SDM}, {name.upper()}", evidence="hardware: own run", note=XEON,
    )  # fmt: skip


def rows() -> list[Instruction]:
    """All other rows."""
    return [
        Instruction(
            PairRoundOddSum(),
            arch="arm", name="bfmmla.m2n2k4.f32.bf16.bf16.f32", m=2, n=2, k=4, a_format="bf16", b_format="bf16", path="bfmmla",
            source="Arm Architecture Reference Manual, BFMMLA with FPCR.EBF = 0", evidence="vendor document",
            note="agrees with the emulator qemu-aarch64 -cpu max (tests/tensorcore_models/test_cpu_instructions.py)",
        ),
        Instruction(
            SequentialFMA(flush_inputs=True, flush_outputs=True, pair_order="odd_first", nan="x86"),
            arch="x86", name="vdpbf16ps.k2.f32.bf16.bf16.f32", m=1, n=16, k=2, a_format="bf16", b_format="bf16",
            path="vdpbf16ps", source=f"{SDM}, VDPBF16PS", evidence="hardware: own run",
            note=f"each lane is a dot product of its own pair; modelled as one row times 16 columns; {XEON}",
        ),
        Instruction(
            LanedFMA(),
            arch="x86", name="tdpbf16ps.m16n16k32.f32.bf16.bf16.f32", m=16, n=16, k=32, a_format="bf16", b_format="bf16",
            path="amx", source=f"{SDM}, TDPBF16PS", evidence="hardware: own run", note=XEON,
        ),
        Instruction(
            LanedFMA(flush_inputs=False),
            arch="x86", name="tdpfp16ps.m16n16k32.f32.fp16.fp16.f32", m=16, n=16, k=32, a_format="fp16", b_format="fp16",
            path="amx", source=f"{SDM}, TDPFP16PS", evidence="vendor document",
            note="fp16 subnormals are widened exactly; FP32 results are flushed; NaN as TDPBF16PS returns it, not run",
        ),
        _integer_tile("tdpbssd", "s8", "s8"),
        _integer_tile("tdpbsud", "s8", "u8"),
        _integer_tile("tdpbusd", "u8", "s8"),
        _integer_tile("tdpbuud", "u8", "u8"),
        Instruction(
            Unpublished(),
            arch="tpu", name="mxu.m128n128k128.f32.bf16.bf16.f32", m=128, n=128, k=128, a_format="bf16",
            b_format="bf16", path="mxu", source="fasi-numerical-behavior, table 1: TPU v2 and v3 arithmetic is not published",
            evidence="arithmetic not public",
        ),
    ]  # fmt: skip
