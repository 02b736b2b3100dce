"""Nodes of an expression: elements of inputs, constants, operations, steps of matrix instructions, choices by an index."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .isa.meaning import Meaning
from .isa.types import bits_of

#: Names of an output's indices; k is the index of sums.
AXES = "ijuvw"


@dataclass(frozen=True)
class DerivedIndex:
    """An index that is no linear function of the output's: a quotient, a remainder, or what a kernel loaded.

    Attributes
    ----------
    axis : int
        The output's axis whose index it follows.
    text : str
        As it is written.
    table : tuple of (int, int)
        Its value for each of the output's indices.
    """

    axis: int
    text: str
    table: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return self.text

    def at(self, place: Sequence[int]) -> int:
        """Return its value at a place of the output; the first one where the output has no such element."""
        return dict(self.table).get(int(place[self.axis]), self.table[0][1])


@dataclass(frozen=True)
class Element:
    """An element of an input: for each axis (constant, step for each of the output's axes).

    A :class:`DerivedIndex` or the letter of an index of sums may stand for a constant.
    """

    array: int
    name: str
    index: tuple[tuple[Any, tuple[int, ...]], ...]

    def text(self, replaced: int | None = None) -> str:
        """As a[i, 5]; the constant of axis `replaced` is k."""
        return (
            f"{self.name}[{', '.join(_index_text(c, s, axis == replaced) for axis, (c, s) in enumerate(self.index))}]"
        )


def _index_text(constant: int, steps: tuple[int, ...], replaced: bool) -> str:
    parts = [name if step == 1 else f"{step}{name}" for step, name in zip(steps, AXES, strict=False) if step]
    if replaced or not parts or constant:
        parts.append("k" if replaced else str(constant))
    return " + ".join(parts)


@dataclass(frozen=True)
class Constant:
    """A value that rests on no input, as an encoding."""

    bits: int

    def text(self) -> str:
        """Return the encoding."""
        return "0" if self.bits == 0 else f"{self.bits:#x}"


@dataclass(frozen=True)
class DerivedConstant:
    """A value that rests on no input and follows one of the output's indices, as 4 * (j mod 8) in the shift of a nibble.

    Attributes
    ----------
    axis : int
        The output's axis whose index it follows.
    spelled : str
        As it is written.
    table : tuple of (int, int)
        Its encoding for each of the output's indices.
    """

    axis: int
    spelled: str
    table: tuple[tuple[int, int], ...]

    def text(self) -> str:
        """As a quotient or remainder of the index."""
        return self.spelled


@dataclass(frozen=True)
class Applied:
    """An operation on values."""

    name: str
    line: int
    operands: tuple
    meaning: Meaning | None = None

    @property
    def key(self) -> Meaning | str:
        """Return the meaning that it computes, or the name of an operation that has none."""
        return self.meaning or self.name

    def text(self) -> str:
        """As a call."""
        return f"{self.name}({', '.join(operand.text() for operand in self.operands)})"


@dataclass(frozen=True)
class Step:
    """One step of a matrix instruction: the factors of its products in the unit's order, and the addend."""

    row: Any
    line: int
    left: tuple
    right: tuple
    addend: Any
    signs: tuple[int, int]

    def text(self) -> str:
        """As a call that names the first factors."""
        return f"{self.row}({self.left[0].text()} {self.right[0].text()} ..., {self.addend.text()})"


@dataclass(frozen=True)
class Masked:
    """One of two expressions by an index of the output, as masks along an axis choose: `below` where it is less than `bound`.

    `low` is the least index of the outputs; the letter of an index of sums may be part of the bound.
    """

    axis: int
    bound: Any
    low: int
    below: Any
    above: Any

    @property
    def condition(self) -> str:
        """As i < 5."""
        return f"{AXES[self.axis]} < {self.bound}"

    def text(self) -> str:
        """As a choice."""
        return f"({self.condition} ? {self.below.text()} : {self.above.text()})"


Node = Element | Constant | DerivedConstant | Applied | Step | Masked


def operands_of(node: Node) -> tuple:
    """Return the operands from which a node is computed."""
    if isinstance(node, Applied):
        return node.operands
    if isinstance(node, Masked):
        return node.below, node.above
    return (*node.left, *node.right, node.addend) if isinstance(node, Step) else ()


def all_within(root: Node) -> Iterator[Node]:
    """Yield a node and all below it, each once."""
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack += operands_of(node)
            yield node


def width_of(node: Node) -> int | None:
    """Return bits of a value by what computed it; None of inputs and constants."""
    if isinstance(node, Step):
        return node.row.formats[3].bits
    return bits_of(node.meaning.result) if isinstance(node, Applied) and node.meaning is not None else None
