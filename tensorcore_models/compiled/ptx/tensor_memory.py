"""Models the tensor memory of Blackwell's CTAs: 128 lanes of 512 columns of 32 bits for each block."""

from collections.abc import Callable

import numpy as np

from ..errors import KernelFault
from ..memory import Space

LANES, COLUMNS = 128, 512
_ROW_BYTES = 4 * COLUMNS


class TensorMemory:
    """`TensorMemory` holds the tensor memory of all blocks, and which columns are allocated."""

    def __init__(self, blocks: int, *, checks: bool, traced: bool):
        self.space = Space(blocks * LANES * _ROW_BYTES, checks=checks, traced=traced)
        self.taken = np.zeros((blocks, COLUMNS), bool)

    def places(self, rows: np.ndarray, lanes: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the flat places of 32-bit cells; raise KernelFault for cells that do not exist or are not allocated."""
        if (lanes < 0).any() or (lanes >= LANES).any() or (columns < 0).any() or (columns >= COLUMNS).any():
            raise KernelFault("uses an address beyond tensor memory, which has 128 lanes of 512 columns")
        if not self.taken[rows, columns].all():
            raise KernelFault("uses columns of tensor memory that are not allocated")
        return (rows * LANES + lanes) * _ROW_BYTES + 4 * columns


def tensor_memory(machine) -> TensorMemory:
    """Return the machine's tensor memory, made at its first use."""
    if machine.tensor is None:
        machine.tensor = TensorMemory(
            machine.threads.blocks, checks=machine.launch.checks, traced=machine.trace is not None
        )
    return machine.tensor


def watch_cells(machine, places: np.ndarray, lanes, kind: str, watch: Callable) -> None:
    """Tell the checks of accesses to the cells at `places`, whose first axis is the lanes' (None: all lanes)."""
    if machine.launch.checks:
        everyone = machine.threads.all_lanes if lanes is None else lanes
        watch(machine.tensor.space, places.reshape(-1), 4, np.repeat(everyone, places[0].size), kind)
