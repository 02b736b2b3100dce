"""Defines the base of all algorithms that align addends to a largest exponent: edge rules, and the fields of their plans."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..aspects import plans
from ..aspects.plans import (
    FLUSH_LIKE_ZERO,
    FLUSH_SIGNED,
    KEEP,
    LARGEST_EXPONENT,
    format_fields,
    result_fields,
    rule_fields,
)
from ..formats import Format
from .base import Accumulator, Rules, ZeroExponent
from .checks import check_exponent

ALIGNMENT_RULES: Rules = {
    **Accumulator.edge_rules,
    "zero_operand": ("skip", "minus126", "format_minimum"),
    "zero_c": ("skip", "minus126", "format_minimum"),
    "subnormal_c": ("raw", "normalised"),
    "negative_underflow": ("positive", "negative"),
    "exponent_floor": None,
}


@dataclass(frozen=True, kw_only=True)
class AlignedSum(Accumulator):
    """`AlignedSum` holds the edge rules of the algorithms that align addends to the largest exponent.

    Parameters
    ----------
    zero_operand, zero_c : {"skip", "minus126", "format_minimum"}
        Exponent that a zero operand, or c = 0, has in the alignment. "skip": none. "minus126": -126. "format_minimum": the
        smallest normal exponent of its format.
    subnormal_c : {"raw", "normalised"}
        Exponent of a subnormal c in the alignment: the smallest normal exponent of its format ("raw"), or the exponent of its
        leading bit ("normalised").
    negative_underflow : {"positive", "negative"}
        Sign of the zero to which a negative sum is rounded.
    exponent_floor : int or None
        Smallest exponent to which addends are aligned; None for no such limit.
    """

    zero_operand: ZeroExponent = "skip"
    zero_c: ZeroExponent = "skip"
    subnormal_c: Literal["raw", "normalised"] = "raw"
    negative_underflow: Literal["positive", "negative"] = "positive"
    exponent_floor: int | None = None

    edge_rules: ClassVar = ALIGNMENT_RULES

    def __post_init__(self):
        super().__post_init__()
        check_exponent(self, "exponent_floor")


#: Constants of generic_plan.h.
_FLUSHES = {"aligned": FLUSH_SIGNED, "as_zero": FLUSH_LIKE_ZERO}
_SKIPPED_ZEROS = {"keeps_scale": 0, "skip": 1, "skip_zero_products": 2}


def aligned_fields(spec: Any, formats, scale: Format | None, block_size: int | None) -> dict[str, Any]:
    """Return the fields of a plan that all aligned sums share."""
    a, b, c, d = formats
    flush = _FLUSHES[spec.flushed] if getattr(spec, "flush_inputs", False) else KEEP
    flush_c = _FLUSHES[spec.flushed] if getattr(spec, "flush_c", False) else flush
    normalise = spec.subnormal_c == "normalised"
    fields = {
        "step": spec.terms_per_step,
        "a": format_fields(a, spec, spec.zero_operand, flush=flush),
        "b": format_fields(b, spec, spec.zero_operand, flush=flush),
        "c": format_fields(c, spec, spec.zero_c, normalise=normalise, flush=flush_c),
        "chained": format_fields(d, spec, spec.zero_c, normalise=normalise, flush=flush_c),
        "raw_c": format_fields(c, spec),
        "raw_d": format_fields(d, spec),
        "result": result_fields(d),
        "rule": rule_fields(
            d,
            spec,
            spec.output_rounding,
            kept=getattr(spec, "output_fraction_bits", None),
            to_inf=True,
            flush=getattr(spec, "flush_outputs", False),
            positive=spec.negative_underflow == "positive",
        ),
        "late": rule_fields(d, spec, "rne"),
    }
    if spec.exponent_floor is not None:
        plans.require(abs(spec.exponent_floor) < LARGEST_EXPONENT, f"exponent_floor is beyond {LARGEST_EXPONENT}")
        fields["floor"] = spec.exponent_floor
    if scale is not None:
        fields["scale"] = format_fields(scale, spec, spec.zero_operand)
        fields["block"] = block_size
    fields["skip_scaled_zero"] = _SKIPPED_ZEROS[getattr(spec, "scaled_zero", "keeps_scale")]
    plans.require(spec.terms_per_step <= plans.MAX_TERMS, f"more than {plans.MAX_TERMS} products in a pass")
    return fields


def limit_products(fields: dict, exponent: int | None) -> None:
    """Set the field of the exponent from which products are infinite."""
    if exponent is not None:
        plans.require(abs(exponent) < LARGEST_EXPONENT, f"product_overflow_exponent is beyond {LARGEST_EXPONENT}")
        fields["limit"] = exponent
