"""This module holds the place of a schedule (product, chip, block), and the defaults that kernels share."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ascend.blocking import Blocking, fractals, panel_capacity
from ascend.chips.chip import Chip
from ascend.schedule_options import DEEPEST_STREAM
from ascend.tile_schedule import TileSchedule


@dataclass(frozen=True)
class BlockedProduct:
    """`BlockedProduct` is a product, a chip and a block, for which a kernel makes its schedule."""

    m: int
    k: int
    n: int
    chip: Chip
    blocking: Blocking

    def of_schedule(self) -> dict[str, Any]:
        """Return the sizes, chip and block as fields of a schedule."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def check_slices(self, slices: int) -> None:
        """Raise ValueError if there are more slices of k than blocks of k."""
        blocks = -(-self.k // self.blocking.bk)
        if slices > blocks:
            raise ValueError(
                f"got {slices} slices of k, but k = {self.k} has only {blocks} blocks of bk = {self.blocking.bk}: take fewer "
                "slices or a smaller bk"
            )


def blocks_in_group(s: TileSchedule, wanted: int | None, choose: Callable[[int, int], int]) -> int:
    """Return N_fused for a resident panel: the requested number, or `choose` of the k blocks and of those that fit."""
    b, chip = s.blocking, s.placed_on
    panel, streamed = (b.bm, b.bn) if s.resident == "a" else (b.bn, b.bm)
    each = s.words * s.format.stored(b.bk)
    most = panel_capacity(chip.l1_bytes, each, panel, s.stream_slots * streamed)
    if most < 1:
        needed = each * (panel + s.stream_slots * streamed)
        raise ValueError(
            f"block {b} overflows L1 of {chip.name}: {needed} bytes needed, {chip.l1_bytes} available; take a smaller block"
        )
    start, stop = s.k_slices[0]
    return choose(fractals(stop - start, b.bk), most) if wanted is None else int(wanted)


def stream_depth(left: np.ndarray | float, block_bytes: np.ndarray | float, words: int, count: int) -> np.ndarray:
    """Return the number of L1 buffers of a streamed operand: as many pairs as fit the rest of L1.

    The buffers hold at most :data:`DEEPEST_STREAM` words. Sizes are in bytes, `block_bytes` is that of one k block of
    all streamed operands; with a `count` of 1 (single buffers) the depth is 1.
    """
    if count == 1:
        return np.ones_like(np.floor(left / block_bytes))
    return np.maximum(np.minimum(left // block_bytes, DEEPEST_STREAM // words) // 2 * 2, count)
