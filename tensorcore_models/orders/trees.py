"""Draws the order in which an accumulator or a recipe sums as a tree."""

from collections.abc import Sequence
from typing import Protocol

from ..explanations.sums import Position, SumBuilder
from ..explanations.tree import Operation, Tree
from .order import Chain, Order, leaves


class Summing(Protocol):
    """`Summing` is the part of an :class:`tensorcore_models.accumulators.Accumulator` that its order needs."""

    @property
    def terms_per_step(self) -> int:
        """Return the number of products of one step."""

    def add_step(self, ks: Sequence[Position], c: Position, to: SumBuilder) -> Position | None:
        """Add the operations of one step to a tree and return the position of its sum; None if the order is not known."""


def tree_of(spec: Summing, k: int) -> Tree | None:
    """Return the order in which an accumulator sums k products in chained steps, and c as leaf k; None if it is not known."""
    total: Position = k
    found = SumBuilder(k + 1)
    for start in range(0, k, spec.terms_per_step):
        after = spec.add_step(range(start, min(start + spec.terms_per_step, k)), total, found)
        if after is None:
            return None
        total = after
    return Tree(k + 1, tuple(found.operations), ((k, "c"),))


def _spell(chain: Chain) -> str:
    pieces = [
        f"{p.start}" if len(p) == 1 else f"{p.start}:{p[-1] + 1}" + (f":{p.step}" if p.step != 1 else "")
        for p in chain.pieces
    ]
    shown = pieces if len(pieces) <= 3 else [*pieces[:2], f"... {pieces[-1]}"]
    return f"k {', '.join(shown)}{' in shared steps' if chain.joined else ''}" if pieces else "+0"


def tree_of_order(order: Order) -> Tree:
    """Return the order of a recipe as a tree; its leaves are chains over k, each from +0."""
    chains = list(leaves(order))
    operations: list[Operation] = []
    numbers = iter(range(len(chains)))

    def position(part: Order) -> Position:
        if isinstance(part, Chain):
            return next(numbers)
        addends = tuple(map(position, part.parts))
        named = (("parts", part.partials), ("sums", part.carry))
        does = [f"{len(addends)} parts, left to right", *(["from +0"] if part.start == "zero" else [])]
        does += [f"{what} rounded to {fmt}" for what, fmt in named if fmt]
        operations.append(Operation(addends, "aligned", ", ".join(does), "the parts are added one after the other"))
        return len(chains) + len(operations) - 1

    position(order)
    return Tree(len(chains), tuple(operations), tuple(enumerate(map(_spell, chains))))
