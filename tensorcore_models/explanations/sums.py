"""Builds the order of a sum, operation by operation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tree import Operation

#: Index of a leaf or of an operation of a tree; operations follow the leaves.
Position = int


class SumBuilder:
    """`SumBuilder` collects the operations of a sum over `count` leaves; positions of operations follow those of the leaves."""

    def __init__(self, count: int):
        self.leaves = count
        self.operations: list[Operation] = []

    def add(self, addends: Sequence[Position], label: str = "", note: str = "", *, exact: bool = False) -> Position:
        """Add an operation and return its position; for a single addend return the addend's position and add nothing."""
        from .tree import Operation

        if len(addends) == 1:
            return addends[0]
        self.operations.append(Operation(tuple(addends), "exact" if exact else "aligned", label, note))
        return self.leaves + len(self.operations) - 1

    def halves(self, addends: Sequence[Position], label: str, note: str, *, exact: bool = False) -> Position:
        """Add a binary tree of operations over neighbours and return the position of its root."""
        level = list(addends)
        while len(level) > 1:
            level = [self.add(level[i : i + 2], label, note, exact=exact) for i in range(0, len(level), 2)]
        return level[0]

    def chain(self, first: Position, addends: Sequence[Position], note: str) -> Position:
        """Add fused multiply-adds one after the other and return the position of the last."""
        for addend in addends:
            first = self.add([first, addend], "FMA", note)
        return first
