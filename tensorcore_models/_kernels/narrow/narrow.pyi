from collections.abc import Mapping

import numpy as np

from tensorcore_models.kernels.common import RunningResult, Source

FLOOR: int
LEAST: int
MOST: int
SHIFT: int
ADDEND: int

def narrow(
    a: Source,
    b: Source,
    order: np.ndarray,
    plain_order: bool,
    result: RunningResult,
    task: Mapping,
    level: int,
    threads: int,
    length: int = 0,
) -> None: ...
def shifts(a: Source, b: Source, level: int, threads: int) -> tuple[int, int] | None: ...

class NarrowItems:
    def __init__(
        self,
        a_format: Mapping,
        b_format: Mapping,
        order: np.ndarray,
        plain_order: bool,
        k: int,
        task: Mapping,
        c_size: int,
        d_size: int,
    ) -> None: ...
    def run(
        self,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        d: np.ndarray,
        marks: np.ndarray,
        m: int,
        n: int,
        level: int,
        threads: int,
    ) -> int: ...
    def one(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, m: int, n: int, level: int) -> int: ...
