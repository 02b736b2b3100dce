"""One dot product through an instruction: row 0 of A, column 0 of B, element (0, 0) of C; everything else is +0."""

import numpy as np

import tensorcore_models as tcm


def bits_of(value: float, fmt: str) -> int:
    """Encoding of a value that the format must hold exactly."""
    bits = tcm.encode(np.float64(value), fmt)
    assert float(tcm.decode(bits, fmt)) == value, f"{value!r} is not representable in {fmt}"
    return int(bits)


def dot_bits(ins: tcm.Instruction, a: list[float], b: list[float], c: float = 0.0) -> int:
    """Encoding of d for values a, b (fewer than k: the rest is +0) and c."""
    formats = ins.formats
    a_bits = np.zeros((ins.m, ins.k), formats[0].container)
    b_bits = np.zeros((ins.k, ins.n), formats[1].container)
    c_bits = np.zeros((ins.m, ins.n), formats[2].container)
    a_bits[0, : len(a)] = [bits_of(x, ins.a_format) for x in a]
    b_bits[: len(b), 0] = [bits_of(x, ins.b_format) for x in b]
    c_bits[0, 0] = bits_of(c, ins.c_format)
    return int(ins.mma_bits(a_bits, b_bits, c_bits)[0, 0])


def dot(ins: tcm.Instruction, a: list[float], b: list[float], c: float = 0.0) -> float:
    """Value of d; see :func:`dot_bits`."""
    return float(tcm.decode(np.array(dot_bits(ins, a, b, c), ins.formats[3].container), ins.d_format))
