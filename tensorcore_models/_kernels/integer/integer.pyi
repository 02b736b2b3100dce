from collections.abc import Mapping

import numpy as np

from tensorcore_models.kernels.common import Source

def integer(
    a: Source,
    b: Source,
    k: int,
    d: np.ndarray,
    task: Mapping,
    level: int,
    threads: int,
    length: int = 0,
    items: int = 0,
    turned: bool = False,
) -> None: ...
