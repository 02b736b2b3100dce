from collections.abc import Mapping

import numpy as np

from tensorcore_models.kernels.common import RunningResult, Source

def wide(
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
