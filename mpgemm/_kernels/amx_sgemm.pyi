from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

STEP: int
STEP_INT8: int

def state(is_int8: bool) -> int: ...
def peak(words: NDArray[np.uint8], rounds: int, is_int8: bool, emulated: bool, threads: int) -> int: ...
def workspace_bytes(m: int, n: int, depth: int, words: int, is_int8: bool) -> int: ...
def multiply_words(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    d: NDArray[np.float32],
    workspace: NDArray[np.uint8],
    pairs: Sequence[tuple[int, int]],
    task: dict[str, int | bool],
    accept: Callable[[int, int, int, int], str | None],
    level: int,
    threads: int,
) -> str | None: ...
def multiply_slices(
    a: NDArray[np.int8],
    b: NDArray[np.int8],
    d: NDArray[np.int32],
    workspace: NDArray[np.uint8],
    pairs: Sequence[tuple[int, int, int]],
    emulated: bool,
    threads: int,
) -> None: ...
