import numpy as np

def pairwise(
    a: np.ndarray,
    b: np.ndarray,
    d: np.ndarray,
    redo: np.ndarray | None,
    rules: tuple[tuple[bool, int], ...],
    task: dict[str, int],
    level: int,
    threads: int,
    length: int = 0,
) -> None: ...
