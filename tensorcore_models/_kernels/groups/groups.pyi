from collections.abc import Mapping

import numpy as np

from tensorcore_models.kernels.common import Result, Source

MAX_GROUPS: int
LONGEST: int
SKIP: int

def groups(
    a: Source, b: Source, a_tables: object, b_tables: object, k: int, result: Result, task: Mapping, level: int, threads: int,
    length: int = 0,
) -> None: ...
def groups_batch(
    a: Source, b: Source, a_tables: object, b_tables: object, k: int, d: np.ndarray, marks: np.ndarray, swapped: bool, task: Mapping,
    level: int, threads: int,
) -> None: ...
