"""Lists the dot products of RISC-V vectors.

They are Zvfwdota16bf, Zvfwbdota16bf, Zvfqwdota8f, Zvfqwbdota8f, Zvfbdota32f, Zvqwbdota8i and 16i. The arithmetic is that of
riscv-isa-sim 55b4658d (BSD-3), riscv/bulknormdot.h and riscv/zvbdot.h. The specification is frozen, not ratified. A row is one
dot product; the batched forms compute eight with one of the vectors. Its k is VLMAX, the number of elements, at VLEN 128, 256
and 512. The integrated matrix extension has no row, because it leaves the order of its sums to the implementation.
"""

from ..accumulators import GroupPairwiseSum, IntegerDotAdd, ParametricDotAdd
from ..engines.instruction import Instruction

SOURCE = "riscv-isa-sim 55b4658d (BSD-3), riscv/bulknormdot.h, riscv/zvbdot.h"
NOTE = "the specification that the model implements is frozen, not ratified; no device was measured"
VLENS = (128, 256, 512)
#: FP8 operand formats, which altfmt selects, by their names in instructions.
FP8 = {"e4m3": "e4m3fn", "e5m2": "e5m2"}


def dot(elements: int) -> ParametricDotAdd:
    """Return the accumulator of `elements` products, which rounds everything to odd and adds c last.

    Raises ValueError if `elements` is not a power of two.
    """
    if elements < 1 or elements & (elements - 1):
        raise ValueError(f"VLMAX is {elements} elements, expected a power of two")
    guard = (elements - 1).bit_length()
    return ParametricDotAdd(
        elements, 23 + guard, alignment_rounding="ro", output_rounding="ro", c_position="late", late_rounding="ro", nan="quiet",
    )  # fmt: skip


def vector_dot(vlen: int, a_format: str, b_format: str | None = None) -> Instruction:
    """Return the dot product into fp32 at a VLEN in bits, a power of two from 32 (Zvl32b).

    The operands are bf16, or any pair of "e4m3" and "e5m2".
    """
    b_format = b_format or a_format
    if not isinstance(vlen, int) or isinstance(vlen, bool) or vlen < 32 or vlen & (vlen - 1):
        raise ValueError(f"VLEN is {vlen!r}, expected a power of two, 32 or more")
    if (a_format, b_format) == ("bf16", "bf16"):
        name, elements, formats = "vfwbdot", vlen // 16, ("bf16", "bf16")
    elif a_format in FP8 and b_format in FP8:
        name, elements, formats = "vfqbdot", vlen // 8, (FP8[a_format], FP8[b_format])
    else:
        raise ValueError(
            f"there is no dot product of {a_format} and {b_format}: expected bf16 with bf16, or any pair of e4m3 and e5m2"
        )
    return Instruction(
        dot(elements), arch="riscv", name=f"{name}.k{elements}.f32.{a_format}.{b_format}.f32", m=1, n=1, k=elements,
        a_format=formats[0], b_format=formats[1], path=name, source=SOURCE, evidence="published model",
        note=f"the row is the instruction at VLEN {vlen}; {NOTE}",
    )  # fmt: skip


def _integer(vlen: int, a: str, b: str) -> Instruction:
    """Return a row of Zvqwbdota8i, whose sums are exact modulo 2^32."""
    return Instruction(
        IntegerDotAdd(terms=vlen // 8), arch="riscv", name=f"vqbdot.k{vlen // 8}.s32.{a}.{b}.s32", m=1, n=1, k=vlen // 8,
        a_format=a, b_format=b, c_format="s32", d_format="s32", path="vqbdot", source=SOURCE, evidence="published model",
        note=f"the row is Zvqwbdota8i at VLEN {vlen}; {NOTE}",
    )  # fmt: skip


def rows() -> list[Instruction]:
    """Return all rows."""
    products = GroupPairwiseSum(1, "none", flush_results=False)
    fp32 = Instruction(
        products, arch="riscv", name="vfbdot.k1.f32.f32.f32.f32", m=1, n=1, k=1, a_format="fp32", b_format="fp32",
        path="vfbdot", source=SOURCE, evidence="published model",
        note=f"Zvfbdota32f rounds products and then adds them; the row adds the products in sequence, one of the orders that "
        f"the specification allows; {NOTE}",
    )  # fmt: skip
    pairs = [(a, b) for a in FP8 for b in FP8]
    return [
        *(vector_dot(vlen, "bf16") for vlen in VLENS),
        *(vector_dot(vlen, a, b) for a, b in pairs for vlen in VLENS),
        fp32,
        *(_integer(vlen, a, b) for a in ("s8", "u8") for b in ("s8", "u8") for vlen in VLENS),
    ]
