"""Apple AMX, M1 to M3: outer products of one fused multiply-add for each element.

Source: corsix/amx, fma.md and its tests, which were run on M1 to M3; from M4 on the unit is Arm's SME (catalogue.arm).
"""

from ..accumulators import SequentialFMA
from ..engines.instruction import Instruction


def _row(bits: int, side: int) -> Instruction:
    fmt = f"fp{bits}"
    return Instruction(
        SequentialFMA(), arch="apple_amx", name=f"fma{bits}.m{side}n{side}k1.f{bits}.f{bits}.f{bits}.f{bits}", m=side, n=side,
        k=1, a_format=fmt, b_format=fmt, c_format=fmt, d_format=fmt, path="amx", source="corsix/amx (MIT), fma.md and tests",
        evidence="inferred", note="the source's emulation agrees with its authors' machines; not run here",
    )  # fmt: skip


def rows() -> list[Instruction]:
    """Return all rows."""
    return [_row(16, 32), _row(32, 16), _row(64, 8)]
