"""Runs the reference over matrices: it chains steps over k and loops over output elements."""

from typing import Any

import numpy as np

from ..arithmetic.numbers import Number, decode
from ..arithmetic.passes import Pass
from ..formats import Format, get_float_format, get_format


def _scales(scale: list[int] | None, fmt: Format | None, spec, count: int, block_size: int | None) -> list[Number]:
    if scale is None or fmt is None or block_size is None:
        return []
    # A zero scale, which only ue4m3 has, follows the rule of zero operands.
    decoded = [decode(fmt, bits, spec, zero_rule=getattr(spec, "zero_operand", "format_minimum")) for bits in scale]
    return [decoded[k // block_size] for k in range(count)]


def dot_bits(
    accumulator,
    a: list[int],
    b: list[int],
    c: int,
    formats: tuple,
    *,
    scale_a: list[int] | None = None,
    scale_b: list[int] | None = None,
    scale_format: Format | None = None,
    block_size: int | None = None,
    element: int = 0,
) -> int:
    """Return the encoding of one output element, computed from encodings in plain integers.

    Parameters
    ----------
    accumulator : Accumulator
        The algorithm.
    a, b : list of int
        Encodings of k operands each; k is split into chained steps of `accumulator.terms_per_step`.
    c : int
        Encoding of the addend.
    formats : tuple of Format
        Formats of a, b, c and d. In later steps of a chain c has the format of d.
    scale_a, scale_b : list of int, optional
        Encodings of the block scales, one for each `block_size` products.
    scale_format : Format, optional
        Format of the block scales.
    block_size : int, optional
        Number of products that share a scale.
    element : int
        Place of the element in its matrix, counted along the rows, which is part of the key of stochastic roundings.
    """
    a_format, b_format, c_format, d_format = formats
    step = accumulator.terms_per_step
    left = _scales(scale_a, scale_format, accumulator, len(a), block_size)
    right = _scales(scale_b, scale_format, accumulator, len(a), block_size)
    scales = list(zip(left, right, strict=True)) if left else [()] * len(a)
    total, total_format = c, c_format
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        formats = (a_format, b_format, total_format, d_format)
        total = accumulator.pass_bits(
            Pass(accumulator, a[part], b[part], total, formats, tuple(scales[part]), start // step, element)
        )
        total_format = d_format
    return total


def mma_bits(engine, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """Return encodings of D = A B + C, shape (..., m, n), computed by the reference in plain integers.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Engine with its accumulator and formats.
    a, b, c : array of unsigned integers
        Encodings of shapes (..., m, k), (..., k, n), (..., m, n).
    scale_a, scale_b : array of unsigned integers, optional
        Block scales of shapes (..., m, k/bs) and (..., k/bs, n), where bs is the block size.
    """
    formats = tuple(get_format(f) for f in (engine.a_format, engine.b_format, engine.c_format, engine.d_format))
    a, b, c = (np.asarray(x) for x in (a, b, c))
    d = np.empty(c.shape, formats[3].container)
    scale_format = get_float_format(engine.scale_format) if engine.scale_format else None
    for index in np.ndindex(c.shape):
        row, column = index[:-1], (*index[:-2], slice(None), index[-1])
        place = index[-2] * c.shape[-1] + index[-1]
        scales: dict[str, Any] = {"scale_format": scale_format, "block_size": engine.block_size}
        if scale_a is not None and scale_b is not None:
            scales |= {"scale_a": np.asarray(scale_a)[row].tolist(), "scale_b": np.asarray(scale_b)[column].tolist()}
        d[index] = dot_bits(
            engine.accumulator, a[row].tolist(), b[column].tolist(), int(c[index]), formats, element=place, **scales
        )
    return d
