"""Lists products of Tenstorrent's Wormhole and Blackhole: one fidelity phase of MVMUL, and tiles of the vendor's library.

The arithmetic is that of the vendor's functional model, tenstorrent/ttsim 56694c8 (Apache-2.0), src/tensix.cpp, which the
vendor calls its golden reference. No device was measured. For a tile of 32 x 32 x 32 the library runs the phases one after the
other, each over k = 0 to 15 and then 16 to 31 (tenstorrent/tt-llk 36b092e, llk_lib/llk_math_matmul.h). A is the operand in
SrcB, B that in SrcA.
"""

from typing import Literal

from ..accumulators import Accumulator, FidelityPhases
from ..engines.instruction import Instruction
from ..families.fidelity import NAMES, IntegerPhases

SOURCE = "tenstorrent/ttsim 56694c8, src/tensix.cpp"
ORDER = "; tenstorrent/tt-llk 36b092e, llk_math_matmul.h (order of phases)"
UNCERTAIN = "no device was measured"
SPLIT = "kernels often round partial sums of a long k to 16 bits between blocks, which this row does not model"
#: Phases that run, by the library's name for them.
FIDELITIES = {name.lower(): phases for phases, name in NAMES.items()}
#: Pairs of the format of A and B and the format of the accumulator.
FORMATS = (
    ("bf16", "fp32"), ("bf16", "bf16"), ("tf32", "fp32"), ("tf32", "bf16"), ("fp16", "fp32"), ("fp16", "fp16"), ("s8", "s32"),
)  # fmt: skip
#: Rule for a sum of -1 unit, which only Wormhole returns wrong.
ERRATA: dict[str, Literal["none", "minus_one"]] = {"wormhole": "minus_one", "blackhole": "none"}
#: Default path, which multiplies the most bits of the significands.
USUAL = "hifi4"


def _spelled(fmt: str) -> str:
    return {"fp16": "f16", "fp32": "f32"}.get(fmt, fmt)


def _accumulator(arch: str, fmt: str, d: str, phases: tuple[int, ...], tile: int) -> Accumulator:
    if fmt == "s8":
        return IntegerPhases(phases, tile)
    return FidelityPhases(phases, tile, erratum=ERRATA[arch] if d == "fp32" else "none")


def _row(arch: str, fmt: str, d: str, path: str, phases: tuple[int, ...], tile: bool) -> Instruction:
    operation, (m, n, k) = ("matmul", (32, 32, 32)) if tile else ("mvmul", (8, 16, 16))
    spelled = ".".join(map(_spelled, (d, fmt, fmt, d)))
    return Instruction(
        _accumulator(arch, fmt, d, phases, k), arch=arch, name=f"{operation}.m{m}n{n}k{k}.{spelled}.{path}", m=m, n=n, k=k,
        a_format=fmt, b_format=fmt, c_format=d, d_format=d, path=path, usual=path == USUAL,
        source=SOURCE + ORDER * tile, evidence="published model",
        note="; ".join((UNCERTAIN, SPLIT) if tile else (UNCERTAIN,)),
    )  # fmt: skip


def rows() -> list[Instruction]:
    """Return all rows."""
    return [
        row
        for arch in ERRATA
        for fmt, d in FORMATS
        for row in (
            *(_row(arch, fmt, d, f"phase{phase}", (phase,), False) for phase in range(4)),
            *(_row(arch, fmt, d, path, phases, True) for path, phases in FIDELITIES.items()),
        )
    ]
