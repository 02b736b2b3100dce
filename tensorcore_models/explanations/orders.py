"""The order in which an accumulator or a recipe sums, as a tree."""

from collections.abc import Callable, Sequence
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
    Unpublished,
)
from ..engines.order import Chain, Order, leaves
from .tree import Operation, Tree

#: A position among the leaves and operations of a tree.
Position = int


class _Sum:
    """Operations as they are found; an operation's position comes after those of the leaves."""

    def __init__(self, count: int):
        self.leaves = count
        self.operations: list[Operation] = []

    def add(self, addends: Sequence[Position], label: str = "", note: str = "", *, exact: bool = False) -> Position:
        """The position of a new operation; that of its addend where there is only one."""
        if len(addends) == 1:
            return addends[0]
        self.operations.append(Operation(tuple(addends), "exact" if exact else "aligned", label, note))
        return self.leaves + len(self.operations) - 1

    def halves(self, addends: Sequence[Position], label: str, note: str, *, exact: bool = False) -> Position:
        """A binary tree of operations over neighbours."""
        level = list(addends)
        while len(level) > 1:
            level = [self.add(level[i : i + 2], label, note, exact=exact) for i in range(0, len(level), 2)]
        return level[0]


def _fused_note(spec: Any) -> str:
    kept = (
        "nothing is cut off" if spec.fraction_bits is None else f"aligned and cut to {spec.fraction_bits} fraction bits"
    )
    return f"one operation: {kept}, summed exactly, rounded once ({spec.output_rounding})"


def _fused(spec: FusedDotAdd, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    return to.add([c, *ks], f"F={spec.fraction_bits}", _fused_note(spec))


def _parametric(spec: ParametricDotAdd, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    exact, note = spec.fraction_bits is None, _fused_note(spec)
    label = "exact" if exact else f"F={spec.fraction_bits}"
    parts = list(ks)
    if spec.alignment == "pairwise":
        parts = [to.halves(ks, label, note, exact=exact)]
    elif spec.alignment == "odd_even":
        parts = [to.add(half, label, note, exact=exact) for half in (ks[::2], ks[1::2]) if half]
    if spec.c_position == "late":
        dot = to.add(parts, label, note, exact=exact)
        return to.add([dot, c], "", f"c is added last, rounded {spec.late_rounding}")
    return to.add([c, *parts], label, note, exact=exact)


def _chain(first: Position, ks: Sequence[int], note: str, to: _Sum) -> Position:
    for k in ks:
        first = to.add([first, k], "FMA", note)
    return first


def _sequential(spec: SequentialFMA, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    order = [k for i in range(0, len(ks), 2) for k in ks[i : i + 2][::-1]] if spec.pair_order == "odd_first" else ks
    return _chain(c, order, f"fused multiply-add, rounded {spec.rounding}", to)


def _laned(spec: LanedFMA, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    note = "FP32 fused multiply-add, rounded to nearest even; the lane starts from +0"
    lanes = [_chain(lane[0], lane[1:], note, to) for lane in (ks[i :: spec.lanes] for i in range(spec.lanes)) if lane]
    total = lanes[0]
    for lane in lanes[1:]:
        total = to.add([total, lane], "", "FP32 addition of the lanes")
    return to.add([c, total], "", "FP32 addition of c, last")


def _pairwise(spec: GroupPairwiseSum, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    tree = to.halves(ks, "", "FP32 addition, rounded to nearest even")
    return to.add([c, tree], "", "FP32 addition of the group's sum to c")


def _round_odd(spec: PairRoundOddSum, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    note = "FP32 addition, rounded to odd"
    return to.add([c, to.add(ks, "odd", note)], "odd", note)


def _round_down(spec: FusedDotRoundDownAdd, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    groups = [ks[::2], ks[1::2]] if isinstance(spec, GroupFusedDotRoundDownAdd) else [ks]
    note = f"aligned and cut to {spec.fraction_bits} fraction bits, summed exactly"
    sums = [to.add(group, f"F={spec.fraction_bits}", note) for group in groups if group]
    dot = to.add(sums, "rd", "the sums of even and odd k, aligned and rounded down")
    return to.add([c, dot], "rd", "dot product and c, aligned and rounded down, then to nearest even")


def _group_dot(spec: GroupDotFusedSum, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    note = "exact sum of the group, times its scales"
    groups = [to.add(ks[i : i + spec.group], "exact", note, exact=True) for i in range(0, len(ks), spec.group)]
    return to.add([c, *groups], f"F={spec.fraction_bits}", _fused_note(spec))


def _interleaved(spec: InterleavedDotAdd, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    total: list[Position] = []
    for number in spec.group_order:
        group = [k for i, k in enumerate(ks) if i // spec.run % spec.groups == number]
        if group:
            total = [to.add([*total, *group], f"F={spec.dot.fraction_bits}", _fused_note(spec.dot))]
    return to.add([*total, c], "", f"c is added last, rounded {spec.final_rounding}")


def _integer(spec: IntegerDotAdd, ks: Sequence[int], c: Position, to: _Sum) -> Position:
    end = "clamped to int32" if spec.saturate else "wrapped to int32"
    return to.add([c, *ks], "exact", f"exact integer sum, {end}", exact=True)


_STEPS: dict[type[Accumulator], Callable[[Any, Sequence[int], Position, _Sum], Position]] = {
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


def tree_of(spec: Accumulator, k: int) -> Tree | None:
    """The order in which an accumulator sums k products and c (leaf k); None where it is not public.

    Parameters
    ----------
    spec : Accumulator
    k : int
        Number of products; more than one step takes are a chain.

    Raises
    ------
    TypeError
        If there is no order for this class.
    """
    if isinstance(spec, Unpublished):
        return None
    if type(spec) not in _STEPS:
        raise TypeError(f"no order of the sum for {type(spec).__name__}: add it to {__name__}")
    found, total = _Sum(k + 1), k
    for start in range(0, k, spec.terms_per_step):
        total = _STEPS[type(spec)](spec, range(start, min(start + spec.terms_per_step, k)), total, found)
    return Tree(k + 1, tuple(found.operations), ((k, "c"),))


def _spell(chain: Chain) -> str:
    pieces = [
        f"{p.start}" if len(p) == 1 else f"{p.start}:{p[-1] + 1}" + (f":{p.step}" if p.step != 1 else "")
        for p in chain.pieces
    ]
    shown = pieces if len(pieces) <= 3 else [*pieces[:2], f"... {pieces[-1]}"]
    return f"k {', '.join(shown)}" if pieces else "+0"


def tree_of_order(order: Order) -> Tree:
    """The order of a recipe as a tree; its leaves are chains over k, each from +0."""
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
        operations.append(Operation(addends, "aligned", ", ".join(does), "one addition after the other"))
        return len(chains) + len(operations) - 1

    position(order)
    return Tree(len(chains), tuple(operations), tuple(enumerate(map(_spell, chains))))
