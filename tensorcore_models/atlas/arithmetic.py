"""What an accumulator computes, in words and as a formula."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..accumulators import (
    Accumulator,
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
    Unpublished,
)

ROUNDINGS = {
    "rne": "to nearest, ties to even", "rna": "to nearest, ties away from zero", "rz": "toward zero", "ru": "up", "rd": "down",
    "ro": "to odd",
}  # fmt: skip


@dataclass(frozen=True)
class Arithmetic:
    """Steps in words (Markdown), and a formula (LaTeX); no formula where the arithmetic is not public."""

    title: str
    steps: tuple[str, ...]
    formula: str


def _kept(spec: Any, d_format: str) -> str:
    if getattr(spec, "output_fraction_bits", None):
        return f"{spec.output_fraction_bits} fraction bits (stored as {d_format})"
    return d_format


def _floor(spec: Any) -> tuple[str, str]:
    if spec.exponent_floor is None:
        return "", ""
    return f" This exponent never goes below {spec.exponent_floor}.", rf"{spec.exponent_floor},\;"


def _fused(spec: FusedDotAdd, d: str) -> Arithmetic:
    floor, in_formula = _floor(spec)
    rounding = spec.output_rounding.upper()
    f = spec.fraction_bits
    return Arithmetic(
        f"Fused dot product of {spec.terms} products and c, {f} fraction bits",
        (
            f"{spec.terms} products are formed exactly. They are not normalised: the exponent of a product is the sum of the "
            "exponents of its two operands.",
            f"The products and c are shifted to the largest exponent among them.{floor} What lies below {f} fraction "
            f"bits is rounded {ROUNDINGS[spec.alignment_rounding]}.",
            "The shifted numbers are added exactly.",
            f"The sum is normalised and rounded {ROUNDINGS[spec.output_rounding]} to {_kept(spec, d)}.",
        ),
        rf"e = \max({in_formula}e_c,\; e_{{a_i}} + e_{{b_i}}), \quad d = \mathrm{{{rounding}}}\left("
        rf"T(c) + \sum_{{i=1}}^{{{spec.terms}}} T(a_i b_i)\right), \quad "
        rf"T(x) = 2^{{e-{f}}} \, \mathrm{{{spec.alignment_rounding.upper()}}}\left(x \, 2^{{{f}-e}}\right)",
    )


def _exact(spec: ParametricDotAdd, d: str) -> Arithmetic:
    if spec.fraction_bits is not None or spec.c_position != "early" or spec.alignment != "global":
        raise TypeError(f"the atlas has words for exact sums only, not for {spec}")
    return Arithmetic(
        f"Exact sum of {spec.terms} products and c, rounded once",
        (
            f"{spec.terms} products and c are added exactly: nothing is cut off.",
            f"The sum is rounded {ROUNDINGS[spec.output_rounding]} to {_kept(spec, d)}.",
        ),
        rf"d = \mathrm{{{spec.output_rounding.upper()}}}\left(c + \sum_{{i=1}}^{{{spec.terms}}} a_i b_i\right)",
    )


def _sequential(spec: SequentialFMA, d: str) -> Arithmetic:
    steps = [
        f"One product after the other is added by a fused multiply-add, rounded {ROUNDINGS[spec.rounding]} to "
        f"{d}: product and sum "
        "are rounded once, together.",
    ]
    if spec.pair_order == "odd_first":
        steps.append("Of each pair of products, the one with odd k comes first.")
    if spec.flush_inputs or spec.flush_outputs:
        what = [text for on, text in ((spec.flush_inputs, "operands"), (spec.flush_outputs, "results")) if on]
        steps.append(f"Subnormal {' and '.join(what)} become zero and keep their sign.")
    if spec.saturate:
        steps.append("Overflow gives the largest finite number, and a NaN result is zero.")
    return Arithmetic(
        "Chain of fused multiply-adds", tuple(steps),
        rf"d_0 = c, \quad d_i = \mathrm{{{spec.rounding.upper()}}}(a_i b_i + d_{{i-1}})",
    )  # fmt: skip


def _laned(spec: LanedFMA, d: str) -> Arithmetic:
    steps = [
        f"Product k goes to lane k mod {spec.lanes}. Each lane starts from zero and adds its products by fused "
        f"multiply-adds, rounded "
        f"to nearest even to {d}.",
        "The lanes are added in order, and their total is added to c last.",
        "Subnormal results and a subnormal c become zero"
        + (", and so do subnormal operands." if spec.flush_inputs else "."),
    ]
    lanes = rf"l_j = \mathrm{{FMA\ chain\ of}}\ a_k b_k,\ k \bmod {spec.lanes} = j"
    formula = rf"{lanes}, \quad d = \mathrm{{RNE}}(c + \mathrm{{RNE}}(l_0 + l_1))"
    return Arithmetic(f"{spec.lanes} interleaved chains of fused multiply-adds, c last", tuple(steps), formula)


def _pairwise(spec: GroupPairwiseSum, d: str) -> Arithmetic:
    flush = {
        "format": "Operands below the smallest normal number of their format become +0.",
        "fp32": "Operands below 2^-126 become +0.",
        "none": "",
    }[spec.flush_input]
    steps = [
        f"Each product is rounded to {d}.",
        f"Groups of {spec.group} products are added as a binary tree, every addition rounded to nearest even.",
        "The sum of each group is added to c, one group after the other.",
        flush,
        "Products and sums below 2^-126 become zero and keep their sign." if spec.flush_results else "",
    ]
    pairs = {2: r"p_1 + p_2", 4: r"\mathrm{RNE}(p_1 + p_2) + \mathrm{RNE}(p_3 + p_4)"}.get(
        spec.group, r"\mathrm{tree}(p)"
    )
    formula = rf"p_i = \mathrm{{RNE}}(a_i b_i), \quad d = \mathrm{{RNE}}\left(c + \mathrm{{RNE}}({pairs})\right)"
    return Arithmetic(f"Trees of {d} additions over {spec.group} products", tuple(filter(None, steps)), formula)


def _round_odd(spec: PairRoundOddSum, d: str) -> Arithmetic:
    return Arithmetic(
        "Pairs of products, rounded to odd",
        (
            f"Each product, the sum of each pair of products, and its addition to c are rounded to odd in {d}.",
            "Subnormal operands and results become zero; overflow gives infinity.",
        ),
        r"d = \mathrm{RO}\left(c + \mathrm{RO}(\mathrm{RO}(a_1 b_1) + \mathrm{RO}(a_2 b_2))\right)",
    )


def _round_down(spec: FusedDotRoundDownAdd, d: str) -> Arithmetic:
    grouped = isinstance(spec, GroupFusedDotRoundDownAdd)
    f, f_dot, f_c = spec.fraction_bits, spec.dot_fraction_bits, spec.c_fraction_bits
    steps = [
        f"{spec.terms} products are formed exactly and not normalised. A product of "
        f"2^{spec.product_overflow_exponent} or more is "
        "infinite.",
        f"The products, without c, are shifted to their largest exponent and cut to {f} fraction bits toward "
        f"zero, then added exactly.",
        f"This dot product (to {f_dot} fraction bits) and c (to {f_c}) are shifted to the larger of their "
        f"exponents; both are rounded "
        f"{ROUNDINGS[spec.add_rounding]}.",
        f"Their sum is rounded {ROUNDINGS[spec.output_rounding]} to {d}"
        + (
            f", after it was rounded down to {spec.sum_fraction_bits} fraction bits." if spec.sum_fraction_bits else "."
        ),
    ]
    if isinstance(spec, GroupFusedDotRoundDownAdd):
        steps[1] = (
            f"Products of even k and of odd k are shifted and cut apart, to {f} fraction bits toward zero, and "
            f"added exactly; the two "
            "sums are aligned with each other and rounded down."
        )
        steps.append(
            f"c is rounded toward zero instead where its exponent is more than {spec.c_zero_below} below the largest."
        )
    dot = r"s_{\mathrm{even}} + s_{\mathrm{odd}}" if grouped else rf"\sum_{{i=1}}^{{{spec.terms}}} T_{{{f}}}(a_i b_i)"
    return Arithmetic(
        f"Dot product of {spec.terms} products, then c, both rounded down",
        tuple(steps),
        rf"s = {dot}, \quad d = \mathrm{{RNE}}\left(\mathrm{{RD}}_{{{f_dot}}}(s) + \mathrm{{RD}}_{{{f_c}}}(c)\right)",
    )


def _group_dot(spec: GroupDotFusedSum, d: str) -> Arithmetic:
    floor, in_formula = _floor(spec)
    f = spec.fraction_bits
    return Arithmetic(
        f"Exact sums of {spec.group} products, scaled, then fused with {f} fraction bits",
        (
            f"Products are added exactly in groups of {spec.group}.",
            "Each group's sum is multiplied by its two block scales: significands are multiplied, exponents added.",
            f"The scaled sums and c are shifted to the largest exponent, where a group has the exponent of its "
            f"scales.{floor} What lies "
            f"below {f} fraction bits is cut off.",
            f"They are added exactly, and the result is rounded {ROUNDINGS[spec.output_rounding]} to {d}.",
        ),
        rf"g_j = \alpha_j \beta_j \sum_{{i \in G_j}} a_i b_i, \quad e = \max({in_formula}e_c,\; e_{{\alpha_j}} "
        rf"+ e_{{\beta_j}}), \quad "
        rf"d = \mathrm{{{spec.output_rounding.upper()}}}\left(T_{{e-{f}}}(c) + \sum_j T_{{e-{f}}}(g_j)\right)",
    )


def _interleaved(spec: InterleavedDotAdd, d: str) -> Arithmetic:
    f, n = spec.dot.fraction_bits, spec.dot.terms
    return Arithmetic(
        f"{spec.groups} chained fused dot products over interleaved k, c last",
        (
            f"Operands are converted to {spec.via_format}, exactly.",
            f"Runs of {spec.run} neighbouring k go in turn to {spec.groups} groups of {n} products.",
            f"The groups are added one after the other, starting from zero, each by a fused dot product with {f} fraction bits "
            f"that is rounded {ROUNDINGS[spec.dot.output_rounding]} to {d}.",
            f"c is added last, rounded {ROUNDINGS[spec.final_rounding]}.",
        ),
        rf"s_1 = \mathrm{{FDA}}_{{{f}}}(0, G_1), \quad s_2 = \mathrm{{FDA}}_{{{f}}}(s_1, G_2), \quad d = "
        rf"\mathrm{{{spec.final_rounding.upper()}}}(s_2 + c)",
    )


def _integer(spec: IntegerDotAdd, d: str) -> Arithmetic:
    end = "clamped to the int32 range" if spec.saturate else "taken modulo 2^32"
    formula = r"c + \sum_i a_i b_i"
    clamped = rf"\min\left(2^{{31}}-1,\; \max\left(-2^{{31}},\; {formula}\right)\right)"
    return Arithmetic(
        "Exact integer dot product" + (", clamped" if spec.saturate else ""),
        (f"Products and c are added exactly, and the sum is {end}.",),
        f"d = {clamped}" if spec.saturate else rf"d \equiv {formula} \pmod{{2^{{32}}}}",
    )


def _unpublished(spec: Unpublished, d: str) -> Arithmetic:
    return Arithmetic("Not public", ("Nobody has published what this unit computes, so there is no model of it.",), "")


_FAMILIES: dict[type[Accumulator], Callable[[Any, str], Arithmetic]] = {
    FusedDotAdd: _fused,
    ParametricDotAdd: _exact,
    SequentialFMA: _sequential,
    LanedFMA: _laned,
    GroupPairwiseSum: _pairwise,
    PairRoundOddSum: _round_odd,
    FusedDotRoundDownAdd: _round_down,
    GroupFusedDotRoundDownAdd: _round_down,
    GroupDotFusedSum: _group_dot,
    InterleavedDotAdd: _interleaved,
    IntegerDotAdd: _integer,
    Unpublished: _unpublished,
}


def arithmetic_of(spec: Accumulator, d_format: str) -> Arithmetic:
    """An accumulator in words and as a formula.

    Parameters
    ----------
    spec : Accumulator
    d_format : str
        Format of the result.

    Raises
    ------
    TypeError
        If no words are written for this class.
    """
    try:
        family = _FAMILIES[type(spec)]
    except KeyError:
        raise TypeError(f"the atlas has no words for {type(spec).__name__}: add them to {__name__}") from None
    return family(spec, d_format)
