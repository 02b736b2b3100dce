"""Defines the types of registers and memory words, and the formats of those that hold floating-point numbers.

Types are spelled as in PTX (AMD's i32 is s32 here): a letter for the kind of number, then the number of bits. ``x2`` is a pair.
"""

from functools import cache

import numpy as np

from ...formats import get_format

#: Bits of the fundamental types (PTX ISA 9.1, 5.2).
TYPE_BITS = {
    "pred": 1,
    **{f"{kind}{bits}": bits for kind in "bsu" for bits in (8, 16, 32, 64)},
    **{"f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32, "f32": 32, "tf32": 32, "f64": 64, "f32x2": 64},
    **{"b128": 128, "s16x2": 32, "u16x2": 32},
}
#: The package's names of formats.
FORMATS = {
    "f64": "fp64", "f32": "fp32", "tf32": "tf32", "f16": "fp16", "bf16": "bf16", "e4m3": "e4m3fn", "e5m2": "e5m2",
    "e3m2": "e3m2", "e2m3": "e2m3", "e2m1": "e2m1", "ue8m0": "ue8m0",
}  # fmt: skip
#: Formats of matrix instructions, integers among them.
MATRIX_FORMATS = FORMATS | {kind: kind for kind in ("s32", "s8", "u8", "s4", "u4")}
#: Types that arithmetic is done in.
COMPUTED = ("f16", "bf16", "f32", "f64")


def one(kind: str) -> str:
    """Return the type of one number of a packed type; other types unchanged."""
    return kind.removesuffix("x2")


@cache
def bits_of(kind: str) -> int:
    """Return the bits of a type; numbers of 6 bits take 8, pairs of 4 bits share a byte."""
    if kind in TYPE_BITS:
        return TYPE_BITS[kind]
    bits = get_format(FORMATS[one(kind)]).bits
    return (8 if kind == "e2m1x2" else 16) if kind != one(kind) else max(8, bits)


def size_of(kind: str) -> int:
    """Return the bytes of a type."""
    return max(1, bits_of(kind) // 8)


@cache
def array_type(kind: str) -> np.dtype:
    """Return the numpy type of operands: signed integers stay signed, predicates are truth values, other types are unsigned
    bits."""
    if kind == "pred":
        return np.dtype(bool)
    return np.dtype(f"{'i' if kind[0] == 's' and kind == one(kind) else 'u'}{size_of(kind)}")
