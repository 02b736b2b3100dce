from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

HAS_WIDE: bool
PANEL: int  # columns that the vectors take side by side
MAX_TERMS: int
MAX_PARTS: int
MAX_GROUP: int
MAX_LIMBS: int
ALIGN_NONE: int

class Layout:
    def __init__(self, order: Iterable[int], bounds: Iterable[int], tree: Iterable[int] = ()) -> None: ...

class Plan:
    def __init__(self, fields: Mapping[str, Any], whole: Layout) -> None: ...
    def to_bytes(self) -> bytes: ...
    def run(
        self,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        out: np.ndarray,
        scale_a: np.ndarray | None,
        scale_b: np.ndarray | None,
        tail: Layout,
        isa: int,
        threads: int,
    ) -> None: ...
    def run_batch(
        self,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        out: np.ndarray,
        scale_a: np.ndarray | None,
        scale_b: np.ndarray | None,
        tail: Layout,
        isa: int,
        threads: int,
    ) -> None: ...
