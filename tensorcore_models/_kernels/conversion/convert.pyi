from typing import Any

import numpy as np

def encode(
    source: np.ndarray,
    source_size: int,
    out: np.ndarray,
    out_size: int,
    target: Any,
    first_index: int,
    isa: int,
    threads: int,
    allow_narrow: bool = True,
) -> int: ...
def decode(source: np.ndarray, source_size: int, out: np.ndarray, out_size: int, fmt: Any, threads: int) -> int: ...
def lookup(
    source: np.ndarray, source_size: int, table: np.ndarray, out: np.ndarray, out_size: int, threads: int
) -> None: ...
