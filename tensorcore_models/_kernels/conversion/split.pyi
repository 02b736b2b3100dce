import numpy as np

def split_fp16(
    x: np.ndarray,
    high: np.ndarray,
    low: np.ndarray,
    scale_exponent: int,
    saturate: bool,
    nan_code: int,
    keep_nan: bool,
    isa: int,
    threads: int,
) -> None: ...
