"""Finds the exponents with which operands enter an alignment, the facts of operands that an a-priori bound needs.

A product enters with the sum of the exponents of its operands' encodings (and of its block scales). If all of them are normal
numbers, the product is at least 2 to that power. Subnormal numbers, and zeros under edge rules that give them an exponent,
enter with a higher exponent than their magnitude has, so they raise the alignment exponent; these operands are called *small*
here. A group of a :class:`~tensorcore_models.GroupDotFusedSum` enters with the exponents of its scales, whatever its sum is
(Xie et al., section IV-E).
"""

import numpy as np

from mpgemm.inputs.sizes import check_shapes
from tensorcore_models.accumulators import Accumulator
from tensorcore_models.aspects.errors import AlignedOperand, OperandFacts, aligned_operand, block_scales, top_exponent
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat, get_float_format
from tensorcore_models.formats.operands import scale_bits
from tensorcore_models.formats.rounding import decode


def accumulator_of(engine: Engine) -> Accumulator | None:
    """Return the accumulator of an engine's core, None if it is unknown."""
    return getattr(engine, "accumulator", None)


#: Number of elements that are searched at a time for zeros and subnormal numbers.
SHOWN = 1 << 16


def facts_of_formats(engine: Engine, largest: tuple[int, int] | None = None) -> OperandFacts:
    """Return facts that hold for any operands of floating-point formats.

    largest: largest exponents in A and in B, by default those of the formats.
    """
    a, b = (get_float_format(f) for f in engine.formats[:2])
    scales = block_scales(engine)
    top = 0 if scales is None else scales.format.emax

    def small(fmt: Format) -> int:
        zero = max(fmt.emin, -126 if _zero_rule(engine) == "minus126" else fmt.emin) + top
        subnormal_scale = scales is not None and scales.format.has_subnormals
        return max(zero, fmt.emax + scales.format.emin) if scales is not None and subnormal_scale else zero

    spec = accumulator_of(engine)
    groups = None if spec is None else spec.group_facts_of_formats(engine)
    return OperandFacts(largest or (a.emax + top, b.emax + top), (small(a), small(b)), groups)


def facts_of(engine: Engine, a: np.ndarray, b: np.ndarray, scale_a=None, scale_b=None) -> OperandFacts | None:
    """Return facts of values and their block scales, None for integer operands, whose products and sums are exact."""
    if any(isinstance(f, IntegerFormat) for f in engine.formats[:2]):
        return None
    a_format, b_format = engine.formats[:2]
    if pad := -a.shape[1] % engine.k:
        a, b = np.pad(a, ((0, 0), (0, pad))), np.pad(b, ((0, pad), (0, 0)))
    scales = block_scales(engine)
    if scales is not None and scale_a is not None and scale_b is not None:
        missing = -(-a.shape[1] // scales.size) - scale_a.shape[1]
        least = float(decode(0, scales.format))  # Engine pads with encodings of 0
        scale_a = np.pad(scale_a, ((0, 0), (0, missing)), constant_values=least)
        scale_b = np.pad(scale_b, ((0, missing), (0, 0)), constant_values=least)
    left = _operand(engine, a, a_format, scale_a, axis=1)
    right = _operand(engine, b, b_format, scale_b, axis=0)
    top_a, top_b = (top_exponent(x.exponents, x.part) for x in (left, right))
    small_a, small_b = (top_exponent(x.exponents, x.part & x.small) for x in (left, right))
    spec = accumulator_of(engine)
    groups = None if spec is None else spec.group_facts(engine, a, b, scale_a, scale_b)
    tops = (a_format.emin if top_a is None else top_a, b_format.emin if top_b is None else top_b)
    return OperandFacts(tops, (small_a, small_b), groups)


def scaled_values(engine: Engine, a, b, scale_a=None, scale_b=None) -> tuple[np.ndarray, ...]:
    """Return (A, B, scales of A, scales of B) in float64, with None for scales that the engine has not.

    Scales are given as values or, in uint8, as the encodings that :meth:`Engine.gemm` takes.
    """
    a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    check_shapes(a, b)
    bits = (scale_bits(s, engine.scale_format, name) for s, name in ((scale_a, "scale_a"), (scale_b, "scale_b")))
    bits = engine.check_scales(a.shape, b.shape, *bits)
    scales = block_scales(engine)
    return a, b, *(None if x is None or scales is None else decode(x, scales.format) for x in bits)


def apply_scales(engine: Engine, a, b, scale_a, scale_b) -> tuple[np.ndarray, np.ndarray]:
    """Return the operands times their block scales, exact in float64."""
    scales = block_scales(engine)
    if scales is None:
        return a, b
    return a * _spread(scale_a, scales.size, a.shape[1], 1), b * _spread(scale_b, scales.size, b.shape[0], 0)


def _spread(scales: np.ndarray, block_size: int, k: int, axis: int) -> np.ndarray:
    """Return one scale for each element along k."""
    return np.take(scales, np.arange(k) // block_size, axis=axis)


def _zero_rule(engine: Engine) -> str:
    """Return the edge rule `zero_operand` of an engine's core."""
    spec = accumulator_of(engine)
    return getattr(spec and spec.inner, "zero_operand", "format_minimum")


def _operand(engine: Engine, x: np.ndarray, fmt: Format, scale: np.ndarray | None, axis: int) -> AlignedOperand:
    """Return the alignment exponents of one operand's elements."""
    rule = _zero_rule(engine)
    scales = block_scales(engine)
    if scales is None or scale is None:
        return aligned_operand(_telling(x, fmt), fmt, rule)
    found = aligned_operand(x, fmt, rule)
    if getattr(accumulator_of(engine), "scaled_zero", "keeps_scale") == "skip":
        found = found._replace(part=found.part & (x != 0))
    factor = aligned_operand(_spread(scale, scales.size, x.shape[axis], axis), scales.format, rule)
    return AlignedOperand(found.exponents + factor.exponents, found.part & factor.part, found.small | factor.small)


def _telling(x: np.ndarray, fmt: Format) -> np.ndarray:
    """Return a few elements with the same largest exponents, overall and among small elements, as all elements of `x`.

    These are the largest element, and a zero and a subnormal number if `x` has them.
    """
    largest = max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))
    if not np.isfinite(largest):
        return x
    found, flat = [largest] if x.size else [], x.ravel()
    zero = subnormal = False
    for start in range(0, flat.size, SHOWN):  # most operands have both within the first elements
        sizes = np.abs(flat[start : start + SHOWN])
        small = sizes[sizes < fmt.min_normal]
        zero, subnormal = zero or bool((small == 0).any()), subnormal or bool((small > 0).any())
        if zero and subnormal:
            break
    return np.array(found + [0.0] * zero + [fmt.min_subnormal] * subnormal)
