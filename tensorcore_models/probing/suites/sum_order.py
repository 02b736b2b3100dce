"""Names the order of an engine's sum in the words of the papers: terms of a fused operation, the place of c, interleaving."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import Engine
from ...explanations.tree import Tree
from ..tree_inputs import summation_tree


@dataclass(frozen=True)
class SumOrder:
    """`SumOrder` is the order of the sum of one output element.

    "fused": operations of `terms` consecutive products, chained. "interleaved": the same with interleaved groups. "sequential":
    one product after the other. "tree": any other order.
    """

    order: Literal["fused", "interleaved", "sequential", "tree"]
    terms: int | None  # products in one operation, None for a tree
    c_position: Literal["early", "late"] | None  # whether c joins before or after the products of the first operation
    mates: tuple[int, ...]  # positions whose products are in the same operation as product 0
    following: tuple[int, ...]  # positions of the next operation
    tree: Tree  # whole order; leaf K is c

    def __str__(self) -> str:
        place = {"early": ", c in the first operation", "late": ", c added last", None: ""}[self.c_position]
        if self.order == "fused":
            return f"fused operations of {self.terms} products{place}"
        if self.order == "interleaved":
            return f"interleaved operations of {self.terms} products (with product 0: {', '.join(map(str, self.mates))}){place}"
        return f"one product after the other{place}" if self.order == "sequential" else "a tree of additions"


def sum_order(engine: Engine, length: int) -> SumOrder:
    """Return the order of an engine's sum of `length` products and c; raise ValueError if the formats are too narrow to show
    it."""
    try:
        tree = summation_tree(engine, length)
    except ValueError:
        # A sum that no tree describes, such as a normalising adder's, still has an order in one call of the unit.
        if length <= engine.k:
            raise
        tree = summation_tree(engine, engine.k)
    return in_words(tree)


def in_words(tree: Tree) -> SumOrder:
    """Return the order that a tree of K products and c (leaf K) describes."""
    c = tree.leaves - 1
    first = tree.parents[0]
    operation = tree.operations[first]
    groups = [tuple(x for x in operation.addends if x < c)]
    place: Literal["early", "late"] | None = "early" if c in operation.addends else None
    node = first
    while (above := tree.parents[tree.leaves + node]) >= 0:
        others = [x for x in tree.operations[above].addends if x != tree.leaves + node]
        if others == [c]:
            place = "late"
            break
        if any(x >= c for x in others):
            break
        groups.append(tuple(others))
        node = above
    inner = len(operation.addends) - len(groups[0]) - (c in operation.addends)
    plain = place is not None and not inner and operation.kind == "aligned" and len({len(g) for g in groups}) == 1
    if not plain:
        return SumOrder("tree", None, None, (0,), (), tree)
    terms = len(groups[0])
    consecutive = groups[0] == tuple(range(terms))
    order: Literal["fused", "interleaved", "sequential"] = (
        "sequential" if terms == 1 else "fused" if consecutive else "interleaved"
    )
    following = groups[1] if len(groups) > 1 else tuple(range(terms, min(2 * terms, c))) if consecutive else ()
    return SumOrder(order, terms, place, groups[0], following, tree)
