from typing import Any

import numpy as np
from numpy.typing import NDArray

def workspace_bytes(m: int, n: int, length: int) -> int: ...
def integer(
    a: NDArray[np.uint8],
    a_outer: int,
    a_inner: int,
    a_format: Any,
    b: NDArray[np.uint8],
    b_outer: int,
    b_inner: int,
    b_format: Any,
    k: int,
    d: NDArray[np.int32],
    workspace: NDArray[np.uint8],
    length: int,
    terms: int,
    clamp: bool,
    level: int,
    threads: int,
) -> None: ...
def integer_batch(
    a: NDArray[np.uint8],
    a_outer: int,
    a_inner: int,
    a_format: Any,
    b: NDArray[np.uint8],
    b_outer: int,
    b_inner: int,
    b_format: Any,
    k: int,
    d: NDArray[np.int32],
    swapped: bool,
    terms: int,
    clamp: bool,
    level: int,
    threads: int,
) -> None: ...
