"""What an a-priori bound needs to know of operands: the exponents with which they enter an alignment.

A product enters with the exponents of its operands' encodings (and of its block scales) added up. Where all of them are
normal numbers it is at least 2 to that power; subnormal numbers, and zeros under edge rules that give them an exponent, enter
higher than their size, so they lift the alignment: they are *small* here. A group of a
:class:`~tensorcore_models.GroupDotFusedSum` enters with the exponents of its scales alone, whatever its sum is (xie-mma-sim,
section IV-E).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tensorcore_models.accumulators import Accumulator, GroupDotFusedSum
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat, get_float_format
from tensorcore_models.formats.operands import scale_bits
from tensorcore_models.formats.rounding import decode


@dataclass(frozen=True)
class GroupFacts:
    """Exact group sums and their scales.

    Attributes
    ----------
    lift : float
        2^(exponents of a group's scales) is at most this times the sum of the group's |a b| times its scales.
    floor : int or None
        Largest exponent of a group to which `lift` does not apply: its products, or a scale, are zero. None without.
    """

    lift: float
    floor: int | None


@dataclass(frozen=True)
class OperandFacts:
    """Exponents of the operands of a product, block scales included.

    Attributes
    ----------
    largest : (int, int)
        Largest alignment exponents in A and in B.
    small : (int or None, int or None)
        The same of those that are zero or subnormal, or whose scale is; None if none of them takes part.
    groups : GroupFacts or None
        For units that sum groups exactly.
    """

    largest: tuple[int, int]
    small: tuple[int | None, int | None]
    groups: GroupFacts | None = None

    @property
    def floor(self) -> int | None:
        """The exponent up to which products can lift the alignment beyond their size."""
        lifted = [s + other for s, other in zip(self.small, self.largest[::-1], strict=True) if s is not None]
        return max(lifted, default=None)


class BlockScales(NamedTuple):
    """What an engine takes as block scales: their format, and how many products share one."""

    format: Format
    size: int


def block_scales(engine: Engine) -> BlockScales | None:
    """The block scales of an engine, None for one without."""
    if engine.scale_format is None or engine.block_size is None:
        return None
    return BlockScales(get_float_format(engine.scale_format), engine.block_size)


def accumulator_of(engine: Engine) -> Accumulator | None:
    """The algorithm of an engine's core, None where nothing is known of it."""
    return getattr(engine, "accumulator", None)


class _Operand(NamedTuple):
    """Elements of A or of B: whether they take part in an alignment, with which exponent, and whether they are small."""

    exponents: np.ndarray
    part: np.ndarray
    small: np.ndarray


def facts_of_formats(engine: Engine, largest: tuple[int, int] | None = None) -> OperandFacts:
    """Facts that hold for any operands of the formats.

    Parameters
    ----------
    engine : Engine
        With floating-point operands.
    largest : (int, int), optional
        Largest exponents in A and in B; by default those of the formats, with the largest scales.

    Returns
    -------
    OperandFacts
    """
    a, b = (get_float_format(f) for f in engine.formats[:2])
    scales = block_scales(engine)
    top = 0 if scales is None else scales.format.emax

    def small(fmt: Format) -> int:
        zero = max(fmt.emin, -126 if _zero_rule(engine) == "minus126" else fmt.emin) + top
        subnormal_scale = scales is not None and scales.format.has_subnormals
        return max(zero, fmt.emax + scales.format.emin) if scales is not None and subnormal_scale else zero

    groups = groups_of_formats(engine) if isinstance(accumulator_of(engine), GroupDotFusedSum) else None
    return OperandFacts(largest or (a.emax + top, b.emax + top), (small(a), small(b)), groups)


def groups_of_formats(engine: Engine) -> GroupFacts:
    """Facts that hold for the groups of any operands of an engine's formats."""
    a, b = (get_float_format(f) for f in engine.formats[:2])
    scales = block_scales(engine)
    smallest = a.min_subnormal * b.min_subnormal
    if scales is None:
        return GroupFacts(max(1.0, 1 / smallest), 0)
    subnormal = 2 * scales.format.fraction_bits if scales.format.has_subnormals else 0
    spec = accumulator_of(engine)
    zeros_skip = (
        isinstance(spec, GroupDotFusedSum) and spec.scaled_zero != "keeps_scale" and spec.zero_operand == "skip"
    )
    return GroupFacts(max(1.0, 2.0**subnormal / smallest), None if zeros_skip else 2 * scales.format.emax)


def facts_of(engine: Engine, a: np.ndarray, b: np.ndarray, scale_a=None, scale_b=None) -> OperandFacts | None:
    """Facts of operands.

    Parameters
    ----------
    engine : Engine
        The matrix engine.
    a, b : ndarray of float64, shapes (m, k) and (k, n)
        Values of the elements.
    scale_a, scale_b : ndarray of float64, shapes (m, ceil(k/bs)) and (ceil(k/bs), n), optional
        Values of the block scales, for an engine with scales.

    Returns
    -------
    OperandFacts or None
        None for integer operands, whose products and sums are exact.
    """
    if any(isinstance(f, IntegerFormat) for f in engine.formats[:2]):
        return None
    a_format, b_format = engine.formats[:2]
    pad = -a.shape[1] % engine.k
    a, b = np.pad(a, ((0, 0), (0, pad))), np.pad(b, ((0, pad), (0, 0)))
    scales = block_scales(engine)
    if scales is not None and scale_a is not None and scale_b is not None:
        missing = -(-a.shape[1] // scales.size) - scale_a.shape[1]
        least = float(decode(0, scales.format))  # Engine pads with encodings of 0
        scale_a = np.pad(scale_a, ((0, 0), (0, missing)), constant_values=least)
        scale_b = np.pad(scale_b, ((0, missing), (0, 0)), constant_values=least)
    left = _operand(engine, a, a_format, scale_a, axis=1)
    right = _operand(engine, b, b_format, scale_b, axis=0)
    top_a, top_b = (_largest(x.exponents, x.part) for x in (left, right))
    small_a, small_b = (_largest(x.exponents, x.part & x.small) for x in (left, right))
    spec = accumulator_of(engine)
    groups = _group_facts(spec, engine, a, b, scale_a, scale_b) if isinstance(spec, GroupDotFusedSum) else None
    largest = (a_format.emin if top_a is None else top_a, b_format.emin if top_b is None else top_b)
    return OperandFacts(largest, (small_a, small_b), groups)


def scaled_values(engine: Engine, a, b, scale_a=None, scale_b=None) -> tuple[np.ndarray, ...]:
    """Operands as float64 values: (A, B, scales of A, scales of B); the scales are None for an engine without.

    Parameters
    ----------
    engine : Engine
        The matrix engine.
    a, b : array_like, shapes (m, k) and (k, n)
        Values of the elements.
    scale_a, scale_b : array_like, shapes (m, ceil(k/bs)) and (ceil(k/bs), n)
        Block scales as values, or as encodings where they are uint8, as :meth:`Engine.gemm` takes them.

    Raises
    ------
    ValueError
        If shapes do not fit, or scales are missing or not wanted.
    """
    a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a is {a.shape} and b is {b.shape}: the columns of a must be as many as the rows of b")
    bits = (scale_bits(s, engine.scale_format, name) for s, name in ((scale_a, "scale_a"), (scale_b, "scale_b")))
    bits = engine.check_scales(a.shape, b.shape, *bits)
    scales = block_scales(engine)
    return a, b, *(None if x is None or scales is None else decode(x, scales.format) for x in bits)


def apply_scales(engine: Engine, a, b, scale_a, scale_b) -> tuple[np.ndarray, np.ndarray]:
    """The operands that an engine multiplies, element times block scale: float64, exact.

    Parameters
    ----------
    engine : Engine
        The matrix engine.
    a, b, scale_a, scale_b
        From :func:`scaled_values`.
    """
    scales = block_scales(engine)
    if scales is None:
        return a, b
    return a * _spread(scale_a, scales.size, a.shape[1], 1), b * _spread(scale_b, scales.size, b.shape[0], 0)


def _spread(scales: np.ndarray, block_size: int, k: int, axis: int) -> np.ndarray:
    """One scale for each element along k."""
    return np.take(scales, np.arange(k) // block_size, axis=axis)


def _zero_rule(engine: Engine) -> str:
    """The edge rule zero_operand of an engine's core."""
    spec = accumulator_of(engine)
    return getattr(getattr(spec, "dot", spec), "zero_operand", "format_minimum")


def _operand(engine: Engine, x: np.ndarray, fmt: Format, scale: np.ndarray | None, axis: int) -> _Operand:
    """Alignment exponents of one operand's elements."""
    rule = _zero_rule(engine)
    found = _aligned(x, fmt, rule)
    scales = block_scales(engine)
    if scales is None or scale is None:
        return found
    if getattr(accumulator_of(engine), "scaled_zero", "keeps_scale") == "skip":
        found = found._replace(part=found.part & (x != 0))
    factor = _aligned(_spread(scale, scales.size, x.shape[axis], axis), scales.format, rule)
    return _Operand(found.exponents + factor.exponents, found.part & factor.part, found.small | factor.small)


def _aligned(x: np.ndarray, fmt: Format, rule: str) -> _Operand:
    """Exponents of encodings: those of subnormal numbers are the smallest normal one, those of zeros follow `rule`."""
    finite = np.isfinite(x)
    exponents = np.frexp(np.where(finite, x, 1.0))[1].astype(np.int64) - 1
    exponents = np.maximum(exponents, fmt.emin)
    zero = x == 0
    exponents = np.where(zero, -126 if rule == "minus126" else fmt.emin, exponents)
    return _Operand(exponents, finite & ~(zero & (rule == "skip")), np.abs(x) < fmt.min_normal)


def _largest(exponents: np.ndarray, where: np.ndarray) -> int | None:
    return int(exponents[where].max()) if where.any() else None


def _group_facts(spec: GroupDotFusedSum, engine: Engine, a, b, scale_a, scale_b) -> GroupFacts:
    """How the scales of the groups compare with the groups' sums, over all groups of all elements of the product."""
    scales, rule = block_scales(engine), _zero_rule(engine)
    lift: float = 1.0
    floor: int | None = None
    for start in range(0, a.shape[1], spec.group):
        sums = np.abs(a[:, start : start + spec.group]) @ np.abs(b[start : start + spec.group])
        zero, top = sums == 0, np.zeros(sums.shape, np.int64)
        part = np.ones(sums.shape, bool) if spec.scaled_zero == "keeps_scale" else ~zero
        ratio = np.ones(sums.shape)
        if scales is not None:
            block = start // scales.size
            row, column = scale_a[:, block, None], scale_b[None, block]
            left, right = (_aligned(x, scales.format, rule) for x in (row, column))
            top = left.exponents + right.exponents
            part = part & left.part & right.part
            size = row * column
            zero = zero | (size == 0)
            ratio = np.where(zero | ~np.isfinite(size), 1.0, size) / np.ldexp(1.0, top)
        lifted = part & ~zero & np.isfinite(sums)
        if lifted.any():
            lift = max(lift, float((1 / (sums * ratio)[lifted]).max()))
        found = _largest(top, part & zero)
        floor = found if floor is None or (found is not None and found > floor) else floor
    return GroupFacts(lift, floor)
