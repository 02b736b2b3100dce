from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_GROUPS: int
LONGEST: int
SKIP: int

def workspace_bytes(m: int, n: int, length: int, group: int) -> int: ...
def groups(
    a: tuple[Any, ...],
    b: tuple[Any, ...],
    k: int,
    block_size: int,
    d: NDArray[np.float32],
    redo: NDArray[np.uint8],
    row_special: NDArray[np.uint8],
    column_special: NDArray[np.uint8],
    workspace: NDArray[np.uint8],
    length: int,
    task: Any,
    level: int,
    threads: int,
) -> None: ...
def groups_batch(
    a: tuple[Any, ...],
    b: tuple[Any, ...],
    k: int,
    block_size: int,
    d: NDArray[np.float32],
    marks: NDArray[np.uint8],
    swapped: bool,
    task: Any,
    level: int,
    threads: int,
) -> None: ...
