"""The order of a sum as a tree: which operation takes which products, and in which operation their results meet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..accumulators import (
    Accumulator,
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
)
from ..engines.order import Chain, Order

#: Parts of a sum that are drawn before and after it leaves some out.
SHOWN = 4


@dataclass(frozen=True)
class Node:
    """An operation with what it takes, in order; without children a product, an addend or a chain.

    Attributes
    ----------
    label : str
        A product is labelled by its k.
    children : tuple of Node
    note : str
        What the operation does, for readers who point at it.
    """

    label: str
    children: tuple["Node", ...] = ()
    note: str = ""


def _products(positions: Sequence[int]) -> tuple[Node, ...]:
    return tuple(Node(str(k), note=f"product a[{k}] b[{k}]") for k in positions)


def _addend(text: str = "c") -> Node:
    return Node(text, note="the addend")


def _fused_note(spec: Any) -> str:
    kept = (
        "nothing is cut off" if spec.fraction_bits is None else f"aligned and cut to {spec.fraction_bits} fraction bits"
    )
    return f"one operation: {kept}, summed exactly, rounded once ({spec.output_rounding})"


def _fused(spec: FusedDotAdd, positions: Sequence[int], c: Node) -> Node:
    return Node(f"Σ F={spec.fraction_bits}", (c, *_products(positions)), _fused_note(spec))


def _parametric(spec: ParametricDotAdd, positions: Sequence[int], c: Node) -> Node:
    label = "Σ exact" if spec.fraction_bits is None else f"Σ F={spec.fraction_bits}"
    products = _products(positions)
    if spec.alignment == "pairwise":
        products = (_halves(products, label, _fused_note(spec)),)
    elif spec.alignment == "odd_even":
        products = tuple(Node(label, products[i::2], _fused_note(spec)) for i in (0, 1))
    if spec.c_position == "late":
        return Node(
            "+", (Node(label, products, _fused_note(spec)), c), f"c is added last, rounded {spec.late_rounding}"
        )
    return Node(label, (c, *products), _fused_note(spec))


def _sequential(spec: SequentialFMA, positions: Sequence[int], c: Node) -> Node:
    order = list(positions)
    if spec.pair_order == "odd_first":
        order = [k for pair in zip(order[1::2], order[::2], strict=True) for k in pair]
    node = c
    for k in order:
        node = Node("FMA", (node, *_products([k])), f"fused multiply-add, rounded {spec.rounding}")
    return node


def _laned(spec: LanedFMA, positions: Sequence[int], c: Node) -> Node:
    total = None
    for lane in range(spec.lanes):
        node = _addend("+0")
        for k in positions[lane :: spec.lanes]:
            node = Node("FMA", (node, *_products([k])), "FP32 fused multiply-add, rounded to nearest even")
        total = node if total is None else Node("+", (total, node), "FP32 addition of the lanes")
    return Node("+", (c, total) if total else (c,), "FP32 addition of c, last")


def _halves(nodes: Sequence[Node], label: str, note: str) -> Node:
    """A binary tree of operations over neighbours."""
    level = list(nodes)
    while len(level) > 1:
        odd = level[len(level) // 2 * 2 :]
        level = [Node(label, pair, note) for pair in zip(level[::2], level[1::2], strict=False)] + odd
    return level[0]


def _pairwise(spec: GroupPairwiseSum, positions: Sequence[int], c: Node) -> Node:
    tree = _halves(_products(positions), "+", "FP32 addition, rounded to nearest even")
    return Node("+", (c, tree), "FP32 addition of the group's sum to c")


def _round_odd(spec: PairRoundOddSum, positions: Sequence[int], c: Node) -> Node:
    pair = Node("+ odd", _products(positions), "FP32 addition, rounded to odd")
    return Node("+ odd", (c, pair), "FP32 addition, rounded to odd")


def _round_down(spec: FusedDotRoundDownAdd, positions: Sequence[int], c: Node) -> Node:
    note = f"aligned and cut to {spec.fraction_bits} fraction bits, summed exactly"
    if isinstance(spec, GroupFusedDotRoundDownAdd):
        halves = tuple(Node(f"Σ F={spec.fraction_bits}", _products(positions[i::2]), note) for i in (0, 1))
        dot = Node("+ rd", halves, "the sums of even and odd k, aligned and rounded down")
    else:
        dot = Node(f"Σ F={spec.fraction_bits}", _products(positions), note)
    return Node("+ rd", (c, dot), "dot product and c, aligned and rounded down, then to nearest even")


def _group_dot(spec: GroupDotFusedSum, positions: Sequence[int], c: Node) -> Node:
    groups = tuple(
        Node("Σ exact", _products(positions[start : start + spec.group]), "exact sum of the group, times its scales")
        for start in range(0, len(positions), spec.group)
    )
    return Node(f"Σ F={spec.fraction_bits}", (c, *groups), _fused_note(spec))


def _interleaved(spec: InterleavedDotAdd, positions: Sequence[int], c: Node) -> Node:
    members = [[k for i, k in enumerate(positions) if i // spec.run % spec.groups == g] for g in spec.group_order]
    node = _addend("+0")
    for group in members:
        node = _fused(spec.dot, group, node)
    return Node("+", (node, c), f"c is added last, rounded {spec.final_rounding}")


def _integer(spec: IntegerDotAdd, positions: Sequence[int], c: Node) -> Node:
    end = "clamped to int32" if spec.saturate else "wrapped to int32"
    return Node("Σ exact", (c, *_products(positions)), f"exact integer sum, {end}")


_STEPS: dict[type[Accumulator], Callable[[Any, Sequence[int], Node], Node]] = {
    FusedDotAdd: _fused,
    ParametricDotAdd: _parametric,
    SequentialFMA: _sequential,
    LanedFMA: _laned,
    GroupPairwiseSum: _pairwise,
    PairRoundOddSum: _round_odd,
    FusedDotRoundDownAdd: _round_down,
    GroupFusedDotRoundDownAdd: _round_down,
    GroupDotFusedSum: _group_dot,
    InterleavedDotAdd: _interleaved,
    IntegerDotAdd: _integer,
}


def tree_of(spec: Accumulator, k: int) -> Node | None:
    """The order in which an accumulator sums k products and c; None where it is not public.

    Parameters
    ----------
    spec : Accumulator
    k : int
        Number of products; steps longer than one operation are a chain.
    """
    step = _STEPS.get(type(spec))
    if step is None:
        return None
    length, node = min(spec.terms_per_step, k), _addend()
    for start in range(0, k, length):
        node = step(spec, range(start, min(start + length, k)), node)
    return node


def _spell(piece: range) -> str:
    text = f"{piece.start}" if len(piece) == 1 else f"{piece.start}:{piece[-1] + 1}"
    return text if piece.step == 1 or len(piece) == 1 else f"{text}:{piece.step}"


def tree_of_order(order: Order, shown: int = SHOWN) -> Node:
    """The order of a recipe as a tree, of long sums the first `shown` parts and the last; the leaves are chains over k."""
    if isinstance(order, Chain):
        pieces = [_spell(piece) for piece in order.pieces] or ["+0"]
        text = ", ".join(pieces) if len(pieces) <= 3 else f"{', '.join(pieces[:2])}, ... {pieces[-1]}"
        return Node(f"k {text}", note="one chain of the instruction, from +0")
    parts = list(order.parts)
    children = [tree_of_order(part, shown) for part in (parts if len(parts) <= shown + 2 else parts[:shown])]
    if len(parts) > shown + 2:
        children += [Node(f"{len(parts) - shown - 1} more"), tree_of_order(parts[-1], shown)]
    rounded = "".join(
        f", {what} rounded to {fmt}" for what, fmt in (("parts", order.partials), ("sums", order.carry)) if fmt
    )
    return Node("+ left to right", tuple(children), f"{len(parts)} parts added from left to right{rounded}")
