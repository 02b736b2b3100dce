import numpy as np

NEAREST: int
ODD: int
DIFFERENCE: int
BLOCK: int

class Product:
    def __init__(
        self,
        a: np.ndarray,
        a_double: bool,
        b: np.ndarray,
        b_double: bool,
        m: int,
        k: int,
        n: int,
        level: int,
        threads: int,
    ) -> None: ...
    def units(self, row_units: np.ndarray, column_units: np.ndarray) -> None: ...
    def expansion(self, high: np.ndarray, low: np.ndarray, open: np.ndarray) -> None: ...
    def rounded_fp32(self, c: np.ndarray | None, out: np.ndarray, open: np.ndarray) -> None: ...

def finish(
    high: np.ndarray,
    low: np.ndarray,
    row_units: np.ndarray,
    column_units: np.ndarray,
    c: np.ndarray | None,
    x: np.ndarray | None,
    what: int,
    out: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def dots(
    a: tuple[np.ndarray, bool],
    b: tuple[np.ndarray, bool],
    steps: tuple[int, int, int],
    rows: np.ndarray,
    columns: np.ndarray,
    c: np.ndarray | None,
    x: np.ndarray | None,
    what: int,
    out: np.ndarray,
    threads: int,
) -> None: ...
