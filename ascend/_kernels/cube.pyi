import numpy as np

MAX_STEP: int

def run(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    group_ends: np.ndarray,
    out: np.ndarray,
    task: dict[str, int | bool],
    level: int,
    threads: int,
) -> None: ...
def reconstruct(
    hh: np.ndarray,
    lh: np.ndarray,
    hl: np.ndarray,
    ll: np.ndarray | None,
    out: np.ndarray,
    *,
    a_exponent: int,
    b_exponent: int,
    clamp: bool,
    level: int,
) -> None: ...
