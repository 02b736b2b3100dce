"""Defines where a kernel puts its schedule, and the rules that kernels share for options left open."""

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
    """A product, a chip and a block: where a kernel puts its schedule."""

    m: int
    k: int
    n: int
    chip: Chip
    blocking: Blocking

    def of_schedule(self) -> dict[str, Any]:
        """Return the options as fields of a schedule."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def check_slices(self, slices: int) -> None:
        """Refuse more slices of k than it has blocks."""
        blocks = -(-self.k // self.blocking.bk)
        if slices > blocks:
            raise ValueError(
                f"{slices} slices of k = {self.k} are more than its blocks of {self.blocking.bk} ({blocks})"
            )


def blocks_in_group(s: TileSchedule, wanted: int | None, choose: Callable[[int, int], int]) -> int:
    """Return N_fused where a panel is resident: what was asked for, or `choose` of all k blocks and of how many fit."""
    b, chip = s.blocking, s.placed_on
    panel, streamed = (b.bm, b.bn) if s.resident == "a" else (b.bn, b.bm)
    each = s.words * s.format.stored(b.bk)
    most = panel_capacity(chip.l1_bytes, each, panel, s.stream_slots * streamed)
    if most < 1:
        needed = each * (panel + s.stream_slots * streamed)
        raise ValueError(f"block {b} overflows L1 of {chip.name}: {needed} bytes, limit {chip.l1_bytes}")
    start, stop = s.k_slices[0]
    return choose(fractals(stop - start, b.bk), most) if wanted is None else int(wanted)


def stream_depth(left: np.ndarray | float, block_bytes: np.ndarray | float, words: int, count: int) -> np.ndarray:
    """L1 buffers of a streamed operand: as many pairs as fit what is left of L1, at most :data:`DEEPEST_STREAM` words.

    Sizes are in bytes, `block_bytes` those of one k block of all streamed operands; with a `count` of 1 (single buffers) the
    depth is 1.
    """
    if count == 1:
        return np.ones_like(np.floor(left / block_bytes))
    return np.maximum(np.minimum(left // block_bytes, DEEPEST_STREAM // words) // 2 * 2, count)
