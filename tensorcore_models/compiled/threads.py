"""Numbers the threads of a launch as lanes of arrays.

Lanes are ordered by block, then warp, then thread. If the threads of a block do not fill its last warp, the remaining lanes
never run.
"""

from functools import cached_property

import numpy as np


class Threads:
    """`Threads` maps lanes to the threads of consecutive blocks of a grid.

    Parameters
    ----------
    grid, block : tuple of three int
        Blocks of the grid and threads of a block.
    first, count : int
        Number of the first block, and how many blocks there are, counted in the order x, y, z.
    warp : int
        Number of threads of a warp (AMD: of a wave).
    """

    def __init__(self, grid: tuple[int, int, int], block: tuple[int, int, int], first: int, count: int, warp: int = 32):
        self.grid, self.block, self.first, self.blocks, self.warp = grid, block, first, count, warp
        self.per_block = block[0] * block[1] * block[2]
        self.warps_per_block = -(-self.per_block // warp)
        self.lanes_per_block = self.warps_per_block * warp
        self.count = count * self.lanes_per_block
        self.full = self.lanes_per_block == self.per_block

    @cached_property
    def all_lanes(self) -> np.ndarray:
        """Return the numbers of all lanes."""
        return np.arange(self.count)

    @cached_property
    def row(self) -> np.ndarray:
        """Return the row of each lane's block among the blocks held here."""
        return self.all_lanes // self.lanes_per_block

    @cached_property
    def in_block(self) -> np.ndarray:
        """Return the number of each lane's thread in its block."""
        return self.all_lanes % self.lanes_per_block

    @cached_property
    def live(self) -> np.ndarray | None:
        """Return the lanes that have a thread, None if all lanes have one."""
        return None if self.full else np.flatnonzero(self.in_block < self.per_block)

    def thread(self, axis: int) -> np.ndarray:
        """Return the coordinate of each lane's thread along an axis."""
        return _coordinate(self.in_block, self.block, axis).astype(np.uint32)

    def block_coordinate(self, axis: int) -> np.ndarray:
        """Return the coordinate of each lane's block along an axis."""
        return _coordinate(self.first + self.row, self.grid, axis).astype(np.uint32)

    def name(self, lane: int) -> str:
        """Return the name of a thread for messages."""
        thread = [int(_coordinate(np.array(lane % self.lanes_per_block), self.block, axis)) for axis in range(3)]
        return f"thread {tuple(thread)} of {self.block_name(self.first + lane // self.lanes_per_block)}"

    def block_name(self, number: int) -> str:
        """Return the name of a block of the grid for messages."""
        return f"block {tuple(int(_coordinate(np.array(number), self.grid, axis)) for axis in range(3))}"


def _coordinate(number: np.ndarray, extents: tuple[int, int, int], axis: int) -> np.ndarray:
    below = 1
    for extent in extents[:axis]:
        below *= extent
    return number // below % extents[axis] if axis < 2 else number // below
