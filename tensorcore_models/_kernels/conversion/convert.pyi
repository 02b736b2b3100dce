from typing import Any

from numpy import ndarray

def encode(
    source: ndarray,
    source_size: int,
    out: ndarray,
    out_size: int,
    target: Any,
    first_index: int,
    isa: int,
    threads: int,
    allow_narrow: bool = True,
) -> int: ...
def decode(source: ndarray, source_size: int, out: ndarray, out_size: int, fmt: Any, threads: int) -> int: ...
def lookup(source: ndarray, source_size: int, table: ndarray, out: ndarray, out_size: int, threads: int) -> None: ...
