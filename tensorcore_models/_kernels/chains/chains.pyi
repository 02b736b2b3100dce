from collections.abc import Mapping

import numpy as np

LONGEST: int

def available(level: int, flush: bool = False) -> bool: ...
def chains(
    a: np.ndarray,
    b: np.ndarray,
    d: np.ndarray,
    task: Mapping,
    nan: int,
    level: int,
    threads: int,
    length: int = 0,
) -> bool: ...
