"""What an accumulator computes in words, as a formula and in one line, and what an engine makes of it.

A class of accumulators has all of its words in one function here.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import singledispatch
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
from ..engines.matrix_engine import MatrixEngine
from ..results import Result

ROUNDINGS = {
    "rne": "to nearest, ties to even", "rna": "to nearest, ties away from zero", "rz": "toward zero", "ru": "up", "rd": "down",
    "ro": "to odd",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Words(Result):
    """What is computed.

    Attributes
    ----------
    title : str
    steps : tuple of str
        Sentences, in the order of the arithmetic.
    formula : str
        LaTeX, equations apart by ", \\quad "; none where the arithmetic is not public.
    brief : str
        What a unit does, in a few words.
    window : tuple of str
        Which bits of an addend a fused sum keeps, as a picture in text.
    """

    title: str
    steps: tuple[str, ...]
    formula: str
    brief: str
    window: tuple[str, ...] = ()

    @property
    def equations(self) -> tuple[str, ...]:
        """The formula's equations in LaTeX."""
        return tuple(filter(None, self.formula.split(r", \quad ")))

    def to_rows(self) -> list[dict]:
        """One for each step, then the formula's equations."""
        told = [{"kind": "step", "text": step} for step in self.steps]
        return [*told, *({"kind": "formula", "text": plain(line)} for line in self.equations)]

    def sentences(self) -> list[str]:
        """The title."""
        return [self.title]

    def to_dict(self) -> dict[str, Any]:
        """JSON-compatible values; the formula as plain text, too."""
        return {**asdict(self), "formula": list(map(plain, self.equations)), "latex": list(self.equations)}


#: LaTeX and plain text; repeated until nothing changes, so that braces are opened from the inside out.
_PLAIN = (
    (r"\\sum_\{i=1\}\^\{(\d+)\}", r"sum(i=1..\1)"), (r"\\sum_\{i \\in G_j\}", "sum(i in G_j)"), (r"\\sum_(\w)", r"sum(\1)"),
    (r"\\mathrm\{([^{}]*)\}", r"\1"), (r"\\pmod\{([^{}]*)\}", r"(mod \1)"), (r"([_^])\{([A-Za-z0-9]+)\}", r"\1\2"),
    (r"([_^])\{([^{}]*)\}", r"\1(\2)"), (r"\\alpha", "x"), (r"\\beta", "y"), (r"\\equiv", "="), (r"\\(left|right)", ""),
    (r"\\[ ,;]", " "), (r"\\(min|max|bmod)", lambda found: found[1].removeprefix("b")), (r"  +", " "),
)  # fmt: skip


def plain(latex: str) -> str:
    """A formula of this module as plain text."""
    before = ""
    while before != latex:
        before = latex
        for pattern, text in _PLAIN:
            latex = re.sub(pattern, text, latex)
    return latex.strip()


@singledispatch
def words_of(spec: Accumulator, d: str) -> Words:
    """An accumulator in words; a class that has none here (one of a user's own) by its name.

    Parameters
    ----------
    spec : Accumulator
    d : str
        Format of the result.
    """
    name = type(spec).__name__
    return Words(f"An algorithm of one's own, {name}", (), "", f"computes by {name}")


def words_of_engine(engine: MatrixEngine) -> Words:
    """The words of an engine's accumulator, with its block scales, its chain over k and the bits that addends keep."""
    spec = engine.accumulator
    words, length = words_of(spec, engine.formats[3].name), spec.terms_per_step
    steps = list(words.steps)
    if engine.scale_format is not None and not isinstance(spec, GroupDotFusedSum):
        steps.append(
            f"Each product is multiplied by its two block scales ({engine.scale_format}, one for {engine.block_size} "
            "products), exactly."
        )
    if words.formula and engine.k > length > 1:
        steps.append(
            f"The {engine.k} products of one instruction are a chain of {-(-engine.k // length)} such steps: the result of one "
            "is the c of the next, and so it goes on from instruction to instruction."
        )
    elif words.formula:
        steps.append("A longer sum is a chain: the result of one instruction is the c of the next.")
    return replace(words, steps=tuple(steps), window=tuple(_window(getattr(spec, "dot", spec))))


def _window(spec: Accumulator) -> Iterator[str]:
    kept = getattr(spec, "fraction_bits", None)
    if kept is None:
        return
    lower = 5
    yield f"bits kept of each addend (F = {kept}; what is right of | is lost):"
    yield f"  exponent e    1.{'x' * kept}|"
    if kept > lower:
        yield f"  exponent e-{lower}  0.{'0' * (lower - 1)}1{'x' * (kept - lower)}|{'x' * lower}"


def _kept(spec: Any, d_format: str) -> str:
    if getattr(spec, "output_fraction_bits", None):
        return f"{spec.output_fraction_bits} fraction bits (stored as {d_format})"
    return d_format


def _floor(spec: Any) -> tuple[str, str]:
    if spec.exponent_floor is None:
        return "", ""
    return f" This exponent never goes below {spec.exponent_floor}.", rf"{spec.exponent_floor},\;"


@words_of.register
def _fused(spec: FusedDotAdd, d: str) -> Words:
    floor, in_formula = _floor(spec)
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
            f"The sum is normalised and rounded {ROUNDINGS[spec.output_rounding]} to {_kept(spec, d)}.",
        ),
        rf"e = \max({in_formula}e_c,\; e_{{a_i}} + e_{{b_i}}), \quad d = \mathrm{{{rounding}}}\left("
        rf"T(c) + \sum_{{i=1}}^{{{spec.terms}}} T(a_i b_i)\right), \quad "
        rf"T(x) = 2^{{e-{f}}} \, \mathrm{{{spec.alignment_rounding.upper()}}}\left(x \, 2^{{{f}-e}}\right)",
        f"aligns {spec.terms} products and the running sum to the largest, cuts all below {f} fraction bits and rounds once",
    )


@words_of.register
def _parametric(spec: ParametricDotAdd, d: str) -> Words:
    n, f, late = spec.terms, spec.fraction_bits, spec.c_position == "late"
    together = {
        "global": "together",
        "pairwise": "two by two, as a binary tree",
        "odd_even": "apart for even and odd k, then the two sums with each other",
    }[spec.alignment]
    kept = "exactly: nothing is cut off" if f is None else f"after what lies below {f} fraction bits was rounded "
    kept += "" if f is None else ROUNDINGS[spec.alignment_rounding] + (", with a sticky bit" if spec.sticky else "")
    steps = (
        (True, f"{n} products{'' if late else ' and c'} are aligned {together}, and added {kept}."),
        (spec.normalised_products, "Products are normalised before they are aligned."),
        (spec.normalise_each_add, "Addends are added one by one, and each intermediate sum is normalised."),
        (spec.integer_bits is not None, f"The sum wraps beyond {spec.integer_bits} integer bits."),
        (True, f"The sum is rounded {ROUNDINGS[spec.output_rounding]} to {_kept(spec, d)}."),
        (late, f"c is added last, rounded {ROUNDINGS[spec.late_rounding]}."),
        (spec.flush_inputs, "Subnormal operands become zero and keep their sign."),
        (spec.flush_outputs, "Subnormal results become zero and keep their sign."),
    )
    cut = "" if f is None else f"T_{{{f}}}"
    dot, rounding = rf"\sum_{{i=1}}^{{{n}}} {cut}(a_i b_i)", rf"\mathrm{{{spec.output_rounding.upper()}}}"
    formula = rf"d = {rounding}\left({cut}(c) + {dot}\right)"
    if late:
        formula = rf"d = \mathrm{{{spec.late_rounding.upper()}}}\left(c + {rounding}\left({dot}\right)\right)"
    return Words(
        f"{'Exact sum' if f is None else 'Sum'} of {n} products and c" + (", c last" if late else ", rounded once"),
        tuple(text for on, text in steps if on),
        formula,
        f"adds {n} products and the running sum and rounds {'twice' if late else 'once'}",
    )


@words_of.register
def _sequential(spec: SequentialFMA, d: str) -> Words:
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
    return Words(
        "Chain of fused multiply-adds", tuple(steps),
        rf"d_0 = c, \quad d_i = \mathrm{{{spec.rounding.upper()}}}(a_i b_i + d_{{i-1}})",
        "rounds after every single product",
    )  # fmt: skip


@words_of.register
def _laned(spec: LanedFMA, d: str) -> Words:
    steps = [
        f"Product k goes to lane k mod {spec.lanes}. Each lane starts from zero and adds its products by fused "
        f"multiply-adds, rounded "
        f"to nearest even to {d}.",
        "The lanes are added in order, and their total is added to c last.",
        "Subnormal results and a subnormal c become zero"
        + (", and so do subnormal operands." if spec.flush_inputs else "."),
    ]
    total = " + ".join(f"l_{j}" for j in range(spec.lanes))
    lanes = rf"l_j = \mathrm{{FMA\ chain\ of}}\ a_k b_k,\ k \bmod {spec.lanes} = j"
    formula = rf"{lanes}, \quad d = \mathrm{{RNE}}(c + \mathrm{{RNE}}({total}))"
    return Words(
        f"{spec.lanes} interleaved chains of fused multiply-adds, c last",
        tuple(steps),
        formula,
        f"adds {spec.lanes} interleaved chains from zero, rounding after every product, and the running sum last",
    )


@words_of.register
def _pairwise(spec: GroupPairwiseSum, d: str) -> Words:
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
    return Words(
        f"Trees of {d} additions over {spec.group} products",
        tuple(filter(None, steps)),
        formula,
        f"rounds {spec.group} products, adds them as a tree and rounds every sum",
    )


@words_of.register
def _round_odd(spec: PairRoundOddSum, d: str) -> Words:
    return Words(
        "Pairs of products, rounded to odd",
        (
            f"Each product, the sum of each pair of products, and its addition to c are rounded to odd in {d}.",
            "Subnormal operands and results become zero; overflow gives infinity.",
        ),
        r"d = \mathrm{RO}\left(c + \mathrm{RO}(\mathrm{RO}(a_1 b_1) + \mathrm{RO}(a_2 b_2))\right)",
        "rounds pairs of products and every sum to odd",
    )


@words_of.register
def _round_down(spec: FusedDotRoundDownAdd, d: str) -> Words:
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
    added = f"even and odd products of {spec.terms} apart" if grouped else f"{spec.terms} products"
    dot = r"s_{\mathrm{even}} + s_{\mathrm{odd}}" if grouped else rf"\sum_{{i=1}}^{{{spec.terms}}} T_{{{f}}}(a_i b_i)"
    return Words(
        f"Dot product of {spec.terms} products, then c, both rounded down",
        tuple(steps),
        rf"s = {dot}, \quad d = \mathrm{{RNE}}\left(\mathrm{{RD}}_{{{f_dot}}}(s) + \mathrm{{RD}}_{{{f_c}}}(c)\right)",
        f"adds {added}, cut below {f} fraction bits, to which the running sum is joined with both rounded down",
    )


@words_of.register
def _group_dot(spec: GroupDotFusedSum, d: str) -> Words:
    floor, in_formula = _floor(spec)
    f = spec.fraction_bits
    return Words(
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
        f"aligns exact sums of {spec.group} products by their scales",
    )


@words_of.register
def _interleaved(spec: InterleavedDotAdd, d: str) -> Words:
    f, n = spec.dot.fraction_bits, spec.dot.terms
    return Words(
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
        f"adds {spec.groups} groups of interleaved products one after the other from zero and the running sum last",
    )


@words_of.register
def _integer(spec: IntegerDotAdd, d: str) -> Words:
    end = "clamped to the int32 range" if spec.saturate else "taken modulo 2^32"
    formula = r"c + \sum_i a_i b_i"
    clamped = rf"\min\left(2^{{31}}-1,\; \max\left(-2^{{31}},\; {formula}\right)\right)"
    return Words(
        "Exact integer dot product" + (", clamped" if spec.saturate else ""),
        (f"Products and c are added exactly, and the sum is {end}.",),
        f"d = {clamped}" if spec.saturate else rf"d \equiv {formula} \pmod{{2^{{32}}}}",
        "adds integers exactly",
    )


@words_of.register
def _unpublished(spec: Unpublished, d: str) -> Words:
    steps = ("Nobody has published what this unit computes, so there is no model of it.",)
    return Words("Not public", steps, "", "computes what is not public")
