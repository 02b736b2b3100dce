"""Holds what families made of IEEE operations share: fields of their plans, and the loss of flushed operands."""

import math
from typing import Any

from ..aspects import plans
from ..aspects.plans import FLUSH_NONE, format_fields, result_fields, rule_fields
from ..formats import Format
from .base import Accumulator, Rules

#: Edge rules of the classes that model x86 instructions.
X86_RULES: Rules = {**Accumulator.edge_rules, "nan": ("all_ones", "quiet", "x86")}


def ieee_fields(
    spec, formats, rounding: str, *, flush_inputs: int, to_inf=False, saturate=False, flush=FLUSH_NONE
) -> dict[str, Any]:
    """Return the fields of a plan that all algorithms made of IEEE operations share."""
    a, b, c, d = formats
    rule = rule_fields(d, spec, rounding, to_inf=to_inf, saturate=saturate, flush=flush)
    return {
        "wide": 0,
        "step": spec.terms_per_step,
        "a": format_fields(a, spec, flush=flush_inputs),
        "b": format_fields(b, spec, flush=flush_inputs),
        "c": format_fields(c, spec),
        "chained": format_fields(d, spec),
        "raw_c": format_fields(c, spec),
        "raw_d": format_fields(d, spec),
        "result": result_fields(d),
        "rule": rule,
        "late": rule,
    }


def double_holds(fmt: Format) -> bool:
    """Return whether every number of the format is a double."""
    return fmt.precision <= 53 and fmt.emin - fmt.fraction_bits >= -1074 and fmt.emax <= 1022


def lanes_hold(formats) -> bool:
    """Return whether products are exact in double and a double rounded to odd decides every rounding (generic_lanes.h)."""
    a, b, c, d = formats
    return (
        a.precision + b.precision <= 53
        and a.emin - a.fraction_bits + b.emin - b.fraction_bits >= -1074
        and a.emax + b.emax + 2 <= 1022
        and all(double_holds(f) for f in formats)
        and d.specials == "ieee"
        and d.precision <= 50
    )


def require_lanes(formats) -> None:
    """Raise BeyondKernels for formats that the lanes of doubles do not hold."""
    plans.require(
        lanes_hold(formats), "products or results that are not exact in double, or a result format without infinity"
    )


def operand_flush(formats, largest: tuple[int, int]) -> float:
    """Return a bound on a product's loss where subnormal operands are taken as zero; `largest` has the exponents of A and B."""
    a, b = formats[:2]
    return math.ldexp(a.min_normal, largest[1] + 1) + math.ldexp(b.min_normal, largest[0] + 1)
