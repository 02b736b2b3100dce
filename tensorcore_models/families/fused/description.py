"""Describes fused sums in words and as formulas."""

from typing import Any

from ...explanations.descriptions import Words, floor_words, kept_bits, rounded


def fused(spec: Any, d: str) -> Words:
    """Describe FusedDotAdd in words."""
    floor, in_formula = floor_words(spec.exponent_floor)
    rounding = spec.output_rounding.upper()
    f = spec.fraction_bits
    return Words(
        f"The unit adds {spec.terms} products and c in one fused dot product with {f} fraction bits",
        (
            f"{spec.terms} products are formed exactly. They are not normalised, so the exponent of a product is the sum of "
            "the exponents of its two operands.",
            f"The products and c are shifted to the largest exponent among them.{floor} Each shifted number is "
            f"{rounded(spec.alignment_rounding, f'{f} fraction bits')}.",
            "The shifted numbers are added exactly.",
            f"The sum is normalised and {rounded(spec.output_rounding, kept_bits(spec, d))}.",
        ),
        rf"e = \max({in_formula}e_c,\; e_{{a_i}} + e_{{b_i}}), \quad d = \mathrm{{{rounding}}}\left("
        rf"T(c) + \sum_{{i=1}}^{{{spec.terms}}} T(a_i b_i)\right), \quad "
        rf"T(x) = 2^{{e-{f}}} \, \mathrm{{{spec.alignment_rounding.upper()}}}\left(x \, 2^{{{f}-e}}\right)",
        f"aligns {spec.terms} products and the running sum, keeps {f} fraction bits of each, and rounds their sum once",
    )


def parametric(spec: Any, d: str) -> Words:
    """Describe ParametricDotAdd in words."""
    n, f, late, after = spec.terms, spec.fraction_bits, spec.c_position == "late", spec.c_position == "exact"
    widths = " and ".join(map(str, spec.significand_parts))
    pieces = (
        f"Significands are split into parts of {widths} bits, from the leading bit down. Each product of two parts is an "
        "addend with the exponent of the whole product."
    )
    steps = (
        (bool(spec.significand_parts), pieces),
        (spec.normalised_products, "Products are normalised before they are aligned."),
        (True, _aligned(spec)),
        (spec.integer_bits is not None, f"The sum wraps around beyond {spec.integer_bits} integer bits."),
        (after, "c is added to the sum exactly."),
        (True, f"The sum is {rounded(spec.output_rounding, kept_bits(spec, d))}."),
        (late, f"c is added last, and the result is {rounded(spec.late_rounding, d)}."),
        (spec.flush_c, "A subnormal c becomes zero and keeps its sign."),
        (spec.zero_sign == "ieee", "A sum of zeros is -0 if all addends are -0."),
        (spec.zero_sign == "majority", "If all products are zero, the zero sum has the sign of most of them."),
        (spec.flush_inputs, "Subnormal operands become zero and keep their sign."),
        (
            spec.flush_inputs and spec.flushed == "as_zero",
            "A flushed operand takes part in the alignment like an operand that was zero before.",
        ),
        (spec.flush_outputs, "Subnormal results become zero and keep their sign."),
    )
    cut = "" if f is None else f"T_{{{f}}}"
    dot = rf"\sum_{{i=1}}^{{{n}}} " + (f"{cut}(a_i b_i)" if cut else "a_i b_i")
    rounding = rf"\mathrm{{{spec.output_rounding.upper()}}}"
    formula = rf"d = {rounding}\left({f'{cut}(c)' if cut and not after else 'c'} + {dot}\right)"
    if late:
        formula = rf"d = \mathrm{{{spec.late_rounding.upper()}}}\left(c + {rounding}\left({dot}\right)\right)"
    return Words(
        f"The unit {_title(spec)}",
        tuple(text for on, text in steps if on),
        formula,
        f"adds {_count(spec)} and the running sum and rounds {'twice' if late else 'once'}",
    )


def _count(spec: Any) -> str:
    return f"{spec.terms} product{'s' * (spec.terms > 1)}"


def _title(spec: Any) -> str:
    """Return a verb phrase that names the addends, the fraction bits, and when c is added."""
    n, f = _count(spec), spec.fraction_bits
    late, after = spec.c_position == "late", spec.c_position == "exact"
    if f is None:
        return f"adds {n} " + ("exactly, rounds the sum, and adds c last" if late else "and c exactly and rounds once")
    if late or after:
        c = "rounds the sum, and adds c last" if late else "adds them and c exactly, and rounds once"
        return f"aligns {n}, keeps {f} fraction bits of each, {c}"
    return f"aligns {n} and c, keeps {f} fraction bits of each, and rounds their sum once"


def _aligned(spec: Any) -> str:
    """Return the sentences about the alignment and the sum of the aligned addends."""
    f, floor, early = spec.fraction_bits, floor_words(spec.exponent_floor)[0], spec.c_position == "early"
    products = _count(spec)
    addends = f"{products} and c" if early else products
    if f is None:
        return f"{addends} are added exactly, without any truncation.{floor}"
    bits = rounded(spec.alignment_rounding, f"{f} fraction bits" + (" and a sticky bit" if spec.sticky else ""))
    if spec.normalise_each_add:
        return (
            f"{addends} are added one after the other. In each addition both addends are aligned to the larger exponent and "
            f"{bits}, and the sum is normalised.{floor}"
        )
    if spec.alignment == "pairwise":
        last = ", and c is added to their sum in the same way" if early else ""
        return (
            f"{products} are added two by two as a binary tree{last}. In each addition both addends are aligned to the larger "
            f"exponent and {bits}.{floor}"
        )
    if spec.alignment == "odd_even":
        return (
            f"{products} are added in two groups, even k and odd k. In each group they are aligned to the largest exponent, "
            f"{bits}, and added exactly. Then the two sums{' and c' if early else ''} are aligned, {bits}, and added.{floor}"
        )
    return f"{addends} are aligned to their largest exponent.{floor} Each aligned number is {bits}, and all are added exactly."
