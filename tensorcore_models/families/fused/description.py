"""Fused sums in words, as formulas and as a tree."""

from collections.abc import Sequence
from typing import Any

from ...explanations.descriptions import ROUNDINGS, Words, floor_words, kept_bits
from ...explanations.sums import Position, SumBuilder


def fused(spec: Any, d: str) -> Words:
    """FusedDotAdd in words."""
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
    """ParametricDotAdd in words."""
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


def fused_note(spec: Any) -> str:
    """Describe one fused operation."""
    kept = (
        "nothing is cut off" if spec.fraction_bits is None else f"aligned and cut to {spec.fraction_bits} fraction bits"
    )
    return f"one operation: {kept}, summed exactly, rounded once ({spec.output_rounding})"


def add_step(spec: Any, ks: Sequence[Position], c: Position, to: SumBuilder) -> Position:
    """Return the order of one step: the alignments it is made of."""
    exact, note = spec.fraction_bits is None, fused_note(spec)
    label = "exact" if exact else f"F={spec.fraction_bits}"
    parts = list(ks)
    if spec.alignment == "pairwise":
        parts = [to.halves(ks, label, note, exact=exact)]
    elif spec.alignment == "odd_even":
        parts = [to.add(half, label, note, exact=exact) for half in (ks[::2], ks[1::2]) if half]
    if spec.c_position == "exact":
        dot = to.add(parts, label, f"one operation: {note.split(': ', 1)[1].rsplit(', ', 1)[0]}", exact=exact)
        return to.add([dot, c], "exact", f"c is added exactly, the total rounded once ({spec.output_rounding})")
    if spec.c_position == "late":
        dot = to.add(parts, label, note, exact=exact and len(parts) > 2)
        return to.add([dot, c], "", f"c is added last, rounded {spec.late_rounding}")
    return to.add([c, *parts], label, note, exact=exact)
