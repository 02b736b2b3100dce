import numpy as np
from numpy.typing import NDArray

NAMES: tuple[str, ...]
STATES: tuple[str, ...]

def state(unit: int) -> int: ...
def is_emulated(unit: int) -> bool: ...
def shape(unit: int) -> tuple[int, int, int, int]: ...
def run(
    unit: int,
    emulated: bool,
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    d: NDArray[np.uint32],
    k: int,
    threads: int,
) -> None: ...
