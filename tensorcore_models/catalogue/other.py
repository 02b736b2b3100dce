"""Lists the instructions of x86, and the TPU, whose arithmetic nobody has published.

The sources are the Intel 64 SDM (VDPBF16PS, AMX) and the instruction set extensions reference (AMX-TF32, AMX-FP8). Rows with
the evidence "hardware: own run" were run on the CPU that :data:`XEON` names; docs/amx.md describes the comparison.
"""

from ..accumulators import IntegerDotAdd, LanedFMA, SequentialFMA, Unpublished
from ..engines.instruction import Instruction

SDM = "Intel 64 and IA-32 Architectures SDM"
EXTENSIONS = "Intel Architecture Instruction Set Extensions Programming Reference"
#: Operand formats of the AMX-FP8 instructions, in whose names BF8 is e5m2 and HF8 is e4m3.
FP8_TILES = {
    "tdpbf8ps": ("e5m2", "e5m2"), "tdpbhf8ps": ("e5m2", "e4m3fn"), "tdphbf8ps": ("e4m3fn", "e5m2"),
    "tdphf8ps": ("e4m3fn", "e4m3fn"),
}  # fmt: skip
XEON = "the instruction was run on an Intel Xeon, family 6 model 207 (Emerald Rapids, virtual machine), 2026-11-21"


def _integer_tile(name: str, a: str, b: str) -> Instruction:
    """Return one of the four AMX-INT8 instructions."""
    return Instruction(
        IntegerDotAdd(terms=64),
        arch="x86", name=f"{name}.m16n16k64.s32.{a}.{b}.s32", m=16, n=16, k=64, a_format=a, b_format=b, c_format="s32",
        d_format="s32", path="amx", source=f"{SDM}, {name.upper()}", evidence="hardware: own run", note=XEON,
    )  # fmt: skip


def _fp8_tile(name: str, a: str, b: str) -> Instruction:
    """Return one of the four AMX-FP8 instructions, whose order of products the public headers leave open."""
    spelled = (fmt.removesuffix("fn") for fmt in (a, b))
    return Instruction(
        LanedFMA(lanes=1, terms=64, flush_inputs=False),
        arch="x86", name=f"{name}.m16n16k64.f32.{'.'.join(spelled)}.f32", m=16, n=16, k=64, a_format=a, b_format=b, path="amx",
        source=f"{EXTENSIONS}, {name.upper()}; the operation in clang 23's amxfp8intrin.h", evidence="reconstruction",
        note="Intel's text adds the four products of a dword to a total that starts from zero, and adds c last; the text "
        "does not state the order and the roundings of the four products; the row assumes one chain in the order of k; the "
        "call with_rules(pairs='two_lanes') gives the order of Bochs (783b58fd6, amx.cc); the row was not run",
    )  # fmt: skip


def rows() -> list[Instruction]:
    """Return all other rows."""
    return [
        Instruction(
            SequentialFMA(flush_inputs=True, flush_outputs=True, pair_order="odd_first", nan="x86"),
            arch="x86", name="vdpbf16ps.k2.f32.bf16.bf16.f32", m=1, n=16, k=2, a_format="bf16", b_format="bf16",
            path="vdpbf16ps", source=f"{SDM}, VDPBF16PS", evidence="hardware: own run",
            note=f"each lane has a dot product of length 2 of its own, which the row models as one row times 16 columns; "
                 f"{XEON}",
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
            note="subnormal fp16 operands are widened exactly; FP32 results are flushed; the row returns NaN as TDPBF16PS "
            "does, but was not run",
        ),
        Instruction(
            LanedFMA(lanes=1, terms=16, flush_inputs=False),
            arch="x86", name="tmmultf32ps.m16n16k16.f32.tf32.tf32.f32", m=16, n=16, k=16, a_format="tf32", b_format="tf32",
            path="amx", source=f"{EXTENSIONS}, TMMULTF32PS", evidence="vendor document",
            note="AMX-TF32 is withdrawn: revision 062 of the reference removed it (llvm-project 207673, oneDNN 5873), and no "
            "silicon has it; operands lose their low 13 bits; one chain starts from zero, and c is added last; a subnormal c "
            "becomes zero as in TDPBF16PS",
        ),
        *(_fp8_tile(name, a, b) for name, (a, b) in FP8_TILES.items()),
        _integer_tile("tdpbssd", "s8", "s8"),
        _integer_tile("tdpbsud", "s8", "u8"),
        _integer_tile("tdpbusd", "u8", "s8"),
        _integer_tile("tdpbuud", "u8", "u8"),
        Instruction(
            Unpublished(),
            arch="tpu", name="mxu.m128n128k128.f32.bf16.bf16.f32", m=128, n=128, k=128, a_format="bf16",
            b_format="bf16", path="mxu", source="fasi-numerical-behavior, table 1",
            note="the arithmetic of TPU v2 and v3 is not published",
            evidence="arithmetic not public",
        ),
    ]  # fmt: skip
