"""The order of a sum, from masks: which addends are lost while a large number and its opposite have not met yet (P3, FPRev).

With X at place i, -X at place j and a small y everywhere else, those y are lost that join before X and -X cancel; d / y counts
the others. Place K means c.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from .dots import Dots, Unreachable, encode_value, factors, power

#: Groups of interleaved products that are looked for: consecutive k of a group, number of groups.
INTERLEAVINGS = ((1, 2), (2, 2), (4, 2), (1, 4), (2, 4))


@dataclass(frozen=True)
class SummationTree:
    """Order of the sum of one output element.

    Attributes
    ----------
    order : {"fused", "interleaved", "sequential", "tree"}
        One operation for `terms` consecutive products (chained); the same with interleaved groups; one product after the
        other; anything else.
    terms : int or None
        Products in one operation, None for a tree.
    c_position : {"early", "late"} or None
        Whether c joins before or after the products of the first operation.
    mates : tuple of int
        Positions whose products are in the same operation as product 0.
    following : tuple of int
        Positions of the next operation.
    survivors : tuple of int
        The counts n_0j, j = 1 to K (K is c).
    """

    order: Literal["fused", "interleaved", "sequential", "tree"]
    terms: int | None
    c_position: Literal["early", "late"] | None
    mates: tuple[int, ...]
    following: tuple[int, ...]
    survivors: tuple[int, ...]

    def __str__(self) -> str:
        place = {"early": ", c in the first operation", "late": ", c added last", None: ""}[self.c_position]
        if self.order == "fused":
            return f"fused operations of {self.terms} products{place}"
        if self.order == "interleaved":
            return f"interleaved operations of {self.terms} products (with product 0: {', '.join(map(str, self.mates))}){place}"
        return f"one product after the other{place}" if self.order == "sequential" else "a tree of additions"


def _span(dots: Dots, *, subnormal: bool) -> tuple[Fraction, Fraction]:
    """X and y: the largest and smallest powers of two that serve as products and as c, and whose counts d can show.

    Products of subnormal operands are smaller still, but some units align them by a larger exponent and cut them off among
    themselves, or flush them.
    """
    a, b, c, d = dots.formats
    high = a.emax + b.emax
    while True:
        try:
            factors(power(high), a, b)
            break
        except Unreachable:
            high -= 1
    # Chains carry X in the output format, next to K + 1 small ones; c holds it too.
    high = min(high, c.emax - 1, d.emax - 1)
    low = a.quantum_exponent + b.quantum_exponent if subnormal else a.emin + b.emin
    low = max(low, c.quantum_exponent, d.quantum_exponent)
    while low < high:
        try:
            factors(power(low), a, b)
            encode_value(power(low), c)
            break
        except Unreachable:
            low += 1
    # Stay away from the ends: 160 binades are more than any unit aligns, and zeros may stand far above the smallest number.
    middle = (high + low) // 2
    if high - low > 160:
        high, low = middle + 80, middle - 80
    return power(high), power(low)


def _count(dots: Dots, j: int, x: Fraction, y: Fraction) -> int | None:
    k = dots.length
    products = dict.fromkeys(range(k), y) | {0: x}
    c = y
    if j == k:
        c = -x
    else:
        products[j] = -x
    d = dots.run(products, c)
    if d is None:
        return None
    count = d / y
    return int(count) if count.denominator == 1 and 0 <= count <= k else None


def _early_counts(groups: list[list[int]], k: int) -> tuple[int, ...]:
    """n_0j, j = 1 to k, of a chain of fused operations over groups of positions, c in the first."""
    group_of = {place: index for index, group in enumerate(groups) for place in group}
    remaining = [sum(len(g) for g in groups[i + 1 :]) for i in range(len(groups))]
    return (*(remaining[max(group_of[0], group_of[j])] for j in range(1, k)), remaining[group_of[0]])


def _late_counts(groups: list[list[int]], k: int, step: int) -> tuple[int, ...]:
    """n_0j for j within the first step of `step` products, and for c, where each step adds c (or what came before) last."""
    first = [group for group in groups if group[0] < step]
    group_of = {place: index for index, group in enumerate(first) for place in group}
    remaining = [sum(len(g) for g in first[i + 1 :]) for i in range(len(first))]
    return (*(remaining[max(group_of[0], group_of[j])] + 1 + k - step for j in range(1, step)), k - step)


def _candidates(k: int, step: int):
    """(order, terms, c position, groups) of the chains that are looked for, simplest first."""
    for early in (True, False):
        for terms in (n for n in range(1, k + 1) if step % n == 0 or n == k):
            groups = [list(range(start, min(start + terms, k))) for start in range(0, k, terms)]
            yield ("sequential" if terms == 1 else "fused"), terms, early, groups
    for early in (True, False):
        for run, count in INTERLEAVINGS:
            members = [[i for i in range(step) if i // run % count == g] for g in range(count)]
            if step % (run * count) == 0:
                yield (
                    "interleaved",
                    step // count,
                    early,
                    [[s + i for i in m] for s in range(0, k, step) for m in members],
                )


def summation_tree(dots: Dots) -> SummationTree:
    """Order of an engine's sum.

    Raises
    ------
    ValueError
        If the formats are too narrow for X to hide y.
    """
    k, step = dots.length, dots.engine.k if dots.engine.k > 1 else dots.length
    observed: tuple[int, ...] = ()
    for subnormal, sign in ((False, 1), (False, -1), (True, 1), (True, -1)):
        x, y = _span(dots, subnormal=subnormal)
        if x / y < power(8):
            continue
        counts = (_count(dots, j, x, sign * y) for j in range(1, k + 1))
        observed = tuple(-1 if n is None else n for n in counts)
        for order, terms, early, groups in _candidates(k, step):
            if early:
                matches = observed == _early_counts(groups, k)
            else:
                matches = (*observed[: step - 1], observed[-1]) == _late_counts(groups, k, step)
            if matches:
                return SummationTree(
                    order, terms, "early" if early else "late", tuple(groups[0]),
                    tuple(groups[1]) if len(groups) > 1 else (), observed,
                )  # fmt: skip
    if not observed:
        raise ValueError(
            f"{dots.engine.label}: the operand formats span too few binades for the order of the sum to show"
        )
    return SummationTree("tree", None, None, (0,), (), observed)
