"""Writes expressions that share parts as text: an index in which parts differ becomes k, and a repeated part gets a name."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .common_forms import LARGEST_DIVISOR, derived_text
from .nodes import Applied, Constant, DerivedConstant, Element, Masked, Node, Step, all_within, operands_of

#: Largest number of nodes of an expression that is spelled out inside another one; larger ones get names.
LARGEST = 24
#: Fewest leaves of a sum, maximum or minimum that are written as one expression over k.
FEWEST = 4
#: Most characters of an order of leaves.
_WIDEST = 160


Parts = dict[tuple, Node]


@dataclass(frozen=True)
class _SpelledConstant(Constant):
    """`_SpelledConstant` is a constant that changes with the index of a sum."""

    spelled: str

    def text(self) -> str:
        return self.spelled


def unified(
    nodes: tuple[Node, ...], letter: str, parts: Parts, ks: tuple[int, ...] = ()
) -> tuple[Node, tuple[int, ...]] | None:
    """Return the one form of expressions, with `letter` for the index in which they differ, and the index's values; None if
    there is none.

    The values are empty if the expressions are equal. With `ks`, the values of the index, other indices and constants may be
    quotients and remainders of it. `parts` holds the forms made so far, so that equal forms are one object.
    """
    return _Unified(letter, parts, ks).of(nodes)


class _Unified:
    """`_Unified` builds one form of several expressions; shared parts are visited once."""

    def __init__(self, letter: str, parts: Parts, ks: tuple[int, ...]):
        self.letter, self.parts, self.ks = letter, parts, ks
        self._known: dict[tuple[int, ...], tuple[Node, tuple[int, ...]] | None] = {}

    def of(self, nodes: tuple[Node, ...]) -> tuple[Node, tuple[int, ...]] | None:
        """Return the common form and the values of its index."""
        first = nodes[0]
        if all(node is first for node in nodes):
            part = ("constant", first.bits) if isinstance(first, Constant) else ("same", id(first))
            return self.parts.setdefault(part, first), ()
        key = tuple(map(id, nodes))
        if key not in self._known:
            self._known[key] = self._new(nodes)
        return self._known[key]

    def _new(self, nodes: tuple[Node, ...]) -> tuple[Node, tuple[int, ...]] | None:
        first = nodes[0]
        if any(isinstance(node, Masked) for node in nodes):
            return self._masked(nodes)
        if any(type(node) is not type(first) for node in nodes):
            return None
        if isinstance(first, Constant):
            return self._constant(nodes)
        if isinstance(first, DerivedConstant):
            return (first, ()) if all(node == first for node in nodes) else None
        if isinstance(first, Element):
            return self._element(nodes)
        heads = {_head(node) for node in nodes}
        if len(heads) != 1:
            return None
        columns = [self.of(column) for column in zip(*map(operands_of, nodes), strict=True)]
        values = {found[1] for found in columns if found is not None and found[1]}
        if len(values) > 1 or any(found is None for found in columns):
            return None
        made = _made(first, [found[0] for found in columns if found is not None])
        key = (*_head(made), *map(id, operands_of(made)))
        return self.parts.setdefault(key, made), values.pop() if values else ()

    def _masked(self, nodes: tuple[Node, ...]) -> tuple[Node, tuple[int, ...]] | None:
        """Unify choices with the same bound, or a bound that follows the index.

        An output without a mask counts as bounded below all.
        """
        masks = [node for node in nodes if isinstance(node, Masked)]
        if len({(mask.axis, mask.low) for mask in masks}) > 1:
            return None
        above = self.of(tuple(node.above if isinstance(node, Masked) else node for node in nodes))
        below = self.of(tuple(node.below if isinstance(node, Masked) else masks[0].below for node in nodes))
        if above is None or below is None or (above[1] and below[1] and above[1] != below[1]):
            return None
        first, values, bound = masks[0], above[1] or below[1], masks[0].bound
        if len(masks) < len(nodes) or any(mask.bound != bound for mask in masks):
            if len(values) != len(nodes) or not all(isinstance(mask.bound, int) for mask in masks):
                return None
            apart = {node.bound - at for node, at in zip(nodes, values, strict=True) if isinstance(node, Masked)}
            step = min(apart)
            free = (at + step for node, at in zip(nodes, values, strict=True) if not isinstance(node, Masked))
            if len(apart) > 1 or any(at > first.low for at in free):
                return None
            bound = self.letter + (f" + {step}" if step else "")
        key = ("masked", first.axis, bound, id(below[0]), id(above[0]))
        return self.parts.setdefault(key, Masked(first.axis, bound, first.low, below[0], above[0])), values

    def _constant(self, nodes: tuple) -> tuple[Node, tuple[int, ...]] | None:
        values = [node.bits for node in nodes]
        if len({*values}) == 1:
            return self.parts.setdefault(("constant", values[0]), nodes[0]), ()
        steps = np.gcd.reduce(np.array(values, dtype=object)) if self.ks else 0
        text = self._following([value // steps for value in values]) if steps else ""
        if not text:
            return None
        spelled = _SpelledConstant(values[0], text if steps == 1 else f"{steps} * ({text})")
        return self.parts.setdefault(("spelled", spelled.spelled), spelled), self.ks

    def _following(self, values: list[int]) -> str:
        """Return values as quotient or remainder of the index of the sum; empty if they are neither."""
        if max(values) >= 1 << 32:
            return ""
        return derived_text(self.letter, np.array(self.ks), np.array(values, np.int64), most=LARGEST_DIVISOR)

    def _element(self, nodes: tuple) -> tuple[Node, tuple[int, ...]] | None:
        first = nodes[0]
        if any((node.array, len(node.index)) != (first.array, len(first.index)) for node in nodes):
            return None
        apart = [
            axis for axis, places in enumerate(zip(*(node.index for node in nodes), strict=True)) if len({*places}) > 1
        ]
        if not apart:
            return self.parts.setdefault((first.array, first.index), first), ()
        axis = apart[0]
        if len(apart) > 1 or len({node.index[axis][1] for node in nodes}) > 1:
            return None
        values = tuple(node.index[axis][0] for node in nodes)
        steps = first.index[axis][1]
        if any(steps) or not all(isinstance(value, int) for value in values):
            return None
        letter = self.letter
        if self.ks and values != self.ks:
            letter, values = self._following(list(values)), self.ks
            if not letter:
                return None
        index = (*first.index[:axis], (letter, steps), *first.index[axis + 1 :])
        return self.parts.setdefault((first.array, index), Element(first.array, first.name, index)), values


def _head(node: Any) -> tuple:
    if isinstance(node, Applied):
        return node.key, len(node.operands)
    return str(node.row), node.signs, len(node.left)


def _made(like: Any, operands: list) -> Node:
    if isinstance(like, Applied):
        return Applied(like.name, like.line, tuple(operands), like.meaning)
    count = len(like.left)
    return Step(like.row, like.line, tuple(operands[:count]), tuple(operands[count:-1]), operands[-1], like.signs)


def nibble_of(node: Node) -> tuple[Node, str] | None:
    """Return (x, n) of an expression that is four bits of x starting at bit 4 n; None for another expression."""
    if not isinstance(node, Applied) or node.meaning is None or node.meaning.operation != "and":
        return None
    if Constant(15) not in node.operands:
        return None
    inside = node.operands[node.operands[0] == Constant(15)]
    m = inside.meaning if isinstance(inside, Applied) else None
    if m is None or m.operation != "shr":
        return None
    what, by = inside.operands[::-1] if m.turned else inside.operands
    if type(by) is Constant:
        return (what, str(by.bits // 4)) if by.bits % 4 == 0 else None
    told = by.text() if isinstance(by, Constant | DerivedConstant) else ""
    return (what, told[len("4 * (") : -1]) if told.startswith("4 * (") else None


class Texts:
    """`Texts` writes the expressions of one output.

    `named` holds the expressions that got a name and are still to be written out.
    """

    def __init__(self):
        self.names: dict[int, str] = {}
        self.named: list[Node] = []
        self._sizes: dict[int, int] = {}
        self._kept: list[Node] = []
        self.parts: Parts = {}

    def of(self, node: Node) -> str:
        """Return an expression in one line."""
        if isinstance(node, Element | Constant | DerivedConstant):
            return node.text()
        self._kept.append(node)  # names are keyed by identity, so a node must not be freed
        if id(node) in self.names or self.size(node) > LARGEST:
            return self.name(node)
        if (part := nibble_of(node)) is not None:
            return f"nibble({self.of(part[0])}, {part[1]})"
        if isinstance(node, Applied):
            return f"{node.name}({', '.join(map(self.of, node.operands))})"
        if isinstance(node, Masked):
            return f"({node.condition} ? {self.of(node.below)} : {self.of(node.above)})"
        return self._step(node)

    def name(self, node: Node) -> str:
        """Return the name of an expression, which is written out later."""
        if id(node) not in self.names:
            self.names[id(node)] = f"t{len(self.names) + 1}"
            self.named.append(node)
        return self.names[id(node)]

    def _step(self, node: Step) -> str:
        """Return a chain of steps as a call: the factors, the values of an inner index l, and the start."""
        sides: list[tuple] = [(), ()]
        start, row = node, str(node.row)
        while isinstance(start, Step) and (str(start.row), start.signs) == (row, node.signs):
            sides = [start.left + sides[0], start.right + sides[1]]
            start = start.addend
        found = [unified(side, "l", self.parts) for side in sides]
        if any(each is None for each in found):
            return self.name(node)
        (left, values), (right, others) = (each for each in found if each is not None)
        values = values or others
        over = (
            f", l {values[0]}:{values[-1] + 1}" if values and values == tuple(range(values[0], values[-1] + 1)) else ""
        )
        signs = ["-" if sign < 0 else "" for sign in node.signs]
        begin = "" if start == Constant(0) else f" from {self.of(start)}"
        return f"{row}({signs[0]}{self.of(left)} * {signs[1]}{self.of(right)}{over}{begin})"

    def size(self, node: Node) -> int:
        """Return the number of nodes of an expression when spelled out, where a chain is one node.

        If the number is above the limit, the result is some number above the limit.
        """
        if id(node) not in self._sizes:
            self._kept.append(node)
            if isinstance(node, Step):
                plain = all(isinstance(side[0], Element | Constant) for side in (node.left, node.right))
                found = 4 if plain else LARGEST + 1
                inside: Node = node
                while isinstance(inside, Step):
                    inside = inside.addend
                found += 0 if isinstance(inside, Constant) else self.size(inside)
            else:
                found = 1 + sum(map(self.size, operands_of(node)))
            self._sizes[id(node)] = min(found, 1 << 20)
        return self._sizes[id(node)]

    def along(self, operands: tuple, sign: int, letter: str, ks: tuple[int, ...] = ()) -> tuple[str, tuple[int, ...]]:
        """Return the form of operands, with a letter for the index in which they differ, and the values of the index; drop
        zeros at the end."""
        whole = list(operands)
        while len(whole) > 1 and isinstance(whole[-1], Constant) and whole[-1].bits == 0:
            whole.pop()
        prefix = "-" if sign < 0 else ""
        if all(isinstance(operand, Constant) and operand.bits == 0 for operand in whole):
            return "{0}", ()
        found = _alone(whole[0], letter) if len(whole) == 1 else unified(tuple(whole), letter, self.parts, ks)
        if found is not None and found[1]:
            return prefix + self.of(found[0]), found[1]
        return prefix + "{" + ", ".join(map(self.of, whole[:4])) + (", ..." if len(whole) > 4 else "") + "}", ()


def letter_beside(node: Node) -> str:
    """Return the letter for an index of sums in an expression: k, or l if k already stands for an index of the expression
    itself."""
    taken = any(
        isinstance(inside, Element) and any(value == "k" for value, _ in inside.index) for inside in all_within(node)
    )
    return "l" if taken else "k"


def _alone(node: Node, letter: str) -> tuple[Node, tuple[int, ...]] | None:
    """Return the form of a single operand: k is the first index of its elements that does not step with the output."""
    if isinstance(node, Element):
        axis = next((a for a, (c, steps) in enumerate(node.index) if isinstance(c, int) and not any(steps)), None)
        if axis is None:
            axis = 0 if len(node.index) == 1 and isinstance(node.index[0][0], int) else None
        if axis is None:
            return node, ()
        value, steps = node.index[axis]
        return Element(node.array, node.name, (*node.index[:axis], (letter, steps), *node.index[axis + 1 :])), (value,)
    if not isinstance(node, Applied):
        return node, ()
    parts = [_alone(operand, letter) for operand in node.operands]
    values = {part[1] for part in parts if part is not None and part[1]}
    operands = [part[0] for part in parts if part is not None]
    return _made(node, operands), values.pop() if len(values) == 1 else ()


def leaves_in_order(node: Applied) -> tuple[tuple[Node, ...], str]:
    """Return the leaves of a tree of one binary operation, and the shape of the tree with # for each leaf."""
    if not isinstance(node, Applied) or len(node.operands) != 2:
        return (node,), "#"
    leaves: list[Node] = []

    def shape(part: Node) -> str:
        if isinstance(part, Applied) and part.key == node.key and len(part.operands) == 2:
            return f"({shape(part.operands[0])} {shape(part.operands[1])})"
        leaves.append(part)
        return "#"

    text = shape(node)
    return tuple(leaves), text


def tree_over_k(node: Node, parts: Parts) -> tuple[Node, str] | None:
    """Return the one form of the leaves of a tree of one operation, and their order over k; None if they have no one form."""
    if not isinstance(node, Applied):
        return None
    leaves, shape = leaves_in_order(node)
    if len(leaves) < FEWEST or (found := unified(leaves, "k", parts)) is None or not found[1]:
        return None
    numbers = iter(map(str, found[1]))
    order = "".join(next(numbers) if letter == "#" else letter for letter in shape)
    return found[0], order if len(order) <= _WIDEST else f"{order[:_WIDEST]} ..."
