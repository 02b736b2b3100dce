"""Lists the outer products of Apple's AMX on M1 to M3, which do one fused multiply-add for each element.

The source is corsix/amx, fma.md and its tests, which its authors ran on M1 to M3. M4 and later have Arm's SME (catalogue.arm).
"""

from ..accumulators import SequentialFMA
from ..engines.instruction import Instruction


def _row(bits: int, side: int) -> Instruction:
    fmt = f"fp{bits}"
    return Instruction(
        SequentialFMA(), arch="apple_amx", name=f"fma{bits}.m{side}n{side}k1.f{bits}.f{bits}.f{bits}.f{bits}", m=side, n=side,
        k=1, a_format=fmt, b_format=fmt, c_format=fmt, d_format=fmt, path="amx", source="corsix/amx (MIT), fma.md and tests",
        evidence="inferred", note="the source's emulation returns the bits of its authors' machines; the row was not run here",
    )  # fmt: skip


def rows() -> list[Instruction]:
    """Return all rows."""
    return [_row(16, 32), _row(32, 16), _row(64, 8)]
