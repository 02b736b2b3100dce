"""Tenstorrent Wormhole: MVMUL, one fidelity phase of it.

Source: tenstorrent/tt-isa-documentation, WormholeB0, MVMUL.md and SrcASrcB.md. It says exactly which significand bits each
phase takes, and that subnormal numbers become zero. Order and width of the sum are those of its functional model, which it
calls a rough guide; infinities and NaN do not follow IEEE 754 in a way that it does not tell. So the rows are
reconstructions.
"""

from ..accumulators import FidelityPhase
from ..engines.instruction import Instruction

SOURCE = "tenstorrent/tt-isa-documentation, WormholeB0, MVMUL.md and SrcASrcB.md"
UNKNOWN = "order and width of the sum, infinities and NaN are not published; the bits that the phase takes are"


def _row(fmt: str, phase: int) -> Instruction:
    """A is SrcB, B is SrcA, as D is SrcB times SrcA; D in FP32."""
    return Instruction(
        FidelityPhase(phase), arch="wormhole", name=f"mvmul.m8n16k16.f32.{fmt}.{fmt}.f32.phase{phase}", m=8, n=16, k=16,
        a_format=fmt, b_format=fmt, path="mvmul", source=SOURCE, evidence="reconstruction", note=UNKNOWN,
    )  # fmt: skip


def rows() -> list[Instruction]:
    """All rows."""
    return [_row(fmt, phase) for fmt in ("bf16", "tf32") for phase in range(4)]
