from collections.abc import Mapping

import numpy as np

from tensorcore_models.kernels.common import Result, Source

def wide(
    a: Source,
    b: Source,
    order: np.ndarray,
    plain_order: bool,
    result: Result,
    task: Mapping,
    level: int,
    threads: int,
    length: int = 0,
) -> None: ...
