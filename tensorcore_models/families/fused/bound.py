"""Error of one fused sum."""

import math
from typing import Any

from ...aspects.errors import (
    Alignment,
    OperandFacts,
    Roundings,
    StepError,
    alignment_floor,
    compounded,
    flushed_addend,
    output_error,
    output_roundings,
    roundings_to,
    scales_text,
    unit_of,
)


def step_error(spec: Any, unit: Any, facts: OperandFacts) -> StepError:
    """Return every addend cut below the largest, the sum rounded once; a tree of alignments and flushing add to it."""
    relative, absolute, text = sum_error(spec, unit, alignment_floor(spec, unit, facts.floor), facts.floor)
    texts = text, *scales_text(unit)
    return StepError(
        relative, absolute, spec.terms_per_step, texts, _alignment(spec, unit), roundings=_roundings(spec, unit)
    )


def _roundings(spec: Any, unit: Any) -> tuple[Roundings, ...]:
    """Return every addend at one alignment, then the sum; empty for parameters beyond those of a fused dot-add."""
    parts = _alignment(spec, unit)
    last = output_roundings(spec, unit.formats[3])
    if parts is not None:
        return roundings_to(spec.fraction_bits, spec.alignment_rounding, spec.terms + 1), last
    exact = spec.fraction_bits is None and (spec.integer_bits, spec.alignment, spec.c_position) == (
        None,
        "global",
        "early",
    )
    flushes = spec.flush_inputs or spec.flush_c or spec.flush_outputs
    return (last,) if exact and not spec.normalise_each_add and not flushes else ()


def _alignment(spec: Any, unit: Any) -> Alignment | None:
    """Return the parts of alpha; None for parameters beyond those of a fused dot-add."""
    result = unit.formats[3]
    plain = (spec.integer_bits, spec.alignment, spec.c_position) == (None, "global", "early")
    if not plain or spec.normalise_each_add or spec.flush_inputs or spec.flush_c or spec.flush_outputs:
        return None
    if spec.fraction_bits is None or len(spec.significand_parts) > 1:
        return None
    unit_lost = unit_of(spec.alignment_rounding, 0.5, 1.0) * 2.0**-spec.fraction_bits
    zero = (spec.alignment_rounding, spec.output_rounding) == ("rz", "rz")
    return Alignment(spec.terms * unit_lost, unit_lost, output_error(spec, result)[0], zero)


def sum_error(spec: Any, unit: Any, floor: int, lifted: int | None = None) -> tuple[float, float, str]:
    """alpha, beta and their text: addends cut at one alignment, one rounding. `lifted`: exponent of small products."""
    result = unit.formats[3]
    quantum = 0.0 if spec.fraction_bits is None else 2.0**-spec.fraction_bits
    pieces = spec.terms * max(1, len(spec.significand_parts) ** 2)
    cut = (pieces + 1) * unit_of(spec.alignment_rounding, 0.5, 1.0) * quantum
    text = f"{pieces} + 1 addends cut at F = {spec.fraction_bits}: {cut:.3g} of the largest" if quantum else "exact sum"
    more, late, flushed, extra = _parametric(spec, unit, quantum, lifted)
    text += extra
    relative, absolute, rounding_text = output_error(spec, result)
    total = compounded(compounded(cut + more, relative), late[0])
    return (
        total,
        (cut + more) * 2.0 ** min(floor, 1000) + absolute + late[1] + flushed,
        f"{text}; {rounding_text}{late[2]}",
    )


def _parametric(spec: Any, unit: Any, quantum: float, lifted: int | None):
    """Return the bound the errors that parameters add to those of a fused dot-add: (cut, (late rounding), flushed, text)."""
    result = unit.formats[3]
    if spec.integer_bits is not None and (spec.terms + 1) * 4 > 2**spec.integer_bits:
        return math.inf, (0.0, 0.0, ""), math.inf, f"; {spec.integer_bits} integer bits can wrap: no bound"
    units, text, flushed, late = 0.0, "", 0.0, (0.0, 0.0, "")
    if spec.normalise_each_add:
        units, text = spec.terms + 1, "; each of the additions normalised and cut"
    elif spec.alignment == "pairwise":
        units, text = 2 * (spec.terms + 1), "; cut again at every node of the tree"
    elif spec.alignment == "odd_even":
        units, text = 3, "; even and odd sums and c cut again"
    if spec.c_position == "late":
        relative, absolute, late_text = output_error(spec, result, 1, spec.late_rounding)
        late = relative, absolute, f"; c late, {late_text}"
    if spec.flush_inputs:
        factors = 2 if unit.scale_format is None else 4  # each below 2^(1 + its exponent)
        products = 0.0 if lifted is None else spec.terms * 2.0 ** min(lifted + factors, 1000)
        flushed += products + flushed_addend(unit)
        text += "; subnormal operands flushed"
    if spec.flush_c and not spec.flush_inputs:
        flushed += flushed_addend(unit)
        text += "; a subnormal c flushed"
    if spec.flush_outputs:
        flushed += 2 * result.min_normal
        text += "; subnormal results flushed"
    return units * quantum, late, flushed, text
