"""Shrinks a dot product on which two units differ to the fewest products and the simplest numbers that still show it."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..formats import Format
from .interface import Dot, DotBatch, Shaped

SHRINK_ROUNDS = 200


def _simpler(unit: Shaped, dot: Dot) -> Iterator[Dot]:
    """Yield simplifications of a dot product, the boldest first: without halves or single products, without c, with simpler
    numbers.
    """

    def changed(names: str, places: Any, value: int) -> Dot:
        smaller = dot.copy()
        for name in names:
            getattr(smaller, name)[places] = value
        return smaller

    live = dot.live
    size = len(live)
    while size > 1:
        size //= 2
        for start in range(0, len(live), size):
            yield changed("ab", live[start : start + size], 0)
    if len(live) == 1:
        yield changed("ab", live, 0)
    if dot.c[()]:
        yield changed("c", (), 0)
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
                    yield changed(name, place, simpler)


def shrink(unit: Shaped, differ: Callable[[DotBatch], np.ndarray], dot: Dot, rounds: int = SHRINK_ROUNDS) -> Dot:
    """Return the simplest dot product found for which `differ` still holds; all candidates of a round are one batch."""
    for _ in range(rounds):
        candidates = list(_simpler(unit, dot))
        if not candidates:
            return dot
        found = np.flatnonzero(differ(DotBatch.of(candidates)))
        if not found.size:
            return dot
        dot = candidates[int(found[0])]
    return dot
