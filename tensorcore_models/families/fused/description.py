"""Fused sums in words, as formulas and as a tree."""

from typing import Any

from ...explanations.descriptions import ROUNDINGS, Words, floor_words, kept_bits


def fused(spec: Any, d: str) -> Words:
    """Describe FusedDotAdd in words."""
    floor, in_formula = floor_words(spec.exponent_floor)
    rounding = spec.output_rounding.upper()
    f = spec.fraction_bits
    return Words(
        f"Fused dot product of {spec.terms} products and c, {f} fraction bits",
        (
            f"{spec.terms} products are formed exactly. They are not normalised: the exponent of a product is the sum of the "
            "exponents of its two operands.",
            f"The products and c are shifted to the largest exponent among them.{floor} What lies below {f} fraction "
            f"bits is rounded {ROUNDINGS[spec.alignment_rounding]}.",
            "The shifted numbers are added exactly.",
            f"The sum is normalised and rounded {ROUNDINGS[spec.output_rounding]} to {kept_bits(spec, d)}.",
        ),
        rf"e = \max({in_formula}e_c,\; e_{{a_i}} + e_{{b_i}}), \quad d = \mathrm{{{rounding}}}\left("
        rf"T(c) + \sum_{{i=1}}^{{{spec.terms}}} T(a_i b_i)\right), \quad "
        rf"T(x) = 2^{{e-{f}}} \, \mathrm{{{spec.alignment_rounding.upper()}}}\left(x \, 2^{{{f}-e}}\right)",
        f"aligns {spec.terms} products and the running sum to the largest, cuts all below {f} fraction bits and rounds once",
    )


def parametric(spec: Any, d: str) -> Words:
    """Describe ParametricDotAdd in words."""
    n, f, late, after = spec.terms, spec.fraction_bits, spec.c_position == "late", spec.c_position == "exact"
    together = {
        "global": "together",
        "pairwise": "two by two, as a binary tree",
        "odd_even": "apart for even and odd k, then the two sums with each other",
    }[spec.alignment]
    kept = "exactly: nothing is cut off" if f is None else f"after what lies below {f} fraction bits was rounded "
    kept += "" if f is None else ROUNDINGS[spec.alignment_rounding] + (", with a sticky bit" if spec.sticky else "")
    widths = ", ".join(map(str, spec.significand_parts))
    pieces = (
        f"Significands are cut into parts of {widths} bits, from the leading one down; each product of two parts is an "
    )
    pieces += "addend of its own, at the exponent of the whole product."
    floor = floor_words(spec.exponent_floor)[0]
    steps = (
        (bool(spec.significand_parts), pieces),
        (True, f"{n} products{'' if late or after else ' and c'} are aligned {together}, and added {kept}.{floor}"),
        (spec.normalised_products, "Products are normalised before they are aligned."),
        (spec.normalise_each_add, "Addends are added one by one, and each intermediate sum is normalised."),
        (spec.integer_bits is not None, f"The sum wraps beyond {spec.integer_bits} integer bits."),
        (after, "c is added to the sum exactly."),
        (True, f"The sum is rounded {ROUNDINGS[spec.output_rounding]} to {kept_bits(spec, d)}."),
        (late, f"c is added last, rounded {ROUNDINGS[spec.late_rounding]}."),
        (spec.flush_c, "A subnormal c becomes zero and keeps its sign."),
        (spec.zero_sign == "ieee", "A sum of zeros is -0 where all of them are."),
        (spec.zero_sign == "majority", "A zero of zero products has the sign of most of them."),
        (spec.flush_inputs, "Subnormal operands become zero and keep their sign."),
        (spec.flush_inputs and spec.flushed == "as_zero", "They are aligned as zeros that were given."),
        (spec.flush_outputs, "Subnormal results become zero and keep their sign."),
    )
    cut = "" if f is None else f"T_{{{f}}}"
    dot, rounding = rf"\sum_{{i=1}}^{{{n}}} {cut}(a_i b_i)", rf"\mathrm{{{spec.output_rounding.upper()}}}"
    formula = rf"d = {rounding}\left({'c' if after else cut + '(c)'} + {dot}\right)"
    if late:
        formula = rf"d = \mathrm{{{spec.late_rounding.upper()}}}\left(c + {rounding}\left({dot}\right)\right)"
    return Words(
        f"{'Exact sum' if f is None else 'Sum'} of {n} products and c" + (", c last" if late else ", rounded once"),
        tuple(text for on, text in steps if on),
        formula,
        f"adds {n} products and the running sum and rounds {'twice' if late else 'once'}",
    )
