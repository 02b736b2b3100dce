"""This module keeps the meaning of a recording's integers as a graph of nodes: products, truncations, sums and roundings.

The functions of :mod:`tensorcore_models.arithmetic` report their results (`operations.noted`), and only reported results have
nodes. A number that a pass computes in any other way has no node, and neither has a number computed from it. A node therefore
holds for every finite input, and trees, words and bounds can be derived from it.
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
    """`Top` is an exponent that addends are aligned to.

    It lies `least` to `most` above the larger of `floor` and the largest exponent of `numbers`.
    """

    numbers: tuple["Node", ...]
    floor: int | None
    least: int = 0
    most: int = 0


@dataclass(frozen=True, eq=False)
class Node:
    """`Node` says how one number of a pass is computed from other numbers.

    Parameters
    ----------
    does : str
        Name of the operation. "operand" is an encoding that is given, "zero" a constant, "decoded" the number of an encoding,
        "product" the product of all `of`, "same" the same number with another exponent. "flush" gives zero if the number is
        below 2**`bits`, "cut" truncates to a multiple of 2**(`top` - `bits`), "sum" is an exact sum, "keep" rounds to `bits`
        fraction bits with an unbounded exponent, "round" rounds to `format`, "either" is one of two numbers, depending on the
        data. A product is split into "part" nodes, which have its exponent and add up to it: `bits` is the number of the part,
        `operand` holds how many there are. "tree" adds the addends that take part pairwise and truncates each sum as "cut"
        does; "wrap" is the remainder modulo a power of two.
    of : tuple of Node
        Nodes of the numbers that it is computed from.
    operand : tuple
        (side, term) of an operand, where the side is "a", "b", "scale_a", "scale_b" or "c".
    format : Format, optional
        Format that the node decodes from or rounds to.
    rounding, bits, top
        Rounding, fraction bits and alignment exponent of a "cut" or a rounding; `top` of a sum is the exponent that it keeps.
    flush : bool
        Whether a result below the smallest normal number becomes zero.
    zero_rule : str
        Edge rule that gives the exponent of a decoded zero.
    sure : bool
        Whether the number's exponent is known, and the number is zero wherever it takes no part in an alignment.
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


#: The node of numbers that are always zero.
ZERO = Node("zero")


def in_order(last: Node, inputs: Callable[[Node], Sequence[Node]] = lambda node: node.of) -> list[Node]:
    """Return all nodes that `last` is computed from, inputs first and `last` at the end; no recursion, as chains are deep."""
    found: dict[Node, None] = {}
    stack = [last]
    while stack:
        missing = [x for x in inputs(stack[-1]) if x not in found]
        if missing:  # reversed, so that the first input comes first
            stack += reversed(missing)
        else:
            found.setdefault(stack.pop())
    return list(found)


class Amount(NamedTuple):
    """`Amount` says that an integer times 2**unit is the number of a node."""

    node: Node
    unit: Whole


def _equal(x: Whole, y: Whole) -> bool:
    """Return whether two values of a recording are known to be the same."""
    if type(x) is int or type(y) is int:
        return type(x) is type(y) and x == y
    return x.at == y.at


class Notes:
    """`Notes` holds the nodes of one recording, keyed by the recorded values."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.numbers: dict[tuple[Any, ...], Node] = {}
        self.codes: dict[int, tuple[Node, Format]] = {}
        self.amounts: dict[int, list[Amount]] = {}
        self.tops: dict[int, Top] = {}
        self.assumed: list[tuple[Any, ...]] = []

    # -- look nodes up -----------------------------------------------------------------------------------------------------
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
        """Return the node of an encoding in a format, None where it has none."""
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
            )  # in the order of the additions
            return self._sum([self.of_whole(y, unit) for y in sources])
        if x.name == "choose":
            both = [self.of_whole(y, unit) for y in sources[1:]]
            return None if None in both else Node("either", tuple(both))  # type: ignore[arg-type]
        return None

    def top_of(self, exponent: Whole) -> Top | None:
        """Return the `Top` of an exponent, None where it is not known to be the largest exponent of numbers."""
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

    # -- keep nodes: one method for each name that `operations.noted` is given -------------------------------------------
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
        """Note a sum of truncated numbers; numbers that are always zero are left out."""
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
        """Note an integer as the exact sum of numbers."""
        if (node := self._sum([self.of_number(x) for x in numbers])) is not None:
            self._count(whole, node, unit)

    def signed(self, number: "Number", whole: Whole) -> None:
        """Note a number that is made of a signed integer in units of its last place."""
        if (node := self.of_whole(whole, number.exponent)) is not None:
            top = self.top_of(number.align)
            self._keep(number, Node("same", (node,), top=top, sure=top is not None))

    def tree(self, number: "Number", numbers: Sequence["Number"], bits: int, rounding: str, floor: int | None) -> None:
        """Note a tree of two-operand sums over the numbers that take part, so that nothing is assumed about them any more."""
        nodes = tuple(map(self.of_number, numbers))
        keys = [self._key(x) for x in numbers]
        self.assumed = [key for key in self.assumed if key not in keys]
        if None not in nodes and len(nodes) > 1:
            top = Top(nodes, floor)  # type: ignore[arg-type]
            made = Node("tree", nodes, rounding=rounding, bits=bits, top=top)  # type: ignore[arg-type]
            self.numbers[self._key(number)] = made  # true for every choice of numbers that take part

    def wrapped(self, whole: Whole, total: Whole, unit: Whole) -> None:
        if (node := self.of_whole(total, unit)) is not None:
            self._count(whole, Node("wrap", (node,)), unit)

    def assume(self, numbers: Sequence["Number"]) -> None:
        """Remember the assumption that all numbers take part, although data decide it, until `tree` notes these numbers."""
        self.assumed += [self._key(x) for x in numbers if x.part is not True]

    def valued(self, whole: Whole, number: "Number") -> None:
        """Note the signed integer of a number in units of its last place."""
        if (node := self.of_number(number)) is not None:
            self._count(whole, node, number.exponent)

    def kept(self, number: "Number", other: "Number", bits: int, rounding: str) -> None:
        if (node := self.of_number(other)) is not None:
            self._keep(number, Node("keep", (node,), rounding=rounding, bits=bits))

    def added(self, number: "Number", added: "Number", addends: Sequence["Number"]) -> None:
        """Note a rounded sum; where only one addend takes part, the number is that addend."""
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
        """Note an encoding converted to nearest; the conversion is exact if `via` holds every number of `fmt`."""
        node = self.of_number(number)
        exact = fmt.precision <= via.precision and fmt.emax <= via.emax
        if node is not None and exact and via.emin - via.fraction_bits <= fmt.emin - fmt.fraction_bits:
            self.codes.setdefault(code.at, (node, via))
        else:
            self._round(code, node, via, "rne", None, False)

    def recoded(self, code: Any, other: Any, fmt: Format, below: int) -> None:
        """Note an encoding in which numbers below 2**below became zero."""
        if (node := self.of_code(other, fmt)) is not None:
            self.codes.setdefault(code.at, (Node("flush", (node,), bits=below), fmt))

    def like(self, code: Any, other: Any, fmt: Format) -> None:
        """Note an encoding that equals another one except for signs of zeros, infinities and NaN."""
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
        """Return the node of an exact sum; nested sums of truncated addends become one sum."""
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
