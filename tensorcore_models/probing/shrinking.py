"""Shrinks a dot product on which two units differ to the fewest products and the simplest numbers that still show it."""

from collections.abc import Callable, Iterator

import numpy as np

from ..formats import Format
from .interface import Dot, DotBatch, Shaped

SHRINK_ROUNDS = 200


def _simpler(unit: Shaped, dot: Dot) -> Iterator[Dot]:
    """Simplifications of a dot product, the boldest first: halves and single products away, c away, simpler numbers."""
    live = dot.live
    size = len(live)
    while size > 1:
        size //= 2
        for start in range(0, len(live), max(size, 1)):
            smaller = dot.copy()
            gone = live[start : start + max(size, 1)]
            smaller.a[gone] = 0
            smaller.b[gone] = 0
            yield smaller
    if len(live) == 1:
        smaller = dot.copy()
        smaller.a[live] = smaller.b[live] = 0
        yield smaller
    if dot.c[()]:
        smaller = dot.copy()
        smaller.c[()] = 0
        yield smaller
    for name, fmt in (("a", unit.formats[0]), ("b", unit.formats[1]), ("c", unit.formats[2])):
        below = fmt.fraction_bits + fmt.padding_bits if isinstance(fmt, Format) else fmt.bits // 2
        masks = [~((1 << below) - 1), ~((1 << (below + 1) // 2) - 1)]
        if isinstance(fmt, Format):
            masks += [~((1 << i) - 1) for i in range(1, below)] + [~fmt.sign_bit]
        for place in live if name != "c" else [()]:
            for mask in masks:
                value = int(getattr(dot, name)[place])
                simpler = value & mask & ((1 << 8 * fmt.container.itemsize) - 1)
                if simpler != value:
                    smaller = dot.copy()
                    getattr(smaller, name)[place] = simpler
                    yield smaller


def shrink(unit: Shaped, differ: Callable[[DotBatch], np.ndarray], dot: Dot, rounds: int = SHRINK_ROUNDS) -> Dot:
    """The simplest dot product found for which `differ` still says so; all candidates of a round are one batch."""
    for _ in range(rounds):
        candidates = list(_simpler(unit, dot))
        if not candidates:
            return dot
        found = np.flatnonzero(differ(DotBatch.of(candidates)))
        if not found.size:
            return dot
        dot = candidates[int(found[0])]
    return dot
