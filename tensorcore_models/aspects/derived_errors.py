"""Derives the error of one step from the nodes of its pass (:mod:`tensorcore_models.arithmetic.nodes`).

Let S be the sum of the sizes of all products and of c of a step, S_q the sum of the sizes of those that a node q adds, and E
the exponent of an alignment. The exact value of q is at most S_q. Four numbers of each node bound its error:

    |q - its exact value| <= own S_q + whole S + absolute + (units lost at each alignment) 2^E.

- A product and c are exact, except for flushed operands. Flushing loses less than the threshold times the largest other
  operand.
- A cut loses at most a unit of its last place, 2^(E - bits), or half a unit if it rounds to nearest.
- A sum loses the losses of its addends. Its `own` is the largest `own` of its addends, because the S_q of the addends add up to
  the S_q of the sum. The other three numbers are added.
- A rounding loses at most 2^-bits of the number, or half of that to nearest; for subnormal numbers that part of the smallest
  normal number.
- 2^E is the power of one of the aligned numbers. A normal number is at least its power. A zero or subnormal number has the
  smallest exponent of its format, or that of its edge rule. A sum that keeps the exponent E' of its own alignment has 2^E'. The
  size of a number is at most S_q plus its error. So 2^E is at most (1 + own) S_q + whole S + absolute of the largest aligned
  number. Lost units become parts of S_q if the aligned numbers are addends of q, and parts of S otherwise.

The derivation assumes nothing that the nodes do not state: each product and c must be added once, aligned to an exponent that
is known to be at least its own.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ..arithmetic.nodes import Node, Top, in_order
from ..arithmetic.program import meanings_of
from ..arithmetic.recorder import Unrecordable
from ..formats import Format, get_float_format
from .errors import (
    Alignment,
    OperandFacts,
    Roundings,
    StepError,
    compounded,
    cuts_text,
    rounding_text,
    roundings_to,
    scales_text,
    tiny_error,
    unit_of,
)

#: Exponent that replaces larger exponents, so that a float holds the power.
LARGEST = 1000


class Underivable(ValueError):
    """Underivable is raised for a pass whose error cannot be derived."""


@dataclass(frozen=True)
class Size:
    """A Size bounds a power of two by ``own S_q + whole S + absolute``."""

    own: float
    whole: float
    absolute: float

    def largest(self, other: "Size") -> "Size":
        return Size(*(max(x, y) for x, y in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class Lost:
    """A Lost holds the errors of a node, its addends (bit k for product k, the next bit for c) and the size of its exponent."""

    addends: int
    top: Size
    own: float = 0.0
    whole: float = 0.0
    absolute: float = 0.0
    #: Units of 2^E lost at each alignment that is not settled yet, and the roundings that lost them.
    units: dict[Top, tuple[float, tuple[Roundings, ...]]] = field(default_factory=dict)
    roundings: tuple[Roundings, ...] = ()


def _power(exponent: int) -> float:
    return math.ldexp(1.0, min(exponent, LARGEST))


def _small(decoded: Node) -> int:
    """Return the largest alignment exponent of a decoded number that is zero or subnormal."""
    assert decoded.format is not None
    return max(decoded.format.emin, -126 if decoded.zero_rule == "minus126" else decoded.format.emin)


class _Step:
    """A _Step bounds the error of each node of a pass, for operands with known facts."""

    def __init__(self, spec: Any, formats: Sequence[Any], terms: int, facts: OperandFacts, scaled: bool):
        self.spec, self.formats, self.terms, self.facts, self.scaled = spec, formats, terms, facts, scaled
        self.zero_rule = getattr(spec.inner, "zero_operand", "format_minimum")
        self.known: dict[Node, Lost] = {}
        #: Numbers for the derivation's text: how often addends without c, and others, are cut to so many bits; roundings.
        self.cuts: dict[tuple[int, str], Counter[bool]] = defaultdict(Counter)
        self.rounded: Counter[tuple[int, str]] = Counter()
        self.flushed = False
        self.pieces = 0

    def lost(self, node: Node) -> Lost:
        """Return the errors of a node."""

        def inputs(x: Node) -> Sequence[Node]:
            return () if self._is_addend(x) else (*x.of, *(x.top.numbers if x.top else ()))

        for x in in_order(node, inputs):
            self.known[x] = self._lost(x)
        return self.known[node]

    def _is_addend(self, node: Node) -> bool:
        """Return whether a node is a product or c, before any other operation."""
        while node.does in ("same", "flush", "decoded") and not node.top:
            node = node.of[0]
        return node.does in ("product", "operand")

    def _lost(self, node: Node) -> Lost:
        if not node.sure:
            raise Underivable("a number that takes no part in an alignment may be nonzero")
        if self._is_addend(node):
            return self._addend(node)
        return getattr(self, f"_{node.does}")(node, *(self.known[x] for x in node.of))

    # -- addends ---------------------------------------------------------------------------------------------------------
    def _operand(self, node: Node) -> tuple[tuple[str, int], int | None, int | None]:
        """Return an operand, a bound on its loss as an exponent of two (None: no loss), and the exponent of small numbers."""
        below: int | None = None
        floor: Any = None
        decoded, rule = None, ""
        while node.does != "operand":
            if node.does not in ("same", "flush", "decoded") or node.top or not node.sure:
                raise Underivable("operands are changed before they are multiplied")
            if node.does == "flush":
                below = node.bits if below is None else max(below, node.bits)
            if node.does == "decoded":
                if floor is None:
                    floor, rule = _small(node), node.zero_rule
                decoded = node
            node = node.of[0]
        side, term = node.operand
        if decoded is None or decoded.format is None:
            raise Underivable("the result is the code of an operand")
        if side in ("a", "b"):
            given = self.spec.operand_format(self.formats["ab".index(side)], "ab".index(side))
            if replace(decoded.format, name=given.name, dtype_name=given.dtype_name) != given:
                raise Underivable(f"operands are decoded as {decoded.format.name} in place of {given.name}")
            # A number that is small in a wider format after a conversion is small in its own format, too.
            small = self.facts.small["ab".index(side)]
            if rule == self.zero_rule and floor <= _small(replace(decoded, zero_rule=rule)):
                converted = floor < _small(decoded)
                floor = small if small is None or not converted else min(floor, small)
            if below is not None and below > given.emin:  # flushed normal numbers keep their exponents in the alignment
                floor = below if floor is None else max(floor, below)
        elif below is not None:
            floor = max(floor, below)
        return (side, term), below, floor

    def _addend(self, node: Node) -> Lost:
        product, below = node, None
        while product.does in ("same", "flush") and product.of[0].does != "operand" and product.does != "product":
            if not product.sure:
                raise Underivable("a number that takes no part in an alignment may be nonzero")
            below = product.bits if product.does == "flush" else below
            product = product.of[0]
        if product.does != "product":
            return self._c(node)
        if below is not None:
            raise Underivable("products are flushed")
        factors = list(product.of)
        while any(x.does == "product" for x in factors):
            factors = [y for x in factors for y in (x.of if x.does == "product" else (x,))]
        found = {operand: (lost, floor) for operand, lost, floor in map(self._operand, factors)}
        term = max(number for _, number in found)
        wanted = {(side, term) for side in ("a", "b", *(("scale_a", "scale_b") if self.scaled else ()))}
        if set(found) != wanted or len(factors) != len(wanted):
            raise Underivable(
                "a product has other factors than an operand of A, an operand of B and their block scales"
            )
        largest, lost, floors = self.facts.largest, 0.0, []
        for number, side in enumerate("ab"):
            flushed, floor = found[side, term]
            if flushed is not None:
                lost += self._flushed(number, flushed, floor)
                self.flushed = True
            if floor is not None:
                floors.append(floor + largest[1 - number])
        top = Size(1.0, 0.0, _power(max(floors)) if floors else 0.0)
        return Lost(1 << term, top, absolute=lost)

    def _flushed(self, number: int, below: int, small: int | None) -> float:
        """Return a bound on the loss of a product whose operand of A (`number` 0) or B is flushed below 2**below."""
        other, factors = self.facts.largest[1 - number], 4 if self.scaled else 2
        if below <= self.formats[number].emin:
            # Only subnormal numbers are flushed. Each factor is below 2 to the power of its exponent plus 1.
            lost = 0.0 if small is None else _power(small + other + factors)
            return lost if self.scaled else min(lost, _power(below + other + 1))
        if self.scaled:
            raise Underivable("block-scaled operands that are normal numbers are flushed")
        return _power(below + other + 1)

    def _c(self, node: Node) -> Lost:
        (side, _), below, floor = self._operand(node)
        if side != "c":
            raise Underivable("an operand is added without being multiplied")
        assert floor is not None
        lost = 0.0 if below is None else _power(below)
        self.flushed |= below is not None
        return Lost(1 << self.terms, Size(1.0, 0.0, _power(floor)), absolute=lost)

    # -- numbers made of addends --------------------------------------------------------------------------------------------
    def _zero(self, node: Node) -> Lost:
        return Lost(0, Size(0.0, 0.0, 0.0))

    def _same(self, node: Node, x: Lost) -> Lost:
        """Return the number with the exponent of its alignment, or with one that is at most that of its leading bit."""
        if node.top is not None:
            return replace(x, top=self._size(node.top, x.addends))
        y = self._all_settled(x)
        return replace(x, top=x.top.largest(Size(1 + y.own, y.whole, y.absolute)))

    def _flush(self, node: Node, x: Lost) -> Lost:
        self.flushed = True
        below = _power(node.bits)
        return replace(x, absolute=x.absolute + below, top=x.top.largest(Size(0.0, 0.0, below)))

    def _decoded(self, node: Node, x: Lost) -> Lost:
        return replace(x, top=Size(1 + x.own, x.whole, x.absolute + _power(_small(node))))

    def _cut(self, node: Node, x: Lost) -> Lost:
        top = node.top
        if top is None or not (node.of[0] in top.numbers and top.least >= 0):
            raise Underivable("an addend is cut at an exponent that may be below its own")
        lost = unit_of(node.rounding, 0.5, 1.0) * _power(-node.bits)
        self.cuts[node.bits, node.rounding][x.addends < 1 << self.terms] += 1
        units, roundings = x.units.get(top, (0.0, ()))
        rounding = roundings_to(node.bits - top.most, node.rounding)
        return replace(x, units=x.units | {top: (units + lost, (*roundings, rounding))})

    def _sum(self, node: Node, *addends: Lost) -> Lost:
        together, units = 0, dict[Top, tuple[float, tuple[Roundings, ...]]]()
        for x in addends:
            if together & x.addends:
                raise Underivable("an addend is added twice")
            together |= x.addends
            for top, (lost, roundings) in x.units.items():
                before, kept = units.get(top, (0.0, ()))
                units[top] = before + lost, (*kept, *roundings)
        found = Lost(
            together, Size(0.0, 0.0, 0.0), max(x.own for x in addends), sum(x.whole for x in addends),
            sum(x.absolute for x in addends), units, _side_by_side([x.roundings for x in addends]),
        )  # fmt: skip
        for top in units:
            found = self._settled(found, top, only_own=True)
        return found

    def _part(self, node: Node, product: Lost) -> Lost:
        """Return a piece of a product, which has the product's alignment; the sizes of all pieces add up to the product's."""
        _, count = node.operand
        term = product.addends.bit_length() - 1
        self.pieces = count
        addends = 1 << (self.terms + 1 + term * count + node.bits)
        return replace(product, addends=addends, absolute=product.absolute / count)

    @property
    def _products(self) -> int:
        """Return the bits of all products, or of all pieces of products, as addends."""
        if self.pieces:
            return (1 << self.terms * self.pieces) - 1 << self.terms + 1
        return (1 << self.terms) - 1

    def _splits(self, addends: int) -> bool:
        """Return whether addends contain some, but not all, pieces of a product."""
        pieces = addends >> self.terms + 1
        whole = (1 << self.pieces) - 1
        return any((pieces >> k * self.pieces) & whole not in (0, whole) for k in range(self.terms))

    def _tree(self, node: Node, *addends: Lost) -> Lost:
        """Return a binary tree of sums, each of which cuts both addends at an exponent that is at most that of all addends."""
        assert node.top is not None
        cuts = 2 * (len(addends) - 1)
        lost = unit_of(node.rounding, 0.5, 1.0) * _power(-node.bits)
        self.cuts[node.bits, node.rounding][True] += cuts
        found = self._sum(node, *addends)
        units = found.units | {node.top: (cuts * lost, (roundings_to(node.bits, node.rounding),) * cuts)}
        return self._settled(replace(found, units=units, top=self._size(node.top, found.addends)), node.top)

    def _wrap(self, node: Node, x: Lost) -> Lost:
        return replace(x, own=math.inf, absolute=math.inf)

    def _keep(self, node: Node, x: Lost) -> Lost:
        return self._shortened(self._all_settled(x), node, 0.0)

    def _round(self, node: Node, x: Lost) -> Lost:
        fmt = node.format
        assert fmt is not None
        tiny = fmt.min_normal if node.flush else tiny_error(fmt, node.bits, node.rounding)
        self.flushed |= node.flush
        return self._shortened(self._all_settled(x), node, tiny)

    def _shortened(self, x: Lost, node: Node, tiny: float) -> Lost:
        """Return a number rounded to fraction bits; the rounding of the smallest numbers loses at most `tiny`."""
        if self._splits(x.addends):
            raise Underivable("pieces of products are rounded before they are added")
        relative = unit_of(node.rounding, 0.5, 1.0) * 2.0**-node.bits
        self.rounded[node.bits, node.rounding] += 1
        return replace(
            x,
            own=compounded(x.own, relative),
            whole=x.whole * (1 + relative),
            absolute=x.absolute * (1 + relative) + tiny,
            roundings=(*x.roundings, roundings_to(node.bits, node.rounding)),
        )

    def _either(self, node: Node, x: Lost, y: Lost) -> Lost:
        if x.addends != y.addends:
            raise Underivable("the choice of addends depends on data")
        units = {
            top: max(x.units.get(top, (0.0, ())), y.units.get(top, (0.0, ())), key=lambda lost: lost[0])
            for top in {*x.units, *y.units}
        }
        roundings = _side_by_side([x.roundings, y.roundings])
        own, whole, absolute = (max(getattr(x, name), getattr(y, name)) for name in ("own", "whole", "absolute"))
        return Lost(x.addends, x.top.largest(y.top), own, whole, absolute, units, roundings)

    # -- alignments ------------------------------------------------------------------------------------------------------
    def _size(self, top: Top, addends: int) -> Size:
        """Return a bound on 2 to the exponent of an alignment, relative to the sizes of `addends` or of all addends."""
        size = Size(0.0, 0.0, 0.0 if top.floor is None else _power(top.floor))
        together = 0
        for x in (self.known[number] for number in top.numbers):
            size, together = size.largest(x.top), together | x.addends
        raised = _power(top.most)
        own, whole, absolute = size.own * raised, size.whole * raised, size.absolute * raised
        # The power of a piece may be that of the whole product.
        inside = together & ~addends == 0 and not self._splits(addends)
        return Size(own, whole, absolute) if inside else Size(0.0, own + whole, absolute)

    def _settled(self, x: Lost, top: Top, only_own: bool = False) -> Lost:
        size = self._size(top, x.addends)
        if only_own and not size.own:
            return x
        lost, roundings = x.units[top]
        merged = [_times(kind, count) for kind, count in Counter(roundings).items()]
        return replace(
            x,
            own=x.own + lost * size.own,
            whole=x.whole + lost * size.whole,
            absolute=x.absolute + lost * size.absolute,
            units={other: units for other, units in x.units.items() if other is not top},
            roundings=(*x.roundings, *merged),
        )

    def _all_settled(self, x: Lost) -> Lost:
        for top in x.units:
            x = self._settled(x, top)
        return x


def _times(rounding: Roundings, count: int) -> Roundings:
    """Return a rounding with its number multiplied by `count`."""
    return rounding._replace(number=rounding.number * count)


def _side_by_side(several: Sequence[tuple[Roundings, ...]]) -> tuple[Roundings, ...]:
    """Return the roundings of a sum from those of its addends: on each level the largest numbers and units.

    The squares of the addends' losses add up to at most the square of the loss if the worst addend were the whole sum.
    """
    longest = max(several, key=len, default=())
    found = []
    for level in range(len(longest)):
        here = [x[level] for x in several if level < len(x)]
        found.append(Roundings(*(max(values) for values in zip(*here, strict=True))))
    return tuple(found)


# -- the step ------------------------------------------------------------------------------------------------------------
@lru_cache(1024)
def _meanings(spec: Any, formats: tuple[Any, ...], scale: Format | None) -> tuple[Node, ...] | str:
    """Return the nodes of each kind of pass of a chain, or the reason why there are none."""
    try:
        return meanings_of(spec, formats, spec.terms_per_step, scale)
    except Unrecordable as error:
        return str(error)


def step_error(spec: Any, unit: Any, facts: OperandFacts | None) -> StepError:
    """Return the error of one step of an accumulator, derived from its pass.

    Parameters
    ----------
    spec : Accumulator
        The algorithm.
    unit : Engine
        Engine with its formats, block scales and label.
    facts : OperandFacts or None
        Exponents of the operands.

    Raises
    ------
    ValueError
        If no error can be derived; the message gives the reason.
    """
    a, b, c, d = unit.formats
    terms = spec.terms_per_step
    scale = None if unit.scale_format is None else get_float_format(unit.scale_format)
    found = []
    for addend in dict.fromkeys((c, d)):  # the addends of the first pass of a chain and of later passes
        nodes = _meanings(spec, (a, b, addend, d), scale)
        try:
            if isinstance(nodes, str) or facts is None:
                raise Underivable(nodes if isinstance(nodes, str) else "operands are not floating-point numbers")
            for node in nodes:
                found.append(_error_of(_Step(spec, (a, b, addend, d), terms, facts, scale is not None), node, unit))
        except Underivable as error:
            raise ValueError(f"{unit.label}: no bound is derived for {type(spec).__name__}: {error}") from error
    last = found[-1]
    return replace(
        last,
        relative=max(x.relative for x in found),
        absolute=max(x.absolute for x in found),
        alignment=last.alignment if all(x.alignment == last.alignment for x in found) else None,
        roundings=last.roundings if all(x.roundings == last.roundings for x in found) else (),
    )


def _error_of(step: _Step, node: Node, unit: Any) -> StepError:
    lost = step.lost(node)
    if lost.addends != step._products | 1 << step.terms or lost.units:
        raise Underivable("a product or c is not added")
    texts = ["a sum may wrap around, so there is no bound"] if lost.own == math.inf else []
    for (bits, rounding), count in step.cuts.items():
        size = count.total() * unit_of(rounding, 0.5, 1.0) * 2.0**-bits
        number = " + ".join(str(count[x]) for x in (True, False) if count[x])
        texts.append(cuts_text(number, bits, size))
    for (bits, rounding), times in step.rounded.items():
        lose = times * unit_of(rounding, 0.5, 1.0) * 2.0**-bits
        texts.append(rounding_text(times, rounding, bits, lose))
    text = "; ".join([*texts, *(["small numbers are flushed"] if step.flushed else [])])
    relative = lost.own + lost.whole
    roundings = () if lost.whole else lost.roundings
    derivation = (text, *scales_text(unit))
    return StepError(relative, lost.absolute, step.terms, derivation, _alignment(step, node), roundings)


def _alignment(step: _Step, node: Node) -> Alignment | None:
    """Return the parts of alpha of a pass that aligns all addends once, adds them exactly and rounds once; else None."""
    if node.does != "round" or step.flushed:
        return None
    total = node.of[0]
    while total.does == "same":
        total = total.of[0]
    cuts = total.of
    if (
        total.does != "sum"
        or len(cuts) != step.terms + 1
        or len({(x.does, x.top, x.bits, x.rounding) for x in cuts}) > 1
    ):
        return None
    if cuts[0].does != "cut" or not all(step._is_addend(x.of[0]) for x in cuts):
        return None
    assert cuts[0].top is not None
    if cuts[0].top.most:
        return None
    unit = unit_of(cuts[0].rounding, 0.5, 1.0) * _power(cuts[0].top.most - cuts[0].bits)
    last = unit_of(node.rounding, 0.5, 1.0) * 2.0**-node.bits
    return Alignment(step.terms * unit, unit, last, (cuts[0].rounding, node.rounding) == ("rz", "rz"))
