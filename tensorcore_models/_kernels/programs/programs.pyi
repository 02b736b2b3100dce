from collections.abc import Callable

import numpy as np

LANES: int
INSTRUCTION: int
OPERATIONS: dict[str, tuple[int, int]]
MEMORIES: dict[str, int]

class Code:
    registers: int
    def __init__(
        self, instructions: np.ndarray, constants: np.ndarray, registers: int, a_stride: int, b_stride: int
    ) -> None: ...

class Packing:
    outputs: int
    marks: bool
    def __init__(self, code: Code, outputs: int, marks: bool) -> None: ...

class Passes:
    a: Packing
    b: Packing
    registers: int
    def __init__(self, a: Packing, b: Packing, codes: tuple[Code, ...]) -> None: ...

def run(
    regular: Passes,
    all_passes: Callable[[], Passes],
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    out: np.ndarray,
    scale_a: np.ndarray | None,
    scale_b: np.ndarray | None,
    step: int,
    block: int,
    isa: int,
    threads: int,
) -> None: ...
