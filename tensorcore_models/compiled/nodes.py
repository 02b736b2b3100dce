"""Defines the nodes of an expression: elements of inputs, constants, operations, steps of matrix instructions, choices by an
index."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .isa.meaning import Meaning
from .isa.types import bits_of

#: Names of an output's indices; k is the index of sums.
AXES = "ijuvw"


@dataclass(frozen=True)
class DerivedIndex:
    """`DerivedIndex` is an index that is no linear function of the output's: a quotient, a remainder, or a loaded value.

    Attributes
    ----------
    axis : int
        Axis of the output on whose index it depends.
    text : str
        Text of the index.
    table : tuple of (int, int)
        Value for each of the output's indices.
    """

    axis: int
    text: str
    table: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return self.text

    def at(self, place: Sequence[int]) -> int:
        """Return the value at a place of the output; the first value if the output has no such element."""
        return dict(self.table).get(int(place[self.axis]), self.table[0][1])


@dataclass(frozen=True)
class Element:
    """`Element` is an element of an input; for each axis it holds (constant, step for each of the output's axes).

    A :class:`DerivedIndex` or the letter of an index of sums may stand for a constant.
    """

    array: int
    name: str
    index: tuple[tuple[Any, tuple[int, ...]], ...]

    def text(self, replaced: int | None = None) -> str:
        """Return the text a[i, 5]; the constant of axis `replaced` becomes k."""
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
    """`Constant` is a value that depends on no input, as an encoding."""

    bits: int

    def text(self) -> str:
        """Return the encoding in hexadecimal."""
        return "0" if self.bits == 0 else f"{self.bits:#x}"


@dataclass(frozen=True)
class DerivedConstant:
    """`DerivedConstant` is a constant that follows one of the output's indices, such as 4 * (j mod 8) in a nibble's shift.

    Attributes
    ----------
    axis : int
        Axis of the output on whose index it depends.
    spelled : str
        Text of the index.
    table : tuple of (int, int)
        Encoding for each of the output's indices.
    """

    axis: int
    spelled: str
    table: tuple[tuple[int, int], ...]

    def text(self) -> str:
        """Return the quotient or remainder of the index, as text."""
        return self.spelled


@dataclass(frozen=True)
class Applied:
    """`Applied` is an operation on values."""

    name: str
    line: int
    operands: tuple
    meaning: Meaning | None = None

    @property
    def key(self) -> Meaning | str:
        """Return the meaning of the operation, or its name if it has no meaning."""
        return self.meaning or self.name

    def text(self) -> str:
        """Return the operation as a call."""
        return f"{self.name}({', '.join(operand.text() for operand in self.operands)})"


@dataclass(frozen=True)
class Step:
    """`Step` is one step of a matrix instruction: the factors of its products in the unit's order, and the addend."""

    row: Any
    line: int
    left: tuple
    right: tuple
    addend: Any
    signs: tuple[int, int]

    def text(self) -> str:
        """Return the step as a call that names the first factors."""
        return f"{self.row}({self.left[0].text()} {self.right[0].text()} ..., {self.addend.text()})"


@dataclass(frozen=True)
class Masked:
    """`Masked` is a choice by an index of the output: `below` if the index is less than `bound`, else `above`.

    `low` is the least index of the outputs; the letter of an index of sums may be part of the bound.
    """

    axis: int
    bound: Any
    low: int
    below: Any
    above: Any

    @property
    def condition(self) -> str:
        """Return the condition as text: i < 5."""
        return f"{AXES[self.axis]} < {self.bound}"

    def text(self) -> str:
        """Return the choice as text."""
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
    """Yield a node and all nodes below it, each once."""
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack += operands_of(node)
            yield node


def width_of(node: Node) -> int | None:
    """Return the bits of a value, by the operation that computed it; None for inputs and constants."""
    if isinstance(node, Step):
        return node.row.formats[3].bits
    return bits_of(node.meaning.result) if isinstance(node, Applied) and node.meaning is not None else None
