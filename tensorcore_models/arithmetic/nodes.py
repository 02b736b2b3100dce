"""Keeps what the integers of a recording mean: products, cuts, sums and roundings, as a graph of nodes.

The functions of :mod:`tensorcore_models.arithmetic` say what they make (`operations.noted`), and only what they say is known: a
number to which a pass does anything else has no node, and so has nothing that is made of it. A node is therefore a statement
about every finite input, from which trees, words and bounds can be derived.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formats import Format
from . import operations
from .operations import Whole

if TYPE_CHECKING:
    from .numbers import Number


@dataclass(frozen=True, eq=False)
class Top:
    """A Top is an exponent that addends are aligned to.

    It is the largest of the exponents of `numbers`, or `floor` where that is larger, and from `least` to `most` above that.
    """

    numbers: tuple["Node", ...]
    floor: int | None
    least: int = 0
    most: int = 0


@dataclass(frozen=True, eq=False)
class Node:
    """A Node says how one number of a pass is made of others.

    Parameters
    ----------
    does : str
        How it is made: "operand" is a code that is given, "zero" a constant, "decoded" the number of a code, "product" that of
        all `of`, "same" the same number with another exponent, "flush" zero if it is below 2**`bits`, "cut" a multiple of
        2**(`top` - `bits`), "sum" an exact sum, "keep" rounded to `bits` fraction bits with an unbounded exponent, "round"
        rounded to `format`, "either" one of two by the data. A "part" is number `bits` of as many pieces of a product as
        `operand` says, which have its exponent and add up to it; a "tree" is added two by two, as far as addends take part,
        each time cut as a "cut" is; "wrap" is modulo a power of two.
    of : tuple of Node
        The nodes that it is made of.
    operand : tuple
        (side, term) of an operand: "a", "b", "scale_a", "scale_b" or "c".
    format : Format, optional
        Of what is decoded or rounded to.
    rounding, bits, top
        Of a cut or a rounding; `top` of a sum is the exponent that it keeps.
    flush : bool
        A result below the smallest normal number becomes zero.
    zero_rule : str
        The edge rule that says which exponent a decoded zero has.
    sure : bool
        Whether it is known which exponent it has, and that it is zero where it takes no part in an alignment.
    """

    does: str
    of: tuple["Node", ...] = ()
    operand: tuple[str, int] = ("", 0)
    format: Format | None = None
    rounding: str = ""
    bits: int = 0
    top: Top | None = None
    flush: bool = False
    zero_rule: str = ""
    sure: bool = True


#: The node of what is always zero.
ZERO = Node("zero")


def in_order(last: Node, inputs: Callable[[Node], Sequence[Node]] = lambda node: node.of) -> list[Node]:
    """Return a node after all that it is made of; nodes are as deep as a chain is long."""
    found: dict[Node, None] = {}
    stack = [last]
    while stack:
        missing = [x for x in inputs(stack[-1]) if x not in found]
        if missing:  # the first of them first
            stack += reversed(missing)
        else:
            found.setdefault(stack.pop())
    return list(found)


class Amount(NamedTuple):
    """An Amount says that an integer times 2**unit is the number of a node."""

    node: Node
    unit: Whole


def _equal(x: Whole, y: Whole) -> bool:
    """Return whether two values of a recording are known to be the same."""
    if type(x) is int or type(y) is int:
        return type(x) is type(y) and x == y
    return x.at == y.at


class Notes:
    """The Notes of one recording hold its nodes by the values that have them."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.numbers: dict[tuple[Any, ...], Node] = {}
        self.codes: dict[int, tuple[Node, Format]] = {}
        self.amounts: dict[int, list[Amount]] = {}
        self.tops: dict[int, Top] = {}
        self.assumed: list[tuple[Any, ...]] = []

    # -- found -----------------------------------------------------------------------------------------------------------
    @staticmethod
    def _key(number: "Number") -> tuple[Any, ...]:
        fields = (number.negative, number.significand, number.align, number.part)
        return (*(getattr(x, "at", (x,)) for x in fields), number.point)

    def of_number(self, number: "Number") -> Node | None:
        """Return the node of a number, None where it has none."""
        if type(number.significand) is int and number.significand == 0:
            return ZERO
        return self.numbers.get(self._key(number))

    def of_code(self, code: Any, fmt: Format) -> Node | None:
        """Return the node of a code of a format, None where it has none."""
        if type(code) is int:
            return ZERO if not code & fmt.magnitude_mask else None
        if (found := self.codes.get(code.at)) is not None:
            return found[0] if found[1] == fmt else None
        x = self.recorder.operations[code.at]
        if x.name == "choose":
            both = [self.of_code(self.recorder.value(at), fmt) for at in x.sources[1:]]
            return None if None in both else Node("either", tuple(both))  # type: ignore[arg-type]
        return Node("operand", operand=x.constant) if x.name == "input" else None

    def of_whole(self, whole: Whole, unit: Whole) -> Node | None:
        """Return the node of an integer in units of 2**unit, None where it has none."""
        if type(whole) is int:
            return None if whole else ZERO
        for known in self.amounts.get(whole.at, ()):
            if _equal(known.unit, unit):
                return known.node
        x = self.recorder.operations[whole.at]
        sources = [self.recorder.value(at) for at in x.sources]
        if x.name == "shl" and type(sources[1]) is int:
            return self.of_whole(sources[0], unit + sources[1])
        if x.name == "add":
            sources.sort(
                key=lambda y: self.recorder.operations[self.recorder.place(y)].name != "add"
            )  # as they were added
            return self._sum([self.of_whole(y, unit) for y in sources])
        if x.name == "choose":
            both = [self.of_whole(y, unit) for y in sources[1:]]
            return None if None in both else Node("either", tuple(both))  # type: ignore[arg-type]
        return None

    def top_of(self, exponent: Whole) -> Top | None:
        """Return what an exponent is the largest of, None where that is not known."""
        if type(exponent) is int:
            return Top((), exponent)
        if exponent.at in self.tops:
            return self.tops[exponent.at]
        x = self.recorder.operations[exponent.at]
        for at, top in list(self.tops.items()):
            base = self.recorder.value(at)
            more = exponent.low - base.low
            if _equal(base + more, exponent):
                return Top(top.numbers, top.floor, top.least + more, top.most + more)
            if x.name == "add" and at in x.sources:
                (rest,) = (s for s in x.sources if s != at) if len(set(x.sources)) > 1 else (at,)
                low, high = self.recorder.operations[rest][3:]
                return Top(top.numbers, top.floor, top.least + low, top.most + high)
        return None

    # -- kept: one method for each thing that `operations.noted` is told ------------------------------------------------
    def decoded(self, number: "Number", fmt: Format, code: Any, zero_rule: str) -> None:
        if (node := self.of_code(code, fmt)) is not None:
            self._keep(number, Node("decoded", (node,), format=fmt, zero_rule=zero_rule))

    def product(self, number: "Number", factors: Sequence["Number"]) -> None:
        nodes = tuple(map(self.of_number, factors))
        if None not in nodes:
            self._keep(number, ZERO if ZERO in nodes else Node("product", nodes))  # type: ignore[arg-type]

    def same(self, number: "Number", other: "Number", sure: bool = True) -> None:
        if (node := self.of_number(other)) is not None:
            self._keep(number, Node("same", (node,), sure=sure))

    def parts(self, number: "Number", product: "Number", index: int, count: int) -> None:
        if (node := self.of_number(product)) is not None:
            known = self.numbers.setdefault((*self._key(product), "parts"), node)  # one object for all parts
            self._keep(number, Node("part", (known,), operand=("", count), bits=index))

    def left_out(self, number: "Number", other: "Number", condition: Any) -> None:
        zero = operations.same(other.significand, 0)
        self.same(number, other, sure=getattr(zero, "at", zero) == getattr(condition, "at", condition))

    def flushed(self, number: "Number", other: "Number", below: int) -> None:
        if (node := self.of_number(other)) is not None:
            self._keep(number, Node("flush", (node,), bits=below))

    def largest(self, exponent: Whole, numbers: Sequence["Number"], floor: int | None) -> None:
        nodes = tuple(map(self.of_number, numbers))
        zeros = [x.align for x, node in zip(numbers, nodes, strict=True) if node is ZERO and x.part is not False]
        if None not in nodes and all(type(align) is int for align in zeros):
            least = max(zeros if floor is None else [*zeros, floor], default=None)
            self.tops.setdefault(exponent.at, Top(nodes, least))  # type: ignore[arg-type]

    def cut(self, whole: Whole, number: "Number", largest: Whole, bits: int, rounding: str) -> None:
        self.cut_total(whole, (number,), largest, bits, rounding)

    def cut_total(self, whole: Whole, numbers: Sequence["Number"], largest: Whole, bits: int, rounding: str) -> None:
        """Note a sum of cut numbers, some of which may always be cut to nothing."""
        nodes: Any = tuple(map(self.of_number, numbers))
        if None not in nodes:
            top = self.top_of(largest)
            if type(largest) is int and all(operations.high(x.align) <= largest for x in numbers):
                top = Top(nodes, largest)  # a floor that no number reaches
            cuts = [Node("cut", (x,), rounding=rounding, bits=bits, top=top) for x in nodes if x is not ZERO]
            node = self._sum(cuts)
            if node is not None:
                self._count(whole, node, largest - bits)

    def total(self, whole: Whole, numbers: Sequence["Number"], unit: Whole) -> None:
        """Note an integer that is the exact sum of numbers."""
        if (node := self._sum([self.of_number(x) for x in numbers])) is not None:
            self._count(whole, node, unit)

    def signed(self, number: "Number", whole: Whole) -> None:
        """Note the number of a signed integer in units of its last place."""
        if (node := self.of_whole(whole, number.exponent)) is not None:
            top = self.top_of(number.align)
            self._keep(number, Node("same", (node,), top=top, sure=top is not None))

    def tree(self, number: "Number", numbers: Sequence["Number"], bits: int, rounding: str, floor: int | None) -> None:
        """Note a tree of two-operand sums over those numbers that take part, which ends the assumption that all do."""
        nodes = tuple(map(self.of_number, numbers))
        keys = [self._key(x) for x in numbers]
        self.assumed = [key for key in self.assumed if key not in keys]
        if None not in nodes and len(nodes) > 1:
            top = Top(nodes, floor)  # type: ignore[arg-type]
            made = Node("tree", nodes, rounding=rounding, bits=bits, top=top)  # type: ignore[arg-type]
            self.numbers[self._key(number)] = made  # whichever of them take part

    def wrapped(self, whole: Whole, total: Whole, unit: Whole) -> None:
        if (node := self.of_whole(total, unit)) is not None:
            self._count(whole, Node("wrap", (node,)), unit)

    def assume(self, numbers: Sequence["Number"]) -> None:
        """Keep that numbers of which data decide whether they take part are taken to do so, until `tree` is told of them."""
        self.assumed += [self._key(x) for x in numbers if x.part is not True]

    def valued(self, whole: Whole, number: "Number") -> None:
        """Note the signed integer of a number in units of its last place."""
        if (node := self.of_number(number)) is not None:
            self._count(whole, node, number.exponent)

    def kept(self, number: "Number", other: "Number", bits: int, rounding: str) -> None:
        if (node := self.of_number(other)) is not None:
            self._keep(number, Node("keep", (node,), rounding=rounding, bits=bits))

    def added(self, number: "Number", added: "Number", addends: Sequence["Number"]) -> None:
        """Note a rounded sum, or one of its addends where the others take no part."""
        nodes = tuple(map(self.of_number, (added, *addends)))
        if None not in nodes:
            self._keep(number, Node("same", nodes[:1], top=Top(nodes, None)))  # type: ignore[arg-type]

    def kept_whole(self, whole: Whole, unit: Whole, of: tuple[Whole, Whole], bits: int, rounding: str) -> None:
        if (node := self.of_whole(*of)) is not None:
            self._count(whole, Node("keep", (node,), rounding=rounding, bits=bits), unit)

    def rounded(
        self, code: Any, total: Whole, exponent: Whole, fmt: Format, rounding: str, bits: int | None, flush: bool
    ) -> None:
        self._round(code, self.of_whole(total, exponent), fmt, rounding, bits, flush)

    def rounded_sum(self, code: Any, numbers: Sequence["Number"], fmt: Format, rounding: str, flush: bool) -> None:
        self._round(code, self._sum([self.of_number(x) for x in numbers]), fmt, rounding, None, flush)

    def converted(self, code: Any, number: "Number", fmt: Format, via: Format) -> None:
        """Note a code that is converted to nearest: exactly where the format holds every number of the other."""
        node = self.of_number(number)
        exact = fmt.precision <= via.precision and fmt.emax <= via.emax
        if node is not None and exact and via.emin - via.fraction_bits <= fmt.emin - fmt.fraction_bits:
            self.codes.setdefault(code.at, (node, via))
        else:
            self._round(code, node, via, "rne", None, False)

    def recoded(self, code: Any, other: Any, fmt: Format, below: int) -> None:
        """Note a code in which a zero stands for what is below 2**below."""
        if (node := self.of_code(other, fmt)) is not None:
            self.codes.setdefault(code.at, (Node("flush", (node,), bits=below), fmt))

    def like(self, code: Any, other: Any, fmt: Format) -> None:
        """Note a code that is another one but for the sign of a zero, and where it is an infinity or NaN."""
        if (node := self.of_code(other, fmt)) is not None:
            self.codes.setdefault(code.at, (node, fmt))

    def _round(self, code: Any, node: Node | None, fmt: Format, rounding: str, bits: int | None, flush: bool) -> None:
        if node is not None:
            kept = fmt.fraction_bits if bits is None else min(bits, fmt.fraction_bits)
            made = Node("round", (node,), format=fmt, rounding=rounding, bits=kept, flush=bool(flush))
            self.codes.setdefault(code.at, (made, fmt))

    def _keep(self, number: "Number", node: Node) -> None:
        self.numbers.setdefault(self._key(number), node)

    def _count(self, whole: Whole, node: Node, unit: Whole) -> None:
        self.amounts.setdefault(whole.at, []).append(Amount(node, unit))

    @staticmethod
    def _sum(nodes: Sequence[Node | None]) -> Node | None:
        """Return the node of an exact sum; sums of cut addends are one sum."""
        found: list[Node] = []
        for node in nodes:
            if node is None:
                return None
            if node.does == "sum" and node.of[0].does == "cut":
                found += node.of
            elif node is not ZERO:
                found.append(node)
        if len(found) < 2:
            return found[0] if found else ZERO
        return Node("sum", tuple(found))
