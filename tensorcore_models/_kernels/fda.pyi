from typing import Any

import numpy as np
from numpy.typing import NDArray

NARROW_FLOOR: int

def narrow_workspace_bytes(m: int, n: int, length: int) -> int: ...
def narrow(
    a: NDArray[np.uint8],
    a_outer: int,
    a_inner: int,
    a_format: Any,
    b: NDArray[np.uint8],
    b_outer: int,
    b_inner: int,
    b_format: Any,
    order: NDArray[np.int32],
    plain_order: bool,
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

class NarrowItems:
    def __init__(
        self,
        a_format: Any,
        b_format: Any,
        order: NDArray[np.int32],
        plain_order: bool,
        k: int,
        task: Any,
        c_size: int,
        d_size: int,
    ) -> None: ...
    def run(
        self,
        a: NDArray[np.unsignedinteger],
        b: NDArray[np.unsignedinteger],
        c: NDArray[np.unsignedinteger],
        d: NDArray[np.unsignedinteger],
        marks: NDArray[np.uint8],
        m: int,
        n: int,
        level: int,
        threads: int,
    ) -> int: ...

def wide_workspace_bytes(m: int, n: int, length: int) -> int: ...
def wide(
    a: NDArray[np.uint8],
    a_outer: int,
    a_inner: int,
    a_format: Any,
    b: NDArray[np.uint8],
    b_outer: int,
    b_inner: int,
    b_format: Any,
    order: NDArray[np.int32],
    plain_order: bool,
    d: NDArray[np.float32],
    redo: NDArray[np.uint8],
    row_special: NDArray[np.uint8],
    column_special: NDArray[np.uint8],
    workspace: NDArray[np.uint8],
    length: int,
    task: Any,
    level: int,
    threads: int,
    a_scales: NDArray[np.uint8] | None = None,
    a_scale_outer: int = 0,
    a_scale_inner: int = 0,
    b_scales: NDArray[np.uint8] | None = None,
    b_scale_outer: int = 0,
    b_scale_inner: int = 0,
    block_size: int = 1,
) -> None: ...
def ieee(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    d: NDArray[np.float32],
    redo: NDArray[np.uint8] | None,
    group: int,
    terms: int,
    level: int,
    threads: int,
) -> None: ...
