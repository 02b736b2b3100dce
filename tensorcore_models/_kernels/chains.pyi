from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST: int

def available(level: int, flush: bool = False) -> bool: ...
def workspace_bytes(m: int, n: int, length: int, size: int, every: int, level: int) -> int: ...
def chains(
    a: NDArray[np.floating[Any]],
    b: NDArray[np.floating[Any]],
    d: NDArray[np.floating[Any]],
    workspace: NDArray[np.uint8],
    length: int,
    every: int,
    lanes: int,
    flush: bool,
    nan: int,
    level: int,
    threads: int,
) -> None: ...
