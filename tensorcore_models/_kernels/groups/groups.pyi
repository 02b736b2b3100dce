from collections.abc import Mapping
from typing import Any

import numpy as np

MAX_GROUPS: int
LONGEST: int
SKIP: int

def groups(
    a: Any,
    b: Any,
    tables: tuple[Any, Any],
    k: int,
    result: Any,
    task: Mapping,
    level: int,
    threads: int,
    length: int = 0,
) -> None: ...
def groups_batch(
    a: Any,
    b: Any,
    tables: tuple[Any, Any],
    k: int,
    d: np.ndarray,
    marks: np.ndarray,
    turned: bool,
    task: Mapping,
    level: int,
    threads: int,
) -> None: ...
