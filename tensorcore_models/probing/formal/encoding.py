"""Specifications as terms: what each accumulator that aligns its addends computes, the twin of `reference.passes`.

:func:`result` gives the encoding of d as a term over the encodings of the operands (:class:`Inputs`). A term without
variables folds to a constant, and any term can be evaluated, so the encoding is tested against the reference without a solver.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...accumulators import (
    Accumulator,
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    InterleavedDotAdd,
    ParametricDotAdd,
    SequentialFMA,
    as_parametric,
)
from ...engines.instruction import Instruction
from ...engines.matrix_engine import MatrixEngine
from ...formats import Format, get_float_format
from ...bitvectors import integers as z
from ...bitvectors import numbers as n
from ...bitvectors import terms as t
from ...bitvectors.integers import Int
from ...bitvectors.numbers import Number
from ...bitvectors.terms import Term

#: What has an accumulator that can be encoded.
Modelled = MatrixEngine | Instruction


class Unencodable(TypeError):
    """A specification that this encoding does not have."""


@dataclass(frozen=True)
class Inputs:
    """Encodings of one dot product's operands as terms.

    Parameters
    ----------
    a, b : tuple of Term
        K operands each, as wide as their formats.
    c : Term
        The addend.
    scale_a, scale_b : tuple of Term
        Block scales, one for each `block_size` products; empty without scales.
    """

    a: tuple[Term, ...]
    b: tuple[Term, ...]
    c: Term
    scale_a: tuple[Term, ...] = ()
    scale_b: tuple[Term, ...] = ()

    @property
    def variables(self) -> list[Term]:
        """Those of the terms that are variables."""
        every = (*self.a, *self.b, self.c, *self.scale_a, *self.scale_b)
        return [x for x in dict.fromkeys(every) if x.op == "var"]


@dataclass(frozen=True)
class Formats:
    """Formats of a, b, c and d, and of block scales."""

    a: Format
    b: Format
    c: Format
    d: Format
    scale: Format | None = None
    block_size: int | None = None


def formats_of(engine: Modelled) -> Formats:
    """Formats of an engine's operands.

    Raises
    ------
    Unencodable
        If the engine has no accumulator (it is no model), a format is an integer format, or the result's has neither
        infinity nor NaN.
    """
    if not isinstance(getattr(engine, "accumulator", None), Accumulator):
        raise Unencodable(f"{engine!r} has no accumulator; a MatrixEngine or an Instruction is needed")
    if not all(isinstance(fmt, Format) for fmt in engine.formats):
        raise Unencodable(f"{engine.label} has integer formats; only floating-point formats have an encoding")
    scale = None if engine.scale_format is None else get_float_format(engine.scale_format)
    a, b, c, d = engine.formats
    found = Formats(a, b, c, d, scale, engine.block_size)
    if not (found.d.has_inf or found.d.has_nan):
        raise Unencodable(f"{engine.label}: results in {found.d.name} beyond its largest number have no encoding")
    return found


def symbolic_inputs(formats: Formats, k: int, active: Sequence[int] | None = None, prefix: str = "") -> Inputs:
    """Free operands of a dot product of k products; those not in `active` are +0.

    Raises
    ------
    ValueError
        If k is not positive.
    """
    if k < 1:
        raise ValueError(f"a dot product of {k} products has no inputs to choose; k must be at least 1")
    chosen = set(range(k) if active is None else active)

    def operands(name: str, fmt: Format) -> tuple[Term, ...]:
        return tuple(
            t.variable(f"{prefix}{name}{i}", fmt.bits) if i in chosen else t.constant(0, fmt.bits) for i in range(k)
        )

    scales: list[tuple[Term, ...]] = [(), ()]
    if formats.scale is not None and formats.block_size is not None:
        for side, name in enumerate(("sa", "sb")):
            count = -(-k // formats.block_size)
            scales[side] = tuple(t.variable(f"{prefix}{name}{i}", formats.scale.bits) for i in range(count))
    return Inputs(operands("a", formats.a), operands("b", formats.b), t.variable(f"{prefix}c", formats.c.bits), *scales)


def finite_inputs(inputs: Inputs, formats: Formats, spec: Accumulator) -> list[Term]:
    """That no operand, addend or scale is an infinity or a NaN."""
    rows = [(inputs.a, formats.a), (inputs.b, formats.b), ((inputs.c,), formats.c)]
    if formats.scale is not None:
        rows.append((inputs.scale_a + inputs.scale_b, formats.scale))
    found = []
    for codes, fmt in rows:
        for code in codes:
            x = n.decode(fmt, code, spec)
            found.append(t.negation(t.either(x.nan, x.inf)))
    return found


@dataclass(frozen=True)
class Pass:
    """The products and the addend of one pass, and the conditions under which its term is right."""

    spec: Any
    a: tuple[Term, ...]
    b: tuple[Term, ...]
    c: Term
    formats: Formats
    scales: tuple[tuple[Number, ...], ...]
    conditions: list[Term] = field(default_factory=list)

    def operands(self, codes: Sequence[Term], fmt: Format) -> list[Number]:
        rule = getattr(self.spec, "zero_operand", "format_minimum")
        return [n.decode(fmt, code, self.spec, zero_rule=rule) for code in codes]

    @property
    def x(self) -> list[Number]:
        """The operands of A."""
        return self.operands(self.a, self.formats.a)

    @property
    def y(self) -> list[Number]:
        """The operands of B."""
        return self.operands(self.b, self.formats.b)

    @property
    def addend(self) -> Number:
        """c with the alignment exponent that the edge rules `zero_c` and `subnormal_c` give it."""
        c = n.decode(self.formats.c, self.c, self.spec, zero_rule=self.spec.zero_c)
        return n.normalised(c) if self.spec.subnormal_c == "normalised" else c


def result(engine: Modelled, inputs: Inputs, conditions: list[Term]) -> Term:
    """The encoding of d.

    Parameters
    ----------
    engine : Modelled
        A MatrixEngine or Instruction.
    inputs : Inputs
        Operands of K products; K is cut into chained passes as the engine does.
    conditions : list of Term
        Gets the conditions under which the term is right (alignment "pairwise": no product that is zero, unless it is zero
        for all inputs, because zeros change the tree).

    Raises
    ------
    Unencodable
        If there is no encoding of the accumulator.
    """
    formats, spec = formats_of(engine), engine.accumulator
    left, right = (_block_scales(inputs, formats, spec, side) for side in ("scale_a", "scale_b"))
    scales = tuple(zip(left, right, strict=True)) if left else ((),) * len(inputs.a)
    total, step = inputs.c, spec.terms_per_step
    for start in range(0, len(inputs.a), step):
        part = slice(start, start + step)
        total = _pass(Pass(spec, inputs.a[part], inputs.b[part], total, formats, scales[part], conditions))
        formats = replace(formats, c=formats.d)
    return total


def _block_scales(inputs: Inputs, formats: Formats, spec: Accumulator, side: str) -> list[Number]:
    codes = getattr(inputs, side)
    if formats.scale is None or formats.block_size is None:
        return []
    rule = getattr(spec, "zero_operand", "format_minimum")
    decoded = [n.decode(formats.scale, code, spec, zero_rule=rule) for code in codes]
    return [decoded[k // formats.block_size] for k in range(len(inputs.a))]


def _pass(p: Pass) -> Term:
    encode = _ENCODINGS.get(type(p.spec))
    if encode is None:
        raise Unencodable(
            f"{type(p.spec).__name__} has no encoding; there is one of {', '.join(c.__name__ for c in _ENCODINGS)}"
        )
    return encode(p)


# -- the parametric accumulator, of which FDA is a point -------------------------------------------------------------------
def exact_sum(numbers: Sequence[Number]) -> tuple[Int, Int]:
    """Sum of numbers and its exponent, nothing cut off."""
    lowest = min(x.align.low - x.point for x in numbers)
    addends = []
    for x in numbers:
        up = z.minus(x.align, z.number(x.point + lowest))
        addends.append(z.with_sign(x.negative, z.shifted_left(x.significand, up)))
    return n.total_of(addends), z.number(lowest)


def _wrapped(total: Int, integer_bits: int | None, fraction_bits: int) -> Int:
    """`total` in two's complement with `integer_bits` bits above the point."""
    if integer_bits is None:
        return total
    half = 1 << (integer_bits + fraction_bits)
    if -half <= total.low and total.high < half:
        return total
    return z.ranged(z.as_bits(total, integer_bits + fraction_bits + 1), -half, half - 1)


def sum_aligned(
    spec: ParametricDotAdd, numbers: Sequence[Number], fraction_bits: int, largest: Int | None = None
) -> Number:
    """One alignment of all addends (to `largest`, if given), summed exactly; the result keeps the alignment exponent."""
    if largest is None:
        largest = n.largest_exponent(numbers, spec.exponent_floor)
    kept, rounding = (fraction_bits + 1, "ro") if spec.sticky else (fraction_bits, spec.alignment_rounding)
    total = _wrapped(n.total_of([n.aligned(x, largest, kept, rounding) for x in numbers]), spec.integer_bits, kept)
    return _as_number(total, largest, kept, t.either(*(x.part for x in numbers)))


def _as_number(total: Int, largest: Int, point: int, part: Term) -> Number:
    return n.plain(z.less(total, z.number(0)), z.magnitude(total), largest, point, part)


def _sum_normalising(spec: ParametricDotAdd, numbers: Sequence[Number], fraction_bits: int) -> Number:
    """Addends one by one, each intermediate sum normalised to F fraction bits."""
    total = numbers[0]
    for number in numbers[1:]:
        added = sum_aligned(spec, [total, number], fraction_bits)
        whole = n.normalised(added)
        cut = max(whole.point - fraction_bits, 0)
        kept = z.shifted_right(whole.significand, z.number(cut), spec.alignment_rounding, whole.negative)
        step = n.plain(whole.negative, kept, whole.align, whole.point - cut)
        total = n.choose(t.both(total.part, number.part), step, n.choose(number.part, number, total))
    return total


def _sum_pairwise(spec: ParametricDotAdd, numbers: Sequence[Number], fraction_bits: int) -> Number:
    """Binary tree of two-operand alignments over neighbours."""
    if len(numbers) == 1:
        return numbers[0]
    middle = (len(numbers) + 1) // 2
    halves = [_sum_pairwise(spec, part, fraction_bits) for part in (numbers[:middle], numbers[middle:])]
    return sum_aligned(spec, halves, fraction_bits)


def fused_sum(
    spec: ParametricDotAdd, products: Sequence[Number], start: Sequence[Number], conditions: list[Term]
) -> Number | None:
    """Unrounded sum of products and c by the alignment that `spec` names; None if nothing can take part."""
    start = _taking_part(start)
    everything = [*start, *_taking_part(products)]
    if not everything:
        return None
    if spec.fraction_bits is None:
        total, exponent = exact_sum(everything)
        return _as_number(total, exponent, 0, t.TRUE)
    bits = spec.fraction_bits
    if spec.alignment == "odd_even":
        groups = [_taking_part(products[parity::2]) for parity in (0, 1)]
        return sum_aligned(spec, [*(sum_aligned(spec, group, bits) for group in groups if group), *start], bits)
    if spec.alignment == "pairwise":
        leaves = _taking_part(products)
        conditions.extend(x.part for x in leaves)
        return sum_aligned(spec, [*([_sum_pairwise(spec, leaves, bits)] if leaves else []), *start], bits)
    if spec.normalise_each_add:
        return _sum_normalising(spec, everything, bits)
    return sum_aligned(spec, everything, bits)


def rounded_sum(spec: ParametricDotAdd, total: Number, fmt: Format) -> Term:
    """The sum in the output format."""
    signed = z.with_sign(total.negative, total.significand)
    exponent = z.minus(total.align, z.number(total.point))
    return n.finish(signed, exponent, fmt, spec, spec.output_rounding, spec.output_fraction_bits, spec.flush_outputs)


def _taking_part(numbers: Sequence[Number]) -> list[Number]:
    return [x for x in numbers if x.part is not t.FALSE]


def scaled_product(a: Number, b: Number, scales: tuple[Number, ...], scaled_zero: str) -> Number:
    """Product of two operands and their block scales, exponents added up."""
    product = n.multiply(a, b)
    skip = bool(scales) and scaled_zero == "skip"
    part = t.both(product.part, t.negation(product.is_zero)) if skip else product.part
    for scale in scales:
        product = n.multiply(product, scale)
    return product._replace(part=t.both(part, product.part))


def _parametric(p: Pass) -> Term:
    spec, formats = as_parametric(p.spec), p.formats
    x, y, c = p.x, p.y, p.addend
    if spec.flush_inputs:
        x = [n.flushed(number, formats.a.emin) for number in x]
        y = [n.flushed(number, formats.b.emin) for number in y]
        c = n.flushed(c, formats.c.emin)
    products = [scaled_product(a, b, s, spec.scaled_zero) for a, b, s in zip(x, y, p.scales, strict=True)]
    products = [n.overflowed(product, spec.product_overflow_exponent) for product in products]
    if spec.normalised_products:
        products = [n.normalised(product) for product in products]
    early = [c] if spec.c_position == "early" else []
    total = fused_sum(spec, products, early, p.conditions)
    dot = t.constant(0, formats.d.bits) if total is None else rounded_sum(spec, total, formats.d)
    dot = n.with_specials(products + early, dot, formats.d, spec)
    if spec.c_position == "early":
        return dot
    late = [n.decode(formats.d, dot, spec), n.decode(formats.c, p.c, spec)]
    return n.ieee_sum(late, formats.d, spec, spec.late_rounding, spec.flush_outputs)


# -- the late-c chain ------------------------------------------------------------------------------------------------------
def _converted(fmt: Format, code: Term, via: Format, spec: Accumulator) -> Term:
    """An encoding of `fmt` in a format that has all its numbers."""
    x = n.decode(fmt, code, spec)
    exponent = z.minus(x.align, z.number(x.point))
    rounded = n.rounded_magnitude(x.negative, x.significand, exponent, via, "rne")
    finite = n.encoded(x.negative, z.as_bits(rounded.code, via.exponent_bits + via.fraction_bits), via)
    infinite = n.encoded(x.negative, t.constant(via.exponent_mask >> via.padding_bits, finite.width - 1), via)
    found = t.choose(x.inf, infinite, finite)
    return found if x.nan is t.FALSE else t.choose(x.nan, t.constant(via.nan_encoding(), via.bits), found)


def _interleaved(p: Pass) -> Term:
    spec, formats = p.spec, p.formats
    via = get_float_format(spec.via_format)
    a = [_converted(formats.a, code, via, spec) for code in p.a]
    b = [_converted(formats.b, code, via, spec) for code in p.b]
    inner, total = Formats(via, via, formats.d, formats.d), t.constant(0, formats.d.bits)
    for group in spec.group_order:
        members = [k for k in range(len(a)) if k // spec.run % spec.groups == group]
        for first in range(0, len(members), spec.dot.terms):
            ks = members[first : first + spec.dot.terms]
            part = Pass(
                spec.dot,
                tuple(a[k] for k in ks),
                tuple(b[k] for k in ks),
                total,
                inner,
                ((),) * len(ks),
                p.conditions,
            )
            total = _parametric(part)
    late = [n.decode(formats.d, total, spec), n.decode(formats.c, p.c, spec)]
    return n.ieee_sum(late, formats.d, spec, spec.final_rounding)


# -- FDRDA and GFDRDA ------------------------------------------------------------------------------------------------------
def _round_down(p: Pass) -> Term:
    spec, c = p.spec, p.addend
    products = [n.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)]
    limited = [n.overflowed(product, spec.product_overflow_exponent) for product in products]
    groups = [_taking_part(limited[i :: spec.parity_groups]) for i in range(spec.parity_groups)]
    sums = [_truncated_sum(group, spec.fraction_bits, "rz") for group in groups if group]
    if len(sums) == 2:
        sums = [_truncated_sum(sums, spec.fraction_bits, spec.add_rounding)]
    finite = _round_down_add(spec, _taking_part(sums), _taking_part([c]), p.formats.d)
    if spec.c_inf_with_overflow == "nan":
        return n.with_specials([*limited, c], finite, p.formats.d, spec)
    return n.with_specials([*products, c], n.with_specials(limited, finite, p.formats.d, spec), p.formats.d, spec)


def _truncated_sum(numbers: Sequence[Number], fraction_bits: int, rounding: str) -> Number:
    largest = n.largest_exponent(numbers)
    total = n.total_of([n.aligned(x, largest, fraction_bits, rounding) for x in numbers])
    return _as_number(total, largest, fraction_bits, t.either(*(x.part for x in numbers)))


def _round_down_add(spec: FusedDotRoundDownAdd, dot: list[Number], start: list[Number], fmt: Format) -> Term:
    parts = [*dot, *start]
    if not parts:
        return t.constant(0, fmt.bits)
    largest = n.largest_exponent(parts, spec.exponent_floor)
    bits = max(spec.dot_fraction_bits, spec.c_fraction_bits)
    addends = [
        z.scaled(n.aligned(x, largest, spec.dot_fraction_bits, spec.add_rounding), bits - spec.dot_fraction_bits)
        for x in dot
    ]
    for c in start:
        cut = n.aligned(c, largest, spec.c_fraction_bits, spec.add_rounding)
        if spec.c_cutoff is not None:
            far = z.less(c.align, z.minus(largest, z.number(spec.c_cutoff)))
            cut = z.select(far, n.aligned(c, largest, spec.c_fraction_bits, "rz"), cut)
        addends.append(z.scaled(cut, bits - spec.c_fraction_bits))
    total, exponent = n.total_of(addends), z.minus(largest, z.number(bits))
    if spec.sum_fraction_bits is not None:
        total, exponent = _rounded_down(total, exponent, spec.sum_fraction_bits)
    return n.finish(total, exponent, fmt, spec, spec.output_rounding)


def _rounded_down(total: Int, exponent: Int, fraction_bits: int) -> tuple[Int, Int]:
    """A sum normalised and rounded down to so many fraction bits."""
    negative = z.less(total, z.number(0))
    bits, places = z.normalised(z.magnitude(total))
    cut = bits.width - 1 - fraction_bits
    if cut <= 0:
        return total, exponent
    kept = z.shifted_right(z.natural(bits), z.number(cut), "rd", negative)
    return z.with_sign(negative, kept), z.minus(z.plus(exponent, z.number(cut)), places)


# -- GDFS ------------------------------------------------------------------------------------------------------------------
def _group_dot(p: Pass) -> Term:
    spec, x, y, c = p.spec, p.x, p.y, p.addend
    terms, everything = [c], [*x, *y, c]
    for start in range(0, len(x), spec.group):
        part = slice(start, start + spec.group)
        products = [n.multiply(a, b) for a, b in zip(x[part], y[part], strict=True)]
        total, exponent = exact_sum(products)
        takes_part = {
            "skip_zero_products": t.either(*(t.negation(product.is_zero) for product in products)),
            "skip": t.negation(z.is_zero(total)),
            "keeps_scale": t.TRUE,
        }[spec.scaled_zero]
        total = z.scaled(total, max(exponent.low, 0))
        group = _as_number(total, z.number(0), max(-exponent.low, 0), takes_part)
        for scale in p.scales[start]:
            group = n.multiply(group, scale)
            everything.append(scale)
        terms.append(group)
    addends = _taking_part(terms)
    if not addends:
        return n.with_specials(everything, t.constant(0, p.formats.d.bits), p.formats.d, spec)
    largest = n.largest_exponent(addends, spec.exponent_floor)
    total = n.total_of([n.aligned(number, largest, spec.fraction_bits, "rz") for number in addends])
    exponent = z.minus(largest, z.number(spec.fraction_bits))
    finite = n.finish(total, exponent, p.formats.d, spec, spec.output_rounding)
    return n.with_specials(everything, finite, p.formats.d, spec)


# -- chains of fused multiply-adds ------------------------------------------------------------------------------------------
def _sequential_fma(p: Pass) -> Term:
    spec, formats = p.spec, p.formats
    if spec.flush_inputs or spec.flush_outputs or spec.saturate or spec.nan == "x86":
        raise Unencodable(
            "a chain of fused multiply-adds that flushes, saturates or keeps NaN payloads has no encoding"
        )
    total = p.c
    for x, y in zip(p.x, p.y, strict=True):
        numbers = [n.multiply(x, y), n.decode(formats.c, total, spec)]
        total, formats = n.ieee_sum(numbers, formats.d, spec, spec.rounding), replace(formats, c=formats.d)
    return total


_ENCODINGS: dict[type[Accumulator], Callable[[Pass], Term]] = {
    FusedDotAdd: _parametric,
    ParametricDotAdd: _parametric,
    InterleavedDotAdd: _interleaved,
    FusedDotRoundDownAdd: _round_down,
    GroupFusedDotRoundDownAdd: _round_down,
    GroupDotFusedSum: _group_dot,
    SequentialFMA: _sequential_fma,
}
