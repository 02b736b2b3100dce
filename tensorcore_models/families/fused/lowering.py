"""Lowers fused sums to plans of the generic kernels."""

from typing import Any

from ...aspects import plans
from ...aspects.plans import EXACT, FUSED, ROUNDINGS, growth_bits, rule_fields, vector_holds, width_fields
from ...formats import Format
from ..aligned import aligned_fields, limit_products
from ..base import Arrangement
from .steps import part_masks

_ALIGNMENTS = {"global": 0, "pairwise": 1, "odd_even": 2}
_NORMALISING = 3
#: Constants of generic_plan.h.
_ZERO_SIGNS = {"ieee": 1, "majority": 2}
_C_POSITIONS = {"early": 0, "late": 1, "exact": 2}


def plan_fields(spec: Any, formats, scale: Format | None, block_size: int | None) -> dict[str, Any]:
    """Return the fields of a plan: one fused operation, or the long accumulator if nothing is truncated."""
    a, b, c, d = formats
    plans.require_draws(spec, d)
    fields = aligned_fields(spec, formats, scale, block_size)
    scale_bits, scale_fraction = (scale.precision, scale.fraction_bits) if scale else (0, 0)
    operands = (a.precision + scale_bits, b.precision + scale_bits)
    integer = 4 if scale else 2  # a significand is below 2 in units of its own exponent
    fields.update(
        product_fraction=a.fraction_bits + b.fraction_bits + 2 * scale_fraction,
        product_integer=integer,
        rounding=ROUNDINGS[spec.alignment_rounding],
        sticky=spec.sticky,
        normalised=spec.normalised_products,
        alignment=_NORMALISING if spec.normalise_each_add else _ALIGNMENTS[spec.alignment],
        late_c=_C_POSITIONS[spec.c_position],
        late=rule_fields(d, spec, spec.late_rounding, to_inf=spec.late_rounding == "ro", flush=spec.flush_outputs),
    )
    fields["rule"]["positive_zero"] = spec.zero_sign == "positive"
    if spec.zero_sign != "positive":
        plans.require(scale is None, "the zero_sign of block-scaled sums")
        fields.update(zero_sign=_ZERO_SIGNS[spec.zero_sign], zero_count=spec.terms + spec.padding)
    limit_products(fields, spec.product_overflow_exponent)
    if spec.fraction_bits is None:
        for name in {"a", "b", "c", "chained", "scale"} & set(fields):
            fields[name]["zero_align"] = plans.ALIGN_NONE  # nothing is truncated, so zeros need no exponent
        return fields | _exact_fields(spec, formats, scale, operands)
    if spec.integer_bits is not None:
        fields["integer_bits"] = spec.integer_bits
    total = spec.fraction_bits + integer + growth_bits(spec.terms + 1) + 2
    width = width_fields(operands, max(sum(operands), total), c, d)
    if spec.c_position == "exact":
        width["vector"] = width["vector"] and not width["wide"]
    width["vector"] = width["vector"] and spec.key is None
    if spec.significand_parts:
        masks = [part_masks(fmt.precision, spec.significand_parts) for fmt in (a, b)]
        fields["part_masks"] = [(left, right) for left in masks[0] for right in masks[1]]
        plans.require(len(fields["part_masks"]) <= plans.MAX_PARTS, f"more than {plans.MAX_PARTS} products of parts")
        fields["step"] = spec.terms * len(fields["part_masks"])
        plans.require(fields["step"] <= plans.MAX_TERMS, f"more than {plans.MAX_TERMS} products of parts in a pass")
    return fields | width | {"family": FUSED, "fraction_bits": spec.fraction_bits}


def _exact_fields(spec, formats, scale: Format | None, operands: tuple[int, int]) -> dict[str, Any]:
    """Return the fields of the long accumulator, which holds every bit from the smallest addend to the largest sum."""
    a, b, c, d = formats
    plans.require(plans.HAS_WIDE, "the compiler that built the kernels has no 128-bit integers")
    plans.require(max(operands) <= 63, f"operands of {max(operands)} bits exceed 63")
    scale_low, scale_high = (2 * (scale.emin - scale.fraction_bits), 2 * scale.emax + 2) if scale else (0, 0)
    product_low = a.emin - a.fraction_bits + b.emin - b.fraction_bits + scale_low
    base = min(product_low, c.emin - c.fraction_bits, d.emin - d.fraction_bits)
    top = max(a.emax + b.emax + 2 + scale_high, c.emax + 1, d.emax + 1) + growth_bits(spec.terms + 1)
    limbs = (top - base + 1) // 64 + 1
    plans.require(limbs <= plans.MAX_LIMBS, f"an exact accumulator of {64 * limbs} bits")
    return {
        "family": EXACT,
        "wide": 1,
        "base": base,
        "limbs": limbs,
        # The vector kernel first tries an aligned sum of all the bits it holds; if that loses a bit, it takes the long sum.
        "vector": vector_holds(operands, c, d, 1) and spec.key is None,
        "narrow": max(operands) <= 31,
        "fraction_bits": 126 - (4 if scale else 2) - growth_bits(spec.terms + 1),
        "normalised": False,
    }


def arrangement(spec: Any, length: int) -> Arrangement:
    """Return the order of products: even and odd groups, or the pairs of a tree, if `alignment` names them."""
    ks = [k for k in range(length) for _ in range(max(1, len(spec.significand_parts) ** 2))]
    if spec.alignment == "odd_even":
        return Arrangement([ks[0::2], ks[1::2]], [])
    return Arrangement([ks], plans.sums_after(length) if spec.alignment == "pairwise" else [])
