"""This module yields neighbours of a good schedule: other orders of its tiles, and blocks one step larger or smaller.

The closed forms give orders that deal the same tiles the same time, and leave out which core gets the ragged tiles; the
simulator includes both.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ascend.blocking import ALIGNMENT, Blocking
from ascend.dialects import ANY, DIALECTS
from ascend.kernels.base import Kernel
from ascend.operand_formats import FORMATS
from ascend.request import Request
from ascend.schedule import variant
from ascend.tiling.fields import is_said_by

#: Widths of a swizzle's bands.
WIDTHS = range(1, 9)


def orders(s: Kernel, directions: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield other orders of the tiles of a schedule in which nothing is resident."""
    if s.resident != "none" or s.kernel != "grid":
        return
    most = max(len(s.row_blocks), len(s.column_blocks))
    widths = [width for width in WIDTHS if width <= most] if s.deals_one_by_one else [1]
    for direction in directions if s.deals_one_by_one else (0, 1):
        for width in widths:
            found = replace(s.swizzle, offset=width, direction=direction)
            if found != s.swizzle:
                yield {"swizzle": found}


def blocks(s: Kernel, powers_of_two: bool) -> Iterator[dict[str, Any]]:
    """Yield blocks one step larger or smaller along one side, and with half or twice the products of k."""
    b, whole = s.blocking, FORMATS[s.operand].whole_k
    sizes = [(b.bm, 2 * b.bk, b.bn)] + [(b.bm, b.bk // 2, b.bn)] * (b.bk % (2 * whole) == 0)
    if not powers_of_two:
        sizes += [(b.bm + step, b.bk, b.bn) for step in (-ALIGNMENT, ALIGNMENT)]
        sizes += [(b.bm, b.bk, b.bn + step) for step in (-4 * ALIGNMENT, -ALIGNMENT, ALIGNMENT, 4 * ALIGNMENT)]
    for size in sizes:
        if min(size) >= ALIGNMENT:
            yield {"blocking": Blocking(*size)}


def neighbours(s: Kernel, r: Request) -> Iterator[Kernel]:
    """Yield the neighbours of a schedule that the request allows, each built and expressible in its target."""
    said = DIALECTS.get(r.target, ANY)
    if not s.on_cube:
        return
    for changes in (*orders(s, said.directions or (0, 1)), *blocks(s, said.powers_of_two)):
        try:
            found = variant(s, **changes)
        except ValueError:  # a buffer overflows, or k has fewer blocks than slices
            continue
        if not r.target or is_said_by(found, r.target):
            yield found
