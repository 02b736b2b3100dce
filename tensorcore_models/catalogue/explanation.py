"""An instruction for a reader: what it computes in words, as formulas, and the order of its additions as a picture.

In formulas and pictures (x) is x rounded once to the result format, [x + y + ...] is one fused operation (aligned, cut, added
exactly, rounded once), {x + y} is an exact sum. s0 is c.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

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
from ..engines.engine import MatrixEngine

ROUNDINGS = {
    "rne": "rounded to nearest, ties to even", "rna": "rounded to nearest, ties away from zero",
    "rz": "rounded toward zero (cut off)", "ru": "rounded up", "rd": "rounded down", "ro": "rounded to odd",
}  # fmt: skip
#: Products of one line of a picture that are spelled out.
SHOWN = 3
#: Lines of a picture before and after those that are left out.
LINES = 3


@dataclass(frozen=True)
class Explanation:
    """What an engine computes.

    Attributes
    ----------
    words : str
        Sentences.
    formula : tuple of str
        The arithmetic of one step.
    picture : tuple of str
        The order of the additions of one instruction, and for fused sums which bits are kept.
    """

    words: str
    formula: tuple[str, ...]
    picture: tuple[str, ...]

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {"words": self.words, "formula": list(self.formula), "picture": list(self.picture)}


def explain_engine(engine: MatrixEngine) -> Explanation:
    """An engine's arithmetic in words, as formulas and as a picture.

    Parameters
    ----------
    engine : MatrixEngine

    Returns
    -------
    Explanation
    """
    spec, result = engine.accumulator, engine.formats[3].name
    words, formula, passes = _told(spec, engine, result)
    step = spec.terms_per_step
    count = -(-engine.k // step)
    if count > 1 and not isinstance(spec, SequentialFMA | Unpublished):
        words += f" One instruction of k = {engine.k} is {count} such steps, each starting from the rounded result of the last."
    if engine.scale_format is not None and not isinstance(spec, GroupDotFusedSum):
        words += (
            f" Each product is multiplied by its two block scales ({engine.scale_format}, one for {engine.block_size} "
            "products), exactly."
        )
    lines = [line for index in range(count) for line in passes(index)]
    if lines and count:
        _, equals, rest = lines[-1].partition(" = ")
        lines[-1] = f"d{equals}{rest}"
    kept = (
        [*lines[:LINES], f"... {len(lines) - 2 * LINES} more", *lines[-LINES:]] if len(lines) > 2 * LINES + 1 else lines
    )
    return Explanation(words, tuple(formula), (*kept, *_window(getattr(spec, "dot", spec))))


#: Algorithms in a few words, for comparisons.
BRIEFLY = {
    FusedDotAdd: "aligns {terms} products and the running sum to the largest, cuts all below {fraction_bits} fraction bits and "
    "rounds once",
    FusedDotRoundDownAdd: "adds {terms} products cut below {fraction_bits} fraction bits, to which the running sum is joined "
    "with both rounded down",
    GroupFusedDotRoundDownAdd: "adds even and odd products of {terms} apart, cut below {fraction_bits} fraction bits, to which "
    "the running sum is joined with both rounded down",
    ParametricDotAdd: "adds {terms} products and the running sum and rounds once",
    InterleavedDotAdd: "adds {groups} groups of interleaved products one after the other from zero and the running sum last",
    GroupDotFusedSum: "aligns exact sums of {group} products by their scales",
    SequentialFMA: "rounds after every single product",
    LanedFMA: "adds {lanes} interleaved chains from zero, rounding after every product, and the running sum last",
    GroupPairwiseSum: "rounds {group} products, adds them as a tree and rounds every sum",
    PairRoundOddSum: "rounds pairs of products and every sum to odd",
    IntegerDotAdd: "adds integers exactly",
}


def briefly(spec: Accumulator) -> str:
    """An algorithm in a few words, as what a unit does."""
    text = BRIEFLY.get(type(spec), f"computes by {type(spec).__name__}")
    return text.format(**{field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)})


def products(ks, sign: str = " + ") -> str:
    """Products of k as text, the middle ones left out."""
    ks = list(ks)
    names = [f"a{k}b{k}" for k in ks]
    return sign.join(names if len(names) <= SHOWN + 1 else [*names[: SHOWN - 1], "...", names[-1]])


def _cut(rounding: str) -> str:
    return {"rz": "cut off there"}.get(rounding, f"{ROUNDINGS[rounding]} there")


def _rounded(rounding: str, result: str, kept: int | None = None) -> str:
    bits = "" if kept is None else f", to {kept} fraction bits"
    return f"{ROUNDINGS[rounding]} to {result}{bits}"


@singledispatch
def _told(spec: Accumulator, engine: MatrixEngine, result: str):
    """(words, formula, pass number -> lines of the picture)."""
    return (
        f"{type(spec).__name__}: an algorithm of one's own, without a description.",
        [repr(spec)],
        lambda index: iter(()),
    )


@_told.register
def _unknown(spec: Unpublished, engine: MatrixEngine, result: str):
    return "The arithmetic of this unit is not public: nothing can be computed with it.", [], lambda index: iter(())


@_told.register
def _fused(spec: FusedDotAdd, engine: MatrixEngine, result: str):
    n, f = spec.terms, spec.fraction_bits
    end = _rounded(spec.output_rounding, result, spec.output_fraction_bits)
    words = (
        f"{n} products and c are added in one fused operation. The products are exact. All {n + 1} addends are shifted to the "
        f"largest exponent E among them, keep {f} fraction bits below it and are {_cut(spec.alignment_rounding)}: what is "
        f"below 2^(E-{f}) is lost. They are added exactly, and the sum is {end}."
    )
    if spec.exponent_floor is not None:
        words += f" E is never below {spec.exponent_floor}."
    formula = [
        f"E = max exponent of c, a_k b_k (k = 0 ... {n - 1})",
        f"d = {spec.output_rounding.upper()}( cut(c) + sum of cut(a_k b_k) ),  cut(x) = {spec.alignment_rounding.upper()} of x "
        f"to a multiple of 2^(E-{f})",
    ]
    return words, formula, lambda i: iter((f"s{i + 1} = [s{i} + {products(range(i * n, i * n + n))}]",))


@_told.register
def _parametric(spec: ParametricDotAdd, engine: MatrixEngine, result: str):
    n = spec.terms
    if spec.fraction_bits is None:
        words = (
            f"The exact sum of c and {n} products, {_rounded(spec.output_rounding, result)}: nothing is cut off before."
        )
        formula = [f"d = {spec.output_rounding.upper()}( c + sum of a_k b_k, exact )"]
        return words, formula, lambda i: iter((f"s{i + 1} = ({{s{i} + {products(range(i * n, i * n + n))}}})",))
    words = (
        f"{n} products and c are aligned ({spec.alignment}), keep {spec.fraction_bits} fraction bits "
        f"({ROUNDINGS[spec.alignment_rounding]}) and are added; c joins {spec.c_position}; the sum is "
        f"{_rounded(spec.output_rounding, result, spec.output_fraction_bits)}."
    )
    return (
        words,
        [f"d = {spec.output_rounding.upper()}( {spec!r} )"],
        lambda i: iter((f"s{i + 1} = [s{i} + {products(range(i * n, i * n + n))}]",)),
    )


@_told.register
def _interleaved(spec: InterleavedDotAdd, engine: MatrixEngine, result: str):
    dot, whole = spec.dot, spec.terms_per_step
    words = (
        f"Operands are converted to {spec.via_format} (exactly). Pairs of neighbouring k go by turns to {spec.groups} groups; "
        f"each group of {dot.terms} products is one fused operation that starts from the rounded result of the group before "
        f"(the first from 0): addends keep {dot.fraction_bits} fraction bits below their largest exponent, the sum is "
        f"{_rounded(dot.output_rounding, result)}. c is added last, {ROUNDINGS[spec.final_rounding]}."
    )
    formula = [f"t = 0; for each group G: t = FDA(t, products of G), F = {dot.fraction_bits}",
               f"d = {spec.final_rounding.upper()}( t + c )"]  # fmt: skip

    def lines(index: int) -> Iterator[str]:
        before = "0"
        for number, group in enumerate(spec.group_order):
            ks = [k for k in range(index * whole, index * whole + whole) if (k // spec.run) % spec.groups == group]
            yield f"t{number + 1} = [{before} + {products(ks)}]"
            before = f"t{number + 1}"
        yield f"s{index + 1} = (s{index} + {before})"

    return words, formula, lines


@_told.register
def _groups(spec: GroupDotFusedSum, engine: MatrixEngine, result: str):
    g, n, f = spec.group, spec.terms, spec.fraction_bits
    rounding = spec.output_rounding.upper()
    words = (
        f"Every {g} products are summed exactly and multiplied by their two block scales. The {n // g} group sums of {n} "
        f"products and c are aligned by the exponents of their scales alone (whatever the sums are), keep {f} "
        f"fraction bits, are added, and the sum is {_rounded(spec.output_rounding, result)}."
    )
    formula = [
        "G_j = sum of a_k b_k over group j, exact;  E = max exponent of c and of scale_a scale_b",
        f"d = {rounding}( cut(c) + sum of cut(scale_a scale_b G_j) ),  cut to multiples of 2^(E-{f})",
    ]

    def lines(index: int) -> Iterator[str]:
        start = index * n
        for j in range(n // g):
            yield f"G{j} = {{{products(range(start + j * g, start + j * g + g))}}}"
        yield f"s{index + 1} = [s{index} + {' + '.join(f'x{j} y{j} G{j}' for j in range(n // g))}]   x, y: block scales"

    return words, formula, lines


@_told.register
def _round_down(spec: FusedDotRoundDownAdd, engine: MatrixEngine, result: str):
    n, parity = spec.terms, spec.parity_groups > 1
    how = (
        "Products of even and of odd k are aligned and summed apart, then with each other (rounded down). "
        if parity
        else ""
    )
    words = (
        f"{how}{n} products without c are shifted to their own largest exponent, keep {spec.fraction_bits} fraction bits (cut "
        f"off) and are added exactly. That dot product (to {spec.dot_fraction_bits} fraction bits) and c (to "
        f"{spec.c_fraction_bits}) are shifted to their common exponent, both rounded down (toward minus infinity), and added; "
        f"the sum is {_rounded(spec.output_rounding, result)}."
    )
    rounding = spec.output_rounding.upper()
    formula = [
        f"t = sum of cut(a_k b_k), F = {spec.fraction_bits}, c left out",
        f"d = {rounding}( RD_{spec.dot_fraction_bits}(t) + RD_{spec.c_fraction_bits}(c) )",
    ]

    def lines(index: int) -> Iterator[str]:
        ks = range(index * n, index * n + n)
        inner = f"{{{products(ks[::2])}}} + {{{products(ks[1::2])}}}" if parity else products(ks)
        yield f"t{index + 1} = {{{inner}}}"
        yield f"s{index + 1} = [s{index} + t{index + 1}]"

    return words, formula, lines


@_told.register
def _sequential(spec: SequentialFMA, engine: MatrixEngine, result: str):
    order = "k ascending" if spec.pair_order == "ascending" else "of each pair the odd k first"
    words = f"A chain of IEEE fused multiply-adds, {order}: each product is added exactly to the running sum, which is then "
    words += f"{_rounded(spec.rounding, result)}. There are as many roundings as products."
    flushed = [t for t, on in (("operands", spec.flush_inputs), ("results", spec.flush_outputs)) if on]
    words += f" Subnormal {' and '.join(flushed)} become zero." if flushed else ""
    words += " Overflow gives the largest finite number." if spec.saturate else ""
    formula = [f"s_0 = c;  s_(k+1) = {spec.rounding.upper()}( s_k + a_k b_k );  d = s_K"]
    step = spec.terms_per_step

    def lines(index: int) -> Iterator[str]:
        for j, k in enumerate(range(index * step, index * step + step)[:: -1 if step > 1 else 1]):
            yield f"s{index * step + j + 1} = (s{index * step + j} + a{k}b{k})"

    return words, formula, lines


@_told.register
def _lanes(spec: LanedFMA, engine: MatrixEngine, result: str):
    words = (
        f"{spec.lanes} chains of fused multiply-adds from zero, lane l takes k = l, l + {spec.lanes}, ...; then the lanes are "
        f"added, then c. Every operation is rounded to nearest even to {result}, subnormal results become zero."
    )
    formula = [f"l_j = FMA chain over k = j mod {spec.lanes};  d = RNE( c + RNE(sum of l_j) )"]

    def lines(index: int) -> Iterator[str]:
        start = index * spec.terms
        for j in range(spec.lanes):
            yield f"l{j} = (...((0 + a{start + j}b{start + j}) + a{start + j + spec.lanes}b{start + j + spec.lanes}) + ...)"
        yield f"t = ({' + '.join(f'l{j}' for j in range(spec.lanes))})"
        yield f"s{index + 1} = (s{index} + t)"

    return words, formula, lines


@_told.register
def _tree(spec: GroupPairwiseSum, engine: MatrixEngine, result: str):
    g = spec.group
    words = (
        f"Each product is rounded to {result}; {g} of them are added as a binary tree, and the tree's result is added to the "
        f"running sum. Every operation is IEEE, rounded to nearest even."
    )
    words += "" if spec.flush_input == "none" else " Subnormal operands become zero."
    words += " Subnormal products and sums become zero." if spec.flush_results else ""
    formula = [f"t = tree of {g} rounded products;  d = RNE( c + t )"]

    def tree(names: list[str]) -> str:
        while len(names) > 1:
            names = [f"({x} + {y})" for x, y in zip(names[::2], names[1::2], strict=True)]
        return names[0]

    def lines(index: int) -> Iterator[str]:
        leaves = [f"(a{k}b{k})" for k in range(index * g, index * g + g)]
        yield f"t{index + 1} = {tree(leaves)}"
        yield f"s{index + 1} = (s{index} + t{index + 1})"

    return words, formula, lines


@_told.register
def _odd(spec: PairRoundOddSum, engine: MatrixEngine, result: str):
    words = (
        f"Pairs of products, each rounded to {result}, are added and then added to the running sum; every operation is rounded "
        "to odd, subnormal operands and results become zero."
    )
    return (
        words,
        ["d = RO( c + RO( RO(a_0 b_0) + RO(a_1 b_1) ) )"],
        lambda i: iter((f"s{i + 1} = (s{i} + ((a{2 * i}b{2 * i}) + (a{2 * i + 1}b{2 * i + 1})))",)),
    )


@_told.register
def _integers(spec: IntegerDotAdd, engine: MatrixEngine, result: str):
    end = "clamped to its range after each step" if spec.saturate else "wrapping around beyond its range"
    words = f"Integer products are added exactly into {result}, {end}; the order does not matter unless it overflows."
    return (
        words,
        [f"d = c + sum of a_k b_k ({result})"],
        lambda i: iter((f"s{i + 1} = {{s{i} + {products(range(i * spec.terms, (i + 1) * spec.terms))}}}",)),
    )


def _window(spec: Accumulator) -> Iterator[str]:
    """Which bits of addends a fused sum keeps."""
    kept = getattr(spec, "fraction_bits", None)
    if kept is None:
        return
    lower = 5
    yield ""
    yield f"bits kept of each addend (F = {kept}; what is right of | is lost):"
    yield f"  exponent E    1.{'x' * kept}|"
    if kept > lower:
        yield f"  exponent E-{lower}  0.{'0' * (lower - 1)}1{'x' * (kept - lower)}|{'x' * lower}"
