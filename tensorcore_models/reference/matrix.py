"""Runs the reference over matrices: chains steps over k, loops over output elements."""

from collections.abc import Callable

import numpy as np

from ..accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
    as_parametric,
)
from ..formats import Format, get_float_format, get_format
from ..formats.exact_rounding import round_to_bits
from . import fused, ieee
from .operands import Operand, decode


def _integer_step(spec: IntegerDotAdd, a: list[int], b: list[int], c: int, formats) -> int:
    """Exact integer dot product, wrapped or clamped to the result's range."""
    a_format, b_format, c_format, d_format = formats
    total = c_format.decode_integer(c)
    total += sum(a_format.decode_integer(x) * b_format.decode_integer(y) for x, y in zip(a, b, strict=True))
    if spec.saturate:
        total = min(max(total, d_format.minimum), d_format.maximum)
    return total & ((1 << d_format.bits) - 1)


def via_bits(fmt: Format, bits: int, spec: InterleavedDotAdd) -> int:
    """`bits` converted exactly to the format in which the unit multiplies."""
    target = get_float_format(spec.via_format)
    x = decode(fmt, bits, spec)
    if x.kind == "nan":
        return target.nan_encoding()
    if x.kind == "inf":
        return target.exponent_mask | (target.sign_bit if x.negative else 0)
    return round_to_bits(x.negative, x.significand, x.exponent, target)


def _interleaved_step(spec: InterleavedDotAdd, a: list[int], b: list[int], c: int, formats) -> int:
    """Chained FDAs over interleaved groups of k from zero, c added last."""
    a_format, b_format, c_format, d_format = formats
    via = get_format(spec.via_format)
    a, b = [via_bits(a_format, x, spec) for x in a], [via_bits(b_format, y, spec) for y in b]
    total = 0
    for group in spec.group_order:
        members = [k for k in range(len(a)) if k // spec.run % spec.groups == group]
        total = dot_bits(
            spec.dot,
            [a[k] for k in members],
            [b[k] for k in members],
            total,
            (via, via, d_format, d_format),
        )
    return ieee.add(total, d_format, c, c_format, d_format, spec, spec.final_rounding)


def _scales(scale: list[int] | None, fmt: Format | None, spec, count: int, block_size: int | None) -> list[Operand]:
    if scale is None or fmt is None or block_size is None:
        return []
    # A scale of zero follows the rule of zero operands (only ue4m3 has one).
    decoded = [decode(fmt, bits, spec, zero_rule=getattr(spec, "zero_operand", "format_minimum")) for bits in scale]
    return [decoded[k // block_size] for k in range(count)]


def _step(spec, a: list[int], b: list[int], scales, c: int, formats) -> int:
    if isinstance(spec, IntegerDotAdd):
        return _integer_step(spec, a, b, c, formats)
    if isinstance(spec, InterleavedDotAdd):
        return _interleaved_step(spec, a, b, c, formats)
    a_format, b_format, c_format, d_format = formats
    zero_rule = getattr(spec, "zero_operand", "format_minimum")
    x = [decode(a_format, bits, spec, zero_rule=zero_rule) for bits in a]
    y = [decode(b_format, bits, spec, zero_rule=zero_rule) for bits in b]
    chains: dict[type, Callable] = {
        SequentialFMA: ieee.sequential_fma,
        LanedFMA: ieee.laned_fma,
        GroupPairwiseSum: ieee.group_pairwise_sum,
        PairRoundOddSum: ieee.pair_round_odd,
    }
    if type(spec) in chains:
        return chains[type(spec)](spec, x, y, c, formats)
    start = decode(c_format, c, spec, zero_rule=spec.zero_c)
    if spec.subnormal_c == "normalised" and not start.is_zero and start.kind == "finite":
        start = start._replace(align=start.leading)
    if isinstance(spec, FusedDotRoundDownAdd):
        return fused.round_down_step(spec, x, y, start, d_format)
    if isinstance(spec, GroupDotFusedSum):
        return fused.group_dot_step(spec, x, y, scales, start, d_format)
    if isinstance(spec, FusedDotAdd | ParametricDotAdd):
        return fused.parametric_step(as_parametric(spec), x, y, scales, start, c, formats)
    raise TypeError(f"no reference for {type(spec).__name__}")


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
) -> int:
    """One output element: encodings in, encoding out.

    Parameters
    ----------
    accumulator : Accumulator
        The algorithm.
    a, b : list of int
        K encodings each; K is cut into chained steps of `accumulator.terms_per_step`.
    c : int
        Encoding of the addend.
    formats : tuple of Format
        Formats of a, b, c and d. Later steps of a chain take their c in the format of d.
    scale_a, scale_b : list of int, optional
        Encodings of the block scales, one for `block_size` products.

    Returns
    -------
    int
        Encoding of d.
    """
    a_format, b_format, c_format, d_format = formats
    step = accumulator.terms_per_step
    left = _scales(scale_a, scale_format, accumulator, len(a), block_size)
    right = _scales(scale_b, scale_format, accumulator, len(a), block_size)
    scales = list(zip(left, right, strict=True)) if left else [()] * len(a)
    total, total_format = c, c_format
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        total = _step(
            accumulator, a[part], b[part], scales[part], total, (a_format, b_format, total_format, d_format)
        )
        total_format = d_format
    return total


def mma_bits(engine, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
    """D = A B + C by the reference, raw encodings in and out.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Accumulator and formats.
    a, b, c : array of unsigned integers
        Encodings, shapes (..., m, k), (..., k, n), (..., m, n).
    scale_a, scale_b : array of unsigned integers, optional
        Block scales, shapes (..., m, k/bs) and (..., k/bs, n).

    Returns
    -------
    ndarray
        Encodings of shape (..., m, n) in the container type of the output format.
    """
    formats = tuple(get_format(f) for f in (engine.a_format, engine.b_format, engine.c_format, engine.d_format))
    a, b, c = (np.asarray(x) for x in (a, b, c))
    d = np.empty(c.shape, formats[3].container)
    scale_format = get_float_format(engine.scale_format) if engine.scale_format else None
    for index in np.ndindex(c.shape):
        batch, i, j = index[:-2], index[-2], index[-1]
        d[index] = dot_bits(
            engine.accumulator,
            [int(x) for x in a[batch + (i,)]],
            [int(x) for x in b[batch + (slice(None), j)]],
            int(c[index]),
            formats,
            scale_a=None if scale_a is None else [int(x) for x in np.asarray(scale_a)[batch + (i,)]],
            scale_b=None if scale_b is None else [int(x) for x in np.asarray(scale_b)[batch + (slice(None), j)]],
            scale_format=scale_format,
            block_size=engine.block_size,
        )
    return d
