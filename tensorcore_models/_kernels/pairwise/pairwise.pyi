import numpy as np

def pairwise(
    a: np.ndarray,
    b: np.ndarray,
    d: np.ndarray,
    redo: np.ndarray | None,
    group: int,
    terms: int,
    level: int,
    threads: int,
    length: int = 0,
) -> None: ...
